/*
 * Laws of the counters, on as many ranks as mpiexec starts: what is moved and what memory is taken is what the plan
 * says, copies stay copies, and how MPI's calls are cut changes nothing.
 */
#include "runtime/rank_trainings.h"

#include "base/memory.h"
#include "comm/mpi/limits.h"
#include "runtime/sharing.h"

enum { CASES = 4 };

/* What is trained, and how it is divided. */
typedef struct law_case {
    const char *model, *strategy;
} law_case;

/* The numbers of ranks take turns with the axes and their products, and with labels that are a class, values, a map. */
static const law_case cases[5][CASES] = {
    [1] = {{"lenet5:size=20", "serial"}},
    [2] = {{"lenet5:size=20", "data"},
           {"lenet5:size=20", "alternating"},
           {"unet3d:size=8,width=2", "stage=2,pipeline=gpipe"}},
    [3] = {{"lenet5:size=20", "filter"}, {"cosmoflow:size=16", "height=3"}},
    [4] = {{"lenet5:size=20", "sample=2,height=2"},
           {"lenet5:size=20", "sample=2,channel=2"},
           {"unet3d:size=8,width=2", "stage=2,channel=2"}},
};

static cvy_model *open_model(const char *text)
{
    cvy_model *model = NULL;
    CHECK(cvy_model_open(text, &model) == CVY_OK);
    return model;
}

/* In single precision on random numbers, with formats by rule: 10 samples are batches of 4, 4 and 2. */
static cvy_train_options law_options(const char *strategy)
{
    cvy_train_options options = small_options(strategy);
    options.data = "random";
    options.train_samples = 10;
    options.test_samples = 6;
    options.epochs = 1;
    options.learning_rate = 1e-3;
    options.double_precision = false;
    options.backend = NULL;
    options.layout = "rule";
    options.no_metrics_rates = true;
    return options;
}

/*
 * What a walk over this rank's schedule is to move in iteration `step`: the bytes of its communication steps, which the
 * plan reckoned with before there was any communicator. It says how many of them messages send and receive.
 */
static int64_t reckon_bytes(const cvy_schedule *s, int64_t step, int64_t *sent, int64_t *received)
{
    int64_t bytes = 0;
    for (int i = 0; i < s->steps; i++) {
        if (s->step[i].exchange < 0 || (s->step[i].every > 1 && step % s->step[i].every != s->step[i].offset)) {
            continue;
        }
        const cvy_exchange *e = &s->exchange[s->step[i].exchange];
        bytes += e->bytes;
        for (int m = 0; s->step[i].kind != CVY_STEP_COLLECTIVE && m < e->messages; m++) {
            const cvy_message *message = &s->message[e->first_message + m];
            *(message->receive ? received : sent) += message->bytes;
        }
    }
    return bytes;
}

/*
 * The count is of what transfers were given, where they were begun (comm/transfer.c); the expectation is of the
 * schedule alone. The bytes that all ranks' messages send are those that all receive.
 */
static void check_moved_bytes(const char *name, const char *strategy)
{
    cvy_model *model = open_model(name);
    cvy_train_options options = law_options(strategy);
    walk run;
    cvy_evaluation evaluation;
    int64_t expected = 0;
    int64_t sides[2] = {0, 0};
    open_walk(model, &options, &run);
    const cvy_plan *plan = run.session.plan;
    int64_t before = cvy_executor_moved_bytes(run.session.executor);
    walk_on(&run, 3);
    for (int64_t step = 0; step < 3; step++) {
        expected += reckon_bytes(&plan->schedule[CVY_SCHEDULE_TRAIN], step, &sides[0], &sides[1]);
    }
    CHECK(cvy_executor_moved_bytes(run.session.executor) - before == expected);
    cvy_loader_stop(run.loader);
    before = cvy_executor_moved_bytes(run.session.executor);
    CHECK(cvy_session_evaluate(&run.session, &options, NULL, &evaluation) == CVY_OK);
    expected = 2 * reckon_bytes(&plan->schedule[CVY_SCHEDULE_EVALUATE], 0, &sides[0], &sides[1]); /* 4 and 2 samples */
    CHECK(cvy_executor_moved_bytes(run.session.executor) - before == expected);
    close_walk(&run);
    cvy_model_destroy(&model);
    double all[2] = {(double)sides[0], (double)sides[1]};
    CHECK(cvy_comm_all_reduce(world.comm, all, 2, CVY_F64, CVY_REDUCE_SUM) == CVY_OK);
    CHECK(all[0] == all[1]);
}

