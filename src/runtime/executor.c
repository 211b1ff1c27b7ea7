/* Set-up of an executor: memory, kernels, communication, each bound to its place before the first step. */
#include "runtime/executor.h"

#include <stdio.h>
#include <string.h>

#include "base/pulse.h"
#include "runtime/executor_internal.h"

/* ---- set-up ---- */

void *cvy_executor_locate(const cvy_executor *e, const cvy_schedule *s, int buffer)
{
    const cvy_buffer *b = &s->buffer[buffer];
    return (b->persistent ? e->persistent.base : e->transient.base) + b->offset;
}

/* A kernel and the addresses of its operands for one step. */
static cvy_status bind_step(cvy_executor *e, const cvy_schedule *s, const cvy_step *step, bound_step *bound)
{
    const cvy_op *op = &s->op[step->op];
    cvy_pulse_beat();
    const char *owner = step->layer >= 0 ? e->plan->model->layer[step->layer].name : "plan";
    for (int i = 0; i < op->operands; i++) {
        bound->operand[i] = cvy_executor_locate(e, s, s->use[step->first_use + i].buffer);
    }
    if (step->uses > op->operands) {
        bound->scratch = cvy_executor_locate(e, s, s->use[step->first_use + op->operands].buffer);
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
    p->under_way = cvy_calloc((size_t)s->steps, sizeof *p->under_way);
    if (!p->step || !p->profile || !p->under_way) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < s->steps; i++) {
        if (s->step[i].op >= 0) {
            CVY_TRY(bind_step(e, s, &s->step[i], &p->step[i]));
        }
    }
    return CVY_OK;
}

/* All ranks or none: what one of them cannot have, none has. */
static cvy_status agree(cvy_executor *e, cvy_status mine) { return e->comm ? cvy_comm_agree(e->comm, mine) : mine; }

/* Members of a group tell each other what they have while a step is bound: whoever fails comes to the others, too. */
static cvy_status bind_exchanges(cvy_executor *e)
{
    char words[1024] = "";
    cvy_status status = CVY_OK;
    for (int kind = 0; kind < CVY_SCHEDULE_COUNT; kind++) {
        for (int i = 0; i < e->plan->schedule[kind].steps; i++) {
            bool exchanges = e->plan->schedule[kind].step[i].exchange >= 0;
            cvy_status bound = exchanges ? cvy_executor_bind_exchange(e, (cvy_schedule_kind)kind, i) : CVY_OK;
            if (bound != CVY_OK && status == CVY_OK) {
                status = bound;
                snprintf(words, sizeof words, "%s", cvy_error_message());
            }
        }
    }
    return status == CVY_OK ? CVY_OK : cvy_fail(status, "%s", words);
}

static cvy_status take_memory(cvy_executor *e)
{
    CVY_TRY(cvy_arena_create((size_t)e->plan->persistent_bytes, &e->persistent));
    CVY_TRY(cvy_arena_create((size_t)e->plan->transient_bytes, &e->transient));
    for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
        CVY_TRY(bind_schedule(e, (cvy_schedule_kind)i));
    }
    return cvy_executor_list_state(e);
}

cvy_status cvy_executor_create(const cvy_plan *plan, cvy_comm *comm, cvy_executor **executor_out)
{
    cvy_status status = CVY_ERR_MEMORY;
    cvy_executor *e = cvy_calloc(1, sizeof *e);
    if (!e) {
        goto done;
    }
    e->plan = plan;
    e->comm = cvy_comm_ranks(comm) > 1 ? comm : NULL;
    status = plan->options.backends.count > 0
                 ? take_memory(e)
                 : cvy_fail(CVY_ERR_ARG, "a plan by rule has no kernels to run: make it with a backend");
    CVY_TRY_GOTO(status, done, agree(e, status));
    CVY_TRY_GOTO(status, done, cvy_executor_join(e));
    CVY_TRY_GOTO(status, done, agree(e, bind_exchanges(e)));
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
    cvy_executor_leave(e);
    for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
        for (int k = 0; e->program[i].step && k < e->plan->schedule[i].steps; k++) {
            cvy_kernel_destroy(&e->program[i].step[k].kernel);
        }
        cvy_free(e->program[i].step);
        cvy_free(e->program[i].profile);
        cvy_free(e->program[i].under_way);
    }
    cvy_executor_release_state(e);
    cvy_arena_destroy(&e->persistent);
    cvy_arena_destroy(&e->transient);
    cvy_free(e);
    *executor = NULL;
}

/* ---- what others see ---- */

void *cvy_executor_memory(const cvy_executor *e, cvy_schedule_kind kind, int buffer)
{
    return cvy_executor_locate(e, &e->plan->schedule[kind], buffer);
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
    return slot < 0 ? NULL : cvy_executor_locate(e, s, slot);
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

int64_t cvy_executor_moved_bytes(const cvy_executor *e) { return e->comm ? cvy_groups_moved_bytes(&e->groups) : 0; }
