/*
 * The matrix of convoy compare: models by strategies by ranks that are run here, each run a process of its own, so that
 * every measurement begins alike and a row that fails ends itself alone; and what the oracle says of each.
 */
#ifndef CVY_CLI_MATRIX_H
#define CVY_CLI_MATRIX_H

#include "base/text.h"
#include "cli/predict.h"

enum { CLI_MATRIX_MOST_ROWS = 4096, CLI_MATRIX_MOST_MACHINES = 16 };

/** One run. */
typedef struct cli_matrix_run {
    double iteration_s;           /**< median of its iterations */
    double probe_s;               /**< of the machine's probe meanwhile */
    int64_t memory_bytes;         /**< largest resident set of a rank */
} cli_matrix_run;

/** Iterations of all runs of a row. */
typedef struct cli_matrix_middle {
    double median_s, least_s, most_s; /**< 0: unknown */
    double accuracy;              /**< 1 - |predicted - median| / median, not below 0; 0 without a prediction */
} cli_matrix_middle;

/** A row of the list, what was measured of it, and what is predicted. */
typedef struct cli_matrix_row {
    const char *model, *strategy; /**< borrowed from the list */
    int64_t batch, ranks, threads;
    int line;                     /**< of the list */
    int64_t bucket_bytes;         /**< as runs have it */

    cli_matrix_run run[CLI_MOST_RUNS]; /**< in the order in which they were made */
    int runs;
    cli_matrix_middle clock;      /**< by the clock */
    cli_matrix_middle at_pace;    /**< each run by its pace: as if the machine were as fast as when it was calibrated */
    double pace;                  /**< how many times as long the probe took as it did then, the median; 0: unknown */
    int64_t memory_bytes;         /**< largest resident set of a rank over all runs */
    bool failed;                  /**< a run failed, as `why_failed` says: no others were tried */
    char why_failed[CVY_WHY_TEXT];

    int machine;                  /**< that predicts it; -1: none has so many devices */
    bool priced;                  /**< what follows holds; else `why_not` says why there is no prediction */
    char why_not[CVY_WHY_TEXT];
    double predicted_s, error_relative;
    int64_t predicted_bytes;
    char family[CVY_STRATEGY_TEXT];
} cli_matrix_row;

/** A machine that predicts the rows of its number of ranks and threads. */
typedef struct cli_matrix_machine {
    const char *name; /**< as it was asked for */
    int64_t cores, devices, devices_per_node, bucket_bytes;
    double probe_s;   /**< of the probe when it was calibrated; 0: unknown */
} cli_matrix_machine;

/** All of them. */
typedef struct cli_matrix {
    const cli_options *options;
    char *text;       /**< of the list, cut into words */
    char *machines_text;
    cli_matrix_machine machine[CLI_MATRIX_MOST_MACHINES];
    int machines;
    cli_matrix_row *row;
    int rows, capacity;
} cli_matrix;

/**
 * Read a list: lines of `MODEL BATCH RANKS THREADS STRATEGY`; `#` begins a comment.
 *
 * @param[in,out] matrix   rows are appended; its text is the list's
 * @retval CVY_ERR_INPUT   "FILE:LINE: …": found, expected
 */
cvy_status cli_matrix_read(const char *path, cli_matrix *matrix);

/** Room for the words of a run. */
enum { CLI_MATRIX_WORDS_TEXT = 4096 };

/**
 * What convoy bench is asked about a row, words with blanks between: "bench lenet5 --batch 64 …", without how long it
 * is to measure.
 *
 * @param[out] text  room for CLI_MATRIX_WORDS_TEXT bytes
 * @retval CVY_ERR_INPUT it is too long
 */
cvy_status cli_matrix_ask(const cli_matrix *matrix, const cli_matrix_row *row, char *text);

/**
 * Run a row once, in a process of its own, by the launcher where it has several ranks.
 *
 * @param[in]  guess_s      seconds that an iteration may take: of how many to measure; 0: unknown
 * @retval CVY_ERR_RANK     it failed; the words are its own last ones
 * @retval CVY_ERR_UNSUPPORTED the launcher does not start
 */
cvy_status cli_matrix_measure(const cli_matrix *matrix, const cli_matrix_row *row, double guess_s,
                              cli_matrix_run *run_out);

