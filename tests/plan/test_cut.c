/* Laws of the schedules of many ranks, by brute force over all ranks of small meshes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/ranks.h"

static const char *const models[] = {"lenet5",
                                     "cifar10-quick",
                                     "cosmoflow:size=32",
                                     "unet3d:size=16,width=8",
                                     "resnet18:size=57",
                                     "densenet121:size=64",
                                     "efficientnet-b0:size=64"};
static const char *const strategies[] = {"data",
                                         "filter",
                                         "channel",
                                         "channel=3,channel-cut=alternate",
                                         "spatial",
                                         "width=3",
                                         "sample=2,height=2",
                                         "height=2,width=2",
                                         "sample=2,channel=2,channel-cut=channel",
                                         "sample=3,height=2,channel=2,channel-cut=filter",
                                         "stage=3,micro-batches=7",
                                         "stage=2,height=2,micro-batches=3,pipeline=gpipe",
                                         "sample=2,stage=2,channel=2,micro-batches=2"};
enum {
    SMALL = 4,
    MODELS = sizeof models / sizeof models[0],
    STRATEGIES = sizeof strategies / sizeof strategies[0]
};

typedef void (*law)(const ranks *r);

/*
 * Variants: plain; with synchronised norms, overlap, buckets and shared updates; in micro-batches, whole between
 * layers, recomputed.
 */
static bool open_variant(const char *model, const char *strategy, int variant, ranks *r)
{
    cvy_plan_options options = {.batch = 7,
                                .dtype = CVY_F32,
                                .training = true,
                                .train_only = true,
                                .micro_batches = strstr(strategy, "micro") ? 0 : variant == 2 ? 2 : 1,
                                .recompute = variant == 2 ? CVY_RECOMPUTE_CHEAP : CVY_RECOMPUTE_NONE,
                                .optimizer = {CVY_OPTIMIZER_SGD, {.momentum = 0.9}},
                                .block = 8};
    cvy_distribution_options divided = {.whole_channels = variant == 2, .whole_dense = variant == 2};
    if (variant == 1) {
        options.parallel = (cvy_plan_parallel){
            .bucket_bytes = 100000, .overlap = true, .norm_axes = CVY_AXIS_BIT(CVY_AXIS_SAMPLE) | CVY_AXIS_SPACE,
            .shard_optimizer = true};
    }
    return open_ranks(model, strategy, &options, &divided, r);
}

static void hold(const char *model, const char *strategy, int variant, law check)
{
    ranks r;
    if (open_variant(model, strategy, variant, &r)) {
        check(&r);
        close_ranks(&r);
    }
}

/* What most laws are held against, planned once for all of them. */
static ranks world[MODELS * STRATEGIES];
static int worlds;

static int open_worlds(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) { /* the deep ones take time: each strategy meets one of them */
        for (int k = 0; k < STRATEGIES; k++) {
            bool meets = i < SMALL || (i + k) % (MODELS - SMALL) == 0;
            worlds += meets && open_variant(models[i], strategies[k], (i + k) % 3, &world[worlds]);
        }
    }
    return 0;
}

static int close_worlds(void **state)
{
    (void)state;
    while (worlds > 0) {
        close_ranks(&world[--worlds]);
    }
    return 0;
}

static void hold_all(law check)
{
    assert_true(worlds > SMALL * STRATEGIES / 2);
    for (int i = 0; i < worlds; i++) {
        check(&world[i]);
    }
}

static const cvy_schedule *get_schedule(const ranks *r, int rank) { return &r->plan[rank]->schedule[0]; }

/* ---- shares ---- */

/* The buffer that holds a layer's output, as others find it, in the first micro-batch; -1. */
static int find_output(const cvy_schedule *s, int layer)
{
    for (int i = 0; i < s->steps; i++) {
        for (int k = 0; k < s->step[i].uses && s->step[i].micro_batch == 0; k++) {
            const cvy_use *use = &s->use[s->step[i].first_use + k];
            const cvy_buffer *b = &s->buffer[use->buffer];
            if (b->layer == layer && b->content == CVY_CONTENT_OUTPUT && use->access == CVY_ACCESS_READ) {
                return use->buffer;
            }
        }
    }
    return -1;
}

