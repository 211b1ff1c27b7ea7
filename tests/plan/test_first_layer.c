/*
 * Laws of the first layer's input: by rule images of few channels do not go into blocks, and volumes do; by the clock
 * what is faster; and what was decided is read back from a saved plan.
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

static cvy_format plan_first_input(const char *name, const cvy_plan_options *options)
{
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    require(cvy_model_open(name, &model));
    require(cvy_plan_create(model, options, &plan));
    cvy_format format = plan->formats[1].input;
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
    return format;
}

/* The rule leaves images of 1 or 3 channels out of blocks, whatever is measured elsewhere; others are as ever. */
static void test_the_rule_leaves_a_narrow_image_as_it_is(void **state)
{
    (void)state;
    static const char *const models[] = {"lenet5", "resnet18:size=64"};
    for (int i = 0; i < 4; i++) {
        cvy_plan_options options = make_options();
        if (i % 2) {
            require(cvy_backend_chain_find(NULL, &options.backends));
        }
        assert_int_not_equal(plan_first_input(models[i / 2], &options), CVY_FORMAT_C8);
    }
}

/*
 * Volumes go into blocks, however few their channels: by kernels, and without any by the machine's block; never where a
 * layout says otherwise, or where there are plain loops alone.
 */
static void test_the_rule_puts_volumes_into_blocks(void **state)
{
    (void)state;
    static const char *const models[] = {"cosmoflow:size=32", "cosmoflow:size=32,channels=1", "unet3d:size=32"};
    for (int i = 0; i < 3; i++) {
        cvy_plan_options options = make_options();
        assert_int_equal(plan_first_input(models[i], &options), CVY_FORMAT_C8);
        options.backends.count = 0;
        assert_int_equal(plan_first_input(models[i], &options), CVY_FORMAT_C8);
        options.block = 16;
        assert_int_equal(plan_first_input(models[i], &options), CVY_FORMAT_C16);
        options.layout = CVY_LAYOUT_CHANNELS_LAST;
        assert_int_equal(plan_first_input(models[i], &options), CVY_FORMAT_PLAIN);
        options.layout = CVY_LAYOUT_PLAIN;
        assert_int_equal(plan_first_input(models[i], &options), CVY_FORMAT_PLAIN);
        options.layout = CVY_LAYOUT_AUTO;
        require(cvy_backend_chain_find("ref", &options.backends));
        assert_int_equal(plan_first_input(models[i], &options), CVY_FORMAT_PLAIN);
    }
}

/*
 * 2 samples of 4 channels of 32^3 in blocks of 8 are 2 * 8 * 32^3 * 4 = 2 MiB: a buffer beside the batch as it comes,
 * from the first layer's forward to its gradient of weights.
 */
static void test_the_batch_in_blocks_counts_as_memory(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    cvy_plan_options options = make_options();
    options.backends.count = 0;
    require(cvy_model_open("cosmoflow:size=32", &model));
    require(cvy_plan_create(model, &options, &plan));
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    int found = 0;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        bool first = step->op >= 0 && s->op[step->op].kind == CVY_OP_CONVOLUTION && step->layer == 1;
        int x = first ? cvy_op_index(&s->op[step->op], CVY_ROLE_X) : -1;
        if (x >= 0) {
            const cvy_buffer *buffer = &s->buffer[s->use[step->first_use + x].buffer];
            assert_int_equal(buffer->bytes, 2 << 20);
            assert_true(!buffer->persistent && buffer->first_step < i && buffer->last_step >= i);
            found++;
        }
    }
    assert_int_equal(found, 2); /* forward, and the gradient of weights */
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
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
        cmocka_unit_test(test_the_rule_leaves_a_narrow_image_as_it_is),
        cmocka_unit_test(test_the_rule_puts_volumes_into_blocks),
        cmocka_unit_test(test_the_batch_in_blocks_counts_as_memory),
        cmocka_unit_test(test_a_saved_plan_keeps_the_batch_in_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
