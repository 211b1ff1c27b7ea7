/* What a run took, beside what was predicted of it: RUN/profile.json, which train writes and compare reads. */
#ifndef CVY_CLI_RUN_PROFILE_H
#define CVY_CLI_RUN_PROFILE_H

#include "base/json.h"
#include "convoy/train.h"

/** Where a run was made, by its first rank; empty of a run that does not say. */
typedef struct cli_run_environment {
    char version[24], host[72], system[96], processor[96];
    int64_t cores, memory_bytes; /**< of the machine; memory 0: unknown */
} cli_run_environment;

/** A run, or the last part of one that was resumed. Texts are borrowed: from whoever saves it, or from `json`. */
typedef struct cli_run_profile {
    const char *model, *strategy, *precision;
    const char *machine;               /**< that the prediction is of; NULL: nothing was predicted */
    int64_t ranks, threads, batch;
    int64_t iterations;
    double iteration_s;                /**< mean */
    int64_t peak_memory_bytes;         /**< largest resident set of a process */
    double predicted_iteration_s;      /**< 0: nothing was predicted */
    double predicted_error;            /**< relative, either way */
    int64_t predicted_memory_bytes;
    int rows;
    cvy_profile_row *row;              /**< sums over all calls, and what was predicted of as many */
    int told;                          /**< ranks that are told apart; 0: none */
    cvy_rank_result *rank;             /**< each of them, with its seconds of each row ... */
    double *rank_predicted_s;          /**< ... and what was predicted of these: of all rows, rank by rank */
    cli_run_environment environment;   /**< of a loaded one; a saved one's is that of the process */
    json_t *json;                      /**< of a loaded one */
} cli_run_profile;

/** Write RUN/profile.json. @retval CVY_ERR_IO, CVY_ERR_MEMORY */
cvy_status cli_run_profile_save(const char *run, const cli_run_profile *profile);

/**
 * Read RUN/profile.json.
 *
 * @param[out] profile_out  released with cli_run_profile_clear(); untouched on failure
 * @retval CVY_ERR_INPUT    no such run, it has no profile, or one that is wrong: file, key, found, expected
 */
cvy_status cli_run_profile_load(const char *run, cli_run_profile *profile_out);

/** Release what a loaded profile owns, and empty it. */
void cli_run_profile_clear(cli_run_profile *profile);

#endif
