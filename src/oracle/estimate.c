/*
 * From a strategy to what it costs: divide the model, plan the ranks that may be the slowest, price their steps, lay
 * them out in time. Along the axes of space the first rank may have a row more, and the second has neighbours at both
 * sides: the slower of the two counts. Stages are planned for two micro-batches, and all simulated together.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/pulse.h"
#include "oracle/estimate_internal.h"

/* Micro-batches where nobody said how many: four a stage keep the bubble under a fifth. */
static int64_t choose_micro_batches(const cvy_strategy *strategy, int64_t batch)
{
    int64_t stages = strategy->mesh.size[CVY_AXIS_STAGE];
    int64_t samples = cvy_max_i64(batch / strategy->mesh.size[CVY_AXIS_SAMPLE], 1);
    if (strategy->micro_batches > 0 || stages == 1) {
        return cvy_max_i64(strategy->micro_batches, 1);
    }
    return cvy_min_i64(4 * stages, samples);
}

/*
 * A stage takes its micro-batches two by two: the largest that any rank has, and its last one. What does not go in so
 * many is left as it is, for the distribution to say so.
 */
static void pair_micro_batches(cvy_pricing *pricing, cvy_strategy *strategy, int64_t *batch)
{
    int64_t ranks = strategy->mesh.size[CVY_AXIS_SAMPLE], parts = pricing->micro_batches;
    if (*batch / ranks >= parts) {
        int64_t samples = cvy_ceil_div(*batch, ranks);
        pricing->larger = samples % parts == 0 ? parts : samples % parts;
        strategy->micro_batches = cvy_min_i64(parts, 2);
        *batch = ranks * (parts == 1 ? samples : cvy_ceil_div(samples, parts) + samples / parts);
    }
}

static cvy_status divide(cvy_pricing *pricing, cvy_estimate *estimate)
{
    const cvy_oracle *o = pricing->oracle;
    cvy_strategy strategy = pricing->question->strategy;
    int *balanced = NULL;
    strategy.micro_batches = choose_micro_batches(&strategy, o->options.batch);
    estimate->strategy.micro_batches = strategy.micro_batches;
    cvy_distribution_options options = {.batch = o->options.batch,
                                        .whole_channels = o->machine->execution.whole_channels,
                                        .whole_dense = o->machine->execution.whole_dense,
                                        .choices = pricing->question->choices,
                                        .stages = pricing->question->stages};
    cvy_status status = CVY_OK;
    if (pricing->stages > 1) {
        pricing->micro_batches = strategy.micro_batches;
        pair_micro_batches(pricing, &strategy, &options.batch);
    }
    if (pricing->stages > 1 && !options.stages) {
        balanced = cvy_calloc((size_t)pricing->stages + 1, sizeof *balanced);
        status = balanced ? cvy_distribution_balance(o->model, o->layer_s, pricing->stages, balanced) : CVY_ERR_MEMORY;
        CVY_TRY_GOTO(status, done, status);
        options.stages = balanced;
    }
    if (pricing->kept && cvy_kept_plans_hold(pricing->kept, o, options.stages, pricing->stages)) {
        pricing->distribution = pricing->kept->distribution;
        goto done;
    }
    CVY_TRY_GOTO(status, done, cvy_distribution_create(o->model, &strategy, &options, &pricing->distribution));
    if (pricing->kept) {
        status = cvy_kept_plans_begin(pricing->kept, o, options.stages, pricing->stages, pricing->distribution);
    }
done:
    cvy_free(balanced);
    return status;
}

/* The slower of a stage's two candidates, at the border of space and inside, with the memory of the larger. */
static cvy_status price_stage(cvy_pricing *pricing, int64_t stage, cvy_priced_rank *slowest_out)
{
    const cvy_mesh *mesh = &pricing->distribution->strategy.mesh;
    int64_t place[CVY_AXES] = {[CVY_AXIS_STAGE] = stage};
    bool has_inside = false;
    CVY_TRY(cvy_price_rank(pricing, cvy_mesh_rank(mesh, place), slowest_out));
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        place[axis] = mesh->size[axis] > 2;
        has_inside |= mesh->size[axis] > 2;
    }
    if (!has_inside) {
        return CVY_OK;
    }
    cvy_priced_rank inside;
    CVY_TRY(cvy_price_rank(pricing, cvy_mesh_rank(mesh, place), &inside));
    const cvy_rank_memory memory =
        inside.memory.total_bytes > slowest_out->memory.total_bytes ? inside.memory : slowest_out->memory;
    if (inside.iteration_s > slowest_out->iteration_s) {
        cvy_priced_rank border = *slowest_out;
        *slowest_out = inside;
        inside = border;
    }
    slowest_out->memory = memory;
    cvy_priced_rank_clear(&inside);
    return CVY_OK;
}

