/*
 * metrics.jsonl of a run: one object a line, `event` = start | step | epoch | checkpoint | end. A line is written whole
 * or not at all as far as readers see; numbers do not depend on the locale; NaN is null. Appending allocates nothing.
 */
#ifndef CVY_RUNTIME_METRICS_H
#define CVY_RUNTIME_METRICS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct cvy_metrics cvy_metrics;

/** The longest `text` of a line, in bytes. */
enum { CVY_METRICS_TEXT = 4096 };

/**
 * What a line may say. What is not finite is left out, but for `loss` of a step, an epoch and the end, which is then
 * null. Start from CVY_METRICS_LINE_INIT.
 */
typedef struct cvy_metrics_line {
    const char *event; /**< start, step, epoch, checkpoint, end */
    int64_t step;
    int64_t epoch;
    double loss, images_per_s, learning_rate, train_accuracy, validation_accuracy, validation_loss;
    const char *text_key; /**< key of one more member, e.g. "checkpoint"; NULL: none */
    const char *text;     /**< its value, e.g. "step-00000100"; escaped as JSON */
} cvy_metrics_line;

#define CVY_METRICS_LINE_INIT                                                                                   \
    {                                                                                                           \
        .loss = NAN, .images_per_s = NAN, .learning_rate = NAN, .train_accuracy = NAN,                          \
        .validation_accuracy = NAN, .validation_loss = NAN                                                      \
    }

/**
 * Open a run's metrics for appending; makes the file where there is none.
 *
 * @param[in]  last_step  lines of later steps are dropped (a run that goes on from a checkpoint), and so is what is no
 *                        line of a run, such as a half-written last one; -1 starts the file anew
 * @param[in]  within     the last step is within an epoch: what was said of that epoch there, where `steps` ended, is
 *                        dropped too, since its end is still to come
 * @retval CVY_ERR_IO     the file cannot be read or written
 */
cvy_status cvy_metrics_open(const char *path, int64_t last_step, bool within, cvy_metrics **metrics_out);

/**
 * Append a line. Kept in a buffer that is written when it is full, once a second, and for every event but `step`.
 *
 * @retval CVY_ERR_IO  a line could not be written, this one or an earlier one; no more are
 * @retval CVY_ERR_ARG the line's texts are longer than CVY_METRICS_TEXT bytes
 */
cvy_status cvy_metrics_add(cvy_metrics *metrics, const cvy_metrics_line *line);

/**
 * Write what is kept. To be called before a checkpoint is saved: a process that is killed right after the save goes on
 * from it, and would miss the lines that it still held.
 */
cvy_status cvy_metrics_flush(cvy_metrics *metrics);

/** Write what is kept, sync, close, and set to NULL; NULL is fine. @retval CVY_ERR_IO lines are missing */
cvy_status cvy_metrics_close(cvy_metrics **metrics);

#endif
