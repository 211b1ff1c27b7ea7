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

static cvy_metrics *open_at(const char *path, int64_t last_step)
{
    cvy_metrics *metrics = NULL;
    if (cvy_metrics_open(path, last_step, false, &metrics) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return metrics;
}

static void add(cvy_metrics *metrics, const char *event, int64_t step)
{
    cvy_metrics_line line = CVY_METRICS_LINE_INIT;
    line.event = event;
    line.step = step;
    line.epoch = step / 5;
    if (cvy_metrics_add(metrics, &line) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
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

static void test_a_line_shows_what_is_set(void **state)
{
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, -1);
    cvy_metrics_line line = {
        "epoch", 30, 2, 0.125, 1234.5, 1e-3, 0.5, 0.25, 1.0 / 3, "note", "a \"b\"\\\n\x01 \xc3\xa9"};
    assert_int_equal(cvy_metrics_add(metrics, &line), CVY_OK);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_null(metrics);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    json_t *lines = read_lines(path);
    const json_t *got = json_array_get(lines, 0);
    assert_int_equal(json_object_size(got), 10);
    assert_string_equal(json_string_value(json_object_get(got, "event")), "epoch");
    assert_int_equal(json_integer_value(json_object_get(got, "step")), 30);
    assert_int_equal(json_integer_value(json_object_get(got, "epoch")), 2);
    static const struct {
        const char *key;
        double value;
    } numbers[] = {{"loss", 0.125}, {"images_per_s", 1234.5}, {"learning_rate", 1e-3}, {"train_accuracy", 0.5},
                   {"validation_accuracy", 0.25}, {"validation_loss", 0.333333333}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_true(json_number_value(json_object_get(got, numbers[i].key)) == numbers[i].value);
    }
    assert_string_equal(json_string_value(json_object_get(got, "note")), line.text);
    json_decref(lines);
}

/* A loss of NaN is null where a loss is due; all else that is not finite is left out. */
static void test_what_is_not_finite_is_null_or_left_out(void **state)
{
    static const char *const events[] = {"start", "step", "epoch", "checkpoint", "end"};
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, -1);
    for (size_t i = 0; i < 5; i++) {
        const cvy_metrics_line line = {events[i], 7,    1,   i == 2 ? HUGE_VAL : NAN, NAN, -HUGE_VAL, NAN, NAN,
                                       NAN,       NULL, NULL};
        assert_int_equal(cvy_metrics_add(metrics, &line), CVY_OK);
    }
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    json_t *lines = read_lines(path);
    for (size_t i = 0; i < 5; i++) {
        const json_t *line = json_array_get(lines, i);
        bool due = i == 1 || i == 2 || i == 4;
        assert_int_equal(json_object_size(line), due ? 4 : 3);
        assert_int_equal(json_is_null(json_object_get(line, "loss")), due);
    }
    json_decref(lines);
}

static void test_the_longest_line_stays_json_and_a_longer_one_is_refused(void **state)
{
    static char text[CVY_METRICS_TEXT + 2];
    memset(text, '\x02', sizeof text - 2);
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, -1);
    cvy_metrics_line line = {"checkpoint", INT64_MIN, INT64_MIN, -1.79769313e+308, -2.22507386e-308, -1.23456789e-300,
                             -1.23456789e+300, -1.11111111e-111, -4.9e-324, "checkpoint", text};
    for (int i = 0; i < 5; i++) { /* each is near half of the buffer */
        assert_int_equal(cvy_metrics_add(metrics, &line), CVY_OK);
    }
    text[sizeof text - 2] = 'x';
    assert_int_equal(cvy_metrics_add(metrics, &line), CVY_ERR_ARG);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    FILE *stream = fopen(path, "r");
    json_t *got = json_loadf(stream, JSON_DISABLE_EOF_CHECK, NULL);
    fclose(stream);
    assert_int_equal(json_string_length(json_object_get(got, "checkpoint")), CVY_METRICS_TEXT);
    assert_true(json_real_value(json_object_get(got, "loss")) == -1.79769313e+308);
    json_decref(got);
}

