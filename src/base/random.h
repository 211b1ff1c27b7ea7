/*
 * Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", SC'11). A number is a function of what it is for and where it belongs, never of who asks or in which order,
 * so it is the same for every layout, thread count, cut, recomputation and resume.
 */
#ifndef CVY_BASE_RANDOM_H
#define CVY_BASE_RANDOM_H

#include <stdint.h>

/** What a number is for; the second half of the key. Values are part of what a seed means: never renumber. */
typedef enum cvy_purpose {
    CVY_PURPOSE_INITIALISATION = 1,
    CVY_PURPOSE_ORDER = 2,
    CVY_PURPOSE_AUGMENTATION = 3,
    CVY_PURPOSE_DROPOUT = 4,
    CVY_PURPOSE_STOCHASTIC_DEPTH = 5,
    CVY_PURPOSE_SYNTHETIC_DATA = 6,
    CVY_PURPOSE_CALIBRATION = 7,
} cvy_purpose;

/** Four words. */
typedef struct cvy_words {
    uint32_t v[4];
} cvy_words;

/** The block cipher itself: 10 rounds on a counter of four words under a key of two. */
static inline cvy_words cvy_philox(cvy_words counter, uint32_t key0, uint32_t key1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xD2511F53u * counter.v[0];
        uint64_t product1 = (uint64_t)0xCD9E8D57u * counter.v[2];
        counter = (cvy_words){{(uint32_t)(product1 >> 32) ^ counter.v[1] ^ key0, (uint32_t)product1,
                               (uint32_t)(product0 >> 32) ^ counter.v[3] ^ key1, (uint32_t)product0}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

/**
 * Give the four words of a place.
 *
 * @param[in] seed     the run's; its upper half is folded into the purpose's half of the key
 * @param[in] owner    layer or parameter index
 * @param[in] time     step or epoch
 * @param[in] sample   position in the global batch, or index in the data set; 0 where there is none
 * @param[in] block    logical element (n,c,d,h,w order within the sample) divided by 4; lane = element % 4
 */
static inline cvy_words cvy_random_words(uint64_t seed, cvy_purpose purpose, uint32_t owner, uint32_t time,
                                         uint32_t sample, uint32_t block)
{
    cvy_words counter = {{block, sample, time, owner}};
    return cvy_philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32) ^ ((uint32_t)purpose << 24));
}

/** A number in [0, 1) from a word: the upper 24 bits, exact in float. */
static inline float cvy_random_unit(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/** A number in (0, 1) from two words: the middle of one of 2^52 equal parts. */
double cvy_random_unit_double(uint32_t high, uint32_t low);

/** Two independent standard normal numbers from four words (Box-Muller, in double). */
void cvy_random_normal_pair(cvy_words words, double pair_out[2]);

/** A whole number in [0, bound) from two words, bound >= 1; the bias is below bound / 2^64. */
uint64_t cvy_random_below(uint32_t high, uint32_t low, uint64_t bound);

/**
 * Fill @p order_out with a random order of 0 … count-1 (Fisher-Yates): a function of (seed, epoch) alone.
 *
 * @param[out] order_out  count entries
 */
void cvy_random_order(uint64_t seed, uint32_t epoch, int64_t count, int64_t *order_out);

#endif
