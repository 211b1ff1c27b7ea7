/*
 * How a watch begins and ends. All ranks exchange where they listen, make the links of the tree, and tell each other
 * which were made, so that both sides of a link that only one of them has made let go of it. Rank r has r * fan-out + 1
 * to r * fan-out + fan-out below it: a thousand ranks are two steps from the top.
 */
#include "comm/watch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/comm_internal.h"
#include "comm/watch_internal.h"

enum { MIN_BEAT_MS = 50, MAX_BEAT_MS = 1000, BEATS_A_TIMEOUT = 10 };

static void release(cvy_watch **watch)
{
    cvy_watch *w = *watch;
    for (int i = 0; w && w->link && i < w->links; i++) {
        cvy_watch_link_close(&w->link[i]);
    }
    if (w && w->wake >= 0) {
        close(w->wake);
    }
    if (w) {
        pthread_mutex_destroy(&w->gate);
        cvy_free(w->meeting);
        cvy_free(w->link);
        cvy_free(w->wait);
        cvy_free(w);
    }
    *watch = NULL;
}

/* The place of a rank in the tree. */
static void take_place(cvy_watch *watch)
{
    int64_t rank = watch->ranks.rank, fan_out = watch->options.fan_out, ranks = watch->ranks.ranks;
    watch->above = rank > 0 ? (int)((rank - 1) / fan_out) : -1;
    watch->first = (int)cvy_min_i64(rank * fan_out + 1, ranks);
    watch->end = (int)cvy_min_i64(rank * fan_out + fan_out + 1, ranks);
    watch->links = 1 + watch->end - watch->first;
}

static cvy_status create(const cvy_watch_ranks *ranks, const cvy_watch_options *options, cvy_watch **watch_out)
{
    CVY_REQUIRE(options->timeout_s > 0, CVY_ERR_ARG, "the time-out of a watch must be above 0, got %g s",
                options->timeout_s);
    CVY_REQUIRE(options->fan_out >= 1, CVY_ERR_ARG, "the fan-out of a watch must be at least 1, got %d",
                options->fan_out);
    cvy_watch *watch = cvy_calloc(1, sizeof *watch);
    if (!watch) {
        return CVY_ERR_MEMORY;
    }
    watch->options = *options;
    watch->ranks = *ranks;
    pthread_mutex_init(&watch->gate, NULL);
    take_place(watch);
    double interval_s = options->timeout_s / BEATS_A_TIMEOUT, most_s = 1e-3 * MAX_BEAT_MS, least_s = 1e-3 * MIN_BEAT_MS;
    watch->interval_s = interval_s > most_s ? most_s : interval_s < least_s ? least_s : interval_s;
    watch->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    watch->link = cvy_calloc((size_t)watch->links, sizeof *watch->link);
    watch->wait = cvy_calloc((size_t)watch->links + 1, sizeof *watch->wait);
    bool whole = watch->wake >= 0 && watch->link && watch->wait;
    for (int i = 0; whole && i < watch->links; i++) {
        cvy_watch_link_clear(&watch->link[i]);
    }
    if (!whole) {
        release(&watch);
        return cvy_fail(CVY_ERR_MEMORY, "no memory, or no descriptor, for the watch of %d ranks", ranks->ranks);
    }
    *watch_out = watch;
    return CVY_OK;
}

static cvy_status warn(const cvy_watch *watch, const unsigned char *met)
{
    cvy_text text = {0};
    int count = 0;
    for (int i = 1; i < watch->ranks.ranks; i++) {
        if (!met[i] && count++ < 8) {
            cvy_text_add(&text, count > 1 ? ", %d" : "%d", i);
        }
    }
    char *list = cvy_text_take(&text);
    cvy_text line = {0};
    cvy_text_add(&line, "%d of %d ranks are not watched, since no TCP link to the rank above them could be made: %s%s",
                 count, watch->ranks.ranks, list ? list : "", count > 8 ? ", ..." : "");
    char *words = cvy_text_take(&line);
    if (count > 0 && list && words && watch->options.warn) {
        watch->options.warn(watch->options.context, words);
    }
    cvy_status status = count > 0 && (!list || !words) ? CVY_ERR_MEMORY : CVY_OK;
    cvy_free(list);
    cvy_free(words);
    return status;
}

/* Keep the links that both sides have. @param[in] met  of each rank, whether it has the link above it */
static void settle(cvy_watch *watch, const unsigned char *met)
{
    for (int i = 1; i < watch->links; i++) {
        if (!met[watch->first + i - 1]) {
            cvy_watch_link_close(&watch->link[i]);
        }
    }
    for (int i = 0; i < watch->links; i++) {
        watch->link[i].heard_s = 0; /* the watch's clock begins */
    }
    if (!met[watch->ranks.rank]) {
        watch->above = -1;
    }
    watch->heir = 1;
    while (watch->heir < watch->ranks.ranks && !met[watch->heir]) {
        watch->heir++;
    }
}

/* Exchange addresses, and make the links. */
static cvy_status join(cvy_watch *watch, cvy_watch_record *records, unsigned char *met)
{
    cvy_watch_ranks *ranks = &watch->ranks;
    cvy_watch_record mine;
    int listener = cvy_watch_listen(&mine);
    if (getrandom(&mine.token, sizeof mine.token, 0) != (ssize_t)sizeof mine.token) {
        mine.token = 0; /* links are then told apart from strangers by their greeting alone */
    }
    cvy_status status = ranks->gather(ranks->context, &mine, sizeof mine, records);
    if (status == CVY_OK) {
        watch->token = records[0].token;
        cvy_watch_meet(watch, listener, records);
        unsigned char have = ranks->rank == 0 || watch->link[0].descriptor >= 0;
        status = ranks->gather(ranks->context, &have, sizeof have, met);
    }
    if (listener >= 0) {
        close(listener);
    }
    if (status == CVY_OK) {
        settle(watch, met);
        status = ranks->rank == 0 ? warn(watch, met) : CVY_OK;
    }
    return status;
}

