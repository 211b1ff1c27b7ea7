/* Laws of a whole training: memory as planned, no allocation in the loop, NaN by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/rate.h"
#include "runtime/session.h"
#include "runtime/small_training.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/convoy-test-XXXXXX");
    return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void **state)
{
    (void)state;
    return cvy_folder_remove(folder, CVY_ERR_IO) == CVY_OK ? 0 : 1;
}

/* The allocator's high-water mark is the plan, and the loop takes no memory: for each model, layout and optimizer. */
static void test_memory_is_what_the_plan_says(void **state)
{
    (void)state;
    static const char *const models[] = {"lenet5", "cifar10-quick", "mobilenet-v2:size=32,classes=10",
                                         "cosmoflow:size=16"};
    static const cvy_optimizer_name optimizers[] = {CVY_OPTIMIZE_MOMENTUM, CVY_OPTIMIZE_ADAMW, CVY_OPTIMIZE_LARS,
                                                    CVY_OPTIMIZE_LAMB};
    static const char *const layouts[] = {"auto", "plain", "channels-last", "blocked"};
    for (int i = 0; i < 4; i++) {
        cvy_model *model = open_model(models[i]);
        for (int k = 0; k < 4; k++) {
            cvy_train_options options = small_options();
            cvy_train_result result;
            options.layout = layouts[k];
            options.optimizer = optimizers[k];
            options.clip_norm = k % 2 ? 1.0 : 0.0;
            options.learning_rate = 1e-4;
            if (cvy_train(model, &options, NULL, &result) != CVY_OK) {
                fail_msg("%s %s: %s", models[i], layouts[k], cvy_error_message());
            }
            assert_int_equal(result.tensor_peak_bytes, result.tensor_plan_bytes);
            assert_int_equal(result.loop_allocations, 0);
            assert_int_equal(result.step, 6);
            assert_int_equal(cvy_memory_tensor_bytes(), 0);
            cvy_train_result_clear(&result);
        }
        cvy_model_destroy(&model);
    }
}

/* Evaluation goes by the averages, within the training and from its checkpoint; the weights are elsewhere. */
static void test_averages_are_what_is_evaluated(void **state)
{
    (void)state;
    cvy_model *model = open_model("resnet18:size=32,classes=10");
    cvy_train_options options = small_options();
    cvy_train_result result;
    cvy_evaluation averages, weights;
    char run[128];
    snprintf(run, sizeof run, "%s/averages", folder);
    options.out = run;
    options.ema = 0.75;
    options.epochs = 1;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
    options.out = NULL;
    assert_int_equal(cvy_evaluate(model, run, &options, NULL, &averages), CVY_OK);
    assert_float_equal(averages.loss, result.validation_loss, 1e-6); /* a plan without training has other formats */
    options.ema = 0.0;
    assert_int_equal(cvy_evaluate(model, run, &options, NULL, &weights), CVY_OK);
    assert_true(fabs(weights.loss - averages.loss) > 1e-4);
    cvy_train_result_clear(&result);
    cvy_model_destroy(&model);
}

/* The last rate that a training used. */
static void note_rate(void *context, const cvy_train_progress *progress)
{
    *(double *)context = progress->learning_rate;
}

/* Two epochs are six steps, of 8, 8, 6, 8, 8, 6 samples: asked for either way, the rates are the same. */
static void test_steps_count_the_samples_of_incomplete_batches(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    double rate[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        cvy_train_observer observer = {.context = &rate[i], .progress = note_rate};
        cvy_train_options options = small_options();
        cvy_train_result result;
        options.rate = CVY_RATE_COSINE;
        options.steps = i ? 6 : 0;
        assert_int_equal(cvy_train(model, &options, &observer, &result), CVY_OK);
        assert_int_equal(result.step, 6);
        cvy_train_result_clear(&result);
    }
    assert_float_equal(rate[0], 0.01 * 0.5 * (1.0 + cos(M_PI * 38.0 / 44.0)), 1e-12);
    assert_float_equal(rate[1], rate[0], 1e-12);
    cvy_model_destroy(&model);
}

