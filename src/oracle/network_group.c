/*
 * Where groups lie. Ranks are numbers in mixed radix, a digit an axis; a group has all values of its own axes' digits,
 * and one value of each other. Neighbouring digits of one kind are a run: so many values, so many ranks apart. A domain
 * of a level is D consecutive ranks, from a multiple of D on. Where the runs' borders are D's, what follows is exact
 * for every group; where they are not (three ranks a group, four a node) it is the most that any domain or group can
 * have.
 */
#include <inttypes.h>
#include <math.h>

#include "oracle/network_internal.h"

/* Neighbouring axes that are all in the group, or all not. */
typedef struct run {
    bool in;
    int64_t size, stride;
} run;

typedef struct layout {
    int runs;
    run run[CVY_AXES]; /* fastest first */
    int64_t ranks;     /* of the mesh */
    int64_t members;   /* of the group */
    int64_t block;     /* ranks from the first member to the last, and those that lie between */
} layout;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static layout lay_out(const cvy_mesh *mesh, unsigned axes)
{
    layout l = {.ranks = mesh->ranks, .members = 1, .block = 1};
    for (int i = CVY_AXES - 1; i >= 0; i--) {
        cvy_axis axis = mesh->order[i];
        bool in = axes & CVY_AXIS_BIT(axis);
        if (mesh->size[axis] == 1) {
            continue;
        }
        if (l.runs == 0 || l.run[l.runs - 1].in != in) {
            l.run[l.runs++] = (run){.in = in, .size = 1, .stride = mesh->stride[axis]};
        }
        run *last = &l.run[l.runs - 1];
        last->size *= mesh->size[axis];
        l.members *= in ? mesh->size[axis] : 1;
        l.block = in ? last->stride * last->size : l.block;
    }
    return l;
}

/* Ranks of a domain, of those that there are. */
static int64_t count_devices(const cvy_network *network, const layout *l, int level)
{
    return level < 0 ? 1 : least(network->machine->level[level].devices, l->ranks);
}

/* Members of a group in the fullest of the domains of a level. */
static int64_t count_members(const cvy_network *network, const layout *l, int level)
{
    int64_t devices = count_devices(network, l, level), members = 1;
    for (int i = 0; i < l->runs; i++) {
        members *= l->run[i].in ? least(l->run[i].size, divide_up(devices, l->run[i].stride)) : 1;
    }
    members = least(members, devices);
    bool astride = members == l->members && devices < l->ranks && devices % l->block != 0;
    return astride ? members - 1 : members;
}

