/* What passes between stages, by schedules made by hand: when it begins, and over links that save up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bound_machine.h"
#include "oracle/estimate_internal.h"

static void assert_close(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected))) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

static cvy_plan no_plan; /* a schedule without steps */

/* Two stages of equal work, two micro-batches; what passes each way takes as long, all of it bytes. */
static double lay_out(const cvy_machine *machine, cvy_pipeline_order order, double work_s, double pass_s)
{
    cvy_oracle oracle = {.machine = machine};
    cvy_estimate_question question = {.strategy.pipeline = order};
    cvy_pricing pricing = {.oracle = &oracle, .question = &question, .stages = 2, .micro_batches = 2, .larger = 2};
    cvy_priced_rank stage[2] = {{.plan = &no_plan}, {.plan = &no_plan}};
    cvy_estimate e = {.feasible = true};
    for (int s = 0; s < 2; s++) {
        stage[s].forward_s[0] = stage[s].backward_s[0][0] = work_s;
        stage[s].part_s[CVY_PHASE_FORWARD] = stage[s].part_s[CVY_PHASE_BACKWARD] = 2.0 * work_s;
        stage[s].iteration_s = 4.0 * work_s;
    }
    stage[0].send_s[0] = stage[0].send_burst_s[0] = pass_s;
    stage[1].return_s[0] = stage[1].return_burst_s[0] = pass_s;
    assert_int_equal(cvy_simulator_create(&oracle.simulator), CVY_OK);
    assert_int_equal(cvy_price_pipeline(&pricing, stage, &e), CVY_OK);
    cvy_simulator_destroy(&oracle.simulator);
    return e.iteration_s;
}

/*
 * 1F1B, 2 s forward, 2 backward, a message 1 s. Stage 0 goes forward 0-2 and 2-4; the messages go 2-3 and, at once,
 * 4-5. Stage 1 works 3-7 and 7-11, its gradients go 7-8 and 11-12, stage 0 goes backward 8-10 and 12-14. Under MPI the
 * second message goes when stage 1 asks for it, at 7: it works 8-12, the gradient goes 12-13, stage 0 ends at 15.
 */
static void test_mpi_sends_when_both_have_come_to_it(void **state)
{
    (void)state;
    cvy_machine machine = {.device.kind = CVY_DEVICE_GPU};
    assert_close(lay_out(&machine, CVY_PIPELINE_1F1B, 2.0, 1.0), 14.0);
    machine.device.kind = CVY_DEVICE_CPU;
    assert_close(lay_out(&machine, CVY_PIPELINE_1F1B, 2.0, 1.0), 15.0);
}

/*
 * GPipe, 1 s forward, 1 backward, messages of 4 s. Forward 0-1 and 1-2, messages 1-5 and 5-9, forward there 5-6 and
 * 9-10, backward 10-11 and 11-12, gradients 11-15 and 15-19, backward 15-16 and 19-20. Each way is idle for longer than
 * the 4 s that it saves up at most, so its first message takes no time: it comes at 1; the second goes at 2 and takes a
 * second less, 2-5; forward there 1-2 and 5-6, backward 6-7 and 7-8; of the gradients one comes at 7, one goes 8-11.
 */
static void test_links_save_up_between_messages(void **state)
{
    (void)state;
    cvy_machine machine = {.device.kind = CVY_DEVICE_GPU, .levels = 1,
                           .level[0] = {.bandwidth_Bps = 1.0, .endpoints = 2, .devices = 2, .ports = 1, .rails = 1}};
    assert_close(lay_out(&machine, CVY_PIPELINE_GPIPE, 1.0, 4.0), 20.0);
    machine.level[0].burst_bytes = 4;
    assert_close(lay_out(&machine, CVY_PIPELINE_GPIPE, 1.0, 4.0), 12.0);
}

/*
 * However much a link saves up, what passes one way in an iteration takes no less of it than its bytes do: 1 ms of work
 * hides nothing, and a bucket that is never full spares none of 2 x 4 s.
 */
static void test_what_is_saved_was_not_sent(void **state)
{
    (void)state;
    cvy_machine machine = {.device.kind = CVY_DEVICE_CPU, .levels = 1,
                           .level[0] = {.bandwidth_Bps = 1.0, .endpoints = 2, .devices = 2, .ports = 1, .rails = 1,
                                        .burst_bytes = 1000}};
    double seconds = lay_out(&machine, CVY_PIPELINE_1F1B, 1e-3, 4.0);
    assert_true(seconds > 7.9 && seconds < 8.5);
}

/* Links that save up spare halos, redistributions, gradients and what passes between stages: bounds know of it. */
static void test_bounds_stay_below_estimates(void **state)
{
    (void)state;
    static const char *const strategies[] = {"data", "height=4", "filter", "channel", "stage=4,micro-batches=4",
                                             "stage=2,micro-batches=4,pipeline=gpipe", "sample=2,channel=2",
                                             "sample=2,stage=2,micro-batches=2"};
    cvy_machine machine = make_bound_machine();
    cvy_oracle_options options = make_options(16);
    cvy_model *model = open_model("lenet5");
    cvy_bound *bound = NULL;
    for (int64_t burst = 1000; burst <= 100000000; burst *= 100) {
        for (int level = 0; level < machine.levels; level++) {
            machine.level[level].burst_bytes = burst;
        }
        cvy_oracle *oracle = NULL;
        assert_int_equal(cvy_oracle_create(model, &machine, &options, &oracle), CVY_OK);
        assert_int_equal(cvy_bound_create(model, &machine, &options, &bound), CVY_OK);
        for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
            int64_t ranks = strstr(strategies[i], "stage=2") && !strstr(strategies[i], "sample") ? 2 : 4;
            cvy_estimate_question question = {.strategy = parse(model, strategies[i], ranks)};
            cvy_block block = {.ranks = 1, .cut = question.strategy.channel_cut};
            cvy_estimate e;
            for (int axis = 0; axis < CVY_AXES; axis++) {
                block.size[axis] = axis < CVY_AXIS_DEPTH ? 1 : question.strategy.mesh.size[axis];
                block.ranks *= block.size[axis];
            }
            assert_int_equal(cvy_oracle_estimate(oracle, &question, &e), CVY_OK);
            assert_int_equal(cvy_bound_enter(bound, &block, NULL), CVY_OK);
            double bound_s = cvy_bound_estimate(bound, &question.strategy, CVY_RECOMPUTE_NONE).iteration_s;
            if (!e.feasible || bound_s > e.iteration_s * (1.0 + 1e-9)) {
                fail_msg("%s: bound %g, estimate %g %s", strategies[i], bound_s, e.iteration_s, e.why_not);
            }
        }
        cvy_bound_destroy(&bound);
        cvy_oracle_destroy(&oracle);
    }
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpi_sends_when_both_have_come_to_it),
        cmocka_unit_test(test_links_save_up_between_messages),
        cmocka_unit_test(test_what_is_saved_was_not_sent),
        cmocka_unit_test(test_bounds_stay_below_estimates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
