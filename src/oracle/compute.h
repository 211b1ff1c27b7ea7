/*
 * Seconds of kernels on a device of a machine. Sources, best first: a table of measured kernels that has the very op,
 * a predictor that was fitted to measured kernels, and the roofline (Williams, Waterman, Patterson, "Roofline: an
 * insightful visual performance model", 2009) with the device's measured shares of its peaks. Each answer says where it
 * comes from and how far it may be off. docs/machines.md has the formats of tables and predictors.
 */
#ifndef CVY_ORACLE_COMPUTE_H
#define CVY_ORACLE_COMPUTE_H

#include "base/text.h"
#include "machine/machine.h"

/** A device at one precision, prepared for pricing; it does not change, so threads may share it. */
typedef struct cvy_compute cvy_compute;

/** Where an estimate comes from. */
typedef enum cvy_compute_source {
    CVY_COMPUTE_TABLE,
    CVY_COMPUTE_PREDICTOR,
    CVY_COMPUTE_ROOFLINE
} cvy_compute_source;

typedef struct cvy_compute_estimate {
    double seconds;
    double error;              /**< relative: how far the seconds may be off, either way */
    cvy_compute_source source;
} cvy_compute_estimate;

/**
 * Prepare a device for pricing: read the tables and predictors that the machine file names, and index its rules of
 * efficiency by kernel and pass. Not collective.
 *
 * @param[in]  machine      borrowed for the call
 * @param[in]  precision    what products are made of. Plans are of f32; under FP16 and BF16 (mixed precision)
 *                          activations, their gradients and the weights in kernels have half of the bytes, optimizers
 *                          work on f32. Under FP64 all have twice the bytes.
 * @param[out] compute_out  released with cvy_compute_destroy(); untouched on failure
 * @retval CVY_ERR_INPUT    the machine gives no rate at this precision, or no memory bandwidth; or a table or predictor
 *                          is wrong: file, line, found, expected
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_compute_create(const cvy_machine *machine, cvy_precision precision, cvy_compute **compute_out);

/** Release; NULL is fine. */
void cvy_compute_destroy(cvy_compute **compute);

/**
 * Estimate the seconds of an op. Cannot fail.
 *
 * By the roofline max(flop / (peak share), bytes / (bandwidth share)) + launch, where shares are those of the first
 * rule of the machine that applies. By a table or predictor of a device with other peaks, the part of the time above
 * the launch scales as that roof does with all of the peaks (spec/scaling-model.md, 1.5).
 *
 * @param[in] op      sliced as it runs; of f32, or f64
 * @param[in] slices  at least 1: into how many equal slices the channel axis cut the layer that the op is a slice of. A
 *                    convolution's time above the launch is at least the device's `slice_floor` of the whole one's, by
 *                    the roofline; tables and predictors know slices by themselves
 * @param[in] distance_bytes that were touched since the op's operands were (cvy_schedule_distances()); tables and
 *                    predictors look at it. Nothing is nearer than the op's own bytes, which 0 stands for
 */
cvy_compute_estimate cvy_compute_estimate_op(const cvy_compute *compute, const cvy_op *op, double slices,
                                             double distance_bytes);

/**
 * The least that cvy_compute_estimate_op() says of an op at any distance: by a table the fastest of its rows, whose
 * measured times need not grow with the distance. Cannot fail.
 */
double cvy_compute_bound_op(const cvy_compute *compute, const cvy_op *op, double slices);

/** Whether distances change estimates: where tables or predictors are. Cannot fail. */
bool cvy_compute_sees_distances(const cvy_compute *compute);

/**
 * The kernel that an op is to rules of efficiency: its kind, or one of CVY_KERNEL_…, as convolutions run unlike each
 * other: cuDNN, for instance, takes Winograd's algorithm for 3x3 windows at stride 1.
 */
int cvy_op_kernel(const cvy_op *op);

/** Bytes that an op moves at the device's precision; cvy_op_bytes() at that of its tensors. */
double cvy_compute_op_bytes(const cvy_compute *compute, const cvy_op *op);

/** Bytes of an element of activations, their gradients and weights in kernels: 2, 4 or 8. */
double cvy_compute_element_bytes(const cvy_compute *compute);

/** What predictors may look at, and the most inputs that one has. */
enum { CVY_KERNEL_FEATURES = 29, CVY_PREDICTOR_MAX_INPUTS = 32 };

/** "n", "c", …, "is-3x3": the names in files. Cannot fail. @param[in] feature below CVY_KERNEL_FEATURES */
const char *cvy_kernel_feature_name(int feature);

/** Whether the time of a kernel may depend on a feature: of what goes element by element, shapes say nothing. */
bool cvy_kernel_feature_matters(int kernel, int feature);

/** Farther than this all distances are alike: beyond all caches. */
#define CVY_FARTHEST_BYTES 134217728.0

/**
 * The features of an op whose flop and bytes are given.
 *
 * @param[in]  distance_bytes touched since its operands were; see cvy_compute_estimate_op()
 * @param[out] feature_out    CVY_KERNEL_FEATURES numbers
 */
void cvy_kernel_get_features(const cvy_op *op, double flop, double bytes, double distance_bytes, double *feature_out);

/** A layer of a net: what comes out is weight x in + bias, and but for the last layer never below 0. */
typedef struct cvy_predictor_layer {
    int inputs, outputs;
    const double *weight; /**< outputs x inputs, row by row */
    const double *bias;   /**< one an output */
} cvy_predictor_layer;

