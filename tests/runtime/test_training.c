/* Laws of a whole training: memory as planned, no allocation in the loop, stop and resume, NaN by name. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "convoy/train.h"
#include "runtime/checkpoint.h"
#include "runtime/rate.h"
#include "runtime/session.h"

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

static cvy_model *open_model(const char *text)
{
    cvy_model *model = NULL;
    if (cvy_model_open(text, &model) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return model;
}

static cvy_train_options small_options(void)
{
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    options.data = "random";
    options.train_samples = 22; /* batches of 8, 8, 6 */
    options.test_samples = 10;
    options.batch = 8;
    options.threads = 1;
    options.epochs = 2;
    return options;
}

/* The allocator's high-water mark is the plan, and the loop takes no memory: for each model, layout and optimizer. */
static void test_memory_is_what_the_plan_says(void **state)
{
    (void)state;
    static const char *const models[] = {"lenet5", "cifar10-quick", "resnet18:size=32,classes=10", "cosmoflow:size=16"};
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

/* Ask for a stop after so many iterations. */
typedef struct stopper {
    int after;
    volatile int stop;
} stopper;

static void count_down(void *context, const cvy_train_progress *progress)
{
    stopper *s = context;
    (void)progress;
    if (--s->after == 0) {
        s->stop = 1;
    }
}

static char *read_newest(const char *run, const char *file, size_t *bytes)
{
    char *path = NULL;
    char *data = NULL;
    char checkpoints[160];
    char full[512];
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", run);
    assert_int_equal(cvy_checkpoint_find(checkpoints, &path, NULL), CVY_OK);
    snprintf(full, sizeof full, "%s/%s", path, file);
    assert_int_equal(cvy_file_read(full, 1 << 28, CVY_ERR_IO, &data, bytes), CVY_OK);
    cvy_free(path);
    return data;
}

/* The files of the newest checkpoints of two runs are the same, byte for byte. */
static void require_equal_checkpoints(const char *one, const char *other)
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
    for (int i = 0; i < 2; i++) {
        size_t bytes[2];
        char *a = read_newest(one, files[i], &bytes[0]);
        char *b = read_newest(other, files[i], &bytes[1]);
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(a, b, bytes[0]);
        cvy_free(a);
        cvy_free(b);
    }
}

/* Stopped after any number of steps and resumed: the same checkpoint as of a run that was not stopped. */
static void require_resume(const char *net, cvy_train_options options, const char *name)
{
    cvy_model *model = open_model(net);
    cvy_train_result result;
    char whole[160];
    snprintf(whole, sizeof whole, "%s/%s", folder, name);
    options.out = whole;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
    int64_t steps = result.step;
    cvy_train_result_clear(&result);
    for (int after = 1; after < steps; after++) {
        char run[160];
        stopper s = {.after = after};
        cvy_train_observer observer = {.context = &s, .progress = count_down};
        snprintf(run, sizeof run, "%s/%s-%d", folder, name, after);
        options.out = run;
        options.resume = NULL;
        options.stop = &s.stop;
        assert_int_equal(cvy_train(model, &options, &observer, &result), CVY_PREEMPTED);
        assert_int_equal(result.step, after);
        cvy_train_result_clear(&result);
        options.out = NULL;
        options.resume = run;
        options.stop = NULL;
        assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
        assert_int_equal(result.step, steps);
        cvy_train_result_clear(&result);
        require_equal_checkpoints(whole, run);
    }
    cvy_model_destroy(&model);
}

static void test_stop_and_resume_changes_no_bit(void **state)
{
    (void)state;
    cvy_train_options options = small_options();
    options.rate = CVY_RATE_COSINE;
    options.warmup_epochs = 0.5;
    require_resume("cifar10-quick", options, "whole");
    static const cvy_optimizer_name rules[] = {CVY_OPTIMIZE_ADAM, CVY_OPTIMIZE_LARS, CVY_OPTIMIZE_LAMB};
    for (int i = 0; i < 3; i++) {
        char name[16];
        options = small_options();
        options.optimizer = rules[i];
        options.epochs = 1;
        options.clip_norm = 0.5;
        options.ema = 0.5;
        options.rate = CVY_RATE_POLYNOMIAL;
        snprintf(name, sizeof name, "rule-%d", i);
        require_resume("lenet5", options, name);
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

/* What a resume must refuse: another model, another seed, no run there; and a folder that holds a run already. */
static void test_resume_refuses_what_does_not_fit(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    cvy_model *other = open_model("lenet5:classes=9");
    char run[128];
    cvy_train_options options = small_options();
    cvy_train_result result;
    snprintf(run, sizeof run, "%s/refuse", folder);
    options.out = run;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
    cvy_train_result_clear(&result);
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "--resume"));
    cvy_train_result_clear(&result);
    options.out = NULL;
    options.resume = run;
    assert_int_equal(cvy_train(other, &options, NULL, &result), CVY_ERR_CHECKPOINT);
    cvy_train_result_clear(&result);
    options.seed = 2;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_ERR_CHECKPOINT);
    assert_non_null(strstr(cvy_error_message(), "seed"));
    cvy_train_result_clear(&result);
    options.resume = folder;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_ERR_INPUT);
    cvy_train_result_clear(&result);
    cvy_model_destroy(&model);
    cvy_model_destroy(&other);
}

