/* A calibration of a machine that is a law: its file loads, and the oracle says what the law says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "calibrate/calibration.h"
#include "fake_meter.h"
#include "folder.h"

static const cvy_shape_limits limits = {.block = 8, .least_bytes = 65536, .most_bytes = 64e6, .most_flop = 4e9};

/* max(flop / 50 GFLOP/s, bytes / 8 GB/s) + 10 us on a machine of 100 GFLOP/s and 10 GB/s: shares of 0.5 and 0.8. */
static double law_of_roofline(const fake_machine *machine, const cvy_op *op)
{
    (void)machine;
    double flop_s = cvy_op_flop(op) / 50e9, bytes_s = cvy_op_bytes(op) / 8e9;
    return (flop_s > bytes_s ? flop_s : bytes_s) + 10e-6;
}

static void survey_fake(int rounds, cvy_calibration *c)
{
    static fake_machine machine;
    machine = (fake_machine){.op_s = law_of_roofline};
    const cvy_meter meter = make_fake_meter(&machine);
    cvy_kernel_survey_options options = {.seed = 9, .limits = limits, .budget_s = 1e9, .rounds = rounds};
    *c = (cvy_calibration){.host = {.cores = 4, .numa_nodes = 1, .memory_bytes = (int64_t)32 << 30,
                                    .vector_bits = 256, .processor = "Law 1000"},
                           .threads = 4,
                           .date = "2026-01-02",
                           .peaks = {100e9, 10e9, 10e-6, 1e9}};
    assert_int_equal(cvy_journal_open(NULL, 1, &options.journal), CVY_OK);
    assert_int_equal(cvy_kernel_survey_run(&meter, &options, &c->survey), CVY_OK);
    cvy_journal_close(&options.journal);
}

static void calibrate_fake(int rounds, cvy_calibration *c)
{
    survey_fake(rounds, c);
    assert_int_equal(cvy_calibration_fit(c), CVY_OK);
}

static const cvy_efficiency *find_rule(const cvy_machine *machine, int kernel, int pass)
{
    for (int i = 0; i < machine->device.efficiencies; i++) {
        const cvy_efficiency *rule = &machine->device.efficiency[i];
        if (rule->kernel == kernel && rule->pass == pass) {
            return rule;
        }
    }
    fail_msg("no rule of %s", cvy_kernel_name(kernel));
    return NULL;
}

#define assert_share(found, expected) \
    do { \
        double share = (found); \
        if (share < 0.98 * (expected) || share > 1.02 * (expected)) { \
            fail_msg("a share of %g, expected %g", share, (double)(expected)); \
        } \
    } while (0)

/* Convolutions tell of the rate, relus of the bandwidth alone. */
static void test_the_file_has_the_constants_of_the_law(void **state)
{
    cvy_calibration c;
    cvy_machine *machine = NULL;
    const char *path = test_path(*state, "law.yaml");
    calibrate_fake(12, &c);
    c.process_bytes = 28123456;
    assert_int_equal(cvy_calibration_save(&c, path), CVY_OK);
    assert_int_equal(cvy_machine_load(path, &machine), CVY_OK);
    assert_string_equal(machine->name, "law");
    assert_int_equal(machine->execution.reserved_bytes, 28123456);
    assert_string_equal(machine->device.name, "Law 1000");
    assert_true(machine->device.cores == 4 && machine->device.vector_bits == 256);
    assert_true(machine->device.peak_flop_per_s[CVY_PRECISION_FP32] == 100e9 && machine->device.memory_Bps == 10e9);
    assert_true(machine->device.launch_s == 10e-6 && machine->device.memory_bytes == (int64_t)32 << 30);
    assert_share(find_rule(machine, CVY_KERNEL_WINOGRAD_CONVOLUTION, CVY_PASS_FORWARD)->peak, 0.5);
    /* A relu has 8 bytes for each flop, whatever its shape: which of the two is its limit cannot be told. */
    const cvy_efficiency *relu = find_rule(machine, CVY_OP_RELU, CVY_PASS_FORWARD);
    assert_share(fmin(relu->bandwidth, 80.0 * relu->peak), 0.8);
    assert_share(find_rule(machine, CVY_OP_SGD, CVY_PASS_UPDATE)->bandwidth, 0.8);
    assert_share(find_rule(machine, CVY_ANY, CVY_ANY)->bandwidth, 0.8);
    const char *source = cvy_machine_find_source(machine, &machine->device.memory_Bps);
    assert_string_equal(source, "measured with 4 threads, 2026-01-02");
    source = cvy_machine_find_source(machine, &find_rule(machine, CVY_OP_SGD, CVY_PASS_UPDATE)->bandwidth);
    assert_string_equal(source, "fitted to 24 measured kernels, 2026-01-02");
    cvy_machine_destroy(&machine);
    cvy_calibration_clear(&c);
}

