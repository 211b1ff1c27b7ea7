/* The pulse: what is set is read, beats of all threads are counted, and a name that was forgotten may be released. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/pulse.h"

static void test_what_is_set_is_read(void **state)
{
    (void)state;
    cvy_pulse_state now;
    cvy_pulse_read(&now);
    uint64_t beats = now.beats;
    assert_int_equal(now.activity, CVY_ACTIVITY_STARTING);
    assert_true(now.exchange == -1);
    assert_string_equal(now.text, "");

    assert_int_equal(cvy_pulse_set(CVY_ACTIVITY_READING), CVY_ACTIVITY_STARTING);
    assert_int_equal(cvy_pulse_exchange(183, "all-reduce over sample"), CVY_ACTIVITY_READING);
    cvy_pulse_read(&now);
    assert_int_equal(now.activity, CVY_ACTIVITY_COMMUNICATING);
    assert_true(now.exchange == 183 && now.beats == beats + 2);
    assert_string_equal(now.text, "all-reduce over sample");

    cvy_pulse_forget();
    cvy_pulse_read(&now);
    assert_string_equal(now.text, "");
    assert_true(now.exchange == -1);
}

/* A name longer than its room is cut. */
static void test_a_long_name_is_cut(void **state)
{
    (void)state;
    char name[200];
    cvy_pulse_state now;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    cvy_pulse_exchange(0, name);
    cvy_pulse_read(&now);
    assert_int_equal(strlen(now.text), CVY_PULSE_TEXT - 1);
    cvy_pulse_forget();
}

static void *beat_often(void *opaque)
{
    (void)opaque;
    for (int i = 0; i < 10000; i++) {
        cvy_pulse_beat();
    }
    return NULL;
}

/* 2 threads of 10000 beats each. */
static void test_no_beat_is_lost(void **state)
{
    (void)state;
    cvy_pulse_state before, after;
    pthread_t thread[2];
    cvy_pulse_read(&before);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, beat_often, NULL), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
    }
    cvy_pulse_read(&after);
    assert_true(after.beats - before.beats == 20000);
}

static atomic_bool enough;

static void *read_on(void *opaque)
{
    cvy_pulse_state now;
    while (!atomic_load(&enough)) {
        cvy_pulse_read(&now);
        if (now.text[0] != '\0' && strcmp(now.text, "exchange") != 0) {
            *(int *)opaque = 1;
        }
        usleep(10);
    }
    return NULL;
}

/* The names are overwritten and released behind the reader's back; the address sanitizer would see it look. */
static void test_a_forgotten_name_may_be_released(void **state)
{
    (void)state;
    pthread_t reader;
    int torn = 0;
    assert_int_equal(pthread_create(&reader, NULL, read_on, &torn), 0);
    for (int i = 0; i < 500; i++) {
        char *name = malloc(16);
        assert_non_null(name);
        snprintf(name, 16, "exchange");
        cvy_pulse_exchange(i, name);
        cvy_pulse_forget();
        memset(name, '!', 15);
        free(name);
    }
    atomic_store(&enough, true);
    pthread_join(reader, NULL);
    assert_int_equal(torn, 0);
}

static void test_each_activity_has_words(void **state)
{
    (void)state;
    assert_string_equal(cvy_activity_name(CVY_ACTIVITY_READING), "reading data");
    for (int i = 0; i < CVY_ACTIVITIES; i++) {
        assert_non_null(cvy_activity_name((cvy_activity)i));
    }
    assert_string_equal(cvy_activity_name((cvy_activity)99), "doing something unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_set_is_read),
        cmocka_unit_test(test_a_long_name_is_cut),
        cmocka_unit_test(test_no_beat_is_lost),
        cmocka_unit_test(test_a_forgotten_name_may_be_released),
        cmocka_unit_test(test_each_activity_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
