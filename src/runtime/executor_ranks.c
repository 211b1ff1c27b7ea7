/*
 * What ranks have to do with each other in an iteration. A communication step on the main stream is run to its end; on
 * another one it is begun, makes progress between the steps that follow, and is waited for by the first that depends on
 * it. Within one node gradients are exchanged at once all the same: the cores that compute are those that copy and add,
 * so nothing is won, and the library's other way costs more (Open MPI 4.1, 2 ranks, 25 MB beside work: 11 to 15 ms
 * begun and tested, 5.4 ms at once). At the end all ranks add up what they found, and hear whether any of them failed
 * or was asked to stop.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/pulse.h"
#include "runtime/alike.h"
#include "runtime/executor_internal.h"

/* ---- set-up ---- */

/* Of ranks that all have the same scores one tells the loss: the first along axes that do not split them. */
static bool counts_loss(const cvy_executor *e, const cvy_schedule *s)
{
    const cvy_distribution *d = e->plan->options.parallel.distribution;
    int loss = e->plan->model->layers - 1;
    bool counts = s->loss_buffer >= 0;
    for (int axis = CVY_AXIS_DEPTH; d && counts && axis < CVY_AXES; axis++) {
        bool split = d->strategy.mesh.size[axis] > 1 &&
                     cvy_distribution_input(d, loss, 0, (cvy_axis)axis).placing == CVY_PLACING_SPLIT;
        counts = split || cvy_mesh_coordinate(&d->strategy.mesh, e->plan->options.parallel.rank, (cvy_axis)axis) == 0;
    }
    return counts;
}

/* Stages have exchanges of their own; counted by the longest schedule, numbers go up alike on all ranks. */
static cvy_status count_exchanges(cvy_executor *e)
{
    int32_t most[CVY_SCHEDULE_COUNT];
    for (int kind = 0; kind < CVY_SCHEDULE_COUNT; kind++) {
        most[kind] = e->plan->schedule[kind].exchanges + 1; /* and the one at the end of an iteration */
    }
    CVY_TRY(cvy_comm_all_reduce(e->comm, most, CVY_SCHEDULE_COUNT, CVY_I32, CVY_REDUCE_MAX));
    for (int kind = 0; kind < CVY_SCHEDULE_COUNT; kind++) {
        e->program[kind].exchanges = most[kind];
    }
    return CVY_OK;
}

static cvy_status find_one_node(cvy_executor *e)
{
    cvy_comm *node = NULL;
    CVY_TRY(cvy_comm_split_node(e->comm, &node));
    int32_t alike = cvy_comm_ranks(node) == cvy_comm_ranks(e->comm);
    cvy_comm_close(&node);
    CVY_TRY(cvy_comm_all_reduce(e->comm, &alike, 1, CVY_I32, CVY_REDUCE_MIN));
    e->one_node = alike;
    return CVY_OK;
}

static cvy_status join(cvy_executor *e)
{
    const int64_t numbers = VERDICTS;
    CVY_TRY(find_one_node(e));
    CVY_TRY(cvy_groups_setup(e->comm, e->plan, &e->groups));
    CVY_TRY(cvy_alike_order(&e->groups, e->plan));
    return cvy_transfer_create(e->comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_ALL_REDUCE, .dtype = CVY_F64,
                                                             .target = e->verdict, .count = &numbers},
                               &e->tell);
}

cvy_status cvy_executor_join(cvy_executor *e)
{
    for (int kind = 0; kind < CVY_SCHEDULE_COUNT; kind++) {
        e->program[kind].counts_loss = counts_loss(e, &e->plan->schedule[kind]);
    }
    if (!e->comm) {
        return CVY_OK;
    }
    CVY_TRY(cvy_comm_agree(e->comm, join(e)));
    return count_exchanges(e);
}

