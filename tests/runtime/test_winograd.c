/*
 * Laws of plans with Winograd's algorithm: the passes that the formats name and no others, saved and read back to the
 * same ops, the same training as summed directly, and none of it where it was said to sum directly.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "folder.h"
#include "runtime/executor.h"
#include "runtime/formats.h"

enum { BATCH = 3, INPUT = 16 * 13 * 11, LAYERS = 16, ALL = 1 << CVY_PASS_FORWARD | 1 << CVY_PASS_BACKWARD_DATA |
                                                           1 << CVY_PASS_BACKWARD_WEIGHTS };

static const char net[] = "name: net\ninput: [16, 13, 11]\nlayers:\n"
                          "  - {name: c1, kind: conv, filters: 32, kernel: 3, padding: 1}\n"
                          "  - {name: a1, kind: tanh}\n"
                          "  - {name: c2, kind: conv, filters: 48, kernel: 3, padding: 1}\n"
                          "  - {name: a2, kind: relu}\n"
                          "  - {name: c3, kind: conv, filters: 32, kernel: 3}\n"
                          "  - {name: a3, kind: tanh}\n"
                          "  - {name: flat, kind: flatten}\n"
                          "  - {name: fc, kind: dense, outputs: 10}\n"
                          "  - {name: loss, kind: softmax-cross-entropy}\n";

typedef struct setting {
    cvy_model *model;
    cvy_plan_options wanted;
    uint32_t winograd[LAYERS]; /* all passes of c2, forward of c3; Convoy's own kernels have them everywhere */
} setting;

