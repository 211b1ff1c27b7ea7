/*
 * How the links are made, once, at the start. Each rank listens, tries the addresses of the rank above it one after the
 * other, over and over, and takes in those below it; all in one loop, since the rank above is busy in the same way. A
 * connection becomes a link when the right greeting with the run's token has come, from the other side as well: an
 * address that means another node here (a bridge of containers) is found out like any stranger. Then nobody listens any
 * more.
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/watch_internal.h"

enum { STRANGERS = 16, POLL_MS = 20 };
static const double meet_s = 10, try_s = 3; /* for all; for one address, or for a stranger to say who it is */

enum { MAGIC = 0x43565931 }; /* "CVY1" */

/* A rank on its way to be met. */
typedef struct meeting {
    cvy_watch *watch;
    int listener;
    const cvy_watch_record *above; /* NULL: there is none */
    bool same_host, greeted;
    int choice;
    cvy_watch_link caller; /* to the rank above */
    cvy_watch_link stranger[STRANGERS];
} meeting;

cvy_watch_message cvy_watch_say(const cvy_watch *watch, cvy_watch_word word, int to)
{
    cvy_watch_message message;
    memset(&message, 0, sizeof message);
    message.token = watch->token;
    message.magic = MAGIC;
    message.word = (int32_t)word;
    message.from = watch->ranks.rank;
    message.to = to;
    return message;
}

static bool is_greeting(const cvy_watch *watch, const cvy_watch_message *message)
{
    return message->magic == MAGIC && message->token == watch->token && message->word == CVY_WATCH_HELLO &&
           message->to == watch->ranks.rank;
}

static void try_next(meeting *m)
{
    cvy_watch_link_close(&m->caller);
    cvy_watch_link_clear(&m->caller);
    int choices = cvy_watch_choices(m->above, m->same_host);
    m->greeted = false;
    m->caller.heard_s = cvy_clock_s() + try_s;
    if (choices > 0) {
        m->caller.descriptor = cvy_watch_connect(m->above, m->same_host, m->choice++ % choices);
    }
}

/* Greet the rank above as soon as there is a connection, and take its answer. */
static void call_above(meeting *m)
{
    cvy_watch *watch = m->watch;
    cvy_watch_message message;
    if (!m->above || watch->link[0].descriptor >= 0) {
        return;
    }
    struct pollfd there = {.fd = m->caller.descriptor, .events = POLLOUT};
    if (!m->greeted && m->caller.descriptor >= 0 && poll(&there, 1, 0) > 0 && !(there.revents & (POLLERR | POLLHUP))) {
        message = cvy_watch_say(watch, CVY_WATCH_HELLO, watch->above);
        m->greeted = cvy_watch_link_send(&m->caller, &message);
    }
    cvy_watch_got got = m->greeted ? cvy_watch_link_receive(&m->caller, &message) : CVY_WATCH_GOT_NOTHING;
    if (got == CVY_WATCH_GOT_MESSAGE && is_greeting(watch, &message) && message.from == watch->above) {
        m->caller.peer = watch->above;
        watch->link[0] = m->caller;
        cvy_watch_link_clear(&m->caller);
    } else if (got != CVY_WATCH_GOT_NOTHING || (there.revents & (POLLERR | POLLHUP))) {
        cvy_watch_link_close(&m->caller);
        m->caller.heard_s = cvy_clock_s() + 1e-3 * POLL_MS;
        m->greeted = false;
    }
    if (watch->link[0].descriptor < 0 && cvy_clock_s() > m->caller.heard_s) {
        try_next(m);
    }
}

static void take_in(meeting *m)
{
    for (int i = 0; i < STRANGERS; i++) {
        cvy_watch_link *stranger = &m->stranger[i];
        if (stranger->descriptor < 0) {
            cvy_watch_link_clear(stranger);
            stranger->descriptor = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            stranger->heard_s = cvy_clock_s() + try_s;
        }
    }
}

/* A rank below that calls again has given the first connection up. */
static void know(meeting *m, cvy_watch_link *stranger, int rank)
{
    cvy_watch *watch = m->watch;
    cvy_watch_link *link = &watch->link[1 + rank - watch->first];
    cvy_watch_message answer = cvy_watch_say(watch, CVY_WATCH_HELLO, rank);
    cvy_watch_link_close(link);
    *link = *stranger;
    link->peer = rank;
    cvy_watch_link_send(link, &answer);
    cvy_watch_link_clear(stranger);
}

static void hear_strangers(meeting *m)
{
    cvy_watch *watch = m->watch;
    cvy_watch_message message;
    for (int i = 0; i < STRANGERS; i++) {
        cvy_watch_link *stranger = &m->stranger[i];
        cvy_watch_got got = cvy_watch_link_receive(stranger, &message);
        if (got == CVY_WATCH_GOT_MESSAGE && is_greeting(watch, &message) && message.from >= watch->first &&
            message.from < watch->end) {
            know(m, stranger, message.from);
        } else if (got != CVY_WATCH_GOT_NOTHING || cvy_clock_s() > stranger->heard_s) {
            cvy_watch_link_close(stranger);
        }
    }
}

static bool all_met(const meeting *m)
{
    const cvy_watch *watch = m->watch;
    for (int i = m->above ? 0 : 1; i < watch->links; i++) {
        if (watch->link[i].descriptor < 0) {
            return false;
        }
    }
    return true;
}

static void wait_for_news(const meeting *m)
{
    struct pollfd wait[STRANGERS + 2];
    int count = 0;
    wait[count++] = (struct pollfd){.fd = m->listener, .events = POLLIN};
    wait[count++] = (struct pollfd){.fd = m->caller.descriptor, .events = m->greeted ? POLLIN : POLLOUT};
    for (int i = 0; i < STRANGERS; i++) {
        wait[count++] = (struct pollfd){.fd = m->stranger[i].descriptor, .events = POLLIN};
    }
    poll(wait, (nfds_t)count, POLL_MS);
}

void cvy_watch_meet(cvy_watch *watch, int listener, const cvy_watch_record *records)
{
    const cvy_watch_record *above = watch->above >= 0 ? &records[watch->above] : NULL;
    uint64_t host = records[watch->ranks.rank].host;
    meeting m = {.watch = watch, .listener = listener, .above = above};
    m.same_host = above && host && above->host == host;
    cvy_watch_link_clear(&m.caller);
    for (int i = 0; i < STRANGERS; i++) {
        cvy_watch_link_clear(&m.stranger[i]);
    }
    double end_s = cvy_clock_s() + meet_s;
    while (!all_met(&m) && cvy_clock_s() < end_s) {
        call_above(&m);
        if (listener >= 0) {
            take_in(&m);
            hear_strangers(&m);
        }
        if (!all_met(&m)) {
            wait_for_news(&m);
        }
    }
    cvy_watch_link_close(&m.caller);
    for (int i = 0; i < STRANGERS; i++) {
        cvy_watch_link_close(&m.stranger[i]);
    }
}
