/* Batch norm: how the work is cut, and the sums over the batch and space. */
#ifndef CVY_BACKEND_CPU_BATCH_NORM_SUMS_H
#define CVY_BACKEND_CPU_BATCH_NORM_SUMS_H

#include "backend/cpu/cpu.h"

/** One piece of work: positions [first, last) of a strip. */
typedef struct cvy_norm_unit {
    cvy_strip strip;
    int64_t first, last;
} cvy_norm_unit;

/** Strips [first, last), which two passes go over before the next ones follow. */
typedef struct cvy_norm_strips {
    int64_t first, last;
} cvy_norm_strips;

/** What the backward passes read and write; members that a pass does not have are NULL: b is there with a relu. */
typedef struct cvy_norm_gradients {
    const float *x, *dy, *w, *b, *mean, *variance;
    float *dw, *db, *dx;
} cvy_norm_gradients;

/** Cut the work of a kernel whose op is a batch norm of an activation. */
void cvy_norm_setup(cvy_cpu_kernel *kernel);

/** All strips. */
cvy_norm_strips cvy_norm_all_strips(const cvy_cpu_kernel *kernel);

/**
 * Go to the next strips, as many as a second pass over @p tensors activations will still find in the cache; start with
 * {0, 0}. False after the last. Changes when work is done, not what comes out.
 */
bool cvy_norm_next_strips(const cvy_cpu_kernel *kernel, int tensors, cvy_norm_strips *strips);

/** Piece @p index of the work, counted from the first strip. Those of a strip follow each other. */
cvy_norm_unit cvy_norm_unit_get(const cvy_cpu_kernel *kernel, int64_t index);

/** A walk over the rows of a unit, which must outlive it. */
cvy_walk cvy_norm_unit_walk(const cvy_cpu_kernel *kernel, const cvy_norm_unit *unit);

/** 1 / sqrt(variance + epsilon). */
double cvy_norm_inverse_deviation(const cvy_cpu_kernel *kernel, float variance);

/** w / sqrt(variance + epsilon): one rounding wherever it is used, so that all see one sign of y. */
float cvy_norm_scale(const cvy_cpu_kernel *kernel, float w, float variance);

/** Mean and biased variance of each channel of some strips. */
void cvy_norm_measure(const cvy_cpu_kernel *kernel, const float *x, void *scratch, cvy_norm_strips strips, float *mean,
                      float *variance);

/** Mean, then sum of squared deviations, of each lane of a unit: two times as many numbers as its strip has lanes. */
void cvy_norm_measure_unit(const cvy_cpu_kernel *kernel, const float *x, const cvy_norm_unit *unit, double *sums_out);

/** Sums of dy, then of dy (x - mean), of each lane of a unit; statistics are by channel, of which the mean will do. */
void cvy_norm_sum_unit(const cvy_cpu_kernel *kernel, const cvy_norm_gradients *with, const cvy_norm_unit *unit,
                       double *sums_out);

/** dw and db of some strips from x, dy, mean and variance. */
void cvy_norm_sum_gradients(const cvy_cpu_kernel *kernel, void *scratch, cvy_norm_strips strips,
                            const cvy_norm_gradients *with);

#endif
