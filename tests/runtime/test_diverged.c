/*
 * Gradients that overflow where the loss does not. Three products without biases, the first of zero weights: all
 * outputs are 0, the loss is ln 4, and the gradient of output k is a quarter, less 1 at the label, whatever the others
 * hold. So that of the second output is W3^T of it, and that of the first W2^T of that.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "folder.h"
#include "runtime/executor.h"

enum { SIZE = 4, LABEL = 1 };

static const char text[] = "name: products\n"
                           "input: [4, 1, 1]\n"
                           "layers:\n"
                           "  - {name: flat, kind: flatten}\n"
                           "  - {name: first, kind: dense, outputs: 4, bias: no}\n"
                           "  - {name: second, kind: dense, outputs: 4, bias: no}\n"
                           "  - {name: third, kind: dense, outputs: 4, bias: no}\n"
                           "  - {name: loss, kind: softmax-cross-entropy}\n";

/* All weights of a layer are +value, those of the label's output -value where signs help the sum. */
static void set_weights(const cvy_executor *executor, const char *name, float value, bool turned)
{
    const cvy_state_tensor *tensor = cvy_state_find(cvy_executor_state(executor), name);
    float weight[SIZE * SIZE];
    const cvy_tensor logical = {tensor->shape, CVY_F32, CVY_FORMAT_PLAIN, false};
    for (int i = 0; i < SIZE * SIZE; i++) {
        weight[i] = turned && i / SIZE == LABEL ? -value : value;
    }
    assert_int_equal(cvy_tensor_copy(&logical, weight, &tensor->tensor, tensor->data), CVY_OK);
}

static float get_weight(const cvy_executor *executor, const char *name)
{
    return *(const float *)cvy_state_find(cvy_executor_state(executor), name)->data;
}

/* One step with those weights ends in words that hold @p expected; zero weights are zero still. */
static void check_words(const char *folder, float second, float third, double clip_norm, const char *expected)
{
    const char *path = test_path(folder, "products.yaml");
    const float x[SIZE] = {1, 1, 1, 1};
    const int32_t label = LABEL;
    const cvy_executor_batch batch = {.x = x, .label = &label, .samples = 1};
    const cvy_run run = {.samples = 1, .loss_scale = 1.0, .learning_rate = 0.1, .update = 1};
    cvy_plan_options options = {.batch = 1, .dtype = CVY_F32, .training = true, .block = 8, .data_slots = 1,
                                .label_bytes = 4, .optimizer = {.clip_norm = clip_norm}};
    cvy_executor_result result;
    cvy_executor *executor = NULL;
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    assert_true(put_test_file(path, text, sizeof text - 1));
    assert_int_equal(cvy_model_open(path, &model), CVY_OK);
    assert_int_equal(cvy_backend_chain_find(NULL, &options.backends), CVY_OK);
    assert_int_equal(cvy_plan_create(model, &options, &plan), CVY_OK);
    assert_int_equal(cvy_executor_create(plan, NULL, &executor), CVY_OK);
    set_weights(executor, "first.weight", 0.0f, false);
    set_weights(executor, "second.weight", second, false);
    set_weights(executor, "third.weight", third, true);
    assert_int_equal(cvy_executor_run(executor, CVY_SCHEDULE_TRAIN, &batch, &run, &result), CVY_ERR_DIVERGED);
    assert_float_equal(result.loss, log(4.0), 1e-6);
    if (!strstr(cvy_error_message(), expected)) {
        fail_msg("expected '%s', got '%s'", expected, cvy_error_message());
    }
    assert_true(get_weight(executor, "first.weight") == 0.0f);
    assert_true(get_weight(executor, "second.weight") == second);
    cvy_executor_destroy(&executor);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

/* 3 / 4 + 3 / 4 of 1e20, then 4 times 1e20 of that: 6e40 is beyond floats, in the first layer alone. */
static void test_one_layer_overflows(void **state)
{
    check_words(*state, 1e20f, 1e20f, 0.0, "layer first: the gradient of first.weight is NaN or infinite in step 0");
}

/* 6 / 4 of 3e38 is beyond floats: the second layer's, nearer the loss, and the first's with it. */
static void test_of_several_the_nearest_to_the_loss_is_named(void **state)
{
    check_words(*state, 1.0f, 3e38f, 0.0, "layer second: the gradient of second.weight is NaN or infinite in step 0");
}

/* The norm of all gradients is not finite: which of them is at fault is asked behind it. */
static void test_clipping_by_norm_names_the_layer_too(void **state)
{
    check_words(*state, 1.0f, 3e38f, 1.0, "layer second: the gradient of second.weight is NaN or infinite in step 0");
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_one_layer_overflows),
        IN_FOLDER(test_of_several_the_nearest_to_the_loss_is_named),
        IN_FOLDER(test_clipping_by_norm_names_the_layer_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
