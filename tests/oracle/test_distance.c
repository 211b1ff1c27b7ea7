/* How far an op's operands are, by hand on small schedules. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oracle/compute.h"
#include "oracle/distance.h"

enum { PAGE = 4096 };

/* Three buffers of a page each, side by side; steps that touch the buffers which are named. */
static void walk(const int (*uses)[2], int steps, cvy_buffer *buffer, double *distance)
{
    cvy_step step[4] = {0};
    cvy_use use[8] = {0};
    cvy_schedule s = {.steps = steps, .step = step, .use = use, .buffers = 3, .buffer = buffer,
                      .memory = {.persistent_bytes = PAGE, .transient_bytes = 2 * PAGE}};
    for (int i = 0; i < steps; i++) {
        step[i].first_use = 2 * i;
        step[i].uses = 2;
        use[2 * i].buffer = uses[i][0];
        use[2 * i + 1].buffer = uses[i][1];
    }
    assert_int_equal(cvy_schedule_distances(&s, distance), CVY_OK);
}

static void assert_close(double got, double expected)
{
    assert_true(fabs(got - expected) <= 1e-9 * expected);
}

/*
 * w x | x y | w y, two pages a step, again and again. In the second round: step 0 finds w from step 2 of the round
 * before, at 0 + 2 own pages, and x from step 1, at 2 + 2; the geometric mean of 2 and 4 pages. Step 1: x at 2, y from
 * step 2 of the round before at 2 + 2. Step 2: w from step 0 at 2 + 2, y at 2.
 */
static void test_distances_are_bytes_since_the_last_touch(void **state)
{
    (void)state;
    static const int uses[][2] = {{0, 1}, {1, 2}, {0, 2}};
    cvy_buffer buffer[] = {{.bytes = PAGE, .persistent = true, .alias_of = -1},
                                 {.bytes = PAGE, .alias_of = -1, .offset = 0},
                                 {.bytes = PAGE, .alias_of = -1, .offset = PAGE}};
    double distance[3];
    walk(uses, 3, buffer, distance);
    for (int i = 0; i < 3; i++) {
        assert_close(distance[i], sqrt(8.0) * PAGE);
    }
}

/* x and y in the same place: step 1 finds y where step 0 has touched x. Both of its operands are 2 pages away. */
static void test_memory_counts_by_where_it_lies(void **state)
{
    (void)state;
    static const int uses[][2] = {{0, 1}, {0, 2}};
    cvy_buffer buffer[] = {{.bytes = PAGE, .persistent = true, .alias_of = -1},
                                 {.bytes = PAGE, .alias_of = -1, .offset = PAGE},
                                 {.bytes = PAGE, .alias_of = -1, .offset = PAGE}};
    double distance[2];
    walk(uses, 2, buffer, distance);
    assert_close(distance[0], 2.0 * PAGE);
    assert_close(distance[1], 2.0 * PAGE);
}

/* w of 256 MiB, x of a page: whatever is farther than the farthest counts as that, and nothing is nothing. */
static void test_far_is_far(void **state)
{
    (void)state;
    cvy_buffer buffer[] = {{.bytes = 256 << 20, .persistent = true, .alias_of = -1},
                                 {.bytes = PAGE, .alias_of = -1, .offset = 0},
                                 {.bytes = 0, .alias_of = -1, .offset = PAGE}};
    cvy_step step[2] = {{.first_use = 0, .uses = 2}, {.first_use = 2, .uses = 1}};
    cvy_use use[3] = {{.buffer = 0}, {.buffer = 1}, {.buffer = 2}};
    double distance[2];
    cvy_schedule s = {.steps = 2, .step = step, .use = use, .buffers = 3, .buffer = buffer,
                      .memory = {.persistent_bytes = 256 << 20, .transient_bytes = 2 * PAGE}};
    assert_int_equal(cvy_schedule_distances(&s, distance), CVY_OK);
    assert_close(distance[0], CVY_FARTHEST_BYTES);
    assert_true(distance[1] == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances_are_bytes_since_the_last_touch),
        cmocka_unit_test(test_memory_counts_by_where_it_lies),
        cmocka_unit_test(test_far_is_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
