/* Files whole or not at all; folders with everything in them. Expectations come from the system's own calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "folder.h"

static void assert_file_holds(const char *path, const char *text)
{
    char got[256] = "";
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    size_t bytes = fread(got, 1, sizeof got - 1, stream);
    fclose(stream);
    assert_int_equal(bytes, strlen(text));
    assert_string_equal(got, text);
}

static void test_written_bytes_are_read_back_with_a_zero_behind(void **state)
{
    const char *path = test_path(*state, "f");
    const char bytes[] = {'a', '\0', 'b', '\n'};
    assert_int_equal(cvy_file_write(path, bytes, sizeof bytes, CVY_ERR_IO), CVY_OK);
    char *data = NULL;
    size_t count = 0;
    assert_int_equal(cvy_file_read(path, sizeof bytes, CVY_ERR_DATA, &data, &count), CVY_OK);
    assert_int_equal(count, 4);
    assert_memory_equal(data, bytes, 4);
    assert_int_equal(data[4], 0);
    cvy_free(data);
}

static void test_empty_file_and_file_of_unknown_size_are_read(void **state)
{
    const char *path = test_path(*state, "empty");
    char *data = NULL;
    size_t count = 1;
    assert_int_equal(cvy_file_write(path, "", 0, CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_file_read(path, 0, CVY_ERR_DATA, &data, &count), CVY_OK);
    assert_int_equal(count, 0);
    assert_string_equal(data, "");
    cvy_free(data);
    assert_int_equal(cvy_file_read("/proc/self/status", 1 << 20, CVY_ERR_DATA, &data, &count), CVY_OK); /* says 0 */
    assert_true(count > 100);
    assert_non_null(strstr(data, "Name:"));
    cvy_free(data);
}

static void test_a_file_one_byte_over_the_limit_is_refused(void **state)
{
    const char *path = test_path(*state, "f");
    char *data = NULL;
    size_t count;
    assert_int_equal(cvy_file_write(path, "12345", 5, CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_file_read(path, 4, CVY_ERR_DATA, &data, &count), CVY_ERR_DATA);
    assert_null(data);
    assert_non_null(strstr(cvy_error_message(), path));
    assert_non_null(strstr(cvy_error_message(), "at most 4"));
    assert_int_equal(cvy_file_read("/proc/self/status", 4, CVY_ERR_DATA, &data, &count), CVY_ERR_DATA);
}

/* A pipe without a writer would block an ordinary open for ever. */
static void test_what_is_not_a_regular_file_is_refused(void **state)
{
    char *data = NULL;
    size_t count;
    const char *pipe_path = test_path(*state, "pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(cvy_file_read(pipe_path, 10, CVY_ERR_INPUT, &data, &count), CVY_ERR_INPUT);
    assert_int_equal(cvy_file_read(*state, 10, CVY_ERR_INPUT, &data, &count), CVY_ERR_INPUT);
    assert_int_equal(cvy_file_read(test_path(*state, "none"), 10, CVY_ERR_INPUT, &data, &count), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), strerror(ENOENT)));
    assert_int_equal(cvy_file_write(*state, "x", 1, CVY_ERR_IO), CVY_ERR_IO);
    assert_int_equal(cvy_file_write(pipe_path, "x", 1, CVY_ERR_IO), CVY_ERR_IO);
}

