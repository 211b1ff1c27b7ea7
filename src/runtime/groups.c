/*
 * Stages, and ranks of a mixed plan, move along different axes, but to split a communicator is everybody's work: so all
 * ranks first tell each other which groups they need, and all split for each that anybody does.
 */
#include "runtime/groups.h"

#include <string.h>

enum { SETS = (1 << CVY_AXES) * CVY_STREAM_COUNT };

static void note_needs(const cvy_schedule *s, int32_t needed[SETS])
{
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        if (step->kind == CVY_STEP_COLLECTIVE) {
            needed[s->exchange[step->exchange].axes * CVY_STREAM_COUNT + (unsigned)step->stream] = 1;
        }
    }
}

static cvy_status split(cvy_comm *comm, cvy_groups *groups, unsigned axes, int stream)
{
    int64_t first = cvy_mesh_group_member(&groups->mesh, axes, groups->rank, 0);
    int64_t place = cvy_mesh_group_place(&groups->mesh, axes, groups->rank);
    return cvy_comm_split(comm, (int)first, (int)place, &groups->along[axes][stream]);
}

cvy_status cvy_groups_setup(cvy_comm *comm, const cvy_plan *plan, cvy_groups *groups)
{
    const cvy_distribution *d = plan->options.parallel.distribution;
    int32_t needed[SETS] = {0};
    *groups = (cvy_groups){.rank = cvy_comm_rank(comm)};
    if (!d || d->strategy.mesh.ranks == 1) {
        return CVY_OK;
    }
    groups->mesh = d->strategy.mesh;
    for (int kind = 0; kind < CVY_SCHEDULE_COUNT; kind++) {
        note_needs(&plan->schedule[kind], needed);
    }
    CVY_TRY(cvy_comm_all_reduce(comm, needed, SETS, CVY_I32, CVY_REDUCE_MAX));
    CVY_TRY(cvy_comm_split(comm, 0, groups->rank, &groups->messages));
    for (unsigned i = 0; i < SETS; i++) {
        if (needed[i]) {
            CVY_TRY(split(comm, groups, i / CVY_STREAM_COUNT, (int)(i % CVY_STREAM_COUNT)));
        }
    }
    return CVY_OK;
}

void cvy_groups_clear(cvy_groups *groups)
{
    for (int i = 0; i < SETS; i++) {
        cvy_comm_close(&groups->along[i / CVY_STREAM_COUNT][i % CVY_STREAM_COUNT]);
    }
    cvy_comm_close(&groups->messages);
}

int64_t cvy_groups_moved_bytes(const cvy_groups *groups)
{
    int64_t bytes = groups->messages ? cvy_comm_moved_bytes(groups->messages) : 0;
    for (int i = 0; i < SETS; i++) {
        const cvy_comm *group = groups->along[i / CVY_STREAM_COUNT][i % CVY_STREAM_COUNT];
        bytes += group ? cvy_comm_moved_bytes(group) : 0;
    }
    return bytes;
}
