/* Seconds of each step: kernels and local moves by the device, exchanges by the links. Control takes none. */
#include <math.h>

#include "base/memory.h"
#include "oracle/distance.h"
#include "oracle/estimate_internal.h"

/* Give an array room for more; what was in it is lost. */
static cvy_status make_room(void **array, int *room, int count, size_t size)
{
    if (count > *room) {
        cvy_free(*array);
        *room = 0;
        *array = cvy_calloc((size_t)count, size);
        if (!*array) {
            return CVY_ERR_MEMORY;
        }
        *room = count;
    }
    return CVY_OK;
}

/* Plans are of floats; activations and gradients have the device's size on the wire, statistics stay floats. */
static double get_wire_factor(const cvy_pricing *pricing, const cvy_schedule *s, const cvy_step *step)
{
    const cvy_buffer *buffer = &s->buffer[s->use[step->first_use].buffer];
    bool counts = buffer->tensor.dtype == CVY_F32 && buffer->content != CVY_CONTENT_SAVED;
    return counts ? cvy_compute_element_bytes(pricing->oracle->compute) / (double)sizeof(float) : 1.0;
}

/*
 * Of each buffer, the parameters whose gradients lie on its memory: what a framework packs to exchange that. A gradient
 * in several formats counts once.
 */
static cvy_status count_tensors(cvy_oracle *o, const cvy_schedule *s)
{
    int parameters = o->model->parameters;
    void *room = o->tensors;
    cvy_status status = make_room(&room, &o->tensor_buffers, s->buffers + parameters, sizeof *o->tensors);
    o->tensors = room;
    CVY_TRY(status);
    int *last = o->tensors + s->buffers; /* where the parameter's gradient was found, and 1 */
    for (int i = 0; i < s->buffers + parameters; i++) {
        o->tensors[i] = 0;
    }
    for (int i = 0; i < s->buffers; i++) {
        const cvy_buffer *buffer = &s->buffer[i];
        int root = cvy_schedule_root(s, i);
        if (buffer->content == CVY_CONTENT_GRADIENT && buffer->parameter >= 0 && last[buffer->parameter] != root + 1) {
            last[buffer->parameter] = root + 1;
            o->tensors[root]++;
        }
    }
    return CVY_OK;
}

/* Sums of input gradients of which the framework exchanges a rank's share alone. */
static bool sums_share(const cvy_pricing *pricing, const cvy_step *step, const cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_exchange *exchange = &s->exchange[step->exchange];
    return pricing->oracle->machine->execution.shard_sums && step->phase == CVY_PHASE_REDISTRIBUTE &&
           !rank->forward[step - s->step] && exchange->collective == CVY_COLLECTIVE_ALL_REDUCE &&
           exchange->axes == CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
}

/* Messages with the bytes that they have on the wire. */
static cvy_status estimate_messages(cvy_pricing *pricing, const cvy_step *step, const cvy_schedule *s,
                                    cvy_network_cost *cost)
{
    cvy_oracle *o = pricing->oracle;
    const cvy_exchange *exchange = &s->exchange[step->exchange];
    double factor = get_wire_factor(pricing, s, step);
    void *room = o->message;
    cvy_status status = make_room(&room, &o->messages, exchange->messages, sizeof *o->message);
    o->message = room;
    CVY_TRY(status);
    for (int i = 0; i < exchange->messages; i++) {
        o->message[i] = s->message[exchange->first_message + i];
        o->message[i].bytes = (int64_t)((double)o->message[i].bytes * factor);
    }
    cvy_network_estimate_messages(&pricing->network, o->message, exchange->messages,
                                  cvy_network_traffic(step->phase, exchange->axes), cost);
    return CVY_OK;
}

static void estimate_collective(cvy_pricing *pricing, const cvy_step *step, const cvy_priced_rank *rank, double bytes,
                                cvy_network_cost *cost)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_exchange *exchange = &s->exchange[step->exchange];
    cvy_network_request request = {.collective = exchange->collective,
                                   .axes = exchange->axes,
                                   .traffic = cvy_network_traffic(step->phase, exchange->axes),
                                   .bytes = bytes};
    if (step->phase == CVY_PHASE_GRADIENT_EXCHANGE) {
        int root = cvy_schedule_root(s, s->use[step->first_use].buffer);
        request.leaders = cvy_strategy_is_among(pricing->oracle->machine->execution.leader_exchange, pricing->family);
        request.tensors = pricing->oracle->tensors[root] * (request.leaders ? 2 : 1); /* leaders pack once more */
    }
    cvy_network_estimate_collective(&pricing->network, &request, cost);
}

