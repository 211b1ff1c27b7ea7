/* Tables of measured kernels and predictors: read, asked, and refused where they are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "compute_machine.h"

static const double flop_1x1 = 205520896.0, launch_s = 5e-6;

/* Nets work in floats. */
static void assert_near_float(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-6 * fabs(expected))) {
        fail_msg("found %.9g, expected %.9g", found, expected);
    }
}

/* ---- tables ---- */

static void put_rows(const char *folder, const cvy_device *device, const cvy_op *op, const cvy_kernel_time *time,
                     int rows)
{
    cvy_text text = {0};
    cvy_kernel_table_begin(device, CVY_PRECISION_FP32, &text);
    for (int i = 0; i < rows; i++) {
        cvy_kernel_table_add(op, &time[i], &text);
    }
    assert_false(text.failed);
    assert_true(put_test_file(test_path(folder, "kernels.csv"), text.data, text.length));
    cvy_text_destroy(&text);
}

static void put_table(const char *folder, const cvy_device *device, const cvy_op *op, cvy_kernel_time time)
{
    put_rows(folder, device, op, &time, 1);
}

static const char named[] = "  kernel-tables: [kernels.csv]\n";

/* What was measured is the answer, whatever the roofline says; ops that are not in the table have the roofline. */
static void test_a_measured_kernel_is_found_by_its_shape(void **state)
{
    cvy_machine *machine = load_machine(*state, named);
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1), other = make_convolution(CVY_PASS_FORWARD, 3, 1);
    put_table(*state, &machine->device, &conv, (cvy_kernel_time){1.25e-3, 0.02, 0.0});
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
    cvy_compute_estimate estimate = cvy_compute_estimate_op(compute, &conv, 8.0, 0.0);
    assert_near(estimate.seconds, 1.25e-3);
    assert_near(estimate.error, 0.02);
    assert_int_equal(estimate.source, CVY_COMPUTE_TABLE);
    assert_int_equal(cvy_compute_estimate_op(compute, &other, 1.0, 0.0).source, CVY_COMPUTE_ROOFLINE);
    cvy_compute_destroy(&compute);
    compute = prepare(machine, CVY_PRECISION_FP16); /* the table is of f32 */
    assert_int_equal(cvy_compute_estimate_op(compute, &conv, 1.0, 0.0).source, CVY_COMPUTE_ROOFLINE);
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
}

/* Where another program ran, measurements lay twenty times apart: the table is read all the same. */
static void test_measurements_may_lie_far_apart(void **state)
{
    cvy_machine *machine = load_machine(*state, named);
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1);
    put_table(*state, &machine->device, &conv, (cvy_kernel_time){1.25e-3, 19.6, 0.0});
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
    assert_near(cvy_compute_estimate_op(compute, &conv, 1.0, 0.0).error, 10.0);
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
}

/* Of a device with twice the rate what exceeds the launch is half: 5 us + 1,000 us / 2. */
static void test_a_faster_machine_scales_what_was_measured(void **state)
{
    cvy_machine *machine = load_machine(*state, named);
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1);
    put_table(*state, &machine->device, &conv, (cvy_kernel_time){1.005e-3, 0.0, 0.0});
    machine->device.peak_flop_per_s[CVY_PRECISION_FP32] *= 2.0;
    machine->device.memory_Bps *= 2.0;
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
    assert_near(cvy_compute_estimate_op(compute, &conv, 1.0, 0.0).seconds, launch_s + 0.5e-3);
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
}

/* A thousand relus of n = 1 to 1000, each with a time of its own; a dropout is found whatever its layer. */
static void test_many_kernels_keep_apart(void **state)
{
    enum { ROWS = 1000 };
    cvy_machine *machine = load_machine(*state, named);
    cvy_text text = {0};
    cvy_op op = make_relu();
    cvy_kernel_table_begin(&machine->device, CVY_PRECISION_FP32, &text);
    for (int i = 1; i <= ROWS; i++) {
        op.operand[0].tensor.shape.extent[0] = op.operand[1].tensor.shape.extent[0] = i;
        cvy_kernel_table_add(&op, &(cvy_kernel_time){1e-6 * i, 0.001 * i, 0.0}, &text);
    }
    cvy_op dropout = make_relu();
    dropout.kind = CVY_OP_DROPOUT;
    dropout.params.dropout = (cvy_op_params_dropout){.probability = 0.5, .layer = 3};
    cvy_kernel_table_add(&dropout, &(cvy_kernel_time){7e-3, 0.0, 0.0}, &text);
    assert_true(put_test_file(test_path(*state, "kernels.csv"), text.data, text.length));
    cvy_text_destroy(&text);
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
    for (int i = 1; i <= ROWS; i++) {
        op.operand[0].tensor.shape.extent[0] = op.operand[1].tensor.shape.extent[0] = i;
        assert_near(cvy_compute_estimate_op(compute, &op, 1.0, 0.0).seconds, 1e-6 * i);
    }
    dropout.params.dropout.layer = 9;
    assert_near(cvy_compute_estimate_op(compute, &dropout, 1.0, 0.0).seconds, 7e-3);
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
}

