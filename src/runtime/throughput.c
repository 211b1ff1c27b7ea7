/*
 * Throughput on random data: the training iteration alone, one after the other; medians, so that noise does not lead.
 * An iteration of many ranks lasts as long as it does on the slowest of them; how it falls into parts is told by the
 * rank that computes longest, since the others' communication is waiting for it.
 */
#include <math.h>

#include "backend/probe.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/pulse.h"
#include "base/random.h"
#include "plan/step_kind.h"
#include "runtime/floor.h"
#include "runtime/lookout.h"
#include "runtime/session.h"

/* Seconds of one iteration, whole and by phase. */
typedef struct sample {
    double iteration, forward, recompute, backward, update, communication;
} sample;

/* Quantile of one member over all samples; @p room has as many doubles. */
static double find_quantile(const sample *samples, int64_t count, size_t member, double quantile, double *room)
{
    for (int64_t i = 0; i < count; i++) {
        room[i] = *(const double *)(const void *)((const char *)&samples[i] + member);
    }
    cvy_sort_doubles(room, count);
    double place = quantile * (double)(count - 1);
    int64_t below = (int64_t)place;
    int64_t above = cvy_min_i64(below + 1, count - 1);
    return room[below] + (place - (double)below) * (room[above] - room[below]);
}

/* Numbers of a sample that this rank has; 0 where it has none of them. */
static int64_t count_numbers(const cvy_schedule *s, int buffer)
{
    const cvy_shape *shape = buffer >= 0 ? &s->buffer[buffer].tensor.shape : NULL;
    return shape ? cvy_shape_elements(shape) / shape->extent[0] : 0;
}

/* Standard normal images and uniform classes (or normal values) in the first slot: this rank's share of a batch. */
static cvy_executor_batch fill_batch(const cvy_session *session)
{
    const cvy_schedule *s = &session->plan->schedule[CVY_SCHEDULE_TRAIN];
    float *x = cvy_executor_slots(session->executor);
    int64_t samples = s->samples.end - s->samples.begin;
    int64_t elements = samples * count_numbers(s, s->input_buffer);
    int64_t outputs = session->model->layer[cvy_model_output(session->model)].output.extent[1];
    void *label = (unsigned char *)x + cvy_round_up(elements * (int64_t)sizeof(float), 64);
    int64_t labels = samples * count_numbers(s, s->label_buffer);
    double pair[2];
    for (int64_t i = 0; i < elements; i++) {
        cvy_words words = cvy_random_words(1, CVY_PURPOSE_SYNTHETIC_DATA, 0, 0, (uint32_t)(i >> 32), (uint32_t)i);
        cvy_random_normal_pair(words, pair);
        x[i] = (float)pair[0];
    }
    for (int64_t i = 0; i < labels; i++) {
        cvy_words words = cvy_random_words(1, CVY_PURPOSE_SYNTHETIC_DATA, 1, 0, 0, (uint32_t)i);
        if (session->classes) {
            ((int32_t *)label)[i] = (int32_t)cvy_random_below(words.v[0], words.v[1], (uint64_t)outputs);
        } else {
            ((float *)label)[i] = cvy_random_unit(words.v[0]);
        }
    }
    return (cvy_executor_batch){.x = x, .label = label, .samples = samples};
}

/* Seconds by phase since the profiles were reset. */
static sample sum_phases(const cvy_session *session)
{
    sample sum = {0};
    const cvy_schedule *s = &session->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_step_profile *profile = cvy_executor_profile(session->executor, CVY_SCHEDULE_TRAIN);
    for (int i = 0; i < s->steps; i++) {
        double *part = cvy_step_communicates(&s->step[i])        ? &sum.communication
                       : s->step[i].phase == CVY_PHASE_BACKWARD  ? &sum.backward
                       : s->step[i].phase == CVY_PHASE_RECOMPUTE ? &sum.recompute
                       : s->step[i].phase == CVY_PHASE_UPDATE    ? &sum.update
                                                                 : &sum.forward;
        *part += profile[i].seconds;
    }
    return sum;
}

