/*
 * The schedules of many ranks, run: after an iteration every rank has the parameters that one rank alone would have, on
 * random graphs, under every strategy. That is the law of correctness: cuts, halos, redistributions and their way back,
 * shared statistics, buckets, pipelines and uneven shares are all in it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan/run_ranks.h"
#include "runtime/random_model.h"

#ifndef GRAPHS
#define GRAPHS 24 /* seeds from 0 on; more of them by hand, with -DGRAPHS=1000 */
#endif

/* Numbers in [-1, 1) by parameter or content, and element. */
static double feed_numbers(const void *context, const cvy_buffer *b, int64_t number)
{
    const cvy_model *model = context;
    uint32_t what = b->parameter >= 0 ? (uint32_t)b->parameter + 2 : b->content == CVY_CONTENT_LABEL;
    const cvy_words counter = {{(uint32_t)number, what, 0, 0}};
    uint32_t word = cvy_philox(counter, 5, 7).v[0];
    if (b->tensor.dtype == CVY_I32) {
        return word % (uint32_t)model->layer[cvy_model_output(model)].output.extent[1];
    }
    double value = 2.0 * cvy_random_unit(word) - 1.0;
    bool variance = b->parameter >= 0 && model->parameter[b->parameter].spec.role == CVY_ROLE_RUNNING_VARIANCE;
    return variance ? fabs(value) + 0.5 : value;
}

static bool has_kind(const cvy_model *model, const char *name)
{
    bool found = false;
    for (int i = 0; i < model->layers; i++) {
        found = found || strcmp(model->layer[i].kind->name, name) == 0;
    }
    return found;
}

/* How weights are updated. */
typedef struct rule {
    int iterations;
    bool shard; /* the update is shared out */
    cvy_optimizer optimizer;
} rule;

/* What is tried on a graph. */
typedef struct trial {
    const char *strategy;
    int ranks, micro_batches;
    int64_t batch;
    int variant;
    int64_t tail; /* samples of a last batch, which is what runs; 0: a whole batch does */
    bool mixed;   /* layers are cut as the dice fall */
} trial;

static cvy_plan_options make_options(const trial *t, const rule *how)
{
    return (cvy_plan_options){
        .batch = t->batch,
        .dtype = CVY_F64,
        .training = true,
        .tail_batch = t->tail,
        .train_only = t->tail == 0,
        .micro_batches = t->micro_batches,
        .recompute = (cvy_recompute)(t->variant % 3),
        .optimizer = how->optimizer,
        .block = 8,
        .parallel = {.bucket_bytes = t->variant % 2 ? 500 : 0, .overlap = t->variant % 2,
                     .norm_axes = how->shard ? CVY_AXIS_SPACE : ~0u, .shard_optimizer = how->shard},
    };
}

static void start_world(world_run *w, const cvy_model *model, int ranks, const trial *t, const rule *how)
{
    *w = (world_run){.ranks = ranks, .iterations = how->iterations, .feed = feed_numbers, .context = model};
    int64_t samples = t->tail ? t->tail : t->batch;
    w->run = (cvy_run){.seed = 3, .loss_scale = 1.0 / (double)samples, .learning_rate = 0.125, .update = 1};
    assert_int_equal(cvy_backend_chain_find("ref", &w->chain), CVY_OK);
}

/* The largest change that an update made, and the largest difference of a rank's parameters from one rank's. */
static void compare(const world_run *one, const world_run *all, int parameter, double *change, double *difference)
{
    const rank_run *serial = &one->rank[0];
    const cvy_buffer *whole = &serial->s->buffer[parameter];
    for (int64_t e = 0; e < cvy_shape_elements(&whole->tensor.shape); e++) {
        double before = one->feed(one->context, whole, e);
        *change = fmax(*change, fabs(((double *)find_memory(serial, whole))[e] - before));
    }
    for (int i = 0; i < all->ranks; i++) {
        const rank_run *r = &all->rank[i];
        for (int k = 0; k < r->plan->persistent_buffers; k++) {
            const cvy_buffer *b = &r->s->buffer[k];
            if (b->content != CVY_CONTENT_PARAMETER || b->parameter != whole->parameter) {
                continue;
            }
            cvy_layout layout = cvy_tensor_layout(&b->tensor);
            for (int64_t e = 0; e < cvy_shape_elements(&b->tensor.shape); e++) {
                element at = get_element(b, &layout, e);
                double found = load(b, find_memory(r, b), at.offset);
                *difference = fmax(*difference, fabs(found - ((double *)find_memory(serial, whole))[at.number]));
            }
        }
    }
}

