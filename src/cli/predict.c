/*
 * The question of convoy plan about the very strategy that runs: with the run's buckets and axes of norms, and with the
 * machine's habits beyond. The schedules that the oracle prices have the names of those that run, so steps are summed
 * by the same words. All is asked before the run, so that a wrong machine is told at once.
 */
#include "cli/predict.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "cli/planning.h"
#include "cli/ranks.h"

/* NULL: nobody has said any. */
static const char *find_machine(const cli_options *options, const cli_decision *decision)
{
    bool automatic = !options->train.plan && decision->strategy[0];
    const char *otherwise = automatic ? CLI_DEFAULT_MACHINE : decision->file.decisions.machine;
    return options->plan.machine ? options->plan.machine : otherwise;
}

/* ---- the question ---- */

/* The line of convoy plan; @p batch is room for its words. */
static void describe_line(const cli_options *options, const char *machine, char batch[CLI_BATCH_TEXT],
                          cli_options *asked)
{
    if (options->train.plan) { /* the file says all but the machine */
        *asked = cli_options_init;
        asked->plan.plan = options->train.plan;
    } else {
        const char *usual = cli_ranks_count() > 1 ? "data" : "serial";
        cli_decide_question(options, options->strategy ? options->strategy : usual, batch, asked);
        asked->plan.recompute = options->recompute + 1;
    }
    asked->plan.machine = machine;
}

/* What a run does where nobody said how, in place of what the oracle would choose or the machine's software does. */
static void complete_question(int64_t bucket_bytes, cli_problem *problem)
{
    cvy_oracle_options *oracle = &problem->oracle;
    problem->strategy.micro_batches = cvy_max_i64(problem->strategy.micro_batches, 1);
    oracle->norm_axes = oracle->norms_given ? oracle->norm_axes : CVY_AXIS_SPACE;
    oracle->norms_given = true;
    oracle->bucket_bytes = oracle->bucket_bytes >= 0 ? oracle->bucket_bytes : bucket_bytes;
}

/* ---- the answer ---- */

static cli_predicted_kind *find_kind(const cli_prediction *prediction, int stage, const char *name)
{
    int i = 0;
    while (i < prediction->kinds &&
           (prediction->kind[i].stage != stage || strcmp(prediction->kind[i].name, name) != 0)) {
        i++;
    }
    return i < prediction->kinds ? &prediction->kind[i] : NULL;
}

/* There is room for as many kinds as there are steps. */
static void add_stage(const cvy_trace_rank *rank, int stage, cli_prediction *prediction)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < s->steps; i++) {
        char name[CVY_STEP_KIND_TEXT];
        cli_predicted_kind *kind = find_kind(prediction, stage, cvy_step_print_kind(s, &s->step[i], name));
        if (!kind) {
            kind = &prediction->kind[prediction->kinds++];
            kind->stage = stage;
            memcpy(kind->name, name, sizeof kind->name);
        }
        kind->calls += rank->times[i];
        kind->seconds += rank->times[i] * s->step[i].estimate_s;
    }
}

static cvy_status sum_kinds(const cvy_trace *trace, cli_prediction *prediction)
{
    size_t steps = 1;
    for (int i = 0; i < trace->ranks; i++) {
        steps += (size_t)trace->rank[i].plan->schedule[CVY_SCHEDULE_TRAIN].steps;
    }
    prediction->kind = cvy_calloc(steps, sizeof *prediction->kind);
    if (!prediction->kind) {
        return CVY_ERR_MEMORY;
    }
    prediction->mesh = trace->estimate.strategy.mesh;
    prediction->iteration_s = trace->estimate.iteration_s;
    prediction->error_relative = trace->estimate.error_relative;
    prediction->memory_bytes = trace->estimate.total_bytes;
    for (int i = 0; i < trace->ranks; i++) {
        add_stage(&trace->rank[i], i, prediction);
    }
    return CVY_OK;
}

static cvy_status ask_oracle_about(const cli_problem *problem, const int *stages, cli_prediction *prediction)
{
    const cvy_estimate_question question = {.strategy = problem->strategy,
                                            .recompute = problem->oracle.recompute,
                                            .choices = problem->file.decisions.choices,
                                            .stages = stages};
    cvy_oracle *oracle = NULL;
    cvy_trace *trace = NULL;
    CVY_TRY(cvy_oracle_create(problem->model, problem->machine, &problem->oracle, &oracle));
    cvy_status status = cvy_oracle_trace(oracle, &question, &trace);
    if (status == CVY_OK && trace->estimate.feasible) {
        status = sum_kinds(trace, prediction);
    } else if (status == CVY_OK) {
        snprintf(prediction->why_not, sizeof prediction->why_not, "on %.40s: %.200s", problem->machine->name,
                 trace->estimate.why_not);
    }
    cvy_trace_destroy(&trace);
    cvy_oracle_destroy(&oracle);
    return status;
}

