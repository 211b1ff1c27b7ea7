/*
 * Whole tensors. Parts travel to rank 0 as they lie in memory, with the padding of their format: an owner packs
 * nothing, and rank 0, which knows the format, copies what arrives straight to its places in the whole.
 */
#include "runtime/sharing.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "runtime/sharing_internal.h"
#include "runtime/state_copy.h"


cvy_comm *cvy_state_comm(const cvy_state *state) { return state->sharing ? state->sharing->comm : NULL; }

static int64_t part_bytes(const cvy_state_tensor *held)
{
    return (held->holding.piece.end - held->holding.piece.begin) * cvy_dtype_bytes(held->tensor.dtype);
}

int64_t cvy_state_landing_bytes(const cvy_state *state)
{
    const cvy_sharing *sharing = state->sharing;
    int64_t largest = 0;
    int owners = sharing && sharing->owner ? sharing->first_owner[sharing->tensors] : 0;
    for (int i = 0; i < owners; i++) {
        largest = cvy_max_i64(largest, sharing->owner[i].rank > 0 ? part_bytes(&sharing->owner[i].held) : 0);
    }
    return largest;
}

cvy_tensor cvy_state_whole(const cvy_state_tensor *tensor)
{
    return (cvy_tensor){.shape = tensor->shape, .dtype = tensor->tensor.dtype, .format = CVY_FORMAT_PLAIN};
}

int64_t cvy_state_whole_bytes(const cvy_state *state)
{
    int64_t largest = 0;
    for (int i = 0; i < state->count; i++) {
        cvy_tensor whole = cvy_state_whole(&state->tensor[i]);
        largest = cvy_max_i64(largest, cvy_tensor_bytes(&whole));
    }
    return largest;
}

/* Rank 0: one owner's part. */
static cvy_status take_part(const cvy_state *state, int tensor, const cvy_owner *owner, void *landing, void *whole)
{
    const void *memory = state->tensor[tensor].data;
    if (owner->rank > 0) {
        CVY_TRY(cvy_comm_receive(state->sharing->comm, landing, part_bytes(&owner->held), owner->rank));
        memory = landing;
    }
    if (whole) {
        cvy_state_copy_out(&owner->held, memory, whole);
    }
    return CVY_OK;
}

cvy_status cvy_state_collect(const cvy_state *state, int tensor, void *landing, void *whole)
{
    const cvy_sharing *sharing = state->sharing;
    const cvy_state_tensor *mine = &state->tensor[tensor];
    if (!sharing) {
        if (whole) {
            cvy_state_copy_out(mine, mine->data, whole);
        }
        return CVY_OK;
    }
    int rank = cvy_comm_rank(sharing->comm);
    if (rank > 0) {
        bool owns = cvy_sharing_find_owner(sharing, rank, tensor) == rank;
        return owns ? cvy_comm_send(sharing->comm, mine->data, cvy_state_bytes(mine), 0) : CVY_OK;
    }
    for (int i = sharing->first_owner[tensor + 1] - 1; i >= sharing->first_owner[tensor]; i--) { /* the lowest last */
        CVY_TRY(take_part(state, tensor, &sharing->owner[i], landing, whole));
    }
    return CVY_OK;
}

cvy_status cvy_state_deliver(const cvy_state *state, int tensor, void *whole)
{
    cvy_tensor of = cvy_state_whole(&state->tensor[tensor]);
    if (state->sharing) {
        CVY_TRY(cvy_comm_broadcast(state->sharing->comm, whole, cvy_tensor_bytes(&of), 0));
    }
    cvy_state_copy_in(&state->tensor[tensor], whole);
    return CVY_OK;
}

cvy_status cvy_sharing_tell(cvy_comm *comm, char **text, int *number)
{
    bool first = cvy_comm_rank(comm) == 0;
    int64_t told[2] = {first ? (int64_t)strlen(*text) + 1 : 0, first ? *number : 0};
    if (cvy_comm_ranks(comm) == 1) {
        return CVY_OK;
    }
    CVY_TRY(cvy_comm_broadcast(comm, told, sizeof told, 0));
    *text = first ? *text : cvy_calloc((size_t)told[0], 1);
    *number = (int)told[1];
    CVY_TRY(cvy_comm_agree(comm, *text ? CVY_OK : CVY_ERR_MEMORY));
    return cvy_comm_broadcast(comm, *text, told[0], 0);
}
