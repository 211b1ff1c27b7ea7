/*
 * Laws of measuring rivals, by counted runs: what is near is measured out; what loses is run once, or for a few samples
 * only; equal ops are measured once; short kernels are never given up.
 */
#include "backend/stopwatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sleeper.h"

static int64_t sample_ns;  /* the sleeper sleeps so long for each sample */
static bool dislikes_few; /* a small batch is left to plain loops */

static int64_t sleep_by_sample(const cvy_op *op) { return op->operand[0].tensor.shape.extent[0] * sample_ns; }

static cvy_quality like(const cvy_op *op)
{
    bool few = op->operand[0].tensor.shape.extent[0] < 512;
    return dislikes_few && few ? CVY_QUALITY_SLOW : CVY_QUALITY_FAST;
}

static const cvy_backend_chain chain = {.count = 1, .backend = {&sleeper}};

enum { BATCH = 1024 }; /* more than four times any machine's threads: a trial may be */

/* 3x3 over 16 channels each way: 2 * 9 * 16 = 288 flop for each element of y, of some 20 bytes for one sample. */
static cvy_op make_convolution(int64_t n)
{
    const cvy_tensor x = {.shape = CVY_SHAPE(n, 16, 10, 10), .dtype = CVY_F32};
    const cvy_tensor w = {.shape = CVY_SHAPE(16, 16, 3, 3), .dtype = CVY_F32};
    const cvy_tensor y = {.shape = CVY_SHAPE(n, 16, 8, 8), .dtype = CVY_F32};
    cvy_op op = {.kind = CVY_OP_CONVOLUTION, .pass = CVY_PASS_FORWARD};
    op.params.window = (cvy_op_params_window){.window = {{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0}, {0}}, .groups = 1};
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_X, &x), CVY_OK);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_W, &w), CVY_OK);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_Y, &y), CVY_OK);
    return op;
}

/* n x 64 by 64 x 64: its weights are read for any number of samples. */
static cvy_op make_product(int64_t n)
{
    const cvy_tensor x = {.shape = CVY_SHAPE(n, 64), .dtype = CVY_F32};
    const cvy_tensor w = {.shape = CVY_SHAPE(64, 64), .dtype = CVY_F32};
    cvy_op op = {.kind = CVY_OP_DENSE, .pass = CVY_PASS_FORWARD};
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_X, &x), CVY_OK);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_W, &w), CVY_OK);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_Y, &x), CVY_OK);
    return op;
}

/* Two runs at least after one that warms up; no more once they took 10 ms together. */
static cvy_stopwatch make_stopwatch(int64_t a_sample_ns)
{
    sample_ns = a_sample_ns;
    sleeper_state.quality = like;
    sleeper_state.sleep_ns = sleep_by_sample;
    sleeper_state.runs = sleeper_state.kernels = 0;
    sleeper_state.samples = 0;
    return (cvy_stopwatch){.chain = &chain, .effort = CVY_MEASURE_QUICK};
}

static double measure(cvy_stopwatch *stopwatch, const cvy_op *op, double rival_s)
{
    double seconds = -1.0;
    assert_int_equal(cvy_stopwatch_measure(stopwatch, op, rival_s, &seconds), CVY_OK);
    return seconds;
}

/* 1024 x 40 us = 41 ms and more: long, so that the run that warms up is one of two; a short one has three. */
static void test_a_long_run_that_warms_up_counts(void **state)
{
    (void)state;
    cvy_op op = make_convolution(BATCH), few = make_convolution(1);
    cvy_stopwatch stopwatch = make_stopwatch(40000);
    assert_true(measure(&stopwatch, &op, 0.0) >= 0.04);
    assert_int_equal(sleeper_state.runs, 2);
    sleeper_state.runs = 0;
    (void)measure(&stopwatch, &few, 0.0);
    assert_true(sleeper_state.runs >= 3);
    cvy_stopwatch_clear(&stopwatch);
}

/* A rival that takes longer, or as long, is no reason to look less closely: a trial, then both runs of the batch. */
static void test_what_is_near_is_measured_out(void **state)
{
    (void)state;
    cvy_op op = make_convolution(BATCH);
    cvy_stopwatch stopwatch = make_stopwatch(40000);
    assert_true(measure(&stopwatch, &op, 60.0) >= 0.04);
    assert_true(sleeper_state.samples >= 2 * BATCH);
    assert_int_equal(sleeper_state.kernels, 2);
    cvy_stopwatch_clear(&stopwatch);
}

/* 1024 x 400 us = 0.4 s against 25 ms: known by a few samples, the batch is never run; the answer is of the batch. */
static void test_what_loses_by_a_few_samples_is_given_up(void **state)
{
    (void)state;
    cvy_op op = make_convolution(BATCH);
    cvy_stopwatch stopwatch = make_stopwatch(400000);
    double seconds = measure(&stopwatch, &op, 0.025);
    assert_true(seconds >= 0.4);
    assert_true(sleeper_state.samples < BATCH);
    int before = sleeper_state.runs;
    assert_true(measure(&stopwatch, &op, 0.025) == seconds); /* known: it is not run again */
    assert_int_equal(sleeper_state.runs, before);
    cvy_stopwatch_clear(&stopwatch);
}

/* A small batch that is run otherwise says nothing of the whole one, which is run, once. */
static void test_a_trial_that_is_run_otherwise_is_none(void **state)
{
    (void)state;
    cvy_op op = make_convolution(BATCH);
    cvy_stopwatch stopwatch = make_stopwatch(400000);
    dislikes_few = true;
    assert_true(measure(&stopwatch, &op, 0.025) >= 0.4);
    dislikes_few = false;
    assert_int_equal(sleeper_state.runs, 1);
    assert_int_equal(sleeper_state.samples, BATCH);
    cvy_stopwatch_clear(&stopwatch);
}

/* No trial for a product with weights that all samples share: one run of the batch, 64 x 5 ms, is enough. */
static void test_what_has_no_trial_is_run_once(void **state)
{
    (void)state;
    cvy_op op = make_product(64);
    cvy_stopwatch stopwatch = make_stopwatch(5000000);
    assert_true(measure(&stopwatch, &op, 0.025) >= 0.3);
    assert_int_equal(sleeper_state.runs, 1);
    assert_int_equal(sleeper_state.samples, 64);
    cvy_stopwatch_clear(&stopwatch);
}

/* Against a short rival a moment's noise would decide: all runs are made. */
static void test_short_rivals_end_nothing(void **state)
{
    (void)state;
    cvy_op op = make_convolution(BATCH);
    cvy_stopwatch stopwatch = make_stopwatch(40000);
    (void)measure(&stopwatch, &op, 0.5 * CVY_STOPWATCH_LONG_S);
    assert_int_equal(sleeper_state.runs, 2);
    assert_int_equal(sleeper_state.samples, 2 * BATCH);
    cvy_stopwatch_clear(&stopwatch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_long_run_that_warms_up_counts),
        cmocka_unit_test(test_what_is_near_is_measured_out),
        cmocka_unit_test(test_what_loses_by_a_few_samples_is_given_up),
        cmocka_unit_test(test_a_trial_that_is_run_otherwise_is_none),
        cmocka_unit_test(test_what_has_no_trial_is_run_once),
        cmocka_unit_test(test_short_rivals_end_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
