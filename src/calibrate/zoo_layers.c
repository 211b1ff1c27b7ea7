/* A few ops of many plans rather than many of a few: layers of one model are like each other. */
#include "calibrate/zoo_layers.h"

#include <math.h>

#include "base/memory.h"
#include "oracle/distance.h"
#include "plan/plan.h"

enum { OPS_OF_PLAN = 16, MOST_BATCH = 64, OWNER = UINT16_MAX };

cvy_status cvy_zoo_layers_add(cvy_zoo_layers *layers, const cvy_op *op, double distance_bytes)
{
    CVY_TRY(cvy_array_reserve(&layers->op, layers->ops, &layers->capacity, sizeof *layers->op));
    CVY_TRY(cvy_array_reserve(&layers->distance, layers->ops, &layers->distances, sizeof *layers->distance));
    layers->op[layers->ops] = *op;
    layers->distance[layers->ops++] = distance_bytes;
    return CVY_OK;
}

void cvy_zoo_layers_clear(cvy_zoo_layers *layers)
{
    cvy_free(layers->op);
    cvy_free(layers->distance);
    *layers = (cvy_zoo_layers){0};
}

static bool keeps_limits(const cvy_op *op, const cvy_shape_limits *limits)
{
    double most_bytes = fmax(cvy_op_bytes(op), cvy_shape_op_memory(op));
    return most_bytes <= limits->most_bytes && cvy_op_flop(op) <= limits->most_flop;
}

/* Some of a schedule's ops. */
static cvy_status draw_ops(const cvy_schedule *schedule, const cvy_shape_limits *limits, int count, cvy_dice *dice,
                           cvy_zoo_layers *layers)
{
    double *distance = cvy_calloc((size_t)schedule->steps + 1, sizeof *distance);
    cvy_status status = distance ? cvy_schedule_distances(schedule, distance) : CVY_ERR_MEMORY;
    for (int i = 0; i < count && schedule->steps > 0 && status == CVY_OK; i++) {
        int64_t step = cvy_dice_even(dice, 0, schedule->steps - 1);
        int op = schedule->step[step].op;
        if (op >= 0 && keeps_limits(&schedule->op[op], limits)) {
            status = cvy_zoo_layers_add(layers, &schedule->op[op], distance[step]);
        }
    }
    cvy_free(distance);
    return status;
}

static cvy_status draw_model(const char *name, const cvy_shape_limits *limits, int count, cvy_dice *dice,
                             cvy_zoo_layers *layers)
{
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    cvy_plan_options options = {.batch = cvy_dice_log(dice, 1, MOST_BATCH), .dtype = CVY_F32, .training = true,
                                .train_only = true, .block = limits->block};
    cvy_status status;
    (void)cvy_optimizer_find("momentum", 0.9, &options.optimizer);
    CVY_TRY_GOTO(status, done, cvy_model_open(name, &model));
    CVY_TRY_GOTO(status, done, cvy_plan_create(model, &options, &plan));
    status = draw_ops(&plan->schedule[CVY_SCHEDULE_TRAIN], limits, count, dice, layers);
done:
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
    return status;
}

static int count_models(void)
{
    int models = 0;
    while (cvy_zoo_get(models)) {
        models++;
    }
    return models;
}

cvy_status cvy_zoo_layers_draw(uint64_t seed, const cvy_shape_limits *limits, int count, cvy_zoo_layers *layers)
{
    int models = count_models(), most = layers->ops + count;
    for (uint32_t i = 0; layers->ops < most && i < (uint32_t)count; i++) {
        cvy_dice dice = {.seed = seed, .owner = OWNER, .index = i};
        int left = most - layers->ops, ops = left < OPS_OF_PLAN ? left : OPS_OF_PLAN;
        CVY_TRY(draw_model(cvy_zoo_get((int)i % models)->name, limits, ops, &dice, layers));
    }
    return CVY_OK;
}
