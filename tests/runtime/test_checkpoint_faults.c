/*
 * Checkpoints that meet trouble: any damage is told and passed over; a save that is killed, meets a full disk or runs
 * out of memory leaves the older checkpoints as they were.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/checkpointed_run.h"

static const char *const files[] = {"model.safetensors", "optimizer.safetensors", "state.json"};

/* One bit of every byte, and every eighth length, of each file. */
static void test_any_flipped_bit_and_any_cut_is_refused_and_named(void **state)
{
    static run r;
    init_run(&r, CVY_F32);
    fill_run(&r, 1);
    save(*state, &r, 100);
    save(*state, &r, 200);
    const char *newest = "step-00000200";
    char folder[512];
    snprintf(folder, sizeof folder, "%s/%s", (const char *)*state, newest);
    for (size_t i = 0; i < 3; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        char *bytes = NULL;
        size_t count = 0;
        assert_int_equal(cvy_file_read(path, 100000, CVY_ERR_IO, &bytes, &count), CVY_OK);
        for (size_t at = 0; at < count; at++) {
            bytes[at] = (char)(bytes[at] ^ 1 << at % 8);
            assert_true(put_test_file(path, bytes, count));
            assert_refused(folder, &r, files[i], "damaged");
            bytes[at] = (char)(bytes[at] ^ 1 << at % 8);
        }
        for (size_t length = 0; length < count; length += 8) {
            assert_true(put_test_file(path, bytes, length));
            assert_refused(folder, &r, files[i], "damaged");
        }
        bytes[count] = ' ';
        assert_true(put_test_file(path, bytes, count + 1));
        assert_refused(folder, &r, files[i], "damaged");
        assert_found(*state, "step-00000100", 1);
        assert_int_equal(unlink(path), 0);
        assert_refused(folder, &r, files[i], "No such file");
        assert_found(*state, "step-00000100", 1);
        assert_true(put_test_file(path, bytes, count));
        assert_found(*state, newest, 0);
        cvy_free(bytes);
    }
}

static void test_where_nothing_is_whole_the_newest_is_told(void **state)
{
    static run r;
    char *path = NULL;
    init_run(&r, CVY_F32);
    assert_int_equal(cvy_checkpoint_find(test_path(*state, "none"), &path, NULL), CVY_ERR_CHECKPOINT);
    assert_int_equal(cvy_checkpoint_find(*state, &path, NULL), CVY_ERR_CHECKPOINT);
    assert_non_null(strstr(cvy_error_message(), "there is no checkpoint"));
    save(*state, &r, 1);
    save(*state, &r, 2);
    assert_int_equal(unlink(test_path(*state, "step-00000001/state.json")), 0);
    assert_int_equal(unlink(test_path(*state, "step-00000002/model.safetensors")), 0);
    assert_int_equal(cvy_checkpoint_find(*state, &path, NULL), CVY_ERR_CHECKPOINT);
    assert_non_null(strstr(cvy_error_message(), "none of its 2 checkpoints is whole"));
    assert_non_null(strstr(cvy_error_message(), "step-00000002/model.safetensors: No such file"));
    assert_null(path);
}

