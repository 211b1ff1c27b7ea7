/* Processes are fitted to times whose law is known; what training follows is the gradient of what it judges by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "calibrate/dice.h"
#include "calibrate/fit.h"
#include "calibrate/gaussian_trainer.h"

enum { SAMPLES = 60, INPUTS = 3, KERNELS = 150 };

static const cvy_fit_device device = {100e9, 10e9, 5e-6};

static void assert_near(double found, double expected, double within)
{
    if (!(fabs(found - expected) <= within)) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

/* ---- likelihood ---- */

typedef struct world {
    double x[SAMPLES * INPUTS], y[SAMPLES];
    cvy_gaussian_trainer *trainer;
} world;

/* The first input matters over short lengths, the second as a line, the third not at all. */
static void prepare(world *w, uint64_t seed)
{
    cvy_dice dice = {.seed = seed};
    double mean = 0.0;
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < INPUTS; k++) {
            w->x[i * INPUTS + k] = sqrt(12.0) * (cvy_dice_unit(&dice) - 0.5);
        }
        w->y[i] = sin(3.0 * w->x[i * INPUTS]) + 0.5 * w->x[i * INPUTS + 1] + 0.05 * (cvy_dice_unit(&dice) - 0.5);
        mean += w->y[i] / SAMPLES;
    }
    for (int i = 0; i < SAMPLES; i++) {
        w->y[i] -= mean;
    }
    const cvy_gaussian_lesson lesson = {SAMPLES, INPUTS, w->x, w->y};
    assert_int_equal(cvy_gaussian_trainer_create(&lesson, &w->trainer), CVY_OK);
}

/*
 * One sample x = (1), y = 0.5: K = spread^2 + slope^2 + noise^2 (and 1e-6 that is always there), so that unlikely is
 * y^2 / (2 K) + ln(K) / 2, and at the beginning nothing pulls.
 */
static void test_one_sample_by_hand(void **state)
{
    (void)state;
    const double x = 1.0, y = 0.5;
    const cvy_gaussian_lesson lesson = {1, 1, &x, &y};
    cvy_gaussian_trainer *trainer = NULL;
    double at[1 + CVY_GAUSSIAN_OTHERS], gradient[1 + CVY_GAUSSIAN_OTHERS], unlikely;
    assert_int_equal(cvy_gaussian_trainer_create(&lesson, &trainer), CVY_OK);
    cvy_gaussian_trainer_begin(trainer, at);
    assert_int_equal(cvy_gaussian_trainer_judge(trainer, at, &unlikely, gradient), CVY_OK);
    double k = 0.25 + 0.0225 + 0.01 + 1e-6; /* 0.5, 0.3 * 0.5 and 0.1, squared */
    assert_near(unlikely, 0.125 / k + 0.5 * log(k), 1e-12);
    assert_near(gradient[0], 0.0, 1e-12);
    assert_near(gradient[1 + CVY_GAUSSIAN_NOISE], (1.0 / k - 0.25 / k / k) * 0.01, 1e-12);
    cvy_gaussian_trainer_destroy(&trainer);
}

/* Differences of what is judged, to both sides of a place that is not the beginning, so that the pull counts. */
static void test_the_gradient_is_one(void **state)
{
    (void)state;
    enum { COUNT = INPUTS + CVY_GAUSSIAN_OTHERS };
    static const double step = 1e-5;
    world w;
    double at[COUNT], gradient[COUNT], other[COUNT], left, right;
    prepare(&w, 1);
    cvy_gaussian_trainer_begin(w.trainer, at);
    for (int k = 0; k < COUNT; k++) {
        at[k] += 0.3 * (k % 3) - 0.2;
    }
    assert_int_equal(cvy_gaussian_trainer_judge(w.trainer, at, &left, gradient), CVY_OK);
    for (int k = 0; k < COUNT; k++) {
        double was = at[k];
        at[k] = was - step;
        assert_int_equal(cvy_gaussian_trainer_judge(w.trainer, at, &left, other), CVY_OK);
        at[k] = was + step;
        assert_int_equal(cvy_gaussian_trainer_judge(w.trainer, at, &right, other), CVY_OK);
        at[k] = was;
        assert_near(gradient[k], (right - left) / (2.0 * step), 1e-5 * fmax(1.0, fabs(gradient[k])));
    }
    cvy_gaussian_trainer_destroy(&w.trainer);
}