/* Differences count beside the largest change of all: a bias before a norm changes by rounding alone. */
static void check_world(const world_run *one, const world_run *all, const trial *t, uint32_t seed)
{
    const cvy_plan *serial = one->rank[0].plan;
    double change = 0, difference = 0;
    int worst = 0;
    for (int i = 0; i < serial->persistent_buffers; i++) {
        double before = difference;
        if (one->rank[0].s->buffer[i].content == CVY_CONTENT_PARAMETER) {
            compare(one, all, i, &change, &difference);
        }
        worst = difference > before ? i : worst;
    }
    if (!(difference <= 1e-9 * change)) {
        fail_msg("graph %u, %s, batch %d, %d micro-batches, variant %d: %s differs by %g of %g", seed, t->strategy,
                 (int)t->batch, t->micro_batches, t->variant,
                 serial->model->parameter[one->rank[0].s->buffer[worst].parameter].name, difference, change);
    }
}

/* For each layer some axes of space, and a cut. */
static void throw_choices(const cvy_model *model, uint32_t seed, cvy_layer_choice *choice)
{
    dice d = {.seed = seed + 1000000};
    for (int i = 0; i < model->layers; i++) {
        choice[i].cut = throw(&d, 4) - 1;
        choice[i].space = throw(&d, 3) ? CVY_AXIS_SPACE : (unsigned)throw(&d, 64) & CVY_AXIS_SPACE;
    }
}

/* False where the graph cannot be cut so. */
static bool try(const cvy_model *model, const trial *t, const rule *how, uint32_t seed)
{
    static world_run one, all;
    cvy_plan *serial = NULL, *plan[MAX_RANKS] = {NULL};
    cvy_plan_options options = make_options(t, how);
    cvy_distribution_options divided = {.batch = t->batch, .whole_channels = t->variant % 4 == 3};
    cvy_distribution *d = NULL;
    cvy_strategy strategy;
    cvy_layer_choice choices[256];
    int64_t space[3];
    assert_true(model->layers <= 256);
    throw_choices(model, seed, choices);
    divided.choices = t->mixed ? choices : NULL;
    cvy_space_get(&model->layer[0].output, space);
    assert_int_equal(cvy_strategy_parse(t->strategy, t->ranks, space, &strategy), CVY_OK);
    if (cvy_distribution_create(model, &strategy, &divided, &d) != CVY_OK) {
        return false;
    }
    assert_int_equal(cvy_plan_create(model, &options, &serial), CVY_OK);
    for (int i = 0; i < t->ranks; i++) {
        options.parallel.distribution = d;
        options.parallel.rank = i;
        if (cvy_plan_create(model, &options, &plan[i]) != CVY_OK) {
            fail_msg("graph %u, %s: %s", seed, t->strategy, cvy_error_message());
        }
    }
    start_world(&one, model, 1, t, how);
    start_world(&all, model, t->ranks, t, how);
    assert_int_equal(cvy_mesh_setup((int64_t[]){1, 1, 1, 1, 1, 1}, NULL, &one.mesh), CVY_OK);
    all.mesh = strategy.mesh;
    run_world(&one, &serial, t->tail ? CVY_SCHEDULE_TRAIN_TAIL : CVY_SCHEDULE_TRAIN);
    run_world(&all, plan, t->tail ? CVY_SCHEDULE_TRAIN_TAIL : CVY_SCHEDULE_TRAIN);
    check_world(&one, &all, t, seed);
    close_world(&one);
    close_world(&all);
    for (int i = 0; i < t->ranks; i++) {
        cvy_plan_destroy(&plan[i]);
    }
    cvy_plan_destroy(&serial);
    cvy_distribution_destroy(&d);
    return true;
}

/* Momentum begins at 0: one iteration does what plain descent would. */
static const rule once = {1, false, {.params = {.momentum = 0.9}}};

