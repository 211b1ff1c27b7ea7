/*
 * Checkpoints: what is saved comes back bit for bit; any damage is told and passed over; a save that is killed, meets a
 * full disk or runs out of memory leaves the older checkpoints as they were.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "folder.h"
#include "runtime/checkpoint.h"

/*
 * A state as a run has it: weights in blocks (3 filters, 2 channels), a depthwise weight with a leading g (4 groups),
 * a statistic, and a velocity. Sizes in memory with padding: 2x2x8x8 = 256, 3x3x8 = 72, 3, 256 elements.
 */
enum { TENSORS = 4, MOST_ELEMENTS = 256 };

typedef struct run {
    cvy_state state;
    cvy_state_tensor tensor[TENSORS];
    double memory[TENSORS][MOST_ELEMENTS]; /* holds floats, too */
} run;

static void init_run(run *r, cvy_dtype dtype)
{
    memset(r, 0, sizeof *r);
    const cvy_shape weight = CVY_SHAPE(3, 2, 2, 2);
    const cvy_tensor blocked = {weight, dtype, CVY_FORMAT_W_I8O8, false};
    r->tensor[0] = (cvy_state_tensor){"conv.weight", false, weight, blocked, r->memory[0]};
    r->tensor[1] = (cvy_state_tensor){"depthwise.weight", false, CVY_SHAPE(4, 1, 3, 3),
                                      {CVY_SHAPE(4, 1, 1, 3, 3), dtype, CVY_FORMAT_W_G8, true}, r->memory[1]};
    r->tensor[2] = (cvy_state_tensor){"bn.running_mean", false, CVY_SHAPE(3),
                                      {CVY_SHAPE(3), dtype, CVY_FORMAT_PLAIN, false}, r->memory[2]};
    r->tensor[3] = (cvy_state_tensor){"momentum.conv.weight", true, weight, blocked, r->memory[3]};
    r->state = (cvy_state){TENSORS, r->tensor};
}

/* Fill the logical elements, so that padding stays zero; numbers with all bits of their type in use. */
static void fill_run(run *r, int salt)
{
    for (int i = 0; i < TENSORS; i++) {
        double values[MOST_ELEMENTS];
        const cvy_tensor plain = {r->tensor[i].shape, CVY_F64, CVY_FORMAT_PLAIN, false};
        int64_t elements = cvy_shape_elements(&plain.shape);
        for (int64_t k = 0; k < elements; k++) {
            values[k] = sin((double)(salt * 1000 + i * 100 + k)) * pow(10, (double)(k % 20 - 10));
        }
        values[0] = -0.0;
        assert_int_equal(cvy_tensor_copy(&plain, values, &r->tensor[i].tensor, r->memory[i]), CVY_OK);
    }
}

static cvy_position position_at(int64_t step)
{
    return (cvy_position){.step = step, .epoch = 2, .sample = 37, .samples_total = INT64_C(1) << 60,
                          .epoch_loss_sum = 1.0 / 3, .epoch_correct = 5, .best_metric = -HUGE_VAL, .best_step = -1,
                          .seed = UINT64_MAX, .model_hash = UINT64_C(0x8000000000000001)};
}

