/*
 * A pipeline, from the micro-batches of each stage: forwards, backwards, what passes between stages, and the exchange
 * and update at the end, all stages simulated together. Each stage is a stream, and so is each direction between two.
 * What passes runs beside computing; what of it shows is what the same run takes longer than one in which it is free.
 */
#include <inttypes.h>
#include <math.h>

#include "base/memory.h"
#include "oracle/estimate_internal.h"

/* Steps of a stage and micro-batch: forward, backward until its gradient is made, the rest; there, and back. */
enum { AT_FORWARD, AT_BACKWARD, AT_REST, AT_SEND, AT_RETURN, AT_COUNT };

/* A problem under construction. */
typedef struct layout {
    const cvy_priced_rank *stage;
    int stages, micro_batches;
    int larger; /* micro-batches as large as the first */
    cvy_pipeline_order order;
    bool free;  /* what passes takes no time */
    cvy_sim_step *step;
    cvy_dependency *dependency;
    int steps, dependencies;
    int *at[AT_COUNT]; /* of each stage and micro-batch: index of the step */
    int *last;         /* of each stage: its update */
    cvy_trace *trace;  /* takes what the stages do when; NULL: nobody asks */
} layout;

/* Micro-batches of all stages that are laid out, at most: a gigabyte. */
enum { MOST_PAIRS = 4000000 };

/* Append a step to its stream and note where it is. */
static void add_step(layout *l, int what, int stage, int micro_batch, double seconds, int stream)
{
    l->at[what][stage * l->micro_batches + micro_batch] = l->steps;
    l->step[l->steps++] = (cvy_sim_step){.duration_s = seconds, .stream = stream, .join = -1};
}

static void add_forward(layout *l, int s, int m)
{
    int which = m >= l->larger;
    add_step(l, AT_FORWARD, s, m, l->stage[s].forward_s[which], s);
    if (s + 1 < l->stages) {
        add_step(l, AT_SEND, s, m, l->free ? 0.0 : l->stage[s].send_s[which], l->stages + s);
    }
}

/* What goes back goes as soon as it is made; weights' gradients of the stage's first layer may come behind it. */
static void add_backward(layout *l, int s, int m)
{
    const cvy_priced_rank *r = &l->stage[s];
    int which = m >= l->larger;
    double sum = m > 0 ? 1.0 : 0.0, last_s = m == l->micro_batches - 1 ? r->last_s : 0.0;
    add_step(l, AT_BACKWARD, s, m, r->backward_s[which][0] + sum * r->sum_s[0] + last_s, s);
    if (s > 0) {
        add_step(l, AT_RETURN, s, m, l->free ? 0.0 : r->return_s[which], 2 * l->stages - 1 + s - 1);
        add_step(l, AT_REST, s, m, r->backward_s[which][1] + sum * r->sum_s[1], s);
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
    l->last[s] = l->steps;
    l->step[l->steps++] = (cvy_sim_step){.duration_s = l->stage[s].update_s, .stream = s, .join = -1};
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
            wait_for(l, l->at[AT_RETURN][next], l->at[AT_BACKWARD][next]);
            wait_for(l, l->at[AT_BACKWARD][here], l->at[AT_RETURN][next]);
        }
    }
}

static cvy_status start_layout(layout *l)
{
    size_t pairs = (size_t)l->stages * (size_t)l->micro_batches;
    l->step = cvy_calloc(AT_COUNT * pairs + (size_t)l->stages, sizeof *l->step);
    l->dependency = cvy_calloc(4 * pairs + 1, sizeof *l->dependency);
    l->last = cvy_calloc((size_t)l->stages, sizeof *l->last);
    bool whole = l->step && l->dependency && l->last;
    for (int i = 0; i < AT_COUNT; i++) {
        l->at[i] = cvy_calloc(pairs, sizeof *l->at[i]);
        whole = whole && l->at[i];
    }
    return whole ? CVY_OK : CVY_ERR_MEMORY;
}

static void clear_layout(layout *l)
{
    cvy_free(l->step);
    cvy_free(l->dependency);
    cvy_free(l->last);
    for (int i = 0; i < AT_COUNT; i++) {
        cvy_free(l->at[i]);
    }
}

