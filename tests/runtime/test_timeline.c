/* Timelines in Chrome's trace format, read back by jansson. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>

#include "base/memory.h"
#include "folder.h"
#include "runtime/timeline.h"

static cvy_timeline *create(const char *path, int64_t slices)
{
    cvy_timeline *timeline = NULL;
    assert_int_equal(cvy_timeline_create(path, slices, &timeline), CVY_OK);
    return timeline;
}

static json_t *close_and_read(cvy_timeline **timeline, const char *path)
{
    assert_int_equal(cvy_timeline_close(timeline), CVY_OK);
    assert_null(*timeline);
    json_error_t error;
    json_t *events = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!events) {
        fail_msg("line %d: %s", error.line, error.text);
    }
    return events;
}

static void add(cvy_timeline *timeline, const char *name, const char *category, double start_s, double end_s)
{
    const cvy_slice slice = {.name = name, .category = category, .start_s = start_s, .end_s = end_s};
    cvy_timeline_add(timeline, &slice);
}

static double number(const json_t *event, const char *key) { return json_number_value(json_object_get(event, key)); }

static void test_an_event_has_the_fields_of_the_format(void **state)
{
    const char *path = test_path(*state, "timeline.json");
    cvy_timeline *timeline = create(path, 2);
    const cvy_slice slice = {"conv \"1\"\n\\", "weights", "backward", 100.5, 100.75, 2e15, 4096, 1};
    cvy_timeline_add(timeline, &slice);
    add(timeline, "bare", "update", 101.5, 101.5000015);
    json_t *events = close_and_read(&timeline, path);
    assert_int_equal(json_array_size(events), 2);
    const json_t *first = json_array_get(events, 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "conv \"1\"\n\\ weights");
    assert_string_equal(json_string_value(json_object_get(first, "cat")), "backward");
    assert_string_equal(json_string_value(json_object_get(first, "ph")), "X");
    assert_int_equal(json_integer_value(json_object_get(first, "pid")), 0);
    assert_int_equal(json_integer_value(json_object_get(first, "tid")), 1);
    assert_true(number(first, "ts") == 0 && number(first, "dur") == 250000); /* microseconds from the first slice on */
    const json_t *args = json_object_get(first, "args");
    assert_string_equal(json_string_value(json_object_get(args, "layer")), "conv \"1\"\n\\");
    assert_true(number(args, "flop") == 2e15 && number(args, "bytes") == 4096);
    const json_t *second = json_array_get(events, 1);
    assert_true(number(second, "ts") == 1000000 && number(second, "dur") == 1.5);
    assert_int_equal(json_object_size(json_object_get(second, "args")), 0);
    json_decref(events);
}

/* Walk in file order with a stack of ends: each slice lies within the one that is open, or after it. */
static int count_levels(const json_t *events)
{
    double end[8];
    int depth = 0, most = 0;
    double last = -1;
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event) {
        double start = number(event, "ts");
        double stop = start + number(event, "dur");
        assert_true(start >= last);
        last = start;
        while (depth && end[depth - 1] <= start + 1e-6) {
            depth--;
        }
        assert_true(depth == 0 || stop <= end[depth - 1] + 1e-6); /* a thousandth of the file's last digit */
        assert_in_range(depth, 0, 7);
        end[depth++] = stop;
        most = depth > most ? depth : most;
    }
    return most;
}

/*
 * Steps are noted before the phase and the iteration that hold them, share their borders to the last bit, and are far
 * from the clock's zero, where a double resolves 0.1 us only.
 */
