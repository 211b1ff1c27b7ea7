/* metrics.jsonl, read back by jansson: fields by event, null for NaN, and each step once after a kill and a resume. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "folder.h"
#include "runtime/metrics.h"

/* Read a file of lines, each of which must be an object. */
static json_t *read_lines(const char *path)
{
    json_t *lines = json_array();
    FILE *stream = fopen(path, "r");
    char text[1024];
    assert_non_null(stream);
    while (fgets(text, sizeof text, stream)) {
        assert_int_equal(text[strlen(text) - 1], '\n');
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        if (!line) {
            fail_msg("not JSON: %s", text);
        }
        json_array_append_new(lines, line);
    }
    fclose(stream);
    return lines;
}

static cvy_metrics *open_at(const char *path, int64_t step, int64_t epoch)
{
    const cvy_position position = {.step = step, .epoch = epoch};
    cvy_metrics *metrics = NULL;
    if (cvy_metrics_open(path, &position, &metrics) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return metrics;
}

static void add(cvy_metrics *metrics, cvy_metrics_event event, int64_t step, int64_t epoch)
{
    const cvy_metrics_line line = {.step = step, .epoch = epoch, .loss = 0.1 * (double)step, .train_accuracy = 0.5,
                                   .validation_loss = NAN, .validation_accuracy = 0.25, .images_per_s = 1234.5,
                                   .learning_rate = 1e-3};
    cvy_metrics_add(metrics, event, &line);
}

/* Events and steps as "step 1", …; the expected list ends with NULL. */
static void assert_lines(const char *path, const char *const *expected)
{
    json_t *lines = read_lines(path);
    size_t count = 0;
    for (; expected[count]; count++) {
        const json_t *line = json_array_get(lines, count);
        char text[64];
        snprintf(text, sizeof text, "%s %d", json_string_value(json_object_get(line, "event")),
                 (int)json_integer_value(json_object_get(line, "step")));
        assert_string_equal(text, expected[count]);
    }
    assert_int_equal(json_array_size(lines), count);
    json_decref(lines);
}

static void test_each_event_has_its_fields(void **state)
{
    static const struct {
        const char *event, *keys[12];
    } expected[] = {
        {"start", {"event", "step", "epoch"}},
        {"step", {"event", "step", "epoch", "loss", "train_accuracy", "images_per_s", "learning_rate"}},
        {"epoch", {"event", "step", "epoch", "loss", "train_accuracy", "validation_loss", "validation_accuracy",
                   "images_per_s"}},
        {"checkpoint", {"event", "step", "epoch"}},
        {"end", {"event", "step", "epoch", "loss", "train_accuracy", "validation_loss", "validation_accuracy",
                 "images_per_s"}},
    };
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, 0, 0);
    for (int i = 0; i < CVY_METRICS_EVENT_COUNT; i++) {
        add(metrics, (cvy_metrics_event)i, 3, 1);
    }
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_null(metrics);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    json_t *lines = read_lines(path);
    assert_int_equal(json_array_size(lines), 5);
    for (size_t i = 0; i < 5; i++) {
        const json_t *line = json_array_get(lines, i);
        assert_string_equal(json_string_value(json_object_get(line, "event")), expected[i].event);
        size_t count = 0;
        for (; expected[i].keys[count]; count++) {
            assert_non_null(json_object_get(line, expected[i].keys[count]));
        }
        assert_int_equal(json_object_size(line), count);
    }
    const json_t *epoch = json_array_get(lines, 2);
    assert_true(json_is_null(json_object_get(epoch, "validation_loss")));
    assert_true(fabs(json_real_value(json_object_get(epoch, "loss")) - 0.3) < 1e-9);
    assert_true(json_real_value(json_object_get(epoch, "validation_accuracy")) == 0.25);
    assert_int_equal(json_integer_value(json_object_get(epoch, "epoch")), 1);
    json_decref(lines);
}

/* The longest numbers there are, and infinities. */
static void test_extreme_numbers_stay_json(void **state)
{
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, 0, 0);
    const cvy_metrics_line longest = {INT64_MIN, INT64_MIN, -1.79769313e+308, -2.22507386e-308, -1.23456789e-300,
                                      -1.23456789e+300, -1.11111111e-111, -4.9e-324};
    const cvy_metrics_line infinite = {INT64_MAX, INT64_MAX, HUGE_VAL, -HUGE_VAL, NAN, -0.0, 0, HUGE_VAL};
    for (int i = 0; i < CVY_METRICS_EVENT_COUNT; i++) {
        cvy_metrics_add(metrics, (cvy_metrics_event)i, &longest);
        cvy_metrics_add(metrics, (cvy_metrics_event)i, &infinite);
    }
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    json_t *lines = read_lines(path);
    assert_int_equal(json_array_size(lines), 10);
    assert_true(json_is_null(json_object_get(json_array_get(lines, 3), "loss")));
    assert_true(json_is_null(json_object_get(json_array_get(lines, 3), "learning_rate")));
    assert_true(json_real_value(json_object_get(json_array_get(lines, 2), "loss")) == -1.79769313e+308);
    json_decref(lines);
}

/* German prints 0,5. Where the locale is not installed there is nothing to see. */
static void test_numbers_do_not_follow_the_locale(void **state)
{
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    const char *set = NULL;
    for (size_t i = 0; i < 3 && !set; i++) {
        set = setlocale(LC_NUMERIC, commas[i]);
    }
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, 0, 0);
    add(metrics, CVY_METRICS_STEP, 5, 0);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    setlocale(LC_NUMERIC, "C");
    json_t *lines = read_lines(path);
    assert_true(json_real_value(json_object_get(json_array_get(lines, 0), "loss")) == 0.5);
    json_decref(lines);
}

