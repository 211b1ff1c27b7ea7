/* What the files of the sharing know of it. */
#ifndef CVY_RUNTIME_SHARING_INTERNAL_H
#define CVY_RUNTIME_SHARING_INTERNAL_H

#include "runtime/sharing.h"

/* What an owner holds of a tensor. */
typedef struct cvy_owner {
    int rank;
    cvy_state_tensor held; /* without data */
} cvy_owner;

struct cvy_sharing {
    cvy_comm *comm;
    int ranks, tensors;
    uint64_t *key;    /* by rank, then tensor: which elements it holds, hashed; 0: none */
    cvy_owner *owner; /* by tensor, then rank; on rank 0 alone */
    int *first_owner; /* of each tensor, and behind the last */
};

/* The lowest rank that holds the same of a tensor as @p rank does; -1 where that holds nothing. */
int cvy_sharing_find_owner(const cvy_sharing *sharing, int rank, int tensor);

#endif