/* What was measured is looked up; a shape of a later round, which was not, has the law's time within a twentieth. */
static void test_the_oracle_says_what_the_law_says(void **state)
{
    cvy_calibration c;
    cvy_machine *machine = NULL;
    cvy_compute *compute = NULL;
    const char *path = test_path(*state, "law.yaml");
    calibrate_fake(12, &c);
    assert_int_equal(cvy_calibration_save(&c, path), CVY_OK);
    assert_int_equal(cvy_machine_load(path, &machine), CVY_OK);
    assert_int_equal(cvy_compute_create(machine, CVY_PRECISION_FP32, &compute), CVY_OK);
    for (int i = 0; i < c.survey.rows; i++) {
        cvy_compute_estimate estimate = cvy_compute_estimate_op(compute, &c.survey.row[i].op, 1.0, 0.0);
        double ratio = estimate.seconds / c.survey.row[i].time.seconds;
        assert_int_equal(estimate.source, CVY_COMPUTE_TABLE);
        assert_true(ratio > 1 - 1e-5 && ratio < 1 + 1e-5);
    }
    for (int family = 0; family < 6; family++) {
        cvy_drawn_shape shape;
        cvy_op op;
        assert_int_equal(cvy_shape_draw(9, family, 1000, &limits, &shape), CVY_OK);
        assert_int_equal(cvy_shape_make_op(&shape, CVY_PASS_FORWARD, 8, &op), CVY_OK);
        cvy_compute_estimate estimate = cvy_compute_estimate_op(compute, &op, 1.0, 0.0);
        double ratio = estimate.seconds / law_of_roofline(NULL, &op);
        assert_int_not_equal(estimate.source, CVY_COMPUTE_TABLE);
        assert_true(ratio > 0.95 && ratio < 1.05);
    }
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
    cvy_calibration_clear(&c);
}

/* t = 4 roofline (n)^-0.5: a predictor is written, and read back it says the same. */
static double law_of_power(const fake_machine *machine, const cvy_op *op)
{
    (void)machine;
    double flop_s = cvy_op_flop(op) / 100e9, bytes_s = cvy_op_bytes(op) / 10e9;
    double n = (double)op->operand[0].tensor.shape.extent[0];
    return 4.0 * (flop_s > bytes_s ? flop_s : bytes_s) / sqrt(n);
}

static void test_a_line_becomes_a_predictor(void **state)
{
    static fake_machine fake;
    cvy_calibration c;
    cvy_machine *machine = NULL;
    cvy_compute *compute = NULL;
    const char *path = test_path(*state, "law");
    survey_fake(10, &c);
    int rows = 0;
    for (int i = 0; i < c.survey.rows; i++) { /* of the first family alone: the others would only take time */
        cvy_kernel_survey_row *row = &c.survey.row[i];
        if (row->family == 0) {
            row->time.seconds = law_of_power(&fake, &row->op);
            c.survey.row[rows++] = *row;
        }
    }
    c.survey.rows = rows;
    assert_int_equal(cvy_calibration_fit(&c), CVY_OK);
    assert_int_equal(cvy_calibration_save(&c, path), CVY_OK);
    assert_int_equal(cvy_machine_load(path, &machine), CVY_OK);
    assert_non_null(machine->device.predictor[0]);
    assert_int_equal(cvy_compute_create(machine, CVY_PRECISION_FP32, &compute), CVY_OK);
    int predicted = 0;
    for (int index = 1000; index < 1028; index++) {
        cvy_drawn_shape shape;
        cvy_op op;
        assert_int_equal(cvy_shape_draw(9, 0, index, &limits, &shape), CVY_OK);
        assert_int_equal(cvy_shape_make_op(&shape, CVY_PASS_FORWARD, 8, &op), CVY_OK);
        cvy_compute_estimate estimate = cvy_compute_estimate_op(compute, &op, 1.0, 0.0);
        double ratio = estimate.seconds / law_of_power(&fake, &op);
        predicted += estimate.source == CVY_COMPUTE_PREDICTOR && ratio > 0.9 && ratio < 1.1;
    }
    assert_true(predicted >= 24);
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
    cvy_calibration_clear(&c);
}

