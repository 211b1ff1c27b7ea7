/* Drawn digits: what a sample depends on, balance, and that they are neither trivial nor noise. */
#include "data_test.h"

#include <math.h>

enum { SIDE = 28, PIXELS = SIDE * SIDE, DIGITS = 10 };

static cvy_data *open_digits(cvy_data_options options)
{
    cvy_data *data;
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    return data;
}

static int32_t read_digit(const cvy_data *data, cvy_split split, int64_t index, float *x)
{
    int32_t label;
    assert_int_equal(cvy_data_read(data, split, index, x, &label), CVY_OK);
    return label;
}

static void test_a_sample_depends_on_seed_split_and_index_alone(void **state)
{
    (void)state;
    static float first[PIXELS], again[PIXELS], other[PIXELS];
    cvy_data_options options = class_options("digits", CVY_SHAPE(1, SIDE, SIDE));
    cvy_data *one = open_digits(options);
    options.train_count = 100; /* changes no sample */
    cvy_data *two = open_digits(options);
    int32_t label = read_digit(one, CVY_SPLIT_TRAIN, 43, first);
    read_digit(two, CVY_SPLIT_TRAIN, 53, other);
    assert_int_equal(read_digit(two, CVY_SPLIT_TRAIN, 43, again), label);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first); /* the same digit, written again */
    assert_int_equal(read_digit(one, CVY_SPLIT_TEST, 43, other), label);
    assert_memory_not_equal(first, other, sizeof first);
    cvy_data_close(&two);
    options.seed++;
    two = open_digits(options);
    assert_int_equal(read_digit(two, CVY_SPLIT_TRAIN, 43, other), label);
    assert_memory_not_equal(first, other, sizeof first);
    cvy_data_close(&one);
    cvy_data_close(&two);
}

static void test_classes_are_balanced(void **state)
{
    (void)state;
    static float x[PIXELS];
    cvy_data *data = open_digits(class_options("digits", CVY_SHAPE(1, SIDE, SIDE)));
    const cvy_data_info *info = cvy_data_get_info(data);
    assert_int_equal(info->count[CVY_SPLIT_TRAIN], 12000);
    assert_int_equal(info->count[CVY_SPLIT_TEST], 2000);
    assert_int_equal(info->classes, DIGITS);
    for (int split = 0; split < 2; split++) {
        int count[DIGITS] = {0};
        for (int i = 0; i < 500; i++) {
            int32_t label = read_digit(data, (cvy_split)split, i, x);
            assert_in_range(label, 0, DIGITS - 1);
            count[label]++;
        }
        for (int digit = 0; digit < DIGITS; digit++) {
            assert_int_equal(count[digit], 50);
        }
    }
    cvy_data_close(&data);
}

/* Ink lies in 0 to 1, so pixels in (0 - 0.1307) / 0.3081 to (1 - 0.1307) / 0.3081; 2 to 40 % of the image is dark. */
static void test_every_image_holds_some_ink_inside(void **state)
{
    (void)state;
    static float x[PIXELS];
    cvy_data *data = open_digits(class_options("digits", CVY_SHAPE(1, SIDE, SIDE)));
    for (int i = 0; i < 2000; i++) {
        int dark = 0;
        read_digit(data, CVY_SPLIT_TRAIN, i, x);
        for (int p = 0; p < PIXELS; p++) {
            double ink = x[p] * 0.3081 + 0.1307;
            assert_true(ink > -1e-6 && ink < 1 + 1e-6);
            dark += ink > 0.45;
        }
        assert_in_range(dark, 2 * PIXELS / 100, 40 * PIXELS / 100);
    }
    cvy_data_close(&data);
}

/*
 * The mean image of each class, from 2,000 training samples, names 1,000 test samples by the least distance. Digits
 * that were noise would give 10 %, digits that were always alike 100 %; on MNIST this classifier reaches 82 %.
 */
