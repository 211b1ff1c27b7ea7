/*
 * The watch's thread. Its clock is the time in which it ran: a step of it is never longer than two beats, so that
 * however long the process was stopped, or the machine slept, no neighbour seems silent for longer than that when it
 * goes on. On a busy machine that clock is late rather than early.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "comm/watch_internal.h"

static uint32_t to_ms(double seconds) { return (uint32_t)(1e3 * seconds); }

/* Where this rank stands. */
static void look_at_pulse(cvy_watch *watch)
{
    cvy_pulse_state now;
    cvy_pulse_read(&now);
    if (now.beats != watch->own.beats) {
        watch->moved_s = watch->clock_s;
    }
    watch->own = (cvy_watch_standing){.beats = now.beats,
                                      .exchange = now.exchange,
                                      .rank = watch->ranks.rank,
                                      .activity = (int32_t)now.activity,
                                      .idle_ms = to_ms(watch->clock_s - watch->moved_s)};
    memcpy(watch->own.text, now.text, sizeof now.text);
}

/*
 * This rank and all below. What a neighbour said grows no older than the wait for its next word: where that one falls
 * silent, those below it are not to blame.
 */
static cvy_watch_report make_report(const cvy_watch *watch)
{
    cvy_watch_report report;
    cvy_watch_report_one(&watch->own, &report);
    for (int i = 1; i < watch->links; i++) {
        const cvy_watch_link *link = &watch->link[i];
        if (link->descriptor >= 0) {
            double age_s = watch->clock_s - link->heard_s, most_s = 2 * watch->interval_s;
            cvy_watch_report_merge(&report, &link->report, to_ms(age_s < most_s ? age_s : most_s));
        }
    }
    return report;
}

/* Say where this rank stands, up and down, and judge where all comes together. */
static void beat(cvy_watch *watch)
{
    look_at_pulse(watch);
    cvy_watch_report report = make_report(watch);
    for (int i = 0; i < watch->links; i++) {
        cvy_watch_link *link = &watch->link[i];
        if (link->descriptor >= 0 && link->out_bytes == 0) {
            cvy_watch_message message = cvy_watch_say(watch, CVY_WATCH_BEAT, link->peer);
            message.own = watch->own;
            if (i == 0) {
                message.report = report;
            } else {
                cvy_watch_report_one(&(cvy_watch_standing){.rank = -1}, &message.report);
            }
            cvy_watch_link_send(link, &message);
        }
    }
    char text[CVY_WATCH_TEXT];
    int blamed = -1;
    if (watch->above < 0) {
        blamed = cvy_watch_judge(&report, watch->ranks.ranks, to_ms(watch->options.timeout_s), text);
    }
    if (blamed >= 0) {
        cvy_watch_find(watch, blamed, CVY_ERR_RANK, text);
    }
}

static void hear_beat(cvy_watch *watch, cvy_watch_link *link, cvy_watch_message *message)
{
    int ranks = watch->ranks.ranks;
    if (cvy_watch_standing_check(&message->own, ranks) && cvy_watch_report_check(&message->report, ranks)) {
        link->own = message->own;
        link->report = message->report;
    }
}

/* A status that came from outside. */
static cvy_status take_status(int32_t status)
{
    return cvy_status_exit_code((cvy_status)status) > 0 ? (cvy_status)status : CVY_ERR_RANK;
}

static void hear_bad_news(cvy_watch *watch, const cvy_watch_link *link, cvy_watch_message *message)
{
    message->text[sizeof message->text - 1] = '\0';
    for (char *at = message->text; *at; at++) {
        *at = (unsigned char)*at < ' ' ? '?' : *at;
    }
    if (message->rank < 0 || message->rank >= watch->ranks.ranks) {
        return;
    }
    if (message->word == CVY_WATCH_LOST) {
        cvy_watch_find(watch, message->rank, take_status(message->status), message->text);
    } else {
        watch->blamed = message->rank;
        watch->status = take_status(message->status);
        memcpy(watch->text, message->text, sizeof watch->text);
        cvy_watch_end_run(watch, false, link);
    }
}