static const trial trials[] = {
    {"data", 3, 1, 5, 0, 0, false},
    {"filter", 2, 1, 3, 0, 0, false},
    {"channel", 2, 1, 3, 1, 0, false},
    {"alternating", 2, 1, 3, 2, 0, false},
    {"channel=3,channel-cut=filter", 3, 1, 2, 3, 0, false},
    {"spatial", 2, 1, 2, 0, 0, false},
    {"height=3", 3, 1, 2, 1, 0, false},
    {"width=2", 2, 1, 2, 2, 0, false},
    {"height=2,width=2", 4, 1, 2, 0, 0, false},
    {"depth=2,width=2", 4, 1, 2, 1, 0, false},
    {"sample=2,height=2", 4, 1, 3, 1, 0, false},
    {"height=2,channel=2", 4, 1, 2, 0, 0, false},
    {"sample=2,height=2,channel=2,channel-cut=channel", 8, 1, 3, 1, 0, false},
    {"stage=2", 2, 1, 4, 0, 0, false},
    {"stage=2,height=2", 4, 1, 3, 1, 0, false},
    {"stage=2,sample=2,channel=2,channel-cut=filter", 8, 1, 5, 2, 0, false},
    {"data", 3, 1, 5, 1, 2, false},
    {"sample=3,height=2", 6, 1, 4, 0, 1, false},
    {"channel=2,height=2", 4, 1, 2, 0, 0, true},
    {"sample=2,width=2,channel=2,channel-cut=filter", 8, 1, 3, 1, 0, true},
};

/* Norms take statistics over a whole batch, which micro-batches do not. */
static const trial parts[] = {
    {"data", 2, 2, 5, 1, 0, false},
    {"spatial", 2, 2, 3, 2, 0, false},
    {"alternating", 2, 3, 3, 0, 0, false},
    {"stage=2,micro-batches=4", 2, 4, 5, 0, 0, false},
    {"stage=3,micro-batches=3,pipeline=gpipe", 3, 3, 3, 1, 0, false},
    {"stage=3,micro-batches=5", 3, 5, 7, 2, 0, false},
    {"sample=2,stage=2,height=2,micro-batches=2", 8, 2, 5, 1, 0, false},
    {"sample=2,height=2", 4, 2, 5, 1, 3, false},
};

/* Rules, with the whole of each tensor in their norms, and shares of the update. Decay keeps norms away from 0. */
#define MOMENTUM {.params = {.momentum = 0.9, .weight_decay = 0.01}}
#define MOMENTS {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 0.01, .weight_decay = 0.1}
#define ADAMW {.kind = CVY_OPTIMIZER_ADAMW, .params = MOMENTS, .no_decay_norms = true}
#define CLIPPED(norm) {.params = {.momentum = 0.9, .weight_decay = 0.01}, .clip_norm = norm}
#define LARS {.kind = CVY_OPTIMIZER_LARS, .params = {.momentum = 0.9, .weight_decay = 0.1, .trust = 0.1}}
#define LAMB {.kind = CVY_OPTIMIZER_LAMB, .params = MOMENTS, .clip_norm = 0.1}
static const struct {
    trial trial;
    rule rule;
} updates[] = {
    {{"data", 3, 1, 5, 0, 0, false}, {2, true, MOMENTUM}},
    {{"data", 4, 2, 5, 1, 0, false}, {2, true, ADAMW}},
    {{"sample=2,height=2", 4, 1, 3, 1, 0, false}, {2, true, MOMENTUM}},
    {{"sample=2,channel=2,channel-cut=filter", 4, 1, 3, 0, 0, false}, {2, true, ADAMW}},
    {{"sample=2,stage=2,micro-batches=2", 4, 2, 5, 1, 0, false}, {2, true, MOMENTUM}},
    {{"data", 3, 1, 5, 1, 2, false}, {2, true, ADAMW}},
    {{"data", 3, 1, 5, 1, 0, false}, {2, true, CLIPPED(0.05)}},
    {{"sample=2,width=2,channel=2", 8, 1, 3, 0, 0, false}, {2, true, LAMB}},
    {{"data", 3, 1, 5, 0, 0, false}, {2, true, LARS}},
    {{"filter", 2, 1, 3, 0, 0, false}, {2, false, CLIPPED(0.05)}},
    {{"channel=3,channel-cut=channel", 3, 1, 2, 1, 0, false}, {2, false, LARS}},
    {{"alternating", 2, 1, 3, 0, 0, false}, {2, false, LAMB}},
    {{"stage=2,height=2,channel=2,micro-batches=2", 8, 2, 4, 1, 0, false}, {2, false, CLIPPED(0.05)}},
    {{"sample=2,stage=2,micro-batches=2", 4, 2, 5, 0, 0, false}, {2, false, LARS}},
};

