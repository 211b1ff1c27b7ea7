/* Laws of binding: a core for each thread of a team, all cores for a loader, everything back behind it. */
#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/topology.h"
#include "runtime/session.h"

enum { MOST = 64 };

static cpu_set_t get_mask(void)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    return mask;
}

static void get_team(int threads, cpu_set_t *mask_out)
{
#pragma omp parallel num_threads(threads)
    {
        CPU_ZERO(&mask_out[omp_get_thread_num()]);
        (void)sched_getaffinity(0, sizeof mask_out[0], &mask_out[omp_get_thread_num()]);
    }
}

static void *take_mask(void *opaque)
{
    *(cpu_set_t *)opaque = get_mask();
    return NULL;
}

/* The mask that a thread has which this one makes. */
static cpu_set_t make_thread(void)
{
    pthread_t thread;
    cpu_set_t mask;
    assert_int_equal(pthread_create(&thread, NULL, take_mask, &mask), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return mask;
}

/* Cores of this thread's mask, counted by their lowest hardware threads; less than 2 or more than MOST: skip. */
static int count_cores(void)
{
    cpu_set_t all = get_mask(), leaders;
    CPU_ZERO(&leaders);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cvy_topology_core(cpu), &leaders);
        }
    }
    int cores = CPU_COUNT(&leaders);
    if (cores < 2 || cores > MOST) {
        skip();
    }
    return cores;
}

static void test_each_thread_has_a_core_of_its_own(void **state)
{
    (void)state;
    int cores = count_cores();
    cpu_set_t all = get_mask(), team[MOST], together;
    cvy_threads *bound = cvy_threads_bind(cores, NULL);
    assert_non_null(bound);
    get_team(cores, team);
    CPU_ZERO(&together);
    for (int i = 0; i < cores; i++) {
        cpu_set_t both;
        CPU_AND(&both, &together, &team[i]);
        assert_true(CPU_COUNT(&team[i]) >= 1 && CPU_COUNT(&both) == 0);
        CPU_OR(&together, &together, &team[i]);
    }
    assert_true(CPU_EQUAL(&together, &all));
    cvy_threads_release(&bound);
    assert_null(bound);
    get_team(cores, team);
    for (int i = 0; i < cores; i++) {
        assert_true(CPU_EQUAL(&team[i], &all));
    }
}

static void test_threads_made_in_a_pause_have_all_cores(void **state)
{
    (void)state;
    cpu_set_t all = get_mask(), made;
    cvy_threads *bound = cvy_threads_bind(count_cores(), NULL);
    cvy_threads_pause(bound);
    made = make_thread();
    assert_true(CPU_EQUAL(&made, &all));
    cvy_threads_resume(bound);
    made = make_thread();
    assert_false(CPU_EQUAL(&made, &all));
    cvy_threads_release(&bound);
}

/* Of cores that others may use as well a rank binds to its own, be it one; the rest is not touched, and comes back. */
static void test_a_rank_binds_to_its_own_cores(void **state)
{
    (void)state;
    (void)count_cores();
    cpu_set_t all = get_mask(), own, mask;
    int last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &all)) {
        last--;
    }
    CPU_ZERO(&own);
    CPU_SET(cvy_topology_core(last), &own);
    assert_null(cvy_threads_bind(2, &own));
    cvy_threads *bound = cvy_threads_bind(1, &own);
    assert_non_null(bound);
    mask = get_mask();
    assert_true(CPU_ISSET(last, &mask));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        assert_true(!CPU_ISSET(cpu, &mask) || cvy_topology_core(cpu) == cvy_topology_core(last));
    }
    cvy_threads_pause(bound);
    mask = get_mask();
    assert_true(CPU_EQUAL(&mask, &all));
    cvy_threads_resume(bound);
    cvy_threads_release(&bound);
    mask = get_mask();
    assert_true(CPU_EQUAL(&mask, &all));
}

static void test_nothing_is_bound_where_it_would_not_fit(void **state)
{
    (void)state;
    int cores = count_cores();
    assert_null(cvy_threads_bind(1, NULL));
    assert_null(cvy_threads_bind(cores + 1, NULL));
    cvy_threads_pause(NULL);
    cvy_threads_resume(NULL);
    static const char *const users[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(setenv(users[i], "false", 1), 0);
        assert_null(cvy_threads_bind(cores, NULL));
        assert_int_equal(unsetenv(users[i]), 0);
    }
}

/* A session binds, and gives back what it took; one that is told not to does not. */
static void test_a_session_leaves_the_masks_as_they_were(void **state)
{
    (void)state;
    int cores = count_cores();
    cpu_set_t all = get_mask(), now;
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_open("lenet5", &model), CVY_OK);
    for (int pinned = 0; pinned < 2; pinned++) {
        cvy_session session;
        cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
        options.threads = cores;
        options.pin = pinned;
        assert_int_equal(cvy_session_open(model, &options, NULL, true, false, &session), CVY_OK);
        now = get_mask();
        assert_int_equal(CPU_EQUAL(&now, &all), !pinned);
        cvy_session_close(&session);
        now = get_mask();
        assert_true(CPU_EQUAL(&now, &all));
    }
    cvy_model_destroy(&model);
}

/* Threads of this process that have all of a mask. */
static int count_free_threads(const cpu_set_t *all)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks));) {
        cpu_set_t mask;
        CPU_ZERO(&mask);
        int id = atoi(entry->d_name); /* 0 for . and .. */
        count += id > 0 && sched_getaffinity(id, sizeof mask, &mask) == 0 && CPU_EQUAL(&mask, all);
    }
    closedir(tasks);
    return count;
}

/* Three threads that read data join those that have all cores. */
static void test_threads_of_a_loader_have_all_cores(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    cvy_session session;
    cvy_loader *loader = NULL;
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    cpu_set_t all = get_mask();
    options.threads = count_cores();
    options.pin = true;
    options.data = "random";
    options.train_samples = 64;
    options.data_threads = 3;
    assert_int_equal(cvy_model_open("lenet5", &model), CVY_OK);
    assert_int_equal(cvy_session_open(model, &options, NULL, true, true, &session), CVY_OK);
    int before = count_free_threads(&all);
    assert_int_equal(cvy_session_loader(&session, &options, CVY_SPLIT_TRAIN, &loader), CVY_OK);
    assert_int_equal(count_free_threads(&all), before + 3);
    cvy_loader_destroy(&loader);
    cvy_session_close(&session);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_thread_has_a_core_of_its_own),
        cmocka_unit_test(test_threads_made_in_a_pause_have_all_cores),
        cmocka_unit_test(test_a_rank_binds_to_its_own_cores),
        cmocka_unit_test(test_nothing_is_bound_where_it_would_not_fit),
        cmocka_unit_test(test_threads_of_a_loader_have_all_cores),
        cmocka_unit_test(test_a_session_leaves_the_masks_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
