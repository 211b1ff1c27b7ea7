/*
 * Model files: any bytes are a model or a refusal. A model that is read has figures and a hash, and is planned by rule
 * for a batch that its bytes choose, where it is small.
 */
#include <math.h>

#include "fuzz/fuzz.h"
#include "plan/plan.h"

enum { MOST_LAYERS = 64 };

static void plan_model(const cvy_model *model, uint64_t choice)
{
    static const int64_t batch[] = {1, 3, 64, INT64_C(1) << 24, INT64_MAX};
    enum { BATCHES = sizeof batch / sizeof batch[0] };
    cvy_plan *plan = NULL;
    const cvy_plan_options options = {.batch = batch[choice % BATCHES],
                                      .tail_batch = choice & 16 && choice % BATCHES ? 2 : 0,
                                      .dtype = choice & 32 ? CVY_F64 : CVY_F32,
                                      .micro_batches = choice % BATCHES ? (int)(choice >> 12 & 3) : 1,
                                      .recompute = (cvy_recompute)(choice >> 14 & 3) % (CVY_RECOMPUTE_ALL + 1),
                                      .training = choice & 64,
                                      .optimizer = {.kind = choice & 128 ? CVY_OPTIMIZER_LAMB : CVY_OPTIMIZER_SGD,
                                                    .params = {.momentum = 0.9}},
                                      .average = choice & 256 ? 0.9 : 0,
                                      .layout = (cvy_layout_choice)(choice >> 9 & 3),
                                      .block = choice & 2048 ? 16 : 8,
                                      .data_slots = 2,
                                      .label_bytes = 4};
    cvy_status status = cvy_plan_create(model, &options, &plan);
    FUZZ_REQUIRE(status == CVY_OK || status == CVY_ERR_INFEASIBLE || status == CVY_ERR_MEMORY);
    FUZZ_REQUIRE((status == CVY_OK) == (plan != NULL));
    if (plan) {
        FUZZ_REQUIRE(plan->persistent_bytes >= 0 && plan->transient_bytes >= 0);
    }
    cvy_plan_destroy(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_model *model = NULL;
    cvy_status status = cvy_model_load_yaml(fuzz_put("model.yaml", data, size), &model);
    if (status != CVY_OK) {
        FUZZ_REQUIRE(!model);
        fuzz_check_refusal(status, CVY_ERR_INPUT);
        return 0;
    }
    FUZZ_REQUIRE(cvy_model_parameters(model) >= 0);
    FUZZ_REQUIRE(isfinite(cvy_model_forward_flop(model)) && cvy_model_forward_flop(model) >= 0);
    if (model->layers <= MOST_LAYERS) {
        plan_model(model, cvy_model_hash(model));
    }
    cvy_model_destroy(&model);
    return 0;
}