/* What matters gets a shorter length than what does not. */
static void test_training_finds_what_matters(void **state)
{
    (void)state;
    world w;
    cvy_likeness likeness;
    prepare(&w, 2);
    assert_int_equal(cvy_gaussian_trainer_run(w.trainer, &likeness), CVY_OK);
    assert_true(likeness.length[0] < 0.5 * likeness.length[1] && likeness.length[0] < 0.5 * likeness.length[2]);
    assert_true(likeness.noise < 0.1);
    cvy_gaussian_trainer_destroy(&w.trainer);
}

/* ---- fits ---- */

/* Sizes of six octaves each; 2 n c f flop, 4 (n c + c f + n f) bytes, of which the last n f are the output. */
static cvy_fit_sample draw_sample(cvy_dice *dice, int shape)
{
    double n = (double)cvy_dice_log(dice, 16, 4096), c = (double)cvy_dice_log(dice, 16, 4096);
    double f = (double)cvy_dice_log(dice, 16, 4096);
    cvy_op op = {.kind = CVY_OP_DENSE, .pass = CVY_PASS_FORWARD};
    cvy_tensor x = {.shape = CVY_SHAPE((int64_t)n, (int64_t)c), .dtype = CVY_F32}, w = x, y = x;
    cvy_fit_sample sample;
    w.shape = CVY_SHAPE((int64_t)f, (int64_t)c);
    y.shape = CVY_SHAPE((int64_t)n, (int64_t)f);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_X, &x), CVY_OK);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_W, &w), CVY_OK);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_Y, &y), CVY_OK);
    cvy_fit_make_sample(&op, &(cvy_kernel_time){.seconds = 1.0}, shape, &sample);
    return sample;
}

/* t = 3e-11 flop of whole blocks + 2e-10 bytes + 4e-6: the times come back, and the seconds of a flop. */
static void test_the_seconds_of_costs_come_back(void **state)
{
    (void)state;
    cvy_fit_sample sample[KERNELS];
    cvy_dice dice = {.seed = 3};
    cvy_cost_sum truth = {.costs = 3, .seconds = {3e-11, 2e-10, 4e-6}}, sum;
    static const char *const names[] = {"direct-flop", "bytes", "call"};
    for (int i = 0; i < 3; i++) {
        while (strcmp(cvy_kernel_cost_name(truth.cost[i]), names[i]) != 0) {
            truth.cost[i]++;
        }
    }
    for (int i = 0; i < KERNELS; i++) {
        sample[i] = draw_sample(&dice, i);
        sample[i].seconds = cvy_cost_sum_get(&truth, sample[i].feature, sample[i].flop, sample[i].bytes);
    }
    assert_int_equal(cvy_fit_costs_find(sample, KERNELS, &sum), CVY_OK);
    for (int i = 0; i < KERNELS; i++) {
        double found = cvy_cost_sum_get(&sum, sample[i].feature, sample[i].flop, sample[i].bytes);
        assert_near(found / sample[i].seconds, 1.0, 0.02);
    }
    for (int i = 0; i < sum.costs; i++) {
        assert_true(sum.seconds[i] > 0.0);
        if (sum.cost[i] == truth.cost[0]) {
            assert_near(sum.seconds[i], 3e-11, 1e-12);
        }
    }
}

