/*
 * How the ranks of a run share the tensors of a state. Of equal copies the one of the lowest rank counts: its owner.
 * Every rank knows who holds the same as whom; rank 0 knows, besides, which elements each owner has. So whole tensors
 * come together on rank 0, one at a time, and go from there to all, whatever the strategy.
 *
 * All functions that say so are collective over the ranks of the sharing. A state without one is held by one rank, and
 * all of them do for it what is left to do.
 */
#ifndef CVY_RUNTIME_SHARING_H
#define CVY_RUNTIME_SHARING_H

#include "runtime/state.h"

typedef struct cvy_sharing cvy_sharing;

/**
 * Tell each other what every rank holds. Collective; all return the same, with the words of the first that failed.
 *
 * @param[in]  comm        borrowed, must outlive the sharing
 * @param[in]  state       as all ranks list it: every tensor of the model, in one order
 * @param[out] sharing_out released with cvy_sharing_destroy()
 * @retval CVY_ERR_RANK    ranks list other tensors, or what they hold does not make up a tensor; it is named
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_sharing_create(cvy_comm *comm, const cvy_state *state, cvy_sharing **sharing_out);

/** Release and set to NULL; NULL is fine. */
void cvy_sharing_destroy(cvy_sharing **sharing);

/** The ranks that share a state; NULL: one has it all. */
cvy_comm *cvy_state_comm(const cvy_state *state);

/** Bytes of the largest part that rank 0 receives; 0 on all others, and where there are none. */
int64_t cvy_state_landing_bytes(const cvy_state *state);

/** Bytes of the largest whole tensor. */
int64_t cvy_state_whole_bytes(const cvy_state *state);

/** A whole tensor: its shape in a state_dict, its type, in plain order. */
cvy_tensor cvy_state_whole(const cvy_state_tensor *tensor);

/**
 * Bring a tensor together on rank 0. Collective.
 *
 * @param[in]  landing   of cvy_state_landing_bytes()
 * @param[out] whole_out on rank 0, as cvy_state_whole(); NULL: it is received and dropped
 */
cvy_status cvy_state_collect(const cvy_state *state, int tensor, void *landing, void *whole_out);

/** Give rank 0's whole tensor to all ranks, of which each keeps what it holds. Collective. @p whole: on every rank */
cvy_status cvy_state_deliver(const cvy_state *state, int tensor, void *whole);

/**
 * Tell all ranks what the first one found: a path, say, and a number that goes with it. Collective; all return the
 * same.
 *
 * @param[in,out] text   in: on rank 0; out: on all, cvy_free()
 * @param[in,out] number likewise
 */
cvy_status cvy_sharing_tell(cvy_comm *comm, char **text, int *number);

/**
 * See that copies are equal, bit for bit; running statistics that are each rank's own do not count until they are
 * merged. Collective.
 *
 * @param[out] compared_out copies that were compared, over all ranks; may be NULL
 * @retval CVY_ERR_RANK     two are not; the message names the tensor and the two ranks
 */
cvy_status cvy_state_check_replicas(const cvy_state *state, int64_t *compared_out);

/**
 * Merge running statistics that ranks take each from their own samples or places, so that all have those of all
 * elements, by Chan's formulas: to be called before evaluation and before a save, on all ranks or on none. Collective.
 */
cvy_status cvy_state_merge_statistics(const cvy_state *state);

#endif
