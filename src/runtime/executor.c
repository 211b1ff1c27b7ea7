/*
 * Walking a schedule. Every address and kernel is bound in set-up; the loop looks at nothing but the next step. The
 * batch is taken in by the first control step, the loss looked at by the last one before backward, so that no weight
 * changes when the loss is not finite.
 */
#include "runtime/executor.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "runtime/executor_internal.h"

/* ---- set-up ---- */

static void *locate(const cvy_executor *e, const cvy_schedule *s, int buffer)
{
    const cvy_buffer *b = &s->buffer[buffer];
    return (b->persistent ? e->persistent.base : e->transient.base) + b->offset;
}

/* A kernel and the addresses of its operands for one step. */
static cvy_status bind_step(cvy_executor *e, const cvy_schedule *s, const cvy_step *step, bound_step *bound)
{
    const cvy_op *op = &s->op[step->op];
    const char *owner = step->layer >= 0 ? e->plan->model->layer[step->layer].name : "plan";
    for (int i = 0; i < op->operands; i++) {
        bound->operand[i] = locate(e, s, s->use[step->first_use + i].buffer);
    }
    if (step->uses > op->operands) {
        bound->scratch = locate(e, s, s->use[step->first_use + op->operands].buffer);
    }
    cvy_status status = cvy_kernel_create(&e->plan->options.backends, op, &bound->kernel);
    if (status != CVY_OK) {
        return cvy_fail_within(status, "layer %s", owner);
    }
    CVY_REQUIRE((int64_t)cvy_kernel_scratch_bytes(bound->kernel) == s->choice[step->op].scratch_bytes,
                CVY_ERR_INFEASIBLE, "layer %s: the kernel wants %zu bytes of scratch memory, planned were %lld", owner,
                cvy_kernel_scratch_bytes(bound->kernel), (long long)s->choice[step->op].scratch_bytes);
    return CVY_OK;
}

static cvy_status bind_schedule(cvy_executor *e, cvy_schedule_kind kind)
{
    const cvy_schedule *s = &e->plan->schedule[kind];
    program *p = &e->program[kind];
    if (s->steps == 0) {
        return CVY_OK;
    }
    p->step = cvy_calloc((size_t)s->steps, sizeof *p->step);
    p->profile = cvy_calloc((size_t)s->steps, sizeof *p->profile);
    if (!p->step || !p->profile) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < s->steps; i++) {
        if (s->step[i].op >= 0) {
            CVY_TRY(bind_step(e, s, &s->step[i], &p->step[i]));
        }
    }
    return CVY_OK;
}

cvy_status cvy_executor_create(const cvy_plan *plan, cvy_executor **executor_out)
{
    cvy_status status = CVY_ERR_MEMORY;
    cvy_executor *e = cvy_calloc(1, sizeof *e);
    if (!e) {
        goto done;
    }
    e->plan = plan;
    CVY_REQUIRE_GOTO(status, done, plan->options.backends.count > 0, CVY_ERR_ARG,
                     "a plan by rule has no kernels to run: make it with a backend");
    CVY_TRY_GOTO(status, done, cvy_arena_create((size_t)plan->persistent_bytes, &e->persistent));
    CVY_TRY_GOTO(status, done, cvy_arena_create((size_t)plan->transient_bytes, &e->transient));
    for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
        CVY_TRY_GOTO(status, done, bind_schedule(e, (cvy_schedule_kind)i));
    }
    CVY_TRY_GOTO(status, done, cvy_executor_list_state(e));
    *executor_out = e;
    e = NULL;
done:
    cvy_executor_destroy(&e);
    return status;
}

void cvy_executor_destroy(cvy_executor **executor)
{
    cvy_executor *e = executor ? *executor : NULL;
    if (!e) {
        return;
    }
    for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
        for (int k = 0; e->program[i].step && k < e->plan->schedule[i].steps; k++) {
            cvy_kernel_destroy(&e->program[i].step[k].kernel);
        }
        cvy_free(e->program[i].step);
        cvy_free(e->program[i].profile);
    }
    cvy_executor_release_state(e);
    cvy_arena_destroy(&e->persistent);
    cvy_arena_destroy(&e->transient);
    cvy_free(e);
    *executor = NULL;
}

/* ---- the loop ---- */

