/* What the files of the wrappers share. */
#ifndef CVY_COMM_COMM_INTERNAL_H
#define CVY_COMM_COMM_INTERNAL_H

#include "comm/comm.h"

struct cvy_comm {
    const cvy_comm_kind *kind;
    void *state;
    int64_t moved_bytes;
    void (*lose)(void *context, const char *words); /* where a transfer fails; NULL: nothing */
    void *lose_context;
};

#endif