/* What the rank of a stage does in an iteration; of several stages, the most that any does. */
static void fill_rank(const cvy_priced_rank *rank, cvy_estimate *estimate)
{
    double sent_bytes = rank->transfer.bytes, latency_s = rank->transfer.latency_s;
    for (int phase = 0; phase < CVY_PHASE_COUNT; phase++) {
        const cvy_communication *sum = &rank->communication[phase];
        bool most = sum->seconds > estimate->communication[phase].seconds;
        estimate->communication[phase] = most ? *sum : estimate->communication[phase];
        sent_bytes += sum->bytes;
        latency_s += sum->latency_s;
    }
    estimate->transfer = rank->transfer.seconds > estimate->transfer.seconds ? rank->transfer : estimate->transfer;
    estimate->latency_s = fmax(estimate->latency_s, latency_s);
    estimate->sent_bytes = fmax(estimate->sent_bytes, sent_bytes);
    estimate->flop += rank->flop / (double)estimate->strategy.mesh.size[CVY_AXIS_STAGE];
    double error = rank->iteration_s > 0.0 ? rank->error_s / rank->iteration_s : 0.0;
    estimate->error_relative = fmax(estimate->error_relative, error);
}

/* The stage that takes most. */
static void fill_memory(const cvy_pricing *pricing, const cvy_priced_rank *stage, cvy_estimate *estimate)
{
    const cvy_rank_memory *most = &stage[0].memory;
    for (int s = 1; s < pricing->stages; s++) {
        most = stage[s].memory.total_bytes > most->total_bytes ? &stage[s].memory : most;
    }
    memcpy(estimate->memory_bytes, most->part, sizeof most->part);
    estimate->total_bytes = most->total_bytes;
    estimate->transient_bytes = most->transient_bytes;
    estimate->live_bytes = most->live_bytes;
    estimate->redundant_bytes = most->redundant_bytes;
    estimate->capacity_bytes = pricing->oracle->machine->device.memory_bytes;
    if (estimate->capacity_bytes > 0 && estimate->total_bytes > estimate->capacity_bytes) {
        estimate->over_memory = true;
        snprintf(estimate->why_not, sizeof estimate->why_not, "needs %.3g GB of memory, a device has %.3g GB",
                 (double)estimate->total_bytes * 1e-9, (double)estimate->capacity_bytes * 1e-9);
    }
}

static void fill_whole(const cvy_pricing *pricing, double input_s, cvy_estimate *estimate)
{
    const cvy_oracle *o = pricing->oracle;
    double batch = (double)o->options.batch;
    cvy_communication *layers = &estimate->communication[CVY_PHASE_REDISTRIBUTE];
    layers->seconds += estimate->transfer.seconds;
    layers->latency_s += estimate->transfer.latency_s;
    layers->bytes += estimate->transfer.bytes;
    estimate->part_s[CVY_PHASE_IO] += input_s;
    estimate->iteration_s += input_s;
    estimate->feasible = true;
    estimate->images_per_s = estimate->iteration_s > 0.0 ? batch / estimate->iteration_s : 0.0;
    estimate->serial_flop = (o->sample_flop * batch + o->fixed_flop) / (double)estimate->strategy.mesh.ranks;
    estimate->exposed_communication_s = estimate->part_s[CVY_PHASE_HALO] + estimate->part_s[CVY_PHASE_REDISTRIBUTE] +
                                        estimate->part_s[CVY_PHASE_GRADIENT_EXCHANGE];
}

