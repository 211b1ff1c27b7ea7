/*
 * Layouts by the clock. A plan is made with every convolution in one layout, for a few samples; its steps are measured,
 * equal ops once, and summed by layer. That is done for each layout. Then the net is cut where it is narrow, and the
 * shortest way through the regions is found (Viterbi): a region costs what its layers took in a layout, a change of
 * layout between two regions a reorder of the tensor between them and one of its gradient. What comes out is planned
 * and measured in turn, and is taken only where it beats every single layout. Blocks come twice: with the batch as it
 * is, and with the batch in blocks, too, which padding makes slow or the lack of a kernel for few channels fast.
 *
 * A pass of a convolution for which a backend also has Winograd's algorithm is measured both ways, and counts as the
 * one that is taken; so layouts that have kernels for it compete with those that have not.
 */
#include <math.h>
#include <string.h>

#include "backend/stopwatch.h"
#include "base/checked.h"
#include "base/memory.h"
#include "plan/plan.h"

static const cvy_layout_choice layouts[] = {CVY_LAYOUT_BLOCKED, CVY_LAYOUT_CHANNELS_LAST, CVY_LAYOUT_PLAIN,
                                            CVY_LAYOUT_BLOCKED_INPUT};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* What a thread should have to do in a measured iteration: below, kernels are too short for the clock. */
static const double work_flop = 4e9;

/* Kernels that share out a batch differently must show it: Winograd's win over direct ones grows up to here. */
enum { LEAST_SAMPLES = 8 };

/* Winograd's algorithm rounds less well: it is taken where it needs at most this share of the time. */
static const double worthwhile = 0.97;

typedef struct survey {
    const cvy_model *model;
    cvy_plan_options options; /* of the measured plans */
    cvy_stopwatch stopwatch;
    double *seconds[LAYOUTS]; /* of each layer, in each layout; infinite where nobody runs it */
    uint32_t *winograd[LAYOUTS]; /* passes of each layer that are faster so, in each layout */
    double (*fastest)[CVY_PASS_COUNT]; /* of each layer's passes with weights, in any layout so far; 0: none yet */
    bool *narrow;
    int *way[LAYOUTS];        /* of the region that ends in a narrow layer: the layout of the region before */
} survey;

/* Measure an op that does a layer's pass, beside the fastest of those that did it in any layout so far. */
static cvy_status measure_rival(survey *s, int layer, const cvy_op *op, double *seconds_out)
{
    double *fastest = &s->fastest[layer][op->pass];
    CVY_TRY(cvy_stopwatch_measure(&s->stopwatch, op, *fastest, seconds_out));
    *fastest = *fastest > 0.0 ? fmin(*fastest, *seconds_out) : *seconds_out;
    return CVY_OK;
}

/*
 * What a step takes, the faster way; notes where that is Winograd's, which is measured first: where it is much faster
 * the direct sum needs no more than a glance.
 */
static cvy_status measure_step(survey *s, const cvy_plan *plan, const cvy_step *step, uint32_t *winograd,
                               double *seconds_out)
{
    const cvy_op *op = &plan->schedule[CVY_SCHEDULE_TRAIN].op[step->op];
    cvy_op other;
    double other_s = INFINITY;
    if (step->layer < 0 || !cvy_op_has_weights(op->kind)) {
        return cvy_stopwatch_measure(&s->stopwatch, op, 0.0, seconds_out);
    }
    if (!s->options.direct_only && cvy_plan_find_winograd(plan, step->layer, op, &other)) {
        CVY_TRY(measure_rival(s, step->layer, &other, &other_s));
    }
    CVY_TRY(measure_rival(s, step->layer, op, seconds_out));
    if (other_s <= worthwhile * *seconds_out) {
        *seconds_out = other_s;
        winograd[step->layer] |= 1u << op->pass;
    }
    return CVY_OK;
}

/*
 * Measure the plan that the options make, without its updates, which no layout changes; seconds by layer, and passes
 * that go by Winograd's algorithm, which are none before.
 */
