/*
 * What the files of the training share: train.c is the loop, train_state.c where a run begins, goes on and is saved,
 * train_tell.c what others are told of it.
 */
#ifndef CVY_RUNTIME_TRAIN_INTERNAL_H
#define CVY_RUNTIME_TRAIN_INTERNAL_H

#include "runtime/rate.h"
#include "runtime/run_folder.h"
#include "runtime/session.h"

/** One call of cvy_train(). */
typedef struct cvy_training {
    const cvy_model *model;
    const cvy_train_options *options;
    const cvy_train_observer *observer; /**< may be NULL */
    cvy_train_result *result;
    cvy_session session;
    cvy_run_folder folder;
    cvy_loader *loader;
    cvy_rate rate;
    cvy_position position;
    int64_t samples;                    /**< of an epoch */
    int64_t steps_total;
    double start_s;                     /**< of the loop */
    int64_t start_samples, start_step;
    double window_s;                    /**< start of the window over which the shown rate is taken */
    int64_t window_samples;
    double shown_rate;
    double pause_s;                     /**< spent evaluating and saving, not training */
    bool stop;                          /**< some rank of many was asked to stop, and all know */
} cvy_training;

/* ---- where a run begins, goes on and is saved ---- */

/**
 * Give the weights their first values, or those of the checkpoint that is resumed; open the metrics; tell the start.
 *
 * @retval CVY_ERR_CHECKPOINT nothing to resume from, or it is of another model
 * @retval CVY_ERR_INPUT      the checkpoint is of another run than this one (see cvy_run_folder_resume()), or stands
 *                            where no batch begins
 */
cvy_status cvy_training_start(cvy_training *t);

/** Whether a checkpoint is to be saved at the position: at the end of an epoch, or every so many steps. */
bool cvy_training_is_save_due(const cvy_training *t);

/**
 * Save a checkpoint; nothing where the run has no folder.
 *
 * @param[in] last a failed save ends the training; else it is a warning: the next one may find room
 */
cvy_status cvy_training_save(cvy_training *t, bool last);

/* ---- what others are told ---- */

void cvy_training_tell_start(cvy_training *t, const char *resumed_from, int skipped);

/** After a step: to the observer and, as a line of metrics, to the run's folder. */
void cvy_training_tell_step(cvy_training *t, int64_t samples, const cvy_executor_result *result, double rate);

/** After an epoch's evaluation: to the result, the folder and the observer. */
void cvy_training_tell_epoch(cvy_training *t, const cvy_epoch_result *epoch);

void cvy_training_warn(const cvy_training *t, const char *line);

/** What began at @p start_s and ends now was not training: no rate counts it. */
void cvy_training_pause_clocks(cvy_training *t, double start_s);

/** What the caller of cvy_train() gets, once the loop has ended. */
cvy_status cvy_training_fill_result(cvy_training *t);

#endif