static void set_file_limit(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The system kills a process (SIGXFSZ) at the byte of a file that passes the limit: each limit is another moment. */
static void test_a_save_killed_at_any_moment_leaves_the_one_before(void **state)
{
    static run old, new;
    init_run(&old, CVY_F32);
    fill_run(&old, 1);
    save(*state, &old, 100);
    init_run(&new, CVY_F32);
    fill_run(&new, 2);
    int killed = 0;
    for (rlim_t limit = 0; limit < 1200; limit += 40) {
        pid_t child = fork();
        if (child == 0) {
            const struct rlimit no_core = {0, 0};
            (void)setrlimit(RLIMIT_CORE, &no_core);
            signal(SIGXFSZ, SIG_DFL);
            set_file_limit(limit);
            cvy_position position = position_at(200);
            _exit(cvy_checkpoint_save(*state, &new.state, &position) == CVY_OK ? 0 : 1);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        if (WIFSIGNALED(how)) {
            killed++;
            assert_found(*state, "step-00000100", 0);
            assert_true(count_entries(*state) > 1); /* it did leave something */
        } else {
            assert_int_equal(WEXITSTATUS(how), 0);
            assert_found(*state, "step-00000200", 0);
        }
        assert_int_equal(cvy_checkpoint_prune(*state, 2, 200, -1), CVY_OK);
        assert_int_equal(count_entries(*state), WIFSIGNALED(how) ? 1 : 2);
    }
    assert_true(killed > 10);
    assert_found(*state, "step-00000200", 0);
}

static void test_a_full_disk_is_told_and_leaves_nothing(void **state)
{
    static run r;
    init_run(&r, CVY_F32);
    save(*state, &r, 100);
    signal(SIGXFSZ, SIG_IGN); /* writing then fails with EFBIG, much as on a full disk */
    for (rlim_t limit = 0; limit < 500; limit += 50) {
        cvy_position position = position_at(100);
        set_file_limit(limit);
        cvy_status status = cvy_checkpoint_save(*state, &r.state, &position);
        cvy_status weights = cvy_weights_save(test_path(*state, "w.safetensors"), &r.state);
        set_file_limit(RLIM_INFINITY);
        assert_int_equal(status, CVY_ERR_CHECKPOINT);
        assert_int_equal(weights, CVY_ERR_CHECKPOINT);
        assert_non_null(strstr(cvy_error_message(), "w.safetensors"));
        assert_int_equal(count_entries(*state), 1);
        assert_found(*state, "step-00000100", 0);
    }
    r.tensor[2].shape = CVY_SHAPE(INT64_C(1) << 58); /* 2^60 bytes: refused before anything is written or read */
    cvy_position position = position_at(200);
    assert_int_equal(cvy_checkpoint_save(*state, &r.state, &position), CVY_ERR_CHECKPOINT);
    assert_non_null(strstr(cvy_error_message(), "the disk is full: a checkpoint needs"));
    assert_int_equal(count_entries(*state), 1);
}

static void test_pruning_keeps_the_last_and_the_best_and_what_is_not_ours(void **state)
{
    static run r;
    init_run(&r, CVY_F32);
    for (int step = 1; step <= 6; step++) {
        save(*state, &r, step);
    }
    assert_int_equal(cvy_folder_create(test_path(*state, "step-00000009.tmp-123/deep"), CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_folder_create(test_path(*state, "step-00000001.tmp-mine"), CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_folder_create(test_path(*state, "step-1"), CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_folder_create(test_path(*state, "best"), CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_checkpoint_prune(*state, 0, 6, -1), CVY_ERR_ARG);
    assert_int_equal(cvy_checkpoint_prune(*state, 2, 6, 3), CVY_OK);
    static const char *const expected[] = {"step-00000003", "step-00000005", "step-00000006", "best", "step-1",
                                           "step-00000001.tmp-mine"};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(cvy_folder_exists(test_path(*state, expected[i])));
    }
    assert_int_equal(count_entries(*state), 6);
    assert_found(*state, "step-00000006", 0);
    assert_int_equal(cvy_checkpoint_prune(*state, 1, 6, 6), CVY_OK); /* the best is the last: one stays */
    assert_int_equal(count_entries(*state), 4);
}

/* Steps 8 and 9 are damaged, the run goes on from 3 and saves 4: of 4, 3, 2 the last two stay, whatever lies above. */
static void test_pruning_does_not_count_what_a_resume_passed_over(void **state)
{
    static run r;
    init_run(&r, CVY_F32);
    for (int step = 2; step <= 4; step++) {
        save(*state, &r, step);
    }
    assert_int_equal(cvy_folder_create(test_path(*state, "step-00000008"), CVY_ERR_IO), CVY_OK);
    assert_int_equal(cvy_folder_create(test_path(*state, "step-00000009"), CVY_ERR_IO), CVY_OK);
    int count = 0;
    assert_int_equal(cvy_checkpoint_count(*state, &count), CVY_OK);
    assert_int_equal(count, 5);
    assert_int_equal(cvy_checkpoint_prune(*state, 2, 4, -1), CVY_OK);
    assert_int_equal(count_entries(*state), 4);
    assert_found(*state, "step-00000004", 2);
    assert_int_equal(cvy_checkpoint_prune(*state, 1, 4, -1), CVY_OK);
    assert_int_equal(count_entries(*state), 3);
    assert_found(*state, "step-00000004", 2);
}

/* Let each allocation fail in turn; a sanitizer tells what leaks. */
static void test_lost_allocations_leave_nothing_half_done(void **state)
{
    static run r, loaded;
    init_run(&r, CVY_F32);
    fill_run(&r, 1);
    save(*state, &r, 1);
    cvy_position position = position_at(2);
    cvy_status status = CVY_ERR_MEMORY;
    int calls = 0;
    for (; status == CVY_ERR_MEMORY; calls++) {
        assert_int_equal(count_entries(*state), 1);
        cvy_memory_fail_after(calls);
        status = cvy_checkpoint_save(*state, &r.state, &position);
        cvy_memory_fail_after(-1);
    }
    assert_int_equal(status, CVY_OK);
    assert_true(calls > 10);
    init_run(&loaded, CVY_F32);
    static run untouched;
    untouched = loaded;
    status = CVY_ERR_MEMORY;
    for (calls = 0; status == CVY_ERR_MEMORY; calls++) {
        assert_run_equal(&loaded, &untouched);
        cvy_memory_fail_after(calls);
        status = cvy_checkpoint_load(test_path(*state, "step-00000002"), &loaded.state, &position);
        cvy_memory_fail_after(-1);
    }
    assert_int_equal(status, CVY_OK);
    assert_run_equal(&loaded, &r);
    char *path = NULL;
    status = CVY_ERR_MEMORY;
    for (calls = 0; status == CVY_ERR_MEMORY; calls++) { /* never taken for damage */
        cvy_memory_fail_after(calls);
        status = cvy_checkpoint_find(*state, &path, NULL);
        cvy_memory_fail_after(-1);
    }
    assert_int_equal(status, CVY_OK);
    assert_string_equal(path, test_path(*state, "step-00000002"));
    cvy_free(path);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_any_flipped_bit_and_any_cut_is_refused_and_named),
        IN_FOLDER(test_where_nothing_is_whole_the_newest_is_told),
        IN_FOLDER(test_a_save_killed_at_any_moment_leaves_the_one_before),
        IN_FOLDER(test_a_full_disk_is_told_and_leaves_nothing),
        IN_FOLDER(test_pruning_does_not_count_what_a_resume_passed_over),
        IN_FOLDER(test_pruning_keeps_the_last_and_the_best_and_what_is_not_ours),
        IN_FOLDER(test_lost_allocations_leave_nothing_half_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
