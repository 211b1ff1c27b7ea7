/* A transfer as MPI makes it: a list of calls, each of which moves a piece. */
#ifndef CVY_COMM_MPI_TRANSFER_H
#define CVY_COMM_MPI_TRANSFER_H

#include "comm/mpi/mpi_internal.h"

typedef enum cvy_mpi_call_kind {
    CVY_MPI_ALL_REDUCE,
    CVY_MPI_REDUCE, /**< to rank `peer` */
    CVY_MPI_REDUCE_SCATTER,
    CVY_MPI_ALL_GATHER,
    CVY_MPI_BROADCAST,
    CVY_MPI_SEND,
    CVY_MPI_RECEIVE,
    CVY_MPI_CALL_KINDS
} cvy_mpi_call_kind;

/** One call of MPI. */
typedef struct cvy_mpi_call {
    cvy_mpi_call_kind kind;
    const unsigned char *source;
    unsigned char *target;
    int64_t count; /**< at most INT_MAX; not of a call that has each rank's in `count` */
    int peer;
} cvy_mpi_call;

/** What a rank has for itself, or brings in another place than where it is wanted: copied first. */
typedef struct cvy_mpi_copy {
    const unsigned char *source;
    unsigned char *target;
    size_t bytes;
} cvy_mpi_copy;

typedef struct cvy_mpi_transfer {
    const char *name;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op op;
    int tag;
    int calls, capacity;
    cvy_mpi_call *call;
    cvy_mpi_copy own;
    int *count, *offset; /**< each rank's, of a call for all of them at once */
    MPI_Request *request; /**< one a call */
    MPI_Status *status;   /**< the same */
} cvy_mpi_transfer;

/** Fill in what is to be copied and called. @p t is released by the caller, also on failure. */
cvy_status cvy_mpi_cut(const cvy_mpi_group *group, const cvy_transfer_spec *spec, cvy_mpi_transfer *t);

/** Whether a kind of call comes back before others have made theirs: messages do not, they begin together. */
bool cvy_mpi_call_runs(cvy_mpi_call_kind kind);

/** Call, and come back when this rank's memory is free; or begin it. */
int cvy_mpi_call_run(const cvy_mpi_transfer *t, const cvy_mpi_call *call);
int cvy_mpi_call_begin(const cvy_mpi_transfer *t, const cvy_mpi_call *call, MPI_Request *request_out);

#endif