static void require(cvy_status status)
{
    if (status != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static int find_layer(const cvy_model *model, const char *name)
{
    int i = 0;
    while (strcmp(model->layer[i].name, name) != 0) {
        i++;
    }
    return i;
}

static setting make_setting(const char *folder)
{
    char path[160];
    bool wide = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && !getenv("ONEDNN_MAX_CPU_ISA");
    setting s = {.wanted = {.batch = BATCH,
                            .tail_batch = 1,
                            .dtype = CVY_F32,
                            .training = true,
                            .layout = CVY_LAYOUT_BLOCKED,
                            .block = wide ? 16 : 8}};
    snprintf(path, sizeof path, "%s/net.yaml", folder);
    require(cvy_file_write(path, net, sizeof net - 1, CVY_ERR_IO));
    require(cvy_model_open(path, &s.model));
    require(cvy_backend_chain_find(NULL, &s.wanted.backends));
    assert_true(s.model->layers <= LAYERS);
    s.winograd[find_layer(s.model, "c2")] = ALL;
    s.winograd[find_layer(s.model, "c3")] = 1u << CVY_PASS_FORWARD;
    return s;
}

static cvy_plan *make_plan(const setting *s, const uint32_t *winograd, cvy_recompute recompute)
{
    cvy_plan *plan = NULL;
    cvy_plan_options options = s->wanted;
    options.winograd = winograd;
    options.recompute = recompute;
    require(cvy_plan_create(s->model, &options, &plan));
    assert_null(plan->options.winograd);
    return plan;
}

/* Steps by Winograd's algorithm; their weights lie as the parameter does, without a reorder. */
static int count_winograd(const cvy_plan *plan, cvy_schedule_kind kind)
{
    const cvy_schedule *s = &plan->schedule[kind];
    int count = 0;
    for (int i = 0; i < s->steps; i++) {
        const cvy_op *op = s->step[i].op >= 0 ? &s->op[s->step[i].op] : NULL;
        if (op && cvy_op_by_winograd(op)) {
            const cvy_operand *w = cvy_op_find(op, CVY_ROLE_W);
            assert_true(plan->formats[s->step[i].layer].winograd >> op->pass & 1u);
            assert_true(!w || w->tensor.format == plan->formats[s->step[i].layer].weight);
            assert_non_null(strstr(s->choice[s->step[i].op].algorithm, "wino"));
            count++;
        }
    }
    return count;
}

/* 3 + 1 passes in training, whole batches and the tail alike, 2 of them in evaluation; none where nobody asks. */
static void test_a_plan_has_the_passes_that_are_named(void **state)
{
    setting s = make_setting(*state);
    cvy_plan *plan = make_plan(&s, s.winograd, CVY_RECOMPUTE_NONE);
    assert_int_equal(count_winograd(plan, CVY_SCHEDULE_TRAIN), 4);
    assert_int_equal(count_winograd(plan, CVY_SCHEDULE_TRAIN_TAIL), 4);
    assert_int_equal(count_winograd(plan, CVY_SCHEDULE_EVALUATE), 2);
    cvy_plan_destroy(&plan);
    plan = make_plan(&s, NULL, CVY_RECOMPUTE_NONE);
    assert_int_equal(count_winograd(plan, CVY_SCHEDULE_TRAIN), 0);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&s.model);
}

static void test_a_saved_plan_comes_back_to_the_same_ops(void **state)
{
    char path[160], *text = NULL;
    size_t bytes;
    setting s = make_setting(*state);
    cvy_layer_formats formats[LAYERS];
    cvy_plan *plan = make_plan(&s, s.winograd, CVY_RECOMPUTE_NONE), *again = NULL;
    snprintf(path, sizeof path, "%s/plan.yaml", (const char *)*state);
    require(cvy_plan_save(plan, path));
    require(cvy_file_read(path, 1 << 20, CVY_ERR_IO, &text, &bytes));
    assert_non_null(strstr(text, ", winograd: [forward, backward-data, backward-weights]}\n"));
    assert_non_null(strstr(text, ", winograd: [forward]}\n"));
    cvy_free(text);
    require(cvy_plan_load_formats(path, s.model, s.wanted.block, formats));
    assert_memory_equal(formats, plan->formats, (size_t)s.model->layers * sizeof *formats);
    s.wanted.formats = formats;
    require(cvy_plan_create(s.model, &s.wanted, &again));
    const cvy_schedule *one = &plan->schedule[CVY_SCHEDULE_TRAIN], *other = &again->schedule[CVY_SCHEDULE_TRAIN];
    assert_int_equal(one->ops, other->ops);
    for (int i = 0; i < one->ops; i++) {
        assert_true(cvy_op_hash(&one->op[i]) == cvy_op_hash(&other->op[i]));
    }
    cvy_plan_destroy(&plan);
    cvy_plan_destroy(&again);
    cvy_model_destroy(&s.model);
}

/* Save a plan with one text in place of another, and read it; the message has the words. */
static void refuse(const char *folder, const setting *s, const char *from, const char *to, const char *words)
{
    char path[160], *text = NULL, *changed = cvy_calloc(1 << 16, 1);
    size_t bytes;
    cvy_layer_formats formats[LAYERS];
    cvy_plan *plan = make_plan(s, s->winograd, CVY_RECOMPUTE_NONE);
    snprintf(path, sizeof path, "%s/plan.yaml", folder);
    require(cvy_plan_save(plan, path));
    require(cvy_file_read(path, 1 << 15, CVY_ERR_IO, &text, &bytes));
    char *at = strstr(text, from);
    assert_non_null(at);
    int length = snprintf(changed, 1 << 16, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    require(cvy_file_write(path, changed, (size_t)length, CVY_ERR_IO));
    assert_int_equal(cvy_plan_load_formats(path, s->model, s->wanted.block, formats), CVY_ERR_INPUT);
    if (!strstr(cvy_error_message(), words)) {
        fail_msg("'%s' lacks '%s'", cvy_error_message(), words);
    }
    cvy_free(text);
    cvy_free(changed);
    cvy_plan_destroy(&plan);
}

static void test_what_is_no_pass_is_refused(void **state)
{
    setting s = make_setting(*state);
    refuse(*state, &s, "[forward]", "[sideways]", "found 'sideways', expected passes of a convolution");
    refuse(*state, &s, "[forward]", "[update]", "found 'update'");
    refuse(*state, &s, "[forward]", "[forward, forward]", "each once");
    refuse(*state, &s, "[forward]", "[[forward]]", "found 'a list'");
    refuse(*state, &s, "[forward]", "forward", "expected a list of passes");
    refuse(*state, &s, "layer: \"fc\", ", "layer: \"fc\", winograd: [forward], ", "layer fc is no convolution");
    cvy_model_destroy(&s.model);
}

/* Whatever is remembered: who sums directly gets a plan without. */
static void test_direct_kernels_have_none_of_it(void **state)
{
    char path[160];
    setting s = make_setting(*state);
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    cvy_plan *plan = make_plan(&s, s.winograd, CVY_RECOMPUTE_NONE);
    snprintf(path, sizeof path, "%s/plan.yaml", (const char *)*state);
    require(cvy_plan_save(plan, path));
    cvy_plan_destroy(&plan);
    s.wanted.layout = CVY_LAYOUT_AUTO;
    options.resume = *state;
    for (int direct = 0; direct < 2; direct++) {
        s.wanted.direct_only = direct;
        require(cvy_formats_plan(s.model, &options, NULL, &s.wanted, 1, &plan));
        assert_int_equal(plan->formats[find_layer(s.model, "c2")].winograd, direct ? 0 : ALL);
        assert_int_equal(count_winograd(plan, CVY_SCHEDULE_TRAIN), direct ? 0 : 4);
        cvy_plan_destroy(&plan);
    }
    cvy_layout_choice layouts[LAYERS];
    uint32_t winograd[LAYERS];
    s.wanted.direct_only = true;
    require(cvy_layout_measure(s.model, &s.wanted, 1, layouts, winograd));
    for (int i = 0; i < s.model->layers; i++) {
        assert_int_equal(winograd[i], 0);
    }
    cvy_model_destroy(&s.model);
}

/* The clock may choose passes of convolutions in blocks, and no others. */
static void test_the_clock_chooses_among_convolutions(void **state)
{
    setting s = make_setting(*state);
    cvy_layout_choice layouts[LAYERS];
    uint32_t winograd[LAYERS];
    require(cvy_layout_measure(s.model, &s.wanted, 1, layouts, winograd));
    for (int i = 0; i < s.model->layers; i++) {
        bool blocked = layouts[i] == CVY_LAYOUT_BLOCKED || layouts[i] == CVY_LAYOUT_BLOCKED_INPUT;
        bool may = blocked && strcmp(s.model->layer[i].kind->name, "conv") == 0;
        assert_int_equal(winograd[i] & ~(may ? (uint32_t)ALL : 0u), 0);
    }
    cvy_model_destroy(&s.model);
}

/* One update of a plan from the weights of a seed; what it changed, buffer by buffer, in @p change. */
static void run_step(const cvy_plan *plan, float *change[], double *loss_out)
{
    static float x[BATCH * INPUT];
    static const int32_t label[BATCH] = {1, 7, 4};
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_run run = {.seed = 5, .samples = BATCH, .loss_scale = 1.0 / BATCH, .learning_rate = 1.0, .update = 1};
    const cvy_executor_batch batch = {.x = x, .label = label, .samples = BATCH};
    cvy_executor *executor = NULL;
    cvy_executor_result result;
    for (int i = 0; i < BATCH * INPUT; i++) {
        x[i] = 2.0f * cvy_random_unit(cvy_philox((cvy_words){{(uint32_t)i, 0, 0, 0}}, 3, 4).v[0]) - 1.0f;
    }
    require(cvy_executor_create(plan, NULL, &executor));
    require(cvy_executor_initialise(executor, 11));
    for (int i = 0; i < plan->persistent_buffers; i++) {
        change[i] = cvy_calloc((size_t)s->buffer[i].bytes, 1);
        memcpy(change[i], cvy_executor_memory(executor, CVY_SCHEDULE_TRAIN, i), (size_t)s->buffer[i].bytes);
    }
    require(cvy_executor_run(executor, CVY_SCHEDULE_TRAIN, &batch, &run, &result));
    for (int i = 0; i < plan->persistent_buffers; i++) {
        const float *after = cvy_executor_memory(executor, CVY_SCHEDULE_TRAIN, i);
        for (int64_t k = 0; k < s->buffer[i].bytes / 4; k++) {
            change[i][k] -= after[k];
        }
    }
    *loss_out = result.loss;
    cvy_executor_destroy(&executor);
}

/* The largest difference of what two plans changed, over the largest change; weights lie alike in both. */
static double compare_steps(const cvy_plan *one, const cvy_plan *other)
{
    float *change[2][4 * LAYERS];
    double loss[2], worst = 0.0;
    assert_int_equal(one->persistent_buffers, other->persistent_buffers);
    run_step(one, change[0], &loss[0]);
    run_step(other, change[1], &loss[1]);
    for (int i = 0; i < one->persistent_buffers; i++) {
        const cvy_buffer *buffer = &one->schedule[CVY_SCHEDULE_TRAIN].buffer[i];
        double difference = 0.0, largest = 0.0;
        assert_int_equal(buffer->tensor.format, other->schedule[CVY_SCHEDULE_TRAIN].buffer[i].tensor.format);
        for (int64_t k = 0; k < buffer->bytes / 4; k++) {
            difference = fmax(difference, fabs((double)change[0][i][k] - (double)change[1][i][k]));
            largest = fmax(largest, fabs((double)change[1][i][k]));
        }
        assert_true(largest > 0.0);
        worst = fmax(worst, difference / largest);
        cvy_free(change[0][i]);
        cvy_free(change[1][i]);
    }
    assert_true(fabs(loss[0] - loss[1]) <= 1e-4 * fabs(loss[1]));
    return worst;
}

static void test_a_step_agrees_with_direct_sums(void **state)
{
    setting s = make_setting(*state);
    cvy_plan *direct = make_plan(&s, NULL, CVY_RECOMPUTE_NONE);
    cvy_plan *winograd = make_plan(&s, s.winograd, CVY_RECOMPUTE_NONE);
    cvy_plan *again = make_plan(&s, s.winograd, CVY_RECOMPUTE_ALL);
    double worst = compare_steps(winograd, direct);
    print_message("largest difference of an update %.1e\n", worst);
    assert_true(worst <= 1e-3);
    assert_true(worst > 0.0); /* other arithmetic leaves a trace */
    assert_true(compare_steps(winograd, winograd) == 0.0);
    assert_true(compare_steps(winograd, again) == 0.0);
    cvy_plan_destroy(&direct);
    cvy_plan_destroy(&winograd);
    cvy_plan_destroy(&again);
    cvy_model_destroy(&s.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_plan_has_the_passes_that_are_named, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_saved_plan_comes_back_to_the_same_ops, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_what_is_no_pass_is_refused, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_direct_kernels_have_none_of_it, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_the_clock_chooses_among_convolutions, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_step_agrees_with_direct_sums, create_test_folder, remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
