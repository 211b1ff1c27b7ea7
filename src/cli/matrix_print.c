/* The table of a matrix, as people read it: within 100 columns, a block for each model and batch. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/matrix.h"
#include "cli/planning.h"

enum { STRATEGY_WIDTH = 17 };

/* "+3 %", right in six columns; "-" where there is nothing to compare with. */
static void print_error(double predicted, double measured)
{
    if (predicted > 0.0 && measured > 0.0) {
        printf(" %+4.0f %%", 100.0 * fmin(predicted / measured - 1.0, 9.99));
    } else {
        printf(" %6s", "-");
    }
}

static void print_measured(const cli_matrix_row *row)
{
    char unit[CVY_UNIT_TEXT];
    if (row->runs > 0) {
        printf(" %9s %3.0f %%", cvy_print_seconds(row->clock.median_s, unit),
               100.0 * fmin((row->clock.most_s - row->clock.least_s) / row->clock.median_s, 9.99));
    } else {
        printf(" %9s %5s", row->failed ? "failed" : "-", "-");
    }
}

static void print_predicted(const cli_matrix_row *row)
{
    char unit[CVY_UNIT_TEXT];
    if (row->priced) {
        printf(" %9s %3.0f %%", cvy_print_seconds(row->predicted_s, unit), 100.0 * fmin(row->error_relative, 9.99));
    } else {
        printf(" %9s %5s", "-", "-");
    }
}

/* How far off, and whether the error bar holds. */
static void print_standing(const cli_matrix_row *row, const cli_matrix_middle *measured)
{
    bool counts = cli_matrix_counts(row) && measured->median_s > 0.0;
    print_error(row->priced ? row->predicted_s : 0.0, measured->median_s);
    printf(" %s", !counts ? " " : cli_matrix_is_inside(row, measured) ? "=" : "!");
}

static void print_row(const cli_matrix_row *row)
{
    char unit[CVY_UNIT_TEXT], ranks[48];
    snprintf(ranks, sizeof ranks, "%" PRId64 "x%" PRId64, row->ranks, row->threads);
    printf("  ");
    cli_print_column(STRATEGY_WIDTH, row->strategy);
    printf(" %5s", ranks);
    print_measured(row);
    print_predicted(row);
    print_standing(row, &row->clock);
    print_error(row->pace, 1.0);
    print_standing(row, &row->at_pace);
    printf(" %8s", row->memory_bytes ? cvy_print_bytes((double)row->memory_bytes, unit) : "-");
    print_error(row->priced ? (double)row->predicted_bytes : 0.0, (double)row->memory_bytes);
    printf("\n");
}

static bool begins_group(const cli_matrix *m, int row)
{
    const cli_matrix_row *at = &m->row[row];
    return row == 0 || strcmp(at->model, at[-1].model) != 0 || at->batch != at[-1].batch;
}

static void print_reasons(const cli_matrix *m)
{
    for (int i = 0; i < m->rows; i++) {
        const cli_matrix_row *row = &m->row[i];
        const char *why = row->failed ? row->why_failed : row->priced ? NULL : row->why_not;
        if (why) {
            printf("line %d: %s: ", row->line, row->failed ? "not measured" : "not predicted");
            cli_print_wrapped(4, why);
        }
        if (row->priced && m->machine[row->machine].cores != row->threads) {
            int64_t cores = m->machine[row->machine].cores;
            printf("line %d: predicted for devices of %" PRId64 " core%s: no --machine has devices of %" PRId64 "\n",
                   row->line, cores, cores == 1 ? "" : "s", row->threads);
        }
    }
}

static void print_score(const cli_matrix_score *score)
{
    if (score->rows) {
        printf("   %6.1f %% %+6.1f %%", 100.0 * score->accuracy, 100.0 * score->error);
    } else {
        printf("   %8s %8s", "-", "-");
    }
}

static void print_mean(const cli_matrix_mean *mean, const char *name)
{
    char ranks[48] = "";
    if (mean->ranks) {
        snprintf(ranks, sizeof ranks, "%" PRId64 "x%" PRId64, mean->ranks, mean->threads);
    }
    printf("  %-22s %7s", name, ranks);
    print_score(&mean->clock);
    print_score(&mean->at_pace);
    printf("  %4d row%s\n", mean->clock.rows, mean->clock.rows == 1 ? "" : "s");
}

static void print_means(const cli_matrix_figures *f)
{
    printf("\n  %-22s %7s   %17s   %17s\n", "", "", "by the clock", "at pace");
    printf("  %-22s %7s   %8s %8s   %8s %8s\n", "strategy", "ranks", "accuracy", "error", "accuracy", "error");
    for (int i = 0; i < f->means; i++) {
        print_mean(&f->mean[i], f->mean[i].family);
    }
    print_mean(&f->all, "all");
}

static void print_holding(const cli_matrix_score *score, bool paced)
{
    const cli_matrix_row *worst = score->worst;
    if (!worst) {
        return;
    }
    double accuracy = paced ? worst->at_pace.accuracy : worst->clock.accuracy;
    printf("%-13s worst %.1f %%, %s, %s on %" PRId64 "x%" PRId64 " (line %d); %d off by more than 15 %% and than\n"
           "              their runs differ; %d of %d within error bars, which are to hold 90 %%\n",
           paced ? "at pace:" : "by the clock:", 100.0 * accuracy, worst->model, worst->strategy, worst->ranks,
           worst->threads, worst->line, score->off, score->inside, score->rows);
}

static void print_figures(const cli_matrix_figures *f)
{
    const cli_matrix_order *o = &f->order;
    print_holding(&f->all.clock, false);
    print_holding(&f->all.at_pace, true);
    if (o->sets) {
        printf("order of strategies: Kendall's tau %.2f over %d set%s; %d of %d pairs as measured, of those apart by\n"
               "more than their runs differ %d of %d\n", o->tau, o->sets, o->sets == 1 ? "" : "s", o->agreed, o->pairs,
               o->apart_agreed, o->apart);
    }
    if (f->memory_rows) {
        printf("memory:  %d of %d rows of over 200 MB within 5 %%, off by %.1f %% on average, %+.1f %% at most\n",
               f->memory_close, f->memory_rows, 100.0 * f->memory_error, 100.0 * f->memory_worst);
    }
}

void cli_matrix_print(const cli_matrix *m, const cli_matrix_figures *figures)
{
    int64_t runs = m->options->matrix.runs;
    printf("an iteration by the median of %" PRId64 " run%s, with their spread, beside its prediction with its error "
           "bar;\npace: how much longer (+) a small product took than in the calibration, and the error at that pace;\n"
           "memory of the rank with most; ranks x threads\n", runs, runs == 1 ? "" : "s");
    printf("  %-*s %5s %9s %5s %9s %5s %6s   %6s %6s   %8s %6s\n", STRATEGY_WIDTH, "strategy", "ranks", "measured",
           "apart", "predicted", "+-", "error", "pace", "error", "memory", "error");
    for (int i = 0; i < m->rows; i++) {
        if (begins_group(m, i)) {
            printf("%s, batch %" PRId64 "\n", m->row[i].model, m->row[i].batch);
        }
        print_row(&m->row[i]);
    }
    print_reasons(m);
    if (figures->all.clock.rows) {
        print_means(figures);
        print_figures(figures);
    }
}