/* Its logarithm to the base e is the roof's and a hundredth of log2 of the bytes between. */
static const char by_distance[] =
    "kernel: convolution\npass: forward\nprecision: fp32\nerror: 0\npeak: 1 TFLOP/s\nbandwidth: 100 GB/s\n"
    "inputs: [distance]\nmean: [0]\ndeviation: [100]\nlow: [0]\nhigh: [99]\n"
    "nets: [[{weights: [1], biases: [0]}]]\n";

static void assert_bound(const cvy_compute *compute, const cvy_op *op, double expected_s)
{
    assert_near_float(cvy_compute_bound_op(compute, op, 1.0), expected_s);
    for (double distance_bytes = 1.0; distance_bytes < 1e12; distance_bytes *= 3.0) {
        double seconds = cvy_compute_estimate_op(compute, op, 1.0, distance_bytes).seconds;
        assert_true(seconds >= cvy_compute_bound_op(compute, op, 1.0));
    }
}

/*
 * Of 3 rows the one in the middle is the fastest; nearest to the op's 12.9 MB is the first. A predictor moves a row of
 * 128 MiB to those bytes, where it takes e^(log2(12.9 MB / 128 MiB) / 100) of its time. Interruptions add to all.
 */
static void test_a_bound_is_by_the_fastest_row_of_any_distance(void **state)
{
    static const cvy_kernel_time rows[] = {{1.0e-3, 0.1, 16777216.0}, {0.6e-3, 0.1, 134217728.0}, {0.9e-3, 0.1, 1e9}};
    const double bytes = 4.0 * (2.0 * 1605632.0 + 4096.0);
    cvy_machine *machine = load_machine(*state, named), *both;
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1), other = make_convolution(CVY_PASS_FORWARD, 3, 1);
    put_rows(*state, &machine->device, &conv, rows, 3);
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
    assert_near(cvy_compute_estimate_op(compute, &conv, 1.0, 0.0).seconds, 1.0e-3);
    assert_near(cvy_compute_estimate_op(compute, &conv, 1.0, 2e8).seconds, 0.6e-3);
    assert_bound(compute, &conv, 0.6e-3);
    assert_near(cvy_compute_bound_op(compute, &other, 1.0),
                cvy_compute_estimate_op(compute, &other, 1.0, 0.0).seconds); /* by the roofline */
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
    both = load_machine(*state, "  kernel-tables: [kernels.csv]\n  predictors: [net.yaml]\n  interruptions: 0.1\n");
    assert_true(put_test_file(test_path(*state, "net.yaml"), by_distance, strlen(by_distance)));
    compute = prepare(both, CVY_PRECISION_FP32);
    assert_bound(compute, &conv, 1.1 * 0.6e-3 * exp(log2(bytes / 134217728.0) / 100.0));
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&both);
}

