/*
 * What is fitted to measured kernels of one kind and pass, and how good each way of it is on shapes that it has not
 * seen: the roofline with one share of each peak, a power of the sizes (a line in logarithms), the nearest neighbours,
 * an ensemble of multi-layer perceptrons, a Gaussian process on a sum of costs. Errors are by cross-validation on whole
 * shapes, so that no pass, and no repetition, of a shape helps to predict it.
 */
#ifndef CVY_CALIBRATE_FIT_H
#define CVY_CALIBRATE_FIT_H

#include "oracle/compute.h"

/** A measured kernel, as fits see it. */
typedef struct cvy_fit_sample {
    double flop, bytes, seconds;
    int kernel; /**< as cvy_op_kernel() says; CVY_ANY: all features may matter */
    int shape;  /**< samples of one shape are held out together */
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

/** Features that matter and differ among samples, and how they are made alike: (feature - mean) / deviation. */
typedef struct cvy_fit_inputs {
    int count;
    int feature[CVY_KERNEL_FEATURES];
    double mean[CVY_KERNEL_FEATURES], deviation[CVY_KERNEL_FEATURES];
    double low[CVY_KERNEL_FEATURES], high[CVY_KERNEL_FEATURES];
} cvy_fit_inputs;

/** A line in logarithms: ln(t / roofline of the peaks) = bias + sum of weight x input. */
typedef struct cvy_fit_line {
    cvy_fit_inputs inputs;
    double weight[CVY_KERNEL_FEATURES], bias;
} cvy_fit_line;

/** Nets of an ensemble, layers of each, and samples below which none is trained. */
enum { CVY_FIT_NETS = 4, CVY_FIT_NET_LAYERS = 3, CVY_FIT_NETS_LEAST = 24 };

/** An ensemble: the median of what its nets say of ln(t / roofline of the peaks). Starts from {0}. */
typedef struct cvy_fit_nets {
    cvy_fit_inputs inputs;
    int nets;
    double *number;           /**< owned: all weights and biases */
    cvy_predictor_layer layer[CVY_FIT_NETS * CVY_FIT_NET_LAYERS];
    cvy_predictor *predictor; /**< owned: the same, ready to be asked */
} cvy_fit_nets;

/** A Gaussian process of ln(t / a sum of costs). Starts from {0}. */
typedef struct cvy_fit_gaussian {
    cvy_fit_inputs inputs;
    double *input, *target;    /**< owned: what the process holds */
    cvy_gaussian_spec process;
    cvy_predictor *predictor;  /**< owned: the same, ready to be asked */
} cvy_fit_gaussian;

/** Ways to predict. */
typedef enum cvy_fit_way {
    CVY_FIT_ROOFLINE,
    CVY_FIT_LINE,
    CVY_FIT_NEIGHBOURS,
    CVY_FIT_MLP,
    CVY_FIT_GAUSSIAN,
    CVY_FIT_WAYS
} cvy_fit_way;

/** "roofline", "line", "neighbours", "mlp", "gaussian". Cannot fail. */
const char *cvy_fit_way_name(cvy_fit_way way);

/** Errors on shapes that were held out. */
typedef struct cvy_fit_score {
    int samples;
    double mape;      /**< mean of |predicted - measured| / measured */
    double median;    /**< of the same */
    double high;      /**< 95th percentile of the same */
    double r2;        /**< of logarithms: 1 - squared errors by squared differences from the mean */
} cvy_fit_score;

/** All that is fitted to one kind and pass. Starts from {0}. */
typedef struct cvy_fit {
    int kernel; /**< as cvy_op_kernel() says */
    cvy_op_pass pass;
    int samples;
    cvy_fit_shares shares;
    cvy_fit_line line;
    cvy_fit_nets nets; /**< none but where they are the best */
    cvy_fit_gaussian gaussian; /**< none but where it is the best */
    cvy_fit_score score[CVY_FIT_WAYS];
    cvy_fit_way best; /**< of those that a machine file can hold: all but the neighbours */
    cvy_fit_score layers, layers_by_roofline; /**< of the best, and of the roofline, on layers that it has not seen */
} cvy_fit;

/** Fewer samples fit nothing; as many whole shapes make a cross-validation. */
enum { CVY_FIT_LEAST = 5 };

/** Make a sample of a measured op. */
void cvy_fit_make_sample(const cvy_op *op, const cvy_kernel_time *time, int shape, cvy_fit_sample *sample_out);

/**
 * Fit all ways to samples of one kind and pass, and score each.
 *
 * A line needs as many samples as it has inputs, an ensemble CVY_FIT_NETS_LEAST, a process CVY_FIT_LEAST; where there
 * are fewer the score says nothing (0 samples).
 *
 * @param[in]  count    at least CVY_FIT_LEAST
 * @param[out] fit_out  but for kernel and pass, which the caller knows; released with cvy_fit_clear()
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_fit_run(const cvy_fit_sample *sample, int count, const cvy_fit_device *device, cvy_fit *fit_out);

/** Release and empty. */
void cvy_fit_clear(cvy_fit *fit);

/** Score what was taken, and the roofline, on layers of models that nothing was fitted to. @retval CVY_ERR_MEMORY */
cvy_status cvy_fit_judge(cvy_fit *fit, const cvy_fit_sample *layer, int count, const cvy_fit_device *device);

/** Seconds by the roofline of all of the peaks. */
double cvy_fit_roof_s(const cvy_fit_device *device, const cvy_fit_sample *sample);

/** What nets and lines are fitted to: ln(t / roofline). */
double cvy_fit_target(const cvy_fit_device *device, const cvy_fit_sample *sample);

/** Find the features that differ and may matter, their means and deviations. Cannot fail. */
void cvy_fit_inputs_find(const cvy_fit_sample *sample, int count, cvy_fit_inputs *inputs_out);

/**
 * The inputs of a sample; a feature beyond all that was seen counts as the last that was.
 *
 * @param[out] value_out as many as there are inputs
 */
void cvy_fit_inputs_get(const cvy_fit_inputs *inputs, const cvy_fit_sample *sample, double *value_out);

/** Fit the shares of the peaks that leave the least median error. @retval CVY_ERR_MEMORY */
cvy_status cvy_fit_shares_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device,
                               cvy_fit_shares *shares_out);

