/* The vocabulary of collectives: names there and back, and who does what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/collective.h"

static void test_names_of_machine_files(void **state)
{
    (void)state;
    assert_string_equal(cvy_collective_name(CVY_COLLECTIVE_ALL_REDUCE), "all-reduce");
    assert_string_equal(cvy_collective_name(CVY_COLLECTIVE_POINT_TO_POINT), "point-to-point");
    assert_string_equal(cvy_algorithm_name(CVY_ALGORITHM_HALVING_DOUBLING), "halving-doubling");
    assert_string_equal(cvy_algorithm_name(CVY_ALGORITHM_NCCL_TREE_LL128), "nccl-tree-ll128");
}

static void test_every_algorithm_is_found_by_its_name_and_does_something(void **state)
{
    (void)state;
    for (int i = 0; i < CVY_ALGORITHM_COUNT; i++) {
        cvy_algorithm found = CVY_ALGORITHM_COUNT;
        assert_true(cvy_algorithm_find(cvy_algorithm_name((cvy_algorithm)i), &found));
        assert_int_equal(found, i);
        int does = 0;
        for (int j = 0; j < CVY_COLLECTIVE_COUNT; j++) {
            does += cvy_algorithm_does((cvy_algorithm)i, (cvy_collective)j);
        }
        assert_true(does > 0);
        assert_false(cvy_algorithm_does((cvy_algorithm)i, CVY_COLLECTIVE_POINT_TO_POINT));
    }
    cvy_algorithm untouched = CVY_ALGORITHM_RING;
    assert_false(cvy_algorithm_find("rings", &untouched));
    assert_int_equal(untouched, CVY_ALGORITHM_RING);
}

static void test_a_tree_does_no_all_to_all(void **state)
{
    (void)state;
    assert_true(cvy_algorithm_does(CVY_ALGORITHM_RING, CVY_COLLECTIVE_REDUCE_SCATTER));
    assert_true(cvy_algorithm_does(CVY_ALGORITHM_BRUCK, CVY_COLLECTIVE_ALL_TO_ALL));
    assert_false(cvy_algorithm_does(CVY_ALGORITHM_TREE, CVY_COLLECTIVE_ALL_TO_ALL));
    assert_false(cvy_algorithm_does(CVY_ALGORITHM_RING, CVY_COLLECTIVE_BROADCAST));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_machine_files),
        cmocka_unit_test(test_every_algorithm_is_found_by_its_name_and_does_something),
        cmocka_unit_test(test_a_tree_does_no_all_to_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
