/* The sections of a page about a run: what it learnt, and what it took beside what was predicted. */
#ifndef CVY_REPORT_RUN_PAGE_H
#define CVY_REPORT_RUN_PAGE_H

#include <stdint.h>

#include "report/page.h"

/** What is noted along a run, at steps or at the ends of epochs; NAN where there is none. */
typedef struct cvy_run_note {
    double step, epoch;
    double loss, learning_rate, images_per_s, train_accuracy, validation_accuracy, validation_loss;
} cvy_run_note;

/** The course of a run. */
typedef struct cvy_run_course {
    int steps, epochs;
    const cvy_run_note *step, *epoch; /**< ascending */
} cvy_run_course;

/**
 * Loss, accuracy, learning rate and speed along a run; of thousands of steps means of neighbours. Sections without
 * figures are left out.
 *
 * @retval CVY_ERR_IO, CVY_ERR_MEMORY as cvy_page_draw() says
 */
cvy_status cvy_report_course(cvy_page *page, const cvy_run_course *course);

/** A kind of step in an iteration. */
typedef struct cvy_compared_kind {
    const char *name;
    double predicted_s; /**< 0: not predicted */
    double measured_s;  /**< on the rank where it took longest, */
    double least_s;     /**< and shortest */
    int rank, ranks;    /**< the first, and how many have the kind */
} cvy_compared_kind;

/** Predicted beside measured, kind of step by kind of step, the longest first. */
cvy_status cvy_report_kinds(cvy_page *page, const cvy_compared_kind *kind, int kinds, double iteration_s);

#endif
