/*
 * Each kind of transfer against plain loops: of all ranks and of groups whose order is another, of each type, blocking
 * and not, whole and in pieces. Element i of rank r is 1000 r + i.
 */
#include "comm/mpi/limits.h"
#include "comm/ranks.h"

enum { ROOM = 256, UNTOUCHED = 0xEE };

typedef struct setting {
    const ranks *group;
    cvy_dtype dtype;
    manner how;
} setting;

static _Alignas(8) unsigned char source[ROOM * 8], target[ROOM * 8];

/* Counts of the ranks' parts: one has nothing. */
static const int64_t uneven[MAX_RANKS] = {3, 0, 7, 4, 1, 9, 0, 2};

static int64_t sum_before(const int64_t *count, int rank)
{
    int64_t sum = 0;
    for (int i = 0; i < rank; i++) {
        sum += count[i];
    }
    return sum;
}

static void fill(const setting *s, void *memory, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        put(s->dtype, memory, i, 1000.0 * world.rank + (double)i);
    }
}

static void clear_target(void) { memset(target, UNTOUCHED, sizeof target); }

/* What lies behind @p count elements is as it was. */
static bool ends_at(const setting *s, int64_t count)
{
    for (size_t i = (size_t)(count * cvy_dtype_bytes(s->dtype)); i < sizeof target; i++) {
        if (target[i] != UNTOUCHED) {
            return false;
        }
    }
    return true;
}

static void for_each_setting(void (*check)(const setting *s))
{
    const cvy_mpi_limits cut_small = {.elements = 3, .all_reduce_bytes_per_rank = 20};
    const cvy_mpi_limits cut_single = {.elements = 1, .all_reduce_bytes_per_rank = 1};
    const cvy_mpi_limits *limits[] = {NULL, &cut_small, &cut_single};
    ranks half = split_by_parity();
    const ranks *groups[] = {&world, &half};
    for (int l = 0; l < 3; l++) {
        cvy_mpi_set_limits(limits[l]);
        for (int i = 0; i < 2 * CVY_DTYPE_COUNT * MANNERS; i++) {
            setting s = {groups[i % 2], (cvy_dtype)(i / 2 % CVY_DTYPE_COUNT), (manner)(i / 2 / CVY_DTYPE_COUNT)};
            check(&s);
        }
    }
    cvy_mpi_set_limits(NULL);
    cvy_comm_close(&half.comm);
}

static double reduce_members(const setting *s, cvy_reduction reduction, int64_t i)
{
    double sum = 0.0, least = 1e9, most = -1e9;
    for (int m = 0; m < s->group->count; m++) {
        double value = 1000.0 * s->group->member[m] + (double)i;
        sum += value;
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    return reduction == CVY_REDUCE_SUM ? sum : reduction == CVY_REDUCE_MAX ? most : least;
}

static void check_all_reduce(const setting *s)
{
    const cvy_reduction reductions[] = {CVY_REDUCE_SUM, CVY_REDUCE_MAX, CVY_REDUCE_MIN};
    int64_t count = 23;
    for (int r = 0; r < 3 && s->dtype != CVY_U8; r++) {
        clear_target();
        fill(s, target, count);
        move(s->group->comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_ALL_REDUCE, .dtype = s->dtype,
                                                  .reduction = reductions[r], .target = target, .count = &count},
             s->how);
        for (int64_t i = 0; i < count; i++) {
            CHECK(holds(s->dtype, target, i, reduce_members(s, reductions[r], i)));
        }
        CHECK(ends_at(s, count));
    }
}

static void check_reduce_scatter(const setting *s)
{
    if (s->dtype == CVY_U8) {
        return;
    }
    int64_t before = sum_before(uneven, s->group->rank);
    clear_target();
    fill(s, source, sum_before(uneven, s->group->count));
    move(s->group->comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_REDUCE_SCATTER, .dtype = s->dtype,
                                              .reduction = CVY_REDUCE_SUM, .source = source, .target = target,
                                              .count = uneven}, s->how);
    for (int64_t i = 0; i < uneven[s->group->rank]; i++) {
        CHECK(holds(s->dtype, target, i, reduce_members(s, CVY_REDUCE_SUM, before + i)));
    }
    CHECK(ends_at(s, uneven[s->group->rank]));
}

static void check_all_gather(const setting *s)
{
    int64_t before = sum_before(uneven, s->group->rank) * cvy_dtype_bytes(s->dtype);
    for (int in_place = 0; in_place < 2; in_place++) {
        clear_target();
        fill(s, in_place ? target + before : source, uneven[s->group->rank]);
        move(s->group->comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_ALL_GATHER, .dtype = s->dtype,
                                                  .source = in_place ? NULL : source, .target = target,
                                                  .count = uneven}, s->how);
        int64_t at = 0;
        for (int m = 0; m < s->group->count; m++) {
            for (int64_t i = 0; i < uneven[m]; i++, at++) {
                CHECK(holds(s->dtype, target, at, 1000.0 * s->group->member[m] + (double)i));
            }
        }
        CHECK(ends_at(s, at));
    }
}

