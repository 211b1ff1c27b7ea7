/* Laws of an update that is shared out over ranks: each element is updated once, bytes and memory by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/checked.h"
#include "plan/ranks.h"

static cvy_plan_options make_options(int64_t bucket_bytes, bool overlap, bool shard)
{
    return (cvy_plan_options){.batch = 7,
                              .tail_batch = 3,
                              .dtype = CVY_F32,
                              .training = true,
                              .optimizer = {CVY_OPTIMIZER_SGD, {.momentum = 0.9}},
                              .layout = CVY_LAYOUT_PLAIN,
                              .block = 8,
                              .parallel = {.bucket_bytes = bucket_bytes, .overlap = overlap, .shard_optimizer = shard}};
}

/* Bytes of all collectives of a kind that exchange gradients, or weights, on one rank. */
static int64_t sum_bytes(const cvy_schedule *s, cvy_collective collective)
{
    int64_t bytes = 0;
    for (int i = 0; i < s->steps; i++) {
        bool exchanges = s->step[i].phase == CVY_PHASE_GRADIENT_EXCHANGE && s->step[i].exchange >= 0;
        bool fits = exchanges && s->exchange[s->step[i].exchange].collective == collective;
        bytes += fits ? s->exchange[s->step[i].exchange].bytes : 0;
    }
    return bytes;
}

/*
 * LeNet-5, as Caffe has it, has 431,080 parameters in eight tensors. Behind one another at multiples of 64 bytes,
 * weights of 500, 25,000, 400,000 and 5,000 floats take 2048, 100,032, 1,600,000 and 20,032 bytes, biases of 50, 500
 * and 10 take 256, 2048 and 64, and the 20 of the first layer, which come last, no more than their own 80: together
 * 1,724,560 bytes. A third of that, in whole lines, is 574,912.
 */
static void test_bytes_and_memory_of_lenet5_on_3_ranks_by_hand(void **state)
{
    ranks r, whole;
    cvy_plan_options options = make_options(0, false, true);
    int64_t optimizer = 0;
    (void)state;
    assert_true(open_ranks("lenet5", "sample=3", &options, NULL, &r));
    options.parallel.shard_optimizer = false;
    assert_true(open_ranks("lenet5", "sample=3", &options, NULL, &whole));
    for (int i = 0; i < r.count; i++) {
        const cvy_schedule *s = &r.plan[i]->schedule[CVY_SCHEDULE_TRAIN];
        assert_int_equal(sum_bytes(s, CVY_COLLECTIVE_REDUCE_SCATTER), 3 * 574912);
        assert_int_equal(sum_bytes(s, CVY_COLLECTIVE_ALL_GATHER), 3 * 574912);
        assert_int_equal(sum_bytes(s, CVY_COLLECTIVE_ALL_REDUCE), 0);
        assert_true(s->memory.by_role[CVY_BUFFER_OPTIMIZER] <= 574912);
        assert_int_equal(s->memory.by_role[CVY_BUFFER_WEIGHTS], 3 * 574912);
        optimizer += s->memory.by_role[CVY_BUFFER_OPTIMIZER];
    }
    const cvy_schedule *s = &whole.plan[0]->schedule[CVY_SCHEDULE_TRAIN];
    assert_int_equal(sum_bytes(s, CVY_COLLECTIVE_ALL_REDUCE), 1724560);
    assert_int_equal(s->memory.by_role[CVY_BUFFER_OPTIMIZER], 1724608);
    assert_int_equal(optimizer, 1724608);
    close_ranks(&whole);
    close_ranks(&r);
}

/* Ranks beside each other that have all of a gradient without a sum: along space, behind what makes a sample whole. */
static int count_copies(const ranks *r, int parameter)
{
    unsigned summed = r->distribution->layer[r->model->parameter[parameter].layer].gradient_axes;
    int64_t copies = 1;
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        copies *= summed & CVY_AXIS_BIT(axis) ? 1 : r->strategy.mesh.size[axis];
    }
    return (int)copies;
}

