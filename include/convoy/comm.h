/* Convoy: the ranks of a run, started together by mpiexec or its like. */
#ifndef CONVOY_COMM_H
#define CONVOY_COMM_H

#include "convoy/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Joins the ranks of one run. */
typedef struct cvy_comm cvy_comm;

/**
 * Join the ranks that were started together. Collective over them.
 *
 * Open one for the life of the process: MPI can be started once only. All calls on it come from one thread.
 *
 * @param[in]  name      "self", or "mpi" where this build has it; NULL: "mpi" where a launcher has started this process
 *                       as one of several, else "self"
 * @param[out] comm_out  released with cvy_comm_close()
 * @retval CVY_ERR_INPUT no such kind; the message lists them
 * @retval CVY_ERR_RANK  the launcher says that there are other ranks than those that were joined: MPI is not the one
 *                       that the launcher belongs to
 */
cvy_status cvy_comm_open(const char *name, cvy_comm **comm_out);

/** Leave and set to NULL; NULL is fine. Collective. */
void cvy_comm_close(cvy_comm **comm);

/** This rank, from 0; how many there are. Not collective. Cannot fail; NULL is one rank alone. */
int cvy_comm_rank(const cvy_comm *comm);
int cvy_comm_ranks(const cvy_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