static void save(const char *folder, const run *r, int64_t step)
{
    cvy_position position = position_at(step);
    if (cvy_checkpoint_save(folder, &r->state, &position) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static void assert_run_equal(const run *a, const run *b)
{
    assert_memory_equal(a->memory, b->memory, sizeof a->memory);
}

/* Load a checkpoint that must be refused: the words name what is wrong, and no tensor has changed. */
static void assert_refused(const char *path, run *r, const char *file, const char *words)
{
    static run before;
    before = *r;
    cvy_position position = position_at(77);
    cvy_status status = cvy_checkpoint_load(path, &r->state, &position);
    if (status != CVY_ERR_CHECKPOINT || !strstr(cvy_error_message(), file) || !strstr(cvy_error_message(), words)) {
        fail_msg("expected a refusal with %s and \"%s\", got %s: %s", file, words, cvy_status_name(status),
                 cvy_error_message());
    }
    assert_run_equal(r, &before);
    assert_int_equal(position.step, 77);
}

static int count_entries(const char *folder)
{
    int count = -2; /* . and .. */
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    while (readdir(stream)) {
        count++;
    }
    closedir(stream);
    return count;
}

/* The newest whole checkpoint is that of a step, so many being passed over. */
static void assert_found(const char *folder, const char *name, int skipped)
{
    char *path = NULL;
    int passed = -1;
    if (cvy_checkpoint_find(folder, &path, &passed) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    assert_string_equal(path, test_path(folder, name));
    assert_int_equal(passed, skipped);
    cvy_free(path);
}

static void test_a_state_comes_back_bit_for_bit(void **state)
{
    static run saved, loaded;
    for (int i = 0; i < 2; i++) {
        cvy_dtype dtype = i ? CVY_F64 : CVY_F32;
        init_run(&saved, dtype);
        fill_run(&saved, i);
        save(*state, &saved, 100);
        init_run(&loaded, dtype);
        cvy_position position;
        const char *path = test_path(*state, "step-00000100");
        assert_int_equal(cvy_checkpoint_load(path, &loaded.state, &position), CVY_OK);
        assert_run_equal(&loaded, &saved);
        cvy_position expected = position_at(100);
        assert_memory_equal(&position, &expected, sizeof position);
        assert_int_equal(count_entries(*state), 1);
        assert_int_equal(count_entries(path), 3);
    }
}

static void test_a_checkpoint_loads_into_other_formats(void **state)
{
    static run saved, loaded;
    init_run(&saved, CVY_F32);
    fill_run(&saved, 1);
    save(*state, &saved, 1);
    init_run(&loaded, CVY_F64);
    for (int i = 0; i < TENSORS; i++) {
        loaded.tensor[i].tensor = (cvy_tensor){saved.tensor[i].shape, CVY_F64, CVY_FORMAT_PLAIN, false};
    }
    cvy_position position;
    assert_int_equal(cvy_checkpoint_load(test_path(*state, "step-00000001"), &loaded.state, &position), CVY_OK);
    const float *blocked = (const float *)saved.memory[0]; /* (o,i,h,w) lies at ((h*2 + w)*8 + i)*8 + o */
    for (int o = 0; o < 3; o++) {
        for (int i = 0; i < 2; i++) {
            for (int at = 0; at < 4; at++) {
                assert_true(loaded.memory[0][(o * 2 + i) * 4 + at] == (double)blocked[(at * 8 + i) * 8 + o]);
            }
        }
    }
}

static void test_an_optimizer_without_state_has_no_file(void **state)
{
    static run r;
    init_run(&r, CVY_F32);
    fill_run(&r, 1);
    r.state.count = 3;
    save(*state, &r, 1);
    const char *path = test_path(*state, "step-00000001");
    assert_int_equal(count_entries(path), 2);
    cvy_position position;
    assert_int_equal(cvy_checkpoint_load(path, &r.state, &position), CVY_OK);
    r.state.count = 4;
    assert_refused(path, &r, "step-00000001", "no optimizer.safetensors");
    save(*state, &r, 2);
    r.state.count = 3; /* evaluation passes the optimizer's file over */
    assert_int_equal(cvy_checkpoint_load(test_path(*state, "step-00000002"), &r.state, &position), CVY_OK);
}

static void test_saving_again_replaces(void **state)
{
    static run first, second, loaded;
    init_run(&first, CVY_F32);
    fill_run(&first, 1);
    init_run(&second, CVY_F32);
    fill_run(&second, 2);
    save(*state, &first, 5);
    save(*state, &second, 5);
    init_run(&loaded, CVY_F32);
    cvy_position position;
    assert_int_equal(cvy_checkpoint_load(test_path(*state, "step-00000005"), &loaded.state, &position), CVY_OK);
    assert_run_equal(&loaded, &second);
    assert_int_equal(count_entries(*state), 1);
}

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

static void test_a_whole_checkpoint_of_another_model_names_the_key(void **state)
{
    static run saved, other;
    init_run(&saved, CVY_F32);
    fill_run(&saved, 1);
    save(*state, &saved, 1);
    const char *path = test_path(*state, "step-00000001");
    init_run(&other, CVY_F32);
    other.tensor[3].shape = CVY_SHAPE(3, 2, 4); /* as many elements */
    assert_refused(path, &other, files[1], "momentum.conv.weight: found shape 3x2x2x2, expected 3x2x4");
    init_run(&other, CVY_F32);
    other.tensor[2].name = "bn.running_var";
    assert_refused(path, &other, files[0], "key bn.running_var is missing, expected shape 3");
    init_run(&other, CVY_F32);
    other.tensor[2] = other.tensor[3];
    other.state.count = 3;
    assert_refused(path, &other, files[0], "key bn.running_mean is none of the model's");
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
        assert_int_equal(cvy_checkpoint_prune(*state, 2, -1), CVY_OK);
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
    assert_int_equal(cvy_checkpoint_prune(*state, 0, -1), CVY_ERR_ARG);
    assert_int_equal(cvy_checkpoint_prune(*state, 2, 3), CVY_OK);
    static const char *const expected[] = {"step-00000003", "step-00000005", "step-00000006", "best", "step-1",
                                           "step-00000001.tmp-mine"};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(cvy_folder_exists(test_path(*state, expected[i])));
    }
    assert_int_equal(count_entries(*state), 6);
    assert_found(*state, "step-00000006", 0);
    assert_int_equal(cvy_checkpoint_prune(*state, 1, 6), CVY_OK); /* the best is the last: one stays */
    assert_int_equal(count_entries(*state), 4);
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

/* A state_dict as PyTorch saves it: any order, half precision, and a counter that is passed over. */
static void test_weights_of_a_state_dict_load_by_key(void **state)
{
    static run r, before;
    static const char header[] =
        "{\"bn.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"bn.running_mean\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[8,14]}%s}";
    static const char surplus[] = ",\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[14,14]}";
    const char *path = test_path(*state, "w.safetensors");
    const uint16_t mean[3] = {0x3f80, 0xc000, 0x4049};
    init_run(&r, CVY_F32);
    r.tensor[0] = r.tensor[2];
    r.state.count = 1;
    for (int i = 0; i < 2; i++) {
        char bytes[512] = {0};
        size_t text = (size_t)snprintf(bytes + 8, sizeof bytes - 8, header, i ? surplus : "");
        memcpy(bytes, &(uint64_t){text}, 8);
        memcpy(bytes + 8 + text + 8, mean, sizeof mean);
        assert_true(put_test_file(path, bytes, 8 + text + 14));
        before = r;
        cvy_status status = cvy_weights_load(path, &r.state);
        const float *got = (const float *)r.memory[2];
        if (i == 0) {
            assert_int_equal(status, CVY_OK);
            assert_true(got[0] == 1 && got[1] == -2 && got[2] == 3.140625f);
        } else {
            assert_int_equal(status, CVY_ERR_CHECKPOINT);
            assert_non_null(strstr(cvy_error_message(), "w.safetensors: key fc.weight is none of the model's"));
            assert_run_equal(&r, &before);
        }
    }
}

static void test_saved_weights_load_without_the_optimizer(void **state)
{
    static run r, loaded;
    const char *path = test_path(*state, "w.safetensors");
    init_run(&r, CVY_F32);
    fill_run(&r, 1);
    assert_int_equal(cvy_weights_save(path, &r.state), CVY_OK);
    init_run(&loaded, CVY_F32);
    assert_int_equal(cvy_weights_load(path, &loaded.state), CVY_OK);
    assert_memory_equal(loaded.memory, r.memory, 3 * sizeof r.memory[0]);
    for (int i = 0; i < MOST_ELEMENTS; i++) {
        assert_true(loaded.memory[3][i] == 0); /* the velocity is not of the file */
    }
    assert_int_equal(count_entries(*state), 1);
}

static void test_names_are_found(void **state)
{
    (void)state;
    static run r;
    init_run(&r, CVY_F32);
    assert_ptr_equal(cvy_state_find(&r.state, "bn.running_mean"), &r.tensor[2]);
    assert_null(cvy_state_find(&r.state, "bn.running_mea"));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_a_state_comes_back_bit_for_bit),
        IN_FOLDER(test_a_checkpoint_loads_into_other_formats),
        IN_FOLDER(test_an_optimizer_without_state_has_no_file),
        IN_FOLDER(test_saving_again_replaces),
        IN_FOLDER(test_any_flipped_bit_and_any_cut_is_refused_and_named),
        IN_FOLDER(test_a_whole_checkpoint_of_another_model_names_the_key),
        IN_FOLDER(test_where_nothing_is_whole_the_newest_is_told),
        IN_FOLDER(test_a_save_killed_at_any_moment_leaves_the_one_before),
        IN_FOLDER(test_a_full_disk_is_told_and_leaves_nothing),
        IN_FOLDER(test_pruning_keeps_the_last_and_the_best_and_what_is_not_ours),
        IN_FOLDER(test_lost_allocations_leave_nothing_half_done),
        IN_FOLDER(test_weights_of_a_state_dict_load_by_key),
        IN_FOLDER(test_saved_weights_load_without_the_optimizer),
        cmocka_unit_test(test_names_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
