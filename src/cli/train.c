/* convoy train: options, a model, a call of the library, and what people see meanwhile. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/option_value.h"
#include "base/text.h"
#include "cli/decide.h"
#include "cli/predict.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/run_profile.h"
#include "cli/signals.h"
#include "cli/train_report.h"

/* What the observer's functions share. */
typedef struct training {
    const cli_options *options;
    cli_progress progress;
    int64_t epochs;
    cvy_status saved; /* of config.yaml */
} training;

/* The run is known to be sound now: its folder gets its configuration before the first step. */
static void handle_start(void *context, const cvy_train_start *start)
{
    training *t = context;
    t->epochs = start->epochs;
    cli_print_start(&t->progress, start);
    if (t->options->train.out && cli_ranks_speak()) {
        t->saved = cli_save_run(t->options->train.out, t->options);
        if (t->saved != CVY_OK) {
            cli_progress_warn(&t->progress, cvy_error_message());
            cli_request_stop();
        }
    }
}

static void handle_setup(void *context, const char *line)
{
    training *t = context;
    cli_progress_log(&t->progress, "%s", line);
}

static void handle_progress(void *context, const cvy_train_progress *progress)
{
    training *t = context;
    cli_progress_show(&t->progress, progress);
}

static void handle_epoch(void *context, const cvy_epoch_result *result)
{
    training *t = context;
    cli_progress_epoch(&t->progress, result, t->epochs);
}

static void handle_checkpoint(void *context, const char *path, int64_t step)
{
    training *t = context;
    cli_progress_checkpoint(&t->progress, path, step);
}

static void handle_warning(void *context, const char *line)
{
    training *t = context;
    cli_progress_warn(&t->progress, line);
}

/* What is predicted of every row on every rank that has steps of its kind. */
static cvy_status predict_ranks(const cvy_train_result *result, const cli_prediction *prediction,
                                double **predicted_out)
{
    double *predicted_s = cvy_calloc((size_t)result->ranks * (size_t)result->rows + 1, sizeof *predicted_s);
    if (!predicted_s) {
        return CVY_ERR_MEMORY;
    }
    for (int rank = 0; rank < result->ranks; rank++) {
        for (int i = 0; i < result->rows; i++) {
            bool has = result->rank[rank].seconds[i] > 0.0;
            predicted_s[(size_t)rank * (size_t)result->rows + (size_t)i] =
                has ? cli_predict_rank(prediction, &result->row[i], rank) : 0.0;
        }
    }
    *predicted_out = predicted_s;
    return CVY_OK;
}

/* What the run took and what was predicted go into its folder, for convoy compare. */
static cvy_status save_profile(const cli_options *options, const cvy_train_result *result,
                               const cli_prediction *prediction)
{
    const char *usual = cli_ranks_count() > 1 ? "data" : "serial";
    double *predicted_s = NULL;
    if (!options->train.out || !cli_ranks_speak() || result->iterations == 0) {
        return CVY_OK;
    }
    CVY_TRY(predict_ranks(result, prediction, &predicted_s));
    const cli_run_profile profile = {.model = options->model,
                                     .strategy = options->strategy ? options->strategy : usual,
                                     .precision = options->precision == CLI_FP64 ? "fp64" : "fp32",
                                     .machine = prediction->iteration_s > 0.0 ? prediction->machine : NULL,
                                     .ranks = cli_ranks_count(),
                                     .threads = result->threads,
                                     .batch = options->train.batch,
                                     .iterations = result->iterations,
                                     .iteration_s = result->iteration_s,
                                     .peak_memory_bytes = result->peak_memory_bytes,
                                     .predicted_iteration_s = prediction->iteration_s,
                                     .predicted_error = prediction->error_relative,
                                     .predicted_memory_bytes = prediction->memory_bytes,
                                     .rows = result->rows,
                                     .row = result->row,
                                     .told = result->ranks,
                                     .rank = result->rank,
                                     .rank_predicted_s = predicted_s};
    cvy_status status = cli_run_profile_save(options->train.out, &profile);
    cvy_free(predicted_s);
    return status;
}

static cvy_status train_model(const cli_options *options, const cvy_model *model, const cli_prediction *prediction)
{
    training t = {.options = options};
    const cvy_train_observer observer = {.context = &t,
                                         .setup = handle_setup,
                                         .start = handle_start,
                                         .progress = handle_progress,
                                         .epoch = handle_epoch,
                                         .checkpoint = handle_checkpoint,
                                         .warning = handle_warning};
    cvy_train_result result = {0};
    cli_progress_init(options->quiet, &t.progress);
    cvy_status status = cli_ranks_unwatch(CVY_OK);
    status = status == CVY_OK ? cvy_train(model, &options->train, &observer, &result) : status;
    cli_progress_clear(&t.progress);
    if (status == CVY_PREEMPTED && t.saved != CVY_OK) {
        status = cvy_fail(t.saved, "%s: the configuration of the run could not be written", options->train.out);
    }
    bool preempted = status == CVY_PREEMPTED;
    if (status == CVY_OK || preempted) {
        cvy_status printed = CVY_OK;
        cli_predict_rows(prediction, result.row, result.rows);
        cvy_status kept = save_profile(options, &result, prediction);
        if (options->json) {
            printed = cli_print_result_json(options, &result, preempted);
        } else {
            cli_print_result(options, prediction, &result, preempted);
        }
        status = printed == CVY_OK ? status : printed;
        status = kept == CVY_OK ? status : kept;
    }
    cvy_train_result_clear(&result);
    return status;
}