static void test_wrong_tables_are_told_by_line(void **state)
{
    static const char right[] = "convoy-kernel-table,2\nprecision,fp32\npeak,1 TFLOP/s\nbandwidth,100 GB/s\n"
                                "key,distance,seconds,error,op\n0123456789abcdef,4096,0.5,0.1,relu forward\n";
    static const struct {
        const char *from, *to, *words;
    } wrong[] = {
        {"table,2", "table,1", "1: found 'convoy-kernel-table,1', expected 'convoy-kernel-table,2'"},
        {"fp32", "fp31", "2: found 'fp31', expected a precision: fp64, fp32, tf32, fp16 or bf16"},
        {"precision", "prediction", "2: found 'prediction,fp32', expected 'precision,' and a name"},
        {"1 TFLOP/s", "1 TB/s", "3: found '1 TB/s', expected 'peak,' and a"},
        {"100 GB/s", "-1 GB/s", "4: found '-1 GB/s', expected 'bandwidth,' and a"},
        {"key,distance", "distance,key", "5: found 'distance,key,seconds,error,op', expected 'key,"},
        {"0123456789abcdef", "123456789abcdef", "6: found '123456789abcdef,4096,0.5,0.1,relu"},
        {"0123456789abcdef", "0123456789abcdefa", "6: found '0123456789abcdefa,4096,0.5,0.1,"},
        {"0.5", "0", "6: found '0,0.1,relu forward', expected seconds from 1e-12 to 1e6 and a comma"},
        {"4096", "-1", "6: found '-1,0.5,0.1,relu forward', expected a distance of 0 to 1e18 bytes and a comma"},
        {"0.5", "inf", "6: found 'inf,0.1,relu forward', expected seconds"},
        {"0.5", "0x1", "6: found '0x1,0.1,relu forward', expected seconds"},
        {"0.1,", "-0.1,", "6: found '-0.1,relu forward', expected a relative error from 0 to 10 and a comma"},
        {",0.1,relu forward", "", "6: found '0.5', expected seconds"},
        {"\n0123456789abcdef,4096,0.5,0.1,relu forward\n", "\n\n", "6: found '', expected a key"},
        {"bandwidth,100 GB/s\nkey,distance,seconds,error,op\n0123456789abcdef,4096,0.5,0.1,relu forward\n", "",
         "4: found 'the end', expected 'bandwidth,' and a"},
    };
    char text[1024];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        change(right, wrong[i].from, wrong[i].to, text, sizeof text);
        assert_refused(*state, named, "kernels.csv", text, wrong[i].words);
    }
}

/* ---- predictors ---- */

/*
 * For n = 8: (log2 8 - 1) / 2 = 1. The first net: relu of 1 and -1, then 0.5 * 1 + 0.25 = 0.75; the others 0.25, 0.5.
 * Nets know neither the kernel's size nor anything else.
 */
static const char right_net[] =
    "kernel: convolution\npass: forward\nprecision: fp32\nsource: by hand\nerror: 0.1\npeak: 2 TFLOP/s\n"
    "bandwidth: 1000 GB/s\ninputs: [n, is-3x3]\nmean: [1, 0]\ndeviation: [2, 1]\nlow: [0, 0]\nhigh: [5, 0]\nnets:\n"
    "  - - {weights: [1, 0, -1, 0], biases: [0, 0]}\n    - {weights: [0.5, 7], biases: [0.25]}\n"
    "  - - {weights: [0, 0], biases: [0.25]}\n"
    "  - - {weights: [0, 0], biases: [0.5]}\n";
static const char named_net[] = "  predictors: [net.yaml]\n  efficiency: [{error: 0.4}]\n";

static cvy_compute *prepare_net(const char *folder, const char *text)
{
    cvy_machine *machine = load_machine(folder, named_net);
    assert_true(put_test_file(test_path(folder, "net.yaml"), text, strlen(text)));
    cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
    cvy_machine_destroy(&machine);
    return compute;
}

/*
 * The median of three is e^0.5 times the roof of the device that was measured, 205.52 / 2 us; the machine's is twice
 * that, so what exceeds the launch doubles. The nets lie (e^0.75 - e^0.25) / 2 / e^0.5 = sinh 0.25 apart. A 3x3, which
 * none of those was that it was fitted to, is no better than the roofline; a backward has the roofline.
 */
static void test_a_predictor_by_hand(void **state)
{
    cvy_compute *compute = prepare_net(*state, right_net);
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1), square = make_convolution(CVY_PASS_FORWARD, 3, 1);
    cvy_op backward = make_convolution(CVY_PASS_BACKWARD_DATA, 1, 1);
    cvy_compute_estimate estimate = cvy_compute_estimate_op(compute, &conv, 1.0, 0.0);
    assert_int_equal(estimate.source, CVY_COMPUTE_PREDICTOR);
    assert_near(estimate.seconds, launch_s + 2.0 * (exp(0.5) * flop_1x1 / 2e12 - launch_s));
    assert_near(estimate.error, sinh(0.25));
    estimate = cvy_compute_estimate_op(compute, &square, 1.0, 0.0);
    assert_int_equal(estimate.source, CVY_COMPUTE_PREDICTOR);
    assert_near(estimate.error, 0.4);
    assert_int_equal(cvy_compute_estimate_op(compute, &backward, 1.0, 0.0).source, CVY_COMPUTE_ROOFLINE);
    cvy_compute_destroy(&compute);
}

