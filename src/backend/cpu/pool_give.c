/*
 * Each output of a row gives its gradient to one tap of its window. All taps are gone over, so that channels are worked
 * on side by side: those that did not win add 0. The number of taps is a constant in each version of a loop, so that it
 * unrolls, as is the number of channels that are worked on at once; taps that a run lacks have an index that is
 * nobody's.
 *
 * What is given is loaded first, some outputs at a time: a loop that waits for memory does nothing else. Winners become
 * 32-bit numbers there: a loop over both widths runs out of registers.
 *
 * Gathering instead, each input from the windows that cover it, took 4 times as long over GoogLeNet's poolings.
 */
#include "backend/cpu/pool_give.h"

#include <string.h>

#include "backend/cpu/vector.h"
#include "base/checked.h"

enum { BLOCK = 16, NOBODY = -1 };

/* A run, of which the loops below keep all in registers or in the first-level cache. */
typedef struct give_run {
    int64_t count, lanes, step, from_step;
    int64_t to[CVY_POOL_TAPS];
    int32_t index[CVY_POOL_TAPS];
} give_run;

/* Some outputs of a run: channels innermost, without gaps. */
typedef struct give_values {
    float value[CVY_POOL_SEGMENT];
    int32_t winner[CVY_POOL_SEGMENT];
} give_values;

CVY_INLINE void load_row(const cvy_pool_given *from, int64_t at, int64_t width, float *value, int32_t *winner)
{
    const float *dy = from->dy + at;
    const uint8_t *window = from->window + at;
    if (from->y) {
        const float *y = from->y + at;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            value[i] = y[i] > 0 ? dy[i] : 0;
        }
    } else {
        memcpy(value, dy, (size_t)width * sizeof *value);
    }
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        winner[i] = window[i];
    }
}

CVY_INLINE void load_values(const cvy_pool_given *from, const give_run *run, int64_t first, int64_t count,
                            give_values *all)
{
    bool dense = run->step == run->lanes;
    int64_t rows = dense ? 1 : count, width = dense ? count * run->lanes : run->lanes;
    for (int64_t row = 0; row < rows; row++) {
        load_row(from, (first + row) * run->step, width, all->value + row * width, all->winner + row * width);
    }
}

CVY_INLINE void give_lanes(const give_run *run, int taps, int64_t lanes, const float *value, const int32_t *winner,
                           float *dx)
{
#pragma omp simd
    for (int64_t i = 0; i < lanes; i++) {
#pragma GCC unroll 9
        for (int t = 0; t < taps; t++) {
            dx[run->to[t] + i] += winner[i] == run->index[t] ? value[i] : 0;
        }
    }
}

/* The lanes that fill no block: 8, 4, and what is left. */
CVY_INLINE void give_rest(const give_run *run, int taps, const float *value, const int32_t *winner, float *dx)
{
    int64_t i = run->lanes / BLOCK * BLOCK;
    if (run->lanes & 8) {
        give_lanes(run, taps, 8, value + i, winner + i, dx + i);
        i += 8;
    }
    if (run->lanes & 4) {
        give_lanes(run, taps, 4, value + i, winner + i, dx + i);
        i += 4;
    }
    if (i < run->lanes) {
        give_lanes(run, taps, run->lanes - i, value + i, winner + i, dx + i);
    }
}

CVY_INLINE void give_outputs(const give_run *of, int taps, int64_t count, const give_values *all, float *dx)
{
    const give_run run = *of;
    for (int64_t output = 0; output < count; output++) {
        const float *value = all->value + output * run.lanes;
        const int32_t *winner = all->winner + output * run.lanes;
        float *to = dx + output * run.from_step;
        for (int64_t i = 0; i + BLOCK <= run.lanes; i += BLOCK) {
            give_lanes(&run, taps, BLOCK, value + i, winner + i, to + i);
        }
        if (run.lanes % BLOCK) {
            give_rest(&run, taps, value, winner, to);
        }
    }
}

#define DEFINE_GIVE(taps)                                                                                  \
    CVY_WIDE_VECTOR static void give_of_##taps(const give_run *run, const cvy_pool_given *from, float *dx) \
    {                                                                                                      \
        give_values all;                                                                                   \
        int64_t some = CVY_POOL_SEGMENT / run->lanes;                                                      \
        for (int64_t first = 0; first < run->count; first += some) {                                       \
            int64_t count = cvy_min_i64(some, run->count - first);                                         \
            load_values(from, run, first, count, &all);                                                    \
            give_outputs(run, taps, count, &all, dx + first * run->from_step);                             \
        }                                                                                                  \
    }

DEFINE_GIVE(4)
DEFINE_GIVE(6)
DEFINE_GIVE(9)

/* The sources, counted from an element. */
static cvy_pool_given look_from(const cvy_pool_given *from, int64_t at)
{
    return (cvy_pool_given){from->dy + at, from->y ? from->y + at : NULL, from->window + at};
}

static void give_taps(const cvy_pool_taps *of, int64_t lanes, const cvy_pool_given *row, float *dx)
{
    const cvy_pool_given from = look_from(row, of->to);
    give_run run = {.count = of->count, .lanes = lanes, .step = of->step, .from_step = of->from_step};
    for (int t = 0; t < CVY_POOL_TAPS; t++) {
        run.to[t] = of->from[t];
        run.index[t] = t < of->taps ? of->index[t] : NOBODY;
    }
    (of->taps <= 4 ? give_of_4 : of->taps <= 6 ? give_of_6 : give_of_9)(&run, &from, dx);
}

void cvy_pool_give(const cvy_pool_runs *runs, int64_t unit, const cvy_pool_given *given, float *dx)
{
    int64_t rows = runs->axis[0].own * runs->axis[1].own, cleared = 0;
    for (int64_t i = 0; i < rows; i++) {
        const cvy_pool_row row = cvy_pool_row_get(runs, unit, i);
        const cvy_pool_given from = look_from(given, row.to);
        cvy_pool_clear(runs->pool, unit, i, &cleared, dx);
        for (int run = 0; run < row.runs; run++) {
            give_taps(&row.taps[run], row.strip.lanes, &from, dx + row.from);
        }
    }
}