/* Extents are the lengths of what is held, in every dimension of every buffer. */
static void check_extents(const ranks *r)
{
    for (int rank = 0; rank < r->count; rank++) {
        const cvy_schedule *s = get_schedule(r, rank);
        for (int i = 0; i < s->buffers; i++) {
            const cvy_buffer *b = &s->buffer[i];
            assert_int_equal(b->global.dims, b->tensor.shape.dims);
            for (int dim = 0; dim < b->tensor.shape.dims; dim++) {
                const cvy_interval *held = &b->local[dim];
                bool stretched = b->stretches.count > 0 && b->stretched == dim;
                int64_t length = stretched ? cvy_intervals_length(&b->stretches) : held->end - held->begin;
                assert_int_equal(length, b->tensor.shape.extent[dim]);
                assert_true(held->end > held->begin && held->end <= b->global.extent[dim]);
                assert_true(!stretched || b->stretches.at[0].begin == held->begin);
            }
        }
    }
}

static void test_extents_are_what_is_held(void **state)
{
    (void)state;
    hold_all(check_extents);
}

/* How many ranks hold the same share: all but those along axes that split it. */
static int64_t count_copies(const ranks *r, unsigned split)
{
    int64_t copies = 1;
    for (int axis = CVY_AXIS_DEPTH; axis < CVY_AXES; axis++) {
        copies *= split >> axis & 1 ? 1 : r->strategy.mesh.size[axis];
    }
    return copies;
}

/* The input and every parameter: over all ranks, each element is held as often as there are copies. */
static void check_cover(const ranks *r)
{
    int64_t held = 0;
    for (int rank = 0; rank < r->count; rank++) {
        const cvy_schedule *s = get_schedule(r, rank);
        if (s->micro_batches > 1) {
            return;
        }
        held += s->input_buffer >= 0 ? cvy_shape_elements(&s->buffer[s->input_buffer].tensor.shape) : 0;
    }
    cvy_shape x = r->model->layer[0].output;
    x.extent[0] = 7;
    assert_int_equal(held, cvy_shape_elements(&x) * count_copies(r, r->distribution->layer[0].output_split));
    for (int p = 0; p < r->model->parameters; p++) {
        cvy_placement placement = cvy_distribution_parameter(r->distribution, p);
        bool split = r->strategy.mesh.size[CVY_AXIS_CHANNEL] > 1 && placement.placing == CVY_PLACING_SPLIT;
        int64_t elements = 0, sample = r->strategy.mesh.size[CVY_AXIS_SAMPLE];
        for (int rank = 0; rank < r->count; rank++) {
            const cvy_schedule *s = get_schedule(r, rank);
            for (int i = 0; i < r->plan[rank]->persistent_buffers; i++) {
                bool mine = s->buffer[i].content == CVY_CONTENT_PARAMETER && s->buffer[i].parameter == p;
                elements += mine ? cvy_shape_elements(&s->buffer[i].tensor.shape) : 0;
            }
        }
        unsigned axes = split ? CVY_AXIS_BIT(CVY_AXIS_CHANNEL) : 0;
        int64_t whole = cvy_shape_elements(&r->model->parameter[p].spec.shape);
        assert_int_equal(elements, whole * count_copies(r, axes) * sample);
    }
}

static void test_inputs_and_parameters_are_covered(void **state)
{
    (void)state;
    hold_all(check_cover);
}

/* Every layer's output, too, as the distribution says that it is split. */
static void check_outputs(const ranks *r)
{
    for (int layer = 0; layer < r->model->layers - 1; layer++) {
        int64_t held = 0, whole = 0;
        for (int rank = 0; rank < r->count; rank++) {
            const cvy_schedule *s = get_schedule(r, rank);
            int output = find_output(s, layer);
            if (output < 0 || s->micro_batches > 1) {
                return;
            }
            held += cvy_shape_elements(&s->buffer[output].tensor.shape);
            whole = cvy_shape_elements(&s->buffer[output].global);
        }
        unsigned split = r->distribution->layer[layer].output_split;
        const cvy_shape *shape = &r->model->layer[layer].output;
        for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) { /* one position is on every rank */
            int dim = cvy_distribution_dim((cvy_axis)axis, shape->dims);
            split &= dim < 0 || shape->extent[dim] == 1 ? ~CVY_AXIS_BIT(axis) : ~0u;
        }
        assert_int_equal(held, whole * count_copies(r, split));
    }
}

static void test_outputs_are_covered(void **state)
{
    (void)state;
    hold_all(check_outputs);
}

/* ---- communication ---- */