/* Numbers of a layer as texts, as calibrations write them, say what lists say. */
static void test_layers_of_text_are_layers_of_lists(void **state)
{
    static const char lists[] = "  - - {weights: [1, 0, -1, 0], biases: [0, 0]}\n";
    static const char texts[] = "  - - weights: |\n        1 0\n        -1 0\n      biases: |\n        0 0\n";
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1);
    char text[1024], wrong[1024];
    cvy_compute_estimate estimate[2];
    change(right_net, lists, texts, text, sizeof text);
    for (int i = 0; i < 2; i++) {
        cvy_compute *compute = prepare_net(*state, i ? text : right_net);
        estimate[i] = cvy_compute_estimate_op(compute, &conv, 1.0, 0.0);
        assert_int_equal(estimate[i].source, CVY_COMPUTE_PREDICTOR);
        cvy_compute_destroy(&compute);
    }
    assert_true(estimate[0].seconds == estimate[1].seconds && estimate[0].error == estimate[1].error);
    change(text, "-1 0", "-1 o", wrong, sizeof wrong);
    assert_refused(*state, named_net, "net.yaml", wrong,
                   "16: weights: found 'o', expected a number from -1e+09 to 1e+09");
}

/* Of a 3x3 at stride 1 its own predictor is asked, wherever it stands, and not that of all convolutions. */
static void test_the_kernels_own_predictor_is_asked(void **state)
{
    static const char format[] = "kernel: %s\npass: forward\nprecision: fp32\nerror: 0\npeak: 2 TFLOP/s\n"
                                 "bandwidth: 1000 GB/s\ninputs: [n]\nmean: [0]\ndeviation: [1]\nlow: [0]\nhigh: [9]\n"
                                 "nets: [[{weights: [0], biases: [%g]}]]\n";
    static const char *const orders[] = {"  predictors: [general.yaml, own.yaml]\n",
                                         "  predictors: [own.yaml, general.yaml]\n"};
    char general[512], own[512];
    int bytes = snprintf(general, sizeof general, format, "convolution", 3.0);
    assert_true(put_test_file(test_path(*state, "general.yaml"), general, (size_t)bytes));
    bytes = snprintf(own, sizeof own, format, "winograd-convolution", 1.0);
    assert_true(put_test_file(test_path(*state, "own.yaml"), own, (size_t)bytes));
    cvy_op square = make_convolution(CVY_PASS_FORWARD, 3, 1), strided = make_convolution(CVY_PASS_FORWARD, 1, 1);
    for (int i = 0; i < 2; i++) {
        cvy_machine *machine = load_machine(*state, orders[i]);
        cvy_compute *compute = prepare(machine, CVY_PRECISION_FP32);
        cvy_machine_destroy(&machine);
        double general_s = exp(3.0) * flop_1x1 / 2e12 - launch_s, own_s = exp(1.0) * 9.0 * flop_1x1 / 2e12 - launch_s;
        assert_near(cvy_compute_estimate_op(compute, &strided, 1.0, 0.0).seconds, launch_s + 2.0 * general_s);
        assert_near(cvy_compute_estimate_op(compute, &square, 1.0, 0.0).seconds, launch_s + 2.0 * own_s);
        cvy_compute_destroy(&compute);
    }
}

