/*
 * Pipelines: how micro-batches are laid out against plain recurrences on stages of toy seconds, and whole estimates
 * against the schedules that would run, of all stages and all micro-batches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "estimate_world.h"
#include "oracle/estimate_internal.h"

/* ---- toy stages ---- */

enum { MOST_STAGES = 6, MOST_PARTS = 24 };

static cvy_plan no_plan; /* a schedule without steps */

typedef struct toy {
    int stages, parts, larger;
    cvy_pipeline_order order;
    cvy_priced_rank stage[MOST_STAGES];
} toy;

static double get_forward(const toy *t, int s, int m) { return t->stage[s].forward_s[m >= t->larger]; }

/* Until the gradient goes back, and the rest. */
static double get_backward(const toy *t, int s, int m, int rest)
{
    return t->stage[s].backward_s[m >= t->larger][rest] + (m > 0 ? t->stage[s].sum_s[rest] : 0.0) +
           (m == t->parts - 1 && rest == 0 ? t->stage[s].last_s : 0.0);
}

/* Sums over an iteration follow from the pieces. */
static void complete(toy *t)
{
    for (int s = 0; s < t->stages; s++) {
        cvy_priced_rank *r = &t->stage[s];
        r->plan = &no_plan;
        for (int m = 0; m < t->parts; m++) {
            r->part_s[CVY_PHASE_FORWARD] += get_forward(t, s, m);
            r->part_s[CVY_PHASE_BACKWARD] += get_backward(t, s, m, 0) + get_backward(t, s, m, 1);
            r->transfer.seconds += r->send_s[m >= t->larger] + r->return_s[m >= t->larger];
        }
        r->part_s[CVY_PHASE_UPDATE] = r->update_s;
        r->iteration_s = r->part_s[CVY_PHASE_FORWARD] + r->part_s[CVY_PHASE_BACKWARD] + r->update_s;
    }
}

static const cvy_stage_slice *find_slice(const cvy_trace *trace, int stage, int micro_batch, cvy_stage_work work)
{
    for (int i = 0; i < trace->slices; i++) {
        const cvy_stage_slice *slice = &trace->slice[i];
        if (slice->stage == stage && slice->micro_batch == micro_batch && slice->work == work) {
            return slice;
        }
    }
    fail_msg("stage %d does not do %d of micro-batch %d", stage, (int)work, micro_batch);
    return NULL;
}

static void check_slice(const toy *t, const cvy_trace *trace, int s, int m)
{
    const double tiny = 1e-9;
    const cvy_stage_slice *forward = find_slice(trace, s, m, CVY_STAGE_FORWARD);
    const cvy_stage_slice *backward = find_slice(trace, s, m, CVY_STAGE_BACKWARD);
    assert_close(forward->end_s - forward->start_s, get_forward(t, s, m), tiny);
    assert_close(backward->end_s - backward->start_s, get_backward(t, s, m, 0), tiny);
    if (s > 0) {
        const cvy_stage_slice *rest = find_slice(trace, s, m, CVY_STAGE_REST);
        const cvy_stage_slice *made = find_slice(trace, s - 1, m, CVY_STAGE_FORWARD);
        const cvy_stage_slice *wanted = find_slice(trace, s - 1, m, CVY_STAGE_BACKWARD);
        assert_close(rest->end_s - rest->start_s, get_backward(t, s, m, 1), tiny);
        assert_true(forward->start_s >= made->end_s + t->stage[s - 1].send_s[m >= t->larger] - tiny);
        assert_true(wanted->start_s >= backward->end_s + t->stage[s].return_s[m >= t->larger] - tiny);
    }
}

/* What is kept of a run: all work of all stages, each in its time, one thing after the other, up to the end of it. */
static void check_slices(const toy *t, const cvy_trace *trace, double iteration_s)
{
    double end_s = 0.0;
    assert_int_equal(trace->slices, t->parts * (3 * t->stages - 1) + t->stages);
    for (int s = 0; s < t->stages; s++) {
        for (int m = 0; m < t->parts; m++) {
            check_slice(t, trace, s, m);
        }
        (void)find_slice(trace, s, 0, CVY_STAGE_UPDATE);
    }
    for (int i = 0; i < trace->slices; i++) {
        const cvy_stage_slice *a = &trace->slice[i];
        end_s = a->end_s > end_s ? a->end_s : end_s;
        for (int k = 0; k < i; k++) {
            const cvy_stage_slice *b = &trace->slice[k];
            assert_true(a->stage != b->stage || a->end_s <= b->start_s + 1e-9 || b->end_s <= a->start_s + 1e-9);
        }
    }
    assert_close(end_s, iteration_s, 1e-9);
}

