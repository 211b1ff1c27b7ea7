/* Bounds against sums over plans, and against the arithmetic of one layer by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "bound_machine.h"

static void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected))) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

static cvy_bound *create_bound(const cvy_model *model, const cvy_machine *machine, const cvy_oracle_options *options)
{
    cvy_bound *bound = NULL;
    cvy_status status = cvy_bound_create(model, machine, options, &bound);
    assert_string_equal(status == CVY_OK ? "" : cvy_error_message(), "");
    return bound;
}

static cvy_bounded estimate(cvy_bound *bound, const cvy_strategy *strategy, cvy_recompute recompute)
{
    cvy_block block = {.ranks = 1, .cut = strategy->channel_cut};
    for (int axis = 0; axis < CVY_AXES; axis++) {
        block.size[axis] = axis < CVY_AXIS_DEPTH ? 1 : strategy->mesh.size[axis];
        block.ranks *= block.size[axis];
    }
    cvy_status status = cvy_bound_enter(bound, &block, NULL);
    assert_string_equal(status == CVY_OK ? "" : cvy_error_message(), "");
    return cvy_bound_estimate(bound, strategy, recompute);
}

/* What a plan on one rank takes: each step at its price. */
static double sum_plan(const cvy_model *model, const cvy_machine *machine, const cvy_oracle_options *options,
                       cvy_recompute recompute, int64_t *bytes_out)
{
    cvy_plan *plan = NULL;
    cvy_compute *compute = NULL;
    double seconds = 0;
    cvy_plan_options what = {.batch = options->batch, .dtype = CVY_F32, .training = true, .recompute = recompute,
                             .optimizer = options->optimizer, .layout = CVY_LAYOUT_PLAIN, .block = 16};
    assert_int_equal(cvy_plan_create(model, &what, &plan), CVY_OK);
    assert_int_equal(cvy_compute_create(machine, options->precision, &compute), CVY_OK);
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < s->steps; i++) {
        seconds += s->step[i].op >= 0 ? cvy_compute_estimate_op(compute, &s->op[s->step[i].op], 1, 0.0).seconds : 0;
    }
    *bytes_out = s->memory.persistent_bytes + s->memory.transient_bytes;
    cvy_compute_destroy(&compute);
    cvy_plan_destroy(&plan);
    return seconds;
}

/* The steps of a plan are all there is on one rank. Of the bytes, most: nothing small is counted. */
static void test_one_rank_is_the_plan(void **state)
{
    (void)state;
    static const char *const names[] = {"lenet5", "resnet18", "googlenet", "mobilenet-v2", "unet3d:size=32"};
    cvy_machine machine = make_bound_machine();
    cvy_oracle_options options = make_options(24);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cvy_model *model = open_model(names[i]);
        cvy_bound *bound = create_bound(model, &machine, &options);
        cvy_strategy serial = parse(model, "serial", 1);
        int64_t bytes;
        double plan_s = sum_plan(model, &machine, &options, CVY_RECOMPUTE_NONE, &bytes);
        cvy_bounded bounded = estimate(bound, &serial, CVY_RECOMPUTE_NONE);
        assert_near(bounded.iteration_s, plan_s);
        assert_true(bounded.memory_bytes <= (double)bytes && bounded.memory_bytes > 0.7 * (double)bytes);
        for (int r = CVY_RECOMPUTE_CHEAP; r <= CVY_RECOMPUTE_ALL; r++) {
            plan_s = sum_plan(model, &machine, &options, (cvy_recompute)r, &bytes);
            bounded = estimate(bound, &serial, (cvy_recompute)r);
            assert_near(bounded.iteration_s, plan_s);
            assert_true(bounded.memory_bytes <= (double)bytes);
        }
        cvy_bound_destroy(&bound);
        cvy_model_destroy(&model);
    }
}

/* 8 ranks of 3 samples compute as one rank of 3 does; behind that, all gradients go round a ring of two nodes. */
static void test_data_parallelism_adds_the_exchange(void **state)
{
    (void)state;
    static cvy_network network;
    cvy_machine machine = make_bound_machine();
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RING);
    cvy_oracle_options options = make_options(24), few = make_options(3);
    cvy_model *model = open_model("resnet18");
    cvy_bound *bound = create_bound(model, &machine, &options);
    cvy_strategy data = parse(model, "data", 8);
    int64_t bytes;
    cvy_network_cost cost;
    cvy_network_request request = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = SAMPLE,
                                   .traffic = CVY_TRAFFIC_GRADIENTS,
                                   .bytes = 4.0 * (double)cvy_model_parameters(model)};
    assert_int_equal(cvy_network_setup(&machine, &data.mesh, &network), CVY_OK);
    cvy_network_estimate_collective(&network, &request, &cost);
    double plan_s = sum_plan(model, &machine, &few, CVY_RECOMPUTE_NONE, &bytes);
    assert_near(estimate(bound, &data, CVY_RECOMPUTE_NONE).iteration_s, plan_s + cost.seconds);
    cvy_bound_destroy(&bound);
    cvy_model_destroy(&model);
}