static void test_bytes_moved_are_the_schedules(void **state)
{
    (void)state;
    for (int i = 0; cases[world.count][i].model; i++) {
        check_moved_bytes(cases[world.count][i].model, cases[world.count][i].strategy);
    }
}

/* On each rank the allocator's high-water mark is the plan's arenas to the byte, the loader's slots among them. */
static void test_memory_is_what_each_ranks_plan_says(void **state)
{
    (void)state;
    for (int i = 0; cases[world.count][i].model; i++) {
        cvy_model *model = open_model(cases[world.count][i].model);
        cvy_train_options options = law_options(cases[world.count][i].strategy);
        cvy_train_result result;
        options.shard_optimizer = i % 2 == 0;
        options.clip_norm = i % 3 == 0 ? 1.0 : 0.0;
        CHECK(cvy_train(model, &options, NULL, &result) == CVY_OK);
        CHECK(result.tensor_peak_bytes == result.tensor_plan_bytes && result.tensor_plan_bytes > 0);
        CHECK(result.loop_allocations == 0 && result.step == 3 && cvy_memory_tensor_bytes() == 0);
        cvy_train_result_clear(&result);
        cvy_model_destroy(&model);
    }
}

/* After 100 updates in single precision no copy of a weight differs from another in a bit. */
static void test_replicas_are_identical_after_100_steps(void **state)
{
    (void)state;
    static const struct {
        bool shard, overlap;
        int64_t bucket_bytes;
        cvy_optimizer_name optimizer;
    } ways[] = {{true, true, 100000, CVY_OPTIMIZE_ADAMW},
                {false, true, 20000, CVY_OPTIMIZE_MOMENTUM},
                {false, false, 0, CVY_OPTIMIZE_LARS}};
    cvy_model *model = open_model("lenet5:size=20");
    int64_t copies = 0;
    for (int i = 0; cases[world.count][i].model; i++) {
        cvy_train_options options = law_options(cases[world.count][i].strategy);
        walk run;
        int64_t compared;
        options.shard_optimizer = ways[i % 3].shard;
        options.overlap = ways[i % 3].overlap;
        options.bucket_bytes = ways[i % 3].bucket_bytes;
        options.optimizer = ways[i % 3].optimizer;
        open_walk(model, &options, &run);
        double first = walk_on(&run, 1), last = walk_on(&run, 99);
        CHECK(isfinite(last) && last != first);
        CHECK(cvy_state_check_replicas(cvy_executor_state(run.session.executor), &compared) == CVY_OK);
        copies += compared;
        close_walk(&run);
    }
    CHECK(copies > 0 || world.count == 1);
    cvy_model_destroy(&model);
}

/* Calls of 1000 elements at most, and small pieces of all-reduces: the losses are those of whole ones. */
static void test_pieces_of_calls_change_nothing(void **state)
{
    (void)state;
    const cvy_mpi_limits low = {.elements = 1000, .all_reduce_bytes_per_rank = 4096};
    for (int i = 0; cases[world.count][i].model; i++) {
        cvy_model *model = open_model(cases[world.count][i].model);
        cvy_train_options options = law_options(cases[world.count][i].strategy);
        double loss[2];
        options.double_precision = true;
        for (int cut = 0; cut < 2; cut++) {
            walk run;
            cvy_mpi_set_limits(cut ? &low : NULL);
            open_walk(model, &options, &run);
            loss[cut] = walk_on(&run, 2);
            close_walk(&run);
        }
        cvy_mpi_set_limits(NULL);
        CHECK(fabs(loss[1] - loss[0]) <= 1e-12 * fabs(loss[0]) && loss[0] > 0.0);
        cvy_model_destroy(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_moved_are_the_schedules),
        cmocka_unit_test(test_memory_is_what_each_ranks_plan_says),
        cmocka_unit_test(test_replicas_are_identical_after_100_steps),
        cmocka_unit_test(test_pieces_of_calls_change_nothing),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
