/*
 * metrics.jsonl of a run: one object a line, `event` = start | step | epoch | checkpoint | end. A line is written whole
 * or not at all as far as readers see; numbers do not depend on the locale; NaN is null. Appending allocates nothing.
 */
#ifndef CVY_RUNTIME_METRICS_H
#define CVY_RUNTIME_METRICS_H

#include <stdint.h>

#include "base/error.h"

typedef struct cvy_metrics cvy_metrics;

/** What a line may say; a NaN is left out, but for `loss`, which is then null. Start from CVY_METRICS_LINE_INIT. */
typedef struct cvy_metrics_line {
    const char *event;
    int64_t step;
    int64_t epoch;
    double loss, images_per_s, learning_rate, train_accuracy, validation_accuracy, validation_loss;
    const char *text_key, *text; /**< one more member, "checkpoint": "step-00000100"; NULL: none. Escaped as JSON */
} cvy_metrics_line;

#define CVY_METRICS_LINE_INIT                                                                                   \
    {                                                                                                           \
        .loss = NAN, .images_per_s = NAN, .learning_rate = NAN, .train_accuracy = NAN,                          \
        .validation_accuracy = NAN, .validation_loss = NAN                                                      \
    }

/**
 * Open a run's metrics for appending; makes the file where there is none.
 *
 * @param[in]  last_step  lines of later steps are dropped (a run that goes on from a checkpoint), and so is a
 *                        half-written last line; -1 starts the file anew
 * @retval CVY_ERR_IO     the file cannot be read or written
 */
cvy_status cvy_metrics_open(const char *path, int64_t last_step, cvy_metrics **metrics_out);

/** Append a line. Kept in a buffer that is written when it is full, once a second, and for every event but `step`. */
cvy_status cvy_metrics_add(cvy_metrics *metrics, const cvy_metrics_line *line);

/** Write what is kept, close, and set to NULL; NULL is fine. */
cvy_status cvy_metrics_close(cvy_metrics **metrics);

#endif
