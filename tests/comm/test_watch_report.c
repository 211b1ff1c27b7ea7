/* Who is to blame, from reports made by hand: ten minutes and a thousand ranks take no time here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "comm/watch_report.h"

enum { TIMEOUT_MS = 300000 };

static cvy_watch_report one(int rank, cvy_activity activity, int64_t exchange, uint32_t idle_ms)
{
    cvy_watch_report report;
    cvy_watch_standing standing = {.rank = rank, .activity = (int32_t)activity, .exchange = exchange,
                                   .idle_ms = idle_ms};
    snprintf(standing.text, sizeof standing.text, "all-reduce over sample");
    cvy_watch_report_one(&standing, &report);
    return report;
}

static cvy_watch_report both(cvy_watch_report a, cvy_watch_report b)
{
    cvy_watch_report_merge(&a, &b, 0);
    return a;
}

static void expect(const cvy_watch_report *report, int ranks, int blamed, const char *words)
{
    char text[CVY_WATCH_TEXT] = "";
    assert_int_equal(cvy_watch_judge(report, ranks, TIMEOUT_MS, text), blamed);
    assert_string_equal(text, words);
}

static void test_the_rank_that_others_wait_for_is_late(void **state)
{
    (void)state;
    cvy_watch_report waits = one(0, CVY_ACTIVITY_COMMUNICATING, 183, TIMEOUT_MS + 5);
    cvy_watch_report all = both(waits, one(1, CVY_ACTIVITY_READING, 182, TIMEOUT_MS));
    expect(&all, 2, 1, "rank 1 did not come to exchange 183 (all-reduce over sample) within 5 min 00 s: it is reading "
                       "data");
    all = both(waits, one(1, CVY_ACTIVITY_SAVING, 182, TIMEOUT_MS - 1));
    expect(&all, 2, -1, "");
}

/* Two of three go on by themselves: nobody waits. */
static void test_a_slow_rank_for_which_nobody_waits_is_left_alone(void **state)
{
    (void)state;
    cvy_watch_report all = both(one(0, CVY_ACTIVITY_COMPUTING, 5, 10), one(1, CVY_ACTIVITY_MEASURING, 5, TIMEOUT_MS));
    expect(&all, 2, -1, "");
    all = both(one(0, CVY_ACTIVITY_COMPUTING, 5, TIMEOUT_MS), one(1, CVY_ACTIVITY_MEASURING, 5, TIMEOUT_MS + 1));
    expect(&all, 2, 1, "rank 1 has not gone on for 5 min 00 s: it is measuring kernels");
}

static void test_where_all_wait_the_least_exchange_is_behind(void **state)
{
    (void)state;
    cvy_watch_report all = both(one(0, CVY_ACTIVITY_COMMUNICATING, 183, TIMEOUT_MS + 900),
                                both(one(2, CVY_ACTIVITY_COMMUNICATING, 180, TIMEOUT_MS + 100),
                                     one(1, CVY_ACTIVITY_COMMUNICATING, -1, TIMEOUT_MS + 500)));
    expect(&all, 3, 2, "no rank has gone on for 5 min 00 s: all wait, and rank 2 is behind, in exchange 180 "
                       "(all-reduce over sample)");
    expect(&all, 4, -1, ""); /* of the fourth nothing is known: it may be at work */
    all = both(all, one(3, CVY_ACTIVITY_COMMUNICATING, 183, 20));
    expect(&all, 4, -1, ""); /* it has moved */
}

/* Ten seconds, since nothing can come of it. */
static void test_a_rank_that_left_is_blamed_soon(void **state)
{
    (void)state;
    cvy_watch_report left = one(1, CVY_ACTIVITY_FINISHED, 182, 20000);
    cvy_watch_report all = both(left, one(0, CVY_ACTIVITY_COMMUNICATING, 183, 10000));
    expect(&all, 2, 1, "rank 1 left the run early: it did not come to exchange 183 (all-reduce over sample)");
    all = both(left, one(0, CVY_ACTIVITY_COMMUNICATING, 183, 9999));
    expect(&all, 2, -1, "");
    all = both(left, one(0, CVY_ACTIVITY_SAVING, 183, 60000)); /* the last checkpoint, which takes its time */
    expect(&all, 2, -1, "");
    all = both(left, one(0, CVY_ACTIVITY_FINISHED, 183, 20000));
    expect(&all, 2, -1, "");
}

