/*
 * Volumes with known makers. In two channels of growth 1 and 0.8 a volume is x0 = W + B and x1 = 0.8 W + 0.64 B, W the
 * field and B the blobs, so that both can be told apart again: W = (x1 - 0.64 x0) / 0.16. What they must look like
 * follows from the four targets by the formulas that docs/data.md gives.
 */
#include "data_test.h"

#include <math.h>
#include <stdlib.h>

enum { SIDE = 20, VOXELS = SIDE * SIDE * SIDE, SAMPLES = 300 };

static cvy_data_options cosmo_options(int64_t channels, int64_t side)
{
    return (cvy_data_options){.source = "cosmo", .seed = 5, .sample = CVY_SHAPE(channels, side, side, side),
                              .target = CVY_TARGET_VALUES, .classes = 4};
}

static cvy_data *open_cosmo(const cvy_data_options *options)
{
    cvy_data *data = NULL;
    assert_int_equal(cvy_data_open(options, &data), CVY_OK);
    return data;
}

static void test_a_sample_is_a_function_of_seed_split_and_index(void **state)
{
    (void)state;
    enum { ELEMENTS = 2 * 8 * 8 * 8 };
    cvy_data_options options = cosmo_options(2, 8);
    float x[ELEMENTS], again[ELEMENTS], y[4], y_again[4];
    cvy_data *data = open_cosmo(&options);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TRAIN], 1024);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TEST], 256);
    assert_int_equal(cvy_data_get_info(data)->values, 4);
    options.train_count = 8;
    cvy_data *fewer = open_cosmo(&options);
    options.seed++;
    cvy_data *other = open_cosmo(&options);
    assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 7, x, y), CVY_OK);
    assert_int_equal(cvy_data_read(fewer, CVY_SPLIT_TRAIN, 7, again, y_again), CVY_OK);
    assert_memory_equal(x, again, sizeof x);
    assert_memory_equal(y, y_again, sizeof y);
    for (int k = 0; k < 3; k++) { /* the next sample, the other split, another seed */
        const cvy_data *from = k == 2 ? other : data;
        assert_int_equal(cvy_data_read(from, k == 1 ? CVY_SPLIT_TEST : CVY_SPLIT_TRAIN, 7 - (k == 0), again, y_again),
                         CVY_OK);
        assert_memory_not_equal(x, again, sizeof x);
        assert_memory_not_equal(y, y_again, sizeof y);
    }
    cvy_data_close(&data);
    cvy_data_close(&fewer);
    cvy_data_close(&other);
}

/* Uniform in [-1, 1): mean 0, variance 1/3; of 4,000, deviations 0.0091 and 0.0047; products of two 1/3 / 63 = 0.0053. */
static void test_targets_are_uniform_and_independent(void **state)
{
    (void)state;
    enum { COUNT = 4000 };
    double sum[4] = {0}, product[4][4] = {{0}};
    cvy_data_options options = cosmo_options(1, 8);
    options.train_count = COUNT;
    cvy_data *data = open_cosmo(&options);
    for (int i = 0; i < COUNT; i++) {
        float x[512], y[4];
        assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, i, x, y), CVY_OK);
        for (int a = 0; a < 4; a++) {
            assert_true(y[a] >= -1 && y[a] < 1);
            sum[a] += (double)y[a];
            for (int b = 0; b < 4; b++) {
                product[a][b] += (double)y[a] * (double)y[b];
            }
        }
    }
    for (int a = 0; a < 4; a++) {
        assert_true(fabs(sum[a] / COUNT) < 5 * 0.0091);
        for (int b = 0; b < 4; b++) {
            double expected = a == b ? 1.0 / 3 : 0;
            assert_true(fabs(product[a][b] / COUNT - expected) < 5 * 0.0053);
        }
    }
    cvy_data_close(&data);
}

/* What one volume shows. */
typedef struct figures {
    float y[4];
    double field_std;   /* of W */
    double roughness;   /* log of the mean square step of W along w, over its variance */
    double blob_mean;   /* of B */
} figures;