static void hear(cvy_watch *watch, cvy_watch_link *link, cvy_watch_message *message)
{
    cvy_watch_message expected = cvy_watch_say(watch, CVY_WATCH_HELLO, watch->ranks.rank);
    if (message->token != expected.token || message->magic != expected.magic || message->from != link->peer ||
        message->to != watch->ranks.rank) {
        return;
    }
    link->heard_s = watch->clock_s;
    if (message->word == CVY_WATCH_BEAT) {
        hear_beat(watch, link, message);
    } else if (message->word == CVY_WATCH_STOP || (message->word == CVY_WATCH_LOST && link != &watch->link[0])) {
        hear_bad_news(watch, link, message);
    } else if (message->word == CVY_WATCH_DONE) {
        link->done = true;
    } else if (message->word == CVY_WATCH_BYE && link == &watch->link[0] && watch->said_done) {
        watch->above = -1; /* which makes this rank the one that sees all below off */
        watch->said_done = false;
    }
}

/* Take in what a neighbour says, up to where it says no more. */
static void read_link(cvy_watch *watch, cvy_watch_link *link)
{
    cvy_watch_message message;
    cvy_watch_got got;
    while ((got = cvy_watch_link_receive(link, &message)) == CVY_WATCH_GOT_MESSAGE) {
        hear(watch, link, &message);
    }
    if (got == CVY_WATCH_GOT_END) {
        cvy_watch_link_close(link);
        if (link != &watch->link[0] || watch->above >= 0) {
            cvy_watch_lose(watch, link, "its process ended");
        }
    }
}

/* Those of which nothing was heard. */
static void miss_silent(cvy_watch *watch)
{
    char cause[CVY_UNIT_TEXT + 32], within[CVY_UNIT_TEXT];
    cvy_print_seconds(watch->options.timeout_s, within);
    snprintf(cause, sizeof cause, "nothing was heard of it for %s", within);
    for (int i = watch->above >= 0 ? 0 : 1; i < watch->links; i++) {
        cvy_watch_link *link = &watch->link[i];
        if (link->descriptor >= 0 && watch->clock_s - link->heard_s >= watch->options.timeout_s) {
            cvy_watch_lose(watch, link, cause);
        }
    }
}

/* Sleep until a neighbour speaks, or this rank leaves, or the next beat is due. */
static void wait_for_news(const cvy_watch *watch, struct pollfd *wait)
{
    for (int i = 0; i < watch->links; i++) {
        wait[i] = (struct pollfd){.fd = watch->link[i].descriptor, .events = POLLIN};
    }
    bool woken = atomic_load(&watch->leaving) || atomic_load(&watch->failed) != CVY_OK; /* once is enough */
    wait[watch->links] = (struct pollfd){.fd = woken ? -1 : watch->wake, .events = POLLIN};
    double left_s = watch->next_beat_s - watch->clock_s;
    poll(wait, (nfds_t)watch->links + 1, left_s > 0 ? (int)(1e3 * left_s) + 1 : 0);
}

static void take_turn(cvy_watch *watch)
{
    for (int i = 0; i < watch->links; i++) {
        read_link(watch, &watch->link[i]);
    }
    if (watch->clock_s >= watch->next_beat_s) {
        watch->next_beat_s = watch->clock_s + watch->interval_s;
        beat(watch);
        miss_silent(watch);
    }
    cvy_status failed = (cvy_status)atomic_load(&watch->failed);
    if (failed != CVY_OK) {
        cvy_watch_find(watch, watch->ranks.rank, failed, watch->words);
    }
    cvy_watch_leave(watch);
    cvy_watch_decide(watch);
}

void *cvy_watch_run(void *opaque)
{
    cvy_watch *watch = opaque;
    pthread_mutex_lock(&watch->gate);
    pthread_mutex_unlock(&watch->gate);
    double last_s = cvy_clock_s();
    while (watch->phase != CVY_WATCH_STOPPED && watch->phase != CVY_WATCH_LEFT) {
        wait_for_news(watch, watch->wait);
        double now_s = cvy_clock_s(), step_s = now_s - last_s;
        last_s = now_s;
        watch->clock_s += step_s < 2 * watch->interval_s ? step_s : 2 * watch->interval_s;
        watch->awake_s = step_s > watch->options.timeout_s ? watch->clock_s + 2 * watch->interval_s : watch->awake_s;
        take_turn(watch);
    }
    return NULL;
}