/* All signals are blocked in the thread: they are the main thread's to handle. It waits at the gate, which is shut. */
static cvy_status start_thread(cvy_watch *watch)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&watch->thread, NULL, cvy_watch_run, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    watch->running = !error;
    CVY_REQUIRE(!error, CVY_ERR_MEMORY, "cannot start the watch's thread: %s", strerror(error));
    return CVY_OK;
}

/* Wake the thread, which has been told something, and see it end. */
static void join_thread(cvy_watch *watch)
{
    uint64_t one = 1;
    ssize_t written = write(watch->wake, &one, sizeof one);
    (void)written; /* it wakes by itself, a beat later */
    pthread_join(watch->thread, NULL);
    watch->running = false;
}

static void stop_thread(cvy_watch *watch)
{
    if (watch->running) {
        atomic_store(&watch->leaving, true);
        join_thread(watch);
    }
}

void cvy_watch_fail(cvy_watch *watch, cvy_status status, const char *text)
{
    if (watch->running) {
        snprintf(watch->words, sizeof watch->words, "%s", text);
        atomic_store(&watch->failed, (int)status);
        join_thread(watch);
    }
}

cvy_status cvy_watch_start_ranks(const cvy_watch_ranks *ranks, const cvy_watch_options *options,
                                 cvy_watch **watch_out)
{
    cvy_watch *watch = NULL;
    cvy_watch_record *records = cvy_calloc((size_t)ranks->ranks, sizeof *records);
    unsigned char *met = cvy_calloc((size_t)ranks->ranks, 1);
    cvy_status status = records && met ? create(ranks, options, &watch) : CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, ranks->agree(ranks->context, status));
    pthread_mutex_lock(&watch->gate);
    status = join(watch, records, met);
    if (status == CVY_OK) {
        status = start_thread(watch);
    }
    if (status != CVY_ERR_RANK) { /* else somebody is missing, who would be here, too */
        status = ranks->agree(ranks->context, status);
    }
    watch->phase = status == CVY_OK ? CVY_WATCH_WATCHING : CVY_WATCH_LEFT;
    pthread_mutex_unlock(&watch->gate);
    if (status == CVY_OK) {
        *watch_out = watch;
        watch = NULL;
    } else {
        stop_thread(watch);
    }
done:
    if (status == CVY_ERR_RANK) { /* what is under way may still write to them; the run is to be abandoned */
        return status;
    }
    release(&watch);
    cvy_free(records);
    cvy_free(met);
    return status;
}

/* Nobody watches the ranks yet, so they wait for each other with the time-out: what they say goes by the first. */
static cvy_status gather(void *context, const void *mine, int64_t bytes, void *all_out)
{
    const cvy_watch_meeting *m = context;
    return cvy_comm_gather_within(m->comm, m->timeout_s, mine, bytes, all_out);
}

static cvy_status agree(void *context, cvy_status mine)
{
    cvy_watch_meeting *m = context;
    int32_t said = (int32_t)mine;
    CVY_TRY(cvy_comm_gather_within(m->comm, m->timeout_s, &said, sizeof said, m->said));
    for (int i = 0; i < cvy_comm_ranks(m->comm); i++) {
        if (m->said[i] != CVY_OK && mine == CVY_OK) {
            return cvy_fail((cvy_status)m->said[i], "rank %d: no memory, or no thread, for the watch", i);
        }
    }
    return mine;
}

static void abandon(void *context, int exit_code) { cvy_comm_abandon(((cvy_watch_meeting *)context)->comm, exit_code); }

cvy_status cvy_watch_start(cvy_comm *comm, const cvy_watch_options *options, cvy_watch **watch_out)
{
    cvy_watch_ranks ranks = {.rank = cvy_comm_rank(comm), .ranks = cvy_comm_ranks(comm),
                             .gather = gather, .agree = agree, .abandon = abandon};
    if (ranks.ranks == 1) {
        return create(&ranks, options, watch_out);
    }
    cvy_watch_meeting *m = cvy_calloc(1, sizeof *m + (size_t)ranks.ranks * sizeof m->said[0]);
    if (!m) {
        return cvy_comm_lose(comm, CVY_ERR_MEMORY);
    }
    m->comm = comm;
    m->timeout_s = options->timeout_s;
    ranks.context = m;
    cvy_status status = cvy_watch_start_ranks(&ranks, options, watch_out);
    if (status == CVY_OK) {
        (*watch_out)->meeting = m;
    } else if (status != CVY_ERR_RANK) {
        cvy_free(m);
    }
    return status;
}

cvy_status cvy_watch_stop(cvy_watch **watch)
{
    cvy_status status = CVY_OK;
    if (*watch) {
        cvy_activity before = cvy_pulse_set(CVY_ACTIVITY_FINISHED);
        stop_thread(*watch);
        cvy_pulse_set(before);
        if ((*watch)->phase == CVY_WATCH_STOPPED) {
            status = cvy_fail((*watch)->status, "%s", (*watch)->text);
        }
        release(watch);
    }
    return status;
}
