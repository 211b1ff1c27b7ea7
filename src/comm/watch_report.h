/* What ranks report up the tree, how reports are merged, and what follows from the one at the top. Nothing is sent. */
#ifndef CVY_COMM_WATCH_REPORT_H
#define CVY_COMM_WATCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pulse.h"

enum { CVY_WATCH_TEXT = 256 };

/** Where a rank stands. Part of a message: fixed widths. */
typedef struct cvy_watch_standing {
    uint64_t beats;
    int64_t exchange;
    int32_t rank;     /**< -1: none */
    int32_t activity;
    uint32_t idle_ms; /**< since it last beat */
    char text[CVY_PULSE_TEXT];
} cvy_watch_standing;

/** Where the ranks of a part of the tree stand. Part of a message. */
typedef struct cvy_watch_report {
    cvy_watch_standing late;     /**< of those that are at something of their own the one that was idle longest */
    cvy_watch_standing waiting;  /**< of those in an exchange the one that is behind */
    cvy_watch_standing finished; /**< of those that have left the one that did so first */
    int32_t ranks;               /**< how many it is about */
    uint32_t idle_ms;            /**< for so long none of them has beaten */
} cvy_watch_report;

/** Take a rank in; of rank -1 the report is about nobody. */
void cvy_watch_report_one(const cvy_watch_standing *standing, cvy_watch_report *report_out);

/** Take another report in, which is @p age_ms old. */
void cvy_watch_report_merge(cvy_watch_report *report, const cvy_watch_report *other, uint32_t age_ms);

/** Check what came from outside against a count of ranks, and make its texts fit to print. */
bool cvy_watch_standing_check(cvy_watch_standing *standing, int ranks);
bool cvy_watch_report_check(cvy_watch_report *report, int ranks);

/**
 * Judge the report of all ranks.
 *
 * @param[in]  timeout_ms  what a rank may take
 * @param[out] text_out    CVY_WATCH_TEXT bytes: what was found
 * @return the rank that is to blame; -1: all is well
 */
int cvy_watch_judge(const cvy_watch_report *report, int ranks, uint32_t timeout_ms, char *text_out);

/** Word that a rank was lost: "rank 3 was lost: CAUSE; last seen in exchange 12 (…)". */
void cvy_watch_word_loss(int rank, const char *cause, const cvy_watch_standing *last, char *text_out);

#endif
