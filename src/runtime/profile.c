/*
 * Profiles by kind of step: what the table at the end of a run shows. Kinds are told apart by their names, which are
 * the same on all ranks; ranks of other stages have other kinds, so the rows of all are united.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "plan/step_kind.h"
#include "runtime/session.h"

/* Rows as they grow: there is room for all that can come. */
typedef struct table {
    cvy_profile_row *row;
    int rows;
} table;

static cvy_profile_row *find_row(table *t, const char *name)
{
    int i = 0;
    while (i < t->rows && strcmp(t->row[i].name, name) != 0) {
        i++;
    }
    if (i == t->rows) {
        snprintf(t->row[t->rows++].name, sizeof t->row[i].name, "%s", name);
    }
    return &t->row[i];
}

static void note_algorithm(cvy_profile_row *row, const char *algorithm)
{
    bool mixed = row->algorithm[0] && strcmp(row->algorithm, algorithm) != 0;
    snprintf(row->algorithm, sizeof row->algorithm, "%s", mixed ? "mixed" : algorithm);
}

static void count_step(const cvy_schedule *s, const cvy_step *step, const cvy_step_profile *profile,
                       cvy_profile_row *row)
{
    double calls = (double)profile->calls;
    row->calls += profile->calls;
    row->seconds += profile->seconds;
    if (step->op >= 0) {
        const cvy_choice *choice = &s->choice[step->op];
        char algorithm[sizeof row->algorithm];
        snprintf(algorithm, sizeof algorithm, "%s %.40s", choice->backend, choice->algorithm);
        note_algorithm(row, algorithm);
        row->flop += calls * cvy_op_flop(&s->op[step->op]);
        row->bytes += calls * cvy_op_bytes(&s->op[step->op]);
    } else if (step->exchange >= 0) {
        row->bytes += calls * (double)s->exchange[step->exchange].bytes;
    }
}

static void add_schedule(const cvy_session *session, cvy_schedule_kind kind, const double *floor_s, table *t)
{
    const cvy_schedule *s = &session->plan->schedule[kind];
    const cvy_step_profile *profile = cvy_executor_profile(session->executor, kind);
    char name[CVY_STEP_KIND_TEXT];
    for (int i = 0; i < s->steps; i++) {
        if (profile[i].calls > 0) {
            cvy_profile_row *row = find_row(t, cvy_step_print_kind(s, &s->step[i], name));
            count_step(s, &s->step[i], &profile[i], row);
            row->floor_s += floor_s ? (double)profile[i].calls * floor_s[i] : 0.0;
        }
    }
}

static int compare_seconds(const void *a, const void *b)
{
    double x = ((const cvy_profile_row *)a)->seconds;
    double y = ((const cvy_profile_row *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The rows of this rank. */
static cvy_status sum_own(const cvy_session *session, unsigned schedules, const double *floor_s, table *t)
{
    size_t steps = 1;
    for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
        steps += (size_t)session->plan->schedule[i].steps;
    }
    t->row = cvy_calloc(steps, sizeof *t->row);
    if (!t->row) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
        if (schedules & 1u << i) {
            add_schedule(session, (cvy_schedule_kind)i, floor_s, t);
        }
    }
    for (int i = 0; i < t->rows; i++) {
        t->row[i].rank = cvy_comm_rank(session->comm);
        t->row[i].ranks = 1;
        t->row[i].least_s = t->row[i].seconds;
    }
    return CVY_OK;
}

/* ---- ranks ---- */

/* A row of another rank: what the slowest has to say of the kind stands, with what all others have in common. */
static void unite_row(table *t, const cvy_profile_row *other)
{
    cvy_profile_row *row = find_row(t, other->name);
    bool first = row->ranks == 0;
    int ranks = row->ranks + other->ranks;
    double least_s = first ? other->least_s : fmin(row->least_s, other->least_s);
    if (first || other->seconds > row->seconds) {
        *row = *other;
    }
    row->ranks = ranks;
    row->least_s = least_s;
}

/* Rows of all ranks, one behind the other; of each as many as the longest list has. */
static cvy_status gather(const cvy_session *session, const table *own, int32_t most, cvy_profile_row **all_out)
{
    const int ranks = cvy_comm_ranks(session->comm);
    const size_t bytes = (size_t)most * sizeof(cvy_profile_row);
    cvy_profile_row *mine = cvy_calloc((size_t)most, sizeof *mine);
    cvy_profile_row *all = cvy_calloc((size_t)most * (size_t)ranks, sizeof *all);
    cvy_status status = cvy_comm_agree(session->comm, mine && all ? CVY_OK : CVY_ERR_MEMORY);
    if (status == CVY_OK) {
        memcpy(mine, own->row, (size_t)own->rows * sizeof *mine);
        status = cvy_comm_gather_bytes(session->comm, mine, (int64_t)bytes, all);
    }
    if (status == CVY_OK) {
        *all_out = all;
        all = NULL;
    }
    cvy_free(mine);
    cvy_free(all);
    return status;
}

static cvy_status unite(const cvy_session *session, table *t)
{
    const int ranks = cvy_comm_ranks(session->comm);
    int32_t most = t->rows;
    table united = {.rows = 0};
    cvy_profile_row *all = NULL;
    CVY_TRY(cvy_comm_all_reduce(session->comm, &most, 1, CVY_I32, CVY_REDUCE_MAX));
    if (most == 0) {
        return CVY_OK;
    }
    cvy_status status = gather(session, t, most, &all);
    CVY_TRY_GOTO(status, done, status);
    united.row = cvy_calloc((size_t)most * (size_t)ranks, sizeof *united.row);
    CVY_TRY_GOTO(status, done, cvy_comm_agree(session->comm, united.row ? CVY_OK : CVY_ERR_MEMORY));
    for (int64_t i = 0; i < (int64_t)most * ranks; i++) {
        if (all[i].ranks > 0) { /* else this rank has fewer */
            unite_row(&united, &all[i]);
        }
    }
    cvy_free(t->row);
    *t = united;
    united.row = NULL;
done:
    cvy_free(united.row);
    cvy_free(all);
    return status;
}

static double find_own_kibibytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss;
}

