/* Distributions over the words of Philox. All in double and without state. */
#include "base/random.h"

#include <math.h>

double cvy_random_unit_double(uint32_t high, uint32_t low)
{
    uint64_t bits = ((uint64_t)high << 20) | (low >> 12); /* 52, so that the half below is exact and 1 is never met */
    return ((double)bits + 0.5) * 0x1p-52;
}

void cvy_random_normal_pair(cvy_words words, double pair_out[2])
{
    double radius = sqrt(-2.0 * log(cvy_random_unit_double(words.v[0], words.v[1])));
    double angle = 6.283185307179586476925 * cvy_random_unit_double(words.v[2], words.v[3]);
    pair_out[0] = radius * cos(angle);
    pair_out[1] = radius * sin(angle);
}

uint64_t cvy_random_below(uint32_t high, uint32_t low, uint64_t bound)
{
    uint64_t word = ((uint64_t)high << 32) | low;
    return (uint64_t)(((unsigned __int128)word * bound) >> 64);
}

void cvy_random_order(uint64_t seed, uint32_t epoch, int64_t count, int64_t *order_out)
{
    for (int64_t i = 0; i < count; i++) {
        order_out[i] = i;
    }
    for (int64_t i = count - 1; i > 0; i--) {
        cvy_words words =
            cvy_random_words(seed, CVY_PURPOSE_ORDER, (uint32_t)((uint64_t)i >> 32), epoch, 0, (uint32_t)i);
        int64_t j = (int64_t)cvy_random_below(words.v[0], words.v[1], (uint64_t)i + 1);
        int64_t kept = order_out[i];
        order_out[i] = order_out[j];
        order_out[j] = kept;
    }
}
