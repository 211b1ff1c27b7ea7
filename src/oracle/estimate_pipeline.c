/*
 * A pipeline, from one micro-batch of each stage: forwards, backwards, what passes between stages, and the exchange and
 * update at the end, all stages simulated together. Each stage is a stream, and so is each direction between two.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "oracle/estimate_internal.h"

/* A problem under construction. Steps of a stage and micro-batch: forward, backward, the way there and the way back. */
typedef struct layout {
    const cvy_priced_rank *stage;
    int stages, micro_batches;
    cvy_pipeline_order order;
    cvy_sim_step *step;
    cvy_dependency *dependency;
    int steps, dependencies;
    int *at[4]; /* of each stage and micro-batch: index of the step; -1 */
} layout;

enum { AT_FORWARD, AT_BACKWARD, AT_SEND, AT_RETURN };

static double get_update_s(const cvy_priced_rank *r)
{
    return r->part_s[CVY_PHASE_GRADIENT_EXCHANGE] + r->part_s[CVY_PHASE_UPDATE];
}

static double get_backward_s(const cvy_priced_rank *r)
{
    double rest = r->iteration_s - r->forward_s - get_update_s(r) - r->part_s[CVY_TIME_WAIT] - r->part_s[CVY_PHASE_IO];
    return rest > 0.0 ? rest : 0.0;
}

/* Append a step to its stream and note where it is. */
static void add_step(layout *l, int what, int stage, int micro_batch, double seconds, int stream)
{
    l->at[what][stage * l->micro_batches + micro_batch] = l->steps;
    l->step[l->steps++] = (cvy_sim_step){.duration_s = seconds, .stream = stream, .join = -1};
}

static void add_forward(layout *l, int s, int m)
{
    add_step(l, AT_FORWARD, s, m, l->stage[s].forward_s, s);
    if (s + 1 < l->stages) {
        add_step(l, AT_SEND, s, m, l->stage[s].send_s, l->stages + s);
    }
}

static void add_backward(layout *l, int s, int m)
{
    add_step(l, AT_BACKWARD, s, m, get_backward_s(&l->stage[s]), s);
    if (s > 0) {
        add_step(l, AT_RETURN, s - 1, m, l->stage[s - 1].return_s, 2 * l->stages - 1 + s - 1);
    }
}

/* The order in which a stage takes its micro-batches; the update closes it. */
static void add_stage(layout *l, int s)
{
    int ahead = l->order == CVY_PIPELINE_GPIPE ? l->micro_batches : l->stages - 1 - s;
    int warm = ahead < l->micro_batches ? ahead : l->micro_batches;
    for (int m = 0; m < warm; m++) {
        add_forward(l, s, m);
    }
    for (int m = warm; m < l->micro_batches; m++) {
        add_forward(l, s, m);
        add_backward(l, s, m - warm);
    }
    for (int m = l->micro_batches - warm; m < l->micro_batches; m++) {
        add_backward(l, s, m);
    }
    l->step[l->steps++] = (cvy_sim_step){.duration_s = get_update_s(&l->stage[s]), .stream = s, .join = -1};
}

/* Let a step wait for another; each waits for one at most, besides its stream. */
static void wait_for(layout *l, int step, int on)
{
    l->step[step].first_dependency = l->dependencies;
    l->step[step].dependencies = 1;
    l->dependency[l->dependencies++] = (cvy_dependency){.step = on};
}

/* What passes between stages waits for who makes it, and who takes it for what passes. */
static void add_waits(layout *l)
{
    for (int s = 0; s + 1 < l->stages; s++) {
        for (int m = 0; m < l->micro_batches; m++) {
            int here = s * l->micro_batches + m, next = here + l->micro_batches;
            wait_for(l, l->at[AT_SEND][here], l->at[AT_FORWARD][here]);
            wait_for(l, l->at[AT_FORWARD][next], l->at[AT_SEND][here]);
            wait_for(l, l->at[AT_RETURN][here], l->at[AT_BACKWARD][next]);
            wait_for(l, l->at[AT_BACKWARD][here], l->at[AT_RETURN][here]);
        }
    }
}

