/* Convoy: a strategy held against the serial run, on the ranks that it is meant for. */
#ifndef CONVOY_VERIFY_H
#define CONVOY_VERIFY_H

#include "convoy/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How much to compare. Start from CVY_VERIFY_OPTIONS_INIT. */
typedef struct cvy_verify_options {
    int64_t steps; /**< after which weights are compared; gradients are those of the first */
    int shakes;    /**< in single precision: how often the serial run is repeated with inputs moved by one unit in the
                        last place, to find its own noise; so often whatever the strategy's run came to */
} cvy_verify_options;

#define CVY_VERIFY_OPTIONS_INIT {.steps = 5, .shakes = 8}

/** One layer's tensors: the largest relative difference of each kind, by the tensor's largest element. */
typedef struct cvy_layer_difference {
    char layer[128];
    double gradient_relative, weight_relative; /**< weights: running statistics, too */
    double share;                              /**< of what is allowed, the worst of its tensors: above 1 fails */
} cvy_layer_difference;

/** What was found; of one rank and all others the same, but the rows are the first rank's. */
typedef struct cvy_verification {
    char strategy[256];
    int ranks;
    int64_t steps, batch;
    bool double_precision;
    double loss_relative;     /**< of the losses of all steps, the largest */
    double gradient_relative; /**< of all tensors, the largest */
    double weight_relative;
    double noise;             /**< of the serial run by itself: L2 difference of a tensor by its norm, the largest; 0 in
                                   double */
    int shakes;               /**< runs that it is the largest of */
    bool weak;                /**< the noise is above a thousandth: what is off by a hundredth of a tensor may pass, and
                                   that it passes proves little; double precision has no noise */
    bool replicas_identical;  /**< what several ranks hold of the weights is equal, bit for bit */
    bool pass;
    char why[512];            /**< the first cause of a failure; empty where it passes */
    int layers;
    cvy_layer_difference *layer; /**< those with weights, worst first */
} cvy_verification;

/**
 * Train some steps by a strategy on all ranks, and the same steps on one rank alone, from the same weights and data,
 * and compare losses, gradients of the first step, and weights after the last.
 *
 * Collective over `options->comm`; the serial run is the first rank's, while the others wait.
 *
 * In double precision (backend ref) gradients may differ by 1e-10, weights and losses by 1e-9, of a tensor's largest
 * element. In single precision the L2 difference of a tensor may be ten times the serial run's own noise, or 1e-5 of
 * its norm; the noise is the largest distance of the serial run to `shakes` runs with moved inputs, a number that is
 * fixed beforehand. A bias is measured by no less than a thousandth of its layer's weights: where a norm takes it away
 * again, its gradient is 0, and only rounding would be compared. So is a running mean, by the root of its variance, and
 * a norm's weight by no less than its bias.
 *
 * Where batch norms share statistics along the sample axis and see micro-batches, the serial run finds the samples of
 * each batch in the order that puts the same ones together.
 *
 * @param[in]  model            finished, borrowed
 * @param[in]  options          as of cvy_train(); data NULL: random. Where no `sync_norms` are said, batch norms share
 *                              their statistics over all ranks: else a strategy is another training. Files, schedules
 *                              of the rate, caches and what ends a training do not count
 * @param[in]  effort           borrowed
 * @param[in]  observer         setup alone is called; may be NULL
 * @param[out] verification_out released with cvy_verification_clear(), on failure too. That the two differ is no
 *                              failure: `pass` says so
 * @retval CVY_ERR_INPUT        fewer training samples than the steps take, or micro-batches that one rank cannot have;
 *                              otherwise as cvy_train()
 */
cvy_status cvy_verify(const cvy_model *model, const cvy_train_options *options, const cvy_verify_options *effort,
                      const cvy_train_observer *observer, cvy_verification *verification_out);

/** Release what a verification owns, and empty it. Cannot fail. */
void cvy_verification_clear(cvy_verification *verification);

#ifdef __cplusplus
}
#endif
#endif