/* Price all stages into @p rank, one each. */
static cvy_status price_stages(cvy_pricing *pricing, cvy_priced_rank *rank, cvy_estimate *estimate)
{
    for (int s = 0; s < pricing->stages; s++) {
        CVY_TRY(price_stage(pricing, s, &rank[s]));
        cvy_price_framework(pricing, &rank[s], estimate);
        fill_rank(&rank[s], estimate);
    }
    if (pricing->stages > 1) {
        CVY_TRY(cvy_price_pipeline(pricing, rank, estimate));
    } else {
        estimate->iteration_s = rank->iteration_s;
        estimate->hidden_communication_s = rank->hidden_s;
        estimate->steps = rank->plan->schedule[CVY_SCHEDULE_TRAIN].steps;
        memcpy(estimate->part_s, rank->part_s, sizeof rank->part_s);
    }
    fill_memory(pricing, rank, estimate);
    fill_whole(pricing, cvy_price_input(pricing), estimate);
    return CVY_OK;
}

/* What cannot be scheduled is an answer. */
static cvy_status answer_infeasible(cvy_status status, const cvy_estimate_question *question, cvy_estimate *estimate)
{
    if (status == CVY_ERR_INFEASIBLE) {
        *estimate = (cvy_estimate){.strategy = question->strategy, .recompute = question->recompute};
        snprintf(estimate->why_not, sizeof estimate->why_not, "%s", cvy_error_message());
        return CVY_OK;
    }
    return status;
}

static void clear_ranks(cvy_priced_rank *rank, int count)
{
    for (int i = 0; rank && i < count; i++) {
        cvy_priced_rank_clear(&rank[i]);
    }
    cvy_free(rank);
}

/* Price a strategy; what was looked at goes to @p trace, if there is one; plans come from, and go to, @p kept. */
static cvy_status price(cvy_oracle *o, const cvy_estimate_question *question, cvy_kept_plans *kept,
                        cvy_estimate *estimate_out, cvy_trace *trace)
{
    cvy_estimate estimate = {.strategy = question->strategy, .recompute = question->recompute};
    int stages = (int)question->strategy.mesh.size[CVY_AXIS_STAGE];
    cvy_pricing pricing = {.oracle = o, .question = question, .family = cvy_strategy_find_name(&question->strategy),
                           .stages = stages, .micro_batches = 1, .larger = 1, .kept = kept, .trace = trace};
    bool recomputes = cvy_strategy_is_among(o->machine->execution.recompute, pricing.family);
    cvy_priced_rank *rank = NULL;
    cvy_pulse_beat(); /* other ranks may wait for what a search of many finds */
    pricing.recompute = recomputes ? CVY_RECOMPUTE_ALL : question->recompute;
    cvy_status status = cvy_network_setup(o->machine, &question->strategy.mesh, &pricing.network);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, divide(&pricing, &estimate));
    status = CVY_ERR_MEMORY;
    rank = cvy_calloc((size_t)stages, sizeof *rank);
    if (!rank) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, price_stages(&pricing, rank, &estimate));
    if (trace) {
        CVY_TRY_GOTO(status, done, cvy_trace_take(trace, &pricing, rank, stages));
    }
done:
    clear_ranks(rank, stages);
    if (!kept || kept->distribution != pricing.distribution) {
        cvy_distribution_destroy(&pricing.distribution);
    }
    status = answer_infeasible(status, question, &estimate);
    if (status == CVY_OK) {
        *estimate_out = estimate;
    }
    return status;
}

cvy_status cvy_oracle_estimate(cvy_oracle *oracle, const cvy_estimate_question *question, cvy_estimate *estimate_out)
{
    return price(oracle, question, NULL, estimate_out, NULL);
}

cvy_status cvy_oracle_estimate_kept(cvy_oracle *oracle, const cvy_estimate_question *question, cvy_kept_plans *kept,
                                    cvy_estimate *estimate_out)
{
    return price(oracle, question, kept, estimate_out, NULL);
}

cvy_status cvy_oracle_trace(cvy_oracle *oracle, const cvy_estimate_question *question, cvy_trace **trace_out)
{
    cvy_trace *trace = cvy_calloc(1, sizeof *trace);
    if (!trace) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = price(oracle, question, NULL, &trace->estimate, trace);
    if (status != CVY_OK) {
        cvy_trace_destroy(&trace);
        return status;
    }
    *trace_out = trace;
    return CVY_OK;
}
