/* Gaussian processes: what a file of one or two samples says is worked out by hand, from the formula in compute.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "compute_machine.h"

static const double flop_1x1 = 205520896.0;

static const char named[] = "  predictors: [process.yaml]\n";

/* Two samples at 0 and 3; of n = 8 the input is (log2 8 - 1) / 2 = 1. */
static const char right[] =
    "kernel: convolution\npass: forward\nprecision: fp32\nsource: by hand\nerror: 0.1\npeak: 1 TFLOP/s\n"
    "bandwidth: 100 GB/s\ninputs: [n]\nmean: [1]\ndeviation: [2]\nlow: [0]\nhigh: [9]\n"
    "gaussian-process:\n  costs: [direct-flop, call]\n  seconds: [2e-12, 1e-5]\n  middle: 0.3\n  lengths: [2]\n"
    "  spread: 0.5\n  slope: 0.1\n  noise: 0.2\n  targets: [0.8, 0.1]\n  samples: |\n    0\n    3\n";

static cvy_compute *prepare_process(const char *folder, const char *text)
{
    cvy_machine *machine = load_machine(folder, named);
    assert_true(put_test_file(test_path(folder, "process.yaml"), text, strlen(text)));
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
    cvy_machine_destroy(&machine);
    return compute;
}

/* Processes compare in floats. */
static void assert_about(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-5 * fabs(expected))) {
        fail_msg("found %.9g, expected %.9g", found, expected);
    }
}

/* Of a spread of 0.5, a length of 2 and a slope of 0.1. */
static double compare(double x, double z)
{
    double d = sqrt(3.0) * fabs(x - z) / 2.0;
    return 0.25 * (1.0 + d) * exp(-d) + 0.01 * x * z;
}

/* Targets less the middle are 0.5 and -0.2; the covariance of two samples is inverted by its determinant. */
static void test_two_samples_by_hand(void **state)
{
    cvy_compute *compute = prepare_process(*state, right);
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1);
    cvy_compute_estimate estimate = cvy_compute_estimate_op(compute, &conv, 1.0, 0.0);
    double a = compare(0, 0) + 0.04, b = compare(0, 3), c = compare(3, 3) + 0.04, det = a * c - b * b;
    double k0 = compare(1, 0), k1 = compare(1, 3);
    double w0 = (c * 0.5 - b * -0.2) / det, w1 = (a * -0.2 - b * 0.5) / det;
    double variance = compare(1, 1) + 0.04 - (c * k0 * k0 - 2.0 * b * k0 * k1 + a * k1 * k1) / det;
    double left_out = sqrt(sqrt(det / c * det / a)); /* geometric mean of deviations of one by the other */
    assert_int_equal(estimate.source, CVY_COMPUTE_PREDICTOR);
    assert_about(estimate.seconds, (2e-12 * flop_1x1 + 1e-5) * exp(0.3 + k0 * w0 + k1 * w1));
    assert_about(estimate.error, 0.1 * sqrt(variance) / left_out);
    cvy_compute_destroy(&compute);
}

/* A sample of the very op, of next to no noise: its target, and an error far below the usual one. */
static void test_a_sample_is_passed(void **state)
{
    char text[2][1024];
    change(right, "[0.8, 0.1]", "[0.8]", text[0], sizeof text[0]);
    change(text[0], "    0\n    3\n", "    1\n", text[1], sizeof text[1]);
    change(text[1], "noise: 0.2", "noise: 0.001", text[0], sizeof text[0]);
    cvy_compute *compute = prepare_process(*state, text[0]);
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1);
    cvy_compute_estimate estimate = cvy_compute_estimate_op(compute, &conv, 1.0, 0.0);
    assert_about(estimate.seconds, (2e-12 * flop_1x1 + 1e-5) * exp(0.8));
    assert_true(estimate.error < 0.001);
    cvy_compute_destroy(&compute);
}

/* Features beyond count as the last within, and the error is that of the roofline at least. */
static void test_beyond_the_samples_is_not_trusted(void **state)
{
    char text[1024];
    cvy_compute *compute[2];
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1);
    change(right, "high: [9]", "high: [2]", text, sizeof text);
    compute[0] = prepare_process(*state, text);
    change(right, "mean: [1]", "mean: [2]", text, sizeof text); /* (3 - 2) / 2 = (2 - 1) / 2 */
    compute[1] = prepare_process(*state, text);
    cvy_compute_estimate beyond = cvy_compute_estimate_op(compute[0], &conv, 1.0, 0.0);
    cvy_compute_estimate within = cvy_compute_estimate_op(compute[1], &conv, 1.0, 0.0);
    assert_about(beyond.seconds, within.seconds);
    assert_true(beyond.error >= CVY_UNFITTED_ERROR && within.error < CVY_UNFITTED_ERROR);
    cvy_compute_destroy(&compute[0]);
    cvy_compute_destroy(&compute[1]);
}

/*
 * 3x3 over 8x64x56x56: 14 x 14 tiles a sample of 36 points, 64 channels from and to. Padding has 2 of 3 * 56 taps along
 * each axis. A plain image has no wasted channels.
 */