/* A NaN put into one layer's weights, or gradients that overflow, stop the run; the message has the layer's name. */
static void test_nan_is_named_by_its_layer(void **state)
{
    (void)state;
    cvy_model *model = open_model("resnet18:size=32,classes=10");
    static const char *const victims[] = {"conv1", "layer2.0.conv2", "layer3.1.bn1", "fc"};
    for (int i = 0; i < 4; i++) {
        cvy_session session;
        cvy_train_options options = small_options();
        char parameter[80];
        cvy_executor_result result;
        assert_int_equal(cvy_session_open(model, &options, NULL, true, false, &session), CVY_OK);
        assert_int_equal(cvy_executor_initialise(session.executor, 1), CVY_OK);
        snprintf(parameter, sizeof parameter, "%s.weight", victims[i]);
        ((float *)cvy_state_find(cvy_executor_state(session.executor), parameter)->data)[0] = NAN;
        float *x = cvy_executor_slots(session.executor);
        for (int k = 0; k < 8 * 3 * 32 * 32; k++) {
            x[k] = (float)(k % 7) - 3.0f;
        }
        int32_t label[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        cvy_executor_batch batch = {.x = x, .label = label, .samples = 8};
        cvy_run run = {.seed = 1, .samples = 8, .loss_scale = 0.125, .learning_rate = 0.01, .update = 1};
        assert_int_equal(cvy_executor_run(session.executor, CVY_SCHEDULE_TRAIN, &batch, &run, &result),
                         CVY_ERR_DIVERGED);
        char words[100];
        snprintf(words, sizeof words, "layer %s:", victims[i]);
        if (!strstr(cvy_error_message(), words)) {
            fail_msg("expected '%s', got '%s'", words, cvy_error_message());
        }
        cvy_session_close(&session);
    }
    cvy_model_destroy(&model);
}

/* A step on eight images of stripes. */
static void run_step(cvy_executor *executor, int step)
{
    static const int32_t label[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    float x[8 * 28 * 28];
    for (int k = 0; k < 8 * 28 * 28; k++) {
        x[k] = (float)(k % 11) * 0.1f;
    }
    const cvy_executor_batch batch = {.x = x, .label = label, .samples = 8};
    const cvy_run run = {.step = step, .samples = 8, .loss_scale = 0.125, .learning_rate = 0.1, .update = step + 1};
    cvy_executor_result result;
    assert_int_equal(cvy_executor_run(executor, CVY_SCHEDULE_TRAIN, &batch, &run, &result), CVY_OK);
    assert_true(result.loss > 0.0);
}

/* Two steps with a measurement of the walk between them leave the weights and velocities of two; it counts as none. */
static void test_measuring_the_walk_changes_nothing_that_stays(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    cvy_session session[2];
    cvy_train_options options = small_options();
    for (int i = 0; i < 2; i++) {
        double step_s = 0.0;
        assert_int_equal(cvy_session_open(model, &options, NULL, true, false, &session[i]), CVY_OK);
        cvy_executor *executor = session[i].executor;
        assert_int_equal(cvy_executor_initialise(executor, 1), CVY_OK);
        run_step(executor, 0);
        if (i == 1) {
            assert_int_equal(cvy_executor_measure_overhead(executor, CVY_SCHEDULE_TRAIN, &step_s), CVY_OK);
            assert_true(step_s > 0.0);
        }
        run_step(executor, 1);
        assert_int_equal(cvy_executor_profile(executor, CVY_SCHEDULE_TRAIN)[0].calls, 2);
    }
    const cvy_state *plain = cvy_executor_state(session[0].executor);
    const cvy_state *measured = cvy_executor_state(session[1].executor);
    for (int i = 0; i < plain->count; i++) {
        const cvy_state_tensor *a = &plain->tensor[i], *b = &measured->tensor[i];
        assert_memory_equal(a->data, b->data, (size_t)cvy_tensor_bytes(&a->tensor));
    }
    cvy_session_close(&session[0]);
    cvy_session_close(&session[1]);
    cvy_model_destroy(&model);
}

/* Rates by hand: 100 samples an epoch, 10 epochs, one of warm-up. */
static void test_learning_rates_follow_their_formulas(void **state)
{
    (void)state;
    cvy_rate rate = {.kind = CVY_RATE_COSINE, .base = 2.0, .warmup_samples = 100, .total_samples = 1000};
    assert_float_equal(cvy_rate_at(&rate, 0, 10), 0.2, 1e-12);     /* 10 of 100 samples warm */
    assert_float_equal(cvy_rate_at(&rate, 50, 10), 1.2, 1e-12);
    assert_float_equal(cvy_rate_at(&rate, 100, 10), 2.0, 1e-12);
    assert_float_equal(cvy_rate_at(&rate, 550, 10), 1.0, 1e-12);   /* half of the 900 that are left */
    assert_float_equal(cvy_rate_at(&rate, 1000, 10), 0.0, 1e-12);
    rate = (cvy_rate){.kind = CVY_RATE_STEP, .base = 1.0, .step_samples = 300, .gamma = 0.1};
    assert_float_equal(cvy_rate_at(&rate, 299, 10), 1.0, 1e-12);
    assert_float_equal(cvy_rate_at(&rate, 300, 10), 0.1, 1e-12);
    assert_float_equal(cvy_rate_at(&rate, 900, 10), 0.001, 1e-12);
    rate = (cvy_rate){.kind = CVY_RATE_EXPONENTIAL, .base = 1.0, .step_samples = 300, .gamma = 0.25};
    assert_float_equal(cvy_rate_at(&rate, 150, 10), 0.5, 1e-12);   /* the root of a quarter */
    assert_float_equal(cvy_rate_at(&rate, 600, 10), 0.0625, 1e-12);
    rate = (cvy_rate){.kind = CVY_RATE_POLYNOMIAL, .base = 2.0, .warmup_samples = 100, .total_samples = 1000,
                      .power = 2.0};
    assert_float_equal(cvy_rate_at(&rate, 100, 10), 2.0, 1e-12);
    assert_float_equal(cvy_rate_at(&rate, 550, 10), 0.5, 1e-12);   /* half is left: a quarter of 2 */
    assert_float_equal(cvy_rate_at(&rate, 1000, 10), 0.0, 1e-12);
    rate = (cvy_rate){.kind = CVY_RATE_MULTISTEP, .base = 1.0, .gamma = 0.1};
    assert_int_equal(cvy_rate_read_milestones("3,6.5,8", 100, &rate), CVY_OK);
    assert_float_equal(cvy_rate_at(&rate, 299, 10), 1.0, 1e-12);
    assert_float_equal(cvy_rate_at(&rate, 300, 10), 0.1, 1e-12);
    assert_float_equal(cvy_rate_at(&rate, 650, 10), 0.01, 1e-12);
    assert_float_equal(cvy_rate_at(&rate, 5000, 10), 0.001, 1e-12);
    rate = (cvy_rate){.kind = CVY_RATE_CONSTANT, .base = 0.5};
    assert_float_equal(cvy_rate_at(&rate, 123456, 10), 0.5, 1e-12);
}

static void test_milestones_must_rise(void **state)
{
    (void)state;
    static const char *const bad[] = {"3,2", "0", "-1", "3,,4", "3,", ",3", "x", "3;4", "nan", "inf", "3,3"};
    cvy_rate rate = {.kind = CVY_RATE_MULTISTEP};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(cvy_rate_read_milestones(bad[i], 100, &rate), CVY_ERR_INPUT);
        assert_non_null(strstr(cvy_error_message(), bad[i]));
    }
}

static void take_rate(void *context, const cvy_train_start *start) { *(double *)context = start->learning_rate; }

/* A base of 0.1 for 32 samples is 0.1 * 8 / 32 for a batch of 8. */
static void test_the_base_rate_grows_with_the_batch(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    cvy_train_options options = small_options();
    cvy_train_result result;
    double rate = 0.0;
    cvy_train_observer observer = {.context = &rate, .start = take_rate};
    options.steps = 1;
    options.learning_rate = 0.1;
    options.rate_base_size = 32;
    assert_int_equal(cvy_train(model, &options, &observer, &result), CVY_OK);
    assert_float_equal(rate, 0.025, 1e-15);
    cvy_train_result_clear(&result);
    cvy_model_destroy(&model);
}

/* Initial weights: a function of the seed alone, with the moments that their rules say. */
static void test_initial_weights_have_their_moments(void **state)
{
    (void)state;
    cvy_model *model = open_model("resnet18:size=32,classes=10");
    cvy_session session;
    cvy_train_options options = small_options();
    assert_int_equal(cvy_session_open(model, &options, NULL, true, false, &session), CVY_OK);
    assert_int_equal(cvy_executor_initialise(session.executor, 1), CVY_OK);
    const cvy_state_tensor *conv = cvy_state_find(cvy_executor_state(session.executor), "layer4.1.conv2.weight");
    const float *w = conv->data;
    int64_t count = 512 * 512 * 9; /* multiples of the block: no padding */
    double sum = 0.0;
    double squares = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += w[i];
        squares += (double)w[i] * w[i];
    }
    double deviation = sqrt(2.0 / (512 * 9)); /* Kaiming, fan-out = 512 * 3 * 3 */
    assert_true(fabs(sum / (double)count) < 5 * deviation / sqrt((double)count));
    assert_float_equal(sqrt(squares / (double)count) / deviation, 1.0, 5 / sqrt(2.0 * (double)count));
    cvy_session_close(&session);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_what_the_plan_says),
        cmocka_unit_test(test_averages_are_what_is_evaluated),
        cmocka_unit_test(test_steps_count_the_samples_of_incomplete_batches),
        cmocka_unit_test(test_nan_is_named_by_its_layer),
        cmocka_unit_test(test_measuring_the_walk_changes_nothing_that_stays),
        cmocka_unit_test(test_learning_rates_follow_their_formulas),
        cmocka_unit_test(test_milestones_must_rise),
        cmocka_unit_test(test_the_base_rate_grows_with_the_batch),
        cmocka_unit_test(test_initial_weights_have_their_moments),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
