/*
 * The watch on one machine: processes are killed, stopped, late or gone, and all others end with code 6, one of them
 * with words that name the right rank. With a fan-out of 2, ranks 1 and 2 are below 0, and 3 and 4 below 1. Times have
 * upper bounds alone (an alarm in each process), so that a busy machine changes nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "comm/watch_ranks.h"

static const double long_s = 100, short_s = 1;

/* In an exchange that never ends, as when another rank is not there. */
static void wait_in_exchange(world *w, int rank)
{
    (void)w;
    (void)rank;
    cvy_pulse_exchange(183, "all-reduce over sample");
    for (;;) {
        pause();
    }
}

/* All ranks but the victim end with 6, and one of them has said so; its words. */
static const char *expect_all_end(const world *w, int ranks, pid_t *pids, int victim)
{
    for (int i = 0; i < ranks; i++) {
        if (i != victim) {
            assert_int_equal(end_of(pids[i]), 6);
            assert_int_equal(w->blamed[i], victim);
        }
    }
    int who = speaker(w, ranks);
    assert_true(who >= 0);
    return w->text[who];
}

static void kill_one(int ranks, int fan_out, int victim)
{
    world *w = make_world(ranks);
    world_rank like = {.ranks = ranks};
    pid_t pids[MOST_RANKS];
    char expected[64];
    start_ranks(w, &like, long_s, fan_out, wait_in_exchange, pids);
    usleep(20000);
    kill(pids[victim], SIGKILL);
    const char *text = expect_all_end(w, ranks, pids, victim);
    snprintf(expected, sizeof expected, "rank %d was lost: its process ended", victim);
    assert_non_null(strstr(text, expected));
    assert_int_equal(end_of(pids[victim]), 128 + SIGKILL);
    munmap(w, sizeof *w);
}

static void test_a_killed_leaf_is_named(void **state)
{
    (void)state;
    kill_one(2, 32, 1);
    kill_one(5, 2, 4);
}

/* Found from above and from below; said once, from above. */
static void test_a_killed_inner_rank_is_named_once(void **state)
{
    (void)state;
    kill_one(5, 2, 1);
}

/* Nobody is above: its first child speaks. */
static void test_a_killed_root_is_named_once(void **state)
{
    (void)state;
    kill_one(2, 32, 0);
    kill_one(5, 2, 0);
}

/* Exit 0 without a word is a loss like others. */
static void vanish(world *w, int rank)
{
    if (rank == 2) {
        while (!atomic_load(&w->go)) {
            usleep(1000);
        }
        _exit(0);
    }
    wait_in_exchange(w, rank);
}

static void test_a_rank_that_exits_without_a_word_is_lost(void **state)
{
    (void)state;
    world *w = make_world(3);
    world_rank like = {.ranks = 3};
    pid_t pids[MOST_RANKS];
    start_ranks(w, &like, long_s, 32, vanish, pids);
    atomic_store(&w->go, 1);
    assert_non_null(strstr(expect_all_end(w, 3, pids, 2), "rank 2 was lost: its process ended"));
    assert_int_equal(end_of(pids[2]), 0);
    munmap(w, sizeof *w);
}

static void beat_on(world *w, int rank)
{
    (void)w;
    (void)rank;
    cvy_pulse_set(CVY_ACTIVITY_COMPUTING);
    for (;;) {
        usleep(5000);
        cvy_pulse_beat();
    }
}

/* All beat, so that only silence can be what was found. The victim hears of the end when it goes on. */
static void stop_one(int victim)
{
    world *w = make_world(5);
    world_rank like = {.ranks = 5};
    pid_t pids[MOST_RANKS];
    char expected[64];
    start_ranks(w, &like, short_s, 2, beat_on, pids);
    kill(pids[victim], SIGSTOP);
    const char *text = expect_all_end(w, 5, pids, victim);
    snprintf(expected, sizeof expected, "rank %d was lost: nothing was heard of it", victim);
    assert_non_null(strstr(text, expected));
    kill(pids[victim], SIGCONT);
    assert_int_equal(end_of(pids[victim]), 6);
    assert_int_equal(w->spoke[victim], 0);
    munmap(w, sizeof *w);
}