/*
 * Options that the place where a run stands has no meaning under others. What the data set turns out to be, and what
 * older runs did not note, the library compares.
 */
static bool is_fixed(const char *name)
{
    static const char *const fixed[] = {"batch", "seed", "optimizer", "precision"};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        if (strcmp(fixed[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* What the command line says otherwise than the run: refused, or told. */
static cvy_status compare_with_run(const cli_options *run, const cli_options *now)
{
    cvy_option option[CLI_MAX_OPTIONS];
    cvy_status status = CVY_OK;
    cli_select_options(CLI_SAVED, option);
    for (int i = 0; option[i].name && status == CVY_OK; i++) {
        cvy_text before = {0}, after = {0};
        bool both = cvy_option_print(&option[i], run, &before) && cvy_option_print(&option[i], now, &after);
        bool differ = both && before.data && after.data && strcmp(before.data, after.data) != 0;
        if (differ && is_fixed(option[i].name)) {
            status = cvy_fail(CVY_ERR_INPUT,
                              "--%s %s: the run began with %s and keeps it; to change it, start anew with --weights",
                              option[i].name, after.data, before.data);
        } else if (differ && !now->quiet && cli_ranks_speak()) {
            fprintf(stderr, "resume: --%s %s (the run had %s)\n", option[i].name, after.data, before.data);
        }
        cvy_text_destroy(&before);
        cvy_text_destroy(&after);
    }
    return status;
}

/* Lay the line over the run's own options. Texts of both stay with their parse. */
static cvy_status resume_options(const cli_command *command, int argc, char **argv, cli_options *options,
                                 cvy_parsed_options parsed[2])
{
    CVY_REQUIRE(!options->train.weights, CVY_ERR_INPUT,
                "--resume goes on from a checkpoint, --weights starts anew: give one of them");
    const cli_options given = *options;
    *options = cli_options_init;
    CVY_TRY(cli_load_run(given.train.resume, options, &parsed[1]));
    const cli_options run = *options;
    cvy_parsed_options_clear(&parsed[0]);
    CVY_TRY(cli_parse(command, argc, argv, options, &parsed[0]));
    options->train.weights = NULL; /* the run began with them; its checkpoint has gone on */
    if (!options->train.out) {
        options->train.out = options->train.resume;
    }
    return compare_with_run(&run, options);
}

/* From the line to options that are whole but for a strategy that is still to be found. */
static cvy_status read_line(const cli_command *command, int argc, char **argv, cli_options *options,
                            cvy_parsed_options parsed[2], cli_decision *decision)
{
    CVY_TRY(cli_parse(command, argc, argv, options, &parsed[0]));
    if (parsed[0].help) {
        return CVY_OK;
    }
    CVY_REQUIRE(!options->train.resume || !options->train.plan, CVY_ERR_INPUT,
                "--resume goes on as the plan of the run says: --plan is for one that begins");
    if (options->train.resume) {
        CVY_TRY(resume_options(command, argc, argv, options, parsed));
    }
    CVY_TRY(cli_decide_plan(command, argc, argv, options, &parsed[0], decision));
    if (parsed[0].operands) {
        options->model = parsed[0].operand[0];
    }
    CVY_REQUIRE(options->model, CVY_ERR_INPUT,
                "convoy train needs a model: convoy train MODEL --data DIR|NAME; see convoy model --list");
    CVY_REQUIRE(options->train.data, CVY_ERR_INPUT,
                "convoy train needs data: --data with a folder, or digits, random or cosmo");
    return CVY_OK;
}

static cvy_status run_train(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed[2] = {{.operands = 0}};
    cli_decision decision = {.strategy = ""};
    cli_prediction prediction = {.kinds = 0};
    cvy_model *model = NULL;
    cvy_status status = read_line(command, argc, argv, &options, parsed, &decision);
    if (!parsed[0].help) {
        status = status == CVY_OK ? cvy_model_open(options.model, &model) : status;
        status = cli_decide_strategy(status, model, &options, &decision);
    }
    if (status == CVY_OK && !parsed[0].help) {
        status = cli_predict(&options, &decision, &prediction);
    }
    if (status == CVY_OK && !parsed[0].help) {
        cvy_memory_keep();
        options.train.stop = cli_catch_signals();
        status = train_model(&options, model, &prediction);
    }
    cvy_model_destroy(&model);
    cli_prediction_clear(&prediction);
    cli_decision_clear(&decision);
    cvy_parsed_options_clear(&parsed[0]);
    cvy_parsed_options_clear(&parsed[1]);
    return status;
}

const cli_command cli_train = {
    .name = "train",
    .operands = "MODEL",
    .usage = "MODEL --data DIR|NAME\n"
             "--resume RUN",
    .max_operands = 1,
    .rows = CLI_TRAIN,
    .summary = "Train a model",
    .examples = "  convoy train lenet5 --data digits --epochs 3 --out run\n"
                "  convoy train resnet18:classes=10,size=32 --data cifar/ --schedule cosine\n"
                "  convoy train --resume run --epochs 20\n"
                "  mpiexec -n 4 convoy train vgg16 --data images/ --strategy auto\n",
    .on_all_ranks = true,
    .run = run_train,
};
