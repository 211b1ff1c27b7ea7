/* The calls of MPI that pieces of transfers become, blocking and not. */
#include "comm/mpi/transfer.h"

#define COUNT ((int)call->count)

static int run_all_reduce(const cvy_mpi_transfer *t, const cvy_mpi_call *call)
{
    return MPI_Allreduce(MPI_IN_PLACE, call->target, COUNT, t->type, t->op, t->comm);
}

static int begin_all_reduce(const cvy_mpi_transfer *t, const cvy_mpi_call *call, MPI_Request *request)
{
    return MPI_Iallreduce(MPI_IN_PLACE, call->target, COUNT, t->type, t->op, t->comm, request);
}

static int run_reduce(const cvy_mpi_transfer *t, const cvy_mpi_call *call)
{
    return MPI_Reduce(call->source, call->target, COUNT, t->type, t->op, call->peer, t->comm);
}

static int begin_reduce(const cvy_mpi_transfer *t, const cvy_mpi_call *call, MPI_Request *request)
{
    return MPI_Ireduce(call->source, call->target, COUNT, t->type, t->op, call->peer, t->comm, request);
}

static int run_reduce_scatter(const cvy_mpi_transfer *t, const cvy_mpi_call *call)
{
    return MPI_Reduce_scatter(call->source, call->target, t->count, t->type, t->op, t->comm);
}

static int begin_reduce_scatter(const cvy_mpi_transfer *t, const cvy_mpi_call *call, MPI_Request *request)
{
    return MPI_Ireduce_scatter(call->source, call->target, t->count, t->type, t->op, t->comm, request);
}

static int run_all_gather(const cvy_mpi_transfer *t, const cvy_mpi_call *call)
{
    return MPI_Allgatherv(MPI_IN_PLACE, 0, t->type, call->target, t->count, t->offset, t->type, t->comm);
}

static int begin_all_gather(const cvy_mpi_transfer *t, const cvy_mpi_call *call, MPI_Request *request)
{
    return MPI_Iallgatherv(MPI_IN_PLACE, 0, t->type, call->target, t->count, t->offset, t->type, t->comm, request);
}

static int run_broadcast(const cvy_mpi_transfer *t, const cvy_mpi_call *call)
{
    return MPI_Bcast(call->target, COUNT, t->type, call->peer, t->comm);
}

static int begin_broadcast(const cvy_mpi_transfer *t, const cvy_mpi_call *call, MPI_Request *request)
{
    return MPI_Ibcast(call->target, COUNT, t->type, call->peer, t->comm, request);
}

static int begin_send(const cvy_mpi_transfer *t, const cvy_mpi_call *call, MPI_Request *request)
{
    return MPI_Isend(call->source, COUNT, t->type, call->peer, t->tag, t->comm, request);
}

static int begin_receive(const cvy_mpi_transfer *t, const cvy_mpi_call *call, MPI_Request *request)
{
    return MPI_Irecv(call->target, COUNT, t->type, call->peer, t->tag, t->comm, request);
}

typedef struct call_functions {
    int (*run)(const cvy_mpi_transfer *t, const cvy_mpi_call *call); /* NULL: begin all of them, then wait */
    int (*begin)(const cvy_mpi_transfer *t, const cvy_mpi_call *call, MPI_Request *request_out);
} call_functions;

static const call_functions functions[CVY_MPI_CALL_KINDS] = {
    [CVY_MPI_ALL_REDUCE] = {run_all_reduce, begin_all_reduce},
    [CVY_MPI_REDUCE] = {run_reduce, begin_reduce},
    [CVY_MPI_REDUCE_SCATTER] = {run_reduce_scatter, begin_reduce_scatter},
    [CVY_MPI_ALL_GATHER] = {run_all_gather, begin_all_gather},
    [CVY_MPI_BROADCAST] = {run_broadcast, begin_broadcast},
    [CVY_MPI_SEND] = {NULL, begin_send},
    [CVY_MPI_RECEIVE] = {NULL, begin_receive},
};

bool cvy_mpi_call_runs(cvy_mpi_call_kind kind) { return functions[kind].run; }

int cvy_mpi_call_run(const cvy_mpi_transfer *t, const cvy_mpi_call *call)
{
    return functions[call->kind].run(t, call);
}

int cvy_mpi_call_begin(const cvy_mpi_transfer *t, const cvy_mpi_call *call, MPI_Request *request_out)
{
    return functions[call->kind].begin(t, call, request_out);
}
