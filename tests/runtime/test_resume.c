/* Stopped and resumed: the same bits as in one go, and what a resume refuses. */
#include <math.h>

#include "runtime/checkpoint_record.h"
#include "runtime/small_training.h"

/* Stopped after any number of steps and resumed: the same checkpoint as of a run that was not stopped. */
static void require_resume(const char *folder, const char *net, cvy_train_options options, const char *name)
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
    const char *folder = *state;
    cvy_train_options options = small_options();
    options.rate = CVY_RATE_COSINE;
    options.warmup_epochs = 0.5;
    require_resume(folder, "cifar10-quick", options, "whole");
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
        require_resume(folder, "lenet5", options, name);
    }
}

/* What a resume must refuse: another model, another seed, no run there; and a folder that holds a run already. */
static void test_resume_refuses_what_does_not_fit(void **state)
{
    const char *folder = *state;
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
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "saved with seed 1, this run has 2"));
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
    const char *folder = *state;
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

/* Stop a run of 22 samples in batches of 8 after its first step. */
static void stop_after_one_step(const cvy_model *model, const char *run)
{
    stopper s = {.after = 1};
    cvy_train_observer observer = {.context = &s, .progress = count_down};
    cvy_train_options options = small_options();
    cvy_train_result result;
    options.out = run;
    options.stop = &s.stop;
    assert_int_equal(cvy_train(model, &options, &observer, &result), CVY_PREEMPTED);
    cvy_train_result_clear(&result);
}

static void refuse_resume(const cvy_model *model, const cvy_train_options *options, const char *words)
{
    cvy_train_result result;
    assert_int_equal(cvy_train(model, options, NULL, &result), CVY_ERR_INPUT);
    if (!strstr(cvy_error_message(), words)) {
        fail_msg("expected '%s', got '%s'", words, cvy_error_message());
    }
    cvy_train_result_clear(&result);
}

/* What decides which samples make which step is in the checkpoint: batch, count and kind of the training samples. */
static void test_resume_keeps_the_order_of_samples(void **state)
{
    cvy_model *model = open_model("lenet5");
    const char *run = test_path(*state, "run");
    cvy_train_options options = small_options();
    cvy_train_result result;
    stop_after_one_step(model, run);
    options.resume = run;
    options.batch = 4;
    refuse_resume(model, &options, "saved with batch 8, this run has 4");
    options.batch = 8;
    options.train_samples = 30;
    refuse_resume(model, &options, "saved with train-samples 22, this run has 30");
    options.train_samples = 22;
    options.data = "digits";
    refuse_resume(model, &options, "saved with data of kind random, this run has digits");
    options.data = "random";
    options.micro_batches = 2; /* no layer of lenet5 can tell */
    options.test_samples = 12; /* this, and how samples are read and rates go, may change */
    options.data_threads = 3;
    options.learning_rate = 0.005;
    options.checkpoint_every = 1;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
    assert_int_equal(result.step, 6);
    cvy_train_result_clear(&result);
    cvy_model_destroy(&model);
}

/* Batch norms normalise each part of a batch by itself: with them, a run keeps its micro-batches. */
static void test_resume_keeps_micro_batches_where_they_tell(void **state)
{
    cvy_model *model = open_model("resnet18:size=32,classes=10");
    const char *run = test_path(*state, "run");
    cvy_train_options options = small_options();
    cvy_train_result result;
    stop_after_one_step(model, run);
    options.resume = run;
    options.micro_batches = 2;
    refuse_resume(model, &options, "saved with micro-batches 1, this run has 2");
    options.micro_batches = 1;
    options.steps = 2;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
    cvy_train_result_clear(&result);
    cvy_model_destroy(&model);
}

/*
 * A checkpoint that does not say its batch: 8 of 22 samples are trained, no batch of 6 begins there, and 6 samples in
 * all are fewer; batches of 2 go on, and from then on the run keeps them.
 */
static void test_resume_refuses_batches_that_do_not_meet(void **state)
{
    cvy_model *model = open_model("lenet5");
    const char *run = test_path(*state, "run");
    cvy_checkpoint_record record;
    cvy_train_options options = small_options();
    cvy_train_result result;
    stop_after_one_step(model, run);
    const char *checkpoint = test_path(*state, "run/checkpoints/step-00000001");
    assert_int_equal(cvy_checkpoint_record_load(checkpoint, &record), CVY_OK);
    assert_int_equal(record.position.batch, 8);
    assert_int_equal(record.position.train_samples, 22);
    assert_string_equal(record.position.data, "random");
    record.position.batch = record.position.train_samples = 0;
    record.position.data[0] = '\0';
    assert_int_equal(cvy_checkpoint_record_save(checkpoint, &record), CVY_OK);
    options.resume = run;
    options.batch = 6; /* 14 are left, 6 + 6 + 2, where an epoch's last batch is of 4 */
    refuse_resume(model, &options, "saved 8 samples into an epoch");
    options.batch = 2;
    options.train_samples = 6;
    refuse_resume(model, &options, "saved 8 samples into an epoch");
    options.train_samples = 22;
    assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
    cvy_train_result_clear(&result);
    options.batch = 1;
    refuse_resume(model, &options, "saved with batch 2, this run has 1");
    cvy_model_destroy(&model);
}

