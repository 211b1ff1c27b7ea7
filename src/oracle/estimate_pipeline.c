/*
 * A pipeline, from the micro-batches of each stage: forwards, backwards, what passes between stages, and the exchange
 * and update at the end, all stages simulated together. Each stage is a stream, and so is each direction between two.
 * What passes runs beside computing; what of it shows is what the same run takes longer than one in which it is free.
 *
 * Each direction may save up while nothing is sent (a token bucket). An iteration begins with what the one before has
 * left, so it is laid out again until one leaves what it began with.
 *
 * Once a pipeline is full each further micro-batch takes as long as the one before: times are maxima of sums, whose
 * growth becomes even. So of many thousands that are alike some are laid out, and the rest follow along a line.
 */
#include <inttypes.h>
#include <math.h>

#include "base/checked.h"
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
    bool meets; /* what passes begins when both stages have come to it */
    double bucket_s, *saved_s; /* of links; of each stream, what is left of an iteration */
    cvy_sim_step *step;
    cvy_dependency *dependency;
    int steps, dependencies;
    int *at[AT_COUNT]; /* of each stage and micro-batch: index of the step */
    int *before[2];    /* of each, what its stage does before forward and backward; -1: nothing */
    int computed;      /* what the stage under construction did last; -1 */
    int *last;         /* of each stage: its update */
    cvy_trace *trace;  /* takes what the stages do when; NULL: nobody asks */
} layout;

/*
 * Micro-batches of all stages that are laid out: at most, a gigabyte; of many as few as an estimate that is one of
 * hundreds may have, but enough to fill the pipeline several times.
 */
enum { MOST_PAIRS = 4000000, MANY_PAIRS = 32768, FILLS = 8 };

/* Append what a stage computes, and note where it is and what it comes behind. */
static void add_work(layout *l, int what, int stage, int micro_batch, double seconds)
{
    int place = stage * l->micro_batches + micro_batch;
    l->at[what][place] = l->steps;
    if (what <= AT_BACKWARD) {
        l->before[what][place] = l->computed;
    }
    l->computed = l->steps;
    l->step[l->steps++] = (cvy_sim_step){.duration_s = seconds, .stream = stage, .join = -1};
}

/* Append what passes to the stage after, or back to the one before, on the stream of that direction. */
static void add_passing(layout *l, int what, int stage, int micro_batch)
{
    const cvy_priced_rank *r = &l->stage[stage];
    bool there = what == AT_SEND;
    int which = micro_batch >= l->larger;
    double seconds = there ? r->send_s[which] : r->return_s[which];
    double burst_s = there ? r->send_burst_s[which] : r->return_burst_s[which];
    l->at[what][stage * l->micro_batches + micro_batch] = l->steps;
    l->step[l->steps++] = (cvy_sim_step){.duration_s = l->free ? 0.0 : seconds,
                                         .burst_s = l->free ? 0.0 : burst_s,
                                         .stream = there ? l->stages + stage : 2 * l->stages - 1 + stage - 1,
                                         .join = -1};
}

static void add_forward(layout *l, int s, int m)
{
    add_work(l, AT_FORWARD, s, m, l->stage[s].forward_s[m >= l->larger]);
    if (s + 1 < l->stages) {
        add_passing(l, AT_SEND, s, m);
    }
}

/* What goes back goes as soon as it is made; weights' gradients of the stage's first layer may come behind it. */
static void add_backward(layout *l, int s, int m)
{
    const cvy_priced_rank *r = &l->stage[s];
    int which = m >= l->larger;
    double sum = m > 0 ? 1.0 : 0.0, last_s = m == l->micro_batches - 1 ? r->last_s : 0.0;
    add_work(l, AT_BACKWARD, s, m, r->backward_s[which][0] + sum * r->sum_s[0] + last_s);
    if (s > 0) {
        add_passing(l, AT_RETURN, s, m);
        add_work(l, AT_REST, s, m, r->backward_s[which][1] + sum * r->sum_s[1]);
    }
}