/* What rank @p from of a group has for rank @p to: 0 to 4. */
static int64_t count_between(int from, int to) { return (2 * from + 3 * to) % 5; }

static void check_all_to_all(const setting *s)
{
    int ranks_here = s->group->count;
    int64_t count[MAX_RANKS], taken[MAX_RANKS], at = 0;
    for (int i = 0; i < ranks_here; i++) {
        count[i] = count_between(s->group->rank, i);
        taken[i] = count_between(i, s->group->rank);
    }
    clear_target();
    fill(s, source, sum_before(count, ranks_here));
    move(s->group->comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_ALL_TO_ALL, .dtype = s->dtype, .source = source,
                                              .target = target, .count = count, .taken = taken}, s->how);
    for (int m = 0; m < ranks_here; m++) {
        int64_t theirs = 0;
        for (int to = 0; to < s->group->rank; to++) {
            theirs += count_between(m, to);
        }
        for (int64_t i = 0; i < taken[m]; i++, at++) {
            CHECK(holds(s->dtype, target, at, 1000.0 * s->group->member[m] + (double)(theirs + i)));
        }
    }
    CHECK(ends_at(s, at));
}

static void check_broadcast(const setting *s)
{
    int64_t count = 17;
    for (int root = 0; root < s->group->count; root++) {
        clear_target();
        fill(s, target, count);
        move(s->group->comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_BROADCAST, .dtype = s->dtype, .target = target,
                                                  .count = &count, .peer = root}, s->how);
        for (int64_t i = 0; i < count; i++) {
            CHECK(holds(s->dtype, target, i, 1000.0 * s->group->member[root] + (double)i));
        }
        CHECK(ends_at(s, count));
    }
}

/* Around a ring; blocking ones are sent by even ranks first. */
static void check_messages(const setting *s)
{
    int64_t count = 11;
    int p = s->group->count, next = (s->group->rank + 1) % p, last = (s->group->rank + p - 1) % p;
    cvy_transfer_spec send = {.kind = CVY_TRANSFER_SEND, .dtype = s->dtype, .source = source, .count = &count,
                              .peer = next, .tag = 32767};
    cvy_transfer_spec receive = {.kind = CVY_TRANSFER_RECEIVE, .dtype = s->dtype, .target = target, .count = &count,
                                 .peer = last, .tag = 32767};
    if (p == 1) {
        return;
    }
    clear_target();
    fill(s, source, count);
    move(s->group->comm, s->group->rank % 2 == 0 ? &send : &receive, s->how);
    move(s->group->comm, s->group->rank % 2 == 0 ? &receive : &send, s->how);
    for (int64_t i = 0; i < count; i++) {
        CHECK(holds(s->dtype, target, i, 1000.0 * s->group->member[last] + (double)i));
    }
    CHECK(ends_at(s, count));
}

/* A message that is waited for meets none of an all-to-all's, which has as many elements from the same rank. */
static void test_messages_and_exchanges_do_not_meet(void **state)
{
    (void)state;
    const int64_t one[MAX_RANKS] = {1, 1, 1, 1, 1, 1, 1, 1};
    int p = world.count, next = (world.rank + 1) % p, last = (world.rank + p - 1) % p;
    int32_t sent = world.rank, got = -1, mine[MAX_RANKS], theirs[MAX_RANKS];
    for (int i = 0; i < p; i++) {
        mine[i] = 100 * world.rank + i + 50;
    }
    const cvy_transfer_spec specs[] = {
        {.kind = CVY_TRANSFER_RECEIVE, .dtype = CVY_I32, .target = &got, .count = one, .peer = last},
        {.kind = CVY_TRANSFER_ALL_TO_ALL, .dtype = CVY_I32, .source = mine, .target = theirs, .count = one,
         .taken = one},
        {.kind = CVY_TRANSFER_SEND, .dtype = CVY_I32, .source = &sent, .count = one, .peer = next}};
    cvy_transfer *transfer[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        CHECK(cvy_transfer_create(world.comm, &specs[i], &transfer[i]) == CVY_OK);
        CHECK(cvy_transfer_begin(transfer[i]) == CVY_OK);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(cvy_transfer_wait(transfer[i]) == CVY_OK);
        cvy_transfer_destroy(&transfer[i]);
    }
    CHECK(got == last);
    for (int i = 0; i < p; i++) {
        CHECK(theirs[i] == 100 * i + world.rank + 50);
    }
}

#define TEST_EACH(kind)                   \
    static void test_##kind(void **state) \
    {                                     \
        (void)state;                      \
        for_each_setting(check_##kind);   \
    }

TEST_EACH(all_reduce)
TEST_EACH(reduce_scatter)
TEST_EACH(all_gather)
TEST_EACH(all_to_all)
TEST_EACH(broadcast)
TEST_EACH(messages)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reduce), cmocka_unit_test(test_reduce_scatter), cmocka_unit_test(test_all_gather),
        cmocka_unit_test(test_all_to_all), cmocka_unit_test(test_broadcast),      cmocka_unit_test(test_messages),
        cmocka_unit_test(test_messages_and_exchanges_do_not_meet),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
