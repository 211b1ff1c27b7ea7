/*
 * Memory of a rank. On one rank it is the plan's, to the byte. A stage is planned for two micro-batches; for each other
 * one that it holds at once, what lives from its forward into its backward is added. Types: plans are of floats; at
 * another precision activations and gradients have the device's size, and half precision trains copies of weights that
 * stay floats.
 */
#include "oracle/estimate_internal.h"

#include "base/checked.h"
#include "base/memory.h"

int64_t cvy_pipeline_in_flight(const cvy_strategy *strategy, int64_t micro_batches, int64_t stage)
{
    int64_t ahead = strategy->mesh.size[CVY_AXIS_STAGE] - stage;
    return strategy->pipeline == CVY_PIPELINE_GPIPE ? micro_batches : cvy_min_i64(micro_batches, ahead);
}

/* Bytes of transient buffers that are written in a micro-batch's forward, and live when its backward begins. */
static int64_t count_kept(const cvy_priced_rank *rank, int micro_batch)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    int backward = 0;
    int64_t kept = 0;
    while (backward < s->steps && (s->step[backward].micro_batch != micro_batch || rank->forward[backward])) {
        backward++;
    }
    for (int i = 0; i < s->buffers; i++) {
        const cvy_buffer *buffer = &s->buffer[i];
        bool lives_over = !buffer->persistent && buffer->alias_of < 0 && buffer->first_step < backward &&
                          buffer->last_step >= backward;
        if (lives_over && s->step[buffer->first_step].micro_batch == micro_batch) {
            kept += cvy_round_up(buffer->bytes, CVY_ARENA_ALIGNMENT);
        }
    }
    return kept;
}

/* What a stage keeps beyond the micro-batches that its plan holds at once. */
static int64_t count_kept_more(const cvy_pricing *pricing, int64_t stage, const cvy_priced_rank *rank)
{
    const cvy_strategy *strategy = &pricing->question->strategy;
    int64_t held = cvy_pipeline_in_flight(strategy, pricing->micro_batches, stage);
    int64_t larger = cvy_min_i64(held, pricing->larger), planned = pricing->larger < pricing->micro_batches ? 1 : 2;
    if (pricing->stages == 1 || held < 2) {
        return 0;
    }
    int64_t kept = (larger - planned) * count_kept(rank, 0);
    return planned == 2 ? kept : kept + (held - larger - 1) * count_kept(rank, 1);
}

static bool lives_at(const cvy_buffer *buffer, int step)
{
    return !buffer->persistent && buffer->alias_of < 0 && buffer->first_step <= step && buffer->last_step >= step;
}

/*
 * The last micro-batch lets go of the sums of gradients one by one, as it updates; those between keep them all. What
 * they hold beyond the plan's peak while the largest gradient is made.
 */
static int64_t count_sums_more(const cvy_pricing *pricing, const cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_buffer *largest = NULL;
    int64_t held = 0;
    for (int i = 0; i < s->buffers && pricing->stages > 1 && pricing->micro_batches > 2; i++) {
        const cvy_buffer *buffer = &s->buffer[i];
        bool made_last = buffer->role == CVY_BUFFER_GRADIENTS && lives_at(buffer, buffer->first_step) &&
                         s->step[buffer->first_step].micro_batch == 1;
        largest = made_last && (!largest || buffer->bytes > largest->bytes) ? buffer : largest;
    }
    for (int i = 0; largest && i < s->buffers; i++) {
        const cvy_buffer *buffer = &s->buffer[i];
        bool let_go = buffer->role == CVY_BUFFER_GRADIENTS && lives_at(buffer, buffer->first_step) &&
                      s->step[buffer->first_step].micro_batch == 0 && buffer->last_step < largest->first_step &&
                      s->step[buffer->last_step].micro_batch == 1;
        held += let_go || lives_at(buffer, largest->first_step) ? cvy_round_up(buffer->bytes, CVY_ARENA_ALIGNMENT) : 0;
    }
    return cvy_max_i64(held - s->memory.live_bytes, 0);
}

static int64_t scale(int64_t bytes, double factor) { return factor == 1.0 ? bytes : (int64_t)((double)bytes * factor); }

/* Whether other ranks hold a parameter, and its state, too: along the axes of samples and space, or of channels. */
static bool is_redundant(const cvy_pricing *pricing, int parameter)
{
    const cvy_distribution *d = pricing->distribution;
    const int64_t *size = d->strategy.mesh.size;
    bool copies = size[CVY_AXIS_SAMPLE] * size[CVY_AXIS_DEPTH] * size[CVY_AXIS_HEIGHT] * size[CVY_AXIS_WIDTH] > 1;
    return copies || (size[CVY_AXIS_CHANNEL] > 1 &&
                      cvy_distribution_parameter(d, parameter).placing != CVY_PLACING_SPLIT);
}

