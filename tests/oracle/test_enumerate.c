/* Blocks and what is around them, against plain loops over all sizes of all axes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "oracle/enumerate.h"

enum { MANY = 100000 };

static cvy_model *open_model(const char *name)
{
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_open(name, &model), CVY_OK);
    return model;
}

/* Meshes of stages, samples, h, w, c: every five sizes whose product is right. */
static int64_t count_meshes(int64_t ranks, int64_t batch, int64_t stages, int64_t rows, int64_t channels)
{
    int64_t count = 0;
    for (int64_t s = 1; s <= ranks && s <= stages; s++) {
        for (int64_t n = 1; n <= ranks && n <= batch; n++) {
            for (int64_t h = 1; h <= ranks && h <= rows; h++) {
                for (int64_t w = 1; ranks % (s * n * h) == 0 && w <= ranks && w <= rows; w++) {
                    int64_t c = ranks % (s * n * h * w) == 0 ? ranks / (s * n * h * w) : channels + 1;
                    count += c > channels ? 0 : c > 1 ? CVY_CHANNEL_CUT_COUNT : 1;
                }
            }
        }
    }
    return count;
}

/* Strategies without micro-batches, in the first order: one for each mesh. */
static int64_t count_strategies(const cvy_model *model, int64_t ranks, int64_t batch)
{
    cvy_blocks blocks = {0};
    cvy_variants variants = {.ranks = ranks, .batch = batch};
    int64_t count = 0;
    assert_int_equal(cvy_model_count_stages(model, &variants.max_stages), CVY_OK);
    assert_int_equal(cvy_blocks_list(model, ranks, false, MANY, &blocks), CVY_OK);
    assert_int_equal(blocks.left_out, 0);
    for (int i = 0; i < blocks.count; i++) {
        variants.block = &blocks.block[i];
        cvy_variants_begin(&variants);
        while (cvy_variants_next(&variants)) {
            const cvy_strategy *s = &variants.strategy;
            assert_int_equal(s->mesh.ranks, ranks);
            assert_true(s->micro_batches >= 1 && s->micro_batches * s->mesh.size[CVY_AXIS_SAMPLE] <= batch);
            assert_true(s->micro_batches > 1 || s->pipeline == CVY_PIPELINE_1F1B); /* of one, all orders are one */
            count += s->micro_batches == 1;
        }
    }
    cvy_blocks_clear(&blocks);
    return count;
}

/* lenet5: 28 x 28, at most 800 channels (of the flattened vector); not only powers of two. */
static void test_every_mesh_comes_once(void **state)
{
    (void)state;
    static const int64_t ranks[] = {1, 2, 7, 12, 30, 64, 90};
    cvy_model *model = open_model("lenet5");
    int stages;
    int64_t channels = 0;
    assert_int_equal(cvy_model_count_stages(model, &stages), CVY_OK);
    for (int i = 0; i < model->layers; i++) {
        const cvy_shape *y = &model->layer[i].output;
        channels = y->dims > 1 && y->extent[1] > channels ? y->extent[1] : channels;
    }
    assert_int_equal(model->layer[0].output.extent[2], 28);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        assert_int_equal(count_strategies(model, ranks[i], 48), count_meshes(ranks[i], 48, stages, 28, channels));
    }
    cvy_model_destroy(&model);
}

static void test_no_two_strategies_are_equal(void **state)
{
    (void)state;
    enum { MOST = 4000 };
    static cvy_strategy seen[MOST];
    cvy_model *model = open_model("cifar10-quick");
    cvy_blocks blocks = {0};
    cvy_variants variants = {.ranks = 24, .batch = 96};
    int count = 0;
    assert_int_equal(cvy_model_count_stages(model, &variants.max_stages), CVY_OK);
    assert_int_equal(cvy_blocks_list(model, 24, false, MANY, &blocks), CVY_OK);
    for (int i = 0; i < blocks.count; i++) {
        variants.block = &blocks.block[i];
        cvy_variants_begin(&variants);
        while (cvy_variants_next(&variants)) {
            const cvy_strategy *s = &variants.strategy;
            for (int k = 0; k < count; k++) {
                bool same = memcmp(seen[k].mesh.size, s->mesh.size, sizeof s->mesh.size) == 0 &&
                            seen[k].channel_cut == s->channel_cut && seen[k].pipeline == s->pipeline &&
                            seen[k].micro_batches == s->micro_batches;
                assert_false(same);
            }
            assert_true(count < MOST);
            seen[count++] = *s;
        }
    }
    assert_true(count > 100);
    cvy_blocks_clear(&blocks);
    cvy_model_destroy(&model);
}

/* Of 1024 ranks 10 blocks along several axes; all along one axis stay, and none that stays is larger than one left. */
static void test_a_limit_leaves_out_the_largest(void **state)
{
    (void)state;
    cvy_model *model = open_model("resnet50");
    cvy_blocks all = {0}, some = {0};
    assert_int_equal(cvy_blocks_list(model, 1024, false, MANY, &all), CVY_OK);
    assert_int_equal(cvy_blocks_list(model, 1024, false, 10, &some), CVY_OK);
    assert_int_equal(some.count + some.left_out, all.count);
    assert_memory_equal(some.block, all.block, (size_t)some.count * sizeof *some.block);
    for (int i = some.count; i < all.count; i++) {
        assert_true(all.block[i].ranks >= some.block[some.count - 1].ranks);
    }
    cvy_blocks_clear(&all);
    cvy_blocks_clear(&some);
    cvy_model_destroy(&model);
}

/* Of 8 ranks along the channels alone: 2, 4, 8, by filters or by channels. */
static void test_where_nothing_alternates_two_cuts_are_left(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    cvy_blocks blocks = {0};
    int along = 0;
    assert_int_equal(cvy_blocks_list(model, 8, true, 0, &blocks), CVY_OK);
    for (int i = 0; i < blocks.count; i++) {
        const cvy_block *b = &blocks.block[i];
        bool channels = b->size[CVY_AXIS_CHANNEL] > 1;
        assert_true(!channels || b->cut != CVY_CHANNEL_CUT_ALTERNATE);
        along += channels;
    }
    assert_int_equal(along, 6);
    cvy_blocks_clear(&blocks);
    cvy_model_destroy(&model);
}

static void test_running_out_of_memory_is_told(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    for (int64_t i = 0; i < 4; i++) {
        cvy_blocks blocks = {0};
        cvy_memory_fail_after(i);
        assert_int_equal(cvy_blocks_list(model, 64, false, MANY, &blocks), CVY_ERR_MEMORY);
        cvy_memory_fail_after(-1);
        assert_null(blocks.block);
    }
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_mesh_comes_once),
        cmocka_unit_test(test_no_two_strategies_are_equal),
        cmocka_unit_test(test_a_limit_leaves_out_the_largest),
        cmocka_unit_test(test_where_nothing_alternates_two_cuts_are_left),
        cmocka_unit_test(test_running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
