/* Learning-rate schedules: functions of samples seen, so that batch size, ranks and resume do not change them. */
#ifndef CVY_RUNTIME_RATE_H
#define CVY_RUNTIME_RATE_H

#include <stdint.h>

#include "convoy/train.h"

/** A schedule with its lengths in samples. */
typedef struct cvy_rate {
    cvy_rate_kind kind;
    double base;
    double warmup_samples;   /**< linear from 0 to base */
    double total_samples;    /**< CVY_RATE_COSINE reaches 0 here */
    double step_samples;     /**< CVY_RATE_STEP: times gamma at each multiple */
    double gamma;
} cvy_rate;

/**
 * The rate for the batch that starts after @p samples samples and has @p batch of them. Warm-up is taken at the batch's
 * end, so that the first batch learns. A cosine then runs from the end of warm-up; steps are counted from the start.
 */
double cvy_rate_at(const cvy_rate *rate, double samples, double batch);

#endif
