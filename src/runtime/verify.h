/*
 * What the files of the verification share: verify_run.c trains and keeps what is to be compared, verify_parts.c says
 * which samples the serial run takes together, verify_compare.c compares, verify.c has the two runs made.
 */
#ifndef CVY_RUNTIME_VERIFY_H
#define CVY_RUNTIME_VERIFY_H

#include "convoy/verify.h"
#include "plan/plan.h"

/** How a run divided its batches into micro-batches. */
typedef struct cvy_verify_parts {
    int64_t batch, ranks; /**< samples of all ranks; ranks along the sample axis */
    int micro_batches;
    bool mixed;           /**< batch norms see a part of each rank's share at once, not samples in a row */
} cvy_verify_parts;

/**
 * Find them of a plan. Not collective; the same on all ranks.
 *
 * @retval CVY_ERR_INPUT they are mixed, and one rank alone cannot have its parts so: they differ in size, or a layer
 *                       drops by a sample's place in its batch; the sizes or the layer are named
 */
cvy_status cvy_verify_parts_find(const cvy_plan *plan, cvy_verify_parts *parts_out);

/**
 * The order of a batch in which one rank alone has mixed parts.
 *
 * @param[out] order `batch` places: which sample of the batch comes there
 */
void cvy_verify_parts_order(const cvy_verify_parts *parts, int64_t *order);

/** What is done to the batches of one rank alone, before it trains on them. */
typedef struct cvy_verify_input {
    int shake;               /**< not 0: inputs are moved by one unit in the last place, each number another way */
    cvy_verify_parts parts;  /**< mixed: samples are put in their order */
} cvy_verify_input;

/** What is left of a run, on its first rank: whole tensors in plain order, one for each parameter of the model. */
typedef struct cvy_verify_record {
    cvy_dtype dtype;
    int parameters;
    void **gradient;         /**< of the first step; NULL: not trained */
    void **weight;           /**< after the last */
    double *loss;            /**< of each step; the first rank's and all others' */
    cvy_verify_parts parts;
    bool replicas_identical;
    char why_not[256];       /**< what of the replicas differs, in the words of the state */
} cvy_verify_record;

/**
 * Train, and keep what is left. Collective over `options->comm`.
 *
 * Gradients are taken from a training of their own, of one step with momentum, of which the velocity is the gradient as
 * it was summed over the ranks, wherever its pieces lie; weights from one with the options' own optimizer.
 *
 * @param[in]  input      NULL: nothing is done to batches
 * @param[out] record_out released with cvy_verify_record_clear(), on failure too
 */
cvy_status cvy_verify_run(const cvy_model *model, const cvy_train_options *options, int64_t steps,
                          const cvy_verify_input *input, const cvy_train_observer *observer,
                          cvy_verify_record *record_out);

void cvy_verify_record_clear(cvy_verify_record *record);

/** The serial run's own noise: L2 distances to runs that were shaken, the largest so far. */
typedef struct cvy_verify_noise {
    int shakes;
    double *gradient, *weight; /**< of each parameter */
    double *loss;              /**< of each step */
} cvy_verify_noise;

/** Make room for the noise of a model, all 0. @param[out] noise_out released with cvy_verify_noise_clear() */
cvy_status cvy_verify_noise_create(const cvy_model *model, int64_t steps, cvy_verify_noise *noise_out);

/** Raise the noise by one more run that was shaken. */
void cvy_verify_add_noise(const cvy_model *model, const cvy_verify_record *serial, const cvy_verify_record *shaken,
                          int64_t steps, cvy_verify_noise *noise);

void cvy_verify_noise_clear(cvy_verify_noise *noise);

/**
 * Compare. Not collective.
 *
 * @param[in]     noise        of the serial run; of a run in double it does not count
 * @param[in,out] verification figures, rows and verdict are set anew; `steps` and precision are there
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_verify_compare(const cvy_model *model, const cvy_verify_record *tried, const cvy_verify_record *serial,
                              const cvy_verify_noise *noise, cvy_verification *verification);

/** As cvy_verify(), with the options of both runs said: tests set them against each other. */
cvy_status cvy_verify_pair(const cvy_model *model, const cvy_train_options *tried, const cvy_train_options *serial,
                           const cvy_verify_options *effort, const cvy_train_observer *observer,
                           cvy_verification *verification_out);

#endif
