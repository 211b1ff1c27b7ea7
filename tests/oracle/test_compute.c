/* Seconds of ops by the roofline, against arithmetic by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute_machine.h"

/* Of x 8x64x56x56 = 1,605,632 numbers and 64 filters of 1x1: 2 * 8 * 56 * 56 * 64 * 64 flop; x, w and y once. */
static const double flop_1x1 = 205520896.0, bytes_1x1 = 4.0 * (1605632.0 + 4096.0 + 1605632.0);
static const double bytes_relu = 4.0 * 2.0 * 1605632.0;
static const double launch_s = 5e-6;

static const char rules[] = "  efficiency:\n"
                            "    - {kernel: winograd-convolution, peak: 2, error: 0.05}\n"
                            "    - {kernel: convolution, pass: forward, peak: 0.5, error: 0.1}\n"
                            "    - {kernel: convolution, precision: fp16, peak: 0.25}\n"
                            "    - {bandwidth: 0.8, error: 0.2}\n"
                            "    - {kernel: relu, bandwidth: 0.1}\n";

/* The peaks alone: 205.52 us of arithmetic for the convolution, 128.45 us of bytes for the relu. */
static void test_without_rules_the_peaks_hold(void **state)
{
    cvy_machine *machine = load_machine(*state, "");
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1), relu = make_relu();
    cvy_compute_estimate estimate = cvy_compute_estimate_op(compute, &conv, 1.0, 0.0);
    assert_near(estimate.seconds, flop_1x1 / 1e12 + launch_s);
    assert_int_equal(estimate.source, CVY_COMPUTE_ROOFLINE);
    assert_near(estimate.error, 0.5);
    estimate = cvy_compute_estimate_op(compute, &relu, 1.0, 0.0);
    assert_near(estimate.seconds, bytes_relu / 100e9 + launch_s);
    cvy_compute_destroy(&compute);
    assert_null(compute);
    cvy_machine_destroy(&machine);
}

/*
 * Forward takes half of the peak; backward falls to the rule of all, which leaves the whole peak: 205.52 us against
 * 160.77 us of bytes. A 3x3 has nine times the flop at twice the peak. The relu's own rule comes too late.
 */
static void test_the_first_rule_that_applies_holds(void **state)
{
    cvy_machine *machine = load_machine(*state, rules);
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
    cvy_op forward = make_convolution(CVY_PASS_FORWARD, 1, 1), relu = make_relu();
    cvy_op backward = make_convolution(CVY_PASS_BACKWARD_DATA, 1, 1), square = make_convolution(CVY_PASS_FORWARD, 3, 1);
    cvy_compute_estimate estimate = cvy_compute_estimate_op(compute, &forward, 1.0, 0.0);
    assert_near(estimate.seconds, flop_1x1 / 0.5e12 + launch_s);
    assert_near(estimate.error, 0.1);
    estimate = cvy_compute_estimate_op(compute, &backward, 1.0, 0.0);
    assert_near(estimate.seconds, flop_1x1 / 1e12 + launch_s);
    assert_near(estimate.error, 0.2);
    estimate = cvy_compute_estimate_op(compute, &square, 1.0, 0.0);
    assert_near(estimate.seconds, 9.0 * flop_1x1 / 2e12 + launch_s);
    assert_near(estimate.error, 0.05);
    estimate = cvy_compute_estimate_op(compute, &relu, 1.0, 0.0);
    assert_near(estimate.seconds, bytes_relu / 80e9 + launch_s);
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
}

/* Of rules of releases those of the release that runs hold, and those of none. */
static void test_rules_of_other_releases_are_passed_over(void **state)
{
    cvy_machine *machine = load_machine(*state, "  efficiency:\n"
                                                "    - {release: old, bandwidth: 0.5}\n"
                                                "    - {release: new, bandwidth: 0.8}\n"
                                                "    - {bandwidth: 0.2}\n");
    static const struct {
        const char *release;
        double share;
    } expected[] = {{"old", 0.5}, {"new", 0.8}, {NULL, 0.2}};
    cvy_op relu = make_relu();
    for (int i = 0; i < 3; i++) {
        machine->execution.release = expected[i].release;
        cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
        double seconds = cvy_compute_estimate_op(compute, &relu, 1.0, 0.0).seconds;
        assert_near(seconds, bytes_relu / (100e9 * expected[i].share) + launch_s);
        cvy_compute_destroy(&compute);
    }
    cvy_machine_destroy(&machine);
}

/* A rule of all convolutions holds for those with a name of their own; theirs hold for no other. */
static void test_kinds_of_convolutions_have_names(void **state)
{
    (void)state;
    cvy_op op = make_convolution(CVY_PASS_FORWARD, 3, 4);
    assert_string_equal(cvy_kernel_name(cvy_op_kernel(&op)), "grouped-convolution");
    op = make_convolution(CVY_PASS_FORWARD, 3, 64);
    assert_string_equal(cvy_kernel_name(cvy_op_kernel(&op)), "depthwise-convolution");
    op = make_convolution(CVY_PASS_BACKWARD_WEIGHTS, 3, 1);
    assert_string_equal(cvy_kernel_name(cvy_op_kernel(&op)), "winograd-convolution");
    op.params.window.window.stride[2] = 2;
    assert_string_equal(cvy_kernel_name(cvy_op_kernel(&op)), "convolution");
    op = make_convolution(CVY_PASS_FORWARD, 5, 1);
    assert_string_equal(cvy_kernel_name(cvy_op_kernel(&op)), "5x5-convolution");
    op = make_convolution(CVY_PASS_BACKWARD_DATA, 1, 1);
    assert_string_equal(cvy_kernel_name(cvy_op_kernel(&op)), "1x1-convolution");
    op.params.window.window.stride[1] = 2;
    assert_string_equal(cvy_kernel_name(cvy_op_kernel(&op)), "1x1-convolution");
    op = make_convolution(CVY_PASS_FORWARD, 3, 1);
    op.params.window.window.kernel[0] = 3;
    for (int i = 0; i < op.operands; i++) {
        op.operand[i].tensor.shape.dims = 5;
    }
    assert_string_equal(cvy_kernel_name(cvy_op_kernel(&op)), "volume-convolution");
    op = make_relu();
    assert_string_equal(cvy_kernel_name(cvy_op_kernel(&op)), "relu");
}