/* Of several features each is the logarithm of its size: one net that passes it on, where y = log2 of it / 100. */
static void test_features_are_sizes_of_the_op(void **state)
{
    static const struct {
        const char *name;
        double size;
    } expected[] = {{"n", 8},      {"c", 64},        {"f", 64},      {"groups", 4}, {"input", 3136}, {"output", 3136},
                    {"kernel", 9}, {"stride", 1},    {"flop", 9 * flop_1x1 / 4},
                    {"bytes", 4 * (2 * 1605632.0 + 64 * 16 * 9)}, {"columns", 8 * 3136}, {"depth", 16 * 9},
                    {"distance", 33554432.0}};
    char text[1024];
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 3, 4);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        snprintf(text, sizeof text,
                 "kernel: grouped-convolution\npass: forward\nprecision: fp32\nerror: 0\npeak: 1 TFLOP/s\n"
                 "bandwidth: 100 GB/s\ninputs: [%s]\nmean: [0]\ndeviation: [100]\nlow: [0]\nhigh: [99]\n"
                 "nets: [[{weights: [1], biases: [0]}]]\n", expected[i].name);
        cvy_compute *compute = prepare_net(*state, text);
        double roof_s = 9.0 * flop_1x1 / 4.0 / 1e12;
        double expected_s = roof_s * exp(log2(expected[i].size) / 100);
        assert_near_float(cvy_compute_estimate_op(compute, &conv, 1.0, 33554432.0).seconds, expected_s);
        cvy_compute_destroy(&compute);
    }
}

static void test_wrong_predictors_are_told_by_line(void **state)
{
    static const struct {
        const char *from, *to, *words;
    } wrong[] = {
        {"kernel: convolution", "kernel: convolutoin", "1: kernel: found 'convolutoin', expected one of convolution, "},
        {"pass: forward\n", "", "1: pass: missing; it is a pass of it"},
        {"fp32", "fp33", "3: precision: found 'fp33', expected one of fp64, fp32, tf32, fp16, bf16"},
        {"error: 0.1", "error: -1", "5: error: found '-1', expected a number from 0 to 10"},
        {"peak: 2 TFLOP/s", "peak: 2", "6: peak: found '2', expected a rate with its unit"},
        {"inputs: [n", "inputs: [m", "8: inputs: found 'm', expected one of n, c, f, groups"},
        {"inputs: [n, is-3x3]", "inputs: []", "8: inputs: expected a list of 1 to 32 features"},
        {"mean: [1, 0]", "mean: [1]", "9: mean: found 1 numbers, expected 2"},
        {"deviation: [2", "deviation: [0", "10: deviation: found '0', expected a number from 1e-09 to"},
        {"high: [5, 0]", "hihg: [5, 0]", "12: unknown key 'hihg'; did you mean 'high'?"},
        {"[1, 0, -1, 0]", "[1, 0, -1]", "14: weights: found 3 numbers, expected 4"},
        {"[1, 0, -1, 0]", "[1, 0, nan, 0]", "14: weights: found 'nan', expected a number from"},
        {"[1, 0, -1, 0]", "[1, 0, 1e300, 0]", "14: weights: found '1e300', expected a number from"},
        {"biases: [0, 0]", "biases: []", "14: biases: found 0, expected 1 to 256"},
        {"weights: [0.5, 7], biases: [0.25]", "weights: [0.5, 7, 1, 1], biases: [0.25, 0]",
         "14: nets: the last layer has 2 outputs, expected 1"},
        {"source: by hand", "source: &a b", "4: "},
    };
    char text[2048];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        change(right_net, wrong[i].from, wrong[i].to, text, sizeof text);
        assert_refused(*state, named_net, "net.yaml", text, wrong[i].words);
    }
}

/* ---- memory ---- */

/* Wherever memory fails, creation says so and leaves nothing behind (the sanitizers look). */
static void test_failing_memory_is_told(void **state)
{
    cvy_machine *machine = load_machine(*state, "  kernel-tables: [kernels.csv]\n  predictors: [net.yaml]\n");
    cvy_op conv = make_convolution(CVY_PASS_FORWARD, 1, 1);
    put_table(*state, &machine->device, &conv, (cvy_kernel_time){1e-3, 0.0, 0.0});
    assert_true(put_test_file(test_path(*state, "net.yaml"), right_net, strlen(right_net)));
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
        cmocka_unit_test_setup_teardown(test_a_measured_kernel_is_found_by_its_shape, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_measurements_may_lie_far_apart, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_faster_machine_scales_what_was_measured, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_many_kernels_keep_apart, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_bound_is_by_the_fastest_row_of_any_distance, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_wrong_tables_are_told_by_line, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_predictor_by_hand, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_layers_of_text_are_layers_of_lists, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_the_kernels_own_predictor_is_asked, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_features_are_sizes_of_the_op, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_wrong_predictors_are_told_by_line, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_failing_memory_is_told, create_test_folder, remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
