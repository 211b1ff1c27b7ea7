/* Words for people. Expectations are written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static char unit[CVY_UNIT_TEXT];

static void test_text_grows_over_many_appends(void **state)
{
    (void)state;
    cvy_text text = {0};
    for (int i = 0; i < 1000; i++) {
        cvy_text_add(&text, "%03d,", i);
    }
    char *all = cvy_text_take(&text);
    assert_non_null(all);
    assert_int_equal(strlen(all), 4000);
    assert_memory_equal(all, "000,001,", 8);
    assert_string_equal(all + 3992, "998,999,");
    assert_null(text.data);
    cvy_free(all);
}

static void test_empty_text_is_a_string(void **state)
{
    (void)state;
    cvy_text text = {0};
    char *all = cvy_text_take(&text);
    assert_non_null(all);
    assert_string_equal(all, "");
    cvy_free(all);
}

static void test_exhausted_text_is_told_once_at_the_end(void **state)
{
    (void)state;
    cvy_text text = {0};
    cvy_text_add(&text, "%s", "whole");
    cvy_memory_fail_after(0);
    for (int i = 0; i < 100; i++) {
        cvy_text_add(&text, "%s", "more than the room that is there");
    }
    cvy_memory_fail_after(-1);
    assert_null(cvy_text_take(&text));
    assert_non_null(strstr(cvy_error_message(), "no memory"));
}

static void test_bytes_have_three_digits_and_powers_of_1000(void **state)
{
    (void)state;
    assert_string_equal(cvy_print_bytes(0, unit), "0 B");
    assert_string_equal(cvy_print_bytes(512, unit), "512 B");
    assert_string_equal(cvy_print_bytes(999, unit), "999 B");
    assert_string_equal(cvy_print_bytes(1000, unit), "1 kB");
    assert_string_equal(cvy_print_bytes(1.234e9, unit), "1.23 GB");
    assert_string_equal(cvy_print_bytes(999999, unit), "1 MB"); /* not 1000 kB */
    assert_string_equal(cvy_print_bytes(45.6e12, unit), "45.6 TB");
}

static void test_seconds_change_their_unit(void **state)
{
    (void)state;
    assert_string_equal(cvy_print_seconds(0, unit), "0 s");
    assert_string_equal(cvy_print_seconds(1.23e-9, unit), "1.23 ns");
    assert_string_equal(cvy_print_seconds(0.00123, unit), "1.23 ms");
    assert_string_equal(cvy_print_seconds(4.5, unit), "4.5 s");
    assert_string_equal(cvy_print_seconds(59.9, unit), "59.9 s");
    assert_string_equal(cvy_print_seconds(59.97, unit), "1 min 00 s");
    assert_string_equal(cvy_print_seconds(200, unit), "3 min 20 s");
    assert_string_equal(cvy_print_seconds(3599.6, unit), "1 h 00 min");
    assert_string_equal(cvy_print_seconds(7500, unit), "2 h 05 min");
    assert_string_equal(cvy_print_seconds(360000, unit), "100 h 00 min");
}

static void test_counts_have_commas(void **state)
{
    (void)state;
    assert_string_equal(cvy_print_count(0, unit), "0");
    assert_string_equal(cvy_print_count(999, unit), "999");
    assert_string_equal(cvy_print_count(1000, unit), "1,000");
    assert_string_equal(cvy_print_count(25557032, unit), "25,557,032");
    assert_string_equal(cvy_print_count(-123456, unit), "-123,456");
    assert_string_equal(cvy_print_count(INT64_MIN, unit), "-9,223,372,036,854,775,808");
}

static void test_prefixes_go_both_ways(void **state)
{
    (void)state;
    assert_string_equal(cvy_print_si(3.4e9, "FLOP", unit), "3.4 GFLOP");
    assert_string_equal(cvy_print_si(12300, "", unit), "12.3 k");
    assert_string_equal(cvy_print_si(7, "", unit), "7");
    assert_string_equal(cvy_print_si(0.0025, "V", unit), "2.5 mV");
    assert_string_equal(cvy_print_si(-2e6, "B", unit), "-2 MB");
    assert_string_equal(cvy_print_si(NAN, "B", unit), "nan B");
}

static void test_no_figure_overruns_its_buffer(void **state)
{
    (void)state;
    const double odd[] = {INFINITY, -INFINITY, NAN, 1e300, -1e300, 5e-324, 1e15, 9.99e14};
    char guarded[CVY_UNIT_TEXT + 1];
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        guarded[CVY_UNIT_TEXT] = '#';
        cvy_print_bytes(odd[i], guarded);
        cvy_print_seconds(odd[i], guarded);
        cvy_print_si(odd[i], "a unit of more letters than there is room", guarded);
        assert_int_equal(guarded[CVY_UNIT_TEXT], '#');
        assert_true(strlen(guarded) < CVY_UNIT_TEXT);
    }
}

static void test_foreign_words_are_cut_and_harmless(void **state)
{
    (void)state;
    char text[CVY_WORD_TEXT], longest[200];
    assert_string_equal(cvy_print_word("a\nb\033[31mc", text), "a?b?[31mc");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    cvy_print_word(longest, text);
    assert_int_equal(strlen(text), 63); /* 60 letters and "..." */
    assert_string_equal(text + 57, "xxx...");
}

static void test_nearest_word_is_what_a_slip_of_the_finger_meant(void **state)
{
    (void)state;
    const char *const words[] = {"conv", "dense", "max-pool", "average-pool", "relu", "kernel", "stride", NULL};
    assert_string_equal(cvy_nearest("kernal", words), "kernel");       /* replaced */
    assert_string_equal(cvy_nearest("rleu", words), "relu");           /* swapped */
    assert_string_equal(cvy_nearest("strid", words), "stride");        /* left out */
    assert_string_equal(cvy_nearest("maxpool", words), "max-pool");
    assert_string_equal(cvy_nearest("convolution", words), "conv");    /* the whole word */
    assert_string_equal(cvy_nearest("relu", words), "relu");
    assert_null(cvy_nearest("banana", words));
    assert_null(cvy_nearest("", words));
    char longest[100000];
    memset(longest, 'c', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(cvy_nearest(longest, words));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_grows_over_many_appends),
        cmocka_unit_test(test_empty_text_is_a_string),
        cmocka_unit_test(test_exhausted_text_is_told_once_at_the_end),
        cmocka_unit_test(test_bytes_have_three_digits_and_powers_of_1000),
        cmocka_unit_test(test_seconds_change_their_unit),
        cmocka_unit_test(test_counts_have_commas),
        cmocka_unit_test(test_prefixes_go_both_ways),
        cmocka_unit_test(test_no_figure_overruns_its_buffer),
        cmocka_unit_test(test_foreign_words_are_cut_and_harmless),
        cmocka_unit_test(test_nearest_word_is_what_a_slip_of_the_finger_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
