/*
 * What the framework's habits cost beside the steps; docs/machines.md has the keys. Host time counts where exchanges
 * between layers make the host wait for the device; else it runs ahead, and only what is longer than the device's time
 * shows. Input, paging and the wait for the slowest are no steps: the first two count as io, the last as wait.
 */
#include <math.h>

#include "oracle/estimate_internal.h"

int cvy_strategy_find_name(const cvy_strategy *strategy)
{
    enum { STAGE = 1, SAMPLE = 2, SPACE = 4, CHANNEL = 8 };
    const int64_t *size = strategy->mesh.size;
    unsigned used = (size[CVY_AXIS_STAGE] > 1 ? STAGE : 0u) | (size[CVY_AXIS_SAMPLE] > 1 ? SAMPLE : 0u) |
                    (size[CVY_AXIS_DEPTH] * size[CVY_AXIS_HEIGHT] * size[CVY_AXIS_WIDTH] > 1 ? SPACE : 0u) |
                    (size[CVY_AXIS_CHANNEL] > 1 ? CHANNEL : 0u);
    static const int by_channels[] = {[CVY_CHANNEL_CUT_ALTERNATE] = CVY_STRATEGY_ALTERNATING,
                                      [CVY_CHANNEL_CUT_FILTER] = CVY_STRATEGY_FILTER,
                                      [CVY_CHANNEL_CUT_CHANNEL] = CVY_STRATEGY_CHANNEL};
    bool inputs = strategy->channel_cut == CVY_CHANNEL_CUT_CHANNEL;
    switch (used) {
    case STAGE: return CVY_STRATEGY_PIPELINE;
    case SAMPLE: return CVY_STRATEGY_DATA;
    case SPACE: return CVY_STRATEGY_SPATIAL;
    case CHANNEL: return by_channels[strategy->channel_cut];
    case STAGE | SAMPLE: return CVY_STRATEGY_DATA_PIPELINE;
    case SAMPLE | SPACE: return CVY_STRATEGY_DATA_SPATIAL;
    case SAMPLE | CHANNEL: return inputs ? CVY_STRATEGY_DATA_CHANNEL : CVY_STRATEGY_DATA_FILTER;
    default: return -1;
    }
}

/*
 * Exchanges between layers, but those between stages, for which the host need not wait; and pieces that gathers of
 * forward join, and backward cuts again.
 */
static void count_exchanges(const cvy_pricing *pricing, const cvy_priced_rank *rank, int *exchanges, double *pieces)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        bool between = step->phase == CVY_PHASE_HALO || step->phase == CVY_PHASE_REDISTRIBUTE;
        if (between && step->exchange >= 0 && !cvy_step_passes_stage(s, step)) {
            const cvy_exchange *exchange = &s->exchange[step->exchange];
            bool gathers = step->kind == CVY_STEP_COLLECTIVE && exchange->collective == CVY_COLLECTIVE_ALL_GATHER &&
                           exchange->axes == CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
            double parts = (double)pricing->distribution->strategy.mesh.size[CVY_AXIS_CHANNEL];
            *pieces += gathers && rank->forward[i] ? parts * rank->times[i] : 0.0;
            ++*exchanges;
        }
    }
}

/* Layers that are functions of their own to the framework: all but the input, of this rank's stage. */
static int count_functions(const cvy_pricing *pricing, int64_t rank)
{
    const cvy_distribution *d = pricing->distribution;
    int64_t stage = cvy_mesh_coordinate(&d->strategy.mesh, rank, CVY_AXIS_STAGE);
    int functions = 0;
    for (int i = 1; i < d->model->layers; i++) {
        functions += d->layer[i].stage == stage;
    }
    return functions;
}

static void add_host(const cvy_pricing *pricing, cvy_priced_rank *rank)
{
    const cvy_execution *habit = &pricing->oracle->machine->execution;
    double parts = pricing->stages > 1 ? (double)pricing->micro_batches
                                       : (double)rank->plan->schedule[CVY_SCHEDULE_TRAIN].micro_batches;
    double host = habit->layer_host_s * count_functions(pricing, rank->rank) * parts;
    int exchanges = 0;
    double pieces = 0.0;
    count_exchanges(pricing, rank, &exchanges, &pieces);
    double shows = exchanges > 0 && !habit->overlap ? host : fmax(host - rank->compute_s, 0.0);
    shows += pieces * habit->slice_host_s;
    rank->part_s[CVY_PHASE_FORWARD] += shows / 3.0; /* as forward and backward are of an iteration */
    rank->part_s[CVY_PHASE_BACKWARD] += shows * 2.0 / 3.0;
    rank->iteration_s += shows;
    for (int i = 0; i < 2; i++) {
        rank->forward_s[i] += shows / 3.0 / parts;
        rank->backward_s[i][0] += shows * 2.0 / 3.0 / parts;
    }
}

/* Nodes that the ranks of a group lie on. */
static double count_nodes(cvy_pricing *pricing, unsigned axes)
{
    const cvy_network_group *group = cvy_network_find_group(&pricing->network, axes);
    return group->ranks > 1 && group->level >= pricing->network.border ? group->domains : 1.0;
}

/*
 * Ranks of the first stage load what they need: each its samples, and of these its share of space, but all of it where
 * channels are cut. Or one rank of each group that shares samples loads them, and tells the group.
 */
