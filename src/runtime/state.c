/* The list is short and searched only when a run starts or a file is read: no index. */
#include "runtime/state.h"

#include <string.h>

cvy_state_tensor *cvy_state_find(const cvy_state *state, const char *name)
{
    for (int i = 0; i < state->count; i++) {
        if (strcmp(state->tensor[i].name, name) == 0) {
            return &state->tensor[i];
        }
    }
    return NULL;
}

cvy_holding cvy_state_holding(const cvy_state_tensor *tensor)
{
    cvy_holding held = tensor->holding;
    if (held.global.dims == 0) {
        held.global = tensor->tensor.shape;
        for (int i = 0; i < held.global.dims; i++) {
            held.local[i] = (cvy_interval){0, held.global.extent[i]};
        }
    }
    if (held.piece.end == held.piece.begin) {
        held.piece = (cvy_interval){0, cvy_tensor_elements(&tensor->tensor)};
    }
    return held;
}

int64_t cvy_state_bytes(const cvy_state_tensor *tensor)
{
    cvy_interval piece = cvy_state_holding(tensor).piece;
    return tensor->data ? (piece.end - piece.begin) * cvy_dtype_bytes(tensor->tensor.dtype) : 0;
}
