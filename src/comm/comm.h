/*
 * What communicates. A communicator joins the ranks of one run, or a group of them; it is a table of functions over a
 * state of its own. What a run sends again and again is a transfer, made once in set-up with its addresses, so that the
 * loop allocates nothing. All members of a group make the same transfers in the same order, and begin them in the same
 * order.
 */
#ifndef CVY_COMM_COMM_H
#define CVY_COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "convoy/comm.h"
#include "tensor/shape.h"

typedef enum cvy_reduction {
    CVY_REDUCE_SUM,
    CVY_REDUCE_MAX,
    CVY_REDUCE_MIN,
    CVY_REDUCE_MOMENTS, /**< f64 in threes: a count, a mean, and the sum of squared differences from it; each three
                             becomes that of all ranks' elements together, by Chan's formulas; those of count 0 say
                             nothing, whatever they hold */
} cvy_reduction;

typedef enum cvy_transfer_kind {
    CVY_TRANSFER_ALL_REDUCE,     /**< in place in `target`: count[0] elements */
    CVY_TRANSFER_REDUCE_SCATTER, /**< `source` holds a part for each rank, one behind the other: count[i] elements for
                                      rank i; `target` gets the sum of this rank's */
    CVY_TRANSFER_ALL_GATHER,     /**< `target` gets the part of each rank, count[i] elements of rank i, one behind the
                                      other; this rank's comes from `source`, or is in its place there (NULL) */
    CVY_TRANSFER_ALL_TO_ALL,     /**< `source` holds count[i] elements for rank i, `target` gets taken[i] of rank i;
                                      what a rank has for itself goes along */
    CVY_TRANSFER_BROADCAST,      /**< count[0] elements of `target` from rank `peer` */
    CVY_TRANSFER_SEND,           /**< count[0] elements of `source` to rank `peer` */
    CVY_TRANSFER_RECEIVE,        /**< count[0] elements from rank `peer` into `target` */
    CVY_TRANSFER_KINDS
} cvy_transfer_kind;

/** What is to be moved. */
typedef struct cvy_transfer_spec {
    cvy_transfer_kind kind;
    cvy_dtype dtype;
    cvy_reduction reduction; /**< of reductions */
    const void *source;      /**< borrowed while the transfer lives */
    void *target;            /**< borrowed while the transfer lives; no part of it is part of `source` */
    const int64_t *count;    /**< one, or one for each rank; copied */
    const int64_t *taken;    /**< of an all-to-all; copied */
    int peer;
    int tag;                 /**< of a message: 0 to 32767; messages of one tag between two ranks arrive in order */
} cvy_transfer_spec;

/** A way to communicate. Slots only move data; wrappers check and count. */
typedef struct cvy_comm_kind {
    const char *name;
    const char *help;
    /** Whether a launcher of its has started this process, as one of several. NULL: never. */
    bool (*is_started)(void);
    /** Join the ranks that were started together. */
    cvy_status (*open)(void **state_out);
    void (*close)(void *state);
    int (*rank)(const void *state);
    int (*ranks)(const void *state);
    /** The ranks that say the same @p color, in the order of @p key, as a group. */
    cvy_status (*split)(void *state, int color, int key, void **group_out);
    /** The ranks whose memory is one node's, as a group. */
    cvy_status (*split_node)(void *state, void **group_out);
    /** Make a transfer; nothing moves yet. */
    cvy_status (*create)(void *state, const cvy_transfer_spec *spec, void **transfer_out);
    void (*destroy)(void *transfer);
    cvy_status (*run)(void *transfer);
    cvy_status (*begin)(void *transfer);
    /** Whether it is done; makes progress. */
    cvy_status (*test)(void *transfer, bool *done_out);
    cvy_status (*wait)(void *transfer);
    /** End all ranks of the run, at once, with an exit code; may return. From any thread. */
    void (*abandon)(void *state, int exit_code);
} cvy_comm_kind;

/** The i-th kind; NULL past the last. */
const cvy_comm_kind *cvy_comm_kind_get(int i);

/**
 * Split into groups: all ranks that say the same color. Collective.
 *
 * @param[in]  color      at least 0
 * @param[in]  key        ranks of the group are in its order; of equal ones in the order of @p comm
 * @param[out] group_out  released with cvy_comm_close(), before @p comm
 */
cvy_status cvy_comm_split(cvy_comm *comm, int color, int key, cvy_comm **group_out);

