/*
 * Ranks of one stage have the same kinds and the same predictions, so what differs between them is the clock's: a line
 * a rank shows who is slow, and whether that is in the steps or in waiting between them.
 */
#include "cli/compare_ranks.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/json_output.h"

enum { MOST_LINES = 32 };

static double divide(double a, double b) { return b > 0.0 ? a / b : 0.0; }

static double get_predicted(const cli_run_profile *p, int rank, int row)
{
    const double *own = rank < 0 ? NULL : p->rank_predicted_s + (size_t)rank * (size_t)p->rows;
    return divide(own ? own[row] : p->row[row].predicted_s, (double)p->iterations);
}

static double get_measured(const cli_run_profile *p, int rank, int row)
{
    return divide(rank < 0 ? p->row[row].seconds : p->rank[rank].seconds[row], (double)p->iterations);
}

cli_run_sums cli_run_sum(const cli_run_profile *p, int rank)
{
    cli_run_sums all = {0};
    for (int i = 0; i < p->rows; i++) {
        double predicted_s = get_predicted(p, rank, i), measured_s = get_measured(p, rank, i);
        if (predicted_s <= 0.0) {
            all.unpredicted_s += measured_s;
            continue;
        }
        all.predicted_s += predicted_s;
        all.measured_s += measured_s;
        all.excess_s += fmax(predicted_s - measured_s, 0.0);
        all.lack_s += fmax(measured_s - predicted_s, 0.0);
    }
    return all;
}

static void print_error(double predicted, double measured)
{
    if (predicted > 0.0 && measured > 0.0) {
        printf(" %+7.1f %%", 100.0 * fmin(predicted / measured - 1.0, 99.0));
    } else {
        printf(" %9s", "-");
    }
}

static void print_line(const cli_run_profile *p, int rank)
{
    char unit[6][CVY_UNIT_TEXT];
    const cli_run_sums all = cli_run_sum(p, rank);
    printf("%5d %10s %10s %10s", rank, cvy_print_seconds(p->rank[rank].iteration_s, unit[0]),
           cvy_print_seconds(all.predicted_s, unit[1]), cvy_print_seconds(all.measured_s, unit[2]));
    print_error(all.predicted_s, all.measured_s);
    printf(" %10s %10s %9s", cvy_print_seconds(all.excess_s, unit[3]), cvy_print_seconds(all.lack_s, unit[4]),
           cvy_print_bytes((double)p->rank[rank].peak_memory_bytes, unit[5]));
    print_error((double)p->predicted_memory_bytes, (double)p->rank[rank].peak_memory_bytes);
    printf("\n");
}

static void print_kinds(const cli_run_profile *p, int rank)
{
    char unit[2][CVY_UNIT_TEXT];
    char name[32];
    snprintf(name, sizeof name, "rank %d, an iteration's", rank);
    printf("\n%-40s %11s %11s %9s\n", name, "predicted", "measured", "error");
    for (int i = 0; i < p->rows; i++) {
        double predicted_s = get_predicted(p, rank, i), measured_s = get_measured(p, rank, i);
        if (measured_s > 0.0) {
            printf("%-40.40s %11s %11s", p->row[i].name,
                   predicted_s > 0.0 ? cvy_print_seconds(predicted_s, unit[0]) : "-",
                   cvy_print_seconds(measured_s, unit[1]));
            print_error(predicted_s, measured_s);
            printf("\n");
        }
    }
}

void cli_print_run_ranks(const cli_run_profile *p, bool all)
{
    int shown = all || p->told <= MOST_LINES ? p->told : MOST_LINES;
    if (p->told < 2) {
        return;
    }
    printf("\n%5s %10s %10s %10s %9s %10s %10s %9s %9s\n", "rank", "iteration", "predicted", "kinds", "error",
           "too much", "too little", "memory", "error");
    for (int rank = 0; rank < shown; rank++) {
        print_line(p, rank);
    }
    if (shown < p->told) {
        printf("... and %d more ranks (--all)\n", p->told - shown);
    }
    for (int rank = 0; all && rank < shown; rank++) {
        print_kinds(p, rank);
    }
}

/* ---- for scripts ---- */

static json_t *describe_kinds(const cli_run_profile *p, int rank)
{
    json_t *kinds = json_array();
    for (int i = 0; i < p->rows; i++) {
        double predicted_s = get_predicted(p, rank, i), measured_s = get_measured(p, rank, i);
        if (measured_s > 0.0) {
            json_array_append_new(kinds, json_pack(
                "{s:s, s:o, s:o}", "step", p->row[i].name, "predicted_s",
                predicted_s > 0.0 ? cli_json_number(predicted_s) : json_null(), "measured_s",
                cli_json_number(measured_s)));
        }
    }
    return kinds;
}

json_t *cli_describe_run_ranks(const cli_run_profile *p)
{
    json_t *ranks = json_array();
    for (int rank = 0; rank < p->told; rank++) {
        const cli_run_sums all = cli_run_sum(p, rank);
        json_array_append_new(ranks, json_pack(
            "{s:i, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "rank", rank, "iteration_s",
            cli_json_number(p->rank[rank].iteration_s), "peak_memory_bytes",
            (json_int_t)p->rank[rank].peak_memory_bytes, "predicted_s", cli_json_number(all.predicted_s), "measured_s",
            cli_json_number(all.measured_s), "excess_s", cli_json_number(all.excess_s), "lack_s",
            cli_json_number(all.lack_s), "unpredicted_s", cli_json_number(all.unpredicted_s), "steps",
            describe_kinds(p, rank)));
    }
    return ranks;
}