/* "all-reduce over sample, layer conv1" */
static void name_exchange(const cvy_executor *e, const cvy_schedule *s, const cvy_step *step, cvy_exchange_run *run)
{
    const cvy_exchange *x = &s->exchange[step->exchange];
    int length = snprintf(run->name, sizeof run->name, "%s", step->kind == CVY_STEP_COLLECTIVE
                                                                 ? cvy_collective_name(x->collective) : "messages");
    const char *joint = " over ";
    for (int axis = 0; axis < CVY_AXES && length < (int)sizeof run->name; axis++) {
        if (x->axes >> axis & 1u) {
            length += snprintf(run->name + length, sizeof run->name - (size_t)length, "%s%s", joint,
                               cvy_axis_name((cvy_axis)axis));
            joint = " and ";
        }
    }
    if (step->layer >= 0 && length < (int)sizeof run->name) {
        snprintf(run->name + length, sizeof run->name - (size_t)length, ", layer %s",
                 e->plan->model->layer[step->layer].name);
    }
    run->ordinal = step->exchange;
}

cvy_status cvy_executor_bind_exchange(cvy_executor *e, cvy_schedule_kind kind, int index)
{
    const cvy_schedule *s = &e->plan->schedule[kind];
    const cvy_step *step = &s->step[index];
    bound_step *bound = &e->program[kind].step[index];
    cvy_exchange_site site = {.schedule = s, .step = step, .groups = &e->groups};
    CVY_REQUIRE(e->comm, CVY_ERR_ARG, "a plan of one rank of many needs a communicator");
    for (int i = 0; i < step->uses && i < CVY_EXCHANGE_BUFFERS; i++) {
        site.memory[i] = cvy_executor_locate(e, s, s->use[step->first_use + i].buffer);
    }
    cvy_exchange_run run;
    cvy_status status = cvy_exchange_bind(&site, &run);
    bound->exchange = cvy_calloc(1, sizeof *bound->exchange);
    if (!bound->exchange) {
        cvy_exchange_clear(&run);
        return CVY_ERR_MEMORY;
    }
    *bound->exchange = run;
    name_exchange(e, s, step, bound->exchange);
    const char *owner = step->layer >= 0 ? e->plan->model->layer[step->layer].name : "plan";
    return status == CVY_OK ? status : cvy_fail_within(status, "layer %s", owner);
}

void cvy_executor_leave(cvy_executor *e)
{
    cvy_pulse_forget(); /* names of exchanges go */
    for (int kind = 0; kind < CVY_SCHEDULE_COUNT; kind++) {
        for (int i = 0; e->program[kind].step && i < e->plan->schedule[kind].steps; i++) {
            if (e->program[kind].step[i].exchange) {
                cvy_exchange_clear(e->program[kind].step[i].exchange);
                cvy_free(e->program[kind].step[i].exchange);
            }
        }
    }
    cvy_transfer_destroy(&e->tell);
    cvy_groups_clear(&e->groups);
}

/* ---- steps ---- */

/* What the others see while this rank waits for them. @return what it did before */
static cvy_activity say_exchange(const cvy_executor *e, const cvy_exchange_run *run)
{
    return cvy_pulse_exchange(e->exchanged + run->ordinal, run->name);
}

cvy_status cvy_executor_communicate(cvy_executor *e, iteration *it, int index)
{
    program *p = it->program;
    int stream = it->schedule->step[index].stream;
    if (stream == CVY_STREAM_MAIN || (stream == CVY_STREAM_GRADIENTS && e->one_node)) {
        cvy_activity before = say_exchange(e, p->step[index].exchange);
        cvy_status status = cvy_exchange_run_whole(p->step[index].exchange);
        (void)cvy_pulse_set(before);
        return status;
    }
    p->under_way[p->under_ways++] = index;
    return cvy_exchange_begin(p->step[index].exchange);
}

/* Wait for one step, on its account. */
static cvy_status finish(const cvy_executor *e, const iteration *it, int index)
{
    double start_s = cvy_clock_s();
    cvy_activity before = say_exchange(e, it->program->step[index].exchange);
    cvy_status status = cvy_exchange_finish(it->program->step[index].exchange);
    (void)cvy_pulse_set(before);
    it->program->profile[index].seconds += cvy_clock_s() - start_s;
    return status;
}