/* ---- two layers by hand: 8 channels of 16 x 16 to 12, to 16, and a loss of all of them; 3x3 windows ---- */

static void append_conv(cvy_model *model, const char *name, int filters, int *at)
{
    assert_int_equal(cvy_model_append(model, "conv", name, at, "filters: %d, kernel: 3, padding: 1, bias: no", filters),
                     CVY_OK);
}

static cvy_model *make_two_layers(void)
{
    cvy_model *model = NULL;
    int at = 0;
    assert_int_equal(cvy_model_create("two", &CVY_SHAPE(8, 16, 16), &model), CVY_OK);
    append_conv(model, "one", 12, &at);
    append_conv(model, "two", 16, &at);
    assert_int_equal(cvy_model_append(model, "flatten", "flat", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(model, "mean-squared-error", "loss", &at, " "), CVY_OK);
    cvy_status status = cvy_model_finish(model);
    assert_string_equal(status == CVY_OK ? "" : cvy_error_message(), "");
    return model;
}

/* Computing takes no time; rings and messages go at 10 GB/s, 1 us each. */
static cvy_machine make_network_alone(void)
{
    cvy_machine machine = make_bound_machine();
    machine.device.peak_flop_per_s[CVY_PRECISION_FP32] = machine.device.memory_Bps = 1e30;
    machine.device.launch_s = 0;
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RING);
    add_rule(&machine, CVY_COLLECTIVE_ALL_GATHER, CVY_ALGORITHM_RING);
    add_rule(&machine, CVY_COLLECTIVE_REDUCE_SCATTER, CVY_ALGORITHM_RING);
    return machine;
}

static double bound_two_layers(const char *text, int64_t ranks)
{
    cvy_machine machine = make_network_alone();
    cvy_oracle_options options = make_options(5);
    cvy_model *model = make_two_layers();
    cvy_bound *bound = create_bound(model, &machine, &options);
    cvy_strategy strategy = parse(model, text, ranks);
    double seconds = estimate(bound, &strategy, CVY_RECOMPUTE_NONE).iteration_s;
    cvy_bound_destroy(&bound);
    cvy_model_destroy(&model);
    return seconds;
}

static double ring_s(double ranks, double bytes) { return (ranks - 1) * (1e-6 + bytes / ranks / 10e9); }

/* 5 samples of a tensor of so many channels. */
static double tensor_bytes(int channels) { return 5.0 * channels * 16 * 16 * 4; }

/* y of both is gathered, for the layer behind it; dx of the second is summed and scattered. */
static void test_filters_by_hand(void **state)
{
    (void)state;
    double expected = ring_s(4, tensor_bytes(12)) + ring_s(4, tensor_bytes(16)) + ring_s(4, tensor_bytes(12));
    assert_near(bound_two_layers("filter", 4), expected);
}

/* The second takes its channels as the first leaves its filters; its output is summed whole. */
static void test_alternating_by_hand(void **state)
{
    (void)state;
    assert_near(bound_two_layers("alternating", 4), 2 * ring_s(4, tensor_bytes(16)));
}

/*
 * Two ranks of 8 rows. A row of x of each layer comes forward, one of the second layer's dx back; the loss gathers all
 * rows; gradients of 9 (8 x 12 + 12 x 16) weights are summed round the ring, twice a step of half of them.
 */
static void test_space_by_hand(void **state)
{
    (void)state;
    double row = 5.0 * 16 * 4 / 10e9;
    double halos = 3 * 1e-6 + 8 * row + 12 * row + 12 * row;
    double gradients = 2 * ring_s(2, 4 * 9 * (8 * 12 + 12 * 16));
    assert_near(bound_two_layers("height=2", 2), halos + ring_s(2, tensor_bytes(16)) + gradients);
}

/* Four micro-batches of equal stages under 1F1B or GPipe, 6 stage times each: no balance is faster than (m+s-1)/s. */
static void test_pipelines_fill_and_drain(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    machine.device.launch_s = 0;
    cvy_oracle_options options = make_options(64), part = make_options(8);
    cvy_model *model = open_model("resnet50");
    cvy_bound *bound = create_bound(model, &machine, &options), *one = create_bound(model, &machine, &part);
    cvy_strategy serial = parse(model, "serial", 1), gpipe = parse(model, "stage=2,micro-batches=8,pipeline=gpipe", 2);
    cvy_strategy other = parse(model, "stage=2,micro-batches=8", 2);
    double part_s = estimate(one, &serial, CVY_RECOMPUTE_NONE).iteration_s; /* with its update */
    double bounds[] = {estimate(bound, &gpipe, CVY_RECOMPUTE_NONE).iteration_s,
                       estimate(bound, &other, CVY_RECOMPUTE_NONE).iteration_s};
    for (int i = 0; i < 2; i++) {
        if (!(bounds[i] <= part_s * 9 / 2 && bounds[i] > part_s * 9 / 2 * 0.95)) {
            fail_msg("%g s, expected just below %g", bounds[i], part_s * 9 / 2);
        }
    }
    cvy_bound_destroy(&bound);
    cvy_bound_destroy(&one);
    cvy_model_destroy(&model);
}

