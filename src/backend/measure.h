/* Seconds of a kernel by the clock: what plans choose formats by, and what a floor is summed from. */
#ifndef CVY_BACKEND_MEASURE_H
#define CVY_BACKEND_MEASURE_H

#include "backend/backend.h"

/** How much to spend on a kernel. */
typedef struct cvy_measure_effort {
    int least_runs;   /**< after one that warms up */
    int most_runs;
    double enough_s;  /**< no further run is begun once the runs took so long together */
} cvy_measure_effort;

#define CVY_MEASURE_QUICK {.least_runs = 2, .most_runs = 8, .enough_s = 0.01}

/**
 * Measure one run of an op with the first backend of the chain that takes it: the fastest of some runs, since what
 * disturbs a run only ever makes it longer.
 *
 * Not collective. Takes the memory of the operands meanwhile, in one arena, zeroed.
 *
 * @param[out] seconds_out   of one run with the threads that are set
 * @retval CVY_ERR_UNSUPPORTED nobody takes the op
 * @retval CVY_ERR_MEMORY      the operands do not fit
 */
cvy_status cvy_kernel_measure(const cvy_backend_chain *chain, const cvy_op *op, const cvy_measure_effort *effort,
                              double *seconds_out);

#endif