/* The next communication step from a place on, that moves over some axes (0: any); -1. */
static int find_next(const cvy_schedule *s, int from, cvy_step_kind kind, unsigned axes)
{
    for (int i = from; i < s->steps; i++) {
        bool fits = s->step[i].kind == kind && (axes == 0 || s->exchange[s->step[i].exchange].axes == axes);
        if (fits) {
            return i;
        }
    }
    return -1;
}

/* Two ranks of one group: the same collectives over its axes, in the same order and stream. */
static void compare_collectives(const ranks *r, unsigned axes, int a, int b)
{
    const cvy_schedule *x = get_schedule(r, a), *y = get_schedule(r, b);
    int i = 0, k = 0;
    for (;;) {
        i = find_next(x, i, CVY_STEP_COLLECTIVE, axes);
        k = find_next(y, k, CVY_STEP_COLLECTIVE, axes);
        assert_true((i < 0) == (k < 0));
        if (i < 0) {
            return;
        }
        const cvy_exchange *e = &x->exchange[x->step[i].exchange], *f = &y->exchange[y->step[k].exchange];
        assert_int_equal(e->collective, f->collective);
        assert_int_equal(x->step[i].stream, y->step[k].stream);
        assert_int_equal(x->step[i].layer, y->step[k].layer);
        assert_true(e->collective == CVY_COLLECTIVE_ALL_TO_ALL || e->bytes == f->bytes);
        i++;
        k++;
    }
}

static void check_order(const ranks *r)
{
    for (unsigned axes = 1; axes < 1 << CVY_AXES; axes++) {
        for (int rank = 0; rank < r->count; rank++) {
            int first = (int)cvy_mesh_group_member(&r->strategy.mesh, axes, rank, 0);
            compare_collectives(r, axes, first, rank);
        }
    }
}

static void test_groups_agree_on_their_collectives(void **state)
{
    (void)state;
    hold_all(check_order);
}

/* A rank on its way through its schedule; what it has sent each other rank and got of each. */
typedef struct walker {
    const cvy_schedule *s;
    int at;      /* the communication step that it is in; -1: it has ended */
    bool posted; /* its messages are sent */
    int *sent, *got;
} walker;

static void go_on(walker *w)
{
    int collective = find_next(w->s, w->at + 1, CVY_STEP_COLLECTIVE, 0);
    int exchange = find_next(w->s, w->at + 1, CVY_STEP_EXCHANGE, 0);
    bool first = exchange < 0 || (collective >= 0 && collective < exchange);
    w->at = first ? collective : exchange;
    w->posted = false;
}

/* Messages wait for nobody to be taken; who expects some waits until all are there. */
static bool try_exchange(const ranks *r, walker *all, int rank)
{
    walker *w = &all[rank];
    const cvy_exchange *e = &w->s->exchange[w->s->step[w->at].exchange];
    int *need = calloc((size_t)r->count, sizeof *need);
    bool there = true;
    for (int i = 0; i < e->messages; i++) {
        const cvy_message *m = &w->s->message[e->first_message + i];
        int peer = (int)cvy_mesh_peer(&r->strategy.mesh, rank, m->peer_offset);
        w->sent[peer] += !m->receive && !w->posted;
        need[peer] += m->receive;
    }
    w->posted = true;
    for (int i = 0; i < r->count; i++) {
        there = there && w->got[i] + need[i] <= all[i].sent[rank];
    }
    for (int i = 0; there && i < r->count; i++) {
        w->got[i] += need[i];
    }
    free(need);
    if (there) {
        go_on(w);
    }
    return there;
}

/* All members of the group must have come to a collective over the same axes. */
static bool try_collective(const ranks *r, walker *all, int rank)
{
    unsigned axes = all[rank].s->exchange[all[rank].s->step[all[rank].at].exchange].axes;
    int64_t size = cvy_mesh_group_size(&r->strategy.mesh, axes);
    bool ready = true;
    for (int64_t k = 0; k < size; k++) {
        const walker *w = &all[cvy_mesh_group_member(&r->strategy.mesh, axes, rank, k)];
        ready = ready && w->at >= 0 && w->s->step[w->at].kind == CVY_STEP_COLLECTIVE &&
                w->s->exchange[w->s->step[w->at].exchange].axes == axes;
    }
    for (int64_t k = 0; ready && k < size; k++) {
        go_on(&all[cvy_mesh_group_member(&r->strategy.mesh, axes, rank, k)]);
    }
    return ready;
}

