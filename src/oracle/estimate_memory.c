/*
 * Memory of a rank. On one rank it is the plan's, to the byte. A stage that holds several micro-batches keeps for each
 * what lives from its forward into its backward. Types: plans are of floats; at another precision activations and
 * gradients have the device's size, and half precision trains copies of weights that stay floats.
 */
#include "oracle/estimate_internal.h"

#include "base/checked.h"

int64_t cvy_pipeline_in_flight(const cvy_strategy *strategy, int64_t micro_batches, int64_t stage)
{
    int64_t ahead = strategy->mesh.size[CVY_AXIS_STAGE] - stage;
    return strategy->pipeline == CVY_PIPELINE_GPIPE ? micro_batches : cvy_min_i64(micro_batches, ahead);
}

/* Bytes of transient buffers that are written before backward and read in it. */
static int64_t count_kept(const cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    int64_t kept = 0;
    for (int i = 0; i < s->buffers; i++) {
        const cvy_buffer *buffer = &s->buffer[i];
        bool lives_over = !buffer->persistent && buffer->alias_of < 0 && buffer->first_step < rank->backward &&
                          buffer->last_step >= rank->backward;
        kept += lives_over ? buffer->bytes : 0;
    }
    return kept;
}

static int64_t scale(int64_t bytes, double factor) { return factor == 1.0 ? bytes : (int64_t)((double)bytes * factor); }

/* What other ranks hold, too: weights, gradients and state, along the sample axis and those of space. */
static int64_t count_redundant(const cvy_pricing *pricing, const cvy_estimate *estimate)
{
    const int64_t *size = pricing->distribution->strategy.mesh.size;
    int64_t shared = estimate->memory_bytes[CVY_BUFFER_WEIGHTS] + estimate->memory_bytes[CVY_BUFFER_GRADIENTS];
    shared += pricing->oracle->options.shard_optimizer ? 0 : estimate->memory_bytes[CVY_BUFFER_OPTIMIZER];
    int64_t space = size[CVY_AXIS_DEPTH] * size[CVY_AXIS_HEIGHT] * size[CVY_AXIS_WIDTH];
    return size[CVY_AXIS_SAMPLE] * space > 1 ? shared : 0;
}

void cvy_price_memory(const cvy_pricing *pricing, const cvy_priced_rank *rank, int64_t in_flight,
                      cvy_estimate *estimate)
{
    const cvy_machine *machine = pricing->oracle->machine;
    double factor = cvy_compute_element_bytes(pricing->oracle->compute) /
                    (pricing->oracle->options.precision == CVY_PRECISION_FP64 ? 8.0 : 4.0);
    int64_t *bytes = estimate->memory_bytes;
    cvy_plan_memory(rank->plan, bytes);
    bytes[CVY_BUFFER_ACTIVATIONS] += (in_flight - 1) * count_kept(rank);
    bytes[CVY_BUFFER_ACTIVATIONS] = scale(bytes[CVY_BUFFER_ACTIVATIONS], factor);
    bytes[CVY_BUFFER_GRADIENTS] = scale(bytes[CVY_BUFFER_GRADIENTS], factor);
    bytes[CVY_BUFFER_WORKSPACE] = scale(bytes[CVY_BUFFER_WORKSPACE], factor);
    bytes[CVY_BUFFER_COMMUNICATION] = scale(bytes[CVY_BUFFER_COMMUNICATION], factor);
    bytes[CVY_BUFFER_WEIGHTS] = scale(bytes[CVY_BUFFER_WEIGHTS], factor < 1.0 ? 1.0 + factor : 1.0);
    bytes[CVY_MEMORY_CHECKPOINT] = 0; /* written from the host, a tensor at a time */
    bytes[CVY_MEMORY_RUNTIME] = machine->execution.reserved_bytes;
    estimate->total_bytes = 0;
    for (int i = 0; i < CVY_MEMORY_PARTS; i++) {
        estimate->total_bytes += bytes[i];
    }
    estimate->transient_bytes = rank->plan->transient_bytes;
    estimate->live_bytes = rank->plan->schedule[CVY_SCHEDULE_TRAIN].memory.live_bytes;
    estimate->redundant_bytes = count_redundant(pricing, estimate);
    estimate->capacity_bytes = machine->device.memory_bytes;
}
