/* What the machine says of itself, held against what the system says in other words. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/topology.h"

static void test_every_answer_is_plausible(void **state)
{
    (void)state;
    cvy_topology topology;
    memset(&topology, 0xff, sizeof topology);
    cvy_topology_get(&topology);
    assert_in_range(topology.cores, 1, topology.cores_machine);
    assert_in_range(topology.cores_machine, 1, sysconf(_SC_NPROCESSORS_CONF));
    assert_in_range(topology.numa_nodes, 1, 1024);
    assert_true(topology.cache_bytes >= 0 && topology.cache_bytes < INT64_C(1) << 40);
    assert_true(topology.vector_bits == 128 || topology.vector_bits == 256 || topology.vector_bits == 512);
    assert_true(strnlen(topology.processor, sizeof topology.processor) < sizeof topology.processor);
}

/* /proc/meminfo leaves out what the kernel took for itself at start: a few parts in a hundred at most. */
static void test_memory_is_that_of_meminfo(void **state)
{
    (void)state;
    FILE *file = fopen("/proc/meminfo", "r");
    long long kib = 0;
    if (!file) {
        skip();
    }
    int found = fscanf(file, "MemTotal: %lld kB", &kib);
    fclose(file);
    assert_int_equal(found, 1);
    cvy_topology topology;
    cvy_topology_get(&topology);
    assert_true((double)topology.memory_bytes >= 0.9 * 1024.0 * (double)kib);
    assert_true((double)topology.memory_bytes <= 1.1 * 1024.0 * (double)kib);
}

/* The flags of /proc/cpuinfo are the kernel's view of the same question. */
static void test_vector_width_is_that_of_cpuinfo(void **state)
{
    (void)state;
#if defined(__x86_64__)
    static char line[1 << 16];
    int expected = 0;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !expected && fgets(line, sizeof line, file)) {
        if (strncmp(line, "flags", 5) == 0) {
            expected = strstr(line, " avx512f ") ? 512 : strstr(line, " avx ") ? 256 : 128;
        }
    }
    if (file) {
        fclose(file);
    }
    if (!expected || getenv("TEST_UNDER_VALGRIND")) { /* which shows programs a processor of its own */
        skip();
    }
    cvy_topology topology;
    cvy_topology_get(&topology);
    assert_int_equal(topology.vector_bits, expected);
#endif
}

/* Bound to one hardware thread, a process has one core, and the machine as many as before. */
static void test_binding_leaves_one_core(void **state)
{
    (void)state;
    cpu_set_t before, one;
    cvy_topology whole, bound;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before)) {
        cpu++;
    }
    cvy_topology_get(&whole);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) {
        skip();
    }
    cvy_topology_get(&bound);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(bound.cores, 1);
    assert_int_equal(bound.cores_machine, whole.cores_machine);
    assert_true(whole.cores <= CPU_COUNT(&before));
}

#if CVY_HAVE_HWLOC
static cpu_set_t make_set(int count, const int *cpus)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++) {
        CPU_SET(cpus[i], &set);
    }
    return set;
}

/* A machine made up, of two hardware threads a core: 2 x 3 cores, each known by the lower of its threads. */
static void test_cores_are_known_by_their_lowest_thread(void **state)
{
    (void)state;
    cvy_topology topology;
    cpu_set_t expected = make_set(6, (const int[]){0, 2, 4, 6, 8, 10});
    assert_int_equal(setenv("HWLOC_SYNTHETIC", "pack:2 numa:1 core:3 pu:2", 1), 0);
    cvy_topology_get(&topology);
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
    assert_true(topology.cores == 6 && topology.cores_machine == 6 && topology.numa_nodes == 2);
    assert_true(CPU_EQUAL(&topology.bound, &expected));
}

/* Sockets that number their cores by turns, as some firmware does: even ones lie beside each other, then odd ones. */
static void test_slices_go_by_place_not_by_number(void **state)
{
    (void)state;
    cpu_set_t all = make_set(8, (const int[]){0, 1, 2, 3, 4, 5, 6, 7}), slice;
    cpu_set_t across = make_set(3, (const int[]){6, 1, 3}), some = make_set(3, (const int[]){1, 2, 7});
    cpu_set_t last = make_set(2, (const int[]){1, 7}), none = make_set(0, NULL);
    assert_int_equal(setenv("HWLOC_SYNTHETIC", "pack:2 numa:1 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)", 1), 0);
    cvy_topology_slice(&all, 3, 3, &slice);
    assert_true(CPU_EQUAL(&slice, &across));
    cvy_topology_slice(&some, 1, 9, &slice); /* 2, then 1 and 7 */
    assert_true(CPU_EQUAL(&slice, &last));
    cvy_topology_slice(&some, 3, 1, &slice);
    assert_true(CPU_EQUAL(&slice, &none));
    cvy_topology_slice(&all, 0, 8, &all);
    assert_int_equal(CPU_COUNT(&all), 8);
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_answer_is_plausible),
        cmocka_unit_test(test_memory_is_that_of_meminfo),
        cmocka_unit_test(test_vector_width_is_that_of_cpuinfo),
        cmocka_unit_test(test_binding_leaves_one_core),
#if CVY_HAVE_HWLOC
        cmocka_unit_test(test_cores_are_known_by_their_lowest_thread),
        cmocka_unit_test(test_slices_go_by_place_not_by_number),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
