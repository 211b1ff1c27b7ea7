/* The table of a matrix, as people read it: within 100 columns, a block for each model and batch. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/matrix.h"
#include "cli/planning.h"

enum { STRATEGY_WIDTH = 17 };

/* "+3.1 %", right in @p width; "-" where there is nothing to compare with. */
static void print_error(double predicted, double measured, int width)
{
    if (predicted > 0.0 && measured > 0.0) {
        printf(" %+*.1f %%", width - 2, 100.0 * fmin(predicted / measured - 1.0, 99.0));
    } else {
        printf(" %*s", width, "-");
    }
}

static void print_measured(const cli_matrix_row *row)
{
    char unit[CVY_UNIT_TEXT];
    if (row->runs > 0) {
        printf(" %9s %3.0f %%", cvy_print_seconds(row->median_s, unit),
               100.0 * fmin((row->most_s - row->least_s) / row->median_s, 9.99));
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

static void print_row(const cli_matrix_row *row)
{
    char unit[2][CVY_UNIT_TEXT], ranks[48];
    snprintf(ranks, sizeof ranks, "%" PRId64 "x%" PRId64, row->ranks, row->threads);
    printf("  ");
    cli_print_column(STRATEGY_WIDTH, row->strategy);
    printf(" %5s", ranks);
    print_measured(row);
    print_predicted(row);
    print_error(row->priced ? row->predicted_s : 0.0, row->median_s, 8);
    printf(" %s", !cli_matrix_counts(row) ? " " : cli_matrix_is_inside(row) ? "=" : "!");
    printf(" %8s %8s", row->priced ? cvy_print_bytes((double)row->predicted_bytes, unit[0]) : "-",
           row->memory_bytes ? cvy_print_bytes((double)row->memory_bytes, unit[1]) : "-");
    print_error(row->priced ? (double)row->predicted_bytes : 0.0, (double)row->memory_bytes, 8);
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

static void print_mean(const cli_matrix_mean *mean, const char *name)
{
    char ranks[48] = "";
    if (mean->ranks) {
        snprintf(ranks, sizeof ranks, "%" PRId64 "x%" PRId64, mean->ranks, mean->threads);
    }
    printf("  %-22s %7s %6.1f %%   %+6.1f %%  %4d row%s\n", name, ranks, 100.0 * mean->accuracy, 100.0 * mean->error,
           mean->rows, mean->rows == 1 ? "" : "s");
}

static void print_means(const cli_matrix_figures *f)
{
    printf("\n  %-22s %7s %8s   %8s\n", "strategy", "ranks", "accuracy", "error");
    for (int i = 0; i < f->means; i++) {
        print_mean(&f->mean[i], f->mean[i].family);
    }
    print_mean(&f->all, "all");
}

static void print_figures(const cli_matrix_figures *f)
{
    const cli_matrix_order *o = &f->order;
    const cli_matrix_row *worst = f->worst;
    if (worst) {
        printf("worst:   %.1f %%, %s, %s on %" PRId64 "x%" PRId64 " (line %d)\n", 100.0 * worst->accuracy, worst->model,
               worst->strategy, worst->ranks, worst->threads, worst->line);
        printf("off by more than 15 %% and than their runs differ: %d of %d rows\n", f->off, f->all.rows);
        printf("within the predictions' own error bars, which are to hold 90 %%: %d of %d rows\n", f->inside,
               f->all.rows);
    }
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
           "bar;\nmemory of the rank with most; ranks x threads\n", runs, runs == 1 ? "" : "s");
    printf("  %-*s %5s %9s %5s %9s %5s %8s   %8s %8s %8s\n", STRATEGY_WIDTH, "strategy", "ranks", "measured", "apart",
           "predicted", "+-", "error", "memory p", "memory m", "error");
    for (int i = 0; i < m->rows; i++) {
        if (begins_group(m, i)) {
            printf("%s, batch %" PRId64 "\n", m->row[i].model, m->row[i].batch);
        }
        print_row(&m->row[i]);
    }
    print_reasons(m);
    if (figures->all.rows) {
        print_means(figures);
        print_figures(figures);
    }
}
