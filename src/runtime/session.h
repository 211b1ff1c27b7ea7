/* What training, evaluation and measuring have in common: threads, backends, data, plan, executor. */
#ifndef CVY_RUNTIME_SESSION_H
#define CVY_RUNTIME_SESSION_H

#include "convoy/train.h"
#include "comm/comm.h"
#include "data/loader.h"
#include "machine/machine.h"
#include "plan/plan_file.h"
#include "runtime/executor.h"
#include "runtime/places.h"
#include "runtime/threads.h"

typedef struct cvy_session {
    const cvy_model *model;
    cvy_machine machine;       /**< this one */
    cvy_comm *comm;            /**< joins the ranks of the run; borrowed */
    cvy_comm *own_comm;        /**< of one rank alone, where the caller gave none; else NULL */
    cvy_plan_file file;        /**< that says how the work is divided; empty: the options do */
    cvy_distribution *distribution; /**< NULL: one rank does it all */
    cvy_data *data;            /**< NULL where random numbers will do */
    cvy_plan *plan;
    cvy_executor *executor;
    cvy_places places;         /**< where all ranks run */
    cvy_threads *bound;        /**< NULL: the threads are not */
    int threads, cores;
    bool classes;              /**< the loss counts correct predictions */
    cvy_shape label;           /**< of a sample, n = 1: its class, a map of classes, or values */
} cvy_session;

/**
 * Set everything up.
 *
 * @param[in]  options   borrowed for the call
 * @param[in]  observer  setup alone is called; may be NULL
 * @param[in]  training  false: the evaluation schedule alone
 * @param[in]  with_data false: no data set is opened
 * @param[out] session_out released with cvy_session_close(), on failure too
 */
cvy_status cvy_session_open(const cvy_model *model, const cvy_train_options *options,
                            const cvy_train_observer *observer, bool training, bool with_data,
                            cvy_session *session_out);

/**
 * Divide the work over the ranks as the options or their plan file say, and set what the plan's options have of it.
 *
 * @param[in,out] session  model and comm are there; file and distribution are set
 * @param[in,out] wanted   parallel, recompute and micro_batches are set
 */
cvy_status cvy_session_divide(cvy_session *session, const cvy_train_options *options, cvy_plan_options *wanted);

/**
 * Decide formats on the first rank, for its share of the batch and whole layers, and give them to all. Collective.
 *
 * @param[out] formats_out  one for each layer; the caller's array
 */
cvy_status cvy_session_share_formats(cvy_session *session, const cvy_train_options *options,
                                     const cvy_train_observer *observer, const cvy_plan_options *wanted,
                                     cvy_layer_formats *formats_out);

/** Release what a session owns. Collective. */
void cvy_session_close(cvy_session *session);

/** The share of right predictions, of all labels of so many samples; NAN of a regression. Cannot fail. */
double cvy_session_accuracy(const cvy_session *session, int64_t correct, int64_t samples);

/** A loader of one split over the plan's slots; only one may read at a time. */
cvy_status cvy_session_loader(const cvy_session *session, const cvy_train_options *options, cvy_split split,
                              cvy_loader **loader_out);

/**
 * Evaluate the test split with the weights as they are.
 *
 * @retval CVY_STOPPED `options->stop` was set meanwhile
 */
cvy_status cvy_session_evaluate(cvy_session *session, const cvy_train_options *options,
                                const cvy_train_observer *observer, cvy_evaluation *evaluation_out);

/** The largest resident set of a process so far, of all ranks. Collective. */
cvy_status cvy_session_peak_memory(const cvy_session *session, int64_t *bytes_out);

/**
 * Sum up the profiles of schedules by kind of step; largest first. Of many ranks each kind has the figures of the rank
 * where it took longest. Collective.
 *
 * @param[in]  schedules bit i: CVY_SCHEDULE i counts
 * @param[in]  floor_s   of each step of the only schedule that counts; NULL: the rows have no floor
 * @param[out] row_out   cvy_free()
 */
cvy_status cvy_session_profile(const cvy_session *session, unsigned schedules, const double *floor_s,
                               cvy_profile_row **row_out, int *rows_out);

/**
 * Tell the ranks apart: what each took of the rows of cvy_session_profile(). Collective.
 *
 * @param[in]  schedules   of the rows
 * @param[in]  iteration_s of this rank
 * @param[out] rank_out    one for each rank, released with cvy_rank_results_destroy(); untouched on failure
 */
cvy_status cvy_session_profile_ranks(const cvy_session *session, unsigned schedules, const cvy_profile_row *row,
                                     int rows, double iteration_s, cvy_rank_result **rank_out);

/** Release; NULL is fine. */
void cvy_rank_results_destroy(cvy_rank_result **rank);

#endif
