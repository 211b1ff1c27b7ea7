/*
 * Laws of batches on the ranks that there are: shares that are uneven or empty are exact, whatever the strategy, and
 * the order of samples and what is drawn for them know nothing of ranks. The judge is one rank alone, in double.
 */
#include "runtime/rank_trainings.h"

enum { STRATEGIES = 5 };

/* Along samples first; then what has whole samples on several ranks, or on one of them. */
static const char *const strategies[5][STRATEGIES] = {
    [1] = {"serial"},
    [2] = {"data", "height=2", "pipeline", "filter"},
    [3] = {"data", "height=3", "pipeline", "filter"},
    [4] = {"data", "sample=2,height=2", "sample=2,stage=2", "pipeline", "sample=2,channel=2"},
};

/*
 * 1003 in batches of 96 leave 43, which no number of ranks but one divides; 97 leave a single one, for which all but
 * one rank have nothing. The shares of right answers are those of one rank to the last bit, of that many samples.
 */
static void test_evaluation_counts_each_sample_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {1003, 97};
    cvy_model *model = make_small_model(false);
    for (int i = 0; i < 2; i++) {
        told alone;
        cvy_train_options options = small_options(NULL);
        options.train_samples = options.batch = 96;
        options.epochs = 1;
        options.test_samples = counts[i];
        train_alone(model, &options, &alone);
        double right = alone.result.validation_accuracy * (double)counts[i];
        CHECK(is_near(right, round(right), 1e-12) && right > 0.0 && right < (double)counts[i]);
        for (int k = 0; k < STRATEGIES && strategies[world.count][k]; k++) {
            told all;
            options.strategy = strategies[world.count][k];
            train(model, &options, &all);
            CHECK(all.result.validation_accuracy == alone.result.validation_accuracy);
            CHECK(is_near(all.result.validation_loss, alone.result.validation_loss, 1e-12));
        }
    }
    cvy_model_destroy(&model);
}

/* All ranks have had as many steps, and what they found is what one rank finds. */
static void require_equal_trainings(const told *all, const told *alone)
{
    int64_t steps[MAX_RANKS];
    CHECK(cvy_comm_gather_bytes(world.comm, &all->result.step, sizeof steps[0], steps) == CVY_OK);
    for (int i = 0; i < world.count; i++) {
        CHECK(steps[i] == alone->result.step);
    }
    CHECK(is_near(all->result.loss, alone->result.loss, 1e-11));
    CHECK(is_near(all->result.validation_loss, alone->result.validation_loss, 1e-11));
    CHECK(all->result.train_accuracy == alone->result.train_accuracy);
    for (int i = 0; world.rank == 0 && i < alone->steps; i++) {
        CHECK(is_near(all->loss[i], alone->loss[i], 1e-11));
    }
}

/*
 * Batches of 4, the last of an epoch of 2: of 3 and of 4 ranks some have nothing then. They join every step, the norms'
 * merging among them, to which they bring no elements; samples are shifted and mirrored as they are for one rank.
 */
static void test_ranks_without_samples_join_every_step(void **state)
{
    (void)state;
    cvy_model *model = make_small_model(true);
    told alone;
    cvy_train_options options = small_options(NULL);
    options.crop_padding = 2;
    options.hflip = 0.5;
    train_alone(model, &options, &alone);
    CHECK(alone.result.step == 12);
    options.sync_norms = "sample,height";
    for (int k = 0; k < STRATEGIES && strategies[world.count][k]; k++) {
        told all;
        options.strategy = strategies[world.count][k];
        train(model, &options, &all);
        require_equal_trainings(&all, &alone);
    }
    cvy_model_destroy(&model);
}

/* A batch of 1 over several ranks is refused, in the same words on all of them. */
static void test_batches_smaller_than_the_ranks_are_refused_on_all(void **state)
{
    (void)state;
    char words[96];
    cvy_model *model = make_small_model(false);
    cvy_train_options options = small_options("data");
    cvy_train_result result;
    options.batch = 1;
    cvy_status status = cvy_train(model, &options, NULL, &result);
    CHECK(status == (world.count == 1 ? CVY_OK : CVY_ERR_INFEASIBLE));
    snprintf(words, sizeof words, "sample=%d needs a batch of at least %d, got 1", world.count, world.count);
    CHECK(world.count == 1 || strstr(cvy_error_message(), words));
    cvy_train_result_clear(&result);
    cvy_model_destroy(&model);
}

