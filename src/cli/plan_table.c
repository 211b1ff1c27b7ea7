/*
 * The ranked table of convoy plan. The pick and data parallelism are always among the rows; whatever is left out is
 * counted, and what is not possible is told with its reason.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/plan_output.h"

enum { STRATEGY_WIDTH = 26, DEFAULT_ROWS = 10 };

static int64_t get_rows(const cli_problem *problem)
{
    const cli_plan_options *o = &problem->options->plan;
    return o->all ? INT64_MAX : o->top ? o->top : DEFAULT_ROWS;
}

/* Whether the i-th candidate is in the table: the best ones, and those that are always shown. */
static bool is_shown(const cli_problem *problem, const cvy_search *search, int i)
{
    return search->candidate[i].estimate.feasible &&
           (i < get_rows(problem) || i == search->pick || i == search->data);
}

static cvy_status find_main_limit(const cli_problem *problem, const cli_answer *answer, const cvy_candidate *candidate,
                                  const char **name_out)
{
    cvy_limit limit[CVY_MAX_LIMITS];
    int count;
    CVY_TRY(cli_answer_limits(problem, answer, candidate, false, limit, &count));
    *name_out = count ? limit[0].name : "-";
    return CVY_OK;
}

static cvy_status print_row(const cli_problem *problem, const cli_answer *answer, int i)
{
    const cvy_search *search = answer->search;
    const cvy_estimate *e = &search->candidate[i].estimate;
    char strategy[CLI_STRATEGY_TEXT], unit[4][CVY_UNIT_TEXT];
    const char *limit;
    CVY_TRY(find_main_limit(problem, answer, &search->candidate[i], &limit));
    printf("%c%c ", i == search->pick ? '*' : ' ', i == search->data ? '=' : ' ');
    cli_print_column(STRATEGY_WIDTH, cli_print_candidate(&search->candidate[i], strategy));
    printf(" %8s +-%3.0f %% %9s %9s%c %9s  %s\n", cvy_print_seconds(e->iteration_s, unit[0]),
           100.0 * e->error_relative, cvy_print_rate(e->images_per_s, unit[1]),
           cvy_print_bytes((double)e->total_bytes, unit[2]), e->over_memory ? '!' : ' ',
           e->exposed_communication_s > 0.0 ? cvy_print_seconds(e->exposed_communication_s, unit[3]) : "-", limit);
    return CVY_OK;
}

static void print_legend(const cli_problem *problem, const cvy_search *search, int left_out)
{
    char unit[CVY_UNIT_TEXT], devices[64] = "what the device has";
    bool over = false, paged = false;
    for (int i = 0; i < search->count; i++) {
        over = over || (is_shown(problem, search, i) && search->candidate[i].estimate.over_memory);
        paged = paged || (is_shown(problem, search, i) && search->candidate[i].estimate.managed_memory);
    }
    if (problem->machine->device.memory_bytes) {
        snprintf(devices, sizeof devices, "the %s of a rank",
                 cvy_print_bytes((double)problem->machine->device.memory_bytes, unit));
    }
    printf("%s= data parallelism\niteration: of the batch; memory: of a rank; comm.: that nothing hides; limit: "
           "the largest\n", search->pick >= 0 ? "* the pick; " : "");
    if (over) {
        printf("! needs more than %s\n", devices);
    }
    if (paged) {
        printf("managed memory: tensors would be paged, figures of such strategies are of low confidence\n");
    }
    if (left_out) {
        printf("%d more (--all)\n", left_out);
    }
}

static cvy_status print_table(const cli_problem *problem, const cli_answer *answer)
{
    const cvy_search *search = answer->search;
    int left_out = 0;
    printf("\n   %-*s %15s %9s %9s  %9s  %s\n", STRATEGY_WIDTH, "strategy", "iteration  ", "images/s", "memory",
           "comm.", "limit");
    for (int i = 0; i < search->count; i++) {
        if (is_shown(problem, search, i)) {
            CVY_TRY(print_row(problem, answer, i));
        } else {
            left_out += search->candidate[i].estimate.feasible;
        }
    }
    print_legend(problem, search, left_out);
    return CVY_OK;
}

