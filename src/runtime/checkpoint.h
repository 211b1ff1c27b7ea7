/*
 * Checkpoints: a folder with model.safetensors (weights and running statistics under state_dict keys, logical layout,
 * f32; f64 in a run in double), optimizer.safetensors (keys momentum.<name>, moment2.<name>, ema.<name>; absent where
 * there are none) and state.json (position of the run, checksums of the two, hash of the model). It is written aside,
 * synced, renamed; a reader that finds a damaged one falls back to the last whole one.
 *
 * Files hold whole tensors, whatever ranks and strategy wrote them: any others can go on from there. What takes a state
 * is collective over the ranks that share it (runtime/sharing.h): the first alone touches files, and all return the
 * same, with the words of the first that failed. What takes paths alone is for one rank.
 */
#ifndef CVY_RUNTIME_CHECKPOINT_H
#define CVY_RUNTIME_CHECKPOINT_H

#include "runtime/state.h"

/** Where a run stands: all that resume needs besides tensors. */
typedef struct cvy_position {
    int64_t step;            /**< iterations done */
    int64_t epoch;           /**< epochs done */
    int64_t sample;          /**< samples done of the epoch under way */
    int64_t samples_total;   /**< since training began: learning-rate schedules count these */
    double epoch_loss_sum;   /**< of the samples of the epoch under way */
    int64_t epoch_correct;
    double best_metric;      /**< highest validation accuracy, or negated lowest loss; -HUGE_VAL where there is none */
    int64_t best_step;
    double end_metric;       /**< of an evaluation within an epoch, where `steps` ended, as `best_metric`, in which it
                                  does not count; -HUGE_VAL: there is no test split; NAN: none was made */
    uint64_t seed;
    uint64_t model_hash;
    int64_t batch;           /**< samples a step; 0: not known, as in checkpoints of before it was noted */
    int64_t micro_batches;   /**< where batch norms can tell; 0: no layer can, or not known */
    int64_t train_samples;   /**< of an epoch; 0: not known */
    char data[24];           /**< kind of the data set; empty: not known */
    int64_t ranks;           /**< that trained it last; 1 or 0: one. It goes on on any number of them */
    char strategy[256];      /**< by which they did; empty: one rank, or not known */
} cvy_position;

/**
 * Save a checkpoint as FOLDER/step-NNNNNNNN. Replaces one of that name.
 *
 * @param[in] state   what to save, borrowed
 * @retval CVY_ERR_CHECKPOINT the disk is full, …; nothing half-written remains under the final name
 */
cvy_status cvy_checkpoint_save(const char *folder, const cvy_state *state, const cvy_position *position);

/**
 * Keep the last @p keep checkpoints up to step @p newest_step, that of the save just made, and the one of step
 * @p best_step (-1: none); remove the others and what broken saves left. Later ones stay and do not count: a resume has
 * passed them over as damaged, and they must not push out whole ones.
 */
cvy_status cvy_checkpoint_prune(const char *folder, int keep, int64_t newest_step, int64_t best_step);

/** Count the checkpoints of a folder, whole or damaged; what broken saves left is none. */
cvy_status cvy_checkpoint_count(const char *folder, int *count_out);

/**
 * Find the newest whole checkpoint of a folder (checksums hold).
 *
 * @param[out] path_out     cvy_free()
 * @param[out] skipped_out  damaged newer ones that were passed over; may be NULL
 * @retval CVY_ERR_CHECKPOINT there is none; the message says why the newest was refused
 */
cvy_status cvy_checkpoint_find(const char *folder, char **path_out, int *skipped_out);

/** As cvy_checkpoint_find(), but the one with the best validation so far, where that is still there and whole. */
cvy_status cvy_checkpoint_find_best(const char *folder, char **path_out);

/**
 * Find the weights that a path means: a safetensors file; a checkpoint's folder; a folder of checkpoints, of which the
 * newest whole one; a run's folder, of which the best, as cvy_checkpoint_find_best(). Collective over @p comm, of whose
 * ranks the first looks.
 *
 * @param[in]  comm           NULL: one rank
 * @param[out] path_out       a checkpoint's folder, or the file; cvy_free()
 * @param[out] is_file_out    which of the two
 * @retval CVY_ERR_CHECKPOINT there is nothing of that name, or a folder that is none of these; the message says what a
 *                            path may be
 */
cvy_status cvy_checkpoint_resolve(const char *path, cvy_comm *comm, char **path_out, bool *is_file_out);

/**
 * Load a checkpoint folder into the tensors of @p state. All is verified before anything is copied: after a failure the
 * state is as it was. A state without optimizer tensors passes the optimizer's file over.
 *
 * @retval CVY_ERR_CHECKPOINT names the file, the key, what was found and what was expected
 */
cvy_status cvy_checkpoint_load(const char *path, cvy_state *state, cvy_position *position_out);

/**
 * Load the averages of a checkpoint folder into the weights of @p state, whose own values they replace.
 *
 * @retval CVY_ERR_CHECKPOINT the checkpoint has none, or as cvy_checkpoint_load()
 */
cvy_status cvy_checkpoint_load_averages(const char *path, cvy_state *state);

/**
 * Load weights alone from a safetensors file, e.g. a torchvision state_dict. Keys must match the model's parameters;
 * `*.num_batches_tracked` is passed over.
 */
cvy_status cvy_weights_load(const char *path, cvy_state *state);

/** Save weights and running statistics as a safetensors file, in the model's order. */
cvy_status cvy_weights_save(const char *path, const cvy_state *state);

#endif