/* 40 GB/s where an op fits 1 MB, 10 GB/s where not. */
static double law_of_caches(const cvy_op *op)
{
    double bytes = cvy_op_bytes(op);
    return fmax(cvy_op_flop(op) / 50e9, bytes / (bytes < 1e6 ? 40e9 : 10e9));
}

/* What a process says in memory it says from its file. */
static void test_a_process_becomes_a_predictor(void **state)
{
    cvy_calibration c;
    cvy_machine *machine = NULL;
    cvy_compute *compute = NULL;
    const char *path = test_path(*state, "law");
    survey_fake(40, &c);
    int rows = 0;
    for (int i = 0; i < c.survey.rows; i++) {
        cvy_kernel_survey_row *row = &c.survey.row[i];
        if (row->op.kind == CVY_OP_ADD) {
            row->time.seconds = law_of_caches(&row->op);
            c.survey.row[rows++] = *row;
        }
    }
    c.survey.rows = rows;
    assert_int_equal(cvy_calibration_fit(&c), CVY_OK);
    assert_int_equal(c.fits, 1);
    assert_int_equal(c.fit[0].best, CVY_FIT_GAUSSIAN);
    assert_int_equal(cvy_calibration_save(&c, path), CVY_OK);
    assert_int_equal(cvy_machine_load(path, &machine), CVY_OK);
    machine->device.kernel_table[0] = NULL; /* it would know all that is asked */
    assert_int_equal(cvy_compute_create(machine, CVY_PRECISION_FP32, &compute), CVY_OK);
    for (int i = 0; i < rows; i++) {
        cvy_fit_sample sample;
        cvy_kernel_time near = {.seconds = 1.0};
        cvy_fit_make_sample(&c.survey.row[i].op, &near, 0, &sample);
        double in_memory = cvy_fit_gaussian_estimate(&c.fit[0].gaussian, &sample).seconds;
        cvy_compute_estimate from_file = cvy_compute_estimate_op(compute, &c.survey.row[i].op, 1.0, 0.0);
        assert_int_equal(from_file.source, CVY_COMPUTE_PREDICTOR);
        assert_true(fabs(from_file.seconds / in_memory - 1.0) < 1e-4);
    }
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
    cvy_calibration_clear(&c);
}

/* A calibration's own file is written over, any other is not. */
static void test_a_foreign_file_is_left_alone(void **state)
{
    cvy_calibration c;
    const char *path = test_path(*state, "law.yaml");
    assert_int_equal(cvy_calibration_check_target(path), CVY_OK);
    calibrate_fake(12, &c);
    assert_int_equal(cvy_calibration_save(&c, path), CVY_OK);
    assert_int_equal(cvy_calibration_check_target(path), CVY_OK);
    assert_true(put_test_file(path, "name: mine\n", 11));
    assert_int_equal(cvy_calibration_check_target(path), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "no calibration has written"));
    cvy_calibration_clear(&c);
}

static void test_names_are_facts(void **state)
{
    (void)state;
    char name[CVY_CALIBRATION_NAME];
    cvy_topology host = {.cores = 2, .vector_bits = 512, .memory_bytes = (int64_t)24 << 30, .numa_nodes = 1};
    assert_string_equal(cvy_calibration_name(&host, name), "2core-avx512-24gb");
    host = (cvy_topology){.cores = 64, .vector_bits = 256, .memory_bytes = (int64_t)512 << 30, .numa_nodes = 2};
    assert_string_equal(cvy_calibration_name(&host, name), "64core-avx2-512gb-2numa");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_file_has_the_constants_of_the_law, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_the_oracle_says_what_the_law_says, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_line_becomes_a_predictor, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_process_becomes_a_predictor, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_foreign_file_is_left_alone, create_test_folder, remove_test_folder),
        cmocka_unit_test(test_names_are_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