/* Half of the time where all operands fit 1 MB; the clock is off by up to 3 % either way. */
static void draw_cached(uint64_t seed, cvy_fit_sample *sample)
{
    cvy_dice dice = {.seed = seed};
    for (int i = 0; i < KERNELS; i++) {
        sample[i] = draw_sample(&dice, i);
        double noise = 0.97 + 0.06 * cvy_dice_unit(&dice);
        sample[i].seconds = (sample[i].flop / 50e9 + sample[i].bytes / (sample[i].bytes < 1e6 ? 40e9 : 8e9)) * noise;
    }
}

/* What was not seen is told better than by the sum alone, and nearly as well as the clock tells it. */
static void test_a_process_follows_a_cache(void **state)
{
    (void)state;
    cvy_fit_sample sample[KERNELS], other[KERNELS];
    cvy_fit_gaussian gaussian = {.predictor = NULL};
    double off = 0.0, sum_off = 0.0;
    draw_cached(4, sample);
    draw_cached(5, other);
    assert_int_equal(cvy_fit_gaussian_find(sample, KERNELS, &device, &gaussian), CVY_OK);
    for (int i = 0; i < KERNELS; i++) {
        const cvy_fit_sample *s = &other[i];
        double sum_s = cvy_cost_sum_get(&gaussian.process.base, s->feature, s->flop, s->bytes);
        off += fabs(log(cvy_fit_gaussian_estimate(&gaussian, s).seconds / s->seconds)) / KERNELS;
        sum_off += fabs(log(sum_s / s->seconds)) / KERNELS;
    }
    if (!(off < 0.12 && off < 0.7 * sum_off)) {
        fail_msg("%.3f off, the sum %.3f", off, sum_off);
    }
    cvy_fit_gaussian_clear(&gaussian);
}

static void test_the_same_samples_give_the_same_process(void **state)
{
    (void)state;
    cvy_fit_sample sample[KERNELS];
    cvy_fit_gaussian gaussian[2] = {{.predictor = NULL}};
    draw_cached(6, sample);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cvy_fit_gaussian_find(sample, KERNELS, &device, &gaussian[i]), CVY_OK);
    }
    assert_memory_equal(&gaussian[0].process.likeness, &gaussian[1].process.likeness, sizeof(cvy_likeness));
    for (int i = 0; i < KERNELS; i++) {
        cvy_prediction first = cvy_fit_gaussian_estimate(&gaussian[0], &sample[i]);
        cvy_prediction second = cvy_fit_gaussian_estimate(&gaussian[1], &sample[i]);
        assert_true(first.seconds == second.seconds && first.error == second.error);
    }
    cvy_fit_gaussian_clear(&gaussian[0]);
    cvy_fit_gaussian_clear(&gaussian[1]);
}

/* Kernels that are all alike have no input; where samples are doubled their noise keeps them apart. */
static void test_samples_that_are_alike(void **state)
{
    (void)state;
    cvy_fit_sample sample[KERNELS];
    cvy_fit_gaussian gaussian = {.predictor = NULL};
    cvy_dice dice = {.seed = 7};
    for (int i = 0; i < KERNELS; i++) {
        sample[i] = i % 2 ? sample[i - 1] : draw_sample(&dice, i);
        sample[i].seconds = sample[i].flop / 50e9;
    }
    assert_int_equal(cvy_fit_gaussian_find(sample, KERNELS, &device, &gaussian), CVY_OK);
    cvy_fit_gaussian_clear(&gaussian);
    for (int i = 0; i < KERNELS; i++) {
        sample[i] = sample[0];
    }
    assert_int_equal(cvy_fit_gaussian_find(sample, KERNELS, &device, &gaussian), CVY_ERR_INFEASIBLE);
    assert_null(gaussian.predictor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_sample_by_hand),
        cmocka_unit_test(test_the_gradient_is_one),
        cmocka_unit_test(test_training_finds_what_matters),
        cmocka_unit_test(test_the_seconds_of_costs_come_back),
        cmocka_unit_test(test_a_process_follows_a_cache),
        cmocka_unit_test(test_the_same_samples_give_the_same_process),
        cmocka_unit_test(test_samples_that_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
