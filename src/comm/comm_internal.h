/* What the files of the wrappers share. */
#ifndef CVY_COMM_COMM_INTERNAL_H
#define CVY_COMM_COMM_INTERNAL_H

#include "comm/comm.h"

struct cvy_comm {
    const cvy_comm_kind *kind;
    void *state;
    int64_t moved_bytes;
    void (*lose)(void *context, cvy_status status, const char *words); /* where a transfer fails; NULL: nothing */
    void *lose_context;
};

/** Tell whoever asked to hear of it that this rank has failed in what the others wait for. @return @p status */
cvy_status cvy_comm_lose(const cvy_comm *comm, cvy_status status);

#endif
