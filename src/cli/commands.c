/* The list of commands: one line each. Help, manual pages and completion follow from it. */
#include "cli/commands.h"

#include <string.h>

#include "base/error.h"

#if !CVY_HAVE_TRAIN
static cvy_status say_missing(const cli_command *command, int argc, char **argv)
{
    (void)argc, (void)argv;
    return cvy_fail(CVY_ERR_UNSUPPORTED,
                    "'%s' is not in this build, which only plans: install oneDNN, OpenMP, hwloc, zlib, libarchive and "
                    "xxHash, and build again with -DCONVOY_TRAIN=ON", command->name);
}

static const cli_command missing_train = {.name = "train", .summary = "Train a model (not in this build)",
                                          .run = say_missing};
static const cli_command missing_eval = {.name = "eval", .summary = "Evaluate weights (not in this build)",
                                         .run = say_missing};
static const cli_command missing_bench = {.name = "bench", .summary = "Measure throughput (not in this build)",
                                          .run = say_missing};
static const cli_command missing_verify = {.name = "verify", .summary = "Verify a strategy (not in this build)",
                                           .run = say_missing};
static const cli_command missing_data = {.name = "data", .summary = "Check a data set (not in this build)",
                                         .run = say_missing};
static const cli_command missing_calibrate = {.name = "calibrate",
                                              .summary = "Measure this machine (not in this build)",
                                              .run = say_missing};
#endif

static const cli_command *const commands[] = {
#if CVY_HAVE_TRAIN
    &cli_train, &cli_eval, &cli_bench, &cli_verify, &cli_data, &cli_calibrate,
#else
    &missing_train, &missing_eval, &missing_bench, &missing_verify, &missing_data,
    &missing_calibrate,
#endif
    &cli_plan, &cli_sweep, &cli_why, &cli_fits, &cli_ranks_for, &cli_compare, &cli_report,
    &cli_model,
    &cli_slurm,
    &cli_doctor,
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

const cli_command *cli_command_get(int i) { return i >= 0 && i < COMMANDS ? commands[i] : NULL; }

const cli_command *cli_command_find(const char *name)
{
    int i = 0;
    while (i < COMMANDS && strcmp(commands[i]->name, name) != 0) {
        i++;
    }
    return cli_command_get(i);
}
