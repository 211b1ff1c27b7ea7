/*
 * The number of taps is a constant in each version of a loop, so that it unrolls, and what wins stays in registers
 * until it is stored, once. Fewer taps than a version has are filled up with ones that change nothing.
 *
 * Indexes are found as 32-bit numbers beside the values and packed when a position is done: a loop over both widths
 * would be unrolled until it runs out of registers.
 */
#include "backend/cpu/pool_max.h"

#include <string.h>

#include "backend/cpu/vector.h"
#include "base/checked.h"

enum { BLOCK = 16 };

CVY_INLINE void pack(const int32_t *index, int64_t lanes, uint8_t *window)
{
#pragma omp simd
    for (int64_t i = 0; i < lanes; i++) {
        window[i] = (uint8_t)index[i];
    }
}

/* The larger wins, the first of equals, and the first NaN over all: it is not equal to itself. */
CVY_INLINE void find_largest(const cvy_pool_taps *of, int taps, int64_t lanes, float least, const float *x, float *y,
                             int32_t *winner)
{
    const cvy_pool_taps r = *of;
#pragma omp simd
    for (int64_t i = 0; i < lanes; i++) {
        float largest = x[r.from[0] + i];
        int32_t index = r.index[0];
#pragma GCC unroll 9
        for (int t = 1; t < taps; t++) {
            float candidate = x[r.from[t] + i];
            bool better = candidate > largest || (candidate != candidate && largest == largest);
            largest = better ? candidate : largest;
            index = better ? r.index[t] : index;
        }
        y[i] = largest < least ? least : largest;
        winner[i] = index;
    }
}

/* Lanes of a loop, as many at a time as there is room for their winners. */
CVY_INLINE void find_in_loop(const cvy_pool_taps *of, int taps, int64_t count, int64_t lanes, const cvy_pool_max *pool)
{
    int32_t winner[CVY_COLUMNS_WIDTH];
    for (int64_t output = 0; output < count; output++) {
        const float *from = pool->x + output * of->from_step;
        int64_t to = of->to + output * of->step;
        for (int64_t i = 0; i < lanes; i += CVY_COLUMNS_WIDTH) {
            int64_t some = lanes - i < CVY_COLUMNS_WIDTH ? lanes - i : CVY_COLUMNS_WIDTH;
            find_largest(of, taps, some, pool->least, from + i, pool->y + to + i, winner);
            if (pool->window) {
                pack(winner, some, pool->window + to + i);
            }
        }
    }
}

/* Blocks of channels are short: their length is a constant, too. */
#define DEFINE_FIND(taps)                                                                                             \
    CVY_WIDE_VECTOR static void find_of_##taps(const cvy_pool_taps *of, cvy_pool_loop loop, const cvy_pool_max *pool) \
    {                                                                                                                 \
        if (loop.lanes == BLOCK) {                                                                                    \
            find_in_loop(of, taps, loop.count, BLOCK, pool);                                                          \
        } else {                                                                                                      \
            find_in_loop(of, taps, loop.count, loop.lanes, pool);                                                     \
        }                                                                                                             \
    }

DEFINE_FIND(4)
DEFINE_FIND(6)
DEFINE_FIND(9)

void cvy_pool_max_row(const cvy_pool_row *row, int64_t positions, const cvy_pool_max *pool)
{
    int64_t lanes = row->strip.lanes, valid = row->strip.valid;
    uint8_t *window = pool->window ? pool->window + row->to : NULL;
    const cvy_pool_max at = {.x = pool->x + row->from, .y = pool->y + row->to, .window = window, .least = pool->least};
    for (int i = 0; i < row->runs; i++) {
        const cvy_pool_taps *of = &row->taps[i];
        (of->taps <= 4 ? find_of_4 : of->taps <= 6 ? find_of_6 : find_of_9)(of, cvy_pool_loop_get(row, of), &at);
    }
    for (int64_t i = 0; window && valid < lanes && i < positions; i++) { /* no winners in the padding */
        memset(window + i * lanes + valid, 0, (size_t)(lanes - valid));
    }
}