/* German prints 0,5. Where no such locale is installed there is nothing to see. */
static void test_numbers_do_not_follow_the_locale(void **state)
{
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    const char *set = NULL;
    for (size_t i = 0; i < 3 && !set; i++) {
        set = setlocale(LC_NUMERIC, commas[i]);
    }
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, -1);
    cvy_metrics_line line = CVY_METRICS_LINE_INIT;
    line.event = "step";
    line.loss = 0.5;
    assert_int_equal(cvy_metrics_add(metrics, &line), CVY_OK);
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
        cvy_metrics *metrics = open_at(path, -1);
        add(metrics, "start", 0);
        for (int64_t step = 1; step <= 7; step++) {
            add(metrics, "step", step);
            if (step == 4 && cvy_metrics_flush(metrics) != CVY_OK) { /* a checkpoint is saved here */
                _exit(1);
            }
            if (step == 5) {
                add(metrics, "epoch", step);
            }
        }
        add(metrics, "checkpoint", 7);
        raise(SIGKILL);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    FILE *stream = fopen(path, "a"); /* the line that it was about to write */
    assert_non_null(stream);
    fputs("{\"event\":\"step\",\"step\":4,\"epo", stream);
    fclose(stream);
    cvy_metrics *metrics = open_at(path, 4);
    add(metrics, "start", 4);
    for (int64_t step = 5; step <= 8; step++) {
        add(metrics, "step", step);
    }
    add(metrics, "end", 8);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_lines(path, (const char *const[]){"start 0", "step 1", "step 2", "step 3", "step 4", "start 4", "step 5",
                                             "step 6", "step 7", "step 8", "end 8", NULL});
    assert_false(cvy_file_exists(test_path(*state, "metrics.jsonl.tmp")));
}

/* The process is killed without any flush of its own: what was noted right before must be there. */
static void test_flushed_lines_survive_a_kill(void **state)
{
    const char *path = test_path(*state, "metrics.jsonl");
    pid_t child = fork();
    if (child == 0) {
        cvy_metrics *metrics = open_at(path, -1);
        add(metrics, "step", 1);
        add(metrics, "step", 2);
        (void)cvy_metrics_flush(metrics);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_lines(path, (const char *const[]){"step 1", "step 2", NULL});
}

static void test_a_fresh_run_starts_the_file_anew(void **state)
{
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, -1);
    add(metrics, "start", 0);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    metrics = open_at(path, 0);
    add(metrics, "step", 1);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_lines(path, (const char *const[]){"start 0", "step 1", NULL});
    metrics = open_at(path, -1);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_lines(path, (const char *const[]){NULL});
}

/* `steps` ended after step 7, within an epoch of 5 steps; a resumed run has that epoch still to end. */
static void test_what_was_said_within_an_epoch_goes(void **state)
{
    const char *path = test_path(*state, "metrics.jsonl");
    cvy_metrics *metrics = open_at(path, -1);
    add(metrics, "step", 5);
    add(metrics, "epoch", 5);
    add(metrics, "step", 7);
    add(metrics, "epoch", 7);
    add(metrics, "end", 7);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_int_equal(cvy_metrics_open(path, 7, true, &metrics), CVY_OK);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_lines(path, (const char *const[]){"step 5", "epoch 5", "step 7", "end 7", NULL});
}

static void test_lines_that_are_none_of_ours_go(void **state)
{
    const char *path = test_path(*state, "metrics.jsonl");
    static const char text[] =
        "garbage\n\n{}\n[1]\n{\"event\":\"step\",\"step\":1}\n{\"event\":\"step\",\"step\":\"2\"}\n"
        "{\"event\":\"step\",\"step\":1.5}\n\0\0\0\n{\"event\":\"step\",\"step\":2}";
    assert_true(put_test_file(path, text, sizeof text - 1));
    cvy_metrics *metrics = open_at(path, 2);
    add(metrics, "step", 3);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_lines(path, (const char *const[]){"step 1", "step 2", "step 3", NULL});
}

