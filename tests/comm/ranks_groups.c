/* Groups, agreements, and transfers that are under way at once, of as many ranks as mpiexec starts. */
#include "base/memory.h"
#include "comm/mpi/limits.h"
#include "comm/ranks.h"

/* ---- groups ---- */

/* All ranks of these tests are on one node. */
static void test_a_node_is_a_group(void **state)
{
    (void)state;
    cvy_comm *node = NULL;
    CHECK(cvy_comm_split_node(world.comm, &node) == CVY_OK);
    CHECK(cvy_comm_ranks(node) == world.count && cvy_comm_rank(node) == world.rank);
    cvy_comm_close(&node);
    CHECK(!node);
}

/* Ranks of equal keys stay in order; a group is split again. */
static void test_groups_of_groups(void **state)
{
    (void)state;
    cvy_comm *all = NULL, *alone = NULL;
    CHECK(cvy_comm_split(world.comm, 3, 7, &all) == CVY_OK);
    CHECK(cvy_comm_rank(all) == world.rank && cvy_comm_ranks(all) == world.count);
    CHECK(cvy_comm_split(all, world.rank, 0, &alone) == CVY_OK);
    CHECK(cvy_comm_rank(alone) == 0 && cvy_comm_ranks(alone) == 1);
    int32_t mine = world.rank + 5;
    CHECK(cvy_comm_all_reduce(alone, &mine, 1, CVY_I32, CVY_REDUCE_SUM) == CVY_OK && mine == world.rank + 5);
    cvy_comm_close(&alone);
    cvy_comm_close(&all);
}

static void test_wrong_calls_are_refused_before_others_wait(void **state)
{
    (void)state;
    cvy_comm *group = NULL;
    cvy_transfer *transfer = NULL;
    const int64_t one[MAX_RANKS] = {1, 1, 1, 1, 1, 1, 1, 1}, two[MAX_RANKS] = {2, 2, 2, 2, 2, 2, 2, 2};
    float from[2 * MAX_RANKS] = {0.0f}, to[2 * MAX_RANKS] = {0.0f};
    CHECK(cvy_comm_split(world.comm, -1, 0, &group) == CVY_ERR_ARG && !group);
    CHECK(cvy_transfer_create(world.comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_SEND, .source = from, .count = one,
                                                               .peer = world.count}, &transfer) == CVY_ERR_ARG);
    CHECK(cvy_transfer_create(world.comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_ALL_TO_ALL, .source = from,
                                                               .target = to, .count = one, .taken = two},
                              &transfer) == CVY_ERR_ARG && !transfer);
}

/* ---- agreement ---- */

static void test_all_ranks_get_the_words_of_the_first_that_failed(void **state)
{
    (void)state;
    for (int first = 0; first < world.count; first++) {
        cvy_status mine = CVY_OK;
        char expected[64];
        if (world.rank == first || world.rank == world.count - 1) {
            mine = cvy_fail(world.rank == first ? CVY_ERR_DATA : CVY_ERR_IO, "file %d: cut", world.rank);
        }
        snprintf(expected, sizeof expected, world.count > 1 ? "rank %d: file %d: cut" : "file %d: cut", first, first);
        CHECK(cvy_comm_agree(world.comm, mine) == CVY_ERR_DATA);
        CHECK(strcmp(cvy_error_message(), expected) == 0);
    }
    CHECK(cvy_comm_agree(world.comm, CVY_OK) == CVY_OK);
}

/* A wrong option is nobody's in particular; and who has been named once is not named again by a later agreement. */
static void test_words_name_a_rank_once_or_none(void **state)
{
    (void)state;
    CHECK(cvy_comm_agree(world.comm, cvy_fail(CVY_ERR_INPUT, "seed is wrong")) == CVY_ERR_INPUT);
    CHECK(strcmp(cvy_error_message(), "seed is wrong") == 0);
    cvy_status mine = world.rank == world.count - 1 ? cvy_fail(CVY_ERR_DATA, "rank 12: cut") : CVY_OK;
    CHECK(cvy_comm_agree(world.comm, mine) == CVY_ERR_DATA);
    CHECK(strcmp(cvy_error_message(), "rank 12: cut") == 0);
    mine = cvy_fail(CVY_ERR_DATA, world.rank == 0 ? "rank 3 is late" : "rank 4 is late");
    CHECK(cvy_comm_agree(world.comm, mine) == CVY_ERR_DATA);
    CHECK(strcmp(cvy_error_message(), world.count > 1 ? "rank 0: rank 3 is late" : "rank 3 is late") == 0);
}

/* ---- several at once ---- */

enum { BEGUN = 4, LONG = 1000 };

static double values[BEGUN][MAX_RANKS * LONG], results[BEGUN][MAX_RANKS * LONG];
static int64_t counts[MAX_RANKS];

