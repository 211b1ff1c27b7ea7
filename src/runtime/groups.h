/*
 * The communicators of a run: for each set of axes that a schedule moves something along, and each stream, one of its
 * own, so that what travels on one stream never waits for the order of another.
 */
#ifndef CVY_RUNTIME_GROUPS_H
#define CVY_RUNTIME_GROUPS_H

#include "comm/comm.h"
#include "plan/distribution.h"
#include "plan/plan.h"

/** Groups of one rank. */
typedef struct cvy_groups {
    cvy_mesh mesh;
    int rank;
    cvy_comm *along[1 << CVY_AXES][CVY_STREAM_COUNT]; /**< NULL where nothing moves so */
    cvy_comm *messages;                               /**< all ranks: a message's tag is its stream */
} cvy_groups;

/**
 * Split the ranks into the groups that any of them needs for the schedules of its plan. Collective.
 *
 * @param[in]  comm       of as many ranks as the plan's mesh; borrowed, must outlive the groups
 * @param[out] groups_out released with cvy_groups_clear(), on failure too
 * @retval CVY_ERR_RANK   what the library says
 */
cvy_status cvy_groups_setup(cvy_comm *comm, const cvy_plan *plan, cvy_groups *groups_out);

/** Release. Collective. */
void cvy_groups_clear(cvy_groups *groups);

/** Bytes that all groups have moved, as schedules count them. Not collective. */
int64_t cvy_groups_moved_bytes(const cvy_groups *groups);

#endif
