/* A run's folder belongs to one process at a time, and to nobody once that one is gone, however it went. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "runtime/run_folder.h"
#include "runtime/run_folder_lock.h"

/* A process that has opened a folder for a run, and does nothing more. */
static pid_t hold_in_child(const cvy_train_options *options)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        cvy_run_folder folder;
        byte = cvy_run_folder_open(options, &folder) == CVY_OK ? 'y' : 'n';
        if (write(ready[1], &byte, 1) == 1) {
            pause();
        }
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static cvy_status open_and_close(const cvy_train_options *options)
{
    cvy_run_folder folder;
    const cvy_position position = {0};
    const cvy_train_result result = {0};
    cvy_status status = cvy_run_folder_open(options, &folder);
    return cvy_run_folder_close(&folder, &position, &result, status);
}

static void test_a_second_process_is_told_who_has_the_folder(void **state)
{
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    char holder[32];
    options.out = test_path(*state, "run");
    pid_t child = hold_in_child(&options);
    assert_int_equal(open_and_close(&options), CVY_ERR_INPUT);
    snprintf(holder, sizeof holder, "/run: process %ld on ", (long)child);
    if (!strstr(cvy_error_message(), holder)) {
        fail_msg("expected '%s', got '%s'", holder, cvy_error_message());
    }
    end_child(child);
    assert_int_equal(open_and_close(&options), CVY_OK);
    assert_int_equal(open_and_close(&options), CVY_OK); /* closing has let go of it */
}

/* The same for a run that is resumed: its folder is free right after kill -9. */
static void test_a_killed_run_can_be_resumed_at_once(void **state)
{
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    options.resume = test_path(*state, "run");
    assert_int_equal(cvy_folder_create(test_path(*state, "run/checkpoints/step-00000001"), CVY_ERR_IO), CVY_OK);
    pid_t child = hold_in_child(&options);
    assert_int_equal(open_and_close(&options), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "trains in it"));
    end_child(child);
    assert_int_equal(open_and_close(&options), CVY_OK);
}

/* A file that says nothing of its holder, or too much of it, is locked all the same. */
static void test_what_the_file_says_is_not_believed(void **state)
{
    char noise[400];
    int mine = -1, other = -1;
    memset(noise, '7', sizeof noise);
    const char *path = test_path(*state, "lock");
    assert_true(put_test_file(path, noise, sizeof noise));
    assert_int_equal(cvy_run_folder_lock(*state, &mine), CVY_OK);
    assert_true(put_test_file(path, noise, sizeof noise));
    assert_int_equal(cvy_run_folder_lock(*state, &other), CVY_ERR_INPUT);
    assert_int_equal(other, -1);
    assert_non_null(strstr(cvy_error_message(), "another process trains in it"));
    cvy_run_folder_unlock(&mine);
    assert_int_equal(mine, -1);
    cvy_run_folder_unlock(&mine);
    assert_int_equal(cvy_run_folder_lock(*state, &other), CVY_OK);
    cvy_run_folder_unlock(&other);
    assert_int_equal(cvy_run_folder_lock(test_path(*state, "no-such"), &other), CVY_ERR_IO);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_a_second_process_is_told_who_has_the_folder),
        IN_FOLDER(test_a_killed_run_can_be_resumed_at_once),
        IN_FOLDER(test_what_the_file_says_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
