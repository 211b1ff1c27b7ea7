/* Labels stand in one column, figures carry their units; what does not apply is left out. */
#include "cli/train_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/topology.h"
#include "cli/json_output.h"
#include "cli/profile_table.h"
#include "convoy/version.h"

enum { SHORT_ROWS = 5 };

static void print_memory(cli_progress *progress, const cvy_train_start *start)
{
    char unit[CVY_UNIT_TEXT];
    cvy_text roles = {0};
    for (int i = 0; i < 8 && start->memory_names && start->memory_names[i]; i++) {
        if (start->memory_by_role[i] > 0) {
            cvy_text_add(&roles, "%s%s %s", roles.length ? ", " : "", start->memory_names[i],
                         cvy_print_bytes((double)start->memory_by_role[i], unit));
        }
    }
    bool kept = strcmp(start->recompute, "none") == 0;
    cli_progress_log(progress, "  memory    %s of tensors%s%s", cvy_print_bytes((double)start->tensor_bytes, unit),
                     kept ? "" : ", recompute ", kept ? "" : start->recompute);
    if (roles.data) {
        cli_progress_log(progress, "            %s", roles.data);
    }
    cvy_text_destroy(&roles);
}

/* A launcher that binds a rank to one core is the usual cause of a training that is slow for no visible reason. */
static void warn_of_binding(cli_progress *progress, const cvy_train_start *start)
{
    char line[256];
    cvy_topology topology;
    cvy_topology_get(&topology);
    if (start->cores < topology.cores_machine) {
        snprintf(line, sizeof line, "bound to %d of this machine's %d cores; to use them all, see 'convoy doctor'",
                 start->cores, topology.cores_machine);
        cli_progress_warn(progress, line);
    }
    if (start->threads > start->cores) {
        snprintf(line, sizeof line, "%d threads share %d cores: steps will be slower than with --threads %d",
                 start->threads, start->cores, start->cores);
        cli_progress_warn(progress, line);
    }
}

/* Lines that stand below each other behind one label. */
static void print_places(cli_progress *progress, const char *places)
{
    const char *label = "ranks";
    for (const char *line = places; line; label = "") {
        int length = (int)strcspn(line, "\n");
        cli_progress_log(progress, "  %-9s %.*s", label, length, line);
        line = line[length] ? line + length + 1 : NULL;
    }
}

void cli_print_start(cli_progress *progress, const cvy_train_start *start)
{
    char count[2][CVY_UNIT_TEXT], parts[48] = "", epochs[48] = "", ranks[320] = "";
    if (start->micro_batches > 1) {
        snprintf(parts, sizeof parts, " in %d parts", start->micro_batches);
    }
    if (start->epochs > 0) {
        snprintf(epochs, sizeof epochs, ", %" PRId64 " epoch%s", start->epochs, start->epochs == 1 ? "" : "s");
    }
    if (start->ranks > 1) {
        snprintf(ranks, sizeof ranks, " over %d ranks (%.255s)", start->ranks, start->strategy);
    }
    cli_progress_log(progress, "convoy %s", CVY_VERSION);
    cli_progress_log(progress, "  model     %s, %s parameters", start->model,
                     cvy_print_count(start->parameters, count[0]));
    cli_progress_log(progress, "  data      %s, %s training and %s test samples", start->data,
                     cvy_print_count(start->train_samples, count[0]), cvy_print_count(start->test_samples, count[1]));
    cli_progress_log(progress, "  training  batch %s%s%s%s, %s steps, learning rate %.6g",
                     cvy_print_count(start->batch, count[0]), ranks, parts, epochs,
                     cvy_print_count(start->steps_total, count[1]), start->learning_rate);
    cli_progress_log(progress, "  compute   backend %s, %d thread%s on %d core%s, %d format change%s an iteration",
                     start->backend, start->threads, start->threads == 1 ? "" : "s", start->cores,
                     start->cores == 1 ? "" : "s", start->format_changes, start->format_changes == 1 ? "" : "s");
    print_places(progress, start->places);
    print_memory(progress, start);
    if (start->resumed_from) {
        cli_progress_log(progress, "  resumed   %s, at step %s", start->resumed_from,
                         cvy_print_count(start->first_step, count[0]));
    }
    if (start->checkpoints_skipped > 0) {
        char line[96];
        snprintf(line, sizeof line, "%d damaged checkpoint%s passed over", start->checkpoints_skipped,
                 start->checkpoints_skipped == 1 ? "" : "s");
        cli_progress_warn(progress, line);
    }
    if (!start->places) { /* else the library has warned */
        warn_of_binding(progress, start);
    }
}

