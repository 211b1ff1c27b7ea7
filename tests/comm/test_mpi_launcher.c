/* What launchers leave in the environment, and a program that another MPI's launcher has started. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm/comm.h"

static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",     "PMIX_RANK",   "SLURM_STEP_NUM_TASKS",
                                        "SLURM_NTASKS",         "SLURM_PROCID", "SLURM_STEP_ID"};

static int forget_launchers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        unsetenv(variables[i]);
    }
    return 0;
}

/* Set a blank-separated list of NAME=VALUE, ask, and forget it. */
static bool is_started(const char *settings)
{
    char text[256];
    strncpy(text, settings, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (char *at = strtok(text, " "); at; at = strtok(NULL, " ")) {
        char *equal = strchr(at, '=');
        *equal = '\0';
        setenv(at, equal + 1, 1);
    }
    bool started = cvy_comm_kind_get(0)->is_started();
    forget_launchers(NULL);
    return started;
}

static void test_launchers_are_known_by_what_they_set(void **state)
{
    (void)state;
    assert_string_equal(cvy_comm_kind_get(0)->name, "mpi");
    assert_false(is_started(""));
    assert_true(is_started("OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=0"));
    assert_true(is_started("PMI_SIZE=4"));
    assert_true(is_started("PMIX_RANK=0"));
    assert_true(is_started("SLURM_NTASKS=3 SLURM_PROCID=2 SLURM_STEP_ID=0"));
    assert_true(is_started("SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=2 SLURM_STEP_ID=0"));
}

/* One rank started by mpiexec is alone; so is a batch script of a job with many tasks, and a shell on its nodes. */
static void test_one_rank_is_not_several(void **state)
{
    (void)state;
    assert_false(is_started("OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0"));
    assert_false(is_started("SLURM_NTASKS=8 SLURM_PROCID=0"));
    assert_false(is_started("SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_STEP_ID=4294967290"));
    assert_false(is_started("OMPI_COMM_WORLD_SIZE=many"));
    /* mpiexec started by way of srun: two helpers, one rank */
    assert_false(is_started("OMPI_COMM_WORLD_SIZE=1 SLURM_NTASKS=2 SLURM_PROCID=0 SLURM_STEP_ID=0"));
}

/* The launcher says two; MPI, which is not its, finds one. */
static void test_ranks_that_were_not_joined_are_missed(void **state)
{
    (void)state;
    cvy_comm *comm = NULL;
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    assert_int_equal(cvy_comm_open(NULL, &comm), CVY_ERR_RANK);
    assert_null(comm);
    assert_non_null(strstr(cvy_error_message(), "started 2 ranks (OMPI_COMM_WORLD_SIZE), but MPI joined 1"));
    forget_launchers(NULL);
}

/* Runs after the one above, which has started and ended MPI. */
static void test_mpi_is_started_once(void **state)
{
    (void)state;
    cvy_comm *comm = NULL;
    assert_int_equal(cvy_comm_open("mpi", &comm), CVY_ERR_RANK);
    assert_null(comm);
    assert_non_null(strstr(cvy_error_message(), "cannot be started again"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launchers_are_known_by_what_they_set),
        cmocka_unit_test(test_one_rank_is_not_several),
        cmocka_unit_test(test_ranks_that_were_not_joined_are_missed),
        cmocka_unit_test(test_mpi_is_started_once),
    };
    return cmocka_run_group_tests(tests, forget_launchers, NULL);
}