/* Time and price of epochs, where samples are given. */
static void print_training(const cli_problem *problem, const cvy_search *search)
{
    char strategy[CLI_STRATEGY_TEXT], unit[4][CVY_UNIT_TEXT];
    const int64_t epochs = problem->options->plan.epochs;
    if (!problem->options->plan.samples) {
        return;
    }
    printf("\n%s samples an epoch, %" PRId64 " epoch%s", cvy_print_count(problem->options->plan.samples, unit[0]),
           epochs, epochs == 1 ? "" : "s");
    if (problem->price_usd_per_h > 0.0) {
        printf(", %g USD/h a device", problem->price_usd_per_h);
    }
    printf("\n   %-*s %12s %14s %14s\n", STRATEGY_WIDTH, "strategy", "epoch", "training", "price");
    for (int i = 0; i < search->count; i++) {
        if (is_shown(problem, search, i)) {
            const cvy_estimate *e = &search->candidate[i].estimate;
            double epoch_s = e->iteration_s * cli_problem_iterations(problem);
            double training_s = epoch_s * (double)epochs;
            printf("%c%c ", i == search->pick ? '*' : ' ', i == search->data ? '=' : ' ');
            cli_print_column(STRATEGY_WIDTH, cli_print_candidate(&search->candidate[i], strategy));
            printf(" %12s %14s %14s\n", cvy_print_seconds(epoch_s, unit[1]), cvy_print_seconds(training_s, unit[2]),
                   cli_print_price(cli_problem_price(problem, problem->ranks, training_s), unit[3]));
        }
    }
}

static void print_impossible(const cli_problem *problem, const cvy_search *search)
{
    enum { INDENT = 3 + STRATEGY_WIDTH + 1 };
    char strategy[CLI_STRATEGY_TEXT];
    int64_t rows = get_rows(problem);
    int shown = 0, left_out = 0;
    for (int i = 0; i < search->count; i++) {
        const cvy_estimate *e = &search->candidate[i].estimate;
        if (e->feasible) {
            continue;
        }
        if (shown >= rows && i != search->data) {
            left_out++;
            continue;
        }
        printf("%s   ", shown++ ? "" : "\nnot possible\n");
        cli_print_column(STRATEGY_WIDTH, cli_print_candidate(&search->candidate[i], strategy));
        printf(" ");
        cli_print_wrapped(INDENT, e->why_not);
    }
    if (left_out) {
        printf("   %d more (--all)\n", left_out);
    }
    if (search->impossible > shown + left_out) {
        printf("   %" PRId64 " meshes in all; one of each kind is listed\n", search->impossible);
    }
}

/* A strategy that was asked for, beside data parallelism. */
static void print_beside_data(const cvy_search *search)
{
    char strategy[CLI_STRATEGY_TEXT], unit[2][CVY_UNIT_TEXT];
    const cvy_estimate *asked = &search->candidate[0].estimate, *data = &search->candidate[search->data].estimate;
    if (search->data > 0 && data->feasible) {
        printf("\n%s takes %.2f times as long as data (%s by %s)\n",
               cli_print_candidate(&search->candidate[0], strategy), asked->iteration_s / data->iteration_s,
               cvy_print_seconds(asked->iteration_s, unit[0]), cvy_print_seconds(data->iteration_s, unit[1]));
    }
}

static cvy_status print_chosen(const cli_problem *problem, const cli_answer *answer, const cvy_candidate *chosen)
{
    char strategy[CLI_STRATEGY_TEXT], why[CVY_WHY_TEXT];
    cvy_limit limit[CVY_MAX_LIMITS];
    int count;
    CVY_TRY(cli_answer_limits(problem, answer, chosen, true, limit, &count));
    if (answer->found) {
        printf("\n");
        cli_print_wrapped(0, cvy_limits_say_why(answer->search, why));
    } else {
        print_beside_data(answer->search);
    }
    printf("\nlimits of %s\n", cli_print_candidate(chosen, strategy));
    cli_print_limits(limit, count);
    return CVY_OK;
}

cvy_status cli_print_plans(const cli_problem *problem, const cli_answer *answer)
{
    char count[CVY_UNIT_TEXT], unit[CVY_UNIT_TEXT];
    const cvy_candidate *chosen = cli_answer_chosen(answer);
    cli_print_setting(problem);
    CVY_TRY(print_table(problem, answer));
    print_training(problem, answer->search);
    if (chosen) {
        CVY_TRY(print_chosen(problem, answer, chosen));
    }
    if (problem->options->plan.closed_form) {
        CVY_TRY(cli_print_closed_forms(problem, answer));
    }
    print_impossible(problem, answer->search);
    if (answer->found) {
        printf("\n%s configurations looked at in %s\n", cvy_print_count(answer->found->configurations, count),
               cvy_print_seconds(answer->found->search_s, unit));
    }
    return CVY_OK;
}