/* Run all ranks, each as far as it comes. Where nobody can go on before all have ended, they would wait for ever. */
static void check_progress(const ranks *r)
{
    walker *all = calloc((size_t)r->count, sizeof *all);
    bool moved = true;
    for (int i = 0; i < r->count; i++) {
        all[i] = (walker){get_schedule(r, i), -1, false, calloc((size_t)r->count, sizeof(int)),
                          calloc((size_t)r->count, sizeof(int))};
        go_on(&all[i]);
    }
    while (moved) {
        moved = false;
        for (int i = 0; i < r->count; i++) {
            bool waits = all[i].at >= 0;
            bool exchanges = waits && all[i].s->step[all[i].at].kind == CVY_STEP_EXCHANGE;
            moved = (waits && (exchanges ? try_exchange(r, all, i) : try_collective(r, all, i))) || moved;
        }
    }
    for (int i = 0; i < r->count; i++) {
        assert_int_equal(all[i].at, -1);
        for (int k = 0; k < r->count; k++) {
            assert_int_equal(all[i].sent[k], all[k].got[i]);
        }
    }
    for (int i = 0; i < r->count; i++) {
        free(all[i].sent);
        free(all[i].got);
    }
    free(all);
}

static void test_no_rank_waits_for_ever(void **state)
{
    (void)state;
    hold_all(check_progress);
}

/* Bytes that one rank sends another, or expects of it, in its messages of a layer and phase. */
static int64_t count_bytes(const ranks *r, int rank, int peer, int layer, bool receive)
{
    const cvy_schedule *s = get_schedule(r, rank);
    int64_t bytes = 0;
    for (int i = 0; i < s->steps; i++) {
        const cvy_exchange *e = s->step[i].exchange >= 0 ? &s->exchange[s->step[i].exchange] : NULL;
        for (int k = 0; e && s->step[i].layer == layer && k < e->messages; k++) {
            const cvy_message *m = &s->message[e->first_message + k];
            bool fits = m->receive == receive && cvy_mesh_peer(&r->strategy.mesh, rank, m->peer_offset) == peer;
            bytes += fits ? m->bytes : 0;
        }
    }
    return bytes;
}

/* What is sent is what is expected, between any two ranks, layer by layer. */
static void check_messages(const ranks *r)
{
    for (int layer = 0; layer < r->model->layers; layer++) {
        for (int i = 0; i < r->count; i++) {
            for (int k = 0; k < r->count; k++) {
                assert_int_equal(count_bytes(r, i, k, layer, false), count_bytes(r, k, i, layer, true));
            }
        }
    }
}

static void test_what_is_sent_is_expected(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        hold(models[i], "spatial", 0, check_messages);
        hold(models[i], "height=2,width=2", 1, check_messages);
        hold(models[i], "height=3", 2, check_messages);
        hold(models[i], "stage=4,micro-batches=5", 0, check_messages);
    }
    hold("mobilenet-v2:size=64", "channel=3,channel-cut=filter", 0, check_messages);
}

/* ---- memory ---- */

/* The step that a use belongs to: uses lie step by step. */
static int find_step(const cvy_schedule *s, int use)
{
    int low = 0, high = s->steps - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (s->step[middle].first_use <= use) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* before[i * steps + k]: step k has ended when step i begins, by the streams' order and by dependencies. */
static unsigned char *find_order(const cvy_schedule *s)
{
    size_t n = (size_t)s->steps;
    unsigned char *before = calloc(n * n, 1);
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        int last = i - 1;
        while (last >= 0 && s->step[last].stream != step->stream) {
            last--;
        }
        for (int d = -1; d < step->dependencies; d++) {
            const cvy_dependency *on = d >= 0 ? &s->dependency[step->first_dependency + d] : NULL;
            int k = on ? on->step : last;
            if (k < 0 || (on && on->distance > 0)) {
                continue;
            }
            assert_true(k < i);
            before[(size_t)i * n + (size_t)k] = 1;
            for (size_t m = 0; m < n; m++) {
                before[(size_t)i * n + m] |= before[(size_t)k * n + m];
            }
        }
    }
    return before;
}

/* Two uses of one byte, one of them a write, are ordered, on whatever streams they are. */
static void check_memory(const ranks *r)
{
    const cvy_schedule *s = get_schedule(r, r->count - 1);
    unsigned char *before = find_order(s);
    for (int i = 0; i < s->uses; i++) {
        for (int k = 0; k < i; k++) {
            const cvy_buffer *a = &s->buffer[s->use[i].buffer], *b = &s->buffer[s->use[k].buffer];
            bool touch = a->persistent == b->persistent && a->offset < b->offset + b->bytes &&
                         b->offset < a->offset + a->bytes;
            bool writes = s->use[i].access != CVY_ACCESS_READ || s->use[k].access != CVY_ACCESS_READ;
            if (touch && writes) {
                int x = find_step(s, i), y = find_step(s, k);
                assert_true(x == y || before[(size_t)x * (size_t)s->steps + (size_t)y]);
            }
        }
    }
    free(before);
}