typedef struct measuring {
    const cvy_throughput_options *effort;
    sample *samples;
    double *total_s;
    cvy_probe *probe;
    int64_t probe_every; /* iterations between two probes */
    double *probe_s;     /* of each: one for each iteration at most, and one behind the last */
    int64_t probes;
} measuring;

/* ---- the machine's pace ---- */

static const double probe_every_s = 0.05; /* a hundredth of the time */

/* All ranks run the probe between the same iterations, so that none waits for another's. Collective. */
static cvy_status choose_probes(const cvy_session *session, double iteration_s, measuring *m)
{
    CVY_TRY(cvy_comm_all_reduce(session->comm, &iteration_s, 1, CVY_F64, CVY_REDUCE_MAX));
    m->probe_every = iteration_s > 0.0 ? (int64_t)fmax(1.0, fmin(1e6, probe_every_s / iteration_s)) : 1;
    return CVY_OK;
}

static cvy_status probe(measuring *m)
{
    cvy_probe_time time;
    CVY_TRY(cvy_probe_run(m->probe, &time));
    m->probe_s[m->probes++] = time.seconds;
    return CVY_OK;
}

/* The median, as of the iterations: what disturbs few of them moves neither. The mean over ranks. Collective. */
static cvy_status find_probe(const cvy_session *session, const measuring *m, double *probe_out)
{
    double sum_s = cvy_find_median(m->probe_s, m->probes);
    CVY_TRY(cvy_comm_all_reduce(session->comm, &sum_s, 1, CVY_F64, CVY_REDUCE_SUM));
    *probe_out = sum_s / cvy_comm_ranks(session->comm);
    return CVY_OK;
}

/* ---- iterations ---- */

static cvy_status run_iterations(cvy_session *session, const cvy_train_options *options, measuring *m)
{
    cvy_executor_batch batch = fill_batch(session);
    cvy_executor_result result;
    sample before = {0};
    double seconds = 0.0;
    for (int64_t i = -m->effort->warmup; i < m->effort->iterations; i++) {
        cvy_run run = {.seed = options->seed,
                       .step = i + m->effort->warmup,
                       .samples = options->batch,
                       .loss_scale = 1.0 / (double)options->batch,
                       .learning_rate = 1e-4, /* small: random labels must not make the numbers run away */
                       .update = i + m->effort->warmup + 1};
        if (i == 0) {
            cvy_executor_reset_profile(session->executor);
            CVY_TRY(choose_probes(session, seconds, m));
        }
        if (i >= 0 && i % m->probe_every == 0) {
            CVY_TRY(probe(m));
        }
        double start_s = cvy_clock_s();
        CVY_TRY(cvy_executor_run(session->executor, CVY_SCHEDULE_TRAIN, &batch, &run, &result));
        seconds = cvy_clock_s() - start_s;
        if (i >= 0) {
            sample now = sum_phases(session);
            m->samples[i] = (sample){.iteration = seconds,
                                     .forward = now.forward - before.forward,
                                     .recompute = now.recompute - before.recompute,
                                     .backward = now.backward - before.backward,
                                     .update = now.update - before.update,
                                     .communication = now.communication - before.communication};
            before = now;
            *m->total_s += seconds;
        }
    }
    return probe(m);
}

/* ---- ranks ---- */

/* Every iteration takes as long as on the rank where it took longest. Collective. */
static cvy_status take_slowest_iterations(const cvy_session *session, const measuring *m, double *room)
{
    const int64_t count = m->effort->iterations;
    for (int64_t i = 0; i < count; i++) {
        room[i] = m->samples[i].iteration;
    }
    CVY_TRY(cvy_comm_all_reduce(session->comm, room, count, CVY_F64, CVY_REDUCE_MAX));
    for (int64_t i = 0; i < count; i++) {
        m->samples[i].iteration = room[i];
    }
    return CVY_OK;
}

/* The parts of an iteration, as the rank that computes longest has them, the first of equals. Collective. */
static cvy_status take_busiest_parts(const cvy_session *session, sample *parts)
{
    const int ranks = cvy_comm_ranks(session->comm);
    double most_s = -1.0;
    sample *all = cvy_calloc((size_t)ranks, sizeof *all);
    cvy_status status = cvy_comm_agree(session->comm, all ? CVY_OK : CVY_ERR_MEMORY);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_comm_gather_bytes(session->comm, parts, sizeof *parts, all));
    for (int i = 0; i < ranks; i++) {
        double busy_s = all[i].forward + all[i].recompute + all[i].backward + all[i].update;
        if (busy_s > most_s) {
            *parts = all[i];
            most_s = busy_s;
        }
    }