static void test_a_run_killed_after_a_checkpoint_and_resumed_has_each_step_once(void **state)
{
    const char *path = test_path(*state, "metrics.jsonl");
    pid_t child = fork();
    if (child == 0) {
        cvy_metrics *metrics = open_at(path, 0, 0);
        add(metrics, CVY_METRICS_START, 0, 0);
        for (int64_t step = 1; step <= 7; step++) {
            add(metrics, CVY_METRICS_STEP, step, step / 5);
            if (step == 4) { /* a checkpoint is saved here; more follows before the process dies */
                cvy_metrics_flush(metrics);
            }
            if (step == 5) {
                add(metrics, CVY_METRICS_EPOCH, step, 1);
            }
        }
        add(metrics, CVY_METRICS_CHECKPOINT, 7, 1);
        raise(SIGKILL);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    FILE *stream = fopen(path, "a"); /* the line that it was about to write */
    assert_non_null(stream);
    fputs("{\"event\":\"step\",\"step\":4,\"epo", stream);
    fclose(stream);
    cvy_metrics *metrics = open_at(path, 4, 0);
    add(metrics, CVY_METRICS_START, 4, 0);
    for (int64_t step = 5; step <= 8; step++) {
        add(metrics, CVY_METRICS_STEP, step, step / 5);
    }
    add(metrics, CVY_METRICS_END, 8, 1);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_lines(path, (const char *const[]){"start 0", "step 1", "step 2", "step 3", "step 4", "start 4", "step 5",
                                             "step 6", "step 7", "step 8", "end 8", NULL});
    assert_false(cvy_file_exists(test_path(*state, "metrics.jsonl.tmp")));
}

/* An epoch's line carries its last step; it goes where the position has not yet ended that epoch. */
static void test_epochs_that_are_not_done_at_the_position_go(void **state)
{
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, 0, 0);
    add(metrics, CVY_METRICS_EPOCH, 10, 1);
    add(metrics, CVY_METRICS_EPOCH, 20, 2);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    metrics = open_at(path, 20, 2);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_lines(path, (const char *const[]){"epoch 10", "epoch 20", NULL});
    metrics = open_at(path, 20, 1);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_lines(path, (const char *const[]){"epoch 10", NULL});
}

static void test_lines_that_are_none_of_ours_go(void **state)
{
    const char *path = test_path(*state, "metrics.jsonl");
    static const char text[] = "garbage\n\n{}\n[1]\n{\"event\":\"step\",\"step\":1}\n{\"event\":\"step\",\"step\":\"2\"}\n"
                               "{\"event\":\"step\",\"step\":1.5}\n\0\0\0\n{\"event\":\"step\",\"step\":2}";
    assert_true(put_test_file(path, text, sizeof text - 1));
    cvy_metrics *metrics = open_at(path, 2, 0);
    add(metrics, CVY_METRICS_STEP, 3, 0);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_lines(path, (const char *const[]){"step 1", "step 2", "step 3", NULL});
}

static off_t size_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

static void test_noting_a_step_allocates_nothing_and_epochs_show_at_once(void **state)
{
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, 0, 0);
    int64_t before = cvy_memory_allocations();
    for (int64_t step = 1; step <= 5000; step++) { /* several times the buffer */
        add(metrics, CVY_METRICS_STEP, step, 0);
    }
    assert_int_equal(cvy_memory_allocations(), before);
    off_t bytes = size_of(path);
    add(metrics, CVY_METRICS_EPOCH, 5000, 1);
    assert_true(size_of(path) > bytes);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    json_t *lines = read_lines(path);
    assert_int_equal(json_array_size(lines), 5001);
    json_decref(lines);
}

static void test_failures_are_told(void **state)
{
    const cvy_position position = {0};
    cvy_metrics *metrics = NULL;
    assert_int_equal(cvy_metrics_open(test_path(*state, "no/metrics.jsonl"), &position, &metrics), CVY_ERR_IO);
    assert_null(metrics);
    const char *path = test_path(*state, "metrics.jsonl");
    assert_true(put_test_file(path, "", 0));
    cvy_status status = CVY_ERR_MEMORY;
    for (int calls = 0; status == CVY_ERR_MEMORY; calls++) {
        cvy_memory_fail_after(calls);
        status = cvy_metrics_open(path, &position, &metrics);
        cvy_memory_fail_after(-1);
    }
    assert_int_equal(status, CVY_OK);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    const struct rlimit small = {200, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int64_t step = 1; step <= 2000; step++) {
        add(metrics, CVY_METRICS_STEP, step, 0);
    }
    status = cvy_metrics_close(&metrics);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, CVY_ERR_IO);
    assert_non_null(strstr(cvy_error_message(), "metrics.jsonl: lines are missing"));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_each_event_has_its_fields),
        IN_FOLDER(test_extreme_numbers_stay_json),
        IN_FOLDER(test_numbers_do_not_follow_the_locale),
        IN_FOLDER(test_a_run_killed_after_a_checkpoint_and_resumed_has_each_step_once),
        IN_FOLDER(test_epochs_that_are_not_done_at_the_position_go),
        IN_FOLDER(test_lines_that_are_none_of_ours_go),
        IN_FOLDER(test_noting_a_step_allocates_nothing_and_epochs_show_at_once),
        IN_FOLDER(test_failures_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