/** The file that keeps runs as they are made, so that the same command goes on where it was stopped. */
typedef struct cli_matrix_journal cli_matrix_journal;

/**
 * Open it, and take up what it has of the matrix's rows.
 *
 * @param[in]  path         NULL: nothing is kept
 * @param[out] journal_out  released with cli_matrix_journal_close()
 * @retval CVY_ERR_INPUT    the file is none of these; its line is named
 * @retval CVY_ERR_IO, CVY_ERR_MEMORY
 */
cvy_status cli_matrix_journal_open(const char *path, cli_matrix *matrix, cli_matrix_journal **journal_out);

/** Append a run. @retval CVY_ERR_IO, CVY_ERR_MEMORY */
cvy_status cli_matrix_journal_add(cli_matrix_journal *journal, const cli_matrix *matrix, const cli_matrix_row *row,
                                  const cli_matrix_run *run);

/** Close and release; NULL is fine. */
void cli_matrix_journal_close(cli_matrix_journal **journal);

/* ---- what comes out ---- */

/** Whether a row was measured and priced, so that it counts. */
bool cli_matrix_counts(const cli_matrix_row *row);

/** Take a run up. */
void cli_matrix_add_run(const cli_matrix_run *run, cli_matrix_row *row);

/** Sum up the runs of a row. */
void cli_matrix_sum_up(const cli_matrix *matrix, cli_matrix_row *row);

/** Whether what was measured lies within the prediction's error bar: by the clock, or at the calibration's pace. */
bool cli_matrix_is_inside(const cli_matrix_row *row, const cli_matrix_middle *measured);

/** Whether a prediction is off by more than 15 % and by more than the runs differ among themselves. */
bool cli_matrix_is_off(const cli_matrix_row *row, const cli_matrix_middle *measured);

/** Means over rows, and how many of them hold. */
typedef struct cli_matrix_score {
    double accuracy, error; /**< the error is signed: predicted / measured - 1 */
    int rows, inside, off;
    const cli_matrix_row *worst; /**< NULL where there are none */
} cli_matrix_score;

/** "1x2 serial": rows that are averaged. */
typedef struct cli_matrix_mean {
    const char *family;
    int64_t ranks, threads;
    cli_matrix_score clock, at_pace;
} cli_matrix_mean;

/** How the oracle orders strategies of one model, batch, ranks and threads, over all such sets of rows. */
typedef struct cli_matrix_order {
    int sets, pairs, agreed;     /**< pairs of strategies, and those whose order is as measured */
    int apart, apart_agreed;     /**< of these, those that differ by more than their runs do */
    double tau;                  /**< Kendall's: mean over the sets; 0 where there is none */
} cli_matrix_order;

/** Figures over all rows that count. */
typedef struct cli_matrix_figures {
    cli_matrix_mean *mean;
    int means;
    cli_matrix_mean all;
    int measured, failed, unpriced;
    int memory_rows, memory_close;                 /**< of over 200 MB, and those within 5 % */
    double memory_error, memory_worst;             /**< of these: mean of sizes, and the largest, with its sign */
    cli_matrix_order order;
} cli_matrix_figures;

/** Find them. @param[out] figures_out released with cli_matrix_figures_clear() @retval CVY_ERR_MEMORY */
cvy_status cli_matrix_find_figures(const cli_matrix *matrix, cli_matrix_figures *figures_out);

void cli_matrix_figures_clear(cli_matrix_figures *figures);

/** Print the table, as people read it. */
void cli_matrix_print(const cli_matrix *matrix, const cli_matrix_figures *figures);

/** Print it as JSON. @retval CVY_ERR_MEMORY, CVY_ERR_IO */
cvy_status cli_matrix_print_json(const cli_matrix *matrix, const cli_matrix_figures *figures);

/** Write a table that convoy compare --measured reads. @retval CVY_ERR_IO, CVY_ERR_MEMORY */
cvy_status cli_matrix_write_csv(const cli_matrix *matrix, const char *path);

/** Run, predict and show a matrix. @retval CVY_ERR_IO a row could not be measured; the others are shown */
cvy_status cli_compare_matrix(const cli_options *options);

#endif
