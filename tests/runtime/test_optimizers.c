/*
 * Three training steps of a small net by each rule that updates weights, in double on `ref`: PyTorch's numbers, or
 * those of a few lines of Python written from the paper (tests/reference/make_optimizers.py). All parameters, running
 * statistics and averages must agree to 1e-10 of a tensor's largest element. The fastest backend runs the same in
 * single precision, to 1e-5.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/json.h"
#include "runtime/executor.h"
#include "runtime/reference_values.h"

enum { STEPS = 3, BATCH = 4, CLASSES = 3, VALUES = 2 * 5 * 5, MAX_REFERENCE_BYTES = 1 << 20 };

static json_t *reference;

static int load_reference(void **state)
{
    static const char path[] = CVY_SOURCE_ROOT "/tests/reference/optimizers.json";
    const cvy_json_source source = {path, CVY_ERR_DATA};
    (void)state;
    return cvy_json_load(&source, MAX_REFERENCE_BYTES, &reference) == CVY_OK ? 0 : 1;
}

static int release_reference(void **state)
{
    (void)state;
    json_decref(reference);
    return 0;
}

/* Options that a case does not name are 0: none. */
static double number(const json_t *options, const char *key)
{
    return json_number_value(json_object_get(options, key));
}

static cvy_optimizer_kind find_rule(const char *name)
{
    static const char *const names[CVY_OPTIMIZER_COUNT] = {
        [CVY_OPTIMIZER_SGD] = "sgd",
        [CVY_OPTIMIZER_ADAMW] = "adamw",
        [CVY_OPTIMIZER_ADAM] = "adam",
        [CVY_OPTIMIZER_LARS] = "lars",
        [CVY_OPTIMIZER_LAMB] = "lamb",
    };
    for (int i = 0; i < CVY_OPTIMIZER_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            return (cvy_optimizer_kind)i;
        }
    }
    fail_msg("no rule %s", name);
    return CVY_OPTIMIZER_COUNT;
}

static cvy_optimizer read_optimizer(const json_t *options)
{
    cvy_optimizer optimizer = {.kind = find_rule(json_string_value(json_object_get(options, "rule")))};
    optimizer.clip_norm = number(options, "clip_norm");
    optimizer.no_decay_norms = number(options, "no_decay_norms") != 0.0;
    optimizer.params = (cvy_op_params_optimizer){.momentum = number(options, "momentum"),
                                                 .beta1 = number(options, "beta1"),
                                                 .beta2 = number(options, "beta2"),
                                                 .epsilon = number(options, "epsilon"),
                                                 .weight_decay = number(options, "weight_decay"),
                                                 .clip_value = number(options, "clip_value"),
                                                 .trust = number(options, "trust")};
    return optimizer;
}

static void set_initial_values(cvy_executor *executor)
{
    const cvy_state *state = cvy_executor_state(executor);
    for (int i = 0; i < state->count; i++) {
        const cvy_state_tensor *tensor = &state->tensor[i];
        if (!tensor->optimizer) {
            const cvy_tensor logical = {tensor->shape, CVY_F64, CVY_FORMAT_PLAIN, false};
            double *value = make_initial_values(tensor->name, &tensor->shape);
            assert_int_equal(cvy_tensor_copy(&logical, value, &tensor->tensor, tensor->data), CVY_OK);
            cvy_free(value);
        }
    }
}

static void run_steps(cvy_executor *executor, double learning_rate)
{
    static const int32_t label[BATCH] = {0, 1, 2, 0};
    float x[BATCH * VALUES];
    cvy_executor_result result;
    for (int step = 0; step < STEPS; step++) {
        char key[16];
        snprintf(key, sizeof key, "input%d", step);
        for (int i = 0; i < BATCH * VALUES; i++) {
            x[i] = (float)spread(hash_name(key), i);
        }
        const cvy_executor_batch batch = {.x = x, .label = label, .samples = BATCH};
        const cvy_run run = {.step = step, .samples = BATCH, .loss_scale = 1.0 / BATCH, .update = step + 1,
                             .learning_rate = learning_rate};
        if (cvy_executor_run(executor, CVY_SCHEDULE_TRAIN, &batch, &run, &result) != CVY_OK) {
            fail_msg("%s", cvy_error_message());
        }
    }
}

static void compare(const cvy_state_tensor *tensor, const json_t *expected, double tolerance)
{
    const cvy_tensor logical = {tensor->shape, CVY_F64, CVY_FORMAT_PLAIN, false};
    size_t count = (size_t)cvy_shape_elements(&tensor->shape);
    double *value = cvy_calloc(count, sizeof *value);
    double largest = 0.0, difference = 0.0;
    assert_int_equal(json_array_size(expected), count);
    assert_int_equal(cvy_tensor_copy(&tensor->tensor, tensor->data, &logical, value), CVY_OK);
    for (size_t i = 0; i < count; i++) {
        double wanted = json_number_value(json_array_get(expected, i));
        largest = fmax(largest, fabs(wanted));
        difference = fmax(difference, fabs(value[i] - wanted));
    }
    cvy_free(value);
    if (!(difference <= tolerance * largest)) {
        fail_msg("%s: %g from the reference, expected at most %g", tensor->name, difference / largest, tolerance);
    }
}

static void run_case(const char *name, cvy_dtype dtype, double tolerance)
{
    const json_t *rule = json_object_get(reference, name);
    const json_t *options = json_object_get(rule, "options");
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    cvy_executor *executor = NULL;
    cvy_plan_options wanted = {.batch = BATCH, .dtype = dtype, .training = true, .block = 8, .data_slots = 1,
                               .label_bytes = 4, .optimizer = read_optimizer(options),
                               .average = number(options, "ema")};
    if (cvy_backend_chain_find(dtype == CVY_F64 ? "ref" : NULL, &wanted.backends) != CVY_OK ||
        cvy_model_open(CVY_SOURCE_ROOT "/tests/reference/optimizers.yaml", &model) != CVY_OK ||
        cvy_plan_create(model, &wanted, &plan) != CVY_OK || cvy_executor_create(plan, NULL, &executor) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    set_initial_values(executor);
    cvy_executor_start_averages(executor);
    run_steps(executor, number(options, "learning_rate"));
    const char *key;
    json_t *expected;
    json_object_foreach(json_object_get(rule, "state"), key, expected) {
        const cvy_state_tensor *tensor = cvy_state_find(cvy_executor_state(executor), key);
        assert_non_null(tensor);
        compare(tensor, expected, tolerance);
    }
    cvy_executor_destroy(&executor);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

static void test_three_steps_are_those_of_the_reference(void **state)
{
    run_case(*state, CVY_F64, 1e-10);
    run_case(*state, CVY_F32, 1e-5);
}

int main(void)
{
    static char *const names[] = {
        "sgd", "sgd-no-decay-norms", "adam", "adam-no-decay-norms", "adamw-no-decay-norms",
        "sgd-clip-norm", "sgd-clip-value", "adam-clip-norm", "adam-clip-value",
        "lars", "lars-clip-norm", "lamb", "lamb-clip-norm", "sgd-ema",
    };
    enum { CASES = sizeof names / sizeof names[0] };
    struct CMUnitTest tests[CASES];
    for (int i = 0; i < CASES; i++) {
        tests[i] = (struct CMUnitTest){names[i], test_three_steps_are_those_of_the_reference, NULL, NULL, names[i]};
    }
    return cmocka_run_group_tests(tests, load_reference, release_reference);
}