/* Copy floats into a buffer of f32 or f64 in whatever format; samples that are not there become zero. */
static cvy_status fill_input(const cvy_executor *e, const cvy_schedule *s, int index, const float *from,
                             int64_t samples)
{
    const cvy_buffer *buffer = &s->buffer[index];
    cvy_tensor source = {.shape = buffer->tensor.shape, .dtype = CVY_F32, .format = CVY_FORMAT_PLAIN};
    cvy_tensor target = buffer->tensor;
    void *to = locate(e, s, index);
    if (samples < s->batch) {
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

/* What the step asks for of the batch: the samples of its micro-batch that there are. */
static cvy_status take_batch(const cvy_executor *e, const cvy_schedule *s, const cvy_step *step,
                             const cvy_executor_batch *batch)
{
    cvy_interval samples = cvy_schedule_micro_batch(s, step->micro_batch);
    int64_t count = cvy_max_i64(cvy_min_i64(samples.end, batch->samples) - samples.begin, 0);
    int input = s->use[step->first_use].buffer;
    int target = s->use[step->first_use + 1].buffer;
    const cvy_buffer *label = &s->buffer[target];
    if (batch->x) {
        const float *x = batch->x + samples.begin * sample_elements(&s->buffer[input]);
        CVY_TRY(fill_input(e, s, input, x, count));
    }
    if (!batch->label) {
        return CVY_OK;
    }
    if (label->tensor.dtype != CVY_I32) {
        return fill_input(e, s, target, (const float *)batch->label + samples.begin * sample_elements(label), count);
    }
    int64_t labels = sample_elements(label);
    memset(locate(e, s, target), 0, (size_t)label->bytes);
    memcpy(locate(e, s, target), (const int32_t *)batch->label + samples.begin * labels,
           (size_t)(count * labels) * sizeof(int32_t));
    return CVY_OK;
}

typedef struct iteration {
    const cvy_schedule *schedule;
    const program *program;
    const cvy_executor_batch *batch;
    cvy_run run; /* as kernels of the micro-batch under way see it */
    cvy_run whole;
    cvy_executor_result *result;
} iteration;

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
        return take_batch(e, it->schedule, step, it->batch);
    }
    const double *loss = locate(e, it->schedule, it->schedule->use[step->first_use].buffer);
    it->result->loss += loss[0];
    it->result->correct += (int64_t)loss[1];
    return isfinite(loss[0]) ? CVY_OK : cvy_fail(CVY_ERR_DIVERGED, "the loss is not finite");
}

static cvy_status run_step(const cvy_executor *e, const iteration *it, int index)
{
    const cvy_step *step = &it->schedule->step[index];
    const bound_step *bound = &it->program->step[index];
    if (step->op < 0) {
        return run_control(e, it, step);
    }
    return cvy_kernel_run(bound->kernel, bound->operand, bound->scratch, &it->run);
}

static bool all_finite(const cvy_tensor *tensor, const void *data)
{
    int64_t elements = cvy_tensor_elements(tensor);
    for (int64_t i = 0; i < elements; i++) {
        if (tensor->dtype == CVY_F32 ? !isfinite(((const float *)data)[i])
                                     : tensor->dtype == CVY_F64 && !isfinite(((const double *)data)[i])) {
            return false;
        }
    }
    return true;
}

/*
 * Run forward of a micro-batch again, looking at every output: the first that is not finite names the layer. Nothing
 * has been updated.
 */
static cvy_status name_diverged_layer(const cvy_executor *e, const iteration *it, int micro_batch)
{
    const cvy_schedule *s = it->schedule;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        if (step->phase > CVY_PHASE_FORWARD || step->micro_batch != micro_batch) {
            continue;
        }
        if (step->op < 0) {
            if (step->phase == CVY_PHASE_IO) {
                int input = s->use[step->first_use].buffer;
                CVY_TRY(take_batch(e, s, step, it->batch));
                CVY_REQUIRE(all_finite(&s->buffer[input].tensor, locate(e, s, input)),
                            CVY_ERR_DIVERGED, "layer input: the data of step %lld hold NaN or infinity",
                            (long long)it->run.step);
            }
            continue;
        }
        CVY_TRY(run_step(e, it, i));
        for (int k = 0; k < s->op[step->op].operands; k++) {
            const cvy_operand *operand = &s->op[step->op].operand[k];
            if (operand->access != CVY_ACCESS_READ && !all_finite(&operand->tensor, it->program->step[i].operand[k])) {
                return cvy_fail(CVY_ERR_DIVERGED, "layer %s: its %s is NaN or infinite in step %lld",
                                e->plan->model->layer[step->layer].name,
                                operand->role == CVY_ROLE_LOSS ? "loss" : "output", (long long)it->run.step);
            }
        }
    }
    return cvy_fail(CVY_ERR_DIVERGED, "the loss is NaN or infinite in step %lld, yet every layer's output is finite",
                    (long long)it->run.step);
}

/*
 * The gradients of an update that failed and of those right behind it are all there still: from the loss back, the
 * first that is not finite names the layer. Updates before it have been made; a step from NaN has not.
 */
