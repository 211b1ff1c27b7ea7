/*
 * convoy compare RUN: what a run took beside what was predicted of it, kind of step by kind of step. Errors keep their
 * signs: an iteration whose kinds are off both ways may look well predicted, and says so here.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/compare.h"
#include "cli/compare_ranks.h"
#include "cli/json_output.h"

static double divide(double a, double b) { return b > 0.0 ? a / b : 0.0; }

static double accuracy_of(double predicted, double measured)
{
    return measured > 0.0 ? fmax(0.0, 1.0 - fabs(predicted - measured) / measured) : 0.0;
}

/* ---- for people ---- */

/* "+3.1 %": how far a prediction is from what was measured. */
static void print_error(double predicted, double measured)
{
    if (measured > 0.0) {
        printf(" %+8.1f %%", 100.0 * (predicted / measured - 1.0));
    } else {
        printf(" %10s", "-");
    }
}

static void print_heading(const cli_run_profile *p)
{
    char count[CVY_UNIT_TEXT];
    printf("%s: %" PRId64 " rank%s (%s) of %" PRId64 " thread%s, batch %" PRId64 ", %s, %s iterations", p->model,
           p->ranks, p->ranks == 1 ? "" : "s", p->strategy, p->threads, p->threads == 1 ? "" : "s", p->batch,
           p->precision, cvy_print_count(p->iterations, count));
    printf(", predicted on %s\n\n", p->machine);
}

static void print_wholes(const cli_run_profile *p)
{
    char unit[2][CVY_UNIT_TEXT];
    printf("%-40s %11s %11s %10s %10s\n", "", "predicted", "measured", "error", "accuracy");
    printf("%-40s %11s %11s", "iteration", cvy_print_seconds(p->predicted_iteration_s, unit[0]),
           cvy_print_seconds(p->iteration_s, unit[1]));
    print_error(p->predicted_iteration_s, p->iteration_s);
    printf(" %8.1f %%\n", 100.0 * accuracy_of(p->predicted_iteration_s, p->iteration_s));
    printf("%-40s %11s %11s", "memory of a rank, at most", cvy_print_bytes((double)p->predicted_memory_bytes, unit[0]),
           cvy_print_bytes((double)p->peak_memory_bytes, unit[1]));
    print_error((double)p->predicted_memory_bytes, (double)p->peak_memory_bytes);
    printf(" %8.1f %%\n",
           100.0 * accuracy_of((double)p->predicted_memory_bytes, (double)p->peak_memory_bytes));
    bool inside = fabs(p->predicted_iteration_s - p->iteration_s) <= p->predicted_error * p->predicted_iteration_s;
    printf("the prediction says +-%.0f %%: the iteration lies %s that\n", 100.0 * p->predicted_error,
           inside ? "within" : "outside");
}

/* A kind, an iteration: its rank is the one where it took longest; its error as a share of the whole iteration. */
static void print_kind(const cli_run_profile *p, const cvy_profile_row *row)
{
    char unit[2][CVY_UNIT_TEXT];
    double predicted_s = divide(row->predicted_s, (double)p->iterations);
    double measured_s = divide(row->seconds, (double)p->iterations);
    bool known = predicted_s > 0.0;
    printf("%-40.40s %11s %11s", row->name, known ? cvy_print_seconds(predicted_s, unit[0]) : "-",
           cvy_print_seconds(measured_s, unit[1]));
    print_error(known ? predicted_s : 0.0, known ? measured_s : 0.0);
    if (known) {
        printf(" %+8.1f %%", 100.0 * divide(predicted_s - measured_s, p->iteration_s));
    } else {
        printf(" %10s", "-");
    }
    if (row->ranks > 1) {
        printf(" %5d %5.2f", row->rank, divide(row->seconds, row->least_s));
    }
    printf("\n");
}

