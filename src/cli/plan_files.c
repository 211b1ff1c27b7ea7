/* What was decided as a plan file, and the predicted iteration as a Chrome trace: both from the plans of the ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/plan_output.h"

/* ---- the trace ---- */

static void add_name(json_t *events, const char *what, int stage, int stream, const char *name)
{
    json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", what, "ph", "M", "pid", stage,
                                            "tid", stream, "args", "name", name));
}

/* A step as an event; microseconds, as the format has them. */
static void add_step(json_t *events, const cvy_model *model, const cvy_trace_rank *rank, int stage, int index)
{
    const cvy_schedule *schedule = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_step *step = &schedule->step[index];
    char name[CVY_MAX_NAME + 80];
    const char *layer = step->layer >= 0 ? model->layer[step->layer].name : "";
    const char *what = cvy_phase_name(step->phase);
    if (step->op >= 0) {
        const cvy_op *op = &schedule->op[step->op];
        snprintf(name, sizeof name, "%s%s%s %s", layer, *layer ? " " : "", cvy_op_kind_name(op->kind),
                 cvy_op_pass_name(op->pass));
    } else {
        snprintf(name, sizeof name, "%s%s%s", layer, *layer ? " " : "", what);
    }
    json_t *arguments = json_pack("{s:i, s:o}", "micro_batch", step->micro_batch, "error",
                                  cli_json_number(step->estimate_error));
    if (step->exchange >= 0) {
        json_object_set_new(arguments, "bytes", json_integer((json_int_t)schedule->exchange[step->exchange].bytes));
    }
    json_array_append_new(events, json_pack("{s:s, s:s, s:s, s:o, s:o, s:i, s:i, s:o}", "name", name, "cat", what, "ph",
                                            "X", "ts", cli_json_number(1e6 * rank->start_s[index]), "dur",
                                            cli_json_number(1e6 * step->estimate_s), "pid", stage, "tid", step->stream,
                                            "args", arguments));
}

static void add_rank(json_t *events, const cvy_trace_rank *rank, int stage, int stages)
{
    const cvy_schedule *schedule = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    char name[64];
    bool used[CVY_STREAM_COUNT] = {false};
    if (stages > 1) {
        snprintf(name, sizeof name, "stage %d: rank %lld", stage, (long long)rank->rank);
    } else {
        snprintf(name, sizeof name, "rank %lld", (long long)rank->rank);
    }
    add_name(events, "process_name", stage, 0, name);
    for (int i = 0; i < schedule->steps; i++) {
        used[schedule->step[i].stream] = true;
        add_step(events, rank->plan->model, rank, stage, i);
    }
    for (int stream = 0; stream < CVY_STREAM_COUNT; stream++) {
        if (used[stream]) {
            add_name(events, "thread_name", stage, stream, cvy_stream_name((cvy_stream)stream));
        }
    }
}

cvy_status cli_write_trace(const cvy_trace *trace, const char *path)
{
    json_t *events = json_array();
    for (int i = 0; i < trace->ranks; i++) {
        add_rank(events, &trace->rank[i], i, trace->ranks);
    }
    json_t *json = json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events);
    CVY_REQUIRE(json, CVY_ERR_MEMORY, "no memory for the timeline");
    cvy_status status = cvy_json_save(path, json, CVY_ERR_IO);
    json_decref(json);
    return status;
}

/* ---- the plan file ---- */

/* The whole path of a file, so that the plan can be read from another folder; NULL for a name. */
static char *resolve_path(const char *text)
{
    return strpbrk(text, "/.") && cvy_file_exists(text) ? realpath(text, NULL) : NULL;
}

/* Formats stay open: a plan by rule has asked no kernel about them, and a run asks the clock. */
static cvy_status save_plan(const cli_problem *problem, const cvy_estimate_question *question, const cvy_trace *trace)
{
    char *model = resolve_path(problem->model_text), *machine = resolve_path(problem->machine_text);
    cvy_plan_decisions decided = {.model = model ? model : problem->model_text,
                                  .machine = machine ? machine : problem->machine_text,
                                  .strategy = trace->estimate.strategy,
                                  .batch = problem->batch,
                                  .precision = problem->oracle.precision,
                                  .optimizer = problem->oracle.optimizer,
                                  .recompute = question->recompute,
                                  .shard_optimizer = problem->oracle.shard_optimizer,
                                  .norm_axes = problem->oracle.norm_axes,
                                  .norms_given = problem->oracle.norms_given,
                                  .bucket_bytes = problem->oracle.bucket_bytes,
                                  .choices = question->choices};
    cvy_status status = cvy_plan_file_save(&decided, trace->distribution, problem->options->plan.save);
    free(model);
    free(machine);
    return status;
}

cvy_status cli_write_plan_files(const cli_problem *problem, const cli_answer *answer, const cvy_candidate *chosen)
{
    const char *timeline = problem->options->train.timeline, *save = problem->options->plan.save;
    const cvy_estimate_question question = cli_answer_question(problem, chosen);
    cvy_trace *trace = NULL;
    cvy_status status = CVY_OK;
    if (!timeline && !save) {
        return CVY_OK;
    }
    CVY_TRY(cvy_oracle_trace(answer->oracle, &question, &trace));
    if (save) {
        CVY_TRY_GOTO(status, done, save_plan(problem, &question, trace));
    }
    if (timeline) {
        status = cli_write_trace(trace, timeline);
    }
done:
    cvy_trace_destroy(&trace);
    return status;
}
