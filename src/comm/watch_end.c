/*
 * How a run ends. What a rank finds goes up, and the one at the top decides: so that one line is printed, whoever
 * finds how much. The top tells all and speaks; whoever hears it passes it on and ends without a word. Where the top
 * does not answer, the one that found it speaks.
 *
 * A rank whose neighbour above is lost is cut off from the top. The rank above that one finds the same, and speaks;
 * those below give it a moment, and end. Where rank 0 itself is lost nobody is above: its first child, the heir, does.
 * Whoever ends tells its neighbours first, so that an end is never taken for a loss.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "comm/watch_internal.h"

static const double answer_s = 0.3; /* for a word from above, beside two beats */

enum { FAREWELL_MS = 200 }; /* for what neighbours take of the last message */

static const double line_s = 1.0; /* for the line of the one that speaks */

/* Send what is still queued to those that read. */
static void flush_all(cvy_watch *watch)
{
    for (int i = 0; i < watch->links; i++) {
        cvy_watch_link *link = &watch->link[i];
        struct pollfd room = {.fd = link->descriptor, .events = POLLOUT};
        if (link->descriptor >= 0 && link->out_bytes > 0 && poll(&room, 1, FAREWELL_MS) > 0) {
            cvy_watch_link_flush(link);
        }
    }
}

/* A launcher ends all as soon as one has ended: nobody does before the one that speaks, which then closes its links. */
static void wait_for_line(const cvy_watch_link *from)
{
    double end_s = cvy_clock_s() + line_s, left_s = line_s;
    struct pollfd news = {.fd = from->descriptor, .events = POLLIN};
    char scrap[256];
    while (left_s > 0 && poll(&news, 1, (int)(1e3 * left_s) + 1) > 0 &&
           recv(from->descriptor, scrap, sizeof scrap, MSG_DONTWAIT) > 0) {
        left_s = end_s - cvy_clock_s();
    }
}

void cvy_watch_end_run(cvy_watch *watch, bool speaks, const cvy_watch_link *from)
{
    if (watch->phase == CVY_WATCH_STOPPED || watch->phase == CVY_WATCH_LEFT) {
        return;
    }
    watch->phase = CVY_WATCH_STOPPED;
    for (int i = 0; i < watch->links; i++) {
        if (&watch->link[i] != from) {
            cvy_watch_message stop = cvy_watch_say(watch, CVY_WATCH_STOP, watch->link[i].peer);
            stop.status = (int32_t)watch->status;
            stop.rank = watch->blamed;
            memcpy(stop.text, watch->text, sizeof stop.text);
            cvy_watch_link_send(&watch->link[i], &stop);
        }
    }
    flush_all(watch);
    if (!speaks && from) {
        wait_for_line(from);
    }
    cvy_watch_end end = {.status = watch->status, .rank = watch->blamed, .speaks = speaks, .text = watch->text};
    if (watch->options.abandon) {
        watch->options.abandon(watch->options.context, &end);
    }
    watch->ranks.abandon(watch->ranks.context, cvy_status_exit_code(watch->status));
}

void cvy_watch_find(cvy_watch *watch, int rank, cvy_status status, const char *text)
{
    if (watch->phase != CVY_WATCH_WATCHING) {
        return; /* the first cause is the one that counts */
    }
    watch->blamed = rank;
    watch->status = status;
    snprintf(watch->text, sizeof watch->text, "%s", text);
    cvy_watch_message lost = cvy_watch_say(watch, CVY_WATCH_LOST, watch->above);
    lost.rank = rank;
    lost.status = (int32_t)status;
    memcpy(lost.text, watch->text, sizeof lost.text);
    if (watch->above < 0 || !cvy_watch_link_send(&watch->link[0], &lost)) {
        cvy_watch_end_run(watch, true, NULL);
        return;
    }
    watch->phase = CVY_WATCH_TOLD;
    watch->decide_s = watch->clock_s + answer_s + 2 * watch->interval_s;
}

/* The one above is lost. */
static void lose_above(cvy_watch *watch, const char *text)
{
    if (watch->phase == CVY_WATCH_WATCHING) {
        watch->blamed = watch->above;
        watch->status = CVY_ERR_RANK;
        snprintf(watch->text, sizeof watch->text, "%s", text);
    }
    if (watch->above == 0 && watch->heir == watch->ranks.rank) {
        cvy_watch_end_run(watch, true, NULL);
    } else {
        watch->phase = CVY_WATCH_CUT_OFF;
        watch->decide_s = watch->clock_s + answer_s + 2 * watch->interval_s;
    }
}

void cvy_watch_lose(cvy_watch *watch, cvy_watch_link *link, const char *cause)
{
    char text[CVY_WATCH_TEXT];
    cvy_watch_word_loss(link->peer, cause, &link->own, text);
    if (watch->phase != CVY_WATCH_WATCHING && watch->phase != CVY_WATCH_TOLD) {
        return;
    }
    if (watch->clock_s < watch->awake_s) { /* it is this one that was gone: the others have ended, and said so */
        watch->blamed = watch->ranks.rank;
        watch->status = CVY_ERR_RANK;
        cvy_watch_end_run(watch, false, NULL);
    } else if (link == &watch->link[0]) {
        lose_above(watch, text);
    } else {
        cvy_watch_find(watch, link->peer, CVY_ERR_RANK, text);
    }
}

void cvy_watch_decide(cvy_watch *watch)
{
    bool undecided = watch->phase == CVY_WATCH_TOLD || watch->phase == CVY_WATCH_CUT_OFF;
    if (undecided && watch->clock_s >= watch->decide_s) {
        cvy_watch_end_run(watch, watch->phase == CVY_WATCH_TOLD, NULL);
    }
}

/* Whether all below have left. */
static bool all_done(const cvy_watch *watch)
{
    for (int i = 1; i < watch->links; i++) {
        if (watch->link[i].descriptor >= 0 && !watch->link[i].done) {
            return false;
        }
    }
    return true;
}

void cvy_watch_leave(cvy_watch *watch)
{
    if (watch->phase != CVY_WATCH_WATCHING || watch->said_done || !atomic_load(&watch->leaving) || !all_done(watch)) {
        return;
    }
    if (watch->above >= 0) {
        cvy_watch_message done = cvy_watch_say(watch, CVY_WATCH_DONE, watch->above);
        watch->said_done = cvy_watch_link_send(&watch->link[0], &done);
        return;
    }
    for (int i = 1; i < watch->links; i++) {
        cvy_watch_message bye = cvy_watch_say(watch, CVY_WATCH_BYE, watch->link[i].peer);
        cvy_watch_link_send(&watch->link[i], &bye);
    }
    flush_all(watch);
    watch->phase = CVY_WATCH_LEFT;
}