static void print_quality(const cvy_train_result *result)
{
    if (isfinite(result->validation_accuracy)) {
        printf("test accuracy   %.2f %%", 100 * result->validation_accuracy);
        if (isfinite(result->best_validation_accuracy)) {
            printf(" (best %.2f %%)", 100 * result->best_validation_accuracy);
        }
        printf("\n");
    }
    if (isfinite(result->train_accuracy)) {
        printf("train accuracy  %.2f %%\n", 100 * result->train_accuracy);
    }
    if (isfinite(result->loss)) { /* an epoch was finished */
        printf("train loss      %.4g\n", result->loss);
    }
    if (isfinite(result->validation_loss)) {
        printf("test loss       %.4g\n", result->validation_loss);
    }
}

static void print_next(const cli_options *options, const cvy_train_result *result, bool preempted)
{
    const char *run = options->train.out;
    if (!run) {
        printf("checkpoint      none: --out RUN keeps one\n");
        return;
    }
    printf("checkpoint      %s\n", result->checkpoint[0] ? result->checkpoint : "none");
    printf("next            convoy %s %s\n", preempted ? "train --resume" : "eval", run);
}

/* One line; convoy compare has more of it. */
static void print_prediction(const cli_prediction *prediction, const cvy_train_result *result)
{
    char unit[2][CVY_UNIT_TEXT];
    if (prediction->iteration_s > 0 && result->iterations > 0) {
        printf("predicted       %s an iteration on %s, measured %s (%+.1f %%)\n",
               cvy_print_seconds(prediction->iteration_s, unit[0]), prediction->machine,
               cvy_print_seconds(result->iteration_s, unit[1]),
               100 * (prediction->iteration_s / result->iteration_s - 1));
    }
}

void cli_print_result(const cli_options *options, const cli_prediction *prediction, const cvy_train_result *result,
                      bool preempted)
{
    char unit[2][CVY_UNIT_TEXT];
    if (!preempted && result->images_per_s <= 0 && !isfinite(result->loss)) { /* a resumed run that was at its end */
        printf("nothing to do   at step %" PRId64 " already; more --epochs or --steps take it further\n", result->step);
        printf("next            convoy eval %s\n", options->train.out);
        return;
    }
    if (preempted) {
        printf("stopped         at step %" PRId64 ", before the end\n", result->step);
    }
    print_quality(result);
    printf("time            %s, %s images/s, %.1f %% of it waiting for data\n",
           cvy_print_seconds(result->seconds, unit[0]), cvy_print_rate(result->images_per_s, unit[1]),
           100 * result->data_wait_share);
    print_prediction(prediction, result);
    printf("tensor memory   %s planned, %s measured\n", cvy_print_bytes((double)result->tensor_plan_bytes, unit[0]),
           cvy_print_bytes((double)result->tensor_peak_bytes, unit[1]));
    if (options->log_view) {
        printf("allocations     %" PRId64 " in the loop over steps\n", result->loop_allocations);
    }
    print_next(options, result, preempted);
    if (result->rows > 0) {
        printf("\n");
        cli_print_profile(result->row, result->rows, result->seconds, options->log_view ? 0 : SHORT_ROWS);
    }
}

cvy_status cli_print_result_json(const cli_options *options, const cvy_train_result *result, bool preempted)
{
    json_t *object = json_pack(
        "{s:s, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:s?, s:s?}", "model",
        options->model, "preempted", preempted, "step", (json_int_t)result->step, "epoch", (json_int_t)result->epoch,
        "loss", cli_json_number(result->loss), "train_accuracy", cli_json_number(result->train_accuracy),
        "validation_loss", cli_json_number(result->validation_loss), "validation_accuracy",
        cli_json_number(result->validation_accuracy), "best_validation_accuracy",
        cli_json_number(result->best_validation_accuracy), "seconds", cli_json_number(result->seconds),
        "images_per_s", cli_json_number(result->images_per_s), "data_wait_share",
        cli_json_number(result->data_wait_share), "tensor_plan_bytes", (json_int_t)result->tensor_plan_bytes,
        "tensor_peak_bytes", (json_int_t)result->tensor_peak_bytes, "loop_allocations",
        (json_int_t)result->loop_allocations, "run", options->train.out, "checkpoint",
        result->checkpoint[0] ? result->checkpoint : NULL);
    if (object && options->log_view) {
        json_object_set_new(object, "profile", cli_json_profile(result->row, result->rows));
    }
    return cli_json_print(object);
}
