/* The network of network_machine.h with devices: 1 TFLOP/s, 100 GB/s, 16 GB, 5 us a launch. */
#ifndef CVY_TESTS_ORACLE_BOUND_MACHINE_H
#define CVY_TESTS_ORACLE_BOUND_MACHINE_H

#include "network_machine.h"
#include "oracle/bound.h"

static inline cvy_machine make_bound_machine(void)
{
    cvy_machine machine = make_machine();
    machine.device = (cvy_device){.name = "d", .kind = CVY_DEVICE_GPU, .memory_bytes = 16000000000, .memory_Bps = 100e9,
                                  .peak_flop_per_s = {[CVY_PRECISION_FP32] = 1e12, [CVY_PRECISION_FP16] = 8e12},
                                  .launch_s = 5e-6};
    return machine;
}

static inline cvy_oracle_options make_options(int64_t batch)
{
    return (cvy_oracle_options){.batch = batch, .precision = CVY_PRECISION_FP32, .bucket_bytes = -1,
                                .optimizer = {.params = {.momentum = 0.9}}};
}

static inline cvy_model *open_model(const char *name)
{
    cvy_model *model = NULL;
    cvy_status status = cvy_model_open(name, &model);
    assert_string_equal(status == CVY_OK ? "" : cvy_error_message(), "");
    return model;
}

static inline cvy_strategy parse(const cvy_model *model, const char *text, int64_t ranks)
{
    cvy_strategy strategy = {0};
    int64_t space[3];
    cvy_space_get(&model->layer[0].output, space);
    assert_int_equal(cvy_strategy_parse(text, ranks, space, &strategy), CVY_OK);
    strategy.micro_batches = strategy.micro_batches ? strategy.micro_batches : 1;
    return strategy;
}

#endif
