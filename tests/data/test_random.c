/* Noise: its moments, its labels, and that a sample depends on (seed, split, index) alone. */
#include "data_test.h"

#include <math.h>

enum { SIDE = 100, PIXELS = SIDE * SIDE };

static cvy_data *open_noise(cvy_data_options options)
{
    cvy_data *data;
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    return data;
}

/*
 * 40 samples of 10,000 numbers, n = 400,000. Deviations of the estimates: mean 1 / sqrt(n) = 0.0016, variance
 * sqrt(2 / n) = 0.0022, fourth moment sqrt(96 / n) = 0.0155, neighbours' product 1 / sqrt(n); five of each are allowed.
 */
static void test_pixels_have_the_moments_of_a_standard_normal(void **state)
{
    (void)state;
    static float x[PIXELS];
    double sum = 0, square = 0, fourth = 0, neighbour = 0, n = 40.0 * PIXELS;
    int32_t label;
    cvy_data *data = open_noise(class_options("random", CVY_SHAPE(1, SIDE, SIDE)));
    for (int index = 0; index < 40; index++) {
        assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, index, x, &label), CVY_OK);
        for (int i = 0; i < PIXELS; i++) {
            assert_true(isfinite(x[i]));
            sum += x[i];
            square += (double)x[i] * x[i];
            fourth += pow(x[i], 4);
            neighbour += i ? (double)x[i] * x[i - 1] : 0;
        }
    }
    assert_true(fabs(sum / n) < 5 * 0.0016);
    assert_true(fabs(square / n - 1) < 5 * 0.0022);
    assert_true(fabs(fourth / n - 3) < 5 * 0.0155);
    assert_true(fabs(neighbour / n) < 5 * 0.0016);
    cvy_data_close(&data);
}

/* 5,000 labels of 5 classes: 1,000 each, deviation sqrt(5000 * 0.2 * 0.8) = 28. */
static void test_classes_are_uniform(void **state)
{
    (void)state;
    cvy_data_options options = class_options("random", CVY_SHAPE(1, 1, 3));
    int count[5] = {0};
    float x[3];
    options.classes = 5;
    options.train_count = 5000;
    cvy_data *data = open_noise(options);
    assert_int_equal(cvy_data_get_info(data)->classes, 5);
    for (int index = 0; index < 5000; index++) {
        int32_t label;
        assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, index, x, &label), CVY_OK);
        assert_in_range(label, 0, 4);
        count[label]++;
    }
    for (int i = 0; i < 5; i++) {
        assert_in_range(count[i], 1000 - 5 * 28, 1000 + 5 * 28);
    }
    cvy_data_close(&data);
}

/*
 * A volume with 4 values. Uniform in [-1, 1) has mean 0 and variance 1/3; deviations of the estimates from 4,000 are
 * sqrt(1 / 3 / 4000) = 0.0091 and sqrt(4 / 45 / 4000) = 0.0047.
 */
static void test_a_regression_on_volumes_gets_values(void **state)
{
    (void)state;
    cvy_data_options options = class_options("random", CVY_SHAPE(2, 3, 4, 5));
    float x[2 * 3 * 4 * 5], value[4];
    double sum = 0, square = 0;
    options.target = CVY_TARGET_VALUES;
    options.classes = 4;
    options.train_count = 1000;
    cvy_data *data = open_noise(options);
    assert_int_equal(cvy_data_get_info(data)->target, CVY_TARGET_VALUES);
    assert_int_equal(cvy_data_get_info(data)->values, 4);
    assert_int_equal(cvy_data_sample_bytes(data), 120 * 4);
    assert_int_equal(cvy_data_label_bytes(data), 16);
    for (int index = 0; index < 1000; index++) {
        assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, index, x, value), CVY_OK);
        for (int i = 0; i < 4; i++) {
            assert_true(value[i] >= -1 && value[i] < 1);
            sum += value[i];
            square += (double)value[i] * value[i];
        }
    }
    assert_true(fabs(sum / 4000) < 5 * 0.0091);
    assert_true(fabs(square / 4000 - 1.0 / 3) < 5 * 0.0047);
    cvy_data_close(&data);
}

static void test_a_sample_depends_on_seed_split_and_index_alone(void **state)
{
    (void)state;
    cvy_data_options options = class_options("random", CVY_SHAPE(1, 3, 3));
    float first[9], again[9], other[9];
    int32_t label[3];
    options.classes = 1000;
    cvy_data *one = open_noise(options);
    cvy_data *two = open_noise(options);
    assert_int_equal(cvy_data_get_info(one)->count[CVY_SPLIT_TRAIN], 1280);
    assert_int_equal(cvy_data_get_info(one)->count[CVY_SPLIT_TEST], 256);
    assert_int_equal(cvy_data_read(one, CVY_SPLIT_TRAIN, 7, first, &label[0]), CVY_OK);
    assert_int_equal(cvy_data_read(two, CVY_SPLIT_TRAIN, 200, other, &label[1]), CVY_OK);
    assert_int_equal(cvy_data_read(two, CVY_SPLIT_TRAIN, 7, again, &label[2]), CVY_OK);
    assert_memory_equal(first, again, sizeof first);
    assert_int_equal(label[0], label[2]);
    assert_memory_not_equal(first, other, sizeof first);
    assert_int_equal(cvy_data_read(one, CVY_SPLIT_TEST, 7, other, &label[1]), CVY_OK);
    assert_memory_not_equal(first, other, sizeof first);
    cvy_data_close(&two);
    options.seed++;
    two = open_noise(options);
    assert_int_equal(cvy_data_read(two, CVY_SPLIT_TRAIN, 7, other, &label[1]), CVY_OK);
    assert_memory_not_equal(first, other, sizeof first);
    cvy_data_close(&one);
    cvy_data_close(&two);
}

/* 6,000 labels of 3 classes: 2,000 each, deviation sqrt(6000 * 1/3 * 2/3) = 37; the first is that of one class alone. */
static void test_maps_have_the_shape_asked_for(void **state)
{
    (void)state;
    cvy_data_options options = class_options("random", CVY_SHAPE(1, 2, 3, 4));
    static int32_t label[6000];
    int32_t single;
    int count[3] = {0}, repeats = 0;
    float x[24];
    options.classes = 3;
    cvy_data *data = open_noise(options);
    assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 5, x, &single), CVY_OK);
    cvy_data_close(&data);
    options.target = CVY_TARGET_MAP;
    options.map = CVY_SHAPE(10, 20, 30);
    data = open_noise(options);
    assert_int_equal(cvy_data_label_bytes(data), sizeof label);
    assert_int_equal(cvy_data_get_info(data)->classes, 3);
    assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 5, x, label), CVY_OK);
    for (int i = 0; i < 6000; i++) {
        assert_in_range(label[i], 0, 2);
        count[label[i]]++;
        repeats += i && label[i] == label[i - 1];
    }
    for (int i = 0; i < 3; i++) {
        assert_in_range(count[i], 2000 - 5 * 37, 2000 + 5 * 37);
    }
    assert_in_range(repeats, 2000 - 5 * 37, 2000 + 5 * 37);
    assert_int_equal(label[0], single);
    cvy_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels_have_the_moments_of_a_standard_normal),
        cmocka_unit_test(test_classes_are_uniform),
        cmocka_unit_test(test_maps_have_the_shape_asked_for),
        cmocka_unit_test(test_a_regression_on_volumes_gets_values),
        cmocka_unit_test(test_a_sample_depends_on_seed_split_and_index_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
