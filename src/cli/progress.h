/*
 * How a training is told while it runs, on standard error: a bar that is drawn over on a terminal, plain
 * lines elsewhere.
 */
#ifndef CVY_CLI_PROGRESS_H
#define CVY_CLI_PROGRESS_H

#include "convoy/train.h"

typedef struct cli_progress {
    bool quiet;    /**< warnings alone */
    bool terminal;
    bool drawn;    /**< a bar stands on the line */
    double next_s; /**< when to print again, by cvy_clock_s() */
} cli_progress;

/** Look at standard error. */
void cli_progress_init(bool quiet, cli_progress *progress_out);

/** Print a line, printf style, without its newline; the bar, if there is one, gives way. Nothing where quiet. */
void cli_progress_log(cli_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Tell how far it is, now and then. */
void cli_progress_show(cli_progress *progress, const cvy_train_progress *state);

/** Tell how many of @p count are done of @p what, now and then. */
void cli_progress_count(cli_progress *progress, const char *what, int64_t done, int64_t count);

/** Tell how many there are of @p what, which share of the time is over, and how much is left, now and then. */
void cli_progress_time(cli_progress *progress, const char *what, int64_t count, double share, double left_s);

/** Tell of an epoch, a checkpoint, a warning. */
void cli_progress_epoch(cli_progress *progress, const cvy_epoch_result *result, int64_t epochs);
void cli_progress_checkpoint(cli_progress *progress, const char *path, int64_t step);
void cli_progress_warn(cli_progress *progress, const char *line);

/** Take the bar away. */
void cli_progress_clear(cli_progress *progress);

#endif
