/*
 * What communicates. A communicator joins the ranks of one run; it is a table of functions over a state of its own. All
 * functions but rank and ranks are collective: every rank calls them, in the same order, with the same counts.
 */
#ifndef CVY_COMM_COMM_H
#define CVY_COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "tensor/shape.h"

typedef enum cvy_reduction { CVY_REDUCE_SUM, CVY_REDUCE_MAX } cvy_reduction;

typedef struct cvy_comm cvy_comm;

/** A way to communicate. Slots only move data; wrappers check. */
typedef struct cvy_comm_kind {
    const char *name;
    const char *help;
    /** Join the ranks that were started together. */
    cvy_status (*open)(void **state_out);
    void (*close)(void *state);
    int (*rank)(const void *state);
    int (*ranks)(const void *state);
    /** In place over @p count elements of f32, f64 or i32. */
    cvy_status (*all_reduce)(void *state, void *data, int64_t count, cvy_dtype dtype, cvy_reduction reduction);
    /** From @p root to all. */
    cvy_status (*broadcast)(void *state, void *data, int64_t bytes, int root);
} cvy_comm_kind;

/**
 * Open a communicator by name; NULL is "self".
 *
 * Collective.
 * @param[out] comm_out   released with cvy_comm_close()
 * @retval CVY_ERR_INPUT  no such kind; the message lists them
 */
cvy_status cvy_comm_open(const char *name, cvy_comm **comm_out);

/** Leave and set to NULL; NULL is fine. Collective. */
void cvy_comm_close(cvy_comm **comm);

/** This rank, from 0; how many there are. Not collective. Cannot fail. */
int cvy_comm_rank(const cvy_comm *comm);
int cvy_comm_ranks(const cvy_comm *comm);

/** Reduce in place: afterwards every rank has the result. Collective. @retval CVY_ERR_ARG a type without arithmetic */
cvy_status cvy_comm_all_reduce(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduction reduction);

/** Copy bytes of rank @p root to all. Collective. @retval CVY_ERR_ARG no such rank */
cvy_status cvy_comm_broadcast(cvy_comm *comm, void *data, int64_t bytes, int root);

/**
 * Agree on how set-up went, so that no rank goes on alone: CVY_OK only where every rank says so.
 *
 * Collective.
 * @return @p mine where this rank failed; CVY_ERR_RANK, naming how many failed, where only others did
 */
cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine);

#endif
