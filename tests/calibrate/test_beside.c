/* What ranks do to each other: sums of rounds by hand, and a rank that is alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "calibrate/beside.h"

static void assert_near(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * fabs(expected))) {
        fail_msg("found %.9g, expected %.9g", found, expected);
    }
}

/* 2 ranks take 1.2 and 1.8 of what their kernels take, 1.5 on average; the slowest is a fifth over the mean, and the
   largest of two normal deviates is sqrt(2 ln 2) deviations above it. */
static void test_ranks_that_share_cores_are_seen(void **state)
{
    (void)state;
    const double seconds[] = {1.2, 1.8, 1.2, 1.8, 9.0, 9.0}, kernels[] = {1, 1, 1, 1, 1, 1};
    cvy_beside beside = {0};
    cvy_beside_sum_up(seconds, kernels, 3, 2, &beside);
    assert_near(beside.lockstep, 1.5, 1e-12);
    assert_near(beside.spread, 0.2 / sqrt(2.0 * log(2.0)), 1e-12);
}

/* Quartiles of 1 to 9 by place: 3 and 7, with 5 between them. Kernels that take longer than the whole are noise. */
static void test_a_rank_alone_has_the_spread_of_its_rounds(void **state)
{
    (void)state;
    const double seconds[] = {9, 1, 8, 2, 7, 3, 6, 4, 5}, kernels[] = {9, 1, 8, 2, 7, 3, 6, 4, 50};
    cvy_beside beside = {0};
    cvy_beside_sum_up(seconds, kernels, 9, 1, &beside);
    assert_near(beside.spread, 4.0 / 5.0 / 1.349, 1e-12);
    assert_true(beside.lockstep == 1.0);
}

static void test_a_rank_alone_is_measured(void **state)
{
    (void)state;
    cvy_comm *comm = NULL;
    cvy_backend_chain chain;
    cvy_beside beside = {0};
    assert_int_equal(cvy_comm_open("self", &comm), CVY_OK);
    assert_int_equal(cvy_backend_chain_find(NULL, &chain), CVY_OK);
    assert_int_equal(cvy_beside_measure(comm, &chain, NULL, &beside), CVY_OK);
    assert_true(beside.rounds > 0 && beside.lockstep >= 1.0 && beside.spread >= 0.0);
    assert_true(beside.exchange_slowdown == 0.0 && beside.compute_slowdown == 0.0);
    cvy_comm_close(&comm);
}

/* Training overlaps, so the file says so where exchanges were measured; of one rank it says nothing of them. */
static void test_the_machine_gets_what_was_found(void **state)
{
    (void)state;
    cvy_machine *machine = cvy_calloc(1, sizeof *machine);
    cvy_beside alone = {.rounds = 15, .lockstep = 1.0, .spread = 0.012345}, both = alone;
    both.exchange_slowdown = 2.5;
    both.compute_slowdown = 1.25;
    assert_non_null(machine);
    machine->execution.exchange_slowdown = 1.0;
    assert_int_equal(cvy_beside_fill(&alone, "2026-01-02", machine), CVY_OK);
    assert_true(!machine->execution.overlap && machine->execution.exchange_slowdown == 1.0);
    assert_true(machine->device.spread == 0.01234 || machine->device.spread == 0.01235); /* four digits */
    assert_int_equal(cvy_beside_fill(&both, "2026-01-02", machine), CVY_OK);
    assert_true(machine->execution.overlap && machine->execution.exchange_slowdown == 2.5);
    assert_true(machine->execution.compute_slowdown == 1.25);
    cvy_machine_destroy(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_that_share_cores_are_seen),
        cmocka_unit_test(test_a_rank_alone_has_the_spread_of_its_rounds),
        cmocka_unit_test(test_a_rank_alone_is_measured),
        cmocka_unit_test(test_the_machine_gets_what_was_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