/** Group the ranks that run on one node. Collective. */
cvy_status cvy_comm_split_node(cvy_comm *comm, cvy_comm **group_out);

/**
 * End all other ranks of the run at once, whatever they do, with an exit code, and this one, where the launcher does
 * so. May return; then the caller has to end the process. From any thread.
 */
void cvy_comm_abandon(cvy_comm *comm, int exit_code);

/**
 * Wait until all ranks are here, which a rank that was stopped, or that does something else, is not; and collect as
 * many bytes of each, in their order. Collective; for the first things that ranks do together, when nobody watches.
 *
 * @param[out] all_out  ranks * bytes; after CVY_ERR_RANK it must stay: what is under way may still write to it
 * @retval CVY_ERR_RANK ranks did not come within the time; they are named, by the first rank if it is here. The
 *                      communicator can only be abandoned then: transfers stay under way
 * @retval CVY_ERR_MEMORY on this rank; see cvy_comm_on_loss()
 */
cvy_status cvy_comm_gather_within(cvy_comm *comm, double timeout_s, const void *mine, int64_t bytes, void *all_out);

/**
 * Say what is to happen where this rank fails in what others wait for, so that it cannot be agreed on: a transfer in
 * the library that moves it (CVY_ERR_RANK), memory for one of those that set-up makes in one call, or for a group. It
 * is told the status and the words of the failure, before the call returns, and may end the process. Groups that are
 * split off afterwards have it, too.
 *
 * @param[in] handle NULL: nothing
 */
void cvy_comm_on_loss(cvy_comm *comm, void (*handle)(void *context, cvy_status status, const char *words),
                      void *context);

/* ---- transfers ---- */

typedef struct cvy_transfer cvy_transfer;

/**
 * Make a transfer. Collective where it is a collective; a message is made by both sides.
 *
 * @param[out] transfer_out released with cvy_transfer_destroy(), before the communicator
 * @retval CVY_ERR_ARG a rank that is none, a count below 0, a type without arithmetic, moments that are not f64
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_transfer_create(cvy_comm *comm, const cvy_transfer_spec *spec, cvy_transfer **transfer_out);

/** Release and set to NULL; NULL is fine. It must not be under way. */
void cvy_transfer_destroy(cvy_transfer **transfer);

/** Move the data and return when this rank's memory is free to use. @retval CVY_ERR_RANK what the library says */
cvy_status cvy_transfer_run(cvy_transfer *transfer);

/** Begin to move; until it is done its memory is its own. May be begun again afterwards. */
cvy_status cvy_transfer_begin(cvy_transfer *transfer);

/** See whether it is done, and let it make progress. Done where it was not begun. */
cvy_status cvy_transfer_test(cvy_transfer *transfer, bool *done_out);

/** Wait until it is done; at once where it was not begun. */
cvy_status cvy_transfer_wait(cvy_transfer *transfer);

/**
 * Bytes that transfers of a communicator have moved since it was opened, as schedules count them: of a reduction or
 * broadcast those of the buffer, of an all-gather those that the rank ends with, of a reduce-scatter or all-to-all
 * those that it brings, of messages those that it sends. Counted from what the library is given. Not collective.
 */
int64_t cvy_comm_moved_bytes(const cvy_comm *comm);

/* ---- in one call, for set-up ---- */

/** Reduce in place: afterwards every rank has the result. Collective. @retval CVY_ERR_ARG a type without arithmetic */
cvy_status cvy_comm_all_reduce(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduction reduction);

/** Copy bytes of rank @p root to all. Collective. @retval CVY_ERR_ARG no such rank */
cvy_status cvy_comm_broadcast(cvy_comm *comm, void *data, int64_t bytes, int root);

/** Collect as many bytes of each rank, in their order. Collective. @param[out] all_out  ranks * bytes */
cvy_status cvy_comm_gather_bytes(cvy_comm *comm, const void *mine, int64_t bytes, void *all_out);

/** Send, or receive, bytes, and wait. Both sides call. */
cvy_status cvy_comm_send(cvy_comm *comm, const void *data, int64_t bytes, int peer);
cvy_status cvy_comm_receive(cvy_comm *comm, void *data, int64_t bytes, int peer);

/**
 * Agree on how things went, so that no rank goes on alone: CVY_OK only where every rank says so. Else all ranks return
 * the status of the first rank that failed and, as its words, that rank's. They begin with "rank R: ", once, unless
 * every rank failed with the same words: then the failure is nobody's in particular.
 *
 * Collective.
 */
cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine);

#endif