/* Mean over one epoch's steps; the last batch of 2 counts half. */
static double find_mean(const double *loss)
{
    double sum = 0.0;
    for (int i = 0; i < 6; i++) {
        sum += loss[i] * (i < 5 ? 4.0 : 2.0);
    }
    return sum / 22.0;
}

/*
 * Where nothing is learnt each sample keeps its loss: another order gives other batches, of the same mean over an
 * epoch; where samples are shifted anew in each epoch, the mean changes, too. Both are for any ranks what they are for
 * one.
 */
static void test_order_and_shifts_are_of_the_epoch_and_not_of_the_ranks(void **state)
{
    (void)state;
    cvy_model *model = make_small_model(false);
    for (int shifted = 0; shifted < 2; shifted++) {
        told alone, all;
        cvy_train_options options = small_options(strategies[world.count][0]);
        options.learning_rate = 0.0;
        options.crop_padding = shifted ? 3 : 0;
        train_alone(model, &options, &alone);
        train(model, &options, &all);
        require_equal_trainings(&all, &alone);
        int moved = 0;
        for (int i = 0; i < 6; i++) {
            moved += !is_near(alone.loss[6 + i], alone.loss[i], 1e-6);
        }
        CHECK(moved == 6);
        CHECK(is_near(find_mean(alone.loss + 6), find_mean(alone.loss), 1e-12) == !shifted);
    }
    cvy_model_destroy(&model);
}

/* 8 samples in 3 parts are 3, 3 and 2; a last batch of 6 is 2, 2, 2. */
static void test_uneven_micro_batches_are_the_whole_batch(void **state)
{
    (void)state;
    static const char *const parts[5][STRATEGIES] = {
        [1] = {"serial,micro-batches=3"},
        [2] = {"stage=2,micro-batches=3", "stage=2,micro-batches=3,pipeline=gpipe"},
        [3] = {"stage=3,micro-batches=3", "stage=3,micro-batches=3,pipeline=gpipe"},
        [4] = {"stage=4,micro-batches=3", "sample=2,stage=2,micro-batches=3"},
    };
    cvy_model *model = make_small_model(false);
    told alone;
    cvy_train_options options = small_options(NULL);
    options.batch = 8;
    train_alone(model, &options, &alone);
    for (int k = 0; k < STRATEGIES && parts[world.count][k]; k++) {
        told all;
        options.strategy = parts[world.count][k];
        train(model, &options, &all);
        require_equal_trainings(&all, &alone);
    }
    cvy_model_destroy(&model);
}

static volatile int asked;

static void ask_after_a_step(void *context, const cvy_train_progress *progress)
{
    (void)context;
    (void)progress;
    asked = 1;
}

/* The last rank alone is asked before the first step, or the first one after it: all end behind the same step. */
static void test_a_stop_that_one_rank_hears_ends_all_behind_one_step(void **state)
{
    (void)state;
    const cvy_train_observer observer = {.progress = ask_after_a_step};
    cvy_model *model = make_small_model(false);
    for (int first = 0; first < 2 && world.count > 1; first++) {
        cvy_train_options options = small_options("data");
        cvy_train_result result;
        int64_t steps[MAX_RANKS];
        asked = !first && world.rank == world.count - 1;
        options.stop = &asked;
        CHECK(cvy_train(model, &options, first ? &observer : NULL, &result) == CVY_STOPPED);
        CHECK(cvy_comm_gather_bytes(world.comm, &result.step, sizeof steps[0], steps) == CVY_OK);
        for (int i = 0; i < world.count; i++) {
            CHECK(steps[i] == 1 + first);
        }
        cvy_train_result_clear(&result);
    }
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluation_counts_each_sample_once),
        cmocka_unit_test(test_ranks_without_samples_join_every_step),
        cmocka_unit_test(test_batches_smaller_than_the_ranks_are_refused_on_all),
        cmocka_unit_test(test_order_and_shifts_are_of_the_epoch_and_not_of_the_ranks),
        cmocka_unit_test(test_uneven_micro_batches_are_the_whole_batch),
        cmocka_unit_test(test_a_stop_that_one_rank_hears_ends_all_behind_one_step),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