static void test_a_failed_write_leaves_the_old_bytes_and_nothing_aside(void **state)
{
    const char *path = test_path(*state, "f");
    static char large[4096];
    struct rlimit old;
    assert_int_equal(cvy_file_write(path, "old", 3, CVY_ERR_IO), CVY_OK);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    const struct rlimit small = {1000, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    cvy_status status = cvy_file_write(path, large, sizeof large, CVY_ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, CVY_ERR_IO);
    assert_file_holds(path, "old");
    assert_int_equal(access(test_path(*state, "f.tmp"), F_OK), -1);
    assert_int_equal(cvy_file_write(path, "new", 3, CVY_ERR_IO), CVY_OK);
    assert_file_holds(path, "new");
}

static void test_folders_are_made_with_those_above_and_again(void **state)
{
    const char *deep = test_path(*state, "a//b/c/");
    assert_int_equal(cvy_folder_create(deep, CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_folder_create(deep, CVY_ERR_IO), CVY_OK);
    assert_true(cvy_folder_exists(test_path(*state, "a/b/c")));
    assert_false(cvy_file_exists(test_path(*state, "a/b/c")));
    assert_int_equal(cvy_file_write(test_path(*state, "a/f"), "x", 1, CVY_ERR_IO), CVY_OK);
    assert_true(cvy_file_exists(test_path(*state, "a/f")));
    assert_false(cvy_folder_exists(test_path(*state, "a/f")));
    assert_int_equal(mkfifo(test_path(*state, "a/pipe"), 0600), 0); /* a file, until somebody wants to read it */
    assert_true(cvy_file_exists(test_path(*state, "a/pipe")));
    assert_false(cvy_folder_exists(test_path(*state, "a/pipe")));
    assert_int_equal(cvy_folder_create(test_path(*state, "a/f/g"), CVY_ERR_IO), CVY_ERR_IO);
    assert_int_equal(cvy_folder_create("", CVY_ERR_IO), CVY_ERR_IO);
}

static void test_removal_takes_all_but_never_follows_a_link(void **state)
{
    assert_int_equal(cvy_folder_create(test_path(*state, "gone/deep/er"), CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_folder_create(test_path(*state, "stays"), CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_file_write(test_path(*state, "stays/f"), "x", 1, CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_file_write(test_path(*state, "gone/deep/f"), "x", 1, CVY_ERR_IO), CVY_OK);
    assert_int_equal(symlink(test_path(*state, "stays"), test_path(*state, "gone/deep/link")), 0);
    assert_int_equal(symlink("/nowhere/at/all", test_path(*state, "gone/dangling")), 0);
    assert_int_equal(cvy_folder_remove(test_path(*state, "gone"), CVY_ERR_IO), CVY_OK);
    assert_int_equal(access(test_path(*state, "gone"), F_OK), -1);
    assert_file_holds(test_path(*state, "stays/f"), "x");
    assert_int_equal(cvy_folder_remove(test_path(*state, "gone"), CVY_ERR_IO), CVY_OK);
}

static void test_paths_join_with_one_slash(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "b"}, {"a/b", "c.json", "a/b/c.json"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *path = cvy_path_join(cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        cvy_free(path);
    }
}

static void test_lost_allocations_are_told(void **state)
{
    char *data = NULL;
    size_t count;
    const char *path = test_path(*state, "f");
    assert_int_equal(cvy_file_write(path, "old", 3, CVY_ERR_IO), CVY_OK);
    cvy_memory_fail_after(0);
    assert_int_equal(cvy_file_write(path, "new", 3, CVY_ERR_IO), CVY_ERR_MEMORY);
    cvy_memory_fail_after(0);
    assert_int_equal(cvy_file_read(path, 10, CVY_ERR_IO, &data, &count), CVY_ERR_MEMORY);
    cvy_memory_fail_after(0);
    assert_int_equal(cvy_folder_create(test_path(*state, "d"), CVY_ERR_IO), CVY_ERR_MEMORY);
    cvy_memory_fail_after(0);
    assert_null(cvy_path_join("a", "b"));
    cvy_memory_fail_after(-1);
    assert_file_holds(path, "old");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_written_bytes_are_read_back_with_a_zero_behind),
        IN_FOLDER(test_empty_file_and_file_of_unknown_size_are_read),
        IN_FOLDER(test_a_file_one_byte_over_the_limit_is_refused),
        IN_FOLDER(test_what_is_not_a_regular_file_is_refused),
        IN_FOLDER(test_a_failed_write_leaves_the_old_bytes_and_nothing_aside),
        IN_FOLDER(test_folders_are_made_with_those_above_and_again),
        IN_FOLDER(test_removal_takes_all_but_never_follows_a_link),
        cmocka_unit_test(test_paths_join_with_one_slash),
        IN_FOLDER(test_lost_allocations_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
