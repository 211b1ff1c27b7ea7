/*
 * From one device to several, against published throughput (tests/data/oracle/many_devices.csv: synthetic data, fp32,
 * samples of one device): what one took as measured, and what the oracle says that data parallelism adds to it. The
 * bound is above what docs/accuracy.md says, and below what linear scaling is off by.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "csv.h"
#include "oracle/estimate.h"

static void require(cvy_status status) { assert_string_equal(status == CVY_OK ? "" : cvy_error_message(), ""); }

/* Seconds of an iteration, over all ranks. */
static double estimate_iteration(const cvy_model *model, const cvy_machine *machine, int64_t batch, int ranks)
{
    cvy_oracle *oracle = NULL;
    cvy_estimate estimate;
    cvy_estimate_question question = {.recompute = CVY_RECOMPUTE_NONE};
    cvy_oracle_options options = {.batch = batch * ranks,
                                  .precision = CVY_PRECISION_FP32,
                                  .optimizer = {.params = {.momentum = 0.9, .weight_decay = 1e-4}},
                                  .bucket_bytes = -1};
    require(cvy_strategy_parse(ranks > 1 ? "data" : "serial", ranks, (const int64_t[3]){1, 1, 1},
                               &question.strategy));
    require(cvy_oracle_create(model, machine, &options, &oracle));
    require(cvy_oracle_estimate(oracle, &question, &estimate));
    cvy_oracle_destroy(&oracle);
    assert_true(estimate.feasible);
    return estimate.iteration_s;
}

static double predict_row(const csv *row)
{
    cvy_model *model = NULL;
    cvy_machine *machine = NULL;
    int ranks = (int)csv_number(row, "ranks");
    int64_t batch = (int64_t)csv_number(row, "batch");
    require(cvy_model_open(csv_text(row, "model"), &model));
    require(cvy_machine_open(csv_text(row, "machine"), &machine));
    machine->execution.staging = CVY_STAGING_HIDDEN;
    double added_s = estimate_iteration(model, machine, batch, ranks) - estimate_iteration(model, machine, batch, 1);
    assert_true(added_s > 0.0);
    cvy_machine_destroy(&machine);
    cvy_model_destroy(&model);
    return (double)(batch * ranks) / ((double)batch / csv_number(row, "one_images_per_s") + added_s);
}

static void test_several_devices_follow_from_one(void **state)
{
    (void)state;
    csv row;
    int rows = 0;
    double error = 0.0, linear = 0.0;
    open_csv(&row, "oracle/many_devices.csv");
    while (next_csv_row(&row)) {
        double measured = csv_number(&row, "images_per_s");
        error += fabs(measured / predict_row(&row) - 1.0);
        linear += fabs(measured / (csv_number(&row, "one_images_per_s") * csv_number(&row, "ranks")) - 1.0);
        rows++;
    }
    assert_int_equal(rows, 14);
    assert_true(linear / rows > 0.08);
    assert_true(error / rows <= 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_several_devices_follow_from_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
