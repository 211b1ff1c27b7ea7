/*
 * A row of outputs falls into runs whose windows are cut alike by the edges of the input: one long run, and a few
 * outputs before and behind it. The taps of a run are as many as the window's; one that lies in the padding stands for
 * the first that does not, with an index that is nobody's. The number of taps is a constant in each version of a loop,
 * so that it unrolls. 2x2, 2x2x2 and 3x3 are nearly all there are.
 *
 * Gathering instead, each input from the windows that cover it, took 4 times as long over GoogLeNet's poolings: the
 * indexes are bytes, and a loop over both widths runs out of registers.
 */
#include "backend/cpu/pool_give.h"

#include "backend/cpu/vector.h"
#include "base/checked.h"

enum { MOST_TAPS = 9, NOBODY = -1 };

/* Where the taps of a segment lie: outputs [first, last) have theirs inside. */
typedef struct segment_taps {
    int count;
    int64_t first[MOST_TAPS], last[MOST_TAPS];
    int64_t offset[MOST_TAPS]; /* of output 0 of the row */
    int64_t step;              /* from an output's to the next one's */
} segment_taps;

/* Outputs [begin, end) and where the taps of the first of them lie. */
typedef struct run {
    int64_t begin, end, lanes, step;
    int64_t offset[MOST_TAPS];
    int32_t index[MOST_TAPS];
} run;

static int64_t count_taps(const cvy_pool *pool)
{
    const int64_t *kernel = pool->window->kernel;
    return kernel[0] * kernel[1] * kernel[2];
}

bool cvy_pool_give_fits(const cvy_pool *pool)
{
    int64_t taps = count_taps(pool);
    return pool->x.lanes > 1 && (taps == 4 || taps == 8 || taps == 9);
}

static segment_taps find_taps(const cvy_pool *pool, const cvy_pool_segment *segment)
{
    segment_taps taps = {.step = pool->window->stride[2] * pool->x.position_stride};
    for (cvy_pool_tap tap = {.index = -1}; cvy_pool_next_tap(pool, segment, &tap); taps.count++) {
        taps.first[taps.count] = tap.first;
        taps.last[taps.count] = tap.last;
        taps.offset[taps.count] = tap.offset - tap.first * taps.step;
    }
    return taps;
}

static bool is_inside(const segment_taps *taps, int t, int64_t output)
{
    return output >= taps->first[t] && output < taps->last[t];
}

/* The run that begins with an output. */
static run find_run(const segment_taps *taps, const cvy_pool_segment *segment, int64_t begin)
{
    run found = {.begin = begin, .end = segment->last, .lanes = segment->to.lanes, .step = taps->step};
    int first = 0;
    while (!is_inside(taps, first, begin)) {
        first++;
    }
    for (int t = 0; t < taps->count; t++) {
        bool inside = is_inside(taps, t, begin);
        int64_t change = inside ? taps->last[t] : taps->first[t];
        found.end = change > begin ? cvy_min_i64(found.end, change) : found.end;
        found.offset[t] = taps->offset[inside ? t : first] + begin * taps->step;
        found.index[t] = inside ? t : NOBODY;
    }
    return found;
}

CVY_INLINE void give_to_winners(const run *of, int taps, int64_t lanes, const float *value, const int32_t *index,
                                float *dx)
{
    const run r = *of;
    for (int64_t output = 0; output < r.end - r.begin; output++) {
        float *to = dx + output * r.step;
        const float *from = value + output * lanes;
        const int32_t *at = index + output * lanes;
#pragma omp simd
        for (int64_t i = 0; i < lanes; i++) {
#pragma GCC unroll 9
            for (int t = 0; t < taps; t++) {
                to[r.offset[t] + i] += at[i] == r.index[t] ? from[i] : 0;
            }
        }
    }
}

/* Blocks of channels are short: their length is a constant, too. */
#define DEFINE_TAPS(taps)                                                                                     \
    CVY_VECTOR static void give_of_##taps(const run *of, const float *value, const int32_t *index, float *dx) \
    {                                                                                                         \
        if (of->lanes == 16) {                                                                                \
            give_to_winners(of, taps, 16, value, index, dx);                                                  \
        } else if (of->lanes == 8) {                                                                          \
            give_to_winners(of, taps, 8, value, index, dx);                                                   \
        } else {                                                                                              \
            give_to_winners(of, taps, of->lanes, value, index, dx);                                           \
        }                                                                                                     \
    }

DEFINE_TAPS(4)
DEFINE_TAPS(8)
DEFINE_TAPS(9)

void cvy_pool_give(const cvy_pool *pool, const cvy_pool_segment *segment, const float *value, const int32_t *index,
                       float *dx)
{
    const segment_taps taps = find_taps(pool, segment);
    for (int64_t output = segment->first; output < segment->last;) {
        const run r = find_run(&taps, segment, output);
        int64_t at = (output - segment->first) * r.lanes;
        if (taps.count == 4) {
            give_of_4(&r, value + at, index + at, dx);
        } else if (taps.count == 8) {
            give_of_8(&r, value + at, index + at, dx);
        } else {
            give_of_9(&r, value + at, index + at, dx);
        }
        output = r.end;
    }
}