static int64_t find_divisor(int64_t a, int64_t b)
{
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Blocks of so many ranks that the worst placed domain touches. */
static int64_t count_touched(int64_t block, int64_t devices)
{
    if (devices % block == 0) {
        return devices / block;
    }
    return block % devices == 0 ? 1 : divide_up(block - find_divisor(block, devices) + devices, block);
}

/* Groups with members inside and outside of an endpoint of a level. */
static int64_t count_flows(const cvy_network *network, const layout *l, int level)
{
    int64_t devices = count_devices(network, l, level - 1), groups = 1;
    for (int i = 0; i < l->runs && devices > 1; i++) {
        groups *= l->run[i].in ? 1 : least(l->run[i].size, count_touched(l->run[i].stride, devices));
    }
    if (l->block <= devices) { /* whole blocks lie inside; at either end one may not */
        groups = least(groups, 2 * (l->block / l->members));
    }
    return least(groups, devices);
}

cvy_network_link cvy_network_see_link(const cvy_level *level, cvy_via via)
{
    bool host = via == CVY_VIA_HOST && level->staged_Bps > 0.0;
    return (cvy_network_link){
        .latency_s = host ? level->staged_latency_s : level->latency_s,
        .Bps = host ? level->staged_Bps : level->bandwidth_Bps,
        .rails = host ? 1.0 : fmax(fmin(level->rails, level->ports), 1.0),
        .passing = level->ports / level->oversubscription,
    };
}

/* What limits a flow at one level narrows the span; the outermost gives the latency. */
static void pass_level(const cvy_level *level, double flows, double all_flows, cvy_network_span *span)
{
    for (int via = 0; via < CVY_VIA_COUNT; via++) {
        cvy_network_link link = cvy_network_see_link(level, (cvy_via)via);
        double links = fmin(link.rails, link.passing / flows), all_links = fmin(link.rails, link.passing / all_flows);
        span->Bps[via] = fmin(span->Bps[via], links * link.Bps);
        span->all_Bps[via] = fmin(span->all_Bps[via], all_links * link.Bps);
        span->share[via] = fmin(span->share[via], links / link.rails);
        span->all_share[via] = fmin(span->all_share[via], all_links / link.rails);
        span->latency_s[via] = link.latency_s;
    }
}

static cvy_network_span span_levels(const cvy_network *network, const layout *l, int first, int last)
{
    cvy_network_span span = {.Bps = {INFINITY, INFINITY}, .all_Bps = {INFINITY, INFINITY}, .share = {1, 1},
                             .all_share = {1, 1}, .flows = 1};
    double narrowest = INFINITY;
    for (int i = first; i <= last; i++) {
        const cvy_level *level = &network->machine->level[i];
        double flows = (double)count_flows(network, l, i);
        double members = (double)count_members(network, l, i - 1);
        double all_flows = fmin(flows * members, (double)count_devices(network, l, i - 1));
        pass_level(level, flows, all_flows, &span);
        if (level->ports / (level->oversubscription * flows) < narrowest) {
            narrowest = level->ports / (level->oversubscription * flows);
            span.flows = flows;
        }
    }
    return span;
}

static cvy_network_group place_group(const cvy_network *network, unsigned axes)
{
    layout l = lay_out(&network->mesh, axes);
    cvy_network_group group = {.ranks = (int)l.members, .domains = 1, .domain_ranks = 1, .inner_level = -1,
                               .level = -1};
    if (l.members == 1) {
        return group;
    }
    for (int i = 0; i < CVY_AXES; i++) {
        bool in = axes & CVY_AXIS_BIT(i) && network->mesh.size[i] > 1;
        group.level = in && network->axis_level[i] > group.level ? network->axis_level[i] : group.level;
    }
    int split = group.level < network->border ? group.level : network->border;
    int64_t members = count_members(network, &l, split - 1);
    group.domain_ranks = (int)members;
    group.domains = (int)divide_up(l.members, members);
    if (members > 1) {
        group.inner_level = 0;
        while (count_members(network, &l, group.inner_level) < members) {
            group.inner_level++;
        }
        group.inner = span_levels(network, &l, 0, group.inner_level);
    }
    group.outer = span_levels(network, &l, split, group.level);
    return group;
}

const cvy_network_group *cvy_network_find_group(cvy_network *network, unsigned axes)
{
    uint64_t bit = UINT64_C(1) << axes;
    if (!(network->known & bit)) {
        network->group[axes] = place_group(network, axes);
        network->known |= bit;
    }
    return &network->group[axes];
}

cvy_status cvy_network_setup(const cvy_machine *machine, const cvy_mesh *mesh, cvy_network *network_out)
{
    int64_t devices = cvy_machine_devices(machine);
    CVY_REQUIRE(mesh->ranks <= devices, CVY_ERR_INFEASIBLE, "machine %s has %" PRId64 " device%s, found %" PRId64
                " ranks", machine->name, devices, devices == 1 ? "" : "s", mesh->ranks);
    network_out->machine = machine;
    network_out->mesh = *mesh;
    network_out->known = 0;
    network_out->border = 0;
    for (int i = 0; i < machine->levels && machine->devices_per_node > 1; i++) {
        network_out->border = machine->level[i].devices <= machine->devices_per_node ? i + 1 : network_out->border;
    }
    for (int axis = 0; axis < CVY_AXES; axis++) {
        int64_t block = mesh->stride[axis] * mesh->size[axis];
        int level = 0;
        while (mesh->size[axis] > 1 && level < machine->levels - 1 && machine->level[level].devices < mesh->ranks &&
               machine->level[level].devices % block != 0) {
            level++;
        }
        network_out->axis_level[axis] = level;
    }
    return CVY_OK;
}
