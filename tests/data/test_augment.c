/*
 * Augmentation against plain loops over a padded copy, and its draws against counting: uniform, independent of each
 * other, a function of (seed, epoch, sample) alone, and none of it on the test split.
 */
#include "data_test.h"

#include <math.h>

#include "data/augment.h"

enum { MAX_ELEMENTS = 2 * 5 * 6 * 7, SEED = 3 };

/* Pad by zeros, crop at padding + shift, mirror: as the words say, element by element. */
static void crop_plainly(const cvy_augment_draw *draw, const int64_t e[4], const float *x, float *y)
{
    for (int64_t at = 0; at < e[0] * e[1] * e[2] * e[3]; at++) {
        int64_t c = at / (e[3] * e[2] * e[1]), d = at / (e[3] * e[2]) % e[1], h = at / e[3] % e[2], w = at % e[3];
        int64_t column = draw->flip ? e[3] - 1 - w : w;
        int64_t from_d = d + draw->shift[0], from_h = h + draw->shift[1], from_w = column + draw->shift[2];
        bool inside = from_d >= 0 && from_d < e[1] && from_h >= 0 && from_h < e[2] && from_w >= 0 && from_w < e[3];
        y[at] = inside ? x[((c * e[1] + from_d) * e[2] + from_h) * e[3] + from_w] : 0.0f;
    }
}

/* Every shift of up to 4 of a side of 5 and more, with and without a mirror. */
static void test_shifts_and_mirrors_are_those_of_plain_loops(void **state)
{
    (void)state;
    static const int64_t extents[][4] = {{3, 1, 5, 6}, {1, 1, 6, 5}, {2, 5, 6, 7}};
    for (size_t k = 0; k < sizeof extents / sizeof extents[0]; k++) {
        const int64_t *e = extents[k];
        bool flat = e[1] == 1;
        cvy_shape sample = flat ? CVY_SHAPE(e[0], e[2], e[3]) : CVY_SHAPE(e[0], e[1], e[2], e[3]);
        int64_t depths = flat ? 0 : 4;
        for (int code = 0; code < 9 * 9 * 9 * 2; code++) {
            cvy_augment_draw draw = {{code / 162 - 4, code / 18 % 9 - 4, code / 2 % 9 - 4}, code % 2};
            float x[MAX_ELEMENTS], expected[MAX_ELEMENTS];
            if (draw.shift[0] < -depths || draw.shift[0] > depths) {
                continue;
            }
            for (int i = 0; i < cvy_shape_elements(&sample); i++) {
                x[i] = (float)(i + 1);
            }
            crop_plainly(&draw, e, x, expected);
            cvy_augment_apply(&draw, &sample, x);
            assert_memory_equal(x, expected, (size_t)cvy_shape_elements(&sample) * sizeof *x);
        }
    }
}

/* A map of labels goes where its sample goes; class 0 moves in. */
static void test_labels_move_with_their_sample(void **state)
{
    (void)state;
    const cvy_shape sample = CVY_SHAPE(1, 4, 5, 6), map = CVY_SHAPE(4, 5, 6), other = CVY_SHAPE(4, 5, 3);
    const cvy_augmentation augmentation = {.crop_padding = 2, .hflip = 0.5}, none = {0};
    for (int64_t index = 0; index < 100; index++) {
        cvy_augment_draw draw = cvy_augment_choose(&augmentation, SEED, 1, index, 4);
        float x[120];
        int32_t label[120];
        for (int i = 0; i < 120; i++) {
            x[i] = (float)(i + 1);
            label[i] = i + 1;
        }
        cvy_augment_apply(&draw, &sample, x);
        cvy_augment_apply_map(&draw, &map, label);
        for (int i = 0; i < 120; i++) {
            assert_true(x[i] == (float)label[i]);
        }
    }
    assert_int_equal(cvy_augment_check(&augmentation, &sample, &map), CVY_OK);
    assert_int_equal(cvy_augment_check(&none, &sample, &other), CVY_OK);
    assert_int_equal(cvy_augment_check(&augmentation, &sample, &other), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "labels are 4x5x3 and samples 1x4x5x6"));
}

/* 9 shifts of 9,000 draws: 1,000 each, deviation sqrt(9,000 * 1/9 * 8/9) = 30; mirrors 0.3 * 9,000, deviation 43. */
static void test_draws_are_uniform_and_independent(void **state)
{
    (void)state;
    const cvy_augmentation augmentation = {.crop_padding = 4, .hflip = 0.3};
    int count[3][9] = {{0}}, both[9][9] = {{0}}, flips = 0;
    for (int64_t i = 0; i < 9000; i++) {
        cvy_augment_draw draw = cvy_augment_choose(&augmentation, SEED, 1, i, 4);
        for (int axis = 0; axis < 3; axis++) {
            assert_in_range(draw.shift[axis] + 4, 0, 8);
            count[axis][draw.shift[axis] + 4]++;
        }
        both[draw.shift[1] + 4][draw.shift[2] + 4]++;
        flips += draw.flip;
    }
    for (int shift = 0; shift < 9; shift++) {
        for (int axis = 0; axis < 3; axis++) {
            assert_in_range(count[axis][shift], 1000 - 5 * 30, 1000 + 5 * 30);
        }
        for (int other = 0; other < 9; other++) { /* 9,000 / 81 = 111, deviation 10.5 */
            assert_in_range(both[shift][other], 111 - 53, 111 + 53);
        }
    }
    assert_in_range(flips, 2700 - 5 * 43, 2700 + 5 * 43);
}