static void test_iterations_phases_and_steps_nest(void **state)
{
    const char *path = test_path(*state, "timeline.json");
    cvy_timeline *timeline = create(path, 1000);
    double now = 1e9 + 1.0 / 3;
    for (int iteration = 0; iteration < 20; iteration++) {
        double began = now;
        for (int phase = 0; phase < 3; phase++) {
            double phase_began = now;
            for (int step = 0; step < 5; step++) {
                double next = now + 1.23456789e-6 * (double)(1 + (step * 7 + iteration) % 11);
                add(timeline, "step", "forward", now, next);
                now = next;
            }
            add(timeline, "phase", "forward", phase_began, now);
        }
        add(timeline, "iteration", "iteration", began, now);
    }
    json_t *events = close_and_read(&timeline, path);
    assert_int_equal(json_array_size(events), 20 * (1 + 3 * 6));
    static const char *const outer[] = {"iteration", "phase", "step"};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(json_string_value(json_object_get(json_array_get(events, i), "name")), outer[i]);
    }
    assert_int_equal(count_levels(events), 3);
    json_decref(events);
}

/* A phase of one step has the step's very times. */
static void test_of_equal_slices_the_later_noted_is_the_outer(void **state)
{
    const char *path = test_path(*state, "timeline.json");
    cvy_timeline *timeline = create(path, 2);
    add(timeline, "step", "io", 5, 6);
    add(timeline, "phase", "io", 5, 6);
    json_t *events = close_and_read(&timeline, path);
    assert_string_equal(json_string_value(json_object_get(json_array_get(events, 0), "name")), "phase");
    json_decref(events);
}

static void test_what_has_no_room_is_dropped_and_noting_allocates_nothing(void **state)
{
    const char *path = test_path(*state, "timeline.json");
    cvy_timeline *timeline = create(path, 3);
    int64_t before = cvy_memory_allocations();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(cvy_timeline_full(timeline), i >= 3);
        add(timeline, "name", "c", i, i + 0.5);
    }
    assert_int_equal(cvy_memory_allocations(), before);
    json_t *events = close_and_read(&timeline, path);
    assert_int_equal(json_array_size(events), 3);
    assert_true(number(json_array_get(events, 2), "ts") == 2e6);
    json_decref(events);
}

static void test_an_empty_timeline_is_an_empty_array(void **state)
{
    const char *path = test_path(*state, "timeline.json");
    cvy_timeline *timeline = create(path, 1);
    json_t *events = close_and_read(&timeline, path);
    assert_true(json_is_array(events));
    assert_int_equal(json_array_size(events), 0);
    json_decref(events);
    assert_int_equal(cvy_timeline_close(&timeline), CVY_OK);
}

static void test_failures_are_told_and_leave_no_file(void **state)
{
    cvy_timeline *timeline = NULL;
    const char *path = test_path(*state, "timeline.json");
    assert_int_equal(cvy_timeline_create(path, 0, &timeline), CVY_ERR_ARG);
    assert_int_equal(cvy_timeline_create(path, INT64_MAX, &timeline), CVY_ERR_MEMORY);
    for (int calls = 0; calls < 3; calls++) { /* the timeline, its path, its slices */
        cvy_memory_fail_after(calls);
        assert_int_equal(cvy_timeline_create(path, 1, &timeline), CVY_ERR_MEMORY);
        assert_null(timeline);
    }
    cvy_memory_fail_after(-1);
    timeline = create(path, 1);
    add(timeline, "a", "b", 1, 2);
    cvy_memory_fail_after(0);
    assert_int_equal(cvy_timeline_close(&timeline), CVY_ERR_MEMORY);
    cvy_memory_fail_after(-1);
    assert_null(timeline);
    assert_false(cvy_file_exists(path));
    timeline = create(test_path(*state, "no/timeline.json"), 1);
    assert_int_equal(cvy_timeline_close(&timeline), CVY_ERR_IO);
    assert_null(timeline);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_an_event_has_the_fields_of_the_format),
        IN_FOLDER(test_iterations_phases_and_steps_nest),
        IN_FOLDER(test_of_equal_slices_the_later_noted_is_the_outer),
        IN_FOLDER(test_what_has_no_room_is_dropped_and_noting_allocates_nothing),
        IN_FOLDER(test_an_empty_timeline_is_an_empty_array),
        IN_FOLDER(test_failures_are_told_and_leave_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