cvy_status cvy_session_peak_memory(const cvy_session *session, int64_t *bytes_out)
{
    double kibibytes = find_own_kibibytes();
    CVY_TRY(cvy_comm_all_reduce(session->comm, &kibibytes, 1, CVY_F64, CVY_REDUCE_MAX));
    *bytes_out = (int64_t)kibibytes * 1024;
    return CVY_OK;
}

cvy_status cvy_session_profile(const cvy_session *session, unsigned schedules, const double *floor_s,
                               cvy_profile_row **row_out, int *rows_out)
{
    table t = {.rows = 0};
    cvy_status status = cvy_comm_agree(session->comm, sum_own(session, schedules, floor_s, &t));
    if (status == CVY_OK && cvy_comm_ranks(session->comm) > 1) {
        status = unite(session, &t);
    }
    if (status != CVY_OK) {
        cvy_free(t.row);
        return status;
    }
    qsort(t.row, (size_t)t.rows, sizeof *t.row, compare_seconds);
    *row_out = t.row;
    *rows_out = t.rows;
    return CVY_OK;
}

/* ---- one rank beside the other ---- */

/* Two figures of this rank, then its seconds of each row. */
enum { RANK_FIGURES = 2 };

static cvy_status describe_own(const cvy_session *session, unsigned schedules, const cvy_profile_row *row, int rows,
                               double *figures)
{
    table t = {.rows = 0};
    CVY_TRY(sum_own(session, schedules, NULL, &t));
    figures[1] = find_own_kibibytes();
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < t.rows; k++) {
            figures[RANK_FIGURES + i] += strcmp(t.row[k].name, row[i].name) == 0 ? t.row[k].seconds : 0.0;
        }
    }
    cvy_free(t.row);
    return CVY_OK;
}

/* Give each rank its part of what was gathered. @return NULL without memory */
static cvy_rank_result *divide_ranks(const double *all, int ranks, int rows)
{
    const size_t each = RANK_FIGURES + (size_t)rows;
    cvy_rank_result *rank = cvy_calloc((size_t)ranks, sizeof *rank);
    double *seconds = cvy_calloc((size_t)ranks * (size_t)rows + 1, sizeof *seconds);
    for (int i = 0; rank && seconds && i < ranks; i++) {
        const double *own = all + (size_t)i * each;
        rank[i] = (cvy_rank_result){own[0], (int64_t)own[1] * 1024, seconds + (size_t)i * (size_t)rows};
        memcpy(rank[i].seconds, own + RANK_FIGURES, (size_t)rows * sizeof *seconds);
    }
    if (!rank || !seconds) {
        cvy_free(seconds);
        cvy_free(rank);
        return NULL;
    }
    return rank;
}

cvy_status cvy_session_profile_ranks(const cvy_session *session, unsigned schedules, const cvy_profile_row *row,
                                     int rows, double iteration_s, cvy_rank_result **rank_out)
{
    const int ranks = cvy_comm_ranks(session->comm);
    const size_t each = RANK_FIGURES + (size_t)rows;
    cvy_rank_result *rank = NULL;
    double *own = cvy_calloc(each, sizeof *own), *all = cvy_calloc((size_t)ranks * each, sizeof *all);
    cvy_status status = own && all ? describe_own(session, schedules, row, rows, own) : CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, cvy_comm_agree(session->comm, status));
    own[0] = iteration_s;
    CVY_TRY_GOTO(status, done, cvy_comm_gather_bytes(session->comm, own, (int64_t)(each * sizeof *own), all));
    rank = divide_ranks(all, ranks, rows);
    CVY_TRY_GOTO(status, done, cvy_comm_agree(session->comm, rank ? CVY_OK : CVY_ERR_MEMORY));
    *rank_out = rank;
    rank = NULL;
done:
    cvy_rank_results_destroy(&rank);
    cvy_free(own);
    cvy_free(all);
    return status;
}

void cvy_rank_results_destroy(cvy_rank_result **rank)
{
    if (*rank) {
        cvy_free((*rank)->seconds);
        cvy_free(*rank);
        *rank = NULL;
    }
}