/* What the stages do when, of the run that was laid out last. */
static cvy_status note_slices(const layout *l, const cvy_simulated *run, cvy_trace *trace)
{
    const int pairs = l->stages * l->micro_batches;
    trace->slice = cvy_calloc((size_t)pairs * CVY_STAGE_UPDATE + (size_t)l->stages, sizeof *trace->slice);
    if (!trace->slice) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < pairs; i++) {
        for (int what = AT_FORWARD; what <= AT_REST; what++) {
            int step = l->at[what][i], stage = i / l->micro_batches;
            if (what != AT_REST || stage > 0) { /* the first stage sends nothing back, and has it in one */
                trace->slice[trace->slices++] = (cvy_stage_slice){
                    stage, i % l->micro_batches, (cvy_stage_work)what, run->start_s[step], run->end_s[step]};
            }
        }
    }
    for (int s = 0; s < l->stages; s++) {
        int step = l->last[s];
        trace->slice[trace->slices++] =
            (cvy_stage_slice){s, 0, CVY_STAGE_UPDATE, run->start_s[step], run->end_s[step]};
    }
    return CVY_OK;
}

static cvy_status lay_out(layout *l, cvy_simulator *simulator, bool free, double *makespan_s)
{
    cvy_simulated run;
    l->free = free;
    l->steps = l->dependencies = 0;
    for (int s = 0; s < l->stages; s++) {
        add_stage(l, s);
    }
    add_waits(l);
    cvy_simulation simulation = {.steps = l->steps, .dependencies = l->dependencies, .streams = 3 * l->stages - 2,
                                 .step = l->step, .dependency = l->dependency};
    CVY_TRY(cvy_simulator_run(simulator, &simulation, 1, &run));
    *makespan_s = run.makespan_s;
    return l->trace && !free ? note_slices(l, &run, l->trace) : CVY_OK;
}

/* Seconds that a stage computes, or exchanges what its ranks wait for. */
static double get_busy_s(const cvy_priced_rank *r)
{
    return r->iteration_s - r->part_s[CVY_PHASE_IO] - r->part_s[CVY_TIME_WAIT];
}

/* Seconds by part of the stage that is busiest; what it does not do is bubble. */
static void fill_parts(const layout *l, double makespan_s, double free_s, cvy_estimate *estimate)
{
    double sum = 0.0;
    const cvy_priced_rank *slowest = l->stage;
    for (int s = 0; s < l->stages; s++) {
        sum += get_busy_s(&l->stage[s]);
        slowest = get_busy_s(&l->stage[s]) > get_busy_s(slowest) ? &l->stage[s] : slowest;
    }
    for (int part = 0; part < CVY_TIME_PARTS; part++) {
        estimate->part_s[part] = slowest->part_s[part];
    }
    double busy = get_busy_s(slowest), passing = slowest->transfer.seconds;
    estimate->transfer_s = fmax(makespan_s - free_s, 0.0);
    estimate->part_s[CVY_PHASE_REDISTRIBUTE] += estimate->transfer_s;
    estimate->part_s[CVY_TIME_BUBBLE] = fmax(free_s - busy, 0.0);
    estimate->iteration_s = slowest->iteration_s + estimate->transfer_s + estimate->part_s[CVY_TIME_BUBBLE];
    estimate->hidden_communication_s = slowest->hidden_s + fmax(passing - estimate->transfer_s, 0.0);
    estimate->balance = sum > 0.0 ? busy / (sum / l->stages) - 1.0 : 0.0;
    estimate->steps = slowest->plan->schedule[CVY_SCHEDULE_TRAIN].steps;
}

cvy_status cvy_price_pipeline(const cvy_pricing *pricing, const cvy_priced_rank *stages, cvy_estimate *estimate)
{
    layout l = {.stage = stages,
                .stages = pricing->stages,
                .micro_batches = (int)pricing->micro_batches,
                .larger = (int)pricing->larger,
                .order = pricing->question->strategy.pipeline,
                .trace = pricing->trace};
    double makespan_s = 0.0, free_s = 0.0;
    CVY_REQUIRE(pricing->micro_batches <= MOST_PAIRS / pricing->stages, CVY_ERR_INFEASIBLE,
                "%" PRId64 " micro-batches in %d stages are too many to simulate", pricing->micro_batches,
                pricing->stages);
    cvy_status status = start_layout(&l);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, lay_out(&l, pricing->oracle->simulator, false, &makespan_s));
    CVY_TRY_GOTO(status, done, lay_out(&l, pricing->oracle->simulator, true, &free_s));
    fill_parts(&l, makespan_s, free_s, estimate);
done:
    clear_layout(&l);
    return status;
}