static cvy_status measure_plan(survey *s, double *by_layer, uint32_t *winograd, double *total_out)
{
    cvy_plan *plan = NULL;
    double total = 0.0;
    cvy_status status = cvy_plan_create(s->model, &s->options, &plan);
    CVY_TRY_GOTO(status, done, status);
    const cvy_schedule *schedule = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < schedule->steps; i++) {
        const cvy_step *step = &schedule->step[i];
        double seconds = 0.0;
        if (step->op >= 0 && step->phase != CVY_PHASE_UPDATE) {
            CVY_TRY_GOTO(status, done, measure_step(s, plan, step, winograd, &seconds));
        }
        if (by_layer && step->layer >= 0) {
            by_layer[step->layer] += seconds;
        }
        total += seconds;
    }
    *total_out = total;
done:
    cvy_plan_destroy(&plan);
    return status;
}

/* All layers in one layout; one that no backend runs is no candidate. */
static cvy_status measure_layout(survey *s, int layout, double *total_out)
{
    s->options.layouts = NULL;
    s->options.layout = layouts[layout];
    cvy_status status = measure_plan(s, s->seconds[layout], s->winograd[layout], total_out);
    if (status == CVY_ERR_INFEASIBLE) {
        for (int i = 0; i < s->model->layers; i++) {
            s->seconds[layout][i] = INFINITY;
        }
        *total_out = INFINITY;
        return CVY_OK;
    }
    return status;
}

static cvy_format find_format(const survey *s, int layout)
{
    switch (layouts[layout]) {
    case CVY_LAYOUT_BLOCKED:
    case CVY_LAYOUT_BLOCKED_INPUT: return s->options.block == 16 ? CVY_FORMAT_C16 : CVY_FORMAT_C8;
    case CVY_LAYOUT_CHANNELS_LAST: return CVY_FORMAT_CHANNELS_LAST;
    default: return CVY_FORMAT_PLAIN;
    }
}

/* A layer's output into another layout, and its gradient back. */
static cvy_status measure_change(survey *s, int layer, int from, int to, double *seconds_out)
{
    cvy_tensor one = {.shape = s->model->layer[layer].output, .dtype = CVY_F32, .format = find_format(s, from)};
    cvy_tensor other = one;
    double there_s, back_s;
    *seconds_out = 0.0;
    other.format = find_format(s, to);
    one.shape.extent[0] = other.shape.extent[0] = s->options.batch;
    if (one.format == other.format || !cvy_tensor_format_fits(&one) || !cvy_tensor_format_fits(&other)) {
        return CVY_OK;
    }
    cvy_op op = {.kind = CVY_OP_REORDER, .pass = CVY_PASS_FORWARD};
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &one));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_Y, &other));
    CVY_TRY(cvy_stopwatch_measure(&s->stopwatch, &op, 0.0, &there_s));
    op.operand[0].tensor = other;
    op.operand[1].tensor = one;
    CVY_TRY(cvy_stopwatch_measure(&s->stopwatch, &op, 0.0, &back_s));
    *seconds_out = there_s + back_s;
    return CVY_OK;
}

/* The cheapest way to have a region in a layout, given the ways to have the one before it. */
static cvy_status extend_way(survey *s, int border, int to, const double *before, double *best_out)
{
    *best_out = INFINITY;
    for (int from = 0; from < LAYOUTS; from++) {
        double change_s;
        if (!isfinite(before[from])) {
            continue;
        }
        CVY_TRY(measure_change(s, border, from, to, &change_s));
        if (before[from] + change_s < *best_out) {
            *best_out = before[from] + change_s;
            s->way[to][border] = from;
        }
    }
    return CVY_OK;
}

