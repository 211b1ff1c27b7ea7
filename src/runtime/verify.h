/*
 * What the files of the verification share: verify_run.c trains and keeps what is to be compared, verify_compare.c
 * compares, verify.c has the two runs made.
 */
#ifndef CVY_RUNTIME_VERIFY_H
#define CVY_RUNTIME_VERIFY_H

#include "convoy/verify.h"
#include "model/model.h"
#include "tensor/tensor.h"

/** What is left of a run, on its first rank: whole tensors in plain order, one for each parameter of the model. */
typedef struct cvy_verify_record {
    cvy_dtype dtype;
    int parameters;
    void **gradient;         /**< of the first step; NULL: not trained */
    void **weight;           /**< after the last */
    double *loss;            /**< of each step; the first rank's and all others' */
    int micro_batches;       /**< parts that a batch went through in */
    bool replicas_identical;
    char why_not[256];       /**< what of the replicas differs, in the words of the state */
} cvy_verify_record;

/**
 * Train, and keep what is left. Collective over `options->comm`.
 *
 * Gradients are taken from a training of their own, of one step with momentum, of which the velocity is the gradient as
 * it was summed over the ranks, wherever its pieces lie; weights from one with the options' own optimizer.
 *
 * @param[in]  shake      not 0: inputs are moved by one unit in the last place, each number another way
 * @param[out] record_out released with cvy_verify_record_clear(), on failure too
 */
cvy_status cvy_verify_run(const cvy_model *model, const cvy_train_options *options, int64_t steps, int shake,
                          const cvy_train_observer *observer, cvy_verify_record *record_out);

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