static void test_a_stopped_rank_is_named(void **state)
{
    (void)state;
    stop_one(4);
    stop_one(1);
    stop_one(0);
}

static void be_late(world *w, int rank)
{
    if (rank == 3) {
        cvy_pulse_set(CVY_ACTIVITY_READING);
        for (;;) {
            pause();
        }
    }
    wait_in_exchange(w, rank);
}

static void test_a_late_rank_is_named_with_what_it_does(void **state)
{
    (void)state;
    world *w = make_world(5);
    world_rank like = {.ranks = 5};
    pid_t pids[MOST_RANKS];
    start_ranks(w, &like, short_s, 2, be_late, pids);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(end_of(pids[i]), 6);
        assert_int_equal(w->blamed[i], 3);
    }
    assert_int_equal(speaker(w, 5), 0);
    assert_string_equal(w->text[0], "rank 3 did not come to exchange 183 (all-reduce over sample) within 1 s: "
                                    "it is reading data");
    munmap(w, sizeof *w);
}

static void leave_early(world *w, int rank)
{
    if (rank != 2) {
        wait_in_exchange(w, rank);
    }
}

static void test_a_rank_that_leaves_early_is_named(void **state)
{
    (void)state;
    world *w = make_world(3);
    world_rank like = {.ranks = 3};
    pid_t pids[MOST_RANKS];
    start_ranks(w, &like, short_s, 32, leave_early, pids);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(end_of(pids[i]), 6);
    }
    assert_int_equal(speaker(w, 3), 0);
    assert_non_null(strstr(w->text[0], "rank 2 left the run early"));
    munmap(w, sizeof *w);
}

/* Rank 0 saves for three time-outs while all others wait for it: as long as it beats, all is well. */
static void save_long(world *w, int rank)
{
    if (rank == 0) {
        cvy_pulse_set(CVY_ACTIVITY_SAVING);
        for (int i = 0; i < 300; i++) {
            usleep(10000);
            cvy_pulse_beat();
        }
        atomic_store(&w->go, 1);
    } else {
        cvy_pulse_exchange(7, "gather of weights");
        while (!atomic_load(&w->go)) {
            usleep(1000);
        }
    }
}

static void expect_orderly_end(world *w, int ranks, pid_t *pids)
{
    for (int i = 0; i < ranks; i++) {
        assert_int_equal(end_of(pids[i]), 0);
    }
    assert_int_equal(speaker(w, ranks), -1);
}

static void test_work_that_beats_is_progress(void **state)
{
    (void)state;
    world *w = make_world(5);
    world_rank like = {.ranks = 5};
    pid_t pids[MOST_RANKS];
    start_ranks(w, &like, short_s, 2, save_long, pids);
    expect_orderly_end(w, 5, pids);
    munmap(w, sizeof *w);
}

static void beat_until_told(world *w, int rank)
{
    (void)rank;
    cvy_pulse_set(CVY_ACTIVITY_COMPUTING);
    while (!atomic_load(&w->go)) {
        usleep(5000);
        cvy_pulse_beat();
    }
}

/* Stopped for two time-outs, all of them, and gone on. */
static void test_a_machine_that_sleeps_loses_nobody(void **state)
{
    (void)state;
    world *w = make_world(3);
    world_rank like = {.ranks = 3};
    pid_t pids[MOST_RANKS];
    start_ranks(w, &like, short_s, 2, beat_until_told, pids);
    for (int i = 0; i < 3; i++) {
        kill(pids[i], SIGSTOP);
    }
    usleep((useconds_t)(2e6 * short_s));
    for (int i = 0; i < 3; i++) {
        kill(pids[i], SIGCONT);
    }
    usleep((useconds_t)(0.5e6 * short_s));
    atomic_store(&w->go, 1);
    expect_orderly_end(w, 3, pids);
    munmap(w, sizeof *w);
}

