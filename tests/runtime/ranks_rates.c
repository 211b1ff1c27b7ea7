/*
 * Laws of what a run does along its samples, on the ranks that there are: the learning rate goes by samples of all
 * ranks, before and after a resume under another strategy; what is saved is what was evaluated.
 */
#include "runtime/rank_trainings.h"

#include "folder.h"

/* A strategy, and another one to go on with. */
static const char *const strategies[5][2] = {
    [1] = {"serial", "serial"},
    [2] = {"data", "height=2"},
    [3] = {"data", "pipeline"},
    [4] = {"sample=2,height=2", "data"},
};

/* The folder of the first rank, which all know. */
static const char *make_folder(void **folder)
{
    static char path[64];
    if (world.rank == 0) {
        CHECK(create_test_folder(folder) == 0);
        snprintf(path, sizeof path, "%s/run", (char *)*folder);
    }
    CHECK(cvy_comm_broadcast(world.comm, path, sizeof path, 0) == CVY_OK);
    return path;
}

static void remove_folder(void **folder) { CHECK(world.rank > 0 || remove_test_folder(folder) == 0); }

/*
 * A base of 0.1 for 2 samples is 0.2 for 4. It grows over one epoch and a half, 33 samples, and falls over the 11 that
 * are left of 44 as a cosine. Steps begin behind 0, 4, ... 20 samples of 22, and take 4, or the last of an epoch 2.
 */
static double find_rate(int step)
{
    double before = step / 6 * 22 + step % 6 * 4, with = before + (step % 6 == 5 ? 2 : 4);
    double done = before > 33 ? (before - 33) / 11 : 0.0;
    return with < 33 ? 0.2 * with / 33 : 0.2 * 0.5 * (1 + cos(M_PI * done));
}

static cvy_train_options rising_options(const char *strategy)
{
    cvy_train_options options = small_options(strategy);
    options.rate_base_size = 2;
    options.warmup_epochs = 1.5;
    options.rate = CVY_RATE_COSINE;
    return options;
}

static void test_rates_go_by_samples_of_all_ranks(void **state)
{
    (void)state;
    cvy_model *model = make_small_model(false);
    for (int k = 0; k < 2; k++) {
        told t;
        cvy_train_options options = rising_options(strategies[world.count][k]);
        train(model, &options, &t);
        CHECK(world.rank > 0 || (t.steps == 12 && is_near(t.start.learning_rate, 0.2, 1e-15)));
        for (int i = 0; i < t.steps; i++) {
            CHECK(is_near(t.rate[i], find_rate(i), 1e-12));
        }
    }
    cvy_model_destroy(&model);
}

/* ---- what goes on ---- */

static volatile int asked;

static void ask_after_seven(void *context, const cvy_train_progress *progress)
{
    (void)context;
    asked = progress->step >= 7;
}

/* Stop within the second epoch, where the rate has its way to go; which step it is depends on when ranks hear of it. */
static int64_t stop_midway(const cvy_model *model, const cvy_train_options *options)
{
    const cvy_train_observer observer = {.progress = ask_after_seven};
    cvy_train_options own = *options;
    cvy_train_result result;
    asked = 0;
    own.stop = &asked;
    CHECK(cvy_train(model, &own, &observer, &result) == CVY_PREEMPTED);
    int64_t step = result.step;
    CHECK(step == 7 || step == 8);
    cvy_train_result_clear(&result);
    return step;
}

/* Under the other strategy, with the rates that were to come, to the losses of one rank: saved in single precision. */
static void test_a_resumed_run_has_the_rates_that_were_to_come(void **state)
{
    (void)state;
    void *made = NULL;
    cvy_model *model = make_small_model(false);
    told rest, alone;
    cvy_train_options options = rising_options(strategies[world.count][0]);
    train_alone(model, &options, &alone);
    options.out = make_folder(&made);
    int64_t step = stop_midway(model, &options);
    options.resume = options.out;
    options.strategy = strategies[world.count][1];
    train(model, &options, &rest);
    CHECK(rest.result.step == 12);
    CHECK(world.rank > 0 || (rest.start.first_step == step && rest.steps == 12 - step));
    for (int i = 0; i < rest.steps; i++) {
        CHECK(is_near(rest.rate[i], find_rate((int)step + i), 1e-12));
        CHECK(is_near(rest.loss[i], alone.loss[step + i], 1e-4));
    }
    remove_folder(&made);
    cvy_model_destroy(&model);
}

/* Parts of a batch that norms see apart are part of what a run is, whoever said how many: an option, or a strategy. */
static void test_a_run_with_norms_keeps_the_parts_of_its_strategy(void **state)
{
    (void)state;
    static const char *const parts[5][2] = {
        [1] = {"serial,micro-batches=2", "serial,micro-batches=4"},
        [2] = {"stage=2,micro-batches=2", "stage=2,micro-batches=4"},
        [3] = {"stage=3,micro-batches=2", "stage=3,micro-batches=4"},
        [4] = {"stage=4,micro-batches=2", "stage=4,micro-batches=4"},
    };
    void *made = NULL;
    cvy_model *model = make_small_model(true);
    cvy_train_options options = small_options(parts[world.count][0]);
    cvy_train_result result;
    told t;
    options.train_samples = 20;
    options.epochs = 1;
    options.out = make_folder(&made);
    train(model, &options, &t);
    options.resume = options.out;
    options.strategy = parts[world.count][1];
    options.epochs = 2;
    CHECK(cvy_train(model, &options, NULL, &result) == CVY_ERR_INPUT);
    CHECK(strstr(cvy_error_message(), "micro-batches"));
    cvy_train_result_clear(&result);
    options.strategy = parts[world.count][0];
    train(model, &options, &t);
    remove_folder(&made);
    cvy_model_destroy(&model);
}

/* ---- running statistics ---- */

/* Each rank's norms have statistics of their own; what is evaluated are those of all, and so says the file. */
static void test_what_was_evaluated_is_what_was_saved(void **state)
{
    (void)state;
    void *made = NULL;
    cvy_model *model = make_small_model(true);
    told t;
    cvy_train_options options = small_options("data");
    options.sync_norms = "none";
    options.epochs = 1; /* else an earlier one may be the best, which is what is evaluated */
    options.out = make_folder(&made);
    train(model, &options, &t);
    for (int alone = 0; alone < 2; alone++) {
        cvy_evaluation found;
        cvy_train_options reading = small_options(NULL);
        reading.comm = alone ? NULL : world.comm;
        CHECK(cvy_evaluate(model, options.out, &reading, NULL, &found) == CVY_OK);
        CHECK(found.samples == 9);
        CHECK(is_near(found.loss, t.result.validation_loss, 1e-6));
        CHECK(found.accuracy == t.result.validation_accuracy);
    }
    CHECK(cvy_comm_agree(world.comm, CVY_OK) == CVY_OK); /* all have read */
    remove_folder(&made);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_go_by_samples_of_all_ranks),
        cmocka_unit_test(test_a_resumed_run_has_the_rates_that_were_to_come),
        cmocka_unit_test(test_a_run_with_norms_keeps_the_parts_of_its_strategy),
        cmocka_unit_test(test_what_was_evaluated_is_what_was_saved),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
