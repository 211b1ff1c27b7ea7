/* The record of a failure: what it says after each kind of call, how it is cut, and that threads do not share it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void test_fail_words_the_cause_and_gives_the_status_back(void **state)
{
    (void)state;
    cvy_error_clear();
    assert_string_equal(cvy_error_message(), "");
    assert_int_equal(cvy_fail(CVY_ERR_DATA, "%s: %d bytes, expected %d", "train.idx", 7, 16), CVY_ERR_DATA);
    assert_string_equal(cvy_error_message(), "train.idx: 7 bytes, expected 16");
    cvy_error_clear();
    assert_string_equal(cvy_error_message(), "");
}

static void test_context_goes_in_front(void **state)
{
    (void)state;
    (void)cvy_fail(CVY_ERR_INPUT, "kernel 3 does not fit");
    assert_int_equal(cvy_fail_within(CVY_ERR_INPUT, "layer %s", "conv1"), CVY_ERR_INPUT);
    assert_int_equal(cvy_fail_within(CVY_ERR_INPUT, "net.yaml:%d", 12), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "net.yaml:12: layer conv1: kernel 3 does not fit");
}

/* An argument may be the message that is being replaced. */
static void test_old_message_may_be_an_argument(void **state)
{
    (void)state;
    (void)cvy_fail(CVY_ERR_IO, "disk full");
    (void)cvy_fail(CVY_ERR_CHECKPOINT, "cannot save: %s", cvy_error_message());
    assert_string_equal(cvy_error_message(), "cannot save: disk full");
}

