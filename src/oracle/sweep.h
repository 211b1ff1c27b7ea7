/*
 * A scalability study: one strategy, or the best of several, over numbers of ranks, with parameters of the machine and
 * of the question varied, each by itself or all together (spec/scaling-model.md 2). Every point is an estimate as
 * cvy_oracle_estimate() makes it; nothing is interpolated. What rates do not change is planned once.
 */
#ifndef CVY_ORACLE_SWEEP_H
#define CVY_ORACLE_SWEEP_H

#include "oracle/estimate.h"
#include "oracle/sweep_parameter.h"

enum {
    CVY_SWEEP_MOST_RANKS = 64,      /**< numbers of ranks */
    CVY_SWEEP_MOST_VALUES = 64,     /**< of one parameter */
    CVY_SWEEP_MOST_SETTINGS = 1024, /**< of all parameters together */
    CVY_SWEEP_MOST_POINTS = 20000,
    CVY_SWEEP_MOST_STRATEGIES = 16, /**< that are given by name */
    CVY_SWEEP_TEXT = 32,
    CVY_SWEEP_SENTENCE = 320
};

/** A value of a parameter. */
typedef struct cvy_sweep_value {
    char text[CVY_SWEEP_TEXT]; /**< as people wrote it: "x1/4", "10 Gbit/s", "fp16" */
    double factor;             /**< of the machine's own figure, or of the batch; 0: `quantity` holds */
    double quantity;           /**< as cvy_varied_set() takes it; samples, as the batch is given; a cvy_precision */
} cvy_sweep_value;

typedef struct cvy_sweep_axis {
    cvy_varied parameter;
    int values;
    cvy_sweep_value value[CVY_SWEEP_MOST_VALUES];
} cvy_sweep_axis;

typedef struct cvy_sweep_options {
    cvy_oracle_options oracle;     /**< whose batch does not count: */
    int64_t batch;
    bool batch_per_rank;           /**< weak scaling; else the batch is that of all ranks: strong */
    int rank_counts;
    int64_t ranks[CVY_SWEEP_MOST_RANKS]; /**< ascending */
    int strategies;                /**< at least 1 */
    const char *strategy[CVY_SWEEP_MOST_STRATEGIES]; /**< as cvy_strategy_parse() reads them, none of them auto; the
                                                          first is the one that the study is of */
    bool search;                   /**< look for better ones, too */
    int axes;                      /**< 0: ranks alone */
    cvy_sweep_axis axis[CVY_VARIED_COUNT]; /**< each parameter at most once */
    bool cross;                    /**< all values with all others; else each parameter by itself */
} cvy_sweep_options;

/** What is varied: the values of all parameters. */
typedef struct cvy_sweep_setting {
    int axis;                             /**< of the options: the one that is varied; -1: none, or all together */
    int value[CVY_VARIED_COUNT];       /**< by axis of the options: index of its value; -1: the machine's own */
    double figure[CVY_VARIED_COUNT];   /**< by parameter, as cvy_varied_get() says; of batch, as it is given */
    cvy_precision precision;
} cvy_sweep_setting;

/** One setting on one number of ranks. */
typedef struct cvy_sweep_point {
    int64_t ranks, batch;          /**< samples of an iteration over all ranks */
    cvy_estimate asked;            /**< of the first strategy */
    cvy_estimate best;             /**< the fastest of all that fits; not feasible where nothing does */
    double ideal_images_per_s;     /**< of the first strategy, from the fewest ranks on which it is possible; 0: none */
    double efficiency;             /**< images/s by that */
    const char *limit;             /**< the largest limit of the first strategy (oracle/limits.h); "-": none */
} cvy_sweep_point;

/** What limits throughput most. */
typedef struct cvy_sweep_bottleneck {
    cvy_varied parameter;                   /**< CVY_VARIED_COUNT: none of them by much */
    int64_t ranks;                             /**< where; 0: on no number of ranks it is known */
    double elasticity;
    char sentence[CVY_SWEEP_SENTENCE];
} cvy_sweep_bottleneck;

typedef struct cvy_sweep {
    cvy_sweep_options options;
    int settings;
    cvy_sweep_setting *setting; /**< the first is the machine as it is, unless all are varied together */
    int points;
    cvy_sweep_point *point;     /**< settings x numbers of ranks, which change fastest */
    /**
     * By number of ranks and parameter: d ln(images/s) / d ln(parameter) of the first strategy at the machine's own
     * values, by central differences; below 0 of latency. NAN where it is not known: of memory and precision, and where
     * the strategy is not possible.
     */
    double elasticity[CVY_SWEEP_MOST_RANKS][CVY_VARIED_COUNT];
    cvy_sweep_bottleneck device, cluster; /**< on the fewest ranks, of the device; on the most, of everything */
    int64_t estimates;          /**< that were made, those for elasticities and of the search among them */
    double sweep_s;
} cvy_sweep;

/**
 * Study a model on a machine. Not collective.
 *
 * @param[in]  model      finished; borrowed for the call
 * @param[in]  machine    borrowed for the call
 * @param[in]  options    copied; strategies are borrowed for as long as the study lives
 * @param[out] sweep_out  released with cvy_sweep_destroy(); untouched on failure
 * @retval CVY_ERR_INPUT  ranks that the machine has not, a strategy that is none on any number of ranks, a parameter of
 *                        which the machine has no figure, a precision that it has not, too many points, less than one
 *                        sample
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_sweep_create(const cvy_model *model, const cvy_machine *machine, const cvy_sweep_options *options,
                            cvy_sweep **sweep_out);

/** Release; NULL is fine. */
void cvy_sweep_destroy(cvy_sweep **sweep);

/** The points of a setting, one for each number of ranks. Cannot fail. */
const cvy_sweep_point *cvy_sweep_get_points(const cvy_sweep *sweep, int setting);

/** The value of the axis that a setting varies; NULL where it varies none. Cannot fail. */
const cvy_sweep_value *cvy_sweep_get_value(const cvy_sweep *sweep, int setting);

#endif
