/*
 * What is fitted to measured kernels of one kind and pass, and how good each way of it is on shapes that it has not
 * seen: the roofline with one share of each peak, a power of the sizes (a line in logarithms), the nearest neighbours.
 * Errors are by cross-validation on whole shapes, so that no pass, and no repetition, of a shape helps to predict it.
 */
#ifndef CVY_CALIBRATE_FIT_H
#define CVY_CALIBRATE_FIT_H

#include "oracle/compute.h"

/** A measured kernel, as fits see it. */
typedef struct cvy_fit_sample {
    double flop, bytes, seconds;
    int shape; /**< samples of one shape are held out together */
    double feature[CVY_KERNEL_FEATURES];
} cvy_fit_sample;

/** The device that was measured. */
typedef struct cvy_fit_device {
    double peak_flop_per_s, memory_Bps, launch_s;
} cvy_fit_device;

/** Shares of the peaks. */
typedef struct cvy_fit_shares {
    double peak, bandwidth;
} cvy_fit_shares;

/** A line in logarithms: ln(t / roofline of the peaks) = bias + sum of weight (feature - mean) / deviation. */
typedef struct cvy_fit_line {
    int inputs;
    int input[CVY_KERNEL_FEATURES]; /**< features that differ at all */
    double weight[CVY_KERNEL_FEATURES], bias;
    double mean[CVY_KERNEL_FEATURES], deviation[CVY_KERNEL_FEATURES];
    double low[CVY_KERNEL_FEATURES], high[CVY_KERNEL_FEATURES];
} cvy_fit_line;

/** Ways to predict. */
typedef enum cvy_fit_way { CVY_FIT_ROOFLINE, CVY_FIT_LINE, CVY_FIT_NEIGHBOURS, CVY_FIT_WAYS } cvy_fit_way;

/** "roofline", "line", "neighbours". Cannot fail. */
const char *cvy_fit_way_name(cvy_fit_way way);

/** Errors on shapes that were held out. */
typedef struct cvy_fit_score {
    int samples;
    double mape;      /**< mean of |predicted - measured| / measured */
    double median;    /**< of the same */
    double high;      /**< 95th percentile of the same */
    double r2;        /**< of logarithms: 1 - squared errors by squared differences from the mean */
} cvy_fit_score;

/** All that is fitted to one kind and pass. */
typedef struct cvy_fit {
    int kernel; /**< as cvy_op_kernel() says */
    cvy_op_pass pass;
    int samples;
    cvy_fit_shares shares;
    cvy_fit_line line;
    cvy_fit_score score[CVY_FIT_WAYS];
    cvy_fit_way best; /**< of those that a machine file can hold: the roofline or the line */
} cvy_fit;

/** Fewer samples fit nothing; as many whole shapes make a cross-validation. */
enum { CVY_FIT_LEAST = 5 };

/** Make a sample of a measured op. */
void cvy_fit_make_sample(const cvy_op *op, const cvy_kernel_time *time, int shape, cvy_fit_sample *sample_out);

/**
 * Fit all ways to samples of one kind and pass, and score each.
 *
 * A line needs twice as many shapes as it has inputs; where there are fewer its score says nothing (0 samples).
 *
 * @param[in]  count    at least CVY_FIT_LEAST
 * @param[out] fit_out  but for kernel and pass, which the caller knows
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_fit_run(const cvy_fit_sample *sample, int count, const cvy_fit_device *device, cvy_fit *fit_out);

/** Fit the shares of the peaks that leave the least median error. @retval CVY_ERR_MEMORY */
cvy_status cvy_fit_shares_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device,
                               cvy_fit_shares *shares_out);

/** Seconds by shares of the peaks: max(flop / (peak share), bytes / (bandwidth share)) + launch. */
double cvy_fit_shares_estimate(const cvy_fit_shares *shares, const cvy_fit_device *device, double flop, double bytes);

/** Fit the line. @retval CVY_ERR_INFEASIBLE fewer samples than twice the inputs @retval CVY_ERR_MEMORY */
cvy_status cvy_fit_line_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device,
                             cvy_fit_line *line_out);

/** Seconds by the line. */
double cvy_fit_line_estimate(const cvy_fit_line *line, const cvy_fit_device *device, const cvy_fit_sample *sample);

#endif