static void test_no_byte_is_used_by_two_streams_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        hold(models[i], "sample=2,height=2", 1, check_memory);
        hold(models[i], "stage=3,micro-batches=7", 0, check_memory);
        hold(models[i], "sample=2,stage=2,channel=2,micro-batches=2", 1, check_memory);
    }
}

/* ---- work ---- */

static double sum_flop(const cvy_schedule *s)
{
    double flop = 0.0;
    for (int i = 0; i < s->steps; i++) {
        cvy_op op = s->op[s->step[i].op >= 0 ? s->step[i].op : 0];
        if (s->step[i].kind == CVY_STEP_KERNEL && cvy_op_has_weights(op.kind)) {
            op.relu = false; /* a relu is not everywhere part of an op */
            flop += cvy_op_flop(&op);
        }
    }
    return flop;
}

static double sum_all_flop(const ranks *r)
{
    double flop = 0.0;
    for (int i = 0; i < r->count; i++) {
        flop += sum_flop(get_schedule(r, i));
    }
    return flop;
}

/* Products of convolutions and dense layers: data parallelism does each once, nothing one more than once a rank. */
static void test_ranks_together_do_the_serial_work(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        ranks one, all;
        cvy_plan_options options = {.batch = 7, .dtype = CVY_F32, .training = true, .train_only = true, .block = 8};
        assert_true(open_ranks(models[i], "sample=1", &options, NULL, &one));
        double serial = sum_all_flop(&one);
        for (int k = 0; k < STRATEGIES; k++) {
            if (open_ranks(models[i], strategies[k], &options, NULL, &all)) {
                double together = sum_all_flop(&all);
                double once = all.strategy.mesh.size[CVY_AXIS_SAMPLE];
                assert_true(together >= serial * 0.9999999 && together <= serial * all.count / once * 1.000001);
                assert_true(k > 0 || (together <= serial * 1.0000001));
                close_ranks(&all);
            }
        }
        close_ranks(&one);
    }
}

/* ---- one rank ---- */

static void test_one_rank_is_serial(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        ranks one;
        cvy_plan *serial = NULL;
        cvy_plan_options options = {.batch = 7,
                                    .tail_batch = 3,
                                    .dtype = CVY_F32,
                                    .training = true,
                                    .micro_batches = 1 + i % 3,
                                    .recompute = (cvy_recompute)(i % 3),
                                    .optimizer = {CVY_OPTIMIZER_SGD, {.momentum = 0.9}},
                                    .block = 8,
                                    .data_slots = 2,
                                    .label_bytes = 4,
                                    .parallel = {.bucket_bytes = 1000, .overlap = true, .norm_axes = ~0u}};
        assert_true(open_ranks(models[i], "sample=1", &options, NULL, &one));
        options.parallel = (cvy_plan_parallel){0};
        assert_int_equal(cvy_plan_create(one.model, &options, &serial), CVY_OK);
        for (int k = 0; k < CVY_SCHEDULE_COUNT; k++) {
            assert_int_equal(cvy_schedule_hash(&serial->schedule[k]), cvy_schedule_hash(&one.plan[0]->schedule[k]));
        }
        assert_int_equal(serial->persistent_bytes, one.plan[0]->persistent_bytes);
        assert_int_equal(serial->transient_bytes, one.plan[0]->transient_bytes);
        cvy_plan_destroy(&serial);
        close_ranks(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extents_are_what_is_held),
        cmocka_unit_test(test_inputs_and_parameters_are_covered),
        cmocka_unit_test(test_outputs_are_covered),
        cmocka_unit_test(test_groups_agree_on_their_collectives),
        cmocka_unit_test(test_no_rank_waits_for_ever),
        cmocka_unit_test(test_what_is_sent_is_expected),
        cmocka_unit_test(test_no_byte_is_used_by_two_streams_at_once),
        cmocka_unit_test(test_ranks_together_do_the_serial_work),
        cmocka_unit_test(test_one_rank_is_serial),
    };
    return cmocka_run_group_tests(tests, open_worlds, close_worlds);
}
