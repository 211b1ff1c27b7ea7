/* Runs, and rows of measured iterations, beside what the oracle says of them, for convoy compare. */
#ifndef CVY_CLI_COMPARE_H
#define CVY_CLI_COMPARE_H

#include "base/csv.h"
#include "cli/planning.h"

/** One row. */
typedef struct cli_compared {
    int64_t ranks, batch;
    cvy_precision precision;
    double measured_s, predicted_s;
    double accuracy;                /**< 1 - |predicted - measured| / measured, not below 0; 0 without a schedule */
    bool feasible, over_memory;
    bool low_confidence;            /**< it ran on managed memory */
    char family[CVY_STRATEGY_TEXT]; /**< by which accuracies are averaged */
    char why_not[CVY_WHY_TEXT];
    char as_model[CVY_STRATEGY_TEXT]; /**< what was predicted: the row's model with options of the machine's set-up */
} cli_compared;

/** What a table of measurements must have; -1 where there is no such column. */
typedef struct cli_measured {
    cvy_csv *csv;
    int model, machine, strategy, ranks, batch, precision, iteration, rate;
} cli_measured;

/**
 * Open a table of measurements.
 *
 * @param[out] measured_out  released with cli_measured_close(); untouched on failure
 * @retval CVY_ERR_INPUT     no table, or a column is missing; it is named
 */
cvy_status cli_measured_open(const char *path, cli_measured *measured_out);

void cli_measured_close(cli_measured *measured);

/**
 * Predict every row.
 *
 * @param[out] rows_out      one for each row of the table; the caller's array
 * @retval CVY_ERR_INPUT     a cell makes no sense: file, line, column, found, expected
 */
cvy_status cli_measured_predict(const cli_measured *measured, const cli_options *options, cli_compared *rows_out);

/**
 * Show a run beside its prediction.
 *
 * @param[in] ranks      for people: the kinds of each rank, too
 * @retval CVY_ERR_INPUT no run, none that has ended, or nothing was predicted
 */
cvy_status cli_compare_run(const char *run, bool ranks, bool json);

#endif