/*
 * At f16 the convolution has a peak of 8 TFLOP/s and half of its bytes: 205.52 / (8 * 0.25) = 102.76 us backward. The
 * relu's arithmetic is the vectors', 100 times shorter than its bytes. An optimizer works on f32.
 */
static void test_mixed_precision_halves_activations(void **state)
{
    cvy_machine *machine = load_machine(*state, rules);
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP16);
    cvy_op conv = make_convolution(CVY_PASS_BACKWARD_DATA, 1, 1), relu = make_relu();
    assert_near(cvy_compute_op_bytes(compute, &conv), bytes_1x1 / 2.0);
    assert_near(cvy_compute_estimate_op(compute, &conv, 1.0, 0.0).seconds, flop_1x1 / 2e12 + launch_s);
    assert_near(cvy_compute_estimate_op(compute, &relu, 1.0, 0.0).seconds, bytes_relu / 2.0 / 80e9 + launch_s);
    assert_near(cvy_compute_element_bytes(compute), 2.0);
    cvy_tensor w = {.shape = CVY_SHAPE(1000), .dtype = CVY_F32};
    cvy_op sgd = {.kind = CVY_OP_SGD, .pass = CVY_PASS_UPDATE, .params.optimizer = {.momentum = 0.9}};
    fill_op(&sgd, &w, 0);
    assert_near(cvy_compute_op_bytes(compute, &sgd), cvy_op_bytes(&sgd));
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
}

/*
 * A max pooling's window is bytes, whatever the precision: of 2x2 over 8x64x56x56, y and window have a quarter of the
 * numbers.
 */
static void test_indices_keep_their_bytes(void **state)
{
    cvy_machine *machine = load_machine(*state, "");
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP16);
    cvy_tensor x = {.shape = CVY_SHAPE(8, 64, 56, 56), .dtype = CVY_F32};
    cvy_op op = {.kind = CVY_OP_POOL_MAX, .pass = CVY_PASS_FORWARD,
                 .params.window = {.window = {{1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0}, {0}}, .groups = 1}};
    fill_op(&op, &x, 0);
    assert_near(cvy_compute_op_bytes(compute, &op), 1605632.0 * (2.0 + 2.0 / 4.0 + 1.0 / 4.0));
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
}

/* A floor of 0.3: cut in two a half is more than that; cut in eight the slice takes 0.3 * 8 of its own time. */
static void test_thin_slices_keep_a_share_of_the_whole(void **state)
{
    cvy_machine *machine = load_machine(*state, "  slice-floor: 0.3\n");
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1), relu = make_relu();
    assert_near(cvy_compute_estimate_op(compute, &conv, 2.0, 0.0).seconds, flop_1x1 / 1e12 + launch_s);
    assert_near(cvy_compute_estimate_op(compute, &conv, 8.0, 0.0).seconds, 2.4 * flop_1x1 / 1e12 + launch_s);
    assert_near(cvy_compute_estimate_op(compute, &relu, 8.0, 0.0).seconds, bytes_relu / 100e9 + launch_s);
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
}

static void assert_no_compute(const cvy_machine *machine, cvy_precision precision, const char *words)
{
    cvy_compute *compute = NULL;
    assert_int_equal(cvy_compute_create(machine, precision, &compute), CVY_ERR_INPUT);
    assert_null(compute);
    assert_string_equal(cvy_error_message(), words);
}

static void test_what_a_machine_does_not_tell_is_named(void **state)
{
    cvy_machine *machine = load_machine(*state, ""), here;
    assert_no_compute(machine, CVY_PRECISION_TF32, "machine round: d has no rate at tf32, only at fp32, fp16");
    cvy_machine_get_local(&here);
    assert_no_compute(&here, CVY_PRECISION_FP32,
                      "machine here: no peak rate is known; a machine file can give it (docs/machines.md)");
    here.device.peak_flop_per_s[CVY_PRECISION_FP32] = 1e12;
    assert_no_compute(&here, CVY_PRECISION_FP32,
                      "machine here: no memory bandwidth is known; a machine file can give it (docs/machines.md)");
    cvy_machine_destroy(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_without_rules_the_peaks_hold, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_the_first_rule_that_applies_holds, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_rules_of_other_releases_are_passed_over, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test(test_kinds_of_convolutions_have_names),
        cmocka_unit_test_setup_teardown(test_mixed_precision_halves_activations, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_indices_keep_their_bytes, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_thin_slices_keep_a_share_of_the_whole, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_what_a_machine_does_not_tell_is_named, create_test_folder,
                                        remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
