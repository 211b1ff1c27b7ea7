/*
 * The search for the best way to train: every strategy on a number of ranks gets a cheap bound, the promising ones are
 * simulated, and what is left is ranked. Nothing is dropped in silence: what cannot be is listed with its reason.
 */
#ifndef CVY_ORACLE_SEARCH_H
#define CVY_ORACLE_SEARCH_H

#include "oracle/estimate.h"

/** What is best. */
typedef enum cvy_objective {
    CVY_OBJECTIVE_TIME,   /**< fewest seconds an iteration */
    CVY_OBJECTIVE_MEMORY, /**< fewest bytes on a device */
    CVY_OBJECTIVE_COST,   /**< least price of an iteration: device-hours */
    CVY_OBJECTIVE_COUNT
} cvy_objective;

/** "time", "memory", "cost"; then NULL. */
extern const char *const cvy_objective_names[CVY_OBJECTIVE_COUNT + 1];

typedef struct cvy_search_options {
    int64_t ranks;
    cvy_objective objective;
    int64_t max_memory_bytes; /**< of a device; 0: the device's memory */
    int simulations;          /**< at most so many strategies are simulated, but for one of each kind; 0: a default.
                                   One that takes the batch in parts counts as often as it has parts */
    bool mix;                 /**< look for a mix of cuts layer by layer, too */
    bool fixed_recompute;     /**< only the oracle's recomputation is tried */
} cvy_search_options;

/** One strategy that was looked at. */
typedef struct cvy_candidate {
    cvy_estimate estimate;
    double bound_s;             /**< no more than its iteration, by the cheap bound */
    bool fits;                  /**< feasible, and in the memory that was asked for */
    bool front;                 /**< it fits, and no other one that fits is better in time, memory and cost at once */
    cvy_layer_choice *choices;  /**< of a mix, one for each layer, owned by the search; NULL otherwise */
} cvy_candidate;

/** What was found. */
typedef struct cvy_search {
    cvy_search_options options; /**< what was asked */
    int count;
    cvy_candidate *candidate;   /**< simulated ones, best first; those over memory behind; infeasible ones last */
    int pick;                   /**< index of the pick: never worse than data parallelism by its own estimate, and
                                     data parallelism itself where the best is inside its error bar; -1: nothing fits */
    int data;                   /**< index of data parallelism, which is always looked at; -1: not feasible, see why */
    int64_t configurations;     /**< that were bounded */
    int64_t impossible;         /**< blocks of ranks that cannot cut the model; of each kind one is listed */
    int64_t left_out;           /**< blocks of ranks, the largest, that were not looked at */
    int simulations;            /**< strategies that were estimated */
    double search_s;
} cvy_search;

/**
 * Search all strategies of so many ranks.
 *
 * @param[out] search_out  released with cvy_search_destroy(); untouched on failure
 * @retval CVY_ERR_INPUT      more ranks than the machine has devices
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_search_create(cvy_oracle *oracle, const cvy_search_options *options, cvy_search **search_out);

/** Release; NULL is fine. */
void cvy_search_destroy(cvy_search **search);

#endif