static void test_a_block_that_cuts_nothing_is_told(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    cvy_oracle_options options = make_options(64);
    cvy_model *model = make_two_layers();
    cvy_bound *bound = create_bound(model, &machine, &options);
    cvy_block wide = {.size = {1, 1, 1, 1, 1, 32}, .ranks = 32};
    assert_int_equal(cvy_bound_enter(bound, &wide, NULL), CVY_ERR_INFEASIBLE);
    assert_non_null(strstr(cvy_error_message(), "layer one"));
    cvy_bound_destroy(&bound);
    cvy_model_destroy(&model);
}

/* Layers' seconds are the whole's, apart: of the network alone, in which all is a sum. */
static void test_layers_add_up(void **state)
{
    (void)state;
    static const char *const texts[] = {"sample=2,height=2,width=2", "sample=4,channel=4", "channel=2,height=2"};
    static const int ranks[] = {8, 16, 4};
    cvy_machine machine = make_bound_machine();
    cvy_oracle_options options = make_options(64);
    cvy_model *model = open_model("googlenet");
    cvy_bound *bound = create_bound(model, &machine, &options);
    double *layer_s = cvy_calloc((size_t)model->layers, sizeof *layer_s);
    for (int i = 0; i < 3; i++) {
        cvy_strategy strategy = parse(model, texts[i], ranks[i]);
        double all_s = estimate(bound, &strategy, CVY_RECOMPUTE_NONE).iteration_s, sum_s = 0;
        cvy_bound_estimate_layers(bound, &strategy, layer_s);
        for (int layer = 0; layer < model->layers; layer++) {
            sum_s += layer_s[layer];
        }
        assert_near(sum_s, all_s);
    }
    cvy_free(layer_s);
    cvy_bound_destroy(&bound);
    cvy_model_destroy(&model);
}

/* 64 ranks on one device, without links: no iteration ends. A strategy that fits is bounded all the same, then. */
static void test_more_ranks_than_devices_never_end(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    machine.nodes = machine.devices_per_node = 1;
    machine.levels = 0;
    cvy_oracle_options options = make_options(64);
    cvy_model *model = open_model("lenet5");
    cvy_bound *bound = create_bound(model, &machine, &options);
    double *layer_s = cvy_calloc((size_t)model->layers, sizeof *layer_s);
    cvy_strategy serial = parse(model, "serial", 1), data = parse(model, "data", 64);
    cvy_strategy stages = parse(model, "stage=2,micro-batches=2", 2);
    assert_true(estimate(bound, &data, CVY_RECOMPUTE_NONE).iteration_s == HUGE_VAL);
    assert_true(estimate(bound, &stages, CVY_RECOMPUTE_NONE).iteration_s == HUGE_VAL);
    assert_non_null(layer_s);
    cvy_bound_estimate_layers(bound, &data, layer_s);
    assert_true(layer_s[1] == HUGE_VAL);
    double seconds = estimate(bound, &serial, CVY_RECOMPUTE_NONE).iteration_s;
    assert_true(seconds > 0.0 && seconds < 1.0);
    cvy_free(layer_s);
    cvy_bound_destroy(&bound);
    cvy_model_destroy(&model);
}

static void test_running_out_of_memory_is_told(void **state)
{
    (void)state;
    cvy_machine machine = make_bound_machine();
    cvy_oracle_options options = make_options(8);
    cvy_model *model = make_two_layers();
    cvy_status status = CVY_ERR_MEMORY;
    for (int64_t i = 0; status != CVY_OK; i++) {
        cvy_bound *bound = NULL;
        cvy_block block = {.size = {1, 1, 1, 2, 1, 2}, .ranks = 4};
        cvy_memory_fail_after(i);
        status = cvy_bound_create(model, &machine, &options, &bound);
        status = status == CVY_OK ? cvy_bound_enter(bound, &block, NULL) : status;
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK || status == CVY_ERR_MEMORY);
        cvy_bound_destroy(&bound);
    }
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank_is_the_plan),
        cmocka_unit_test(test_data_parallelism_adds_the_exchange),
        cmocka_unit_test(test_filters_by_hand),
        cmocka_unit_test(test_alternating_by_hand),
        cmocka_unit_test(test_space_by_hand),
        cmocka_unit_test(test_pipelines_fill_and_drain),
        cmocka_unit_test(test_a_block_that_cuts_nothing_is_told),
        cmocka_unit_test(test_layers_add_up),
        cmocka_unit_test(test_more_ranks_than_devices_never_end),
        cmocka_unit_test(test_running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
