/*
 * What ranks agree on: copies that are none are named, statistics that ranks took each for themselves become those of
 * all, and what goes wrong on the rank that has the files is heard by every rank, none of which waits.
 */
#include "runtime/fleet.h"

#include <signal.h>
#include <sys/resource.h>

#include "folder.h"
#include "runtime/checkpoint.h"
#include "runtime/run_folder.h"

static const trial data = {"data", 3, false, false, CVY_LAYOUT_BLOCKED};

/* A convolution, a norm, a dense layer: six parameters and two statistics. */
static cvy_model *make_model(void)
{
    cvy_model *model = NULL;
    int at = 0;
    assert_int_equal(cvy_model_create("small", &CVY_SHAPE(2, 4, 4), &model), CVY_OK);
    assert_int_equal(cvy_model_append(model, "conv", "conv", &at, "filters: 3, kernel: 3, padding: 1"), CVY_OK);
    assert_int_equal(cvy_model_append(model, "batch-norm", "bn", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(model, "flatten", "flat", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(model, "dense", "fc", &at, "outputs: 2"), CVY_OK);
    assert_int_equal(cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_finish(model), CVY_OK);
    return model;
}

/* Open a fleet, let its ranks act, close it. */
static void act_as(const trial *t, void (*act)(thread_rank *rank), fleet *f)
{
    cvy_model *model = make_model();
    assert_true(open_fleet(model, t, CVY_F32, f));
    run_thread_ranks(t->ranks, act, f);
    close_fleet(f);
    cvy_model_destroy(&model);
}

static struct cvy_executor *start_rank(thread_rank *r)
{
    struct cvy_executor *e = &((fleet *)r->context)->rank[r->rank];
    MUST(cvy_executor_share_state(e, r->comm) == CVY_OK);
    MUST(cvy_executor_initialise(e, 1) == CVY_OK);
    return e;
}

static float *find_data(const struct cvy_executor *e, const char *name)
{
    cvy_state_tensor *tensor = cvy_state_find(&e->state, name);
    MUST(tensor && tensor->data);
    return tensor->data;
}

/* ---- copies ---- */

/* Six parameters, their averages and two moments of each, on two ranks beside the first: 2 * 4 * 6. */
static void compare_copies(thread_rank *r)
{
    struct cvy_executor *e = start_rank(r);
    int64_t compared = 0;
    find_data(e, "bn.running_mean")[1] = (float)r->rank; /* each rank's own */
    MUST(cvy_state_check_replicas(&e->state, &compared) == CVY_OK && compared == 48);
    if (r->rank == 2) {
        find_data(e, "momentum.fc.weight")[3] = -0.0f; /* the value of the others, in other bits */
    }
    MUST(cvy_state_check_replicas(&e->state, &compared) == CVY_ERR_RANK);
    MUST(strstr(cvy_error_message(), "momentum.fc.weight: ranks 0 and 2 "));
}

static void test_a_copy_that_is_none_is_named(void **state)
{
    static fleet f;
    (void)state;
    act_as(&data, compare_copies, &f);
}

/* ---- statistics ---- */

/*
 * Five samples on two ranks: shares of 3 and 2. Means of 1 and 3 become (3 + 6) / 5; variances of 2 and 4 become
 * (6 + 8) / 5, and 3/5 * 2/5 of the squared distance 4 of the means. Ranks along height have statistics in common.
 */
static void merge_by_hand(thread_rank *r)
{
    struct cvy_executor *e = start_rank(r);
    static const char *const names[2][2] = {{"bn.running_mean", "bn.running_var"},
                                            {"ema.bn.running_mean", "ema.bn.running_var"}};
    int sample = r->rank / (r->world->ranks / 2);
    float weight = find_data(e, "bn.weight")[1];
    for (int i = 0; i < 2; i++) {
        find_data(e, names[i][0])[1] = sample ? 3.0f : 1.0f;
        find_data(e, names[i][1])[1] = sample ? 4.0f : 2.0f;
    }
    MUST(cvy_state_merge_statistics(&e->state) == CVY_OK);
    for (int i = 0; i < 2; i++) {
        MUST(fabs((double)find_data(e, names[i][0])[1] - 9.0 / 5.0) < 1e-6);
        MUST(fabs((double)find_data(e, names[i][1])[1] - (14.0 / 5.0 + 24.0 / 25.0)) < 1e-6);
    }
    MUST(find_data(e, "bn.weight")[1] == weight);
}

static void test_statistics_of_each_rank_become_those_of_all(void **state)
{
    static const trial trials[] = {{"data", 2, false, false, CVY_LAYOUT_PLAIN},
                                   {"sample=2,height=2", 4, false, false, CVY_LAYOUT_PLAIN}};
    static fleet f;
    (void)state;
    for (int i = 0; i < 2; i++) {
        act_as(&trials[i], merge_by_hand, &f);
    }
}

/* ---- files ---- */

static const char *folder, *checkpoints, *newest, *weights;

static void fail_to_save(thread_rank *r)
{
    struct cvy_executor *e = start_rank(r);
    const cvy_position position = {.step = 1, .best_step = -1};
    MUST(cvy_checkpoint_save(folder, &e->state, &position) == CVY_ERR_CHECKPOINT);
    MUST(strncmp(cvy_error_message(), "rank 0: ", 8) == 0 && strncmp(cvy_error_message(), "rank 0: rank", 12) != 0);
    MUST(cvy_weights_save(weights, &e->state) == CVY_ERR_CHECKPOINT);
}

/* Where the folder should be there is a file. */
static void test_all_ranks_hear_that_nothing_can_be_written(void **state)
{
    static fleet f;
    folder = test_path(*state, "file");
    weights = test_path(*state, "file/weights");
    assert_true(put_test_file(folder, "x", 1));
    act_as(&data, fail_to_save, &f);
}

/* Files of at most 1000 bytes: the first rank fails with filters of the second still to come. */
static void test_a_disk_that_is_full_halfway_leaves_nobody_waiting(void **state)
{
    static const trial filter = {"filter", 2, false, false, CVY_LAYOUT_BLOCKED};
    static fleet f;
    struct rlimit before, small;
    int count = 0;
    folder = test_path(*state, "run");
    weights = test_path(*state, "weights");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    act_as(&filter, fail_to_save, &f);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(cvy_checkpoint_count(folder, &count), CVY_OK);
    assert_int_equal(count, 0);
}

static void save_twice(thread_rank *r)
{
    struct cvy_executor *e = start_rank(r);
    for (int64_t step = 1; step <= 2; step++) {
        const cvy_position position = {.step = step, .best_step = -1, .seed = 5, .batch = 5};
        MUST(cvy_checkpoint_save(checkpoints, &e->state, &position) == CVY_OK);
    }
}

static void flip_byte(const char *path, long at)
{
    FILE *stream = fopen(path, "r+b");
    assert_true(stream && fseek(stream, at, SEEK_SET) == 0);
    int byte = fgetc(stream);
    assert_true(fseek(stream, at, SEEK_SET) == 0 && fputc(byte ^ 1, stream) != EOF && fclose(stream) == 0);
}

/* The newest is damaged: nothing of it is taken, and all ranks go on from the one before. */
static void resume(thread_rank *r)
{
    struct cvy_executor *e = start_rank(r);
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    cvy_run_folder run;
    cvy_train_result result = {0};
    cvy_position position = {.seed = 5, .batch = 5};
    char *from = NULL;
    int skipped = -1;
    options.resume = folder;
    options.comm = r->comm;
    memset(find_data(e, "conv.bias"), 0x7f, sizeof(float));
    MUST(cvy_checkpoint_load(newest, &e->state, &position) == CVY_ERR_CHECKPOINT);
    MUST(*(const unsigned char *)find_data(e, "conv.bias") == 0x7f);
    MUST(cvy_run_folder_open(&options, &run) == CVY_OK);
    MUST((run.lock >= 0) == (r->rank == 0));
    MUST(cvy_run_folder_resume(&run, &e->state, &position, &from, &skipped) == CVY_OK);
    MUST(position.step == 1 && skipped == 1 && strstr(from, "step-00000001"));
    MUST(*(const unsigned char *)find_data(e, "conv.bias") != 0x7f);
    cvy_free(from);
    from = NULL;
    position.seed = 6;
    MUST(cvy_run_folder_resume(&run, &e->state, &position, &from, &skipped) == CVY_ERR_INPUT);
    MUST(strncmp(cvy_error_message(), "rank ", 5) != 0); /* all ranks find it */
    MUST(strstr(cvy_error_message(), "saved with seed 5"));
    cvy_free(from);
    MUST(cvy_run_folder_close(&run, &position, &result, CVY_OK) == CVY_OK);
}

static void test_all_ranks_pass_a_damaged_checkpoint_over(void **state)
{
    static fleet f;
    folder = *state;
    checkpoints = test_path(*state, "checkpoints");
    newest = test_path(*state, "checkpoints/step-00000002");
    act_as(&data, save_twice, &f);
    flip_byte(test_path(folder, "checkpoints/step-00000002/model.safetensors"), 900);
    act_as(&data, resume, &f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copy_that_is_none_is_named),
        cmocka_unit_test(test_statistics_of_each_rank_become_those_of_all),
        cmocka_unit_test_setup_teardown(test_all_ranks_hear_that_nothing_can_be_written, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_disk_that_is_full_halfway_leaves_nobody_waiting, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_all_ranks_pass_a_damaged_checkpoint_over, create_test_folder,
                                        remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