/* How often each element of a parameter has state over all ranks: once in each group that sums its gradient. */
static void check_cover(const ranks *r)
{
    for (int p = 0; p < r->model->parameters; p++) {
        int64_t elements = cvy_shape_elements(&r->model->parameter[p].spec.shape);
        int *held = calloc((size_t)elements, sizeof *held);
        for (int i = 0; i < r->count; i++) {
            const cvy_schedule *s = &r->plan[i]->schedule[CVY_SCHEDULE_TRAIN];
            for (int k = 0; k < r->plan[i]->persistent_buffers; k++) {
                const cvy_buffer *b = &s->buffer[k];
                bool mine = b->content == CVY_CONTENT_MOMENT && b->parameter == p;
                for (int64_t e = b->local[0].begin; mine && e < b->local[0].end; e++) {
                    held[e]++;
                }
            }
        }
        for (int64_t e = 0; r->model->parameter[p].spec.trainable && e < elements; e++) {
            assert_int_equal(held[e], count_copies(r, p));
        }
        free(held);
    }
}

static void test_each_element_is_updated_once(void **state)
{
    static const char *const strategies[] = {"sample=2", "sample=5", "sample=3,height=2"};
    (void)state;
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        for (int variant = 0; variant < 2; variant++) {
            ranks r;
            cvy_plan_options options = make_options(variant ? 100000 : 0, variant, true);
            assert_true(open_ranks("cifar10-quick", strategies[i], &options, NULL, &r));
            check_cover(&r);
            close_ranks(&r);
        }
    }
}

/* All schedules of a plan find what persists in the same place. */
static void test_schedules_agree_on_what_persists(void **state)
{
    ranks r;
    cvy_plan_options options = make_options(100000, true, true);
    (void)state;
    assert_true(open_ranks("resnet18:size=32", "sample=2,height=2", &options, NULL, &r));
    for (int i = 0; i < r.count; i++) {
        for (int kind = 1; kind < CVY_SCHEDULE_COUNT; kind++) {
            for (int k = 0; k < r.plan[i]->persistent_buffers; k++) {
                const cvy_buffer *a = &r.plan[i]->schedule[0].buffer[k], *b = &r.plan[i]->schedule[kind].buffer[k];
                assert_int_equal(a->content, b->content);
                assert_int_equal(a->parameter, b->parameter);
                assert_int_equal(a->offset, b->offset);
                assert_int_equal(a->bytes, b->bytes);
            }
        }
    }
    close_ranks(&r);
}

/* Where nobody has copies along samples, nothing changes. */
static void test_without_a_sample_axis_the_plan_is_the_same(void **state)
{
    static const char *const strategies[] = {"sample=1", "height=2", "channel=2", "stage=2"};
    (void)state;
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        ranks a, b;
        cvy_plan_options options = make_options(100000, true, false);
        assert_true(open_ranks("cifar10-quick", strategies[i], &options, NULL, &a));
        options.parallel.shard_optimizer = true;
        assert_true(open_ranks("cifar10-quick", strategies[i], &options, NULL, &b));
        for (int k = 0; k < a.count * CVY_SCHEDULE_COUNT; k++) {
            const cvy_schedule *x = &a.plan[k / CVY_SCHEDULE_COUNT]->schedule[k % CVY_SCHEDULE_COUNT];
            assert_int_equal(cvy_schedule_hash(x),
                             cvy_schedule_hash(&b.plan[k / CVY_SCHEDULE_COUNT]->schedule[k % CVY_SCHEDULE_COUNT]));
        }
        close_ranks(&a);
        close_ranks(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_and_memory_of_lenet5_on_3_ranks_by_hand),
        cmocka_unit_test(test_each_element_is_updated_once),
        cmocka_unit_test(test_schedules_agree_on_what_persists),
        cmocka_unit_test(test_without_a_sample_axis_the_plan_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