static cvy_transfer *create_one(int i, cvy_transfer_kind kind)
{
    cvy_transfer *transfer = NULL;
    const void *source = kind == CVY_TRANSFER_ALL_REDUCE ? NULL : values[i];
    CHECK(cvy_transfer_create(world.comm, &(cvy_transfer_spec){.kind = kind, .dtype = CVY_F64, .source = source,
                                                               .target = results[i], .count = counts,
                                                               .taken = counts}, &transfer) == CVY_OK);
    return transfer;
}

static void fill_for(int round)
{
    for (int i = 0; i < BEGUN; i++) {
        for (int at = 0; at < world.count * LONG; at++) {
            values[i][at] = world.rank * 1000 + round * 100 + i;
            results[i][at] = values[i][at];
        }
    }
}

static void check_round(int round)
{
    double sum = 0.0;
    for (int rank = 0; rank < world.count; rank++) {
        sum += rank * 1000 + round * 100;
    }
    for (int at = 0; at < world.count * LONG; at++) {
        double from = at / LONG * 1000 + round * 100; /* the rank that this part comes from */
        CHECK(at >= LONG || results[0][at] == sum);
        CHECK(at >= LONG || results[1][at] == sum + world.count);
        CHECK(results[2][at] == from + 2 && results[3][at] == from + 3);
    }
}

/* Begun in one order by all, looked after in another by each, and made again with new values. */
static void test_transfers_under_way_at_once(void **state)
{
    (void)state;
    const cvy_mpi_limits pieces = {.elements = 300, .all_reduce_bytes_per_rank = 1000};
    const cvy_transfer_kind kinds[BEGUN] = {CVY_TRANSFER_ALL_REDUCE, CVY_TRANSFER_REDUCE_SCATTER,
                                            CVY_TRANSFER_ALL_GATHER, CVY_TRANSFER_ALL_TO_ALL};
    cvy_transfer *transfer[BEGUN];
    cvy_mpi_set_limits(&pieces);
    for (int i = 0; i < MAX_RANKS; i++) {
        counts[i] = LONG;
    }
    for (int i = 0; i < BEGUN; i++) {
        transfer[i] = create_one(i, kinds[i]);
    }
    for (int round = 0; round < 3; round++) {
        fill_for(round);
        for (int i = 0; i < BEGUN; i++) {
            CHECK(cvy_transfer_begin(transfer[i]) == CVY_OK);
        }
        for (int i = 0; i < BEGUN; i++) {
            bool done;
            CHECK(cvy_transfer_test(transfer[(i + world.rank) % BEGUN], &done) == CVY_OK);
        }
        for (int i = 0; i < BEGUN; i++) {
            CHECK(cvy_transfer_wait(transfer[(i + world.rank) % BEGUN]) == CVY_OK);
        }
        check_round(round);
    }
    for (int i = 0; i < BEGUN; i++) {
        cvy_transfer_destroy(&transfer[i]);
    }
    cvy_mpi_set_limits(NULL);
}

/* Bytes in one call, as set-up moves them. */
static void test_bytes_go_around(void **state)
{
    (void)state;
    char mine[3] = {(char)('a' + world.rank), '-', 0}, taken[3] = "", all[MAX_RANKS * 3];
    CHECK(cvy_comm_gather_bytes(world.comm, mine, sizeof mine, all) == CVY_OK);
    for (int rank = 0; rank < world.count; rank++) {
        CHECK(all[(ptrdiff_t)3 * rank] == 'a' + rank && all[3 * rank + 1] == '-');
    }
    if (world.rank == 0 && world.count > 1) {
        CHECK(cvy_comm_send(world.comm, mine, sizeof mine, world.count - 1) == CVY_OK);
    } else if (world.rank == world.count - 1 && world.count > 1) {
        CHECK(cvy_comm_receive(world.comm, taken, sizeof taken, 0) == CVY_OK && strcmp(taken, "a-") == 0);
    }
    CHECK(cvy_comm_broadcast(world.comm, mine, sizeof mine, world.count - 1) == CVY_OK);
    CHECK(mine[0] == 'a' + world.count - 1);
}

/* ---- ends of what there is ---- */

static cvy_transfer_spec make_spec(cvy_transfer_kind kind, const int64_t *count)
{
    static float from[MAX_RANKS * 8], to[MAX_RANKS * 8];
    return (cvy_transfer_spec){.kind = kind, .dtype = CVY_F32, .source = from, .target = to, .count = count,
                               .taken = count, .peer = world.rank};
}

