/*
 * The options of all commands, in one table over one struct: a name means the same everywhere, and a command says by
 * its bit which rows it takes. Also what every command's file declares of itself.
 */
#ifndef CVY_CLI_OPTIONS_COMMON_H
#define CVY_CLI_OPTIONS_COMMON_H

#include "base/options.h"
#include "convoy/verify.h"

/** Which commands take a row of the table. */
enum {
    CLI_TRAIN = 1,
    CLI_EVAL = 2,
    CLI_MODEL = 4,
    CLI_BENCH = 8,
    CLI_DOCTOR = 16,
    CLI_SAVED = 32, /**< kept in a run's config.yaml */
    CLI_DATA = 64,
    CLI_PLAN = 128,
    CLI_WHY = 256,
    CLI_FITS = 512,
    CLI_RANKS_FOR = 1024,
    CLI_COMPARE = 2048,
    CLI_VERIFY = 4096,
    CLI_SWEEP = 8192,
    CLI_SLURM = 16384,
    CLI_CALIBRATE = 32768,
    CLI_REPORT = 65536,
    CLI_ALL = 131071
};

typedef enum cli_precision { CLI_FP32, CLI_FP64 } cli_precision;

/** What the commands that plan can say, as it is written; planning.h makes a question of it. */
typedef struct cli_plan_options {
    const char *machine, *batch, *strategy, *norm_axes, *max_memory, *bucket, *price; /**< NULL: not given */
    const char *save, *plan, *measured;                                               /**< files */
    int64_t ranks, micro_batches, samples, epochs, top;                               /**< 0: not given */
    double hours;
    int precision, recompute, objective; /**< cvy_precision; 0: not given, else 1 + cvy_recompute; cvy_objective */
    bool shard_optimizer, all, closed_form, list_machines;
} cli_plan_options;

/** A job of Slurm. */
typedef struct cli_slurm_options {
    const char *time, *partition, *account, *name; /**< NULL: as the cluster has it, or by the command */
    int64_t nodes, ranks, grace;                   /**< grace: seconds between the signal and the end */
} cli_slurm_options;

/** What convoy sweep says beside that, as it is written; sweep.h makes a study of it. */
typedef struct cli_sweep_options {
    const char *ranks, *vary, *strategies; /**< NULL: not given; of several, joined by ';' */
    const char *csv, *out;                 /**< files */
    bool study, cross;
} cli_sweep_options;

typedef enum cli_budget { CLI_BUDGET_QUICK, CLI_BUDGET_NORMAL, CLI_BUDGET_FULL } cli_budget;

/** What convoy calibrate alone can say. */
typedef struct cli_calibrate_options {
    const char *out; /**< NULL: a name out of the host's facts */
    const char *import;     /**< a table of kernels; NULL: they are measured */
    const char *strategies; /**< of the model; NULL: on one rank; of several, joined by ';' */
    int budget;      /**< cli_budget */
    double seconds;  /**< 0: the budget's */
    bool force;
} cli_calibrate_options;

/** What convoy report alone can say. */
typedef struct cli_report_options {
    const char *out; /**< NULL: report.html */
} cli_report_options;

/** Of each row of a matrix, at most. */
enum { CLI_MOST_RUNS = 64 };

/** What convoy compare --matrix alone can say. */
typedef struct cli_matrix_options {
    const char *list, *machines, *launcher, *out, *csv; /**< NULL: not given; machines are joined by ';' */
    int64_t runs;
    double seconds; /**< of measuring, in a run */
} cli_matrix_options;

/** What the command line can say; start from cli_options_init. */
typedef struct cli_options {
    cvy_train_options train; /**< what stands below as well is set out of there */
    const char *model, *checkpoint, *strategy;
    int64_t threads, data_threads, micro_batches, keep_checkpoints, warmup, iterations;
    int layout, recompute;
    char cache[4096]; /**< room for the default of train.cache */
    cli_precision precision;
    cli_plan_options plan;
    cli_sweep_options sweep;
    cvy_verify_options verify;
    cli_calibrate_options calibrate;
    cli_slurm_options slurm;
    cli_report_options report;
    cli_matrix_options matrix;
    bool json, quiet, log_view, list, kernels, primitives, no_overlap, in_double;
} cli_options;

/** Every option as it is when nobody says otherwise. */
extern const cli_options cli_options_init;

/** A command. commands.c lists them. */
typedef struct cli_command {
    const char *name, *operands;  /**< "train", "MODEL" */
    const char *usage;            /**< the forms of its line, as in cvy_command_options */
    int max_operands;
    unsigned rows;                /**< CLI_… */
    bool on_all_ranks;            /**< all ranks of a launcher run it together; else the first does, for all */
    const char *summary, *examples;
    cvy_status (*run)(const struct cli_command *command, int argc, char **argv);
} cli_command;

extern const cli_command cli_train, cli_eval, cli_model, cli_bench, cli_verify, cli_doctor, cli_data, cli_plan,
    cli_why, cli_fits, cli_ranks_for, cli_compare, cli_sweep, cli_slurm, cli_calibrate,
    cli_report;

/** Room for the table. */
enum { CLI_MAX_OPTIONS = 160 };

/** Copy the rows of some commands; ends with a NULL name. Headings come with what stands under them. */
void cli_select_options(unsigned rows, cvy_option option_out[CLI_MAX_OPTIONS]);

/**
 * Parse a command's line over what @p options holds. Help, where it is asked for, is printed: `help` of @p parsed_out
 * then says that the command is done.
 *
 * @param[out] parsed_out released with cvy_parsed_options_clear(), after the options' texts are no longer needed
 * @retval CVY_ERR_INPUT       see cvy_options_parse()
 * @retval CVY_ERR_UNSUPPORTED a strategy that needs several ranks
 */
cvy_status cli_parse(const cli_command *command, int argc, char **argv, cli_options *options,
                     cvy_parsed_options *parsed_out);

/** Lay a run's config.yaml under the command line: read RUN/config.yaml into @p options. */
cvy_status cli_load_run(const char *run, cli_options *options, cvy_parsed_options *parsed_out);

/** Write RUN/config.yaml: the options in force, with folders and files by their whole path. */
cvy_status cli_save_run(const char *run, const cli_options *options);

/** Whether a folder is a run: it holds a config.yaml. */
bool cli_is_run(const char *path);

#endif
