/* Convoy's own parts, as runtime/session puts them together, without files, loaders and measured layouts. */
#include "calibrate/net_trainer.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "runtime/executor.h"

struct cvy_net_trainer {
    cvy_net_recipe recipe;
    int inputs;
    cvy_model *model;
    cvy_plan *plan;
    cvy_executor *executor;
};

enum { LAYERS = CVY_NET_HIDDEN + 1 };

static int count_inputs(int inputs, int layer) { return layer == 0 ? inputs : CVY_NET_WIDTH; }
static int count_outputs(int layer) { return layer + 1 < LAYERS ? CVY_NET_WIDTH : 1; }

int cvy_net_count_numbers(int inputs)
{
    int numbers = 0;
    for (int i = 0; i < LAYERS; i++) {
        numbers += count_outputs(i) * (count_inputs(inputs, i) + 1);
    }
    return numbers;
}

/* ---- set-up ---- */

/* The last layer begins near zero: what a net says far from all samples is learnt from them, not left of chance. */
static cvy_status make_model(int inputs, cvy_model **model_out)
{
    int at = 0;
    CVY_TRY(cvy_model_create("predictor", &CVY_SHAPE(inputs), model_out));
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "fc%d", i);
        CVY_TRY(cvy_model_append(*model_out, "dense", name, &at,
                                 "outputs: %d, init: %s, init-std: 0.02, bias-init: zero", count_outputs(i),
                                 i + 1 < LAYERS ? "kaiming" : "normal"));
        if (i + 1 < LAYERS) {
            snprintf(name, sizeof name, "relu%d", i);
            CVY_TRY(cvy_model_append(*model_out, "relu", name, &at, " "));
        }
    }
    CVY_TRY(cvy_model_append(*model_out, "mean-squared-error", "loss", &at, " "));
    return cvy_model_finish(*model_out);
}

static cvy_status make_plan(cvy_net_trainer *trainer, int samples)
{
    cvy_plan_options options = {.batch = samples,
                                .dtype = CVY_F32,
                                .training = true,
                                .layout = CVY_LAYOUT_PLAIN,
                                .direct_only = true,
                                .block = 8,
                                .label_bytes = sizeof(float),
                                .data_slots = 1,
                                .optimizer = {.kind = CVY_OPTIMIZER_ADAMW, .no_decay_norms = true}};
    options.optimizer.params = (cvy_op_params_optimizer){.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8,
                                                         .weight_decay = trainer->recipe.weight_decay};
    CVY_TRY(cvy_backend_chain_find(NULL, &options.backends));
    return cvy_plan_create(trainer->model, &options, &trainer->plan);
}

cvy_status cvy_net_trainer_create(const cvy_net_recipe *recipe, int inputs, int samples,
                                  cvy_net_trainer **trainer_out)
{
    cvy_status status = CVY_ERR_MEMORY;
    cvy_net_trainer *trainer = cvy_calloc(1, sizeof *trainer);
    if (!trainer) {
        return status;
    }
    trainer->recipe = *recipe;
    trainer->inputs = inputs;
    CVY_TRY_GOTO(status, done, make_model(inputs, &trainer->model));
    CVY_TRY_GOTO(status, done, make_plan(trainer, samples));
    CVY_TRY_GOTO(status, done, cvy_executor_create(trainer->plan, NULL, &trainer->executor));
    *trainer_out = trainer;
    trainer = NULL;
done:
    cvy_net_trainer_destroy(&trainer);
    return status;
}

void cvy_net_trainer_destroy(cvy_net_trainer **trainer)
{
    if (*trainer) {
        cvy_executor_destroy(&(*trainer)->executor);
        cvy_plan_destroy(&(*trainer)->plan);
        cvy_model_destroy(&(*trainer)->model);
        cvy_free(*trainer);
        *trainer = NULL;
    }
}

/* ---- training ---- */

/* Numbers of a parameter, in plain order, whatever format it has. */
static cvy_status take_parameter(const cvy_net_trainer *trainer, int layer, const char *what, double *number_out)
{
    char name[32];
    snprintf(name, sizeof name, "fc%d.%s", layer, what);
    const cvy_state_tensor *held = cvy_state_find(cvy_executor_state(trainer->executor), name);
    CVY_REQUIRE(held, CVY_ERR_ARG, "the net has no %s", name);
    const cvy_tensor plain = {.shape = held->shape, .dtype = CVY_F64};
    return cvy_tensor_copy(&held->tensor, held->data, &plain, number_out);
}

static cvy_status take_numbers(const cvy_net_trainer *trainer, double *number_out)
{
    for (int i = 0; i < LAYERS; i++) {
        CVY_TRY(take_parameter(trainer, i, "weight", number_out));
        number_out += count_outputs(i) * count_inputs(trainer->inputs, i);
        CVY_TRY(take_parameter(trainer, i, "bias", number_out));
        number_out += count_outputs(i);
    }
    return CVY_OK;
}

cvy_status cvy_net_trainer_run(cvy_net_trainer *trainer, const float *x, const float *y, int count, uint64_t seed,
                               double *number_out)
{
    const cvy_net_recipe *recipe = &trainer->recipe;
    const cvy_executor_batch batch = {.x = x, .label = y, .samples = count};
    cvy_executor_result result;
    CVY_TRY(cvy_executor_initialise(trainer->executor, seed));
    for (int step = 0; step < recipe->steps; step++) {
        const cvy_run run = {.seed = seed,
                             .step = step,
                             .samples = count,
                             .loss_scale = 1.0 / count,
                             .learning_rate = recipe->learning_rate * 0.5 * (1.0 + cos(M_PI * step / recipe->steps)),
                             .update = step + 1};
        CVY_TRY(cvy_executor_run(trainer->executor, CVY_SCHEDULE_TRAIN, &batch, &run, &result));
    }
    return take_numbers(trainer, number_out);
}
