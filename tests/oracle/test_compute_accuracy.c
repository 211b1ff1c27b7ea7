/*
 * Estimates of an iteration on one device against published throughput (tests/data/oracle/one_device.csv). Bounds are
 * above what docs/accuracy.md says, so that a change of the plan or of the oracle that moves estimates is seen.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "csv.h"
#include "oracle/compute.h"
#include "plan/plan.h"

/* What the rows of one kind are off by: |measured / predicted - 1| of images a second. */
typedef struct tally {
    double sum, worst;
    int rows;
} tally;

/* The plan of the last row's model and batch, which the next row mostly has too. */
typedef struct planned {
    char model[64];
    int64_t batch;
    cvy_model *net;
    cvy_plan *plan;
} planned;

static void require(cvy_status status) { assert_string_equal(status == CVY_OK ? "" : cvy_error_message(), ""); }

static void forget(planned *last)
{
    cvy_plan_destroy(&last->plan);
    cvy_model_destroy(&last->net);
}

/* As frameworks over cuDNN run it: no relu is part of another op. */
static const cvy_schedule *plan_row(const csv *row, planned *last)
{
    const char *model = csv_text(row, "model");
    int64_t batch = (int64_t)csv_number(row, "batch");
    if (!last->plan || batch != last->batch || strcmp(model, last->model) != 0) {
        cvy_plan_options options = {.batch = batch,
                                    .dtype = CVY_F32,
                                    .training = true,
                                    .optimizer = {.params = {.momentum = 0.9, .weight_decay = 1e-4}},
                                    .layout = CVY_LAYOUT_PLAIN,
                                    .unfused = true,
                                    .block = 8};
        forget(last);
        require(cvy_model_open(model, &last->net));
        require(cvy_plan_create(last->net, &options, &last->plan));
        snprintf(last->model, sizeof last->model, "%s", model);
        last->batch = batch;
    }
    return &last->plan->schedule[CVY_SCHEDULE_TRAIN];
}

static double estimate_row(const csv *row, const cvy_schedule *s)
{
    cvy_machine *machine = NULL;
    cvy_compute *compute = NULL;
    int precision = 0;
    while (strcmp(cvy_precision_name((cvy_precision)precision), csv_text(row, "precision")) != 0) {
        precision++;
    }
    require(cvy_machine_open(csv_text(row, "machine"), &machine));
    assert_int_equal(machine->execution.fuse, CVY_FUSING_NONE);
    require(cvy_compute_create(machine, (cvy_precision)precision, &compute));
    double seconds = 0.0;
    for (int i = 0; i < s->steps; i++) {
        if (s->step[i].op >= 0) {
            seconds += cvy_compute_estimate_op(compute, &s->op[s->step[i].op], 1.0, 0.0).seconds;
        }
    }
    cvy_compute_destroy(&compute);
    cvy_machine_destroy(&machine);
    return seconds;
}

static void add_row(tally *t, double error)
{
    t->sum += error;
    t->worst = fmax(t->worst, error);
    t->rows++;
}

static void test_one_device_is_estimated_as_measured(void **state)
{
    (void)state;
    csv row;
    planned last = {0};
    tally plain = {0}, mixed = {0}, suspect = {0};
    open_csv(&row, "oracle/one_device.csv");
    while (next_csv_row(&row)) {
        double predicted = csv_number(&row, "batch") / estimate_row(&row, plan_row(&row, &last));
        bool half = strcmp(csv_text(&row, "precision"), "fp16") == 0;
        tally *of = csv_number(&row, "suspect") > 0.0 ? &suspect : half ? &mixed : &plain;
        add_row(of, fabs(csv_number(&row, "images_per_s") / predicted - 1.0));
    }
    forget(&last);
    assert_true(plain.rows >= 145 && mixed.rows >= 55 && suspect.rows >= 1);
    assert_true(plain.sum / plain.rows <= 0.10 && plain.worst <= 0.35);
    assert_true(mixed.sum / mixed.rows <= 0.12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_device_is_estimated_as_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
