/*
 * Who is to blame. A rank in an exchange waits for others, so it is not to blame while another rank is at something of
 * its own: of those, the one that has not beaten for the time-out is late, where anybody waits. As long as it beats (a
 * checkpoint of rank 0, for which all wait) there is nothing to find. Where all ranks are in exchanges and none has
 * moved, the one with the least exchange is behind; but if some have left the run while others wait, those are to
 * blame, and since nothing can come of that it is said after seconds.
 *
 * Ages travel, not times: clocks of nodes need not agree. A report is merged from reports, so that a message says as
 * much about a thousand ranks as about one.
 */
#include "comm/watch_report.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

enum { LEFT_EARLY_MS = 10000, ALL_REST_MS = UINT32_MAX / 4, EXCHANGE_TEXT = 112 };

static uint32_t add_ms(uint32_t a, uint32_t b) { return (uint32_t)cvy_min_i64((int64_t)a + b, ALL_REST_MS); }

void cvy_watch_report_one(const cvy_watch_standing *standing, cvy_watch_report *report_out)
{
    memset(report_out, 0, sizeof *report_out);
    report_out->late.rank = report_out->waiting.rank = report_out->finished.rank = -1;
    report_out->idle_ms = ALL_REST_MS;
    if (standing->rank < 0) {
        return;
    }
    report_out->ranks = 1;
    report_out->idle_ms = standing->idle_ms;
    if (standing->activity == CVY_ACTIVITY_COMMUNICATING) {
        report_out->waiting = *standing;
    } else if (standing->activity == CVY_ACTIVITY_FINISHED) {
        report_out->finished = *standing;
    } else {
        report_out->late = *standing;
    }
}

/* An exchange without a number says nothing about who is behind. */
static uint64_t place(const cvy_watch_standing *standing) { return (uint64_t)standing->exchange; }

static bool is_behind(const cvy_watch_standing *a, const cvy_watch_standing *b)
{
    return place(a) < place(b) || (place(a) == place(b) && a->idle_ms > b->idle_ms);
}

static bool is_idler(const cvy_watch_standing *a, const cvy_watch_standing *b) { return a->idle_ms > b->idle_ms; }

static void keep(cvy_watch_standing *kept, const cvy_watch_standing *other, uint32_t age_ms,
                 bool (*goes_before)(const cvy_watch_standing *, const cvy_watch_standing *))
{
    cvy_watch_standing aged = *other;
    aged.idle_ms = add_ms(aged.idle_ms, age_ms);
    if (aged.rank >= 0 && (kept->rank < 0 || goes_before(&aged, kept))) {
        *kept = aged;
    }
}

void cvy_watch_report_merge(cvy_watch_report *report, const cvy_watch_report *other, uint32_t age_ms)
{
    keep(&report->late, &other->late, age_ms, is_idler);
    keep(&report->waiting, &other->waiting, age_ms, is_behind);
    keep(&report->finished, &other->finished, age_ms, is_idler);
    report->ranks += other->ranks;
    report->idle_ms = (uint32_t)cvy_min_i64(report->idle_ms, add_ms(other->idle_ms, age_ms));
}

bool cvy_watch_standing_check(cvy_watch_standing *standing, int ranks)
{
    char word[CVY_WORD_TEXT];
    standing->text[sizeof standing->text - 1] = '\0';
    cvy_print_word(standing->text, word);
    snprintf(standing->text, sizeof standing->text, "%.*s", (int)sizeof standing->text - 1, word);
    return standing->rank >= -1 && standing->rank < ranks && standing->activity >= 0 &&
           standing->activity < CVY_ACTIVITIES && standing->exchange >= -1;
}

bool cvy_watch_report_check(cvy_watch_report *report, int ranks)
{
    return cvy_watch_standing_check(&report->late, ranks) && cvy_watch_standing_check(&report->waiting, ranks) &&
           cvy_watch_standing_check(&report->finished, ranks) && report->ranks >= 0 && report->ranks <= ranks;
}

/* "exchange 183 (all-reduce over sample)" */
static const char *print_exchange(const cvy_watch_standing *standing, char text[EXCHANGE_TEXT])
{
    bool numbered = standing->exchange >= 0;
    const char *name = standing->text[0] ? standing->text : "an exchange";
    if (!numbered) {
        snprintf(text, EXCHANGE_TEXT, "%s", name);
    } else if (!standing->text[0]) {
        snprintf(text, EXCHANGE_TEXT, "exchange %lld", (long long)standing->exchange);
    } else {
        snprintf(text, EXCHANGE_TEXT, "exchange %lld (%s)", (long long)standing->exchange, name);
    }
    return text;
}

static int blame_late(const cvy_watch_report *report, const char *within, char *text_out)
{
    char exchange[EXCHANGE_TEXT];
    const char *does = cvy_activity_name((cvy_activity)report->late.activity);
    if (report->waiting.rank >= 0) {
        snprintf(text_out, CVY_WATCH_TEXT, "rank %d did not come to %s within %s: it is %s", report->late.rank,
                 print_exchange(&report->waiting, exchange), within, does);
    } else {
        snprintf(text_out, CVY_WATCH_TEXT, "rank %d has not gone on for %s: it is %s", report->late.rank, within, does);
    }
    return report->late.rank;
}

int cvy_watch_judge(const cvy_watch_report *report, int ranks, uint32_t timeout_ms, char *text_out)
{
    char exchange[EXCHANGE_TEXT], within[CVY_UNIT_TEXT];
    bool anyone_waits = report->waiting.rank >= 0 || report->finished.rank >= 0;
    bool none_moves = report->ranks == ranks && report->idle_ms >= timeout_ms;
    cvy_print_seconds(1e-3 * timeout_ms, within);
    if (report->late.rank >= 0) {
        bool late = report->late.idle_ms >= timeout_ms && (anyone_waits || none_moves);
        return late ? blame_late(report, within, text_out) : -1;
    }
    if (report->ranks < ranks || report->waiting.rank < 0) {
        return -1;
    }
    if (report->finished.rank >= 0 && report->idle_ms >= cvy_min_i64(timeout_ms, LEFT_EARLY_MS)) {
        snprintf(text_out, CVY_WATCH_TEXT, "rank %d left the run early: it did not come to %s", report->finished.rank,
                 print_exchange(&report->waiting, exchange));
        return report->finished.rank;
    }
    if (none_moves) {
        snprintf(text_out, CVY_WATCH_TEXT, "no rank has gone on for %s: all wait, and rank %d is behind, in %s", within,
                 report->waiting.rank, print_exchange(&report->waiting, exchange));
        return report->waiting.rank;
    }
    return -1;
}

void cvy_watch_word_loss(int rank, const char *cause, const cvy_watch_standing *last, char *text_out)
{
    char exchange[EXCHANGE_TEXT];
    if (last->rank != rank) {
        snprintf(text_out, CVY_WATCH_TEXT, "rank %d was lost: %s", rank, cause);
    } else if (last->activity == CVY_ACTIVITY_COMMUNICATING) {
        snprintf(text_out, CVY_WATCH_TEXT, "rank %d was lost: %s; last seen in %s", rank, cause,
                 print_exchange(last, exchange));
    } else if (last->exchange >= 0) {
        snprintf(text_out, CVY_WATCH_TEXT, "rank %d was lost: %s; last seen %s, after %s", rank, cause,
                 cvy_activity_name((cvy_activity)last->activity), print_exchange(last, exchange));
    } else {
        snprintf(text_out, CVY_WATCH_TEXT, "rank %d was lost: %s; last seen %s", rank, cause,
                 cvy_activity_name((cvy_activity)last->activity));
    }
}
