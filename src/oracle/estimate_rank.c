/*
 * One rank's iteration: its plan, the seconds of its steps, and the simulation that lays them out on its streams. What
 * the compute stream does counts as it is; of communication beside it only what sticks out.
 */
#include "oracle/estimate_internal.h"

#include <math.h>

#include "base/checked.h"
#include "base/memory.h"

void cvy_priced_rank_clear(cvy_priced_rank *rank)
{
    if (!rank->borrowed) {
        cvy_plan_destroy(&rank->plan);
    }
    cvy_free(rank->times);
    cvy_free(rank->forward);
    cvy_free(rank->start_s);
    *rank = (cvy_priced_rank){0};
}

static cvy_plan_options describe_plan(const cvy_pricing *pricing, int64_t rank)
{
    const cvy_oracle *o = pricing->oracle;
    const cvy_machine *machine = o->machine;
    unsigned shared = machine->execution.local_norms ? 0 : CVY_AXIS_SPACE;
    bool reads = machine->device.kind == CVY_DEVICE_CPU; /* batches are read where tensors lie */
    int64_t bucket = o->options.bucket_bytes >= 0 ? o->options.bucket_bytes : machine->execution.bucket_bytes;
    return (cvy_plan_options){
        .batch = pricing->distribution->options.batch,
        .dtype = o->options.precision == CVY_PRECISION_FP64 ? CVY_F64 : CVY_F32,
        .micro_batches = (int)cvy_max_i64(pricing->distribution->strategy.micro_batches, 1),
        .recompute = pricing->recompute,
        .training = true,
        .train_only = true,
        .unfused = machine->execution.fuse == CVY_FUSING_NONE,
        .optimizer = o->options.optimizer,
        .layout = machine->device.kind == CVY_DEVICE_GPU ? CVY_LAYOUT_PLAIN : CVY_LAYOUT_AUTO,
        .block = cvy_device_block(&machine->device),
        .data_slots = reads ? CVY_DATA_SLOTS : 0,
        .label_bytes = o->label_bytes,
        .scratch = o->options.scratch,
        .parallel = {.distribution = pricing->distribution,
                     .rank = rank,
                     .bucket_bytes = bucket,
                     .overlap = machine->execution.overlap || reads, /* Convoy's own runs hold gradients so */
                     .norm_axes = o->options.norms_given ? o->options.norm_axes : shared,
                     .shard_optimizer = o->options.shard_optimizer},
    };
}

/* How many times as long what is beside the compute stream takes there, and computing beside it. */
static double slow_exchange(const cvy_oracle *o) { return fmax(o->machine->execution.exchange_slowdown, 1.0); }
static double slow_compute(const cvy_oracle *o) { return fmax(o->machine->execution.compute_slowdown, 1.0); }

/* Whether a step goes on while kernels run; on machines without overlap what a run does beside takes their time. */
static bool is_beside(const cvy_oracle *o, const cvy_step *step)
{
    return step->stream != CVY_STREAM_MAIN && (step->stream != CVY_STREAM_GRADIENTS || o->machine->execution.overlap);
}

/*
 * The schedule as the simulator takes it; its dependencies are the schedule's. What passes between stages takes no time
 * here: it is laid out with the other stages. Exchanges beside the compute stream take as long as they do beside it.
 */
static cvy_status describe_simulation(cvy_oracle *o, const cvy_schedule *s, cvy_simulation *simulation_out)
{
    int streams = 1;
    if (s->steps > o->sim_steps) {
        cvy_free(o->sim_step);
        o->sim_steps = 0;
        o->sim_step = cvy_calloc((size_t)s->steps, sizeof *o->sim_step);
        if (!o->sim_step) {
            return CVY_ERR_MEMORY;
        }
        o->sim_steps = s->steps;
    }
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        const bool beside = is_beside(o, step);
        streams = beside && step->stream >= streams ? step->stream + 1 : streams;
        o->sim_step[i] = (cvy_sim_step){.duration_s = cvy_step_passes_stage(s, step) ? 0.0
                                                      : step->estimate_s * (beside ? slow_exchange(o) : 1.0),
                                        .stream = beside ? step->stream : CVY_STREAM_MAIN,
                                        .join = -1,
                                        .first_dependency = step->first_dependency,
                                        .dependencies = step->dependencies};
    }
    *simulation_out = (cvy_simulation){.steps = s->steps,
                                       .dependencies = s->dependencies,
                                       .streams = streams,
                                       .step = o->sim_step,
                                       .dependency = s->dependency};
    return CVY_OK;
}

/*
 * How much of [begin, end) no step of stream 0 covers. Intervals come in the order of time: @p at moves on to the first
 * step of stream 0 that ends behind @p begin.
 */
static double find_uncovered(const cvy_schedule *s, const cvy_simulated *run, int *at, double begin, double end)
{
    double uncovered = 0.0, clock = begin;
    while (*at < s->steps && (s->step[*at].stream != 0 || run->end_s[*at] <= begin)) {
        ++*at;
    }
    for (int i = *at; i < s->steps && clock < end; i++) {
        if (s->step[i].stream == 0 && run->end_s[i] > clock) {
            double covered_from = run->start_s[i] < end ? run->start_s[i] : end;
            uncovered += covered_from > clock ? covered_from - clock : 0.0;
            clock = run->end_s[i];
        }
    }
    return uncovered + (end > clock ? end - clock : 0.0);
}

