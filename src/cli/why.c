/*
 * convoy why: one strategy, layer by layer: how it is cut, what it sends, what it takes, and why it is not cut further.
 * Figures are sums over the steps of the schedule that would run, so they add up to what convoy plan says.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/plan_output.h"
#include "cli/why.h"

static void print_summary(const cvy_estimate *e)
{
    char unit[4][CVY_UNIT_TEXT];
    printf("iteration %s +- %.0f %%, %s images/s; a rank does %s, sends %s\n",
           cvy_print_seconds(e->iteration_s, unit[0]), 100.0 * e->error_relative,
           cvy_print_rate(e->images_per_s, unit[1]), cvy_print_si(e->flop, "FLOP", unit[2]),
           cvy_print_bytes(e->sent_bytes, unit[3]));
    if (e->managed_memory) {
        printf("managed memory: tensors would be paged, these figures are of low confidence\n");
    }
}

static void print_share(const char *name, const char *value, double share)
{
    printf("  %-18s %10s %6.1f %%\n", name, value, 100.0 * share);
}

static void print_times(const cvy_estimate *e)
{
    char unit[CVY_UNIT_TEXT];
    printf("\ntime of an iteration; of communication, what computation does not hide\n");
    for (int i = 0; i < CVY_TIME_PARTS; i++) {
        if (e->part_s[i] > 0.0) {
            print_share(cvy_time_part_name(i), cvy_print_seconds(e->part_s[i], unit), e->part_s[i] / e->iteration_s);
        }
    }
    if (e->hidden_communication_s > 0.0) {
        printf("  hidden communication: %s\n", cvy_print_seconds(e->hidden_communication_s, unit));
    }
}

static void print_memory(const cvy_estimate *e)
{
    char unit[2][CVY_UNIT_TEXT];
    printf("\nmemory of a rank at its peak\n");
    for (int i = 0; i < CVY_MEMORY_PARTS; i++) {
        if (e->memory_bytes[i] > 0) {
            print_share(cvy_memory_part_name(i), cvy_print_bytes((double)e->memory_bytes[i], unit[0]),
                        (double)e->memory_bytes[i] / (double)e->total_bytes);
        }
    }
    printf("  %-18s %10s", "total", cvy_print_bytes((double)e->total_bytes, unit[0]));
    if (e->capacity_bytes > 0) {
        printf(" of %s%s", cvy_print_bytes((double)e->capacity_bytes, unit[1]),
               e->over_memory ? ": it does not fit" : "");
    }
    printf("\n");
}

static cvy_status print_why(const cli_problem *problem, const cvy_trace *trace, const cvy_limit *limit, int limits)
{
    const cvy_estimate *e = &trace->estimate;
    char strategy[CLI_STRATEGY_TEXT];
    cli_print_setting(problem);
    printf("strategy %s\n", cli_print_strategy(&e->strategy, e->recompute, strategy));
    print_summary(e);
    CVY_TRY(cli_print_layers(trace));
    print_times(e);
    print_memory(e);
    printf("\nlimits\n");
    cli_print_limits(limit, limits);
    return CVY_OK;
}

static cvy_status print_json(const cli_problem *problem, const cvy_trace *trace, const cvy_limit *limit, int limits)
{
    json_t *layers = NULL;
    CVY_TRY(cli_describe_layers(trace, &layers));
    return cli_json_print(json_pack(
        "{s:i, s:s, s:s, s:I, s:I, s:s, s:o, s:o}", "schema", 1, "model", problem->model_text, "machine",
        problem->machine_text, "ranks", (json_int_t)problem->ranks, "global_batch", (json_int_t)problem->batch,
        "precision", cvy_precision_name(problem->oracle.precision), "plan",
        cli_describe_estimate(&trace->estimate, limit, limits), "layers", layers));
}

static cvy_status explain(const cli_problem *problem, const cli_answer *answer)
{
    cvy_trace *trace = NULL;
    cvy_limit limit[CVY_MAX_LIMITS];
    int limits;
    CVY_TRY(cli_answer_check(problem, answer));
    const cvy_candidate *chosen = cli_answer_chosen(answer);
    const cvy_estimate_question question = cli_answer_question(problem, chosen);
    CVY_TRY(cli_answer_limits(problem, answer, chosen, true, limit, &limits));
    CVY_TRY(cvy_oracle_trace(answer->oracle, &question, &trace));
    cvy_status status = problem->options->json ? print_json(problem, trace, limit, limits)
                                               : print_why(problem, trace, limit, limits);
    cvy_trace_destroy(&trace);
    return status == CVY_OK ? cli_write_plan_files(problem, answer, chosen) : status;
}

static cvy_status answer(cli_problem *problem)
{
    cli_answer answer = {.oracle = NULL};
    cvy_status status = cli_answer_find(problem, 0, &answer);
    status = status == CVY_OK ? explain(problem, &answer) : status;
    cli_answer_clear(&answer);
    return status;
}

static cvy_status run_why(const cli_command *command, int argc, char **argv)
{
    return cli_problem_run(command, argc, argv, 0, answer);
}

const cli_command cli_why = {
    .name = "why",
    .operands = "MODEL",
    .usage = "MODEL --machine MACHINE --strategy STRATEGY\n"
             "--plan FILE",
    .max_operands = 1,
    .rows = CLI_WHY,
    .summary = "Explain a strategy layer by layer",
    .examples = "  convoy why resnet50 --machine abci --ranks 64 --strategy data\n"
                "  convoy why vgg16 --machine abci --strategy sample=4,channel=4\n",
    .run = run_why,
};
