/*
 * Laws of the first layer's input: by rule a batch of few channels does not go into blocks; by the clock it does where
 * that is faster; and what was decided is read back from a saved plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "plan/plan.h"
#include "sleeper.h"

/*
 * The sleeper has convolutions alone, whatever their formats. One that takes the batch (one channel) in blocks sleeps
 * for blocked_ns, each other one for other_ns.
 */
static int64_t blocked_ns, other_ns;

static bool takes_batch_in_blocks(const cvy_op *op)
{
    const cvy_operand *x = cvy_op_find(op, CVY_ROLE_X);
    return x && x->tensor.shape.extent[1] == 1 && x->tensor.format == CVY_FORMAT_C8;
}

static cvy_quality judge(const cvy_op *op)
{
    return op->kind != CVY_OP_CONVOLUTION ? CVY_QUALITY_NONE
           : takes_batch_in_blocks(op)    ? CVY_QUALITY_GEMM
                                          : CVY_QUALITY_FAST;
}

static int64_t sleep_by_blocks(const cvy_op *op) { return takes_batch_in_blocks(op) ? blocked_ns : other_ns; }

static void require(cvy_status status)
{
    if (status != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static cvy_plan_options make_options(void)
{
    cvy_plan_options options = {.batch = 2, .dtype = CVY_F32, .training = true, .block = 8};
    sleeper_state.quality = judge;
    sleeper_state.sleep_ns = sleep_by_blocks;
    require(cvy_backend_chain_find("ref", &options.backends));
    options.backends.backend[1] = options.backends.backend[0];
    options.backends.backend[0] = &sleeper;
    options.backends.count = 2;
    return options;
}

/* Two convolutions, two passes each, and a gradient of data; what the clock chooses, planned: the first's formats. */
static cvy_layer_formats plan_by_clock(int64_t blocked, int64_t other)
{
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    cvy_plan_options options = make_options();
    blocked_ns = blocked;
    other_ns = other;
    require(cvy_model_open("lenet5", &model));
    cvy_layout_choice *layouts = cvy_calloc((size_t)model->layers, sizeof *layouts);
    uint32_t *winograd = cvy_calloc((size_t)model->layers, sizeof *winograd);
    require(cvy_layout_measure(model, &options, 1, layouts, winograd));
    options.layouts = layouts;
    require(cvy_plan_create(model, &options, &plan));
    cvy_layer_formats first = plan->formats[cvy_model_find_layer(model, "conv1")];
    cvy_plan_destroy(&plan);
    cvy_free(layouts);
    cvy_free(winograd);
    cvy_model_destroy(&model);
    return first;
}

/* 50 ms against 2 for each of two passes: what noise a busy machine makes (15 ms were seen) does not make up for it. */
static void test_the_clock_puts_the_batch_into_blocks_where_that_is_faster(void **state)
{
    (void)state;
    cvy_layer_formats faster = plan_by_clock(2000000, 50000000);
    assert_int_equal(faster.input, CVY_FORMAT_C8);
    assert_int_equal(faster.output, CVY_FORMAT_C8);
    cvy_layer_formats slower = plan_by_clock(50000000, 2000000);
    assert_int_not_equal(slower.input, CVY_FORMAT_C8);
}

/* The rule leaves a batch of 1, 3 or 4 channels out of blocks, whatever is measured elsewhere; others are as ever. */
static void test_the_rule_leaves_a_narrow_batch_as_it_is(void **state)
{
    (void)state;
    static const char *const models[] = {"lenet5", "resnet18:size=64", "cosmoflow:size=32"};
    for (int i = 0; i < 6; i++) {
        cvy_model *model = NULL;
        cvy_plan *plan = NULL;
        cvy_plan_options options = make_options();
        require(cvy_model_open(models[i / 2], &model));
        if (i % 2) {
            require(cvy_backend_chain_find(NULL, &options.backends));
        }
        require(cvy_plan_create(model, &options, &plan));
        assert_int_not_equal(plan->formats[1].input, CVY_FORMAT_C8);
        cvy_plan_destroy(&plan);
        cvy_model_destroy(&model);
    }
}

/* Saved, the choice is the format of a layer's input like any other; read back, it makes the same reorder and steps. */
static void test_a_saved_plan_keeps_the_batch_in_blocks(void **state)
{
    (void)state;
    char path[] = "/tmp/convoy-first-layer-XXXXXX";
    int file = mkstemp(path);
    cvy_model *model = NULL;
    cvy_plan *plan = NULL, *again = NULL;
    cvy_plan_options options = make_options();
    assert_true(file >= 0 && close(file) == 0);
    require(cvy_model_open("lenet5", &model));
    options.layout = CVY_LAYOUT_BLOCKED_INPUT;
    require(cvy_plan_create(model, &options, &plan));
    assert_int_equal(plan->formats[1].input, CVY_FORMAT_C8);
    require(cvy_plan_save(plan, path));
    cvy_layer_formats *formats = cvy_calloc((size_t)model->layers, sizeof *formats);
    require(cvy_plan_load_formats(path, model, 8, formats));
    assert_memory_equal(formats, plan->formats, (size_t)model->layers * sizeof *formats);
    options.layout = CVY_LAYOUT_AUTO;
    options.formats = formats;
    require(cvy_plan_create(model, &options, &again));
    assert_int_equal(again->schedule[0].steps, plan->schedule[0].steps);
    assert_true(plan->format_changes >= 1 && again->format_changes == plan->format_changes);
    cvy_free(formats);
    cvy_plan_destroy(&plan);
    cvy_plan_destroy(&again);
    cvy_model_destroy(&model);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_clock_puts_the_batch_into_blocks_where_that_is_faster),
        cmocka_unit_test(test_the_rule_leaves_a_narrow_batch_as_it_is),
        cmocka_unit_test(test_a_saved_plan_keeps_the_batch_in_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
