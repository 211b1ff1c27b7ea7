/* Profiles by kind of step: what the table at the end of a run shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/session.h"

enum { MAX_ROWS = 2 * CVY_OP_KIND_COUNT * CVY_PASS_COUNT + 2 };

/* One row a (kind, pass), with relu and without; control steps share the last two. */
static int find_row(const cvy_schedule *s, const cvy_step *step)
{
    if (step->op < 0) {
        return MAX_ROWS - (step->phase == CVY_PHASE_IO ? 2 : 1);
    }
    const cvy_op *op = &s->op[step->op];
    return 2 * ((int)op->kind * CVY_PASS_COUNT + (int)op->pass) + op->relu;
}

static void name_row(cvy_profile_row *row, const cvy_schedule *s, const cvy_step *step)
{
    if (step->op < 0) {
        snprintf(row->name, sizeof row->name, "%s", step->phase == CVY_PHASE_IO ? "batch" : "loss check");
        return;
    }
    const cvy_op *op = &s->op[step->op];
    const cvy_choice *choice = &s->choice[step->op];
    char algorithm[sizeof row->algorithm];
    snprintf(row->name, sizeof row->name, "%s%s %s", cvy_op_kind_name(op->kind), op->relu ? "+relu" : "",
             cvy_op_pass_name(op->pass));
    snprintf(algorithm, sizeof algorithm, "%s %.40s", choice->backend, choice->algorithm);
    if (row->algorithm[0] && strcmp(row->algorithm, algorithm) != 0) {
        snprintf(algorithm, sizeof algorithm, "mixed");
    }
    memcpy(row->algorithm, algorithm, sizeof algorithm);
}

static void add_schedule(const cvy_session *session, cvy_schedule_kind kind, const double *floor_s,
                         cvy_profile_row *row)
{
    const cvy_schedule *s = &session->plan->schedule[kind];
    const cvy_step_profile *profile = cvy_executor_profile(session->executor, kind);
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        cvy_profile_row *at = &row[find_row(s, step)];
        if (profile[i].calls == 0) {
            continue;
        }
        name_row(at, s, step);
        at->calls += profile[i].calls;
        at->seconds += profile[i].seconds;
        at->floor_s += floor_s ? (double)profile[i].calls * floor_s[i] : 0.0;
        if (step->op >= 0) {
            at->flop += (double)profile[i].calls * cvy_op_flop(&s->op[step->op]);
            at->bytes += (double)profile[i].calls * cvy_op_bytes(&s->op[step->op]);
        }
    }
}

static int compare_seconds(const void *a, const void *b)
{
    double x = ((const cvy_profile_row *)a)->seconds;
    double y = ((const cvy_profile_row *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

cvy_status cvy_session_profile(const cvy_session *session, unsigned schedules, const double *floor_s,
                               cvy_profile_row **row_out, int *rows_out)
{
    cvy_profile_row *row = cvy_calloc(MAX_ROWS, sizeof *row);
    if (!row) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
        if (schedules & 1u << i) {
            add_schedule(session, (cvy_schedule_kind)i, floor_s, row);
        }
    }
    qsort(row, MAX_ROWS, sizeof *row, compare_seconds);
    int rows = 0;
    while (rows < MAX_ROWS && row[rows].calls > 0) {
        rows++;
    }
    *row_out = row;
    *rows_out = rows;
    return CVY_OK;
}
