/* Learning-rate schedules: functions of samples seen, so that batch size, ranks and resume do not change them. */
#ifndef CVY_RUNTIME_RATE_H
#define CVY_RUNTIME_RATE_H

#include <stdint.h>

#include "convoy/train.h"

enum { CVY_RATE_MILESTONES = 64 };

/** A schedule with its lengths in samples. */
typedef struct cvy_rate {
    cvy_rate_kind kind;
    double base;
    double warmup_samples;   /**< linear from 0 to base */
    double total_samples;    /**< CVY_RATE_COSINE reaches 0 here */
    double step_samples;     /**< CVY_RATE_STEP: times gamma at each multiple; CVY_RATE_EXPONENTIAL: over each */
    double gamma;
    double power;            /**< CVY_RATE_POLYNOMIAL */
    int milestones;
    double milestone_samples[CVY_RATE_MILESTONES]; /**< CVY_RATE_MULTISTEP: times gamma at each, rising */
} cvy_rate;

/** See whether the options of a schedule make sense. @retval CVY_ERR_INPUT one does not; the message names it */
cvy_status cvy_rate_check(const cvy_train_options *options);

/**
 * Make the schedule that checked options ask for.
 *
 * @param[in]  epoch_samples of one epoch
 * @param[in]  total_samples of the whole training
 * @param[out] rate_out      not to be used after a failure
 * @retval CVY_ERR_INPUT     milestones that are none
 */
cvy_status cvy_rate_setup(const cvy_train_options *options, double epoch_samples, double total_samples,
                          cvy_rate *rate_out);

/**
 * Read milestones.
 *
 * @param[in] text          epochs, above 0, rising, with commas between them; may be NULL: none
 * @param[in] epoch_samples of one epoch
 * @retval CVY_ERR_INPUT    something else; the message shows it
 */
cvy_status cvy_rate_read_milestones(const char *text, double epoch_samples, cvy_rate *rate);

/**
 * The rate for the batch that starts after @p samples samples and has @p batch of them. Warm-up is taken at the batch's
 * end, so that the first batch learns. A cosine then runs from the end of warm-up; steps are counted from the start.
 */
double cvy_rate_at(const cvy_rate *rate, double samples, double batch);

#endif
