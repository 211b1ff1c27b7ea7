/* Fits to kernels whose law is known: what comes out are the law's constants, whatever a few kernels do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calibrate/dice.h"
#include "calibrate/fit.h"

enum { SAMPLES = 200 };

/* 100 GFLOP/s, 10 GB/s, 5 us. */
static const cvy_fit_device device = {100e9, 10e9, 5e-6};

/* Sizes of six octaves each; 2 n c f flop, 4 (n c + c f + n f) bytes: a product of matrices. */
static cvy_fit_sample draw_sample(cvy_dice *dice, int shape)
{
    double n = (double)cvy_dice_log(dice, 16, 4096), c = (double)cvy_dice_log(dice, 16, 4096);
    double f = (double)cvy_dice_log(dice, 16, 4096);
    cvy_fit_sample sample = {.flop = 2.0 * n * c * f, .bytes = 4.0 * (n * c + c * f + n * f), .shape = shape,
                             .kernel = CVY_ANY};
    sample.feature[0] = log2(n);
    sample.feature[1] = log2(c);
    sample.feature[2] = log2(f);
    sample.feature[3] = log2(sample.flop);
    sample.feature[4] = log2(sample.bytes);
    return sample;
}

static double get_roof(const cvy_fit_sample *s, double peak, double bandwidth)
{
    return fmax(s->flop / (100e9 * peak), s->bytes / (10e9 * bandwidth));
}

static void assert_near(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * fabs(expected))) {
        fail_msg("found %.9g, expected %.9g", found, expected);
    }
}

/* t = max(flop / (0.6 peak), bytes / (0.5 bandwidth)) + launch gives 0.6 and 0.5 back, and nothing is left over. */
static void test_the_shares_of_a_roofline_come_back(void **state)
{
    (void)state;
    cvy_fit_sample sample[SAMPLES];
    cvy_dice dice = {.seed = 1};
    cvy_fit_shares shares;
    for (int i = 0; i < SAMPLES; i++) {
        sample[i] = draw_sample(&dice, i);
        sample[i].seconds = get_roof(&sample[i], 0.6, 0.5) + 5e-6;
    }
    assert_int_equal(cvy_fit_shares_find(sample, SAMPLES, &device, &shares), CVY_OK);
    assert_near(shares.peak, 0.6, 1e-9);
    assert_near(shares.bandwidth, 0.5, 1e-9);
    assert_near(cvy_fit_shares_estimate(&shares, &device, 6e9, 4.0), 0.1 + 5e-6, 1e-9);
}

/* Each sixth kernel takes 30 times as long, and all are off by up to 10 % either way: medians hold within 5 %. */
static void test_a_few_bad_kernels_move_nothing(void **state)
{
    (void)state;
    cvy_fit_sample sample[SAMPLES];
    cvy_dice dice = {.seed = 2};
    cvy_fit_shares shares;
    for (int i = 0; i < SAMPLES; i++) {
        sample[i] = draw_sample(&dice, i);
        double noise = 0.9 + 0.2 * cvy_dice_unit(&dice);
        sample[i].seconds = (get_roof(&sample[i], 0.6, 0.5) * noise + 5e-6) * (i % 6 == 0 ? 30.0 : 1.0);
    }
    assert_int_equal(cvy_fit_shares_find(sample, SAMPLES, &device, &shares), CVY_OK);
    assert_near(shares.peak, 0.6, 0.05);
    assert_near(shares.bandwidth, 0.5, 0.05);
}

/* Of a law that is the roofline the roofline is taken: no other way is better than exact. */
static void test_a_roofline_is_best_for_a_roofline(void **state)
{
    (void)state;
    cvy_fit_sample sample[SAMPLES];
    cvy_dice dice = {.seed = 3};
    cvy_fit fit;
    for (int i = 0; i < SAMPLES; i++) {
        sample[i] = draw_sample(&dice, i);
        sample[i].seconds = get_roof(&sample[i], 0.4, 0.8) + 5e-6;
    }
    assert_int_equal(cvy_fit_run(sample, SAMPLES, &device, &fit), CVY_OK);
    assert_int_equal(fit.best, CVY_FIT_ROOFLINE);
    assert_int_equal(fit.score[CVY_FIT_ROOFLINE].samples, SAMPLES);
    assert_true(fit.score[CVY_FIT_ROOFLINE].median < 1e-6 && fit.score[CVY_FIT_ROOFLINE].r2 > 0.999999);
    cvy_fit_clear(&fit);
}

/* t = 3 n^-0.4 c^0.2 times the roofline: a line in logarithms, which no two shares are. */
static void test_a_power_law_is_a_line(void **state)
{
    (void)state;
    cvy_fit_sample sample[SAMPLES];
    cvy_dice dice = {.seed = 4};
    cvy_fit fit;
    for (int i = 0; i < SAMPLES; i++) {
        sample[i] = draw_sample(&dice, i);
        double n = exp2(sample[i].feature[0]), c = exp2(sample[i].feature[1]);
        sample[i].seconds = 3.0 * pow(n, -0.4) * pow(c, 0.2) * get_roof(&sample[i], 1.0, 1.0);
    }
    assert_int_equal(cvy_fit_run(sample, SAMPLES, &device, &fit), CVY_OK);
    assert_int_equal(fit.best, CVY_FIT_LINE);
    assert_true(fit.score[CVY_FIT_LINE].mape < 0.01 && fit.score[CVY_FIT_LINE].high < 0.05);
    assert_true(fit.score[CVY_FIT_ROOFLINE].mape > 0.2);
    assert_int_equal(fit.line.inputs.count, 5); /* the other features are the same for all */
    cvy_fit_sample other = draw_sample(&dice, SAMPLES);
    double n = exp2(other.feature[0]), c = exp2(other.feature[1]);
    double expected = 3.0 * pow(n, -0.4) * pow(c, 0.2) * get_roof(&other, 1.0, 1.0);
    assert_near(cvy_fit_line_estimate(&fit.line, &device, &other), expected, 0.02);
    cvy_fit_clear(&fit);
}

