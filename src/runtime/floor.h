/*
 * The floor: no iteration can be faster than its arithmetic at the machine's best rate and its bytes at its bandwidth.
 */
#ifndef CVY_RUNTIME_FLOOR_H
#define CVY_RUNTIME_FLOOR_H

#include "plan/plan.h"

/** Rates of this machine with the threads that are set. */
typedef struct cvy_rates {
    double flops;         /**< flop/s of the backend's best matrix product in cache */
    double bandwidth_Bps; /**< bytes/s of a triad over arrays far beyond the caches */
} cvy_rates;

/** Measure both, the best of several runs, in under a second. Takes 200 MB meanwhile. */
cvy_status cvy_rates_measure(const cvy_backend_chain *backends, cvy_rates *rates_out);

/** The floor of one op: max(flop / flops, bytes / bandwidth); by Winograd's algorithm fewer flop. */
double cvy_floor_op_s(const cvy_op *op, const cvy_rates *rates);

/**
 * Sum over the steps of a schedule.
 *
 * @param[out] step_s_out seconds of each step; the caller's array, or NULL
 */
double cvy_floor_s(const cvy_schedule *schedule, const cvy_rates *rates, double *step_s_out);

/**
 * The floor by the best primitives: each convolution and dense product as fast as the fastest of its kernels over all
 * layouts, and by Winograd's algorithm unless the plan is direct only, measured by itself at the plan's batch; of every
 * other pass its bytes at the bandwidth. Reorders do not count. A lower bound for whatever composes these primitives.
 *
 * Measures for a while: about as long as a dozen iterations.
 *
 * @param[out] step_s_out seconds of each step of the training schedule; the caller's array, or NULL
 * @param[out] floor_out  their sum
 */
cvy_status cvy_floor_measure(const cvy_plan *plan, const cvy_rates *rates, double *step_s_out, double *floor_out);

#endif
