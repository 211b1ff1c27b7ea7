/*
 * A cheap lower bound of what a strategy costs: seconds and bytes, without a schedule. The steps of the model on one
 * rank are taken from a plan once; what a block of ranks makes of them (each at its sliced shape, by the prices of
 * oracle/compute.h) and what it sends between layers (by those of oracle/network.h) is worked out once a block, and
 * once for each size of a micro-batch; a strategy then takes a few sums.
 *
 * What is left out can only add: waiting of one stage for another but for the shortest way in and out, halos' share of
 * computation, copies, host time, recomputed exchanges. Balanced shares are largest on the first rank, whose they are.
 */
#ifndef CVY_ORACLE_BOUND_H
#define CVY_ORACLE_BOUND_H

#include "oracle/enumerate.h"
#include "oracle/estimate.h"

/** A model on a machine, prepared for bounds; of one thread. */
typedef struct cvy_bound cvy_bound;

/** What no schedule of a strategy can be under. */
typedef struct cvy_bounded {
    double iteration_s;
    double memory_bytes; /**< of a rank: weights, gradients, state, activations */
} cvy_bounded;

/**
 * Prepare. Not collective.
 *
 * @param[in]  model      finished; borrowed
 * @param[in]  machine    borrowed
 * @param[in]  options    copied
 * @param[out] bound_out  released with cvy_bound_destroy(); untouched on failure
 * @retval CVY_ERR_INPUT  the machine cannot price the precision
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_bound_create(const cvy_model *model, const cvy_machine *machine, const cvy_oracle_options *options,
                            cvy_bound **bound_out);

/** Release; NULL is fine. */
void cvy_bound_destroy(cvy_bound **bound);

/**
 * Take a block, for what is bounded next.
 *
 * @param[in] choices  one for each layer; borrowed for the call; NULL: as the block's cut says
 * @retval CVY_ERR_INFEASIBLE the block does not suit the model; the message names axis and layer
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_bound_enter(cvy_bound *bound, const cvy_block *block, const cvy_layer_choice *choices);

/**
 * Bound a strategy whose axes of depth to channel, and whose cut, are those of the block that was entered. Takes no
 * memory. Cannot fail: a strategy that cannot be has some bound; of more ranks than the machine has devices no
 * iteration ends, so its seconds are infinite.
 *
 * @param[in] strategy  each rank has a sample for each micro-batch
 */
cvy_bounded cvy_bound_estimate(cvy_bound *bound, const cvy_strategy *strategy, cvy_recompute recompute);

/**
 * Seconds of each layer in an iteration of a strategy of the block that was entered: kernels, what is sent before and
 * behind it, its update, its part of the exchange of gradients where that does not run beside.
 *
 * @param[out] layer_s_out  one for each layer
 */
void cvy_bound_estimate_layers(cvy_bound *bound, const cvy_strategy *strategy, double *layer_s_out);

/** What is recomputed: what is asked for, or all where the framework always does under a strategy. Cannot fail. */
cvy_recompute cvy_bound_find_recompute(const cvy_machine *machine, const cvy_strategy *strategy,
                                       cvy_recompute recompute);

/** The kind of a layer's op; CVY_OP_KIND_COUNT where it has none. Cannot fail. */
cvy_op_kind cvy_bound_get_kind(const cvy_bound *bound, int layer);

/** The model of a bound. Cannot fail. */
const cvy_model *cvy_bound_get_model(const cvy_bound *bound);

#endif