/* The order in which a stage takes its micro-batches; the update closes it. */
static void add_stage(layout *l, int s)
{
    int ahead = l->order == CVY_PIPELINE_GPIPE ? l->micro_batches : l->stages - 1 - s;
    int warm = ahead < l->micro_batches ? ahead : l->micro_batches;
    l->computed = -1;
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

/* Let a step wait for others besides its stream: for one that is made, and for one that the taker does before; -1. */
static void wait_for(layout *l, int step, int made, int before)
{
    l->step[step].first_dependency = l->dependencies;
    l->dependency[l->dependencies++] = (cvy_dependency){.step = made};
    if (before >= 0) {
        l->dependency[l->dependencies++] = (cvy_dependency){.step = before};
    }
    l->step[step].dependencies = l->dependencies - l->step[step].first_dependency;
}

/*
 * What passes between stages waits for who makes it, and who takes it for what passes. Convoy asks for what comes where
 * it is needed next, and MPI sends all but small messages no sooner than they are asked for (rendezvous).
 */
static void add_waits(layout *l)
{
    for (int s = 0; s + 1 < l->stages; s++) {
        for (int m = 0; m < l->micro_batches; m++) {
            int here = s * l->micro_batches + m, next = here + l->micro_batches;
            int there = l->meets ? l->before[AT_FORWARD][next] : -1;
            int back = l->meets ? l->before[AT_BACKWARD][here] : -1;
            wait_for(l, l->at[AT_SEND][here], l->at[AT_FORWARD][here], there);
            wait_for(l, l->at[AT_FORWARD][next], l->at[AT_SEND][here], -1);
            wait_for(l, l->at[AT_RETURN][next], l->at[AT_BACKWARD][next], back);
            wait_for(l, l->at[AT_BACKWARD][here], l->at[AT_RETURN][next], -1);
        }
    }
}

static cvy_status start_layout(layout *l)
{
    size_t pairs = (size_t)l->stages * (size_t)l->micro_batches;
    l->step = cvy_calloc(AT_COUNT * pairs + (size_t)l->stages, sizeof *l->step);
    l->dependency = cvy_calloc(6 * pairs + 1, sizeof *l->dependency);
    l->last = cvy_calloc((size_t)l->stages, sizeof *l->last);
    l->saved_s = cvy_calloc(3 * (size_t)l->stages, sizeof *l->saved_s);
    bool whole = l->step && l->dependency && l->last && l->saved_s;
    for (int i = 0; i < AT_COUNT; i++) {
        l->at[i] = cvy_calloc(pairs, sizeof *l->at[i]);
        whole = whole && l->at[i];
    }
    for (int i = 0; i < 2; i++) {
        l->before[i] = cvy_calloc(pairs, sizeof *l->before[i]);
        whole = whole && l->before[i];
    }
    return whole ? CVY_OK : CVY_ERR_MEMORY;
}

static void clear_layout(layout *l)
{
    cvy_free(l->step);
    cvy_free(l->dependency);
    cvy_free(l->last);
    cvy_free(l->saved_s);
    for (int i = 0; i < AT_COUNT; i++) {
        cvy_free(l->at[i]);
    }
    for (int i = 0; i < 2; i++) {
        cvy_free(l->before[i]);
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
                                 .step = l->step, .dependency = l->dependency, .bucket_s = l->bucket_s,
                                 .saved_s = l->bucket_s > 0.0 && !free ? l->saved_s : NULL};
    CVY_TRY(cvy_simulator_run(simulator, &simulation, 1, &run));
    *makespan_s = run.makespan_s;
    return l->trace && !free ? note_slices(l, &run, l->trace) : CVY_OK;
}

/* Iterations one behind the other, until links have saved up what they do; the mean of the second half of them. */
static cvy_status lay_out_settled(layout *l, cvy_simulator *simulator, double *makespan_s)
{
    enum { ROUNDS = 8 };
    cvy_trace *trace = l->trace;
    double sum_s = 0.0;
    for (int i = l->bucket_s > 0.0 ? 0 : ROUNDS - 1; i < ROUNDS; i++) {
        l->trace = i == ROUNDS - 1 ? trace : NULL;
        CVY_TRY(lay_out(l, simulator, false, makespan_s));
        sum_s += i >= ROUNDS / 2 ? *makespan_s : 0.0;
    }
    *makespan_s = l->bucket_s > 0.0 ? sum_s / (ROUNDS / 2) : *makespan_s;
    return CVY_OK;
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

/* Of an iteration: as long as it takes, and as it would if what passes were free. */
typedef struct makespans {
    double real_s, free_s;
} makespans;

/* Lay out an iteration of so many micro-batches as large as the first, and others. */
static cvy_status measure(layout *l, cvy_simulator *simulator, int64_t larger, int64_t smaller, makespans *made_out)
{
    l->larger = (int)larger;
    l->micro_batches = (int)(larger + smaller);
    CVY_TRY(lay_out_settled(l, simulator, &made_out->real_s));
    return lay_out(l, simulator, true, &made_out->free_s);
}

/*
 * Of many micro-batches as many as their k-th part and twice that many are laid out, with what k leaves over; the
 * difference is what each further part takes. Both sizes go by parts alike: where two compete for what is slowest, they
 * do so along a line.
 */
static cvy_status measure_all(layout *l, const cvy_pricing *pricing, int64_t k, makespans *made_out)
{
    cvy_simulator *simulator = pricing->oracle->simulator;
    int64_t larger = pricing->larger, smaller = pricing->micro_batches - larger;
    makespans one, two;
    if (k == 1) {
        return measure(l, simulator, larger, smaller, made_out);
    }
    CVY_TRY(measure(l, simulator, larger / k + larger % k, smaller / k + smaller % k, &one));
    CVY_TRY(measure(l, simulator, 2 * (larger / k) + larger % k, 2 * (smaller / k) + smaller % k, &two));
    made_out->real_s = two.real_s + (double)(k - 2) * (two.real_s - one.real_s);
    made_out->free_s = two.free_s + (double)(k - 2) * (two.free_s - one.free_s);
    return CVY_OK;
}

/* Parts that micro-batches go in, two of which are laid out; 1: all are. Whoever traces them wants all. */
static int64_t count_parts(const layout *l, int64_t micro_batches)
{
    int64_t most = cvy_max_i64(MANY_PAIRS / l->stages, (int64_t)FILLS * l->stages);
    return l->trace || micro_batches <= most ? 1 : cvy_ceil_div(2 * micro_batches, most);
}

cvy_status cvy_price_pipeline(const cvy_pricing *pricing, const cvy_priced_rank *stages, cvy_estimate *estimate)
{
    layout l = {.stage = stages,
                .stages = pricing->stages,
                .order = pricing->question->strategy.pipeline,
                .meets = pricing->oracle->machine->device.kind == CVY_DEVICE_CPU, /* Convoy's own runs */
                .bucket_s = cvy_machine_bucket(pricing->oracle->machine),
                .trace = pricing->trace};
    makespans made;
    int64_t k = count_parts(&l, pricing->micro_batches);
    int64_t laid_out = k == 1 ? pricing->micro_batches : 2 * (pricing->micro_batches / k + k);
    CVY_REQUIRE(laid_out <= MOST_PAIRS / pricing->stages, CVY_ERR_INFEASIBLE,
                "%" PRId64 " micro-batches in %d stages are too many to simulate", pricing->micro_batches,
                pricing->stages);
    l.micro_batches = (int)laid_out; /* at most */
    cvy_status status = start_layout(&l);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, measure_all(&l, pricing, k, &made));
    fill_parts(&l, made.real_s, made.free_s, estimate);
done:
    clear_layout(&l);
    return status;
}