/* Forward over the regions, then back along the ways. */
static cvy_status find_way(survey *s, cvy_layout_choice *choice_out)
{
    double cost[LAYOUTS];
    for (int k = 0; k < LAYOUTS; k++) {
        cost[k] = s->seconds[k][0]; /* the batch into the format that the first layer takes */
    }
    for (int i = 1; i < s->model->layers; i++) {
        if (s->narrow[i - 1] && i > 1) {
            double next[LAYOUTS];
            for (int k = 0; k < LAYOUTS; k++) {
                CVY_TRY(extend_way(s, i - 1, k, cost, &next[k]));
            }
            memcpy(cost, next, sizeof cost);
        }
        for (int k = 0; k < LAYOUTS; k++) {
            cost[k] += s->seconds[k][i];
        }
    }
    int now = 0;
    for (int k = 1; k < LAYOUTS; k++) {
        now = cost[k] < cost[now] ? k : now;
    }
    for (int i = s->model->layers - 1; i >= 1; i--) {
        choice_out[i] = layouts[now];
        now = s->narrow[i - 1] && i > 1 ? s->way[now][i - 1] : now;
    }
    choice_out[0] = choice_out[1];
    return CVY_OK;
}

static cvy_status choose(survey *s, cvy_layout_choice *choice_out, uint32_t *winograd_out)
{
    double total[LAYOUTS], mixed_s;
    int best = 0;
    for (int i = 0; i < LAYOUTS; i++) {
        CVY_TRY(measure_layout(s, i, &total[i]));
        best = total[i] < total[best] ? i : best;
    }
    CVY_TRY(find_way(s, choice_out));
    s->options.layouts = choice_out;
    memset(winograd_out, 0, sizeof *winograd_out * (size_t)s->model->layers);
    CVY_TRY(measure_plan(s, NULL, winograd_out, &mixed_s));
    for (int i = 0; mixed_s >= total[best] && i < s->model->layers; i++) {
        choice_out[i] = layouts[best];
        winograd_out[i] = s->winograd[best][i];
    }
    return CVY_OK;
}

/* Samples that give each thread enough to do, some at least, and no more than there are. */
static int64_t count_samples(const cvy_model *model, const cvy_plan_options *options, int threads)
{
    double flop = 3.0 * cvy_model_forward_flop(model); /* forward, and twice as much backward */
    double samples = ceil(work_flop * threads / (flop > 1.0 ? flop : 1.0));
    int64_t parts = cvy_max_i64(options->micro_batches, 1);
    int64_t most = cvy_ceil_div(options->batch, parts);
    int64_t least = cvy_max_i64(LEAST_SAMPLES, 2 * threads);
    return cvy_min_i64(most, cvy_max_i64(least, samples < 1e9 ? (int64_t)samples : most));
}

cvy_status cvy_layout_measure(const cvy_model *model, const cvy_plan_options *options, int threads,
                              cvy_layout_choice *layouts_out, uint32_t *winograd_out)
{
    size_t layers = (size_t)model->layers;
    cvy_status status = CVY_ERR_MEMORY;
    survey s = {.model = model,
                .options = *options,
                .stopwatch = {.chain = &options->backends, .effort = CVY_MEASURE_QUICK}};
    s.options.batch = count_samples(model, options, threads);
    s.options.tail_batch = 0;
    s.options.micro_batches = 1;
    s.options.recompute = CVY_RECOMPUTE_NONE;
    s.options.data_slots = 0;
    s.options.winograd = NULL;
    s.options.formats = NULL;
    s.narrow = cvy_calloc(layers, sizeof *s.narrow);
    s.fastest = cvy_calloc(layers, sizeof *s.fastest);
    bool whole = s.narrow && s.fastest;
    for (int i = 0; i < LAYOUTS; i++) {
        s.seconds[i] = cvy_calloc(layers, sizeof(double));
        s.way[i] = cvy_calloc(layers, sizeof(int));
        s.winograd[i] = cvy_calloc(layers, sizeof(uint32_t));
        whole = whole && s.seconds[i] && s.way[i] && s.winograd[i];
    }
    CVY_TRY_GOTO(status, done, whole ? CVY_OK : CVY_ERR_MEMORY);
    CVY_TRY_GOTO(status, done, cvy_model_find_narrow(model, s.narrow));
    status = choose(&s, layouts_out, winograd_out);
done:
    for (int i = 0; i < LAYOUTS; i++) {
        cvy_free(s.seconds[i]);
        cvy_free(s.way[i]);
        cvy_free(s.winograd[i]);
    }
    cvy_free(s.narrow);
    cvy_free(s.fastest);
    cvy_stopwatch_clear(&s.stopwatch);
    return status;
}
