/* The one list of communicators, and the checks that all of them share. */
#include "comm/comm.h"

#include <string.h>

#include "base/memory.h"

extern const cvy_comm_kind cvy_comm_self;

static const cvy_comm_kind *const kinds[] = {&cvy_comm_self};

struct cvy_comm {
    const cvy_comm_kind *kind;
    void *state;
};

cvy_status cvy_comm_open(const char *name, cvy_comm **comm_out)
{
    const cvy_comm_kind *kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i]->name, name ? name : "self") == 0) {
            kind = kinds[i];
        }
    }
    CVY_REQUIRE(kind, CVY_ERR_INPUT, "no communicator '%s' in this build; there is self", name);
    cvy_comm *comm = cvy_calloc(1, sizeof *comm);
    if (!comm) {
        return CVY_ERR_MEMORY;
    }
    comm->kind = kind;
    cvy_status status = kind->open(&comm->state);
    if (status != CVY_OK) {
        cvy_free(comm);
        return status;
    }
    *comm_out = comm;
    return CVY_OK;
}

void cvy_comm_close(cvy_comm **comm)
{
    if (comm && *comm) {
        (*comm)->kind->close((*comm)->state);
        cvy_free(*comm);
        *comm = NULL;
    }
}

int cvy_comm_rank(const cvy_comm *comm) { return comm->kind->rank(comm->state); }
int cvy_comm_ranks(const cvy_comm *comm) { return comm->kind->ranks(comm->state); }

cvy_status cvy_comm_all_reduce(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduction reduction)
{
    CVY_REQUIRE(dtype == CVY_F32 || dtype == CVY_F64 || dtype == CVY_I32, CVY_ERR_ARG,
                "a reduction of %s: expected f32, f64 or i32", cvy_dtype_name(dtype));
    CVY_REQUIRE(count >= 0, CVY_ERR_ARG, "a reduction of %lld elements", (long long)count);
    return comm->kind->all_reduce(comm->state, data, count, dtype, reduction);
}

cvy_status cvy_comm_broadcast(cvy_comm *comm, void *data, int64_t bytes, int root)
{
    CVY_REQUIRE(root >= 0 && root < cvy_comm_ranks(comm) && bytes >= 0, CVY_ERR_ARG,
                "a broadcast of %lld bytes from rank %d of %d", (long long)bytes, root, cvy_comm_ranks(comm));
    return comm->kind->broadcast(comm->state, data, bytes, root);
}

cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine)
{
    int32_t failed = mine != CVY_OK;
    CVY_TRY(cvy_comm_all_reduce(comm, &failed, 1, CVY_I32, CVY_REDUCE_SUM));
    if (mine != CVY_OK || failed == 0) {
        return mine;
    }
    return cvy_fail(CVY_ERR_RANK, "%d of %d ranks failed in set-up; their own messages say why", (int)failed,
                    cvy_comm_ranks(comm));
}
