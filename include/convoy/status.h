/* Convoy: what a function may answer, and the words that go with it. */
#ifndef CONVOY_STATUS_H
#define CONVOY_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/** What a function answers. Every status but CVY_OK comes with a worded cause: cvy_error_message(). */
typedef enum cvy_status {
    CVY_OK = 0,
    CVY_ERR_ARG,         /**< an argument of a function or of the command line makes no sense */
    CVY_ERR_INPUT,       /**< what the user wrote is wrong: options, YAML, model, machine, plan */
    CVY_ERR_DATA,        /**< a data set is missing, damaged or of another kind; the file is named */
    CVY_ERR_INFEASIBLE,  /**< no plan exists; the reason is named */
    CVY_ERR_DIVERGED,    /**< NaN or infinity in loss or gradients; the layer is named */
    CVY_ERR_RANK,        /**< a rank was lost or late; the rank is named */
    CVY_ERR_CHECKPOINT,  /**< a checkpoint could not be read or written */
    CVY_ERR_IO,          /**< another file could not be read or written */
    CVY_ERR_MEMORY,      /**< memory is exhausted */
    CVY_ERR_UNSUPPORTED, /**< the backend, or this build, lacks it */
    CVY_STOPPED,         /**< a signal asked to stop; nothing was saved, since the run has no folder */
    CVY_PREEMPTED,       /**< a signal asked to stop; a checkpoint was saved */
    CVY_ERR_DIFFERS      /**< what should be the same is not */
} cvy_status;

/**
 * Give the words of the last failure on the calling thread.
 *
 * Not collective. Never NULL; empty where nothing has failed. Valid until the thread's next failing call.
 */
const char *cvy_error_message(void);

/**
 * Map a status to the process exit code of the command line: 0 done, 1 run failed, 2 what the user wrote,
 * 3 data, 4 infeasible, 5 diverged, 6 rank lost, 7 checkpoint, 75 pre-empted.
 *
 * Not collective. Cannot fail.
 */
int cvy_status_exit_code(cvy_status status);

/** Give the name of a status ("CVY_ERR_DATA"), for logs. Cannot fail. */
const char *cvy_status_name(cvy_status status);

#ifdef __cplusplus
}
#endif
#endif