/* The record has 1024 bytes: 1023 characters and the end. Context is cut to 511 so that the cause still shows. */
/* The border cases of UTF-8: a byte of none is '?', and so is each of a character that is too long, beyond, or cut. */
static void test_words_are_utf_8(void **state)
{
    (void)state;
    static const struct {
        const char *found, *told;
    } cases[] = {
        {"\u00a0\u07ff\u0800\xed\x9f\xbf\xee\x80\x80\uffff\U00010000\U0010ffff", NULL},
        {"caf\xe9.yaml", "caf?.yaml"},
        {"\xc2\x9b" "2J", "??2J"},      /* C1's CSI, which steers terminals as ESC [ does */
        {"\xc1\xbf\xe0\x9f\xbf\xf0\x8f\xbf\xbf", "?????????"},
        {"\xed\xa0\x80\xf4\x90\x80\x80\xf5\xff", "?????????"},
        {"\xe2\x82", "??"},
        {"\xe2\x82z", "??z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cvy_error_set("%s", cases[i].found);
        assert_string_equal(cvy_error_message(), cases[i].told ? cases[i].told : cases[i].found);
        cvy_error_prepend("%s", cases[i].found);
        assert_null(strpbrk(cvy_error_message(), "\x9b\xff"));
    }
}

static void test_long_words_are_cut_not_overrun(void **state)
{
    (void)state;
    char words[3000];
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    (void)cvy_fail(CVY_ERR_INPUT, "%s", words);
    assert_int_equal(strlen(cvy_error_message()), 1023);
    (void)cvy_fail(CVY_ERR_INPUT, "%s: cause", words);
    assert_int_equal(strlen(cvy_error_message()), 1023);
    assert_string_equal(cvy_error_message() + 1023 - 10, "www: cause");
    assert_memory_equal(cvy_error_message() + 511, "w...w", 5);
    (void)cvy_fail(CVY_ERR_INPUT, "cause");
    (void)cvy_fail_within(CVY_ERR_INPUT, "%s", words);
    assert_int_equal(strlen(cvy_error_message()), 511 + strlen(": cause"));
    assert_string_equal(cvy_error_message() + 511, ": cause");
    (void)cvy_fail_within(CVY_ERR_INPUT, "%s", words);
    assert_int_equal(strlen(cvy_error_message()), 1023);
}

/* What a user or a file wrote must neither make two lines of one nor reach a terminal as a command. */
static void test_control_characters_do_not_get_through(void **state)
{
    (void)state;
    (void)cvy_fail(CVY_ERR_INPUT, "found '%s'", "5\n\t\033[2J\177\303\244");
    (void)cvy_fail_within(CVY_ERR_INPUT, "%s", "a\rb");
    assert_string_equal(cvy_error_message(), "a?b: found '5???[2J?\303\244'");
}

static void *fail_elsewhere(void *unused)
{
    (void)cvy_fail(CVY_ERR_MEMORY, "elsewhere");
    return unused;
}

static void test_threads_have_records_of_their_own(void **state)
{
    (void)state;
    pthread_t thread;
    (void)cvy_fail(CVY_ERR_ARG, "here");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(cvy_error_message(), "here");
}

static cvy_status require_positive(int value)
{
    CVY_REQUIRE(value > 0, CVY_ERR_ARG, "value must be positive, got %d", value);
    return CVY_OK;
}

static cvy_status try_both(int first, int second, int *reached_out)
{
    CVY_TRY(require_positive(first));
    *reached_out = 1;
    CVY_TRY(require_positive(second));
    *reached_out = 2;
    return CVY_OK;
}

static cvy_status release_on_the_way_out(int value, int *released_out)
{
    cvy_status status = CVY_OK;
    char *owned = malloc(1);
    CVY_TRY_GOTO(status, done, require_positive(value));
    CVY_REQUIRE_GOTO(status, done, value < 10, CVY_ERR_INFEASIBLE, "value must be below 10, got %d", value);
done:
    free(owned);
    *released_out = 1;
    return status;
}

static void test_macros_pass_the_first_failure_up(void **state)
{
    (void)state;
    int reached = 0, released = 0;
    assert_int_equal(try_both(-1, 5, &reached), CVY_ERR_ARG);
    assert_int_equal(reached, 0);
    assert_string_equal(cvy_error_message(), "value must be positive, got -1");
    assert_int_equal(try_both(5, 0, &reached), CVY_ERR_ARG);
    assert_int_equal(reached, 1);
    assert_int_equal(try_both(5, 6, &reached), CVY_OK);
    assert_int_equal(reached, 2);
    assert_int_equal(release_on_the_way_out(-3, &released), CVY_ERR_ARG);
    assert_int_equal(released, 1);
    assert_int_equal(release_on_the_way_out(10, &released), CVY_ERR_INFEASIBLE);
    assert_int_equal(release_on_the_way_out(9, &released), CVY_OK);
}

/* The codes that scripts rely on, from the command line's contract. */
static void test_exit_codes(void **state)
{
    (void)state;
    static const struct {
        cvy_status status;
        int code;
        const char *name;
    } rows[] = {
        {CVY_OK, 0, "CVY_OK"},
        {CVY_ERR_ARG, 2, "CVY_ERR_ARG"},
        {CVY_ERR_INPUT, 2, "CVY_ERR_INPUT"},
        {CVY_ERR_DATA, 3, "CVY_ERR_DATA"},
        {CVY_ERR_INFEASIBLE, 4, "CVY_ERR_INFEASIBLE"},
        {CVY_ERR_DIVERGED, 5, "CVY_ERR_DIVERGED"},
        {CVY_ERR_RANK, 6, "CVY_ERR_RANK"},
        {CVY_ERR_CHECKPOINT, 7, "CVY_ERR_CHECKPOINT"},
        {CVY_ERR_IO, 1, "CVY_ERR_IO"},
        {CVY_ERR_MEMORY, 1, "CVY_ERR_MEMORY"},
        {CVY_ERR_UNSUPPORTED, 2, "CVY_ERR_UNSUPPORTED"},
        {CVY_STOPPED, 1, "CVY_STOPPED"},
        {CVY_PREEMPTED, 75, "CVY_PREEMPTED"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(cvy_status_exit_code(rows[i].status), rows[i].code);
        assert_string_equal(cvy_status_name(rows[i].status), rows[i].name);
    }
    assert_int_equal(cvy_status_exit_code((cvy_status)999), 1);
    assert_string_equal(cvy_status_name((cvy_status)999), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_words_the_cause_and_gives_the_status_back),
        cmocka_unit_test(test_context_goes_in_front),
        cmocka_unit_test(test_old_message_may_be_an_argument),
        cmocka_unit_test(test_control_characters_do_not_get_through),
        cmocka_unit_test(test_words_are_utf_8),
        cmocka_unit_test(test_long_words_are_cut_not_overrun),
        cmocka_unit_test(test_threads_have_records_of_their_own),
        cmocka_unit_test(test_macros_pass_the_first_failure_up),
        cmocka_unit_test(test_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