static cvy_status name_diverged_gradient(const cvy_executor *e, const iteration *it, int failed)
{
    const cvy_schedule *s = it->schedule;
    int last = failed;
    while (last + 1 < s->steps && s->step[last + 1].phase == CVY_PHASE_UPDATE) {
        last++;
    }
    for (int i = last; i >= failed; i--) {
        const cvy_step *step = &s->step[i];
        const cvy_op *op = step->op >= 0 ? &s->op[step->op] : NULL;
        const cvy_buffer *gradient = &s->buffer[s->use[step->first_use].buffer];
        if (op && op->pass == CVY_PASS_UPDATE && gradient->content == CVY_CONTENT_GRADIENT &&
            !all_finite(&op->operand[0].tensor, it->program->step[i].operand[0])) {
            int parameter = gradient->parameter;
            return cvy_fail(CVY_ERR_DIVERGED, "layer %s: the gradient of %s is NaN or infinite in step %lld",
                            e->plan->model->layer[step->layer].name, e->plan->model->parameter[parameter].name,
                            (long long)it->run.step);
        }
    }
    return cvy_fail_within(CVY_ERR_DIVERGED, "step %lld", (long long)it->run.step);
}

static cvy_status explain(const cvy_executor *e, const iteration *it, int failed, cvy_status status)
{
    const cvy_step *step = &it->schedule->step[failed];
    if (status != CVY_ERR_DIVERGED) {
        return step->layer >= 0 ? cvy_fail_within(status, "layer %s", e->plan->model->layer[step->layer].name) : status;
    }
    return step->op < 0 ? name_diverged_layer(e, it, step->micro_batch) : name_diverged_gradient(e, it, failed);
}

cvy_status cvy_executor_run(cvy_executor *e, cvy_schedule_kind kind, const cvy_executor_batch *batch,
                            const cvy_run *run, cvy_executor_result *result_out)
{
    const cvy_schedule *s = &e->plan->schedule[kind];
    program *p = &e->program[kind];
    iteration it = {.schedule = s, .program = p, .batch = batch, .whole = *run, .result = result_out};
    CVY_REQUIRE(s->steps > 0, CVY_ERR_ARG, "the plan has no such schedule");
    CVY_REQUIRE(batch->samples <= s->batch, CVY_ERR_ARG, "a batch of %lld samples for a schedule of %lld",
                (long long)batch->samples, (long long)s->batch);
    *result_out = (cvy_executor_result){0};
    int micro_batch = -1;
    double before = cvy_clock_s();
    double start = before;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        if (step->every > 1 && run->step % step->every != step->offset) {
            continue;
        }
        if (step->micro_batch != micro_batch) {
            micro_batch = step->micro_batch;
            enter_micro_batch(&it, micro_batch);
        }
        cvy_status status = run_step(e, &it, i);
        if (status != CVY_OK) {
            return explain(e, &it, i, status);
        }
        double after = cvy_clock_s();
        p->profile[i].calls++;
        p->profile[i].seconds += after - before;
        if (e->timeline) {
            cvy_executor_note_step(e, s, step, before, after);
        }
        before = after;
    }
    if (e->timeline) {
        cvy_executor_note_iteration(e, start, before);
    }
    return CVY_OK;
}

/* ---- what others see ---- */

void *cvy_executor_memory(const cvy_executor *e, cvy_schedule_kind kind, int buffer)
{
    return locate(e, &e->plan->schedule[kind], buffer);
}

int cvy_executor_find(const cvy_executor *e, cvy_schedule_kind kind, cvy_content content, int layer, int parameter)
{
    const cvy_schedule *s = &e->plan->schedule[kind];
    for (int i = s->buffers - 1; i >= 0; i--) { /* the last one made is the one in its final format */
        const cvy_buffer *b = &s->buffer[i];
        if (b->content == content && (layer < 0 || b->layer == layer) && (parameter < 0 || b->parameter == parameter)) {
            return i;
        }
    }
    return -1;
}

void *cvy_executor_slots(const cvy_executor *e)
{
    int slot = cvy_executor_find(e, CVY_SCHEDULE_EVALUATE, CVY_CONTENT_BATCH, -1, -1);
    const cvy_schedule *s = &e->plan->schedule[CVY_SCHEDULE_EVALUATE];
    while (slot > 0 && s->buffer[slot - 1].content == CVY_CONTENT_BATCH) {
        slot--;
    }
    return slot < 0 ? NULL : locate(e, s, slot);
}

const cvy_state *cvy_executor_state(const cvy_executor *e) { return &e->state; }

const cvy_step_profile *cvy_executor_profile(const cvy_executor *e, cvy_schedule_kind kind)
{
    return e->program[kind].profile;
}

void cvy_executor_reset_profile(cvy_executor *e)
{
    for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
        if (e->program[i].profile) {
            memset(e->program[i].profile, 0, (size_t)e->plan->schedule[i].steps * sizeof *e->program[i].profile);
        }
    }
}

void cvy_executor_set_timeline(cvy_executor *e, cvy_timeline *timeline) { e->timeline = timeline; }
