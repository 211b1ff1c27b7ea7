/*
 * Communication steps, ready to run: what they send is packed, travels, and is put where it goes. Who has which
 * elements is read from the buffers of all members of a group, once, in set-up.
 */
#ifndef CVY_RUNTIME_EXCHANGE_H
#define CVY_RUNTIME_EXCHANGE_H

#include "base/pulse.h"
#include "runtime/groups.h"
#include "runtime/pack.h"

enum { CVY_EXCHANGE_BUFFERS = 3 };

/** A step to bind. */
typedef struct cvy_exchange_site {
    const cvy_schedule *schedule;
    const cvy_step *step;
    const cvy_groups *groups;
    void *memory[CVY_EXCHANGE_BUFFERS]; /**< of its uses */
} cvy_exchange_site;

/** Vectors that become moments: counts, means, sums of squares. */
typedef struct cvy_moments {
    cvy_dtype dtype;
    int64_t channels, count; /**< elements that this rank's statistics stand for */
    void *mean, *variance;
    double *packed; /**< NULL: nothing is merged */
} cvy_moments;

/** A step that is bound. */
typedef struct cvy_exchange_run {
    cvy_pack *pack, *unpack;
    cvy_transfer **transfer;
    int packs, unpacks, transfers;
    int pack_capacity, unpack_capacity, transfer_capacity;
    bool add;           /**< what comes is added to what is there */
    void *clear;        /**< a target whose format has padding, which must be 0; NULL: none */
    size_t clear_bytes;
    cvy_moments moments;
    bool under_way;
    int ordinal;               /**< among the exchanges of its schedule */
    char name[CVY_PULSE_TEXT]; /**< "all-reduce over sample, layer conv1"; both for the pulse, set by who binds */
} cvy_exchange_run;

/**
 * Bind a step to its memory. Collective over the group that it moves along: one that has failed before comes all the
 * same. Where a member has no memory for it the others bind nothing and return CVY_OK; all agree when all is bound.
 *
 * @param[in]  site    its groups and memory outlive the run
 * @param[out] run_out released with cvy_exchange_clear(), on failure too
 * @retval CVY_ERR_INFEASIBLE what the buffers hold is not what the step is to move: the plan is wrong
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_exchange_bind(const cvy_exchange_site *site, cvy_exchange_run *run_out);

/** Release and empty. */
void cvy_exchange_clear(cvy_exchange_run *run);

/** Move all of it. Allocates nothing, as those below. @retval CVY_ERR_RANK what the library says */
cvy_status cvy_exchange_run_whole(cvy_exchange_run *run);

/** Begin to move. */
cvy_status cvy_exchange_begin(cvy_exchange_run *run);

/** Let what is under way make progress. */
cvy_status cvy_exchange_progress(cvy_exchange_run *run);

/** Wait for what is under way, and put what came where it goes; at once where nothing is. */
cvy_status cvy_exchange_finish(cvy_exchange_run *run);

#endif
