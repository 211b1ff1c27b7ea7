/*
 * Pooling row by row, where channels lie innermost and windows are small. Each position gathers what it needs from the
 * other side: an output the inputs of its window, forward; an input the outputs whose windows cover it, backward, so
 * that it is written once and nobody else adds to it. Positions of a row whose lists are alike make a run.
 */
#ifndef CVY_BACKEND_CPU_POOL_RUNS_H
#define CVY_BACKEND_CPU_POOL_RUNS_H

#include "backend/cpu/pool_geometry.h"

enum {
    CVY_POOL_REACH = 3,  /**< extent of the largest window along an axis */
    CVY_POOL_TAPS = 9,   /**< positions of the largest window */
    CVY_POOL_RUNS = 18,  /**< of an axis: three remainders by the stride, each cut twice at its ends, and left over */
    CVY_POOL_LISTS = 96, /**< of all rows */
};

/** Positions of the other side that one position meets along an axis, in its order. */
typedef struct cvy_pool_near {
    int count;
    int64_t at[CVY_POOL_REACH];
    int32_t k[CVY_POOL_REACH];      /**< where in the window */
    int32_t inside[CVY_POOL_REACH]; /**< positions of that window inside the input */
} cvy_pool_near;

/** Positions first, first + period, … along an axis, and whom the first of them meets. */
typedef struct cvy_pool_run {
    int64_t first, count;
    cvy_pool_near near;
} cvy_pool_run;

/** An axis as runs. */
typedef struct cvy_pool_axis {
    int64_t own, other; /**< extents of the side that is written, and of the one that is read */
    int64_t period;     /**< from a position of a run to the next */
    int64_t advance;    /**< … on the other side */
    int count;
    cvy_pool_run run[CVY_POOL_RUNS];
} cvy_pool_axis;

/**
 * A run along w as a loop: @p count positions, each of the lanes of a strip at its taps. Offsets and steps in elements,
 * from the first position of the row, and of the other side's sample. Taps beyond @p taps change nothing: each is the
 * first once more, forward with its index, backward with one that is nobody's.
 */
typedef struct cvy_pool_taps {
    int64_t count;
    int64_t to, step;
    int64_t from_step;
    int taps;
    int64_t from[CVY_POOL_TAPS];
    int32_t index[CVY_POOL_TAPS];  /**< in kd,kh,kw order */
    int32_t inside[CVY_POOL_TAPS]; /**< positions of that tap's window inside the input */
} cvy_pool_taps;

/** The runs of every row, and their loops: rows that are alike share theirs. */
typedef struct cvy_pool_runs {
    const cvy_pool *pool;
    bool backward;
    cvy_pool_axis axis[3];               /**< d,h,w */
    cvy_pool_taps taps[CVY_POOL_LISTS];  /**< by run of d, of h, of w */
} cvy_pool_runs;

/** One row of a strip of a sample. */
typedef struct cvy_pool_row {
    cvy_strip strip;
    int64_t to, from; /**< what the offsets of its taps count from */
    bool touching;    /**< a run's positions lie side by side, on both sides: one position with more lanes */
    int runs;
    const cvy_pool_taps *taps;
} cvy_pool_row;

/** Values that a loop over a run takes at once, and how often. */
typedef struct cvy_pool_loop {
    int64_t count, lanes;
} cvy_pool_loop;

/** The runs of a pooling; false where it has none: channels not innermost, large windows, or many that differ. */
bool cvy_pool_runs_get(const cvy_pool *pool, bool backward, cvy_pool_runs *runs_out);

/** Row @p index of strip @p unit, both counted through all samples. */
cvy_pool_row cvy_pool_row_get(const cvy_pool_runs *runs, int64_t unit, int64_t index);

/** The loop over a run of a row. Cannot fail. */
cvy_pool_loop cvy_pool_loop_get(const cvy_pool_row *row, const cvy_pool_taps *of);

#endif