static cvy_estimate lay_out(toy *t)
{
    cvy_trace trace = {.slices = 0};
    const cvy_machine machine = {.device.kind = CVY_DEVICE_GPU};
    cvy_oracle oracle = {.machine = &machine};
    cvy_estimate_question question = {.strategy.pipeline = t->order};
    cvy_pricing pricing = {.oracle = &oracle, .question = &question, .stages = t->stages,
                           .micro_batches = t->parts, .larger = t->larger, .trace = &trace};
    cvy_estimate e = {.feasible = true};
    complete(t);
    assert_ok(cvy_simulator_create(&oracle.simulator));
    assert_ok(cvy_price_pipeline(&pricing, t->stage, &e));
    cvy_simulator_destroy(&oracle.simulator);
    assert_close(sum_parts(&e), e.iteration_s, 1e-12);
    check_slices(t, &trace, e.iteration_s);
    cvy_free(trace.slice);
    return e;
}

/* A stage's micro-batches in order: m goes forward, -1 - m backward. Returns how many were most in flight. */
static int list_order(const toy *t, int s, int list[2 * MOST_PARTS])
{
    int count = 0, forward = 0, backward = 0, most = 0;
    int ahead = t->order == CVY_PIPELINE_GPIPE ? t->parts : t->stages - s;
    while (backward < t->parts) {
        if (forward < t->parts && forward - backward < ahead) {
            list[count++] = forward++;
        } else {
            list[count++] = -1 - backward++;
        }
        most = forward - backward > most ? forward - backward : most;
    }
    return most;
}

/* When each is done: over and over until nothing changes, as what waits for whom has no order of its own. */
static double iterate_recurrence(const toy *t)
{
    static double forward[MOST_STAGES][MOST_PARTS], backward[MOST_STAGES][MOST_PARTS];
    static double sent[MOST_STAGES][MOST_PARTS], returned[MOST_STAGES][MOST_PARTS];
    double last = 0.0;
    memset(forward, 0, sizeof forward);
    memset(backward, 0, sizeof backward);
    memset(sent, 0, sizeof sent);
    memset(returned, 0, sizeof returned);
    for (int round = 0; round < 4 * MOST_STAGES * MOST_PARTS; round++) {
        for (int s = 0; s < t->stages; s++) {
            int list[2 * MOST_PARTS];
            double clock = 0.0;
            list_order(t, s, list);
            for (int i = 0; i < 2 * t->parts; i++) {
                int m = list[i] >= 0 ? list[i] : -1 - list[i];
                double ready = list[i] >= 0 ? (s > 0 ? sent[s - 1][m] : 0.0)
                                            : (s + 1 < t->stages ? returned[s + 1][m] : 0.0);
                clock = fmax(clock, ready) + (list[i] >= 0 ? get_forward(t, s, m) : get_backward(t, s, m, 0));
                *(list[i] >= 0 ? &forward[s][m] : &backward[s][m]) = clock;
                clock += list[i] >= 0 ? 0.0 : get_backward(t, s, m, 1);
            }
            for (int m = 0; m < t->parts; m++) { /* a message after the other */
                bool less = m >= t->larger;
                sent[s][m] = fmax(forward[s][m], m > 0 ? sent[s][m - 1] : 0.0) + t->stage[s].send_s[less];
                returned[s][m] = fmax(backward[s][m], m > 0 ? returned[s][m - 1] : 0.0) + t->stage[s].return_s[less];
            }
            last = fmax(last, clock + t->stage[s].update_s);
        }
    }
    return last;
}

/* Nothing passes and all are equal: M + S - 1 times forward and backward; a stage works M of them. */
static void test_equal_stages_take_parts_and_stages_less_one(void **state)
{
    (void)state;
    for (int order = 0; order < CVY_PIPELINE_COUNT; order++) {
        for (int stages = 2; stages <= MOST_STAGES; stages++) {
            for (int parts = 1; parts <= MOST_PARTS; parts += 5) {
                toy t = {.stages = stages, .parts = parts, .larger = parts, .order = (cvy_pipeline_order)order};
                for (int s = 0; s < stages; s++) {
                    t.stage[s].forward_s[0] = 2.0;
                    t.stage[s].backward_s[0][0] = 3.0;
                }
                cvy_estimate e = lay_out(&t);
                assert_close(e.iteration_s, (parts + stages - 1) * 5.0, 1e-12);
                assert_close(e.part_s[CVY_TIME_BUBBLE], (stages - 1) * 5.0, 1e-12);
                assert_true(e.transfer_s == 0.0 && e.balance == 0.0);
            }
        }
    }
}