/* Where no plan file cuts the stages, a run does so by operations; the oracle would by its own seconds. */
static cvy_status ask_oracle(const cli_problem *problem, cli_prediction *prediction)
{
    const int stages = (int)problem->strategy.mesh.size[CVY_AXIS_STAGE];
    cvy_distribution *distribution = NULL;
    if (problem->file.decisions.stages || stages == 1) {
        return ask_oracle_about(problem, problem->file.decisions.stages, prediction);
    }
    const cvy_distribution_options options = {.batch = problem->batch};
    cvy_status status = cvy_distribution_create(problem->model, &problem->strategy, &options, &distribution);
    if (status == CVY_ERR_INFEASIBLE) { /* the oracle words it */
        cvy_error_clear();
        return ask_oracle_about(problem, NULL, prediction);
    }
    status = status == CVY_OK ? ask_oracle_about(problem, distribution->stages, prediction) : status;
    cvy_distribution_destroy(&distribution);
    return status;
}

cvy_status cli_predict_line(const cli_options *asked, const char *model, int64_t bucket_bytes,
                            cli_prediction *prediction_out)
{
    static const cli_command planning = {.name = "plan"};
    cli_prediction prediction = {.machine = asked->plan.machine};
    cli_problem problem = {.options = NULL};
    cvy_status status = cli_problem_open(&planning, asked, model, 0, &problem);
    if (status == CVY_OK) {
        complete_question(bucket_bytes, &problem);
        status = ask_oracle(&problem, &prediction);
    }
    cli_problem_clear(&problem);
    if (status == CVY_OK) {
        *prediction_out = prediction;
    }
    return status;
}

static cvy_status predict(const cli_options *options, const char *machine, cli_prediction *prediction)
{
    char batch[CLI_BATCH_TEXT];
    cli_options asked;
    describe_line(options, machine, batch, &asked);
    CVY_TRY(cli_predict_line(&asked, options->model, options->train.bucket_bytes, prediction));
    if (prediction->why_not[0]) {
        fprintf(stderr, "nothing is predicted: %s\n", prediction->why_not);
    }
    return CVY_OK;
}

/* What the line names must be right; a machine that a plan file or a default names may be missing here. */
static cvy_status predict_where_possible(const cli_options *options, const char *machine, cli_prediction *prediction)
{
    cvy_status status = predict(options, machine, prediction);
    if (status == CVY_OK || status == CVY_ERR_MEMORY || options->plan.machine) {
        return status;
    }
    fprintf(stderr, "nothing is predicted: %s\n", cvy_error_message());
    return CVY_OK;
}

cvy_status cli_predict(const cli_options *options, const cli_decision *decision, cli_prediction *prediction_out)
{
    const char *machine = find_machine(options, decision);
    *prediction_out = (cli_prediction){.kinds = 0};
    if (!machine) {
        return CVY_OK;
    }
    prediction_out->machine = machine;
    return cli_ranks_agree(cli_ranks_speak() ? predict_where_possible(options, machine, prediction_out) : CVY_OK);
}

void cli_predict_rows(const cli_prediction *prediction, cvy_profile_row *row, int rows)
{
    for (int i = 0; i < rows && prediction->kinds > 0; i++) {
        int64_t stage = cvy_mesh_coordinate(&prediction->mesh, row[i].rank, CVY_AXIS_STAGE);
        const cli_predicted_kind *kind = find_kind(prediction, (int)stage, row[i].name);
        if (kind && kind->calls > 0.0) {
            row[i].predicted_s = (double)row[i].calls * kind->seconds / kind->calls;
        }
    }
}

double cli_predict_rank(const cli_prediction *prediction, const cvy_profile_row *row, int64_t rank)
{
    if (row->predicted_s <= 0.0) {
        return 0.0;
    }
    const cvy_mesh *mesh = &prediction->mesh;
    int64_t stage = cvy_mesh_coordinate(mesh, row->rank, CVY_AXIS_STAGE);
    int64_t own = cvy_mesh_coordinate(mesh, rank, CVY_AXIS_STAGE);
    const cli_predicted_kind *there = find_kind(prediction, (int)stage, row->name);
    const cli_predicted_kind *here = find_kind(prediction, (int)own, row->name);
    return here && there && there->seconds > 0.0 ? row->predicted_s * here->seconds / there->seconds : 0.0;
}

void cli_prediction_clear(cli_prediction *prediction)
{
    cvy_free(prediction->kind);
    *prediction = (cli_prediction){.kinds = 0};
}
