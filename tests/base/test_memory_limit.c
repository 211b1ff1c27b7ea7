/* What may still be taken, by files that a test lays down in place of the system's; expected numbers are by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory_limit.h"
#include "folder.h"

/* ROOT/FOLDER/NAME with a text. */
static void put(const char *root, const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    assert_int_equal(cvy_folder_create(path, CVY_ERR_IO), CVY_OK);
    assert_true(put_test_file(test_path(path, name), text, strlen(text)));
}

static void put_meminfo(const char *root)
{
    put(root, "proc", "meminfo",
        "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:    8000000 kB\nSwapFree: 1000 kB\n");
}

static void test_nothing_known_limits_nothing(void **state)
{
    assert_true(cvy_memory_find_available_bytes(*state) == SIZE_MAX);
    put(*state, "proc", "meminfo", "MemTotal: 16000000 kB\nMemAvailable: lots\n");
    put(*state, "proc/self", "cgroup", "noise\n0\n0:\n::\n\n");
    assert_true(cvy_memory_find_available_bytes(*state) == SIZE_MAX);
}

/* 8,000,000 + 1,000 kB. */
static void test_the_system_has_what_is_available_and_swap(void **state)
{
    put_meminfo(*state);
    assert_true(cvy_memory_find_available_bytes(*state) == (size_t)8001000 * 1024);
}

/* The step has no limit of its own, the job 1,000,000 of which 600,000 are used, 200,000 by pages of files. */
static void test_a_group_of_version_2_is_limited_by_the_one_above(void **state)
{
    put_meminfo(*state);
    put(*state, "proc/self", "cgroup", "1:name=systemd:/other\n0::/job/step\n");
    put(*state, "sys/fs/cgroup/job/step", "memory.max", "max\n");
    put(*state, "sys/fs/cgroup/job/step", "memory.current", "590000\n");
    put(*state, "sys/fs/cgroup/job", "memory.max", "1000000\n");
    put(*state, "sys/fs/cgroup/job", "memory.current", "600000\n");
    put(*state, "sys/fs/cgroup/job", "memory.stat",
        "anon 400000\nfile 210000\nshmem 10000\ninactive_file 150000\nactive_file 50000\nworkingset_refault_file 7\n");
    assert_true(cvy_memory_find_available_bytes(*state) == 600000);
    /* a tighter limit below wins: 700,000 - 590,000, nothing being known of its files */
    put(*state, "sys/fs/cgroup/job/step", "memory.max", "700000\n");
    assert_true(cvy_memory_find_available_bytes(*state) == 110000);
    /* a use beyond the limit, as when the limit was lowered */
    put(*state, "sys/fs/cgroup/job/step", "memory.max", "500000\n");
    assert_true(cvy_memory_find_available_bytes(*state) == 0);
}

/* A container sees its own group as the root, whose limit and use stand in the root's folder. */
static void test_a_container_is_limited_by_the_root_that_it_sees(void **state)
{
    put_meminfo(*state);
    put(*state, "proc/self", "cgroup", "0::/\n");
    put(*state, "sys/fs/cgroup", "memory.max", "3000000000\n");
    put(*state, "sys/fs/cgroup", "memory.current", "1000000000\n");
    assert_true(cvy_memory_find_available_bytes(*state) == 2000000000);
}

/* Version 1, whose path in /proc is the host's and not there; "no limit" is a number near 2^63. */
static void test_a_group_of_version_1_counts_its_own_controller(void **state)
{
    put_meminfo(*state);
    put(*state, "proc/self", "cgroup", "5:cpu,memoryless:/cpu\n4:hugetlb,memory,pids:/docker/0123\n0::/\n");
    put(*state, "sys/fs/cgroup/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    put(*state, "sys/fs/cgroup/memory", "memory.usage_in_bytes", "5000\n");
    assert_true(cvy_memory_find_available_bytes(*state) == (size_t)8001000 * 1024);
    put(*state, "sys/fs/cgroup/memory", "memory.limit_in_bytes", "6000\n");
    put(*state, "sys/fs/cgroup/memory", "memory.stat",
        "inactive_file 1\nactive_file 2\ntotal_inactive_file 30\ntotal_active_file 400\n");
    assert_true(cvy_memory_find_available_bytes(*state) == 6000 - (5000 - 430));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_nothing_known_limits_nothing),
        IN_FOLDER(test_the_system_has_what_is_available_and_swap),
        IN_FOLDER(test_a_group_of_version_2_is_limited_by_the_one_above),
        IN_FOLDER(test_a_container_is_limited_by_the_root_that_it_sees),
        IN_FOLDER(test_a_group_of_version_1_counts_its_own_controller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