/* All of GPipe's; of 1F1B's as many as there are stages from here on. */
static void test_micro_batches_in_flight(void **state)
{
    (void)state;
    for (int order = 0; order < CVY_PIPELINE_COUNT; order++) {
        for (int parts = 1; parts <= MOST_PARTS; parts++) {
            toy t = {.stages = 5, .parts = parts, .larger = parts, .order = (cvy_pipeline_order)order};
            cvy_strategy strategy = {.pipeline = t.order, .mesh.size[CVY_AXIS_STAGE] = 5};
            for (int s = 0; s < 5; s++) {
                int list[2 * MOST_PARTS], most = list_order(&t, s, list);
                int expected = order == CVY_PIPELINE_GPIPE ? parts : (parts < 5 - s ? parts : 5 - s);
                assert_int_equal(most, expected);
                assert_int_equal(cvy_pipeline_in_flight(&strategy, parts, s), expected);
            }
        }
    }
}

static double draw(double from, double to) { return from + (to - from) * (rand() / (double)RAND_MAX); }

/* Whatever the stages' seconds, with micro-batches of two sizes, sums, updates and what passes between. */
static void test_unequal_stages_follow_the_recurrence(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 60; round++) {
        int parts = 1 + rand() % 12;
        toy t = {.stages = 2 + rand() % (MOST_STAGES - 1), .parts = parts, .larger = 1 + rand() % parts,
                 .order = (cvy_pipeline_order)(round % CVY_PIPELINE_COUNT)};
        double slowest = 0.0;
        for (int s = 0; s < t.stages; s++) {
            cvy_priced_rank *r = &t.stage[s];
            for (int less = 0; less < 2; less++) {
                r->forward_s[less] = draw(0.5, 2.0);
                r->backward_s[less][0] = draw(0.5, 3.0);
                r->backward_s[less][1] = s > 0 ? draw(0.0, 2.0) : 0.0;
                r->send_s[less] = s + 1 < t.stages ? draw(0.0, 3.0) : 0.0;
                r->return_s[less] = s > 0 ? draw(0.0, 3.0) : 0.0;
            }
            r->sum_s[0] = draw(0.0, 0.5);
            r->sum_s[1] = s > 0 ? draw(0.0, 0.5) : 0.0;
            r->last_s = draw(0.0, 0.5);
            r->update_s = draw(0.0, 1.0);
        }
        toy same = t;
        cvy_estimate e = lay_out(&t);
        double expected = iterate_recurrence(&same);
        for (int s = 0; s < t.stages; s++) {
            for (int less = 0; less < 2; less++) {
                same.stage[s].send_s[less] = same.stage[s].return_s[less] = 0.0;
            }
            slowest = fmax(slowest, t.stage[s].iteration_s);
        }
        double free_s = iterate_recurrence(&same);
        assert_close(e.iteration_s, expected, 1e-12);
        assert_close(e.transfer_s + 1.0, expected - free_s + 1.0, 1e-12);
        assert_close(e.part_s[CVY_TIME_BUBBLE] + 1.0, free_s - slowest + 1.0, 1e-12);
    }
}

/* ---- whole schedules ---- */

static const struct {
    const char *model, *strategy;
    int64_t ranks, batch;
} cases[] = {
    {"lenet5", "stage=2,micro-batches=1", 2, 5},
    {"lenet5", "stage=2,micro-batches=2", 2, 6},
    {"lenet5", "stage=3,micro-batches=4", 3, 10},
    {"lenet5", "stage=3,micro-batches=4,pipeline=gpipe", 3, 10},
    {"lenet5", "sample=2,stage=2,micro-batches=3", 4, 15},
    {"resnet18:size=64", "stage=4,micro-batches=6", 4, 15},
    {"resnet18:size=64", "stage=4,micro-batches=5,pipeline=gpipe", 4, 12},
    {"resnet18:size=64", "stage=2,height=2,micro-batches=3", 4, 8},
    {"vgg11:size=32", "stage=3,micro-batches=7", 3, 23},
};