static bool depends_on(const cvy_schedule *s, const cvy_step *step, int other)
{
    for (int i = 0; i < step->dependencies; i++) {
        const cvy_dependency *d = &s->dependency[step->first_dependency + i];
        if (d->distance == 0 && d->step == other) {
            return true;
        }
    }
    return false;
}

cvy_status cvy_executor_wait_for(cvy_executor *e, iteration *it, int index)
{
    program *p = it->program;
    int left = 0;
    for (int i = 0; i < p->under_ways; i++) {
        int other = p->under_way[i];
        if (depends_on(it->schedule, &it->schedule->step[index], other)) {
            CVY_TRY(finish(e, it, other));
        } else {
            CVY_TRY(cvy_exchange_progress(p->step[other].exchange));
            p->under_way[left++] = other;
        }
    }
    p->under_ways = left;
    return CVY_OK;
}

cvy_status cvy_executor_wait_for_all(const cvy_executor *e, iteration *it)
{
    program *p = it->program;
    int waiting = p->under_ways;
    p->under_ways = 0;
    for (int i = 0; i < waiting; i++) {
        CVY_TRY(finish(e, it, p->under_way[i]));
    }
    return CVY_OK;
}

/* ---- the end of an iteration ---- */

void cvy_executor_note_failure(cvy_executor *e, iteration *it, int index, cvy_status status)
{
    if (e->failure.status != CVY_OK) {
        return; /* what came first is told */
    }
    status = cvy_executor_explain(e, it, index, status);
    bool loss = status == CVY_ERR_DIVERGED && it->schedule->step[index].op < 0;
    e->failure = (failure){.status = status, .loss_step = loss ? index : -1};
    strncpy(e->failure.words, cvy_error_message(), sizeof e->failure.words - 1);
}

/* Walk once more, all ranks together, to see where a loss that is not finite began: in the first layer of all. */
static cvy_status look_for_layer(cvy_executor *e, iteration *it)
{
    cvy_executor_result ignored = {0};
    it->looking = true;
    it->result = &ignored;
    CVY_TRY(cvy_executor_walk(e, it));
    int32_t mine = it->found >= 0 ? it->schedule->step[it->found].layer : INT32_MAX, first = mine;
    mine = mine < 0 ? 0 : mine; /* the data's */
    first = mine;
    CVY_TRY(cvy_comm_all_reduce(e->comm, &first, 1, CVY_I32, CVY_REDUCE_MIN));
    e->failure = (failure){.loss_step = -1};
    if (first == INT32_MAX) {
        return cvy_fail(CVY_ERR_DIVERGED,
                        "the loss is NaN or infinite in step %lld, yet every layer's output is finite",
                        (long long)it->whole.step);
    }
    return first == mine ? cvy_executor_name_output(e, it, it->found) : CVY_OK;
}

cvy_status cvy_executor_tell(cvy_executor *e, iteration *it)
{
    bool counts = it->program->counts_loss;
    double *sum = e->verdict;
    sum[VERDICT_LOSS] = counts ? it->result->loss : 0.0;
    sum[VERDICT_CORRECT] = counts ? (double)it->result->correct : 0.0;
    sum[VERDICT_STOP] = it->batch->stop;
    sum[VERDICT_FAILED] = e->failure.status != CVY_OK;
    sum[VERDICT_LOSSES] = e->failure.loss_step >= 0;
    e->exchanged += it->program->exchanges;
    cvy_activity before = cvy_pulse_exchange(e->exchanged - 1, "all-reduce at the end of a step");
    cvy_status told = cvy_transfer_run(e->tell);
    (void)cvy_pulse_set(before);
    CVY_TRY(told);
    it->result->loss = sum[VERDICT_LOSS];
    it->result->correct = (int64_t)sum[VERDICT_CORRECT];
    it->result->stop = sum[VERDICT_STOP] > 0.0;
    if (sum[VERDICT_FAILED] == 0.0) {
        return CVY_OK;
    }
    cvy_status mine = e->failure.status;
    if (sum[VERDICT_LOSSES] > 0.0) {
        mine = look_for_layer(e, it);
    } else if (mine != CVY_OK) {
        mine = cvy_fail(mine, "%s", e->failure.words);
    }
    return cvy_comm_agree(e->comm, mine);
}
