/*
 * Kernels that compete for the same work, each measured only as well as it must be known. What takes several times as
 * long as a rival loses however well it is known: it is run once, or for a few samples of its batch only.
 */
#ifndef CVY_BACKEND_STOPWATCH_H
#define CVY_BACKEND_STOPWATCH_H

#include "backend/measure.h"

/** Measures equal ops once. Starts as zeros but for chain and effort. */
typedef struct cvy_stopwatch {
    const cvy_backend_chain *chain; /**< borrowed */
    cvy_measure_effort effort;
    struct cvy_stopwatch_entry *entry;
    int entries, capacity;
} cvy_stopwatch;

/** Runs of so many seconds or more are worth saving; shorter ones are measured out: a moment's noise doubles them. */
#define CVY_STOPWATCH_LONG_S 0.02

/**
 * As cvy_kernel_measure(), or what it answered for an equal op before. Where a rival takes CVY_STOPWATCH_LONG_S or
 * more, less is spent on an op that loses to it: the answer is that of one run where this took twice as long as the
 * rival; and of a convolution that takes three times as long for some samples of its batch, one a thread, that time
 * multiplied up to the batch.
 *
 * @param[in] rival_s   of the fastest other way to do the same work that is known; 0: none is
 */
cvy_status cvy_stopwatch_measure(cvy_stopwatch *stopwatch, const cvy_op *op, double rival_s, double *seconds_out);

/** Forget all, and release its memory. */
void cvy_stopwatch_clear(cvy_stopwatch *stopwatch);

#endif