/* All that a stage would do in an iteration: its schedule with every micro-batch. */
typedef struct pipeline {
    asked a;
    int64_t parts;
    cvy_distribution *distribution;
    int stages;
    cvy_plan *plan[MOST_STAGES];
} pipeline;

static int64_t get_rank(const pipeline *p, int stage)
{
    return cvy_mesh_rank(&p->distribution->strategy.mesh, (int64_t[CVY_AXES]){stage});
}

static void open_pipeline(pipeline *p, size_t which, cvy_trace **trace_out)
{
    open_asked(&p->a, cases[which].model, cases[which].strategy, cases[which].ranks, cases[which].batch);
    cvy_trace *trace = trace_now(&p->a);
    cvy_distribution_options options = {.batch = cases[which].batch, .stages = trace->distribution->stages};
    assert_ok(cvy_distribution_create(p->a.model, &p->a.question.strategy, &options, &p->distribution));
    p->parts = p->a.question.strategy.micro_batches;
    p->stages = trace->ranks;
    for (int s = 0; s < p->stages; s++) {
        p->plan[s] = plan_rank(&p->a, p->distribution, get_rank(p, s));
        assert_int_equal(p->plan[s]->schedule[CVY_SCHEDULE_TRAIN].micro_batches, p->parts);
    }
    *trace_out = trace;
}

static void close_pipeline(pipeline *p, cvy_trace **trace)
{
    for (int s = 0; s < p->stages; s++) {
        cvy_plan_destroy(&p->plan[s]);
    }
    cvy_distribution_destroy(&p->distribution);
    cvy_trace_destroy(trace);
    close_asked(&p->a);
}

/* Forward and backward of layers; not what adds gradients of parameters up. */
static double count_layer_flop(const cvy_schedule *s, const cvy_step *step)
{
    bool layers = step->op >= 0 && (step->phase == CVY_PHASE_FORWARD || step->phase == CVY_PHASE_BACKWARD);
    bool adds = layers && s->op[step->op].kind == CVY_OP_ADD &&
                s->buffer[s->use[step->first_use].buffer].content == CVY_CONTENT_GRADIENT;
    return layers && !adds ? cvy_op_flop(&s->op[step->op]) : 0.0;
}

/* Each step of a whole schedule is one of the two micro-batches', as often as the estimate says. */
static void test_steps_run_as_often_as_scheduled(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pipeline p;
        cvy_trace *trace;
        double flop = 0.0, serial = 0.0, sent = 0.0, passed = 0.0;
        open_pipeline(&p, i, &trace);
        for (int r = 0; r < p.stages; r++) {
            const cvy_schedule *full = &p.plan[r]->schedule[CVY_SCHEDULE_TRAIN];
            const cvy_schedule *pair = &trace->rank[r].plan->schedule[CVY_SCHEDULE_TRAIN];
            double steps[2] = {0.0, 0.0}, flops[2] = {0.0, 0.0}, bytes[2] = {0.0, 0.0};
            for (int k = 0; k < full->steps; k++) {
                const cvy_step *step = &full->step[k];
                steps[0] += 1.0;
                flops[0] += step->op >= 0 ? cvy_op_flop(&full->op[step->op]) : 0.0;
                bytes[0] += step->exchange >= 0 ? (double)full->exchange[step->exchange].bytes : 0.0;
                flop += count_layer_flop(full, step);
            }
            for (int k = 0; k < pair->steps; k++) {
                const cvy_step *step = &pair->step[k];
                double times = trace->rank[r].times[k];
                steps[1] += times;
                flops[1] += step->op >= 0 ? times * cvy_op_flop(&pair->op[step->op]) : 0.0;
                bytes[1] += step->exchange >= 0 ? times * (double)pair->exchange[step->exchange].bytes : 0.0;
            }
            assert_true(steps[0] == steps[1]);
            assert_close(flops[1], flops[0], 1e-12);
            assert_close(bytes[1] + 1.0, bytes[0] + 1.0, 1e-12);
            passed += bytes[1];
            sent = fmax(sent, bytes[1]);
        }
        assert_close(trace->estimate.sent_bytes, sent, 1e-12);
        assert_true(passed > 0.0);
        /* Where nothing but stages divides the model, kernels of all of them are those of one rank. */
        cvy_plan *alone = plan_rank(&p.a, NULL, 0);
        const cvy_schedule *s = &alone->schedule[CVY_SCHEDULE_TRAIN];
        for (int k = 0; k < s->steps; k++) {
            serial += count_layer_flop(s, &s->step[k]);
        }
        if (cases[i].ranks == p.stages) {
            assert_close(flop, serial, 1e-12);
        }
        cvy_plan_destroy(&alone);
        close_pipeline(&p, &trace);
    }
}