static int call(const cvy_watch_record *record)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(record->port)};
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&there, sizeof there) != 0) {
        _exit(1);
    }
    return descriptor;
}

/* They come first: one is silent, one sends noise, one speaks as rank 1 would, without the run's token. */
static void send_strangers(const cvy_watch_record *record, int rank)
{
    static unsigned char noise[3 * sizeof(cvy_watch_message)];
    if (rank != 0) {
        return;
    }
    cvy_watch stranger = {.token = record->token + 1, .ranks = {.rank = 1}};
    cvy_watch_message hello = cvy_watch_say(&stranger, CVY_WATCH_HELLO, 0);
    memset(noise, 0xA5, sizeof noise);
    call(record);
    bool sent = write(call(record), noise, sizeof noise) == (ssize_t)sizeof noise &&
                write(call(record), &hello, sizeof hello) == (ssize_t)sizeof hello;
    if (!sent) {
        _exit(1);
    }
}

static void do_nothing(world *w, int rank)
{
    (void)w;
    (void)rank;
}

static void test_strangers_are_not_heard(void **state)
{
    (void)state;
    world *w = make_world(3);
    world_rank like = {.ranks = 3, .before_meeting = send_strangers};
    pid_t pids[MOST_RANKS];
    start_ranks(w, &like, long_s, 32, do_nothing, pids);
    expect_orderly_end(w, 3, pids);
    assert_int_equal(w->warned[0], 0);
    munmap(w, sizeof *w);
}

static void test_one_rank_needs_no_watch(void **state)
{
    (void)state;
    cvy_watch *watch = NULL;
    cvy_watch_options options = CVY_WATCH_OPTIONS_INIT;
    assert_int_equal(cvy_watch_start(NULL, &options, &watch), CVY_OK);
    assert_int_equal(cvy_watch_stop(&watch), CVY_OK);
    assert_null(watch);
    assert_int_equal(cvy_watch_stop(&watch), CVY_OK);
    options.timeout_s = 0;
    assert_int_equal(cvy_watch_start(NULL, &options, &watch), CVY_ERR_ARG);
}

/* Rank 4, below 1, below 0: what it says goes up, and is said by the top. */
static void fail_alone(world *w, int rank)
{
    while (rank == 4 && !atomic_load(&w->go)) {
        usleep(1000);
    }
    if (rank == 4) {
        cvy_watch_fail(own_watch, CVY_ERR_DATA, "rank 4: a sample that cannot be read");
    }
    wait_in_exchange(w, rank);
}

static void test_a_rank_that_fails_alone_ends_all_in_its_words(void **state)
{
    (void)state;
    world *w = make_world(5);
    world_rank like = {.ranks = 5};
    pid_t pids[MOST_RANKS];
    start_ranks(w, &like, long_s, 2, fail_alone, pids);
    atomic_store(&w->go, 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(end_of(pids[i]), 3); /* data */
        assert_int_equal(w->blamed[i], 4);
    }
    assert_int_equal(speaker(w, 5), 0);
    assert_string_equal(w->text[0], "rank 4: a sample that cannot be read");
    munmap(w, sizeof *w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_killed_leaf_is_named),
        cmocka_unit_test(test_a_killed_inner_rank_is_named_once),
        cmocka_unit_test(test_a_killed_root_is_named_once),
        cmocka_unit_test(test_a_rank_that_exits_without_a_word_is_lost),
        cmocka_unit_test(test_a_stopped_rank_is_named),
        cmocka_unit_test(test_a_late_rank_is_named_with_what_it_does),
        cmocka_unit_test(test_a_rank_that_leaves_early_is_named),
        cmocka_unit_test(test_a_rank_that_fails_alone_ends_all_in_its_words),
        cmocka_unit_test(test_work_that_beats_is_progress),
        cmocka_unit_test(test_a_machine_that_sleeps_loses_nobody),
        cmocka_unit_test(test_strangers_are_not_heard),
        cmocka_unit_test(test_one_rank_needs_no_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