/* Of weights, gradients and state, what other ranks hold, too; gradients count where all of them are copies. */
static int64_t count_redundant(const cvy_pricing *pricing, const cvy_priced_rank *rank, double weights)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    int64_t bytes = 0;
    bool shared = pricing->oracle->options.shard_optimizer &&
                  pricing->distribution->strategy.mesh.size[CVY_AXIS_SAMPLE] > 1;
    bool all = true;
    for (int i = 0; i < s->buffers && s->buffer[i].persistent; i++) {
        const cvy_buffer *buffer = &s->buffer[i];
        bool state = buffer->role == CVY_BUFFER_OPTIMIZER, weight = buffer->role == CVY_BUFFER_WEIGHTS;
        if (buffer->parameter >= 0 && (weight || (state && !shared))) {
            bool copies = is_redundant(pricing, buffer->parameter);
            bytes += copies ? scale(cvy_round_up(buffer->bytes, CVY_ARENA_ALIGNMENT), weight ? weights : 1.0) : 0;
            all = all && copies;
        }
    }
    return bytes + (all ? rank->memory.part[CVY_BUFFER_GRADIENTS] : 0);
}

/*
 * What the library of messages takes beside the buffers that it is given. A reduce-scatter is summed by way of a copy
 * of the whole, and what comes in of a share (Open MPI's ring). All-reduces go in pieces of half a megabyte;
 * all-gathers and messages lie where they go. The C library keeps what it gave once, so the largest counts.
 */
static int64_t count_messages(const cvy_strategy *strategy, const cvy_schedule *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->exchanges; i++) {
        int64_t ranks = 1;
        for (int axis = 0; axis < CVY_AXES; axis++) {
            ranks *= s->exchange[i].axes & CVY_AXIS_BIT(axis) ? strategy->mesh.size[axis] : 1;
        }
        bool summed = s->exchange[i].collective == CVY_COLLECTIVE_REDUCE_SCATTER && ranks > 1;
        most = cvy_max_i64(most, summed ? s->exchange[i].bytes + s->exchange[i].bytes / ranks : 0);
    }
    return most;
}

void cvy_price_memory(const cvy_pricing *pricing, int64_t stage, cvy_priced_rank *rank)
{
    const cvy_oracle *o = pricing->oracle;
    double factor =
        cvy_compute_element_bytes(o->compute) / (o->options.precision == CVY_PRECISION_FP64 ? 8.0 : 4.0);
    double weights = factor < 1.0 ? 1.0 + factor : 1.0;
    cvy_rank_memory *memory = &rank->memory;
    int64_t *bytes = memory->part, more = count_kept_more(pricing, stage, rank);
    cvy_plan_memory(rank->plan, bytes);
    bytes[CVY_BUFFER_ACTIVATIONS] = scale(bytes[CVY_BUFFER_ACTIVATIONS] + more, factor);
    bytes[CVY_BUFFER_GRADIENTS] = scale(bytes[CVY_BUFFER_GRADIENTS] + count_sums_more(pricing, rank), factor);
    bytes[CVY_BUFFER_WORKSPACE] = scale(bytes[CVY_BUFFER_WORKSPACE], factor);
    bytes[CVY_BUFFER_COMMUNICATION] = scale(bytes[CVY_BUFFER_COMMUNICATION], factor);
    bytes[CVY_BUFFER_WEIGHTS] = scale(bytes[CVY_BUFFER_WEIGHTS], weights);
    bytes[CVY_MEMORY_CHECKPOINT] = 0; /* written from the host, a tensor at a time */
    bytes[CVY_MEMORY_RUNTIME] = o->machine->execution.reserved_bytes;
    if (o->machine->device.kind == CVY_DEVICE_CPU) {
        const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
        bytes[CVY_BUFFER_COMMUNICATION] += count_messages(&pricing->distribution->strategy, s);
        bytes[CVY_MEMORY_RUNTIME] += (int64_t)CVY_STEP_MEMORY_BYTES * s->steps;
    }
    memory->total_bytes = 0;
    for (int i = 0; i < CVY_MEMORY_PARTS; i++) {
        memory->total_bytes += bytes[i];
    }
    memory->transient_bytes = rank->plan->transient_bytes + more;
    memory->live_bytes = rank->plan->schedule[CVY_SCHEDULE_TRAIN].memory.live_bytes + more;
    memory->redundant_bytes = count_redundant(pricing, rank, weights);
}