/* One tensor there and its gradient back, once for each sample, between any two stages. */
static void test_transfers_count_once_each_way(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "vgg11:size=32", "stage=2,micro-batches=4", 2, 13);
    cvy_trace *trace = trace_now(&a);
    int last = trace->distribution->stages[1] - 1;
    double bytes = 4.0 * (double)cvy_shape_elements(&a.model->layer[last].output); /* of a sample */
    const cvy_estimate *e = &trace->estimate;
    assert_close(e->transfer.bytes, 13.0 * bytes, 1e-12);
    assert_close(e->communication[CVY_PHASE_REDISTRIBUTE].bytes, 13.0 * bytes, 1e-12);
    /* In a node 1 us a message, and 10 GB/s. */
    assert_close(e->transfer.seconds, 4 * 1e-6 + 13.0 * bytes / 10e9, 1e-9);
    cvy_trace_destroy(&trace);
    /* The stage in the middle of three sends both ways; what the outer ones send is less. */
    read_strategy(&a, "stage=3,micro-batches=4", 3);
    trace = trace_now(&a);
    int second = trace->distribution->stages[2] - 1, first = trace->distribution->stages[1] - 1;
    bytes = 4.0 * (double)(cvy_shape_elements(&a.model->layer[first].output) +
                           cvy_shape_elements(&a.model->layer[second].output));
    assert_close(trace->estimate.transfer.bytes, 13.0 * bytes, 1e-12);
    assert_close(trace->estimate.transfer.seconds, 8 * 1e-6 + 13.0 * bytes / 10e9, 1e-9);
    cvy_trace_destroy(&trace);
    close_asked(&a);
}

/* Steps of all stages with all micro-batches; a message comes when it was sent. */
typedef struct problem {
    cvy_sim_step *step;
    cvy_dependency *dependency;
    int steps, dependencies;
    int sent[MOST_STAGES][2][MOST_PARTS]; /* by stage, way and micro-batch: the step */
} problem;

static bool is_message(const cvy_schedule *s, const cvy_step *step, bool *forward, bool *receive)
{
    bool exchanges = step->kind == CVY_STEP_EXCHANGE;
    const cvy_message *message = exchanges ? &s->message[s->exchange[step->exchange].first_message] : NULL;
    int offset = message ? message->peer_offset[CVY_AXIS_STAGE] : 0;
    *receive = offset && message->receive;
    *forward = *receive ? offset < 0 : offset > 0;
    return offset != 0;
}

static double price(const cvy_compute *compute, cvy_network *network, const cvy_schedule *s, const cvy_step *step)
{
    cvy_network_cost cost = {0};
    if (step->op >= 0) {
        return cvy_compute_estimate_op(compute, &s->op[step->op], 1.0, 0.0).seconds;
    }
    if (step->exchange < 0) {
        return 0.0;
    }
    const cvy_exchange *x = &s->exchange[step->exchange];
    cvy_network_request request = {.collective = x->collective, .axes = x->axes, .bytes = (double)x->bytes,
                                   .traffic = cvy_network_traffic(step->phase, x->axes)};
    if (step->kind == CVY_STEP_EXCHANGE) {
        cvy_network_estimate_messages(network, s->message + x->first_message, x->messages, request.traffic, &cost);
    } else {
        cvy_network_estimate_collective(network, &request, &cost);
    }
    return cost.seconds;
}

