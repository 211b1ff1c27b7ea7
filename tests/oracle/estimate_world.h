/* Oracles of models on the machine of network_machine.h, with a device of round figures, for arithmetic by hand. */
#ifndef CVY_TESTS_ORACLE_ESTIMATE_WORLD_H
#define CVY_TESTS_ORACLE_ESTIMATE_WORLD_H

#include <math.h>
#include <string.h>

#include "convoy/model.h"
#include "network_machine.h"
#include "oracle/estimate.h"

/* 1 TFLOP/s in f32, 8 in f16, 100 GB/s, 5 us a launch, 16 GB; nothing overlaps, nothing is fused, nothing shared. */
static inline cvy_machine make_device(void)
{
    cvy_machine machine = make_machine();
    machine.device = (cvy_device){.name = "d", .kind = CVY_DEVICE_GPU, .cores = 1, .memory_bytes = 16000000000,
                                  .memory_Bps = 100e9, .launch_s = 5e-6};
    machine.device.peak_flop_per_s[CVY_PRECISION_FP64] = 0.5e12;
    machine.device.peak_flop_per_s[CVY_PRECISION_FP32] = 1e12;
    machine.device.peak_flop_per_s[CVY_PRECISION_FP16] = 8e12;
    machine.execution.fuse = CVY_FUSING_NONE;
    return machine;
}

/* A question to an oracle that is made for it. */
typedef struct asked {
    cvy_model *model;
    cvy_machine machine;
    cvy_oracle_options options;
    cvy_oracle *oracle;
    cvy_estimate_question question;
} asked;

static inline void assert_ok(cvy_status status)
{
    if (status != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static inline void read_strategy(asked *a, const char *strategy, int64_t ranks)
{
    int64_t space[3];
    cvy_space_get(&a->model->layer[0].output, space);
    assert_ok(cvy_strategy_parse(strategy, ranks, space, &a->question.strategy));
}

/* SGD with momentum, on f32, gradients all in one exchange where the machine says nothing. */
static inline void open_asked(asked *a, const char *model, const char *strategy, int64_t ranks, int64_t batch)
{
    *a = (asked){.machine = make_device()};
    a->options = (cvy_oracle_options){.batch = batch, .precision = CVY_PRECISION_FP32, .bucket_bytes = -1};
    assert_true(cvy_optimizer_find("momentum", 0.9, &a->options.optimizer));
    assert_ok(cvy_model_open(model, &a->model));
    read_strategy(a, strategy, ranks);
}

/* By the machine and options as they stand now. */
static inline cvy_estimate estimate_now(asked *a)
{
    cvy_estimate estimate;
    cvy_oracle_destroy(&a->oracle);
    assert_ok(cvy_oracle_create(a->model, &a->machine, &a->options, &a->oracle));
    assert_ok(cvy_oracle_estimate(a->oracle, &a->question, &estimate));
    return estimate;
}

static inline cvy_estimate estimate_feasible(asked *a)
{
    cvy_estimate estimate = estimate_now(a);
    if (!estimate.feasible) {
        fail_msg("%s", estimate.why_not);
    }
    return estimate;
}

static inline cvy_trace *trace_now(asked *a)
{
    cvy_trace *trace = NULL;
    cvy_oracle_destroy(&a->oracle);
    assert_ok(cvy_oracle_create(a->model, &a->machine, &a->options, &a->oracle));
    assert_ok(cvy_oracle_trace(a->oracle, &a->question, &trace));
    return trace;
}

static inline void close_asked(asked *a)
{
    cvy_oracle_destroy(&a->oracle);
    cvy_model_destroy(&a->model);
}

static inline void assert_close(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * fabs(expected))) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

static inline double sum_parts(const cvy_estimate *e)
{
    double sum = 0.0;
    for (int i = 0; i < CVY_TIME_PARTS; i++) {
        sum += e->part_s[i];
    }
    return sum;
}

/* The training schedule of a rank as the oracle plans it on such a device; micro-batches as the distribution says. */
static inline cvy_plan *plan_rank(const asked *a, const cvy_distribution *distribution, int64_t rank)
{
    cvy_plan *plan = NULL;
    cvy_plan_options options = {.batch = distribution ? distribution->options.batch : a->options.batch,
                                .dtype = CVY_F32,
                                .training = true,
                                .train_only = true,
                                .unfused = true,
                                .optimizer = a->options.optimizer,
                                .layout = CVY_LAYOUT_PLAIN,
                                .block = 8,
                                .parallel = {.distribution = distribution, .rank = rank,
                                             .norm_axes = CVY_AXIS_SPACE}};
    assert_ok(cvy_plan_create(a->model, &options, &plan));
    return plan;
}

#endif