static void test_costs_of_a_window(void **state)
{
    (void)state;
    double feature[CVY_KERNEL_FEATURES];
    const double points = 8 * 14 * 14 * 36.0, inside = (166.0 / 168.0) * (166.0 / 168.0), bytes = 1e6;
    static const char *const names[] = {"products", "points", "direct-flop", "bytes", "far-bytes", "call"};
    for (int pass = 0; pass < 2; pass++) {
        cvy_op op = make_convolution(pass ? CVY_PASS_BACKWARD_DATA : CVY_PASS_FORWARD, 3, 1);
        double flop = cvy_op_flop(&op), expected[] = {points * 2 * 64 * 64, points * 128, 0.0, bytes, bytes / 9.0, 1.0};
        cvy_kernel_get_features(&op, flop, bytes, 524288.0 * 2, feature);
        expected[4] = bytes * 2.0 / 9.0; /* 2^20 is 2 of 9 octaves from near to far */
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            int cost = 0;
            while (strcmp(cvy_kernel_cost_name(cost), names[i]) != 0) {
                cost++;
            }
            assert_near(cvy_kernel_count_cost(cost, feature, flop, bytes), expected[i]);
        }
    }
    cvy_op grouped = make_convolution(CVY_PASS_FORWARD, 3, 4); /* not by tiles */
    double flop = cvy_op_flop(&grouped);
    cvy_kernel_get_features(&grouped, flop, bytes, 0.0, feature);
    assert_near(cvy_kernel_count_cost(1, feature, flop, bytes), flop * inside);
}

static void test_wrong_processes_are_told_by_line(void **state)
{
    static const struct {
        const char *from, *to, *words;
    } wrong[] = {
        {"gaussian-process:", "nets: []\ngaussian-process:",
         "14: gaussian-process: there is nets as well; a predictor is one of them"},
        {"costs: [direct-flop", "costs: [flops", "14: costs: found 'flops', expected one of flop, direct-flop, "},
        {"costs: [direct-flop, call]", "costs: []", "14: costs: expected a list of 1 to 14 costs"},
        {"[2e-12, 1e-5]", "[2e-12]", "15: seconds: found 1 numbers, expected 2"},
        {"[2e-12, 1e-5]", "[2e-12, -1]", "15: seconds: found '-1', expected a number from 0 to"},
        {"  middle: 0.3\n", "", "13: middle: missing; it is a number"},
        {"lengths: [2]", "lengths: [2, 2]", "17: lengths: found 2 numbers, expected 1"},
        {"lengths: [2]", "lengths: [0]", "17: lengths: found '0', expected a number from 0.001 to"},
        {"spread: 0.5", "spread: nan", "18: spread: found 'nan', expected a number from 0 to 1000"},
        {"slope: 0.1", "slope: 1e300", "19: slope: found '1e300', expected a number from 0 to 1000"},
        {"noise: 0.2", "noise: 0", "20: noise: found '0', expected a number from 0.0001 to 1000"},
        {"[0.8, 0.1]", "[]", "21: targets: found 0, expected 1 to 512"},
        {"[0.8, 0.1]", "[0.8, inf]", "21: targets: found 'inf', expected a number from -1000 to 1000"},
        {"    3\n", "", "22: samples: found 1 numbers, expected 2"},
        {"    3\n", "    nan\n", "24: samples: found 'nan', expected a number from"},
        {"  noise:", "  nose:", "20: unknown key 'nose'; did you mean 'noise'?"},
    };
    char text[2048];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        change(right, wrong[i].from, wrong[i].to, text, sizeof text);
        assert_refused(*state, named, "process.yaml", text, wrong[i].words);
    }
}

/* Two samples in one place whose covariance, 2^36, swallows the noise: the second pivot is 0. */
static void test_samples_that_are_too_much_alike_are_refused(void **state)
{
    char text[4][1024];
    change(right, "    0\n    3\n", "    512\n    512\n", text[0], sizeof text[0]);
    change(text[0], "spread: 0.5", "spread: 0", text[1], sizeof text[1]);
    change(text[1], "noise: 0.2", "noise: 0.0001", text[2], sizeof text[2]);
    change(text[2], "slope: 0.1", "slope: 512", text[3], sizeof text[3]);
    assert_refused(*state, named, "process.yaml", text[3],
                   "13: gaussian-process: samples are too much alike for a noise of 0.0001");
}

/* Wherever memory fails, reading says so and leaves nothing behind (the sanitizers look). */
static void test_failing_memory_is_told(void **state)
{
    cvy_machine *machine = load_machine(*state, named);
    assert_true(put_test_file(test_path(*state, "process.yaml"), right, strlen(right)));
    int failures = 0;
    for (cvy_status status = CVY_ERR_MEMORY; status != CVY_OK; failures++) {
        cvy_compute *compute = NULL;
        cvy_memory_fail_after(failures);
        status = cvy_compute_create(machine, CVY_PRECISION_FP32, &compute);
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK || (status == CVY_ERR_MEMORY && !compute));
        cvy_compute_destroy(&compute);
    }
    assert_true(failures > 10);
    cvy_machine_destroy(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_samples_by_hand, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_sample_is_passed, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_beyond_the_samples_is_not_trusted, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test(test_costs_of_a_window),
        cmocka_unit_test_setup_teardown(test_wrong_processes_are_told_by_line, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_samples_that_are_too_much_alike_are_refused, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_failing_memory_is_told, create_test_folder, remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