/* Stopped after the last step, before the evaluation: the resumed run has that still to make, and its epoch to note. */
static void test_a_stop_in_the_last_evaluation_is_made_up_for(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    char run[128];
    stopper s = {.after = 6};
    cvy_train_observer observer = {.context = &s, .progress = count_down};
    cvy_train_options options = small_options();
    cvy_train_result result;
    snprintf(run, sizeof run, "%s/last", folder);
    options.out = run;
    options.stop = &s.stop;
    assert_int_equal(cvy_train(model, &options, &observer, &result), CVY_PREEMPTED);
    cvy_train_result_clear(&result);
    options.out = NULL;
    options.resume = run;
    options.stop = NULL;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
    assert_int_equal(result.step, 6);
    assert_int_equal(result.epoch, 2);
    assert_true(isfinite(result.validation_loss));
    cvy_train_result_clear(&result);
    cvy_model_destroy(&model);
}

/* 8 of 22 samples are trained: no batch of 6 begins there, and 6 samples in all are fewer; batches of 2 go on. */
static void test_resume_refuses_batches_that_do_not_meet(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    char run[128];
    stopper s = {.after = 1};
    cvy_train_observer observer = {.context = &s, .progress = count_down};
    cvy_train_options options = small_options();
    cvy_train_result result;
    snprintf(run, sizeof run, "%s/meet", folder);
    options.out = run;
    options.stop = &s.stop;
    assert_int_equal(cvy_train(model, &options, &observer, &result), CVY_PREEMPTED);
    cvy_train_result_clear(&result);
    options.out = NULL;
    options.resume = run;
    options.stop = NULL;
    options.batch = 6; /* 14 are left, 6 + 6 + 2, where an epoch's last batch is of 4 */
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "saved 8 samples into an epoch"));
    cvy_train_result_clear(&result);
    options.batch = 2;
    options.train_samples = 6;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_ERR_INPUT);
    cvy_train_result_clear(&result);
    options.train_samples = 22;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
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
        assert_int_equal(cvy_session_open(model, &options, true, false, &session), CVY_OK);
        assert_int_equal(cvy_executor_initialise(session.executor, 1), CVY_OK);
        snprintf(parameter, sizeof parameter, "%s.weight", victims[i]);
        ((float *)cvy_state_find(cvy_executor_state(session.executor), parameter)->data)[0] = NAN;
        float *x = cvy_executor_slots(session.executor);
        for (int k = 0; k < 8 * 3 * 32 * 32; k++) {
            x[k] = (float)(k % 7) - 3.0f;
        }
        int32_t label[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        cvy_executor_batch batch = {x, label, 8};
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
    assert_int_equal(cvy_session_open(model, &options, true, false, &session), CVY_OK);
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
        cmocka_unit_test(test_stop_and_resume_changes_no_bit),
        cmocka_unit_test(test_averages_are_what_is_evaluated),
        cmocka_unit_test(test_resume_refuses_what_does_not_fit),
        cmocka_unit_test(test_a_stop_in_the_last_evaluation_is_made_up_for),
        cmocka_unit_test(test_resume_refuses_batches_that_do_not_meet),
        cmocka_unit_test(test_steps_count_the_samples_of_incomplete_batches),
        cmocka_unit_test(test_nan_is_named_by_its_layer),
        cmocka_unit_test(test_learning_rates_follow_their_formulas),
        cmocka_unit_test(test_milestones_must_rise),
        cmocka_unit_test(test_the_base_rate_grows_with_the_batch),
        cmocka_unit_test(test_initial_weights_have_their_moments),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
