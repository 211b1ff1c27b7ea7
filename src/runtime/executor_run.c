/*
 * Walking a schedule. Every address and kernel is bound in set-up; the loop looks at nothing but the next step. The
 * batch is taken in by the first control step, the loss looked at by the last one before backward, so that no weight
 * changes when the loss is not finite. A rank of many that finds something wrong walks on, without updates, to the end
 * of the iteration, where all ranks hear of it: so nobody waits for it.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/pulse.h"
#include "runtime/executor_internal.h"

/* ---- the batch ---- */

/* Copy floats into a buffer of f32 or f64 in whatever format; samples that are not there become zero. */
static cvy_status fill_input(const cvy_executor *e, const cvy_schedule *s, int index, const float *from,
                             int64_t samples)
{
    const cvy_buffer *buffer = &s->buffer[index];
    cvy_tensor source = {.shape = buffer->tensor.shape, .dtype = CVY_F32, .format = CVY_FORMAT_PLAIN};
    cvy_tensor target = buffer->tensor;
    void *to = cvy_executor_locate(e, s, index);
    if (samples < buffer->tensor.shape.extent[0]) {
        memset(to, 0, (size_t)buffer->bytes);
    }
    source.shape.extent[0] = target.shape.extent[0] = samples;
    if (samples == 0) {
        return CVY_OK;
    }
    if (target.dtype == CVY_F32 && cvy_tensor_same_layout(&source, &target)) {
        memcpy(to, from, (size_t)cvy_tensor_bytes(&source));
        return CVY_OK;
    }
    return cvy_tensor_copy(&source, from, &target, to);
}

/* Numbers of one sample of a buffer. */
static int64_t sample_elements(const cvy_buffer *buffer)
{
    return cvy_shape_elements(&buffer->tensor.shape) / buffer->tensor.shape.extent[0];
}

static cvy_status fill_labels(const cvy_executor *e, const cvy_schedule *s, int index, const void *from,
                              cvy_interval samples)
{
    const cvy_buffer *label = &s->buffer[index];
    int64_t labels = sample_elements(label), first = samples.begin * labels, count = samples.end - samples.begin;
    if (label->tensor.dtype != CVY_I32) {
        return fill_input(e, s, index, (const float *)from + first, count);
    }
    memset(cvy_executor_locate(e, s, index), 0, (size_t)label->bytes);
    if (count > 0) {
        memcpy(cvy_executor_locate(e, s, index), (const int32_t *)from + first,
               (size_t)(count * labels) * sizeof(int32_t));
    }
    return CVY_OK;
}

cvy_status cvy_executor_take_batch(const cvy_executor *e, const cvy_schedule *s, const cvy_step *step,
                                   const cvy_executor_batch *batch)
{
    cvy_interval part = cvy_schedule_micro_batch(s, step->micro_batch);
    int64_t count = cvy_max_i64(cvy_min_i64(part.end, batch->samples) - part.begin, 0);
    for (int i = 0; i < step->uses; i++) {
        int index = s->use[step->first_use + i].buffer;
        const cvy_buffer *buffer = &s->buffer[index];
        bool label = buffer->content == CVY_CONTENT_LABEL;
        if (label && (batch->label || batch->failed != CVY_OK)) {
            CVY_TRY(fill_labels(e, s, index, batch->label, (cvy_interval){part.begin, part.begin + count}));
        } else if (!label && (batch->x || batch->failed != CVY_OK)) {
            const float *x = batch->x ? batch->x + part.begin * sample_elements(buffer) : NULL;
            CVY_TRY(fill_input(e, s, index, x, count));
        }
    }
    return CVY_OK;
}

/* ---- the loop ---- */

/* Samples of a micro-batch have their places in the global batch: their random numbers do not depend on the parts. */
static void enter_micro_batch(iteration *it, int micro_batch)
{
    cvy_interval samples = cvy_schedule_micro_batch(it->schedule, micro_batch);
    it->run = it->whole;
    it->run.sample_first += samples.begin;
    it->run.samples = cvy_max_i64(cvy_min_i64(samples.end, it->whole.samples) - samples.begin, 0);
}

static cvy_status run_control(const cvy_executor *e, const iteration *it, const cvy_step *step)
{
    if (step->phase == CVY_PHASE_IO) {
        return cvy_executor_take_batch(e, it->schedule, step, it->batch);
    }
    const double *loss = cvy_executor_locate(e, it->schedule, it->schedule->use[step->first_use].buffer);
    it->result->loss += loss[0];
    it->result->correct += (int64_t)loss[1];
    return isfinite(loss[0]) ? CVY_OK : cvy_fail(CVY_ERR_DIVERGED, "the loss is not finite");
}