static void test_the_nearest_mean_is_a_fair_but_no_perfect_classifier(void **state)
{
    (void)state;
    static float x[PIXELS];
    static double mean[DIGITS][PIXELS];
    int right = 0;
    cvy_data *data = open_digits(class_options("digits", CVY_SHAPE(1, SIDE, SIDE)));
    for (int i = 0; i < 2000; i++) {
        int32_t label = read_digit(data, CVY_SPLIT_TRAIN, i, x);
        for (int p = 0; p < PIXELS; p++) {
            mean[label][p] += x[p] / 200.0;
        }
    }
    for (int i = 0; i < 1000; i++) {
        int32_t label = read_digit(data, CVY_SPLIT_TEST, i, x);
        double least = INFINITY;
        int nearest = -1;
        for (int digit = 0; digit < DIGITS; digit++) {
            double distance = 0;
            for (int p = 0; p < PIXELS; p++) {
                distance += (x[p] - mean[digit][p]) * (x[p] - mean[digit][p]);
            }
            nearest = distance < least ? digit : nearest;
            least = fmin(least, distance);
        }
        right += nearest == label;
    }
    print_message("nearest mean: %d of 1000\n", right);
    assert_in_range(right, 500, 950);
    cvy_data_close(&data);
}

/* Halves of a 56x56 picture's ink, averaged over 2x2 pixels, are those of the 28x28 one but for edges and speckles. */
static void test_every_size_shows_the_same_picture_in_every_channel(void **state)
{
    (void)state;
    static float small[PIXELS], large[3 * 4 * PIXELS];
    cvy_data *at_28 = open_digits(class_options("digits", CVY_SHAPE(1, SIDE, SIDE)));
    cvy_data *at_56 = open_digits(class_options("digits", CVY_SHAPE(3, 2 * SIDE, 2 * SIDE)));
    for (int i = 0; i < 50; i++) {
        double difference = 0;
        assert_int_equal(read_digit(at_28, CVY_SPLIT_TRAIN, i, small), read_digit(at_56, CVY_SPLIT_TRAIN, i, large));
        assert_memory_equal(large, large + 4 * PIXELS, 4 * PIXELS * sizeof *large);
        assert_memory_equal(large, large + 8 * PIXELS, 4 * PIXELS * sizeof *large);
        for (int y = 0; y < SIDE; y++) {
            for (int column = 0; column < SIDE; column++) {
                const float *p = large + 2 * y * 2 * SIDE + 2 * column;
                difference += fabs((p[0] + p[1] + p[2 * SIDE] + p[2 * SIDE + 1]) / 4 - small[y * SIDE + column]);
            }
        }
        /* in ink; a shift by one pixel of a thin stroke gives 0.1 */
        assert_true(difference * 0.3081 / PIXELS < 0.1);
    }
    cvy_data_close(&at_28);
    cvy_data_close(&at_56);
}

static void test_models_that_do_not_fit_are_told(void **state)
{
    (void)state;
    cvy_data_options options = class_options("digits", CVY_SHAPE(1, SIDE, SIDE));
    options.classes = 9;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "digits", "10 classes", "model has 9", "classes=10");
    options = class_options("digits", CVY_SHAPE(1, 16, 16, 16));
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "digits", "1x16x16x16");
    options = class_options("digits", CVY_SHAPE(1, 28, 7));
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "digits", "1x28x7", "8x8");
    options = class_options("digits", CVY_SHAPE(1, SIDE, SIDE));
    options.target = CVY_TARGET_VALUES;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "digits", "values");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sample_depends_on_seed_split_and_index_alone),
        cmocka_unit_test(test_classes_are_balanced),
        cmocka_unit_test(test_every_image_holds_some_ink_inside),
        cmocka_unit_test(test_the_nearest_mean_is_a_fair_but_no_perfect_classifier),
        cmocka_unit_test(test_every_size_shows_the_same_picture_in_every_channel),
        cmocka_unit_test(test_models_that_do_not_fit_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