static void add_stage(const pipeline *p, int stage, const cvy_compute *compute, cvy_network *network, problem *q)
{
    const cvy_schedule *s = &p->plan[stage]->schedule[CVY_SCHEDULE_TRAIN];
    int base = q->steps;
    for (int i = 0; i < s->steps; i++) {
        bool forward, receive, message = is_message(s, &s->step[i], &forward, &receive);
        cvy_sim_step *step = &q->step[q->steps++];
        *step = (cvy_sim_step){.duration_s = receive ? 0.0 : price(compute, network, s, &s->step[i]),
                               .stream = stage * CVY_STREAM_COUNT + s->step[i].stream, .join = -1,
                               .first_dependency = q->dependencies};
        for (int k = 0; k < s->step[i].dependencies; k++) {
            const cvy_dependency *on = &s->dependency[s->step[i].first_dependency + k];
            if (on->distance == 0) {
                q->dependency[q->dependencies++].step = base + on->step;
            }
        }
        if (message && receive) { /* filled in when all sends are known */
            q->dependency[q->dependencies++] = (cvy_dependency){
                .step = -1 - ((forward ? stage - 1 : stage + 1) * 2 + forward) * MOST_PARTS - s->step[i].micro_batch};
        } else if (message) {
            q->sent[stage][forward][s->step[i].micro_batch] = base + i;
        }
        step->dependencies = q->dependencies - step->first_dependency;
    }
}

static double simulate(const pipeline *p)
{
    problem q = {0};
    int steps = 0, dependencies = 0;
    cvy_compute *compute = NULL;
    cvy_simulator *simulator = NULL;
    cvy_simulated run;
    static cvy_network network;
    assert_ok(cvy_compute_create(&p->a.machine, CVY_PRECISION_FP32, &compute));
    assert_ok(cvy_network_setup(&p->a.machine, &p->a.question.strategy.mesh, &network));
    for (int s = 0; s < p->stages; s++) {
        steps += p->plan[s]->schedule[CVY_SCHEDULE_TRAIN].steps;
        dependencies += p->plan[s]->schedule[CVY_SCHEDULE_TRAIN].dependencies;
    }
    q.step = calloc((size_t)steps, sizeof *q.step);
    q.dependency = calloc((size_t)(dependencies + steps), sizeof *q.dependency);
    assert_true(q.step && q.dependency);
    for (int s = 0; s < p->stages; s++) {
        add_stage(p, s, compute, &network, &q);
    }
    for (int i = 0; i < q.dependencies; i++) {
        if (q.dependency[i].step < 0) {
            int code = -1 - q.dependency[i].step, m = code % MOST_PARTS, way = code / MOST_PARTS;
            q.dependency[i].step = q.sent[way / 2][way % 2][m];
        }
    }
    cvy_simulation simulation = {.steps = q.steps, .dependencies = q.dependencies, .step = q.step,
                                 .dependency = q.dependency, .streams = p->stages * CVY_STREAM_COUNT};
    assert_ok(cvy_simulator_create(&simulator));
    assert_ok(cvy_simulator_run(simulator, &simulation, 1, &run));
    double makespan_s = run.makespan_s;
    cvy_simulator_destroy(&simulator);
    cvy_compute_destroy(&compute);
    free(q.step);
    free(q.dependency);
    return makespan_s;
}

/*
 * All steps of all stages in one simulation, where buffers that share memory wait for each other, too: the estimate
 * knows two or three pieces of a micro-batch and no memory. 1.3 % is the most that they differ here.
 */
static void test_estimates_are_what_whole_schedules_take(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pipeline p;
        cvy_trace *trace;
        open_pipeline(&p, i, &trace);
        double whole_s = simulate(&p);
        assert_close(trace->estimate.iteration_s, whole_s, 0.02);
        close_pipeline(&p, &trace);
    }
}

/*
 * The whole schedule's arenas, to the byte where it is the one that is priced. What is added for more micro-batches is
 * live bytes: the gaps between them are not known, and were up to 3 %.
 */
static void test_memory_is_what_whole_schedules_take(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pipeline p;
        cvy_trace *trace;
        int64_t most = 0;
        open_pipeline(&p, i, &trace);
        for (int s = 0; s < p.stages; s++) {
            int64_t bytes = p.plan[s]->persistent_bytes + p.plan[s]->transient_bytes;
            most = bytes > most ? bytes : most;
        }
        assert_close((double)trace->estimate.total_bytes, (double)most, p.parts <= 2 ? 0.0 : 0.05);
        close_pipeline(&p, &trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_stages_take_parts_and_stages_less_one),
        cmocka_unit_test(test_micro_batches_in_flight),
        cmocka_unit_test(test_unequal_stages_follow_the_recurrence),
        cmocka_unit_test(test_steps_run_as_often_as_scheduled),
        cmocka_unit_test(test_transfers_count_once_each_way),
        cmocka_unit_test(test_estimates_are_what_whole_schedules_take),
        cmocka_unit_test(test_memory_is_what_whole_schedules_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