/* A thousand reports in any order give what the worst one says; ages add up and never wrap. */
static void test_a_thousand_ranks_are_one_report(void **state)
{
    (void)state;
    cvy_watch_report all = one(0, CVY_ACTIVITY_COMMUNICATING, 9, 50), nobody = all;
    cvy_watch_report_one(&(cvy_watch_standing){.rank = -1}, &nobody);
    for (int i = 1; i < 1000; i++) {
        cvy_watch_report next = one(i, CVY_ACTIVITY_COMPUTING, 9, (uint32_t)(i * 7919 % 1000));
        cvy_watch_report_merge(&all, &next, 3);
    }
    cvy_watch_report_merge(&all, &nobody, UINT32_MAX);
    assert_int_equal(all.ranks, 1000);
    assert_int_equal(all.late.rank, 321); /* 321 * 7919 = 2541999 */
    assert_int_equal(all.late.idle_ms, 999 + 3);
    assert_int_equal(all.idle_ms, 4); /* 679 * 7919 = 5377001, and 3 of age */
    cvy_watch_report_merge(&all, &all, UINT32_MAX);
    assert_true(all.late.idle_ms > 1000000);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    cvy_watch_standing good = {.rank = 1, .activity = CVY_ACTIVITY_COMPUTING, .exchange = 3, .text = "a\nb"}, bad;
    assert_true(cvy_watch_standing_check(&good, 2));
    assert_string_equal(good.text, "a?b");
    bad = good, bad.rank = 2;
    assert_false(cvy_watch_standing_check(&bad, 2));
    bad = good, bad.rank = -2;
    assert_false(cvy_watch_standing_check(&bad, 2));
    bad = good, bad.activity = CVY_ACTIVITIES;
    assert_false(cvy_watch_standing_check(&bad, 2));
    bad = good, bad.exchange = -2;
    assert_false(cvy_watch_standing_check(&bad, 2));
    bad = good;
    memset(bad.text, 'x', sizeof bad.text); /* no end */
    assert_true(cvy_watch_standing_check(&bad, 2));
    assert_true(strlen(bad.text) < sizeof bad.text);
    cvy_watch_report report = one(1, CVY_ACTIVITY_COMPUTING, 3, 0);
    assert_true(cvy_watch_report_check(&report, 2));
    report.ranks = 3;
    assert_false(cvy_watch_report_check(&report, 2));
}

static void test_a_loss_says_where_it_was_last_seen(void **state)
{
    (void)state;
    char text[CVY_WATCH_TEXT];
    cvy_watch_standing last = {.rank = 3, .activity = CVY_ACTIVITY_COMMUNICATING, .exchange = 12, .text = "halo of x"};
    cvy_watch_word_loss(3, "its process ended", &last, text);
    assert_string_equal(text, "rank 3 was lost: its process ended; last seen in exchange 12 (halo of x)");
    last.activity = CVY_ACTIVITY_READING;
    cvy_watch_word_loss(3, "its process ended", &last, text);
    assert_string_equal(text, "rank 3 was lost: its process ended; last seen reading data, after exchange 12 "
                              "(halo of x)");
    last.rank = -1;
    cvy_watch_word_loss(3, "its process ended", &last, text);
    assert_string_equal(text, "rank 3 was lost: its process ended");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rank_that_others_wait_for_is_late),
        cmocka_unit_test(test_a_slow_rank_for_which_nobody_waits_is_left_alone),
        cmocka_unit_test(test_where_all_wait_the_least_exchange_is_behind),
        cmocka_unit_test(test_a_rank_that_left_is_blamed_soon),
        cmocka_unit_test(test_a_thousand_ranks_are_one_report),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
        cmocka_unit_test(test_a_loss_says_where_it_was_last_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