done:
    cvy_free(all);
    return status;
}

/* What is most on one rank or another. Collective. */
static cvy_status take_largest(const cvy_session *session, cvy_throughput *out)
{
    double most[] = {(double)out->tensor_bytes, out->measured_s, out->steps, out->format_changes, out->threads};
    CVY_TRY(cvy_comm_all_reduce(session->comm, most, sizeof most / sizeof most[0], CVY_F64, CVY_REDUCE_MAX));
    out->tensor_bytes = (int64_t)most[0];
    out->measured_s = most[1];
    out->steps = (int)most[2];
    out->format_changes = (int)most[3];
    out->threads = (int)most[4];
    return CVY_OK;
}

/* The floor of all is that of the rank that has most to do, and the machine is as fast as the slowest. Collective. */
static cvy_status take_highest_floors(const cvy_session *session, cvy_throughput *out)
{
    double floors[] = {out->floor_s, out->primitives_floor_s}, rates[] = {out->peak_flops, out->bandwidth_Bps};
    CVY_TRY(cvy_comm_all_reduce(session->comm, floors, 2, CVY_F64, CVY_REDUCE_MAX));
    CVY_TRY(cvy_comm_all_reduce(session->comm, rates, 2, CVY_F64, CVY_REDUCE_MIN));
    out->floor_s = floors[0];
    out->primitives_floor_s = floors[1];
    out->peak_flops = rates[0];
    out->bandwidth_Bps = rates[1];
    return CVY_OK;
}

static cvy_status summarise(const cvy_session *session, const measuring *m, double *room, cvy_throughput *out)
{
    int64_t count = m->effort->iterations;
    CVY_TRY(take_slowest_iterations(session, m, room));
    out->iteration_s = find_quantile(m->samples, count, offsetof(sample, iteration), 0.5, room);
    out->iteration_quartile_s[0] = find_quantile(m->samples, count, offsetof(sample, iteration), 0.25, room);
    out->iteration_quartile_s[1] = find_quantile(m->samples, count, offsetof(sample, iteration), 0.75, room);
    sample parts = {.forward = find_quantile(m->samples, count, offsetof(sample, forward), 0.5, room),
                    .recompute = find_quantile(m->samples, count, offsetof(sample, recompute), 0.5, room),
                    .backward = find_quantile(m->samples, count, offsetof(sample, backward), 0.5, room),
                    .update = find_quantile(m->samples, count, offsetof(sample, update), 0.5, room),
                    .communication = find_quantile(m->samples, count, offsetof(sample, communication), 0.5, room)};
    CVY_TRY(take_busiest_parts(session, &parts));
    CVY_TRY(find_probe(session, m, &out->probe_s));
    out->forward_s = parts.forward;
    out->recompute_s = parts.recompute;
    out->backward_s = parts.backward;
    out->update_s = parts.update;
    out->communication_s = parts.communication;
    out->images_per_s = (double)out->batch / out->iteration_s;
    out->tensor_bytes = session->plan->persistent_bytes + session->plan->transient_bytes;
    out->threads = session->threads;
    out->steps = session->plan->schedule[CVY_SCHEDULE_TRAIN].steps;
    out->format_changes = session->plan->format_changes;
    CVY_TRY(cvy_session_peak_memory(session, &out->peak_memory_bytes));
    return take_largest(session, out);
}

/* The floors of this rank. All measure at once, as they compute at once. */
static cvy_status measure_own_floors(const cvy_session *session, bool primitives, double *step_s, cvy_throughput *out)
{
    cvy_rates rates;
    CVY_TRY(cvy_rates_measure(&session->plan->options.backends, &rates));
    out->peak_flops = rates.flops;
    out->bandwidth_Bps = rates.bandwidth_Bps;
    out->floor_s = cvy_floor_s(&session->plan->schedule[CVY_SCHEDULE_TRAIN], &rates, step_s);
    return primitives ? cvy_floor_measure(session->plan, &rates, step_s, &out->primitives_floor_s) : CVY_OK;
}

