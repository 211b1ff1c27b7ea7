/* A rank alone: collectives leave its data as they are, and wrong calls are refused in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "comm/comm.h"

static void test_one_rank_keeps_what_it_has(void **state)
{
    (void)state;
    cvy_comm *comm = NULL;
    float data[3] = {1.0f, -2.0f, 3.0f};
    assert_int_equal(cvy_comm_open(NULL, &comm), CVY_OK);
    assert_int_equal(cvy_comm_rank(comm), 0);
    assert_int_equal(cvy_comm_ranks(comm), 1);
    assert_int_equal(cvy_comm_all_reduce(comm, data, 3, CVY_F32, CVY_REDUCE_SUM), CVY_OK);
    assert_int_equal(cvy_comm_all_reduce(comm, data, 3, CVY_F32, CVY_REDUCE_MAX), CVY_OK);
    assert_int_equal(cvy_comm_broadcast(comm, data, sizeof data, 0), CVY_OK);
    assert_true(data[0] == 1.0f && data[1] == -2.0f && data[2] == 3.0f);
    cvy_comm_close(&comm);
    assert_null(comm);
    cvy_comm_close(&comm);
}

static void test_wrong_calls_are_refused(void **state)
{
    (void)state;
    cvy_comm *comm = NULL;
    uint8_t byte = 7;
    assert_int_equal(cvy_comm_open("pigeon", &comm), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "pigeon"));
    assert_int_equal(cvy_comm_open("self", &comm), CVY_OK);
    assert_int_equal(cvy_comm_all_reduce(comm, &byte, 1, CVY_U8, CVY_REDUCE_SUM), CVY_ERR_ARG);
    assert_int_equal(cvy_comm_all_reduce(comm, &byte, -1, CVY_F32, CVY_REDUCE_SUM), CVY_ERR_ARG);
    assert_int_equal(cvy_comm_broadcast(comm, &byte, 1, 1), CVY_ERR_ARG);
    cvy_comm_close(&comm);
}

/* The agreement is this rank's own word where there is no other. */
static void test_agreement_of_one_is_its_own(void **state)
{
    (void)state;
    cvy_comm *comm = NULL;
    assert_int_equal(cvy_comm_open("self", &comm), CVY_OK);
    assert_int_equal(cvy_comm_agree(comm, CVY_OK), CVY_OK);
    assert_int_equal(cvy_comm_agree(comm, cvy_fail(CVY_ERR_DATA, "x.gz: cut")), CVY_ERR_DATA);
    assert_string_equal(cvy_error_message(), "x.gz: cut");
    cvy_comm_close(&comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank_keeps_what_it_has),
        cmocka_unit_test(test_wrong_calls_are_refused),
        cmocka_unit_test(test_agreement_of_one_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
