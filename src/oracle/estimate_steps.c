/* Seconds of each step: kernels and local moves by the device, exchanges by the links. Control takes none. */
#include "oracle/estimate_internal.h"

bool cvy_step_passes_stages(const cvy_schedule *s, const cvy_step *step)
{
    if (step->kind != CVY_STEP_EXCHANGE) {
        return false;
    }
    const cvy_exchange *exchange = &s->exchange[step->exchange];
    return exchange->messages > 0 && s->message[exchange->first_message].peer_offset[CVY_AXIS_STAGE] != 0;
}

/* Elements are priced as floats in plans; on the wire they have the device's size. */
static double get_wire_factor(const cvy_pricing *pricing, const cvy_schedule *s, const cvy_step *step)
{
    const cvy_buffer *buffer = step->uses ? &s->buffer[s->use[step->first_use].buffer] : NULL;
    bool activation = buffer && buffer->tensor.dtype == CVY_F32;
    return activation ? cvy_compute_element_bytes(pricing->oracle->compute) / (double)sizeof(float) : 1.0;
}

static double count_sent(const cvy_pricing *pricing, const cvy_schedule *s, const cvy_step *step)
{
    const cvy_exchange *exchange = &s->exchange[step->exchange];
    double bytes = step->kind == CVY_STEP_COLLECTIVE ? (double)exchange->bytes : 0.0;
    for (int i = 0; i < exchange->messages; i++) {
        const cvy_message *message = &s->message[exchange->first_message + i];
        bytes += message->receive ? 0.0 : (double)message->bytes;
    }
    return bytes * get_wire_factor(pricing, s, step);
}

/* Gradients of one exchange: how many tensors are packed for it. */
static int count_tensors(const cvy_schedule *s, const cvy_step *step)
{
    int tensors = 0;
    for (int i = 0; i < s->buffers; i++) {
        tensors += s->buffer[i].content == CVY_CONTENT_GRADIENT && s->buffer[i].parameter >= 0 &&
                   cvy_schedule_root(s, i) == cvy_schedule_root(s, s->use[step->first_use].buffer);
    }
    return tensors;
}

/* Sums of input gradients of which the framework exchanges a rank's share alone. */
static bool sums_share(const cvy_pricing *pricing, const cvy_step *step, const cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_exchange *exchange = &s->exchange[step->exchange];
    return pricing->oracle->machine->execution.shard_sums && step->phase == CVY_PHASE_REDISTRIBUTE &&
           step - s->step >= rank->backward && exchange->collective == CVY_COLLECTIVE_ALL_REDUCE &&
           exchange->axes == CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
}

static cvy_network_cost estimate_exchange(cvy_pricing *pricing, const cvy_step *step, const cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_exchange *exchange = &s->exchange[step->exchange];
    cvy_network_cost cost;
    cvy_network_request request = {.collective = exchange->collective,
                                   .axes = exchange->axes,
                                   .traffic = cvy_network_traffic(step->phase, exchange->axes),
                                   .bytes = (double)exchange->bytes * get_wire_factor(pricing, s, step)};
    if (step->kind == CVY_STEP_EXCHANGE) {
        cvy_network_estimate_messages(&pricing->network, s->message + exchange->first_message, exchange->messages,
                                      request.traffic, &cost);
        return cost;
    }
    if (sums_share(pricing, step, rank)) {
        request.bytes /= (double)pricing->distribution->strategy.mesh.size[CVY_AXIS_CHANNEL];
    }
    if (step->phase == CVY_PHASE_GRADIENT_EXCHANGE) {
        request.leaders = cvy_strategy_is_among(pricing->oracle->machine->execution.leader_exchange, pricing->family);
        request.tensors = count_tensors(s, step) * (request.leaders ? 2 : 1); /* leaders pack them once more */
    }
    cvy_network_estimate_collective(&pricing->network, &request, &cost);
    return cost;
}

/* A transfer between stages is laid out with the other stages, not here: its seconds are those of the link. */
static void note_stage_transfer(const cvy_schedule *s, cvy_step *step, cvy_priced_rank *rank)
{
    const cvy_message *message = &s->message[s->exchange[step->exchange].first_message];
    int offset = message->peer_offset[CVY_AXIS_STAGE];
    if (!message->receive && offset > 0) {
        rank->send_s += step->estimate_s;
    } else if (message->receive && offset > 0) {
        rank->return_s += step->estimate_s;
    }
    step->estimate_s = 0.0;
}

/*
 * How far lines of latency and bandwidth may be off: on the machine of the oracle paper those of data sheets are off by
 * half, measured ones by a tenth (docs/accuracy.md).
 */
static double find_line_error(const cvy_network_cost *cost)
{
    return cost->rule && cost->rule->bandwidth_Bps > 0.0 ? 0.1 : 0.5;
}

static void price_exchange(cvy_pricing *pricing, cvy_step *step, cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    cvy_network_cost cost = estimate_exchange(pricing, step, rank);
    cvy_communication *sum = cvy_step_passes_stages(s, step) ? &rank->transfer : &rank->communication[step->phase];
    sum->seconds += cost.seconds;
    sum->latency_s += cost.latency_s;
    sum->bytes += count_sent(pricing, s, step);
    step->estimate_error = find_line_error(&cost);
    step->estimate_s = cost.seconds;
    if (cvy_step_passes_stages(s, step)) {
        note_stage_transfer(s, step, rank);
    }
    rank->error_s += step->estimate_s * step->estimate_error;
}

static void price_kernel(const cvy_pricing *pricing, cvy_step *step, cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_op *op = &s->op[step->op];
    double slices = step->layer >= 0 ? (double)cvy_distribution_slices(pricing->distribution, step->layer) : 1.0;
    cvy_compute_estimate estimate = cvy_compute_estimate_op(pricing->oracle->compute, op, slices);
    step->estimate_s = estimate.seconds;
    step->estimate_error = estimate.error;
    rank->compute_s += estimate.seconds;
    rank->error_s += estimate.seconds * estimate.error;
    rank->flop += cvy_op_flop(op);
}

void cvy_price_steps(cvy_pricing *pricing, cvy_priced_rank *rank)
{
    cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    rank->backward = s->steps;
    for (int i = 0; i < s->steps; i++) {
        cvy_step *step = &s->step[i];
        bool forward = step->phase == CVY_PHASE_IO || step->phase == CVY_PHASE_FORWARD ||
                       step->phase == CVY_PHASE_HALO || step->phase == CVY_PHASE_REDISTRIBUTE;
        if (!forward && rank->backward == s->steps) {
            rank->backward = i;
        }
        if (step->exchange >= 0) {
            price_exchange(pricing, step, rank);
        } else if (step->op >= 0) {
            price_kernel(pricing, step, rank);
        }
    }
}