/* The floors, and beside them what each kind of step took. Collective. */
static cvy_status measure_floors(const cvy_session *session, const cvy_throughput_options *effort, cvy_throughput *out)
{
    const cvy_schedule *s = &session->plan->schedule[CVY_SCHEDULE_TRAIN];
    double *step_s = cvy_calloc((size_t)s->steps, sizeof *step_s);
    cvy_status status = cvy_comm_agree(session->comm, step_s ? CVY_OK : CVY_ERR_MEMORY);
    CVY_TRY_GOTO(status, done, status);
    status = cvy_comm_agree(session->comm, measure_own_floors(session, effort->primitives, step_s, out));
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, take_highest_floors(session, out));
    CVY_TRY_GOTO(status, done, cvy_session_profile(session, 1u << CVY_SCHEDULE_TRAIN, step_s, &out->row, &out->rows));
done:
    cvy_free(step_s);
    return status;
}

/* What a walk takes where nothing is to be done; of many ranks it is not known, since they cannot but communicate. */
static cvy_status measure_overhead(const cvy_session *session, cvy_throughput *out)
{
    return cvy_comm_ranks(session->comm) > 1
               ? CVY_OK
               : cvy_executor_measure_overhead(session->executor, CVY_SCHEDULE_TRAIN, &out->step_overhead_s);
}

static cvy_status measure(const cvy_model *model, const cvy_train_options *options, const cvy_train_observer *observer,
                          const cvy_throughput_options *effort, cvy_throughput *throughput_out)
{
    int64_t iterations = effort->iterations;
    CVY_REQUIRE(iterations >= 1 && iterations <= 1000000 && effort->warmup >= 0, CVY_ERR_INPUT,
                "iterations: expected 1 to 1000000, got %lld", (long long)iterations);
    cvy_session session;
    cvy_throughput out = {.batch = options->batch, .iterations = iterations};
    measuring m = {.effort = effort, .samples = cvy_calloc((size_t)iterations, sizeof(sample)),
                   .total_s = &out.measured_s,
                   .probe_s = cvy_calloc((size_t)iterations + 1, sizeof(double))};
    double *room = cvy_calloc((size_t)iterations, sizeof *room);
    cvy_status status = cvy_session_open(model, options, observer, true, false, &session);
    CVY_TRY_GOTO(status, done, status);
    bool whole = m.samples && m.probe_s && room;
    status = whole ? cvy_probe_create(&session.plan->options.backends, &m.probe) : CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, cvy_comm_agree(session.comm, status));
    (void)cvy_pulse_set(CVY_ACTIVITY_COMPUTING);
    CVY_TRY_GOTO(status, done, cvy_executor_initialise(session.executor, options->seed));
    CVY_TRY_GOTO(status, done, run_iterations(&session, options, &m));
    /* the resident set is read before the rates take memory of their own */
    CVY_TRY_GOTO(status, done, summarise(&session, &m, room, &out));
    CVY_TRY_GOTO(status, done, measure_overhead(&session, &out));
    (void)cvy_pulse_set(CVY_ACTIVITY_MEASURING);
    CVY_TRY_GOTO(status, done, cvy_comm_agree(session.comm, measure_floors(&session, effort, &out)));
    *throughput_out = out;
done:
    cvy_probe_destroy(&m.probe);
    cvy_free(m.samples);
    cvy_free(m.probe_s);
    cvy_free(room);
    cvy_session_close(&session);
    return status;
}

cvy_status cvy_measure_throughput(const cvy_model *model, const cvy_train_options *options,
                                  const cvy_train_observer *observer, const cvy_throughput_options *effort,
                                  cvy_throughput *throughput_out)
{
    cvy_lookout lookout;
    cvy_status status = cvy_lookout_start(model, options, observer, &lookout);
    if (status == CVY_OK) {
        status = measure(model, options, observer, effort, throughput_out);
    }
    return cvy_lookout_stop(&lookout, status);
}

void cvy_throughput_clear(cvy_throughput *throughput)
{
    cvy_free(throughput->row);
    *throughput = (cvy_throughput){0};
}