/*
 * Each shape is there twice and has a time that nothing explains, from 1 to 100 times its roofline. Who saw the other
 * of the two would be right; held out together they cannot be predicted.
 */
static void test_shapes_are_held_out_whole(void **state)
{
    (void)state;
    cvy_fit_sample sample[SAMPLES];
    cvy_dice dice = {.seed = 5};
    cvy_fit fit;
    for (int i = 0; i < SAMPLES; i += 2) {
        sample[i] = draw_sample(&dice, i / 2);
        sample[i].seconds = get_roof(&sample[i], 1.0, 1.0) * pow(100.0, cvy_dice_unit(&dice));
        sample[i + 1] = sample[i];
    }
    assert_int_equal(cvy_fit_run(sample, SAMPLES, &device, &fit), CVY_OK);
    for (int way = 0; way < CVY_FIT_WAYS; way++) {
        assert_true(fit.score[way].mape > 0.5);
    }
    cvy_fit_clear(&fit);
}

/* 40 GB/s where all operands fit 1 MB, 8 GB/s where not, half of the peak; the clock is off by up to 3 % either way. */
static double get_cached_s(const cvy_fit_sample *s, cvy_dice *dice)
{
    double noise = 0.97 + 0.06 * cvy_dice_unit(dice);
    return fmax(s->flop / 50e9, s->bytes / (s->bytes < 1e6 ? 40e9 : 8e9)) * noise;
}

static void draw_cached(uint64_t seed, cvy_fit_sample *sample)
{
    cvy_dice dice = {.seed = seed};
    for (int i = 0; i < SAMPLES; i++) {
        sample[i] = draw_sample(&dice, i);
        sample[i].seconds = get_cached_s(&sample[i], &dice);
    }
}

/*
 * A step is no line: nets and a process follow it, but for the shapes beside it, and layers that what is taken has not
 * seen are as near.
 */
static void test_nets_and_a_process_follow_a_cache(void **state)
{
    (void)state;
    cvy_fit_sample sample[SAMPLES], layer[SAMPLES];
    cvy_fit fit;
    draw_cached(7, sample);
    draw_cached(8, layer);
    assert_int_equal(cvy_fit_run(sample, SAMPLES, &device, &fit), CVY_OK);
    assert_int_equal(fit.best, CVY_FIT_GAUSSIAN);
    assert_true(fit.score[CVY_FIT_MLP].median < 0.08 && fit.score[CVY_FIT_GAUSSIAN].median < 0.08);
    assert_true(fit.score[CVY_FIT_MLP].median < 0.6 * fit.score[CVY_FIT_LINE].median);
    assert_int_equal(cvy_fit_judge(&fit, layer, SAMPLES, &device), CVY_OK);
    assert_int_equal(fit.layers.samples, SAMPLES);
    assert_true(fit.layers.median < 0.08 && fit.layers.mape < fit.layers_by_roofline.mape);
    cvy_fit_clear(&fit);
}

static void test_the_same_samples_give_the_same_nets(void **state)
{
    (void)state;
    cvy_fit_sample sample[SAMPLES];
    cvy_fit_nets nets[2] = {{.nets = 0}};
    draw_cached(9, sample);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cvy_fit_nets_find(sample, SAMPLES, &device, 2, &nets[i]), CVY_OK);
    }
    cvy_prediction first = cvy_fit_nets_estimate(&nets[0], &sample[0]);
    cvy_prediction second = cvy_fit_nets_estimate(&nets[1], &sample[0]);
    assert_true(first.seconds == second.seconds && first.error == second.error);
    assert_true(first.error > 0.0); /* two beginnings, two nets */
    cvy_fit_nets_clear(&nets[0]);
    cvy_fit_nets_clear(&nets[1]);
}

/* Four kernels make no line of three features. */
static void test_a_line_needs_samples(void **state)
{
    (void)state;
    cvy_fit_sample sample[CVY_FIT_LEAST];
    cvy_dice dice = {.seed = 6};
    cvy_fit_line line;
    cvy_fit fit;
    for (int i = 0; i < CVY_FIT_LEAST; i++) {
        sample[i] = draw_sample(&dice, i);
        sample[i].seconds = 1e-3;
    }
    assert_int_equal(cvy_fit_line_find(sample, 4, &device, &line), CVY_ERR_INFEASIBLE);
    assert_int_equal(cvy_fit_run(sample, CVY_FIT_LEAST, &device, &fit), CVY_OK);
    assert_int_equal(fit.best, CVY_FIT_ROOFLINE);
    assert_int_equal(fit.score[CVY_FIT_LINE].samples, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_shares_of_a_roofline_come_back),
        cmocka_unit_test(test_a_few_bad_kernels_move_nothing),
        cmocka_unit_test(test_a_roofline_is_best_for_a_roofline),
        cmocka_unit_test(test_a_power_law_is_a_line),
        cmocka_unit_test(test_shapes_are_held_out_whole),
        cmocka_unit_test(test_nets_and_a_process_follow_a_cache),
        cmocka_unit_test(test_the_same_samples_give_the_same_nets),
        cmocka_unit_test(test_a_line_needs_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
