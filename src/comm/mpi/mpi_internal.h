/* What the files of MPI's communicator share. */
#ifndef CVY_COMM_MPI_MPI_INTERNAL_H
#define CVY_COMM_MPI_MPI_INTERNAL_H

#include <mpi.h>

#include "comm/comm.h"

/** The ranks of the run, or a group of them. */
typedef struct cvy_mpi_group {
    MPI_Comm comm;
    MPI_Comm exchanges;     /**< the same ranks: messages of all-to-alls, which meet no others here */
    MPI_Datatype moments;   /**< the run's, lent to groups: three doubles */
    MPI_Op merge_moments;   /**< the same */
    bool is_world;          /**< it owns what it lends */
    bool is_starter;        /**< it has started MPI, and ends it */
    int rank, ranks;
} cvy_mpi_group;

/** CVY_ERR_RANK with MPI's own words where @p code is not success; @p what was being done. */
cvy_status cvy_mpi_check(int code, const char *what);

/** How many ranks the launcher says that it has started, and the variable where it does; 0: it does not say. */
int cvy_mpi_find_ranks(const char **variable_out);

/** The slot is_started of the communicator. */
bool cvy_mpi_is_started(void);

/** Make the type and the operation of CVY_REDUCE_MOMENTS; the caller frees both. */
cvy_status cvy_mpi_make_moments(MPI_Datatype *type_out, MPI_Op *op_out);

/* Slots of transfers. */
cvy_status cvy_mpi_transfer_create(void *state, const cvy_transfer_spec *spec, void **transfer_out);
void cvy_mpi_transfer_destroy(void *transfer);
cvy_status cvy_mpi_transfer_run(void *transfer);
cvy_status cvy_mpi_transfer_begin(void *transfer);
cvy_status cvy_mpi_transfer_test(void *transfer, bool *done_out);
cvy_status cvy_mpi_transfer_wait(void *transfer);

#endif
