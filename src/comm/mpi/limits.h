/* How large the pieces are that a transfer is cut into. */
#ifndef CVY_COMM_MPI_LIMITS_H
#define CVY_COMM_MPI_LIMITS_H

#include <stdint.h>

/** What one call of MPI is given at most. All ranks have the same. */
typedef struct cvy_mpi_limits {
    int64_t elements;                  /**< MPI 3.1 counts in int */
    int64_t all_reduce_bytes_per_rank; /**< of an all-reduce, for each rank of the group: as is fastest */
} cvy_mpi_limits;

/** The limits of transfers made from now on: for tests, and for measurements. NULL: those of every run. */
void cvy_mpi_set_limits(const cvy_mpi_limits *limits);

#endif
