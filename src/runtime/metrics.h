/*
 * metrics.jsonl of a run: one JSON object a line. Lines are formatted into a fixed buffer without allocation and reach
 * the file at least each second, so noting a step costs about a microsecond.
 */
#ifndef CVY_RUNTIME_METRICS_H
#define CVY_RUNTIME_METRICS_H

#include <stdint.h>

#include "runtime/checkpoint.h"

typedef struct cvy_metrics cvy_metrics;

/** What a line tells: its "event". */
typedef enum cvy_metrics_event {
    CVY_METRICS_START,      /**< step, epoch */
    CVY_METRICS_STEP,       /**< step, epoch, loss, train_accuracy, images_per_s, learning_rate */
    CVY_METRICS_EPOCH,      /**< step, epoch, loss, train_accuracy, validation_loss, validation_accuracy, images_per_s */
    CVY_METRICS_CHECKPOINT, /**< step, epoch */
    CVY_METRICS_END,        /**< as CVY_METRICS_EPOCH */
    CVY_METRICS_EVENT_COUNT
} cvy_metrics_event;

/** One line. Numbers that an event does not show are passed over; NaN and infinity become null. */
typedef struct cvy_metrics_line {
    int64_t step, epoch;
    double loss, train_accuracy, validation_loss, validation_accuracy; /**< accuracies from 0 to 1 */
    double images_per_s, learning_rate;
} cvy_metrics_line;

/**
 * Open a run's file for appending; make it where there is none.
 *
 * Lines beyond @p position are dropped (those of later steps, and of epochs that are not done there), and so is what is
 * no line of this file, such as a half-written last one: a run that was killed and resumed has each step once.
 *
 * @param[out] metrics_out  closed with cvy_metrics_close()
 * @retval CVY_ERR_IO the file cannot be read or written
 */
cvy_status cvy_metrics_open(const char *path, const cvy_position *position, cvy_metrics **metrics_out);

/** Append a line. Failures of the disk are kept and told by cvy_metrics_close(). */
void cvy_metrics_add(cvy_metrics *metrics, cvy_metrics_event event, const cvy_metrics_line *line);

/**
 * Hand all lines to the system. To be called before a checkpoint is saved: a process killed right after the save resumes
 * from it, and would miss the lines that it still held.
 */
void cvy_metrics_flush(cvy_metrics *metrics);

/** Flush, sync and close; NULL is fine. @retval CVY_ERR_IO some lines could not be written */
cvy_status cvy_metrics_close(cvy_metrics **metrics);

#endif
