/* Checkpoints of as many ranks as mpiexec starts: saved under one strategy, loaded under the next. */
#include "runtime/voyage.h"

enum { TRIALS = 4, GRAPHS = 3 };

/* Ranks, strategies. */
static const trial trials[5][TRIALS] = {
    [1] = {{"serial", 1, false, false, CVY_LAYOUT_BLOCKED}, {"serial", 1, false, false, CVY_LAYOUT_PLAIN}},
    [2] = {{"data", 2, true, false, CVY_LAYOUT_BLOCKED},
           {"filter", 2, false, false, CVY_LAYOUT_BLOCKED},
           {"stage=2", 2, false, false, CVY_LAYOUT_PLAIN},
           {"alternating", 2, false, true, CVY_LAYOUT_CHANNELS_LAST}},
    [3] = {{"data", 3, true, false, CVY_LAYOUT_BLOCKED},
           {"data", 3, false, false, CVY_LAYOUT_PLAIN},
           {"channel", 3, false, false, CVY_LAYOUT_BLOCKED},
           {"height=3", 3, false, false, CVY_LAYOUT_BLOCKED}},
    [4] = {{"sample=2,height=2", 4, true, false, CVY_LAYOUT_BLOCKED},
           {"sample=2,channel=2,channel-cut=filter", 4, true, false, CVY_LAYOUT_BLOCKED},
           {"stage=2,channel=2", 4, false, false, CVY_LAYOUT_PLAIN},
           {"channel=2,height=2", 4, false, true, CVY_LAYOUT_CHANNELS_LAST}},
};

static cvy_comm *comm;

/* The folder of rank 0, on all of them. */
static char folder[64];

static int make_folder(void **state)
{
    void *made = NULL;
    if (cvy_comm_rank(comm) == 0) {
        MUST(create_test_folder(&made) == 0);
        snprintf(folder, sizeof folder, "%s", (char *)made);
    }
    MUST(cvy_comm_broadcast(comm, folder, sizeof folder, 0) == CVY_OK);
    *state = made;
    return 0;
}

/* False where the graph cannot be cut so, which all ranks find alike. */
static bool try(const cvy_model *model, const trial *from, const trial *to)
{
    static fleet a, b;
    thread_rank rank = {.rank = cvy_comm_rank(comm), .comm = comm};
    if (!open_fleet(model, from, CVY_F32, &a)) {
        return false;
    }
    if (!open_fleet(model, to, CVY_F32, &b)) {
        close_fleet(&a);
        return false;
    }
    rank.context = &(voyage){&a, from, folder, NULL};
    save(&rank);
    if (rank.rank == 0) {
        check_file(model, test_path(folder, "step-00000007/model.safetensors"), "", 0);
        check_file(model, test_path(folder, "step-00000007/optimizer.safetensors"), "moment2.", 2);
    }
    MUST(cvy_state_check_replicas(&a.rank[rank.rank].state, NULL) == CVY_OK);
    rank.context = &(voyage){&b, from, folder, test_path(folder, "step-00000007")};
    load_back(&rank);
    close_fleet(&a);
    close_fleet(&b);
    return true;
}

static int join_ranks(void **state)
{
    (void)state;
    return cvy_comm_open("mpi", &comm) == CVY_OK ? 0 : -1;
}

static int leave_ranks(void **state)
{
    (void)state;
    cvy_comm_close(&comm);
    return 0;
}

static void test_what_ranks_save_others_load(void **state)
{
    int tried = 0;
    MUST(make_folder(state) == 0);
    int ranks = cvy_comm_ranks(comm);
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        dice d = {.seed = seed};
        cvy_model *model = make_random_model(&d, 5 + throw(&d, 9));
        MUST(model);
        for (int i = 0; i < TRIALS && trials[ranks][i].ranks; i++) {
            const trial *next = &trials[ranks][(i + 1) % TRIALS];
            tried += try(model, &trials[ranks][i], next->ranks ? next : &trials[ranks][0]);
        }
        cvy_model_destroy(&model);
    }
    MUST(tried >= GRAPHS);
    if (*state) {
        MUST(remove_test_folder(state) == 0);
    }
}

/* Whatever each rank's own statistics were, afterwards all have the same bits. */
static void test_merged_statistics_are_copies(void **state)
{
    enum { CHANNELS = 37 };
    static fleet f;
    int ranks = cvy_comm_ranks(comm), rank = cvy_comm_rank(comm), at = 0;
    const trial data = {"data", ranks, false, false, CVY_LAYOUT_PLAIN};
    cvy_model *model = NULL;
    float all[MAX_RANKS][CHANNELS];
    (void)state;
    MUST(cvy_model_create("norm", &CVY_SHAPE(CHANNELS, 2, 2), &model) == CVY_OK);
    MUST(cvy_model_append(model, "batch-norm", "bn", &at, " ") == CVY_OK);
    MUST(cvy_model_append(model, "flatten", "flat", &at, " ") == CVY_OK);
    MUST(cvy_model_append(model, "mean-squared-error", "loss", &at, " ") == CVY_OK);
    MUST(cvy_model_finish(model) == CVY_OK && open_fleet(model, &data, CVY_F32, &f));
    struct cvy_executor *e = &f.rank[rank];
    dice d = {.seed = (uint32_t)rank};
    MUST(cvy_executor_share_state(e, comm) == CVY_OK && cvy_executor_initialise(e, 1) == CVY_OK);
    float *mean = cvy_state_find(&e->state, "bn.running_mean")->data;
    for (int i = 0; i < CHANNELS; i++) {
        mean[i] = throw_real(&d);
    }
    MUST(cvy_state_merge_statistics(&e->state) == CVY_OK);
    MUST(cvy_comm_gather_bytes(comm, mean, sizeof all[0], all) == CVY_OK);
    for (int i = 1; i < ranks; i++) {
        MUST(memcmp(all[i], all[0], sizeof all[0]) == 0);
    }
    close_fleet(&f);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_ranks_save_others_load),
        cmocka_unit_test(test_merged_statistics_are_copies),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
