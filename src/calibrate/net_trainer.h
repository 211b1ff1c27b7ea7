/*
 * Small nets trained on numbers in memory: a model of dense layers with relus between them and the squared error, its
 * plan of one batch that is all of the samples, and the executor that runs it, as any training has them.
 */
#ifndef CVY_CALIBRATE_NET_TRAINER_H
#define CVY_CALIBRATE_NET_TRAINER_H

#include <stdint.h>

#include "convoy/status.h"

typedef struct cvy_net_trainer cvy_net_trainer;

/** Hidden layers of every net, and their outputs. */
enum { CVY_NET_HIDDEN = 2, CVY_NET_WIDTH = 32 };

/** How a net is trained: AdamW on whole batches, the rate falling as half a cosine. */
typedef struct cvy_net_recipe {
    int steps;
    double learning_rate, weight_decay;
} cvy_net_recipe;

/**
 * Prepare trainings of nets of so many inputs on at most so many samples.
 *
 * @param[out] trainer_out released with cvy_net_trainer_destroy()
 * @retval CVY_ERR_MEMORY, CVY_ERR_INFEASIBLE
 */
cvy_status cvy_net_trainer_create(const cvy_net_recipe *recipe, int inputs, int samples,
                                  cvy_net_trainer **trainer_out);

/** Release and set to NULL; NULL is fine. */
void cvy_net_trainer_destroy(cvy_net_trainer **trainer);

/** Numbers of a net: of each layer outputs x inputs weights, row by row, and behind them its biases. */
int cvy_net_count_numbers(int inputs);

/**
 * Train a net from the beginning that a seed gives it.
 *
 * @param[in]  x          count x inputs
 * @param[in]  y          what it should say
 * @param[in]  count      at most the trainer's samples
 * @param[out] number_out cvy_net_count_numbers()
 * @retval CVY_ERR_DIVERGED the loss is not finite
 */
cvy_status cvy_net_trainer_run(cvy_net_trainer *trainer, const float *x, const float *y, int count, uint64_t seed,
                               double *number_out);

#endif