/* Ranks whose share is nothing take part all the same. */
static void test_nothing_is_moved_by_all(void **state)
{
    (void)state;
    const int64_t none[MAX_RANKS] = {0};
    for (int kind = 0; kind < CVY_TRANSFER_KINDS; kind++) {
        cvy_transfer_spec spec = make_spec((cvy_transfer_kind)kind, none);
        for (int how = 0; how < MANNERS; how++) {
            int64_t before = cvy_comm_moved_bytes(world.comm);
            move(world.comm, &spec, (manner)how);
            CHECK(cvy_comm_moved_bytes(world.comm) == before);
        }
    }
}

/* Each allocation fails once, on this rank alone: the others do not notice. */
static void test_a_transfer_that_finds_no_memory_is_none(void **state)
{
    (void)state;
    const int64_t one[MAX_RANKS] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int kind = 0; kind < CVY_TRANSFER_KINDS; kind++) {
        cvy_transfer_spec spec = make_spec((cvy_transfer_kind)kind, one);
        cvy_transfer *transfer = NULL;
        cvy_status status = CVY_ERR_MEMORY;
        int failed = 0;
        for (; status != CVY_OK; failed++) {
            cvy_memory_fail_after(failed);
            status = cvy_transfer_create(world.comm, &spec, &transfer);
            cvy_memory_fail_after(-1);
            CHECK(status == CVY_OK ? transfer != NULL : status == CVY_ERR_MEMORY && !transfer);
        }
        CHECK(failed >= 3);
        cvy_transfer_destroy(&transfer);
    }
}

/* What the loop calls takes no memory of Convoy's. */
static void test_moving_takes_no_memory(void **state)
{
    (void)state;
    const int64_t five[MAX_RANKS] = {5, 5, 5, 5, 5, 5, 5, 5};
    const cvy_mpi_limits pieces = {.elements = 2, .all_reduce_bytes_per_rank = 4};
    cvy_mpi_set_limits(&pieces);
    for (int kind = 0; kind <= CVY_TRANSFER_BROADCAST; kind++) {
        cvy_transfer_spec spec = make_spec((cvy_transfer_kind)kind, five);
        cvy_transfer *transfer = NULL;
        spec.peer = 0;
        CHECK(cvy_transfer_create(world.comm, &spec, &transfer) == CVY_OK);
        int64_t before = cvy_memory_allocations();
        for (int how = 0; how < MANNERS; how++) {
            make(transfer, (manner)how);
        }
        CHECK(cvy_memory_allocations() == before);
        cvy_transfer_destroy(&transfer);
    }
    cvy_mpi_set_limits(NULL);
}

/* ---- counted bytes ---- */

/* Counts 3 5 7 9 of f32: what a rank brings to, or ends with from, all ranks is their sum; 5 elements of one buffer. */
static void test_moved_bytes_are_counted_as_schedules_count_them(void **state)
{
    (void)state;
    const int64_t each[MAX_RANKS] = {3, 5, 7, 9}, five = 5;
    int64_t sum = 0, taken[MAX_RANKS];
    static float from[64], to[64];
    for (int i = 0; i < world.count; i++) {
        sum += each[i];
        taken[i] = each[world.rank];
    }
    const struct {
        cvy_transfer_kind kind;
        const int64_t *count;
        int64_t bytes;
    } rows[] = {{CVY_TRANSFER_ALL_REDUCE, &five, 20},      {CVY_TRANSFER_REDUCE_SCATTER, each, 4 * sum},
                {CVY_TRANSFER_ALL_GATHER, each, 4 * sum},  {CVY_TRANSFER_ALL_TO_ALL, each, 4 * sum},
                {CVY_TRANSFER_BROADCAST, &five, 20}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int how = 0; how < MANNERS; how++) {
            int64_t before = cvy_comm_moved_bytes(world.comm);
            move(world.comm, &(cvy_transfer_spec){.kind = rows[i].kind, .dtype = CVY_F32, .source = from, .target = to,
                                                  .count = rows[i].count, .taken = taken}, (manner)how);
            CHECK(cvy_comm_moved_bytes(world.comm) - before == rows[i].bytes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_is_a_group),
        cmocka_unit_test(test_groups_of_groups),
        cmocka_unit_test(test_wrong_calls_are_refused_before_others_wait),
        cmocka_unit_test(test_all_ranks_get_the_words_of_the_first_that_failed),
        cmocka_unit_test(test_words_name_a_rank_once_or_none),
        cmocka_unit_test(test_transfers_under_way_at_once),
        cmocka_unit_test(test_bytes_go_around),
        cmocka_unit_test(test_nothing_is_moved_by_all),
        cmocka_unit_test(test_a_transfer_that_finds_no_memory_is_none),
        cmocka_unit_test(test_moving_takes_no_memory),
        cmocka_unit_test(test_moved_bytes_are_counted_as_schedules_count_them),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