/** Seconds by shares of the peaks: max(flop / (peak share), bytes / (bandwidth share)) + launch. */
double cvy_fit_shares_estimate(const cvy_fit_shares *shares, const cvy_fit_device *device, double flop, double bytes);

/** Fit the line. @retval CVY_ERR_INFEASIBLE fewer samples than inputs @retval CVY_ERR_MEMORY */
cvy_status cvy_fit_line_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device,
                             cvy_fit_line *line_out);

/** Seconds by the line. */
double cvy_fit_line_estimate(const cvy_fit_line *line, const cvy_fit_device *device, const cvy_fit_sample *sample);

/** Seconds by the geometric mean of the nearest samples, beside their rooflines. @param[in] count at least 1 */
double cvy_fit_neighbours_estimate(const cvy_fit_sample *known, int count, const cvy_fit_device *device,
                                   const cvy_fit_sample *sample);

/**
 * Train an ensemble by Convoy's own trainer: nets that begin unlike each other see the same samples.
 *
 * The same samples give the same nets. Takes the OpenMP threads that are set.
 *
 * @param[in]  nets      1 to CVY_FIT_NETS
 * @param[out] nets_out  released with cvy_fit_nets_clear()
 * @retval CVY_ERR_INFEASIBLE fewer than CVY_FIT_NETS_LEAST samples, or all are alike
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_fit_nets_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device, int nets,
                             cvy_fit_nets *nets_out);

/** What an ensemble says of a sample: seconds, and how far its nets lie apart as error. */
cvy_prediction cvy_fit_nets_estimate(const cvy_fit_nets *nets, const cvy_fit_sample *sample);

/** What the file of a predictor says of an ensemble, but for kernel, pass, source and error. Borrows from @p nets. */
cvy_predictor_spec cvy_fit_nets_spec(const cvy_fit_nets *nets, const cvy_fit_device *device);

/** Release and empty. */
void cvy_fit_nets_clear(cvy_fit_nets *nets);

/**
 * Find the ends of the whiskers of a box plot (Tukey): numbers beyond are far from the others.
 *
 * @param[in,out] number come out in order
 * @param[in]     count  at least 1
 */
void cvy_fit_find_whiskers(double *number, int count, double *low_out, double *high_out);

/** Fit a sum of costs: seconds of a unit of each that has a part in it. @retval CVY_ERR_MEMORY */
cvy_status cvy_fit_costs_find(const cvy_fit_sample *sample, int count, cvy_cost_sum *sum_out);

/**
 * Fit a sum of costs and a process to what it leaves. The same samples give the same process.
 *
 * @param[out] gaussian_out  released with cvy_fit_gaussian_clear()
 * @retval CVY_ERR_INFEASIBLE fewer than CVY_FIT_LEAST samples, or all are alike
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_fit_gaussian_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device,
                                 cvy_fit_gaussian *gaussian_out);

/** What a process says of a sample: seconds, and as error by how much less than usually it knows there. */
cvy_prediction cvy_fit_gaussian_estimate(const cvy_fit_gaussian *gaussian, const cvy_fit_sample *sample);

/** What the file of a predictor says of a process, but for kernel, pass, source and error. Borrows from @p gaussian. */
cvy_predictor_spec cvy_fit_gaussian_spec(const cvy_fit_gaussian *gaussian, const cvy_fit_device *device);

/** Release and empty. */
void cvy_fit_gaussian_clear(cvy_fit_gaussian *gaussian);

#endif