/* Bytes that one rank sends: of messages those that go out; of collectives as cvy_exchange counts them. */
static double count_bytes(const cvy_pricing *pricing, const cvy_step *step, const cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_exchange *exchange = &s->exchange[step->exchange];
    double bytes = (double)exchange->bytes * get_wire_factor(pricing, s, step);
    double parts = (double)pricing->distribution->strategy.mesh.size[CVY_AXIS_CHANNEL];
    return sums_share(pricing, step, rank) ? bytes / parts : bytes;
}

/*
 * How far lines of latency and bandwidth may be off: on the machine of the oracle paper those of data sheets are off by
 * half, measured ones by a tenth (docs/accuracy.md).
 */
static double find_line_error(const cvy_network_cost *cost)
{
    return cost->rule && cost->rule->bandwidth_Bps > 0.0 ? 0.1 : 0.5;
}

/* Whether a step receives from another stage: what passes is noted where it is sent, so that it counts once. */
static bool receives_from_stage(const cvy_schedule *s, const cvy_step *step)
{
    return cvy_step_passes_stage(s, step) && s->message[s->exchange[step->exchange].first_message].receive;
}

static void note_transfer(const cvy_schedule *s, const cvy_step *step, double burst_s, cvy_priced_rank *rank)
{
    const bool forward = cvy_step_passes_forward(s, step);
    const int which = step->micro_batch > 0;
    (forward ? rank->send_s : rank->return_s)[which] += step->estimate_s;
    (forward ? rank->send_burst_s : rank->return_burst_s)[which] += burst_s;
}

static cvy_communication *find_sum(const cvy_schedule *s, const cvy_step *step, cvy_priced_rank *rank)
{
    return cvy_step_passes_stage(s, step) ? &rank->transfer : &rank->communication[step->phase];
}

static cvy_status price_exchange(cvy_pricing *pricing, cvy_step *step, cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_machine *machine = pricing->oracle->machine;
    double times = rank->times[step - s->step], bytes = count_bytes(pricing, step, rank);
    cvy_communication *sum = find_sum(s, step, rank);
    cvy_network_cost cost;
    if (step->kind == CVY_STEP_EXCHANGE) {
        CVY_TRY(estimate_messages(pricing, step, s, &cost));
    } else {
        estimate_collective(pricing, step, rank, bytes, &cost);
    }
    bool saves = cost.level >= 0 && machine->level[cost.level].burst_bytes > 0;
    sum->latency_s += cost.latency_s * times;
    sum->bytes += bytes * times;
    step->estimate_s = cost.seconds;
    step->estimate_error = find_line_error(&cost);
    pricing->oracle->burst_s[step - s->step] = saves ? cost.bytes_s : 0.0;
    return CVY_OK;
}

double cvy_machine_bucket(const cvy_machine *machine)
{
    double full_s = 0.0;
    for (int i = 0; i < machine->levels; i++) {
        full_s = fmax(full_s, (double)machine->level[i].burst_bytes / machine->level[i].bandwidth_Bps);
    }
    return full_s;
}

/*
 * Links that save up while nothing is sent (a token bucket) carry that at once, beyond their rate. Steps are walked in
 * their order: each kernel saves up its own time, to no more than the bucket holds; an exchange spends it. The first
 * walk finds what an iteration leaves to the next. What passes between stages is walked in estimate_pipeline.c.
 */
static void spend_burst(cvy_pricing *pricing, cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const double *burst_s = pricing->oracle->burst_s, full_s = cvy_machine_bucket(pricing->oracle->machine);
    double saved_s = 0.0;
    for (int i = 0; i < 2 * s->steps && full_s > 0.0; i++) {
        cvy_step *step = &s->step[i % s->steps];
        double spent_s = cvy_step_passes_stage(s, step) ? 0.0 : fmin(saved_s, burst_s[i % s->steps]);
        saved_s -= spent_s;
        if (step->exchange < 0) {
            saved_s = fmin(full_s, saved_s + step->estimate_s);
        } else if (i >= s->steps) {
            step->estimate_s -= spent_s;
        }
    }
}

