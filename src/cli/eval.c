/*
 * convoy eval: weights on the test split. A run brings its model, its data and its options, and so does whatever of it
 * is named; weights from elsewhere need a model and data on the line.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/decide.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/signals.h"

static void handle_progress(void *context, const cvy_train_progress *progress)
{
    cli_progress_show(context, progress);
}

static cvy_status print_json(const cli_options *options, const cvy_evaluation *evaluation)
{
    return cli_json_print(json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "model", options->model, "checkpoint", options->checkpoint,
        "data", options->train.data, "samples", (json_int_t)evaluation->samples, "correct",
        (json_int_t)evaluation->correct, "accuracy", cli_json_number(evaluation->accuracy), "loss",
        cli_json_number(evaluation->loss), "seconds", cli_json_number(evaluation->seconds), "images_per_s",
        cli_json_number(evaluation->images_per_s)));
}

static void print_result(const cli_options *options, const cvy_evaluation *evaluation)
{
    char unit[2][CVY_UNIT_TEXT];
    printf("weights         %s\n", options->checkpoint);
    if (isfinite(evaluation->accuracy)) {
        printf("test accuracy   %.2f %% (%s of %s samples)\n", 100 * evaluation->accuracy,
               cvy_print_count(evaluation->correct, unit[0]), cvy_print_count(evaluation->samples, unit[1]));
    } else {
        printf("samples         %s\n", cvy_print_count(evaluation->samples, unit[0]));
    }
    printf("test loss       %.6g\n", evaluation->loss);
    printf("time            %s, %s images/s\n", cvy_print_seconds(evaluation->seconds, unit[0]),
           cvy_print_rate(evaluation->images_per_s, unit[1]));
}

static cvy_status evaluate_model(const cli_options *options, const cvy_model *model)
{
    cli_progress progress;
    const cvy_train_observer observer = {.context = &progress, .progress = handle_progress};
    cvy_evaluation evaluation = {0};
    cli_progress_init(options->quiet, &progress);
    cvy_status status = cli_ranks_unwatch(CVY_OK);
    if (status == CVY_OK) {
        status = cvy_evaluate(model, options->checkpoint, &options->train, &observer, &evaluation);
    }
    cli_progress_clear(&progress);
    if (status == CVY_OK && options->json) {
        status = print_json(options, &evaluation);
    } else if (status == CVY_OK) {
        print_result(options, &evaluation);
    }
    return status;
}

/* The run of RUN, RUN/checkpoints, RUN/checkpoints/STEP or a safetensors file in there; NULL: none. free() */
static char *find_run(const char *path)
{
    enum { MOST_LEVELS = 4 };
    const char *dot = strrchr(path, '.');
    bool may_be = cvy_folder_exists(path) || (dot && strcmp(dot, ".safetensors") == 0);
    char *run = may_be ? realpath(path, NULL) : NULL;
    for (int level = 0; run && *run && level < MOST_LEVELS; level++) {
        if (cli_is_run(run)) {
            return run;
        }
        *strrchr(run, '/') = '\0'; /* a whole path: at the root it becomes empty */
    }
    free(run);
    return NULL;
}

/* The operand is of a run, whose options lie under the line. */
static cvy_status load_run(const char *run, const cli_command *command, int argc, char **argv, cli_options *options,
                           cvy_parsed_options parsed[2])
{
    const char *weights = parsed[0].operand[0];
    *options = cli_options_init;
    CVY_TRY(cli_load_run(run, options, &parsed[1]));
    cvy_parsed_options_clear(&parsed[0]);
    CVY_TRY(cli_parse(command, argc, argv, options, &parsed[0]));
    if (!options->checkpoint) {
        options->checkpoint = weights;
    }
    return CVY_OK;
}

/* From the line to whole options. */
static cvy_status read_line(const cli_command *command, int argc, char **argv, cli_options *options,
                            cvy_parsed_options parsed[2])
{
    CVY_TRY(cli_parse(command, argc, argv, options, &parsed[0]));
    if (parsed[0].help) {
        return CVY_OK;
    }
    char *run = parsed[0].operands ? find_run(parsed[0].operand[0]) : NULL;
    cvy_status status = run ? load_run(run, command, argc, argv, options, parsed) : CVY_OK;
    if (!run && parsed[0].operands) {
        options->model = parsed[0].operand[0];
    }
    free(run);
    CVY_TRY(status);
    CVY_REQUIRE(options->model, CVY_ERR_INPUT,
                "convoy eval needs a run, or a model with weights and data; see convoy eval --help");
    CVY_REQUIRE(options->checkpoint, CVY_ERR_INPUT,
                "convoy eval needs weights: %s holds no config.yaml of a run, and no --checkpoint is given",
                options->model);
    CVY_REQUIRE(options->train.data, CVY_ERR_INPUT,
                "convoy eval needs data: --data with a folder, or digits, random or cosmo");
    return CVY_OK;
}

static cvy_status run_eval(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed[2] = {{.operands = 0}};
    cli_decision decision = {.strategy = ""};
    cvy_model *model = NULL;
    cvy_status status = read_line(command, argc, argv, &options, parsed);
    if (!parsed[0].help) {
        status = status == CVY_OK ? cvy_model_open(options.model, &model) : status;
        status = cli_decide_strategy(status, model, &options, &decision);
    }
    if (status == CVY_OK && !parsed[0].help) {
        cvy_memory_keep();
        options.train.stop = cli_catch_signals();
        status = evaluate_model(&options, model);
    }
    cvy_model_destroy(&model);
    cli_decision_clear(&decision);
    cvy_parsed_options_clear(&parsed[0]);
    cvy_parsed_options_clear(&parsed[1]);
    return status;
}

const cli_command cli_eval = {
    .name = "eval",
    .operands = "RUN|MODEL",
    .usage = "RUN\n"
             "MODEL --checkpoint PATH --data DIR|NAME",
    .max_operands = 1,
    .rows = CLI_EVAL,
    .summary = "Evaluate a run, or weights from a file, on the test samples",
    .examples = "  convoy eval run\n"
                "  convoy eval run/checkpoints/step-00001000\n"
                "  convoy eval lenet5 --checkpoint lenet5.safetensors --data mnist/ --json\n",
    .on_all_ranks = true,
    .run = run_eval,
};