/* Of the two micro-batches of a stage: the step that makes what goes back; all steps, where nothing does. */
static void find_ready(const cvy_schedule *s, int ready[2])
{
    ready[0] = ready[1] = s->steps;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        if (cvy_step_passes_stage(s, step) && !cvy_step_passes_forward(s, step) &&
            !s->message[s->exchange[step->exchange].first_message].receive) {
            int *last = &ready[step->micro_batch > 0];
            *last = 0;
            for (int k = 0; k < step->dependencies; k++) {
                const cvy_dependency *on = &s->dependency[step->first_dependency + k];
                *last = on->distance == 0 && on->step > *last ? on->step : *last;
            }
        }
    }
}

/* Add what sticks out of a step to its micro-batch of a stage. */
static void add_to_stage(const cvy_schedule *s, int index, bool beside, double seconds, const int ready[2],
                         cvy_priced_rank *rank)
{
    const cvy_step *step = &s->step[index];
    int which = step->micro_batch > 0, last = s->micro_batches > 1;
    bool ends = cvy_step_ends_iteration(step), sums = cvy_step_sums_gradient(s, step);
    if (ends && !beside && index <= ready[last] && ready[last] < s->steps) {
        rank->last_s += seconds * rank->times[index];
    } else if (ends) {
        rank->update_s += seconds * rank->times[index];
    } else if (rank->forward[index]) {
        rank->forward_s[which] += seconds;
    } else {
        int behind = index > ready[which];
        *(sums ? &rank->sum_s[behind] : &rank->backward_s[which][behind]) += seconds;
    }
}

/* What computing loses beside exchanges: in so many seconds it does what it does in 1 / slow of them alone. */
static void add_slowed(const cvy_oracle *o, cvy_priced_rank *rank)
{
    double lost = rank->hidden_s * (1.0 - 1.0 / slow_compute(o));
    rank->part_s[CVY_PHASE_BACKWARD] += lost;
    rank->update_s += lost; /* of a stage: behind the last micro-batch */
}

/* Give every second of the run to a phase; what sticks out of an exchange goes on as fast as it does alone. */
static cvy_status attribute(cvy_oracle *o, const cvy_schedule *s, const cvy_simulated *run, cvy_priced_rank *rank)
{
    int at = 0, ready[2];
    double given = 0.0, wasted = 0.0;
    find_ready(s, ready);
    CVY_TRY(cvy_error_begin(o, s));
    for (int i = 0; i < s->steps; i++) {
        double seconds = run->end_s[i] - run->start_s[i], times = rank->times[i];
        if (is_beside(o, &s->step[i]) && seconds > 0.0) {
            double out = find_uncovered(s, run, &at, run->start_s[i], run->end_s[i]);
            rank->hidden_s += (seconds - out) * times;
            seconds = out / slow_exchange(o);
            wasted += out - seconds;
        }
        rank->part_s[s->step[i].phase] += seconds * times;
        cvy_error_add(o, s, i, seconds * times);
        add_to_stage(s, i, is_beside(o, &s->step[i]), seconds, ready, rank);
        given += seconds;
    }
    rank->part_s[CVY_TIME_WAIT] += fmax(run->makespan_s - wasted - given, 0.0);
    add_slowed(o, rank);
    for (int part = 0; part < CVY_TIME_PARTS; part++) {
        rank->iteration_s += rank->part_s[part];
    }
    rank->error_s = cvy_error_end(o, s, rank->compute_s);
    return CVY_OK;
}

static cvy_status lay_out(const cvy_pricing *pricing, cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    cvy_simulation simulation;
    cvy_simulated run;
    CVY_TRY(describe_simulation(pricing->oracle, s, &simulation));
    CVY_TRY(cvy_simulator_run(pricing->oracle->simulator, &simulation, 1, &run));
    rank->start_s = cvy_calloc((size_t)s->steps + 1, sizeof *rank->start_s);
    if (!rank->start_s) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < s->steps; i++) {
        rank->start_s[i] = run.start_s[i];
    }
    return attribute(pricing->oracle, s, &run, rank);
}

/* Make the plan of a rank, or take the one that is kept. */
static cvy_status plan_rank(const cvy_pricing *pricing, int64_t rank, cvy_priced_rank *priced)
{
    cvy_plan_options options = describe_plan(pricing, rank);
    priced->plan = pricing->kept ? cvy_kept_plans_find(pricing->kept, rank) : NULL;
    priced->borrowed = priced->plan != NULL;
    if (priced->plan) {
        return CVY_OK;
    }
    CVY_TRY(cvy_plan_create(pricing->oracle->model, &options, &priced->plan));
    if (pricing->kept) {
        CVY_TRY(cvy_kept_plans_add(pricing->kept, rank, priced->plan));
        priced->borrowed = true;
    }
    return CVY_OK;
}

cvy_status cvy_price_rank(cvy_pricing *pricing, int64_t rank, cvy_priced_rank *rank_out)
{
    cvy_priced_rank priced = {.rank = rank};
    int64_t stage = cvy_mesh_coordinate(&pricing->distribution->strategy.mesh, rank, CVY_AXIS_STAGE);
    cvy_status status = plan_rank(pricing, rank, &priced);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_price_count(pricing, &priced));
    CVY_TRY_GOTO(status, done, cvy_price_steps(pricing, &priced));
    CVY_TRY_GOTO(status, done, lay_out(pricing, &priced));
    cvy_price_memory(pricing, stage, &priced);
    *rank_out = priced;
    priced = (cvy_priced_rank){0};
done:
    cvy_priced_rank_clear(&priced);
    return status;
}
