/* Ranks that come together with a time-out: they hear what each says, and of one that does not come. */
#include "base/memory.h"
#include "comm/ranks.h"

static void test_all_hear_what_each_says(void **state)
{
    (void)state;
    int64_t all[MAX_RANKS] = {0};
    for (int round = 0; round < 3; round++) { /* one behind the other, with no step between them */
        int64_t mine = 100 * world.rank + round;
        CHECK(cvy_comm_gather_within(world.comm, 100, &mine, sizeof mine, all) == CVY_OK);
        for (int i = 0; i < world.count; i++) {
            CHECK(all[i] == 100 * i + round);
        }
    }
}

static void note_loss(void *context, cvy_status status, const char *words)
{
    CHECK(status == CVY_ERR_MEMORY && strstr(words, "no memory"));
    ++*(int *)context;
}

/* Not agreed on: whoever fails is told, so that it can end all. Alone, so that nobody waits. */
static void test_what_cannot_be_agreed_on_is_told(void **state)
{
    (void)state;
    int told = 0;
    int32_t number = 1;
    cvy_comm *alone = NULL;
    CHECK(cvy_comm_split(world.comm, world.rank, 0, &alone) == CVY_OK);
    cvy_comm_on_loss(alone, note_loss, &told);
    cvy_memory_fail_after(0);
    CHECK(cvy_comm_all_reduce(alone, &number, 1, CVY_I32, CVY_REDUCE_SUM) == CVY_ERR_MEMORY && told == 1);
    CHECK(cvy_comm_all_reduce(alone, &number, 1, CVY_I32, CVY_REDUCE_SUM) == CVY_OK && told == 1);
    cvy_comm_close(&alone);
}

/* The last test of all: what is under way stays so. */
static void test_a_rank_that_does_not_come_is_named(void **state)
{
    (void)state;
    static int64_t all[MAX_RANKS]; /* what is under way may still write to it */
    static const int64_t mine = 1;
    char expected[64];
    if (world.count == 1) {
        return;
    }
    snprintf(expected, sizeof expected, "rank %d did not come", world.count - 1);
    if (world.rank < world.count - 1) { /* the first says who is missing, the others that it did not answer */
        CHECK(cvy_comm_gather_within(world.comm, 0.2, &mine, sizeof mine, all) == CVY_ERR_RANK);
        CHECK(world.rank > 0 || strstr(cvy_error_message(), expected));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_hear_what_each_says),
        cmocka_unit_test(test_what_cannot_be_agreed_on_is_told),
        cmocka_unit_test(test_a_rank_that_does_not_come_is_named),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