/* Lines of steps and epochs, which a run in one go and a resumed one must have alike; cvy_free(). */
static char *read_steps(const char *run)
{
    char *text = NULL, *next, *to;
    size_t bytes;
    assert_int_equal(cvy_file_read(test_path(run, "metrics.jsonl"), 1 << 20, CVY_ERR_IO, &text, &bytes), CVY_OK);
    to = text;
    for (char *line = text; *line; line = next) {
        next = strchr(line, '\n') + 1;
        if (strncmp(line, "{\"event\":\"step\"", 15) == 0 || strncmp(line, "{\"event\":\"epoch\"", 16) == 0) {
            memmove(to, line, (size_t)(next - line));
            to += next - line;
        }
    }
    *to = '\0';
    return text;
}

/* The newest checkpoints are the same in all that they say: weights, place, best result so far. */
static void require_equal_ends(const char *whole, const char *run)
{
    size_t bytes[2];
    char *lines[2] = {read_steps(whole), read_steps(run)};
    char *place[2] = {read_newest(whole, "state.json", &bytes[0]), read_newest(run, "state.json", &bytes[1])};
    require_equal_checkpoints(whole, run);
    assert_string_equal(lines[1], lines[0]);
    assert_string_equal(place[1], place[0]);
    for (int i = 0; i < 2; i++) {
        cvy_free(lines[i]);
        cvy_free(place[i]);
    }
}

/*
 * `steps` end after 1 to 5 of 6 steps, with an evaluation there; resumed, the run ends as if it had gone through. At a
 * rate of 0 all results are alike, so that the first of them stays the best: it must be an epoch's.
 */
static void test_steps_that_end_within_an_epoch_leave_no_trace(void **state)
{
    cvy_model *model = open_model("lenet5");
    for (int after = 0; after < 12; after++) { /* 0 and 6: in one go */
        static const char *const names[2] = {"learning", "constant"};
        cvy_train_options options = small_options();
        cvy_train_result result;
        char whole[64], run[80];
        snprintf(whole, sizeof whole, "%s/%s", (const char *)*state, names[after / 6]);
        snprintf(run, sizeof run, "%s-%d", whole, after % 6);
        options.learning_rate = after < 6 ? 0.01 : 0.0;
        options.no_metrics_rates = true;
        options.out = after % 6 ? run : whole;
        options.steps = after % 6;
        assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
        assert_true(isfinite(result.validation_loss));
        cvy_train_result_clear(&result);
        if (after % 6) {
            options.out = NULL;
            options.resume = run;
            options.steps = 0;
            assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
            cvy_train_result_clear(&result);
            require_equal_ends(whole, run);
        }
    }
    cvy_model_destroy(&model);
}

/* Stopped in the evaluation where `steps` ended within an epoch: made up for once, and once only. */
static void test_a_stop_in_the_evaluation_within_an_epoch_is_made_up_for(void **state)
{
    cvy_model *model = open_model("lenet5");
    stopper s = {.after = 4};
    cvy_train_observer observer = {.context = &s, .progress = count_down};
    cvy_train_options options = small_options();
    cvy_train_result result;
    const char *run = test_path(*state, "run");
    options.out = run;
    options.steps = 4;
    options.stop = &s.stop;
    assert_int_equal(cvy_train(model, &options, &observer, &result), CVY_PREEMPTED);
    cvy_train_result_clear(&result);
    options.out = NULL;
    options.resume = run;
    options.stop = NULL;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(cvy_train(model, &options, NULL, &result), CVY_OK);
        assert_int_equal(result.step, 4);
        assert_int_equal(isfinite(result.validation_loss) != 0, !again);
        cvy_train_result_clear(&result);
        char *lines = read_steps(run);
        const char *epoch = strstr(lines, "{\"event\":\"epoch\",\"step\":4,\"epoch\":2,");
        assert_non_null(epoch);
        assert_null(strstr(epoch + 20, "\"epoch\",\"step\":4"));
        cvy_free(lines);
    }
    cvy_model_destroy(&model);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_stop_and_resume_changes_no_bit),
        IN_FOLDER(test_resume_refuses_what_does_not_fit),
        IN_FOLDER(test_a_stop_in_the_last_evaluation_is_made_up_for),
        IN_FOLDER(test_resume_keeps_the_order_of_samples),
        IN_FOLDER(test_resume_keeps_micro_batches_where_they_tell),
        IN_FOLDER(test_resume_refuses_batches_that_do_not_meet),
        IN_FOLDER(test_steps_that_end_within_an_epoch_leave_no_trace),
        IN_FOLDER(test_a_stop_in_the_evaluation_within_an_epoch_is_made_up_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