static void note_exchange(const cvy_pricing *pricing, cvy_step *step, cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    find_sum(s, step, rank)->seconds += step->estimate_s * rank->times[step - s->step];
    if (cvy_step_passes_stage(s, step)) {
        note_transfer(s, step, pricing->oracle->burst_s[step - s->step], rank);
    }
}

/*
 * How many times as long kernels take here as one by one: all devices of the machine share what they share when they
 * compute at once; fewer, or stages that wait for each other, in proportion less.
 */
static double find_lockstep(const cvy_pricing *pricing)
{
    const cvy_machine *machine = pricing->oracle->machine;
    double devices = (double)cvy_machine_devices(machine);
    double ranks = (double)pricing->distribution->strategy.mesh.ranks;
    double parts = (double)pricing->micro_batches, stages = (double)pricing->stages;
    double busy = stages > 1.0 ? ranks * parts / (parts + stages - 1.0) : ranks;
    double others = devices > 1.0 ? fmin(1.0, fmax(0.0, busy - 1.0) / (devices - 1.0)) : 0.0;
    return 1.0 + fmax(0.0, machine->execution.lockstep - 1.0) * others;
}

static cvy_status make_sources(cvy_oracle *o, const cvy_schedule *s)
{
    void *room = o->source;
    cvy_status status = make_room(&room, &o->source_steps, s->steps, sizeof *o->source);
    o->source = room;
    return status;
}

/* Where nobody looks at them, they are not asked for. */
static cvy_status find_distances(cvy_oracle *o, const cvy_schedule *s)
{
    void *room = o->distance;
    cvy_status status = make_room(&room, &o->distances, s->steps, sizeof *o->distance);
    o->distance = room;
    CVY_TRY(status);
    if (cvy_compute_sees_distances(o->compute)) {
        return cvy_schedule_distances(s, o->distance);
    }
    for (int i = 0; i < s->steps; i++) {
        o->distance[i] = 0.0;
    }
    return CVY_OK;
}

static void price_kernel(const cvy_pricing *pricing, double lockstep, cvy_step *step, cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_op *op = &s->op[step->op];
    double slices = step->layer >= 0 ? (double)cvy_distribution_slices(pricing->distribution, step->layer) : 1.0;
    cvy_compute_estimate estimate = cvy_compute_estimate_op(pricing->oracle->compute, op, slices,
                                                            pricing->oracle->distance[step - s->step]);
    step->estimate_s = estimate.seconds * lockstep;
    step->estimate_error = cvy_error_bar(&estimate);
    pricing->oracle->source[step - s->step] = estimate.source;
    rank->compute_s += step->estimate_s * rank->times[step - s->step];
    rank->flop += cvy_op_flop(op) * rank->times[step - s->step];
}

cvy_status cvy_price_steps(cvy_pricing *pricing, cvy_priced_rank *rank)
{
    cvy_oracle *o = pricing->oracle;
    cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    double lockstep = find_lockstep(pricing);
    void *room = o->burst_s;
    cvy_status status = make_room(&room, &o->burst_steps, s->steps, sizeof *o->burst_s);
    o->burst_s = room;
    CVY_TRY(status);
    CVY_TRY(count_tensors(o, s));
    CVY_TRY(make_sources(o, s));
    CVY_TRY(find_distances(o, s));
    for (int i = 0; i < s->steps; i++) {
        cvy_step *step = &s->step[i];
        o->burst_s[i] = 0.0;
        if (step->exchange >= 0 && !receives_from_stage(s, step)) {
            CVY_TRY(price_exchange(pricing, step, rank));
        } else if (step->exchange < 0 && step->op >= 0) {
            price_kernel(pricing, lockstep, step, rank);
        }
    }
    spend_burst(pricing, rank);
    for (int i = 0; i < s->steps; i++) {
        if (s->step[i].exchange >= 0 && !receives_from_stage(s, &s->step[i])) {
            note_exchange(pricing, &s->step[i], rank);
        }
    }
    return CVY_OK;
}