/** What a time may be a sum of; see compute_costs.c. */
enum { CVY_KERNEL_COSTS = 14 };

/** "flop", "direct-flop", …, "far-call": the names in files. Cannot fail. @param[in] cost below CVY_KERNEL_COSTS */
const char *cvy_kernel_cost_name(int cost);

/** Units of a cost that an op has, by its features. Cannot fail. */
double cvy_kernel_count_cost(int cost, const double *feature, double flop, double bytes);

/** A sum of costs. */
typedef struct cvy_cost_sum {
    int costs;
    int cost[CVY_KERNEL_COSTS];
    double seconds[CVY_KERNEL_COSTS]; /**< of a unit of each */
} cvy_cost_sum;

/** Seconds of a sum, at least a nanosecond, which no clock tells from nothing. Cannot fail. */
double cvy_cost_sum_get(const cvy_cost_sum *sum, const double *feature, double flop, double bytes);

/**
 * How alike ln(time / base) of two kernels is by their inputs x and z: with d^2 = sum of ((x - z) / length)^2 the
 * covariance is spread^2 (1 + sqrt(3) d) exp(-sqrt(3) d) + slope^2 x.z, a Matern of 3/2 and a line; each measured time
 * has noise^2 of its own.
 */
typedef struct cvy_likeness {
    double length[CVY_PREDICTOR_MAX_INPUTS], spread, slope, noise;
} cvy_likeness;

/** Samples that a process has at most. */
enum { CVY_GAUSSIAN_MAX_SAMPLES = 512 };

/** A Gaussian process (Rasmussen and Williams, "Gaussian processes for machine learning", 2006, algorithm 2.1). */
typedef struct cvy_gaussian_spec {
    cvy_cost_sum base;
    cvy_likeness likeness;
    double middle;        /**< of the targets; what is said where nothing is known */
    int samples;
    const double *input;  /**< samples x inputs, (feature - mean) / deviation */
    const double *target; /**< ln(t / base) of each */
} cvy_gaussian_spec;

/** What a predictor's file says; docs/machines.md has the meaning of each. */
typedef struct cvy_predictor_spec {
    int kernel;      /**< as cvy_op_kernel() gives it */
    cvy_op_pass pass;
    cvy_precision precision;
    const char *source;
    double error, peak_flop_per_s, memory_Bps;
    int inputs;
    const int *input; /**< features */
    const double *mean, *deviation, *low, *high; /**< of each input */
    int nets, layers;                 /**< each net has as many layers */
    const cvy_predictor_layer *layer; /**< nets x layers */
    const cvy_gaussian_spec *gaussian;  /**< instead of nets; NULL: nets */
} cvy_predictor_spec;

/** The peaks of a device; of the one that something was measured on. */
typedef struct cvy_roof {
    double flop_per_s, Bps;
} cvy_roof;

/** What tells the times of one kernel and pass: an ensemble of multi-layer perceptrons, or a Gaussian process. */
typedef struct cvy_predictor cvy_predictor;

/** What a predictor says. */
typedef struct cvy_prediction {
    double seconds, error;
    cvy_roof roof;
    bool inside; /**< the op is like those that it was fitted to */
} cvy_prediction;

/**
 * Make a predictor that says what its file would say.
 *
 * @param[in]  spec           copied
 * @param[out] predictor_out  released with cvy_predictor_destroy()
 * @retval CVY_ERR_INFEASIBLE a process whose samples are too much alike for its noise
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_predictor_create(const cvy_predictor_spec *spec, cvy_predictor **predictor_out);

/** Release; NULL is fine. */
void cvy_predictor_destroy(cvy_predictor **predictor);

/** Predict an op of its kernel and pass by its features; threads may share a predictor. Cannot fail. */
cvy_prediction cvy_predictor_run(const cvy_predictor *predictor, const double *feature, double flop, double bytes);

/** Seconds alone, which takes about half the time of a Gaussian process. Cannot fail. */
double cvy_predictor_get_s(const cvy_predictor *predictor, const double *feature, double flop, double bytes);

/**
 * Write a predictor as YAML that cvy_compute_create() reads.
 *
 * @param[in,out] text  appended to; running out of memory is kept for cvy_text_take()
 */
void cvy_predictor_print(const cvy_predictor_spec *spec, cvy_text *text);

/** A measured kernel: a row of a table. */
typedef struct cvy_kernel_time {
    double seconds; /**< above 0: the median */
    double error;   /**< relative: how far measurements lie apart; a table says 10 where they are further */
    double distance_bytes; /**< touched since the operands were; 0: nothing but these */
} cvy_kernel_time;

/**
 * Begin a table of measured kernels. Rows follow; together they are a file that cvy_compute_create() reads.
 *
 * @param[in]     device  whose peak at @p precision and memory bandwidth stand in the table
 * @param[in,out] text    appended to; running out of memory is kept for cvy_text_take()
 */
void cvy_kernel_table_begin(const cvy_device *device, cvy_precision precision, cvy_text *text);

/** Append a row. Two ops that differ only in what no clock sees (epsilons, seeds, rates) are the same row. */
void cvy_kernel_table_add(const cvy_op *op, const cvy_kernel_time *time, cvy_text *text);

#endif
