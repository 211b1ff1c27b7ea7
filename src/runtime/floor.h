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

/** Sum over the steps of max(flop / flops, bytes / bandwidth). */
double cvy_floor_s(const cvy_schedule *schedule, const cvy_rates *rates);

#endif