cvy_status cvy_executor_run_step(cvy_executor *e, iteration *it, int index)
{
    const cvy_step *step = &it->schedule->step[index];
    const bound_step *bound = &it->program->step[index];
    if (step->exchange >= 0) {
        return bound->exchange ? cvy_executor_communicate(e, it, index) : CVY_OK;
    }
    if (step->op < 0) {
        return run_control(e, it, step);
    }
    bool idle = step->phase == CVY_PHASE_UPDATE && (it->looking || e->failure.status != CVY_OK);
    return idle ? CVY_OK : cvy_kernel_run(bound->kernel, bound->operand, bound->scratch, &it->run);
}

/* One rank ends at once, and so does every rank when communication itself fails; else it walks on. */
static cvy_status handle_failure(cvy_executor *e, iteration *it, int index, cvy_status status)
{
    if (it->looking) {
        return it->program->step[index].exchange ? status : CVY_OK;
    }
    if (!e->comm || it->program->step[index].exchange) {
        return cvy_executor_explain(e, it, index, status);
    }
    cvy_executor_note_failure(e, it, index, status);
    return CVY_OK;
}

/* How long a step took, to the profile and the timeline. */
static double note_time(cvy_executor *e, const iteration *it, int index, double before)
{
    double after = cvy_clock_s();
    it->program->profile[index].calls++;
    it->program->profile[index].seconds += after - before;
    if (e->timeline) {
        cvy_executor_note_step(e, it->schedule, &it->schedule->step[index], before, after);
    }
    return after;
}

cvy_status cvy_executor_walk(cvy_executor *e, iteration *it)
{
    const cvy_schedule *s = it->schedule;
    int micro_batch = -1;
    double before = cvy_clock_s();
    double start = before;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        if (step->every > 1 && it->whole.step % step->every != step->offset) {
            continue;
        }
        if (step->micro_batch != micro_batch) {
            micro_batch = step->micro_batch;
            enter_micro_batch(it, micro_batch);
        }
        cvy_pulse_beat();
        if (it->program->under_ways > 0) {
            CVY_TRY(cvy_executor_wait_for(e, it, i));
            before = cvy_clock_s();
        }
        cvy_status status = cvy_executor_run_step(e, it, i);
        if (status != CVY_OK) {
            CVY_TRY(handle_failure(e, it, i, status));
        }
        if (it->looking && step->phase <= CVY_PHASE_FORWARD) {
            cvy_executor_look_at(e, it, i);
        }
        before = note_time(e, it, i, before);
    }
    CVY_TRY(cvy_executor_wait_for_all(e, it));
    if (e->timeline) {
        cvy_executor_note_iteration(e, start, cvy_clock_s());
    }
    return CVY_OK;
}

/* This rank's samples of those that a batch of all ranks has. */
static void take_own_samples(const cvy_schedule *s, cvy_run *run)
{
    int64_t own = cvy_min_i64(run->samples, s->samples.end) - s->samples.begin;
    run->sample_first += s->samples.begin;
    run->samples = cvy_max_i64(own, 0);
}

cvy_status cvy_executor_run(cvy_executor *e, cvy_schedule_kind kind, const cvy_executor_batch *batch,
                            const cvy_run *run, cvy_executor_result *result_out)
{
    const cvy_schedule *s = &e->plan->schedule[kind];
    iteration it = {.schedule = s, .program = &e->program[kind], .batch = batch, .whole = *run, .result = result_out,
                    .found = -1};
    CVY_REQUIRE(s->steps > 0, CVY_ERR_ARG, "the plan has no such schedule");
    CVY_REQUIRE(batch->samples <= s->batch, CVY_ERR_ARG, "a batch of %lld samples for a schedule of %lld",
                (long long)batch->samples, (long long)s->batch);
    *result_out = (cvy_executor_result){0};
    if (batch->failed != CVY_OK && !e->comm) {
        return batch->failed;
    }
    take_own_samples(s, &it.whole);
    e->failure = (failure){.status = batch->failed, .loss_step = -1};
    if (batch->failed != CVY_OK) {
        strncpy(e->failure.words, cvy_error_message(), sizeof e->failure.words - 1);
    }
    CVY_TRY(cvy_executor_walk(e, &it));
    result_out->stop = batch->stop;
    return e->comm ? cvy_executor_tell(e, &it) : CVY_OK;
}