static bool equal(cvy_augment_draw a, cvy_augment_draw b)
{
    return a.shift[0] == b.shift[0] && a.shift[1] == b.shift[1] && a.shift[2] == b.shift[2] && a.flip == b.flip;
}

/* Two draws agree by chance once in 9 * 9 * 2 = 162: of 2,000 pairs 12, deviation 3.5. */
static void test_draws_differ_over_samples_epochs_and_seeds(void **state)
{
    (void)state;
    const cvy_augmentation augmentation = {.crop_padding = 4, .hflip = 0.5};
    int samples = 0, epochs = 0, seeds = 0, far = 0;
    for (int64_t i = 0; i < 2000; i++) {
        cvy_augment_draw draw = cvy_augment_choose(&augmentation, SEED, 7, i, 3);
        assert_int_equal(draw.shift[0], 0);
        assert_true(equal(draw, cvy_augment_choose(&augmentation, SEED, 7, i, 3)));
        samples += equal(draw, cvy_augment_choose(&augmentation, SEED, 7, i + 1, 3));
        epochs += equal(draw, cvy_augment_choose(&augmentation, SEED, 8, i, 3));
        seeds += equal(draw, cvy_augment_choose(&augmentation, SEED + 1, 7, i, 3));
        far += equal(draw, cvy_augment_choose(&augmentation, SEED, 7, i + (INT64_C(1) << 32), 3));
    }
    assert_true(samples < 31 && epochs < 31 && seeds < 31 && far < 31);
}

static void test_probabilities_0_and_1_are_certain(void **state)
{
    (void)state;
    const cvy_augmentation never = {0}, always = {.hflip = 1};
    for (int64_t i = 0; i < 1000; i++) {
        assert_true(equal(cvy_augment_choose(&never, SEED, 0, i, 4), (cvy_augment_draw){{0, 0, 0}, false}));
        assert_true(cvy_augment_choose(&always, SEED, 0, i, 4).flip);
    }
}

/* CIFAR's first channel: the border that moves in is black, (0 - 0.4914) / 0.247, not the mean. */
static void test_padding_is_black_before_the_scale(void **state)
{
    (void)state;
    static float x[3072], y[3072];
    int32_t label;
    cvy_data_options options = class_options(CVY_TEST_DATA "/cifar10", CVY_SHAPE(3, 32, 32));
    cvy_data *data;
    options.augmentation = (cvy_augmentation){.crop_padding = 4, .hflip = 0.5};
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    for (uint32_t epoch = 0; epoch < 50; epoch++) {
        cvy_augment_draw draw = cvy_augment_choose(&options.augmentation, options.seed, epoch, 2, 3);
        assert_int_equal(cvy_data_read_augmented(data, CVY_SPLIT_TRAIN, 2, epoch, x, &label), CVY_OK);
        assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 2, y, &label), CVY_OK);
        for (int64_t h = 0; h < 32; h++) {
            for (int64_t w = 0; w < 32; w++) {
                int64_t from_h = h + draw.shift[1], from_w = (draw.flip ? 31 - w : w) + draw.shift[2];
                bool inside = from_h >= 0 && from_h < 32 && from_w >= 0 && from_w < 32;
                assert_true(x[h * 32 + w] == (inside ? y[from_h * 32 + from_w] : (0.0f - 0.4914f) / 0.2470f));
            }
        }
    }
    cvy_data_close(&data);
}

static void test_an_augmentation_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    cvy_data_options options = class_options(CVY_TEST_DATA "/cifar10", CVY_SHAPE(3, 32, 32));
    options.augmentation.crop_padding = 32;
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "crop-padding: 32 ", "3x32x32");
    options.augmentation.crop_padding = -1;
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "crop-padding: ", "-1");
    options.augmentation.crop_padding = 31;
    options.augmentation.hflip = 1.5;
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "hflip: ", "1.5");
    options.augmentation.hflip = NAN;
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "hflip: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shifts_and_mirrors_are_those_of_plain_loops),
        cmocka_unit_test(test_labels_move_with_their_sample),
        cmocka_unit_test(test_draws_are_uniform_and_independent),
        cmocka_unit_test(test_draws_differ_over_samples_epochs_and_seeds),
        cmocka_unit_test(test_probabilities_0_and_1_are_certain),
        cmocka_unit_test(test_padding_is_black_before_the_scale),
        cmocka_unit_test(test_an_augmentation_that_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
