/* Error bars by hand: what adds up, what adds in quadrature, and what makes a bar of what a source says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/text.h"
#include "estimate_world.h"
#include "folder.h"

/* Of a normal distribution 90 % lie within 1.64485 deviations, half within 0.67449; the mean distance is 0.79788. */
static const double by_quartiles = 1.6448536 / 0.6744898, by_mean = 1.6448536 / 0.7978846, nine_of_ten = 1.6448536;

enum { MOST_OPS = 256 };

/* ---- measured kernels ---- */

/* Every op of the plan takes 1 ms, give or take a tenth. */
static void put_table(asked *a, const char *folder, const cvy_schedule *s)
{
    cvy_text text = {0};
    a->machine.device.kernel_table[0] = test_path(folder, "kernels.csv");
    cvy_kernel_table_begin(&a->machine.device, CVY_PRECISION_FP32, &text);
    for (int i = 0; i < s->ops; i++) {
        cvy_kernel_table_add(&s->op[i], &(cvy_kernel_time){1e-3, 0.1, 0.0}, &text);
    }
    assert_true(put_test_file(a->machine.device.kernel_table[0], text.data, text.length));
    cvy_text_destroy(&text);
}

/* Of n runs of 1 ms of m kernels, c of each: sqrt(sum of c c) / n of one's error; n of them alike would be 1. */
static void test_measured_kernels_are_off_each_by_itself(void **state)
{
    asked a;
    int runs[MOST_OPS] = {0}, steps = 0;
    double squares = 0.0;
    open_asked(&a, "lenet5", "serial", 1, 8);
    cvy_plan *plan = plan_rank(&a, NULL, 0);
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    assert_true(s->ops <= MOST_OPS);
    put_table(&a, *state, s);
    for (int i = 0; i < s->steps; i++) {
        if (s->step[i].op >= 0) {
            runs[s->step[i].op]++;
            steps++;
        }
    }
    for (int i = 0; i < s->ops; i++) {
        squares += (double)runs[i] * runs[i];
    }
    cvy_estimate e = estimate_feasible(&a);
    double bar = by_quartiles * 0.1 * sqrt(squares) / steps;
    assert_close(e.iteration_s, 1e-3 * steps, 1e-9);
    assert_close(e.error_relative, bar, 1e-6);
    assert_true(e.error_relative < 0.4 * by_quartiles * 0.1);
    a.machine.device.spread = 0.2; /* the machine is slow or fast as a whole */
    assert_close(estimate_feasible(&a).error_relative, hypot(bar, nine_of_ten * 0.2), 1e-6);
    cvy_plan_destroy(&plan);
    close_asked(&a);
}

/* ---- predictors ---- */

/* It says e times the roofline, of convolutions of any window. */
static void put_net(asked *a, const char *folder, int index, const char *pass, double error)
{
    char text[512];
    int length = snprintf(text, sizeof text,
                          "kernel: convolution\npass: %s\nprecision: fp32\nerror: %g\npeak: 1 TFLOP/s\n"
                          "bandwidth: 100 GB/s\ninputs: [n]\nmean: [0]\ndeviation: [1]\nlow: [0]\nhigh: [99]\n"
                          "nets: [[{weights: [0], biases: [1]}]]\n", pass, error);
    a->machine.device.predictor[index] = test_path(folder, pass);
    assert_true(put_test_file(a->machine.device.predictor[index], text, (size_t)length));
}

/* Convolutions of a pass are off alike, whatever their shape; passes apart; the rest is what a rule says, none here. */
static void test_kernels_of_a_predictor_are_off_alike(void **state)
{
    static const char *const passes[] = {"forward", "backward-data", "backward-weights"};
    static const double errors[] = {0.1, 0.2, 0.3};
    double squares = 0.0;
    asked a;
    open_asked(&a, "lenet5", "serial", 1, 8);
    a.machine.device.efficiency[0] = (cvy_efficiency){.kernel = CVY_ANY, .pass = CVY_ANY, .precision = CVY_ANY,
                                                      .peak = 1.0, .bandwidth = 1.0, .error = 0.0};
    a.machine.device.efficiencies = 1;
    for (int i = 0; i < 3; i++) {
        put_net(&a, *state, i, passes[i], errors[i]);
    }
    cvy_trace *trace = trace_now(&a);
    const cvy_schedule *s = &trace->rank[0].plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < 3; i++) {
        double seconds = 0.0;
        int kernels = 0;
        for (int k = 0; k < s->steps; k++) {
            const cvy_op *op = s->step[k].op >= 0 ? &s->op[s->step[k].op] : NULL;
            if (op && op->kind == CVY_OP_CONVOLUTION && strcmp(cvy_op_pass_name(op->pass), passes[i]) == 0) {
                assert_close(s->step[k].estimate_error, by_mean * errors[i], 1e-6);
                seconds += s->step[k].estimate_s;
                kernels++;
            }
        }
        assert_int_equal(kernels, i == 1 ? 1 : 2); /* of the input there is no gradient */
        squares += by_mean * errors[i] * seconds * by_mean * errors[i] * seconds;
    }
    assert_close(trace->estimate.error_relative, sqrt(squares) / trace->estimate.iteration_s, 1e-6);
    cvy_trace_destroy(&trace);
    close_asked(&a);
}

/* ---- rules and lines ---- */

/* A roofline without measured shares is off by half, with a rule by what it says, all kernels alike. */
static void test_kernels_by_rules_are_off_alike(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "serial", 1, 8);
    assert_close(estimate_feasible(&a).error_relative, 0.5, 1e-9);
    a.machine.device.efficiency[0] = (cvy_efficiency){.kernel = CVY_ANY, .pass = CVY_ANY, .precision = CVY_ANY,
                                                      .peak = 0.5, .bandwidth = 0.5, .error = 0.2};
    a.machine.device.efficiencies = 1;
    assert_close(estimate_feasible(&a).error_relative, 0.2, 1e-9);
    close_asked(&a);
}

/* Links are off by half, or measured ones by a tenth, whatever kernels are. */
static void test_links_are_off_apart_from_kernels(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "data", 4, 8);
    cvy_estimate e = estimate_feasible(&a);
    double exchange = e.communication[CVY_PHASE_GRADIENT_EXCHANGE].seconds;
    assert_close(e.error_relative, hypot(0.5 * exchange, 0.5 * (e.iteration_s - exchange)) / e.iteration_s, 1e-9);
    add_rule(&a.machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RING)->bandwidth_Bps = 1e9;
    e = estimate_feasible(&a);
    exchange = e.communication[CVY_PHASE_GRADIENT_EXCHANGE].seconds;
    assert_close(e.error_relative, hypot(0.1 * exchange, 0.5 * (e.iteration_s - exchange)) / e.iteration_s, 1e-9);
    close_asked(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_measured_kernels_are_off_each_by_itself, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_kernels_of_a_predictor_are_off_alike, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test(test_kernels_by_rules_are_off_alike),
        cmocka_unit_test(test_links_are_off_apart_from_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
