/*
 * A run's folder: plan.yaml, metrics.jsonl, checkpoints, and a lock that keeps a second process out. Without one (path
 * NULL) every function does nothing.
 *
 * Of many ranks the first alone touches files. Opening, resuming, saving and closing are collective: what the first
 * finds and decides holds for all, and all return the same, with the words of the first that failed.
 */
#ifndef CVY_RUNTIME_RUN_FOLDER_H
#define CVY_RUNTIME_RUN_FOLDER_H

#include "convoy/train.h"
#include "plan/plan.h"
#include "runtime/checkpoint.h"
#include "runtime/metrics.h"
#include "runtime/timeline.h"

typedef struct cvy_run_folder {
    cvy_comm *comm;             /**< the ranks of the run; borrowed; NULL: one */
    char *path;                 /**< NULL: the run leaves no trace */
    char *checkpoints;          /**< folder of the checkpoints */
    char last_checkpoint[512];
    int lock;                   /**< descriptor; -1: not held */
    bool without_rates;         /**< metrics leave out what a clock measured */
    cvy_metrics *metrics;
    cvy_timeline *timeline;     /**< of the run, wherever its file lies */
} cvy_run_folder;

/**
 * Make the folder, or find the one to go on with, and lock it.
 *
 * @param[out] folder_out        cvy_run_folder_close(), on failure too
 * @retval CVY_ERR_INPUT         `out` holds a run already; `resume` holds none; another process trains in it
 * @retval CVY_ERR_CHECKPOINT    `resume` holds no checkpoint, or its folder cannot be read
 * @retval CVY_ERR_IO            the folder or a file in it cannot be made
 */
cvy_status cvy_run_folder_open(const cvy_train_options *options, cvy_run_folder *folder_out);

/**
 * Load the newest whole checkpoint.
 *
 * What decides which samples make which step must be as it was, or the place where the run stands would mean nothing:
 * seed, batch, kind of data set and number of training samples, and of models with batch norms the number of
 * micro-batches. An older checkpoint that does not say is taken at the word of this run. Everything else (learning
 * rate, augmentation, lengths, threads, backend, …) may differ and holds from here on.
 *
 * @param[in,out] position in: model, seed, batch, micro_batches, data and train_samples of this run
 * @param[out]    from_out path of the checkpoint; cvy_free(), after a failure too
 * @retval CVY_ERR_CHECKPOINT no whole checkpoint, or one of another model
 * @retval CVY_ERR_INPUT      one of them differs; the message says which, and both values
 */
cvy_status cvy_run_folder_resume(const cvy_run_folder *folder, cvy_state *state, cvy_position *position,
                                 char **from_out, int *skipped_out);

/**
 * Save plan.yaml and start metrics.jsonl at the position: lines of later steps are dropped, and what was said of an
 * epoch that now goes on.
 */
cvy_status cvy_run_folder_open_metrics(cvy_run_folder *folder, const cvy_plan *plan, const cvy_position *position);

/** Save a checkpoint, note it, remove those that are not kept. */
cvy_status cvy_run_folder_save(cvy_run_folder *folder, const cvy_state *state, const cvy_position *position, int keep);

/** Lines of metrics.jsonl; the first rank's. Not collective. */
void cvy_run_folder_note_step(cvy_run_folder *folder, const cvy_position *position, double loss, double accuracy,
                              double images_per_s, double learning_rate);
void cvy_run_folder_note_epoch(cvy_run_folder *folder, const cvy_epoch_result *result);

/**
 * Note the end, write the timeline, close. Safe on a folder that was never opened.
 *
 * @param[in] status how the run ended so far; the answer is this, or what went wrong here where it was CVY_OK
 */
cvy_status cvy_run_folder_close(cvy_run_folder *folder, const cvy_position *position, const cvy_train_result *result,
                                cvy_status status);

#endif
