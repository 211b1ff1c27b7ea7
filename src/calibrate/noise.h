/*
 * What else runs on a machine while it is measured. A fixed piece of work is timed again and again: a second process on
 * its cores shows as probes that take longer than the others, a clock rate that goes up or down as a drift of all.
 */
#ifndef CVY_CALIBRATE_NOISE_H
#define CVY_CALIBRATE_NOISE_H

#include <stdbool.h>

#include "base/error.h"

/** Probes so far; starts from {0}. */
typedef struct cvy_noise {
    double *seconds; /**< in the order of time */
    int probes, capacity;
    double usual_s;  /**< their median, taken anew as they double */
    int usual_of;    /**< how many it was taken over */
} cvy_noise;

/** What probes say of a machine. */
typedef struct cvy_noise_report {
    int probes;
    double disturbed; /**< share of the probes that took over a tenth longer than their median */
    double drift;     /**< how much longer the last quarter took than the first, by medians; below 0: less */
    double spread;    /**< distance of the quartiles by the median */
} cvy_noise_report;

/** Take a probe in. @retval CVY_ERR_MEMORY */
cvy_status cvy_noise_add(cvy_noise *noise, double seconds);

/** Whether a probe says that what was measured beside it is not to be believed; never before there are a few. */
bool cvy_noise_disturbs(const cvy_noise *noise, double seconds);

/** Sum up; of fewer than 8 probes nothing but their count is said. @retval CVY_ERR_MEMORY */
cvy_status cvy_noise_sum_up(const cvy_noise *noise, cvy_noise_report *report_out);

/** Room for words. */
enum { CVY_NOISE_TEXT = 240 };

/**
 * Say in a line what disturbed: drift from 5 % on, disturbed probes from a tenth of them on. Empty where nothing did.
 *
 * @return @p text
 */
const char *cvy_noise_print(const cvy_noise_report *report, char *text);

/** Release and empty. */
void cvy_noise_clear(cvy_noise *noise);

#endif