static figures measure(const cvy_data *data, int64_t index)
{
    static float x[2][VOXELS];
    static double field[VOXELS];
    figures f = {.blob_mean = 0};
    double sum = 0, squares = 0, steps = 0;
    assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, index, x[0], f.y), CVY_OK);
    for (int i = 0; i < VOXELS; i++) {
        assert_true(isfinite(x[0][i]) && isfinite(x[1][i]));
        field[i] = ((double)x[1][i] - 0.64 * (double)x[0][i]) / 0.16;
        sum += field[i];
        f.blob_mean += ((double)x[0][i] - field[i]) / VOXELS;
    }
    for (int i = 0; i < VOXELS; i++) {
        squares += (field[i] - sum / VOXELS) * (field[i] - sum / VOXELS);
        double step = i % SIDE ? field[i] - field[i - 1] : 0;
        steps += step * step;
    }
    f.field_std = sqrt(squares / VOXELS);
    f.roughness = log(steps / squares);
    return f;
}

static double correlate(const double *a, const double *b)
{
    double ma = 0, mb = 0, aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < SAMPLES; i++) {
        ma += a[i] / SAMPLES;
        mb += b[i] / SAMPLES;
    }
    for (int i = 0; i < SAMPLES; i++) {
        aa += (a[i] - ma) * (a[i] - ma);
        bb += (b[i] - mb) * (b[i] - mb);
        ab += (a[i] - ma) * (b[i] - mb);
    }
    return ab / sqrt(aa * bb);
}

/*
 * The field's deviation is 0.6 * 2^y1. N = 14 + 10 y2 blobs of height 2 and radius r = 0.06 * 2^(0.7 y3) of a side have
 * the mean 2 N (2 pi)^(3/2) r^3, of which a share of (1 - r sqrt(2 / pi))^3 lies inside the volume.
 */
static void test_volumes_are_what_their_targets_say(void **state)
{
    (void)state;
    static double slope[SAMPLES], roughness[SAMPLES], amplitude[SAMPLES], deviation[SAMPLES], mass[SAMPLES],
        expected[SAMPLES];
    double ratio = 0, mass_sum = 0, expected_sum = 0;
    cvy_data_options options = cosmo_options(2, SIDE);
    cvy_data *data = open_cosmo(&options);
    for (int i = 0; i < SAMPLES; i++) {
        figures f = measure(data, i);
        double r = 0.06 * exp2(0.7 * (double)f.y[3]), inside = 1 - r * sqrt(2 / 3.14159265);
        slope[i] = (double)f.y[0];
        roughness[i] = f.roughness;
        amplitude[i] = (double)f.y[1];
        deviation[i] = log(f.field_std);
        mass[i] = f.blob_mean;
        expected[i] = 2 * (14 + 10 * (double)f.y[2]) * pow(6.28318531, 1.5) * r * r * r * inside * inside * inside;
        ratio += f.field_std / (0.6 * exp2((double)f.y[1])) / SAMPLES;
        mass_sum += mass[i];
        expected_sum += expected[i];
    }
    print_message("deviation %g, mass %g, correlations %g %g %g\n", ratio, mass_sum / expected_sum,
                  correlate(slope, roughness), correlate(amplitude, deviation), correlate(mass, expected));
    assert_true(fabs(ratio - 1) < 0.05);
    assert_true(fabs(mass_sum / expected_sum - 1) < 0.05);
    assert_true(correlate(slope, roughness) < -0.8);
    assert_true(correlate(amplitude, deviation) > 0.8);
    assert_true(correlate(mass, expected) > 0.9);
    cvy_data_close(&data);
}

static void test_models_that_do_not_fit_are_told(void **state)
{
    (void)state;
    cvy_data_options options = cosmo_options(4, 7);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "cosmo: made at sides of 8 to 2048", "4x7x7x7");
    options = cosmo_options(4, 4096);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "cosmo: made at sides of 8 to 2048");
    options = cosmo_options(4, 16);
    options.sample = CVY_SHAPE(3, 32, 32);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "cosmo: made of volumes", "3x32x32");
    options = cosmo_options(4, 16);
    options.classes = 3;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "cosmo: has 4 targets", "outputs=4");
    options.target = CVY_TARGET_CLASS;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "cosmo: ", "values", "classes");
    options = cosmo_options(4, 16);
    options.train_count = INT64_C(1) << 33;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "cosmo: at most 4294967295");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sample_is_a_function_of_seed_split_and_index),
        cmocka_unit_test(test_targets_are_uniform_and_independent),
        cmocka_unit_test(test_volumes_are_what_their_targets_say),
        cmocka_unit_test(test_models_that_do_not_fit_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