static void print_sums(const cli_run_profile *p)
{
    char unit[3][CVY_UNIT_TEXT];
    cli_run_sums all = cli_run_sum(p, -1);
    cvy_profile_row total = {.seconds = all.measured_s * (double)p->iterations,
                             .predicted_s = all.predicted_s * (double)p->iterations};
    snprintf(total.name, sizeof total.name, "all that are predicted");
    print_kind(p, &total);
    printf("\nerrors of kinds: %s too much and %s too little an iteration; %s of them cancel\n",
           cvy_print_seconds(all.excess_s, unit[0]), cvy_print_seconds(all.lack_s, unit[1]),
           cvy_print_seconds(2.0 * fmin(all.excess_s, all.lack_s), unit[2]));
    if (all.unpredicted_s > 0.0) {
        printf("kinds without a prediction took %s an iteration\n", cvy_print_seconds(all.unpredicted_s, unit[0]));
    }
}

static void print_run(const cli_run_profile *p, bool ranks)
{
    print_heading(p);
    print_wholes(p);
    printf("\n%-40s %11s %11s %10s %10s", "an iteration's", "predicted", "measured", "error", "of all");
    printf(p->ranks > 1 ? " %5s %5s\n" : "\n", "rank", "x min");
    for (int i = 0; i < p->rows; i++) {
        print_kind(p, &p->row[i]);
    }
    print_sums(p);
    cli_print_run_ranks(p, ranks);
}

/* ---- for scripts ---- */

static json_t *describe_pair(const char *unit, double predicted, double measured)
{
    char names[2][32];
    snprintf(names[0], sizeof names[0], "predicted_%s", unit);
    snprintf(names[1], sizeof names[1], "measured_%s", unit);
    return json_pack("{s:o, s:o, s:o, s:o}", names[0], cli_json_number(predicted), names[1],
                     cli_json_number(measured), "error",
                     measured > 0.0 ? cli_json_number(predicted / measured - 1.0) : json_null(), "accuracy",
                     cli_json_number(accuracy_of(predicted, measured)));
}

static json_t *describe_kind(const cli_run_profile *p, const cvy_profile_row *row)
{
    double iterations = (double)p->iterations;
    return json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:o}", "step", row->name, "rank", row->rank, "ranks", row->ranks,
                     "calls", cli_json_number(divide((double)row->calls, iterations)), "predicted_s",
                     row->predicted_s > 0.0 ? cli_json_number(divide(row->predicted_s, iterations)) : json_null(),
                     "measured_s", cli_json_number(divide(row->seconds, iterations)), "least_s",
                     cli_json_number(divide(row->least_s, iterations)));
}

static cvy_status print_json(const char *run, const cli_run_profile *p)
{
    cli_run_sums all = cli_run_sum(p, -1);
    json_t *kinds = json_array();
    for (int i = 0; i < p->rows; i++) {
        json_array_append_new(kinds, describe_kind(p, &p->row[i]));
    }
    return cli_json_print(json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "run", run, "model",
        p->model, "strategy", p->strategy, "machine", p->machine, "ranks", (json_int_t)p->ranks, "threads_per_rank",
        (json_int_t)p->threads, "global_batch", (json_int_t)p->batch, "precision", p->precision, "iterations",
        (json_int_t)p->iterations, "error_relative", cli_json_number(p->predicted_error), "iteration",
        describe_pair("s", p->predicted_iteration_s, p->iteration_s), "memory",
        describe_pair("bytes", (double)p->predicted_memory_bytes, (double)p->peak_memory_bytes), "steps", kinds,
        "excess_s", cli_json_number(all.excess_s), "lack_s", cli_json_number(all.lack_s), "unpredicted_s",
        cli_json_number(all.unpredicted_s), "by_rank", cli_describe_run_ranks(p)));
}

cvy_status cli_compare_run(const char *run, bool ranks, bool json)
{
    cli_run_profile profile;
    cvy_status status = CVY_OK;
    CVY_TRY(cli_run_profile_load(run, &profile));
    if (!profile.machine || profile.iterations == 0) {
        status = cvy_fail(CVY_ERR_INPUT, profile.machine ? "%s: the run made no iterations"
                                                         : "%s: nothing was predicted of the run; convoy train "
                                                           "--machine M predicts it", run);
    } else if (json) {
        status = print_json(run, &profile);
    } else {
        print_run(&profile, ranks);
    }
    cli_run_profile_clear(&profile);
    return status;
}
