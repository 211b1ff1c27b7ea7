/*
 * Transfers: all calls, and the requests that they need, are made up in set-up; the loop only makes them. A transfer's
 * pieces are all begun at once, so that ranks which test at different times still begin in one order.
 *
 * Bits: all ranks of a group get the same ones from a reduction, and each time the same. With two ranks a sum is the
 * same however it is made. With more, run and begin cut alike, but a library may add in another order where it does not
 * block, and where pieces are cut elsewhere: a step that wants its bits again is made in the same way again.
 */
#include <string.h>

#include "base/memory.h"
#include "comm/mpi/transfer.h"

/* MPI_… are no constants that a static table could hold in every library. */
static MPI_Datatype find_type(cvy_dtype dtype)
{
    const MPI_Datatype types[CVY_DTYPE_COUNT] = {
        [CVY_F32] = MPI_FLOAT, [CVY_F64] = MPI_DOUBLE, [CVY_I32] = MPI_INT32_T, [CVY_U8] = MPI_UINT8_T};
    return types[dtype];
}

static MPI_Op find_op(const cvy_mpi_group *group, cvy_reduction reduction)
{
    const MPI_Op ops[] = {[CVY_REDUCE_SUM] = MPI_SUM,
                          [CVY_REDUCE_MAX] = MPI_MAX,
                          [CVY_REDUCE_MIN] = MPI_MIN,
                          [CVY_REDUCE_MOMENTS] = group->merge_moments};
    return ops[reduction];
}

static cvy_status create_requests(cvy_mpi_transfer *t)
{
    if (t->calls == 0) {
        return CVY_OK;
    }
    t->request = cvy_calloc((size_t)t->calls, sizeof *t->request);
    t->status = cvy_calloc((size_t)t->calls, sizeof *t->status);
    if (!t->request || !t->status) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < t->calls; i++) {
        t->request[i] = MPI_REQUEST_NULL;
    }
    return CVY_OK;
}

cvy_status cvy_mpi_transfer_create(void *state, const cvy_transfer_spec *spec, void **transfer_out)
{
    const cvy_mpi_group *group = state;
    cvy_mpi_transfer *t = cvy_calloc(1, sizeof *t);
    if (!t) {
        return CVY_ERR_MEMORY;
    }
    bool moments = spec->kind == CVY_TRANSFER_ALL_REDUCE && spec->reduction == CVY_REDUCE_MOMENTS;
    cvy_status status;
    t->type = moments ? group->moments : find_type(spec->dtype);
    t->op = find_op(group, spec->reduction);
    CVY_TRY_GOTO(status, done, cvy_mpi_cut(group, spec, t));
    CVY_TRY_GOTO(status, done, create_requests(t));
    *transfer_out = t;
    t = NULL;
done:
    cvy_mpi_transfer_destroy(t);
    return status;
}

void cvy_mpi_transfer_destroy(void *transfer)
{
    cvy_mpi_transfer *t = transfer;
    if (t) {
        cvy_free(t->call);
        cvy_free(t->count);
        cvy_free(t->offset);
        cvy_free(t->request);
        cvy_free(t->status);
        cvy_free(t);
    }
}

static void copy_own(const cvy_mpi_transfer *t)
{
    if (t->own.source && t->own.bytes > 0) {
        memcpy(t->own.target, t->own.source, t->own.bytes);
    }
}

cvy_status cvy_mpi_transfer_run(void *transfer)
{
    const cvy_mpi_transfer *t = transfer;
    if (t->calls > 0 && !cvy_mpi_call_runs(t->call[0].kind)) {
        CVY_TRY(cvy_mpi_transfer_begin(transfer));
        return cvy_mpi_transfer_wait(transfer);
    }
    copy_own(t);
    for (int i = 0; i < t->calls; i++) {
        CVY_TRY(cvy_mpi_check(cvy_mpi_call_run(t, &t->call[i]), t->name));
    }
    return CVY_OK;
}

cvy_status cvy_mpi_transfer_begin(void *transfer)
{
    cvy_mpi_transfer *t = transfer;
    copy_own(t);
    for (int i = 0; i < t->calls; i++) {
        CVY_TRY(cvy_mpi_check(cvy_mpi_call_begin(t, &t->call[i], &t->request[i]), t->name));
    }
    return CVY_OK;
}

/* Where several are waited for, MPI says which of them failed, and only there why. */
static cvy_status check_statuses(const cvy_mpi_transfer *t, int code)
{
    for (int i = 0; code == MPI_ERR_IN_STATUS && i < t->calls; i++) {
        int own = t->status[i].MPI_ERROR;
        code = own != MPI_SUCCESS && own != MPI_ERR_PENDING ? own : code;
    }
    return cvy_mpi_check(code, t->name);
}

cvy_status cvy_mpi_transfer_test(void *transfer, bool *done_out)
{
    cvy_mpi_transfer *t = transfer;
    int done = 0;
    CVY_TRY(check_statuses(t, MPI_Testall(t->calls, t->request, &done, t->status)));
    *done_out = done;
    return CVY_OK;
}

cvy_status cvy_mpi_transfer_wait(void *transfer)
{
    cvy_mpi_transfer *t = transfer;
    return check_statuses(t, MPI_Waitall(t->calls, t->request, t->status));
}
