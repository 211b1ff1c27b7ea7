/* What a machine can do at best, by the clock: the roof that shares of kernels are of. */
#ifndef CVY_CALIBRATE_PEAKS_H
#define CVY_CALIBRATE_PEAKS_H

#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"

/** A figure as it is written: four digits, since no clock knows more of a machine. */
static inline double cvy_round_figure(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    return strtod(text, NULL);
}

typedef struct cvy_peaks {
    double flop_per_s;     /**< of f32: the best product of matrices that stay in the cache */
    double memory_Bps;     /**< of a triad over arrays far beyond the caches */
    double launch_s;       /**< of a kernel that has next to nothing to do */
    double first_touch_Bps; /**< at which memory that was never used becomes usable */
} cvy_peaks;

/**
 * Measure, the best of several tries, in a few seconds, with the threads that are set. Not collective.
 *
 * @retval CVY_ERR_UNSUPPORTED no backend of the chain multiplies matrices
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_peaks_measure(const cvy_backend_chain *chain, cvy_peaks *peaks_out);

#endif
