/* Ranks that were asked for different things, or hold different models, are refused before they wait for each other. */
#include "runtime/rank_trainings.h"

/* What the last rank says otherwise; the name of the option that all hear. */
static void change_seed(cvy_train_options *o) { o->seed = 2; }
static void change_batch(cvy_train_options *o) { o->batch = 5; }
static void change_steps(cvy_train_options *o) { o->steps = 3; }
static void change_rate(cvy_train_options *o) { o->learning_rate = 0.2; }
static void change_buckets(cvy_train_options *o) { o->bucket_bytes = 1; }
static void change_strategy(cvy_train_options *o) { o->strategy = "filter"; }
static void change_norms(cvy_train_options *o) { o->sync_norms = "sample"; }
static void change_samples(cvy_train_options *o) { o->train_samples = 23; }

static const struct {
    const char *name;
    void (*change)(cvy_train_options *options);
} changes[] = {{"seed", change_seed},
               {"batch", change_batch},
               {"steps", change_steps},
               {"learning_rate", change_rate},
               {"bucket_bytes", change_buckets},
               {"strategy", change_strategy},
               {"sync_norms", change_norms},
               {"train_samples", change_samples}};

/* All return the same words. */
static void expect_refusal(const cvy_model *model, const cvy_train_options *options, const char *words)
{
    cvy_train_result result;
    char line[160];
    snprintf(line, sizeof line, "rank %d has another %s than rank 0", world.count - 1, words);
    CHECK(cvy_train(model, options, NULL, &result) == CVY_ERR_INPUT);
    CHECK(strstr(cvy_error_message(), line));
    cvy_train_result_clear(&result);
}

/* Afterwards they train together as if nothing had been. */
static void test_ranks_with_other_options_are_refused_and_named(void **state)
{
    (void)state;
    cvy_model *model = make_small_model(true);
    told t;
    for (size_t i = 0; world.count > 1 && i < sizeof changes / sizeof changes[0]; i++) {
        char words[64];
        cvy_train_options options = small_options("data");
        if (world.rank == world.count - 1) {
            changes[i].change(&options);
        }
        snprintf(words, sizeof words, "option %s", changes[i].name);
        expect_refusal(model, &options, words);
    }
    cvy_train_options options = small_options("data");
    train(model, &options, &t);
    CHECK(t.result.step == 12);
    cvy_model_destroy(&model);
}

/* A norm more: other parameters, other exchanges. */
static void test_a_rank_with_another_model_is_refused_and_named(void **state)
{
    (void)state;
    cvy_model *model = make_small_model(world.count > 1 && world.rank == world.count - 1);
    cvy_train_options options = small_options("data");
    if (world.count > 1) {
        expect_refusal(model, &options, "model");
    }
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_with_other_options_are_refused_and_named),
        cmocka_unit_test(test_a_rank_with_another_model_is_refused_and_named),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
