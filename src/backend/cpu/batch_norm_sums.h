/* Batch norm: how the work is cut, and the sums over the batch and space. */
#ifndef CVY_BACKEND_CPU_BATCH_NORM_SUMS_H
#define CVY_BACKEND_CPU_BATCH_NORM_SUMS_H

#include "backend/cpu/cpu.h"

/** One piece of work: positions [first, last) of a strip. */
typedef struct cvy_norm_unit {
    cvy_strip strip;
    int64_t first, last;
} cvy_norm_unit;

/** What the backward passes read and write; members that a pass does not have are NULL. */
typedef struct cvy_norm_gradients {
    const float *x, *dy, *w, *mean, *variance;
    float *dw, *db, *dx;
} cvy_norm_gradients;

/** Cut the work of a kernel whose op is a batch norm of an activation. */
void cvy_norm_setup(cvy_cpu_kernel *kernel);

/** Pieces of work; those of a strip follow each other. */
int64_t cvy_norm_units(const cvy_cpu_kernel *kernel);

cvy_norm_unit cvy_norm_unit_get(const cvy_cpu_kernel *kernel, int64_t index);

/** A walk over the rows of a unit, which must outlive it. */
cvy_walk cvy_norm_unit_walk(const cvy_cpu_kernel *kernel, const cvy_norm_unit *unit);

/** 1 / sqrt(variance + epsilon). */
double cvy_norm_inverse_deviation(const cvy_cpu_kernel *kernel, float variance);

/** Mean and biased variance of each channel. */
void cvy_norm_measure(const cvy_cpu_kernel *kernel, const float *x, void *scratch, float *mean, float *variance);

/** dw and db from x, dy, mean and variance. */
void cvy_norm_sum_gradients(const cvy_cpu_kernel *kernel, void *scratch, const cvy_norm_gradients *with);

#endif