static void test_rules_go_by_whole_tensors_whoever_updates_them(void **state)
{
    int tried = 0;
    (void)state;
    for (uint32_t seed = 0; seed < 2 * GRAPHS; seed++) {
        dice d = {.seed = seed + 100};
        cvy_model *model = make_random_model(&d, 5 + throw(&d, 7));
        assert_non_null(model);
        bool plain = !has_kind(model, "batch-norm");
        for (size_t i = 0; plain && i < sizeof updates / sizeof updates[0]; i++) {
            tried += try(model, &updates[i].trial, &updates[i].rule, seed + 100);
        }
        cvy_model_destroy(&model);
    }
    print_message("%d runs\n", tried);
    assert_true(tried >= 4 * GRAPHS);
}

static void test_all_ranks_together_do_what_one_does(void **state)
{
    int tried = 0;
    (void)state;
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        dice d = {.seed = seed};
        cvy_model *model = make_random_model(&d, 5 + throw(&d, 9));
        assert_non_null(model);
        bool plain = !has_kind(model, "batch-norm");
        for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
            tried += try(model, &trials[i], &once, seed);
        }
        for (size_t i = 0; plain && i < sizeof parts / sizeof parts[0]; i++) {
            tried += try(model, &parts[i], &once, seed);
        }
        cvy_model_destroy(&model);
    }
    print_message("%d runs\n", tried);
    assert_true(tried >= 4 * GRAPHS);
}

/* Masks wherever a rank may have stretches: behind a concat, behind the view of it as vectors, between dense layers. */
static cvy_model *make_masked_model(bool deep)
{
    dice unused = {0};
    growth g = {.dice = &unused};
    const cvy_shape input = deep ? CVY_SHAPE(4, 4, 4, 5) : CVY_SHAPE(4, 8, 6);
    static const int branch[] = {1, 2, 3};
    assert_int_equal(cvy_model_create("masked", &input, &g.model), CVY_OK);
    bool grown = grow(&g, "conv", 0, "filters: 5, kernel: 3, padding: 1") &&
                 grow(&g, "conv", 1, "filters: 7, kernel: 1") && grow(&g, "conv", 1, "filters: 4, kernel: 1");
    assert_true(grown);
    assert_int_equal(cvy_model_append_concat(g.model, "layer4", branch, 3, NULL), CVY_OK);
    grown = grow(&g, "dropout", 4, "probability: 0.3") && grow(&g, "stochastic-depth", 5, "probability: 0.3") &&
            grow(&g, "relu", 6, " ") && grow(&g, "dropout", 7, "probability: 0.5") && grow(&g, "flatten", 8, " ") &&
            grow(&g, "dropout", 9, "probability: 0.4") && grow(&g, "dense", 10, "outputs: 11") &&
            grow(&g, "relu", 11, " ") && grow(&g, "dropout", 12, "probability: 0.25") &&
            grow(&g, "dense", 13, "outputs: 6") && grow(&g, "dropout", 14, "probability: 0.2") &&
            grow(&g, "mean-squared-error", 15, " ");
    assert_true(grown);
    assert_int_equal(cvy_model_finish(g.model), CVY_OK);
    return g.model;
}

static void test_masks_are_those_of_whole_samples(void **state)
{
    enum { TRIALS = sizeof trials / sizeof trials[0], PARTS = sizeof parts / sizeof parts[0] };
    int tried = 0;
    (void)state;
    for (uint32_t i = 0; i < 2 * (TRIALS + PARTS); i++) {
        cvy_model *model = make_masked_model(i % 2);
        const trial *t = i / 2 < TRIALS ? &trials[i / 2] : &parts[i / 2 - TRIALS];
        tried += try(model, t, &once, i);
        cvy_model_destroy(&model);
    }
    assert_int_equal(tried, 2 * (TRIALS + PARTS) - 1); /* an image has no depth */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_are_those_of_whole_samples),
        cmocka_unit_test(test_rules_go_by_whole_tensors_whoever_updates_them),
        cmocka_unit_test(test_all_ranks_together_do_what_one_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