static cvy_status start_layout(layout *l)
{
    size_t pairs = (size_t)l->stages * (size_t)l->micro_batches;
    l->step = cvy_calloc(4 * pairs + (size_t)l->stages, sizeof *l->step);
    l->dependency = cvy_calloc(4 * pairs + 1, sizeof *l->dependency);
    bool whole = l->step && l->dependency;
    for (int i = 0; i < 4; i++) {
        l->at[i] = cvy_calloc(pairs, sizeof *l->at[i]);
        whole = whole && l->at[i];
    }
    return whole ? CVY_OK : CVY_ERR_MEMORY;
}

static void clear_layout(layout *l)
{
    cvy_free(l->step);
    cvy_free(l->dependency);
    for (int i = 0; i < 4; i++) {
        cvy_free(l->at[i]);
    }
}

static double get_busy_s(const cvy_priced_rank *r, int64_t micro_batches)
{
    return (double)micro_batches * (r->forward_s + get_backward_s(r)) + get_update_s(r);
}

/* Seconds by part of the stage that is busiest; what it does not do is bubble. */
static void fill_parts(const layout *l, double makespan_s, cvy_estimate *estimate)
{
    double sum = 0.0, busy = 0.0, passing = 0.0;
    const cvy_priced_rank *slowest = l->stage;
    for (int s = 0; s < l->stages; s++) {
        double own = get_busy_s(&l->stage[s], l->micro_batches);
        sum += own;
        slowest = own > busy ? &l->stage[s] : slowest;
        busy = own > busy ? own : busy;
        passing += l->stage[s].send_s + l->stage[s].return_s;
    }
    for (int part = 0; part < CVY_TIME_PARTS; part++) {
        bool once = part == CVY_PHASE_GRADIENT_EXCHANGE || part == CVY_PHASE_UPDATE || part == CVY_TIME_WAIT ||
                    part == CVY_PHASE_IO;
        estimate->part_s[part] = slowest->part_s[part] * (once ? 1.0 : (double)l->micro_batches);
    }
    double idle = makespan_s > busy ? makespan_s - busy : 0.0;
    estimate->transfer_s = passing < idle ? passing : idle; /* the first micro-batch's way there, the last one's back */
    estimate->part_s[CVY_PHASE_REDISTRIBUTE] += estimate->transfer_s;
    estimate->part_s[CVY_TIME_BUBBLE] = idle - estimate->transfer_s;
    estimate->iteration_s = makespan_s + slowest->part_s[CVY_PHASE_IO] +
                            slowest->part_s[CVY_TIME_WAIT] * (double)l->micro_batches;
    estimate->part_s[CVY_TIME_WAIT] *= (double)l->micro_batches;
    estimate->balance = sum > 0.0 ? busy / (sum / l->stages) - 1.0 : 0.0;
}

cvy_status cvy_price_pipeline(const cvy_pricing *pricing, const cvy_priced_rank *stages, int count,
                              cvy_estimate *estimate)
{
    layout l = {.stage = stages,
                .stages = count,
                .micro_batches = (int)pricing->in_flight_parts,
                .order = pricing->question->strategy.pipeline};
    cvy_simulated run;
    cvy_status status = start_layout(&l);
    CVY_TRY_GOTO(status, done, status);
    for (int s = 0; s < count; s++) {
        add_stage(&l, s);
    }
    add_waits(&l);
    cvy_simulation simulation = {.steps = l.steps, .dependencies = l.dependencies, .streams = 3 * count - 2,
                                 .step = l.step, .dependency = l.dependency};
    CVY_TRY_GOTO(status, done, cvy_simulator_run(pricing->oracle->simulator, &simulation, 1, &run));
    fill_parts(&l, run.makespan_s, estimate);
done:
    clear_layout(&l);
    return status;
}