double cvy_price_input(cvy_pricing *pricing)
{
    const cvy_machine *machine = pricing->oracle->machine;
    const int64_t *size = pricing->distribution->strategy.mesh.size;
    const unsigned shared = CVY_AXIS_SPACE | CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    bool leads = machine->execution.staging == CVY_STAGING_LEADER;
    double sample_bytes = (double)cvy_shape_elements(&pricing->oracle->model->layer[0].output) * sizeof(float);
    double bytes = sample_bytes * (double)pricing->oracle->options.batch;
    if (machine->execution.staging == CVY_STAGING_HIDDEN || machine->storage.read_Bps <= 0.0) {
        return 0.0;
    }
    double loaded = leads ? bytes : bytes * (double)size[CVY_AXIS_CHANNEL];
    double nodes = count_nodes(pricing, CVY_AXIS_BIT(CVY_AXIS_SAMPLE) | (leads ? 0u : shared));
    double seconds = loaded / (nodes * machine->storage.read_Bps);
    if (machine->storage.total_Bps > 0.0) {
        seconds = fmax(seconds, loaded / machine->storage.total_Bps);
    }
    if (machine->storage.decode_Bps > 0.0) { /* each rank by itself, while it reads */
        double ranks = leads ? (double)size[CVY_AXIS_SAMPLE] : (double)pricing->distribution->strategy.mesh.ranks;
        seconds = fmax(seconds, loaded / ranks / machine->storage.decode_Bps);
    }
    if (leads) {
        cvy_network_cost cost;
        cvy_network_request request = {.collective = CVY_COLLECTIVE_BROADCAST, .axes = shared,
                                       .bytes = bytes / (double)size[CVY_AXIS_SAMPLE]};
        request.traffic = cvy_network_traffic(CVY_PHASE_IO, request.axes);
        cvy_network_estimate_collective(&pricing->network, &request, &cost);
        seconds += cost.seconds; /* none where a group is one rank */
    }
    return seconds;
}

/* Gradients that are packed lie in two flat buffers more than the plan has: what goes out, and what comes in. */
static double count_packed(const cvy_pricing *pricing, const cvy_priced_rank *rank)
{
    const cvy_execution *habit = &pricing->oracle->machine->execution;
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    double times = cvy_strategy_is_among(habit->leader_exchange, pricing->family) ? 4.0 : 2.0;
    double bytes = 0.0;
    for (int i = 0; i < s->steps && habit->pack_s > 0.0; i++) {
        if (s->step[i].phase == CVY_PHASE_GRADIENT_EXCHANGE && s->step[i].exchange >= 0) {
            int64_t flat = s->exchange[s->step[i].exchange].bytes;
            bytes += flat > habit->managed_over_bytes ? times * (double)flat : 0.0;
        }
    }
    return bytes;
}

/*
 * Large tensors on managed memory come and go once an iteration. Where nothing is fused every layer's output has memory
 * of its own: buffers that the plan lays on others count, too.
 */
static double estimate_paging(const cvy_pricing *pricing, const cvy_priced_rank *rank, cvy_estimate *estimate)
{
    const cvy_execution *habit = &pricing->oracle->machine->execution;
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    if (!cvy_strategy_is_among(habit->managed_memory, pricing->family) || habit->managed_Bps <= 0.0) {
        return 0.0;
    }
    double bytes = count_packed(pricing, rank);
    for (int i = 0; i < s->buffers; i++) {
        bool own = s->buffer[i].alias_of < 0 || habit->fuse == CVY_FUSING_NONE;
        bool large = own && s->buffer[i].bytes > habit->managed_over_bytes;
        bytes += large ? (double)s->buffer[i].bytes : 0.0;
    }
    estimate->managed_memory = bytes > 0.0;
    return bytes / habit->managed_Bps;
}

/*
 * Ranks that meet in every iteration wait for the slowest of them: the expected largest of p normal deviates is about
 * sqrt(2 ln p) deviations above the mean. Groups whose leaders stage input start apart; with more of them, farther.
 */
static double estimate_wait(const cvy_pricing *pricing, const cvy_priced_rank *rank)
{
    const cvy_machine *machine = pricing->oracle->machine;
    const cvy_mesh *mesh = &pricing->distribution->strategy.mesh;
    double ranks = (double)mesh->ranks;
    double groups = (double)mesh->size[CVY_AXIS_SAMPLE];
    double wait = ranks > 1.0 ? machine->device.spread * sqrt(2.0 * log(ranks)) * rank->compute_s : 0.0;
    if (cvy_strategy_is_among(machine->execution.leader_input, pricing->family) && groups > 1.0) {
        double computing = rank->part_s[CVY_PHASE_FORWARD] + rank->part_s[CVY_PHASE_BACKWARD] +
                           rank->part_s[CVY_PHASE_RECOMPUTE] + rank->part_s[CVY_PHASE_UPDATE];
        wait += machine->execution.leader_skew * computing * sqrt(log2(groups));
    }
    return wait;
}

void cvy_price_framework(const cvy_pricing *pricing, cvy_priced_rank *rank, cvy_estimate *estimate)
{
    add_host(pricing, rank);
    double paging = estimate_paging(pricing, rank, estimate);
    double wait = estimate_wait(pricing, rank);
    rank->part_s[CVY_PHASE_IO] += paging;
    rank->part_s[CVY_TIME_WAIT] += wait;
    rank->iteration_s += paging + wait;
}
