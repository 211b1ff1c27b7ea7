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
