/*
 * convoy verify: a strategy against the serial run, on the ranks that it is meant for. The answer is the exit code; the
 * table says which layers are furthest off.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/decide.h"
#include "cli/json_output.h"
#include "cli/progress.h"

enum { SHORT_ROWS = 10 };

static json_t *list_layers(const cvy_verification *v)
{
    json_t *list = json_array();
    for (int i = 0; i < v->layers; i++) {
        const cvy_layer_difference *row = &v->layer[i];
        json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o}", "layer", row->layer, "gradient_relative",
                                              cli_json_number(row->gradient_relative), "weight_relative",
                                              cli_json_number(row->weight_relative), "share",
                                              cli_json_number(row->share)));
    }
    return list;
}

/* The first keys are a contract with scripts. */
static cvy_status print_json(const cli_options *options, const cvy_verification *v)
{
    return cli_json_print(json_pack(
        "{s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:b, s:b, s:s, s:I, s:s, s:i, s:b, s:s?, s:o}", "strategy", v->strategy,
        "ranks", v->ranks, "steps", (json_int_t)v->steps, "loss_relative", cli_json_number(v->loss_relative),
        "gradient_relative", cli_json_number(v->gradient_relative), "weight_relative",
        cli_json_number(v->weight_relative), "noise", cli_json_number(v->noise), "replicas_identical",
        v->replicas_identical, "pass", v->pass, "model", options->model, "global_batch", (json_int_t)v->batch,
        "precision", v->double_precision ? "fp64" : "fp32", "shakes", v->shakes, "weak", v->weak, "why",
        v->pass ? NULL : v->why, "layers", list_layers(v)));
}

static void print_rows(const cvy_verification *v, bool all)
{
    int shown = all || v->layers <= SHORT_ROWS ? v->layers : SHORT_ROWS;
    printf("%-36s %10s %10s %12s\n", "layer, worst first", "gradients", "weights", "of allowed");
    for (int i = 0; i < shown; i++) {
        const cvy_layer_difference *row = &v->layer[i];
        printf("%-36s %10.2g %10.2g %10.3g %%\n", row->layer, row->gradient_relative, row->weight_relative,
               100.0 * row->share);
    }
    if (shown < v->layers) {
        printf("%d more layers (--all)\n", v->layers - shown);
    }
}

static void print_result(const cli_options *options, const cvy_verification *v)
{
    printf("%s: %s on %d rank%s against the serial run, batch %" PRId64 ", %" PRId64 " step%s, %s\n\n", options->model,
           v->strategy, v->ranks, v->ranks == 1 ? "" : "s", v->batch, v->steps, v->steps == 1 ? "" : "s",
           v->double_precision ? "fp64" : "fp32");
    print_rows(v, options->plan.all);
    printf("\nlosses          off by %.2g at most\n", v->loss_relative);
    printf("gradients       off by %.2g of a tensor's largest element at most, in the first step\n",
           v->gradient_relative);
    printf("weights         off by %.2g, after the last\n", v->weight_relative);
    if (v->shakes > 0) {
        printf("noise           %.2g of a tensor's norm: the serial run, inputs moved in the last place, %d time%s\n",
               v->noise, v->shakes, v->shakes == 1 ? "" : "s");
    }
    if (v->ranks > 1) {
        printf("replicas        %s on all ranks\n", v->replicas_identical ? "bit-identical" : "not identical");
    }
    printf("verdict         %s\n", v->pass ? "passes" : "fails");
}

/* A pass that says little is not to be taken for a proof. */
static void warn_of_noise(cli_progress *progress, const cvy_verification *v)
{
    char line[200];
    if (v->weak && v->pass) {
        snprintf(line, sizeof line, "the serial run by itself is off by %.2g of a tensor's norm, and the strategy may "
                 "be by ten times as much: that it passes proves little; --double has no noise", v->noise);
        cli_progress_warn(progress, line);
    }
}

static void handle_setup(void *context, const char *line) { cli_progress_log(context, "%s", line); }

static cvy_status verify_model(const cli_options *options, const cvy_model *model)
{
    cli_progress progress;
    cvy_verification v = {.ranks = 0};
    const cvy_train_observer observer = {.context = &progress, .setup = handle_setup};
    cvy_memory_keep();
    cli_progress_init(options->quiet || options->json, &progress);
    cvy_status status = cvy_verify(model, &options->train, &options->verify, &observer, &v);
    if (status == CVY_OK && options->json) {
        status = print_json(options, &v);
    } else if (status == CVY_OK) {
        print_result(options, &v);
    }
    if (status == CVY_OK) {
        warn_of_noise(&progress, &v);
    }
    if (status == CVY_OK && !v.pass) {
        status = cvy_fail(CVY_ERR_DIFFERS, "strategy %s on %d rank%s is not the serial run: %s", v.strategy, v.ranks,
                          v.ranks == 1 ? "" : "s", v.why);
    }
    cvy_verification_clear(&v);
    return status;
}

static cvy_status run_verify(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed = {.operands = 0};
    cli_decision decision = {.strategy = ""};
    cvy_model *model = NULL;
    cvy_status status = cli_decide_line(command, argc, argv, &options, &parsed, &decision);
    if (!parsed.help) {
        status = status == CVY_OK ? cvy_model_open(options.model, &model) : status;
        status = cli_decide_strategy(status, model, &options, &decision);
    }
    if (status == CVY_OK && !parsed.help) {
        status = verify_model(&options, model);
    }
    cvy_model_destroy(&model);
    cli_decision_clear(&decision);
    cvy_parsed_options_clear(&parsed);
    return status;
}

const cli_command cli_verify = {
    .name = "verify",
    .operands = "MODEL",
    .usage = "MODEL --strategy STRATEGY\n"
             "--plan FILE",
    .max_operands = 1,
    .rows = CLI_VERIFY,
    .on_all_ranks = true,
    .summary = "Hold a strategy against the serial run",
    .examples = "  mpiexec -n 4 convoy verify resnet18:size=64 --strategy sample=2,height=2\n"
                "  mpiexec -n 2 convoy verify lenet5 --strategy filter --double --json\n",
    .run = run_verify,
};