/* A text has at most 4096 bytes, of which each may be printed as 6: no line has 40,000. */
static void test_a_line_that_no_run_writes_goes_whatever_its_length(void **state)
{
    enum { BYTES = 40000 };
    static const char first[] = "{\"event\":\"step\",\"step\":1}\n{\"event\":\"step\",\"step\":2,\"text\":\"";
    static const char last[] = "\"}\n{\"event\":\"step\",\"step\":3}\n";
    static char text[BYTES + 256];
    const char *path = test_path(*state, "metrics.jsonl");
    memset(text, 'a', sizeof text);
    memcpy(text, first, sizeof first - 1);
    memcpy(text + sizeof first - 1 + BYTES, last, sizeof last - 1);
    assert_true(put_test_file(path, text, sizeof first - 1 + BYTES + sizeof last - 1));
    cvy_metrics *metrics = open_at(path, 3);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    assert_lines(path, (const char *const[]){"step 1", "step 3", NULL});
}

static void test_what_is_no_regular_file_is_refused_at_once(void **state)
{
    const char *pipe_path = test_path(*state, "pipe"), *endless = test_path(*state, "endless");
    cvy_metrics *metrics = NULL;
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(symlink("/dev/zero", endless), 0);
    assert_int_equal(cvy_metrics_open(pipe_path, 1, false, &metrics), CVY_ERR_IO);
    assert_non_null(strstr(cvy_error_message(), "pipe: not a regular file"));
    assert_int_equal(cvy_metrics_open(endless, 1, false, &metrics), CVY_ERR_IO);
    assert_non_null(strstr(cvy_error_message(), "endless: not a regular file"));
    assert_null(metrics);
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
    cvy_metrics *metrics = open_at(path, -1);
    int64_t before = cvy_memory_allocations();
    for (int64_t step = 1; step <= 5000; step++) { /* several times the buffer */
        add(metrics, "step", step);
    }
    assert_int_equal(cvy_memory_allocations(), before);
    off_t bytes = size_of(path);
    add(metrics, "epoch", 5000);
    assert_true(size_of(path) > bytes);
    assert_int_equal(cvy_metrics_close(&metrics), CVY_OK);
    json_t *lines = read_lines(path);
    assert_int_equal(json_array_size(lines), 5001);
    json_decref(lines);
}

static void test_failures_are_told(void **state)
{
    cvy_metrics *metrics = NULL;
    assert_int_equal(cvy_metrics_open(test_path(*state, "no/metrics.jsonl"), -1, false, &metrics), CVY_ERR_IO);
    assert_null(metrics);
    const char *path = test_path(*state, "metrics.jsonl");
    assert_true(put_test_file(path, "", 0));
    cvy_status status = CVY_ERR_MEMORY;
    for (int calls = 0; status == CVY_ERR_MEMORY; calls++) {
        cvy_memory_fail_after(calls);
        status = cvy_metrics_open(path, -1, false, &metrics);
        cvy_memory_fail_after(-1);
    }
    assert_int_equal(status, CVY_OK);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    const struct rlimit small = {200, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    cvy_metrics_line line = CVY_METRICS_LINE_INIT;
    line.event = "epoch";
    line.loss = 1.0;
    status = CVY_OK;
    int lines = 0;
    for (; lines < 100 && status == CVY_OK; lines++) {
        status = cvy_metrics_add(metrics, &line);
    }
    cvy_status closing = cvy_metrics_close(&metrics);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, CVY_ERR_IO);
    assert_int_equal(closing, CVY_ERR_IO);
    assert_non_null(strstr(cvy_error_message(), "metrics.jsonl: lines are missing"));
    assert_int_equal(lines, 5); /* of 46 bytes: four fit into 200 */
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_a_line_shows_what_is_set),
        IN_FOLDER(test_what_is_not_finite_is_null_or_left_out),
        IN_FOLDER(test_the_longest_line_stays_json_and_a_longer_one_is_refused),
        IN_FOLDER(test_numbers_do_not_follow_the_locale),
        IN_FOLDER(test_a_run_killed_after_a_checkpoint_and_resumed_has_each_step_once),
        IN_FOLDER(test_flushed_lines_survive_a_kill),
        IN_FOLDER(test_a_fresh_run_starts_the_file_anew),
        IN_FOLDER(test_what_was_said_within_an_epoch_goes),
        IN_FOLDER(test_lines_that_are_none_of_ours_go),
        IN_FOLDER(test_a_line_that_no_run_writes_goes_whatever_its_length),
        IN_FOLDER(test_what_is_no_regular_file_is_refused_at_once),
        IN_FOLDER(test_noting_a_step_allocates_nothing_and_epochs_show_at_once),
        IN_FOLDER(test_failures_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
