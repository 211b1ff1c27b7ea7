/* Studies against closed forms by hand, against estimates one by one, and against a published sketch. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "made_up.h"
#include "oracle/sweep.h"

static cvy_sweep_options make_options(int64_t batch, const char *strategy)
{
    cvy_sweep_options o = {.oracle = {.precision = CVY_PRECISION_FP32, .bucket_bytes = -1},
                           .batch = batch, .batch_per_rank = true, .strategies = 1, .strategy = {strategy}};
    assert_true(cvy_optimizer_find("momentum", 0.9, &o.oracle.optimizer));
    return o;
}

static void add_ranks(cvy_sweep_options *o, int64_t first, int64_t last)
{
    for (int64_t ranks = first; ranks <= last; ranks *= 2) {
        o->ranks[o->rank_counts++] = ranks;
    }
}

/* Powers of two. */
static void add_factors(cvy_sweep_options *o, cvy_varied parameter, double first, double last)
{
    cvy_sweep_axis *axis = &o->axis[o->axes++];
    axis->parameter = parameter;
    for (double factor = first; factor <= last; factor *= 2.0) {
        axis->value[axis->values++].factor = factor;
    }
}

static cvy_sweep *study(const cvy_model *model, const cvy_machine *machine, const cvy_sweep_options *options)
{
    cvy_sweep *sweep = NULL;
    if (cvy_sweep_create(model, machine, options, &sweep) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return sweep;
}

/* A setting by its parameter and factor. */
static int find_setting(const cvy_sweep *sweep, cvy_varied parameter, double factor)
{
    for (int i = 1; i < sweep->settings; i++) {
        const cvy_sweep_axis *axis = &sweep->options.axis[sweep->setting[i].axis];
        if (axis->parameter == parameter && axis->value[sweep->setting[i].value[sweep->setting[i].axis]].factor ==
            factor) {
            return i;
        }
    }
    fail_msg("no setting");
    return 0;
}

static void assert_within(double found, double expected, double absolute)
{
    if (!(fabs(found - expected) <= absolute)) {
        fail_msg("found %.9g, expected %.9g", found, expected);
    }
}

static int64_t count_weights(const cvy_model *model)
{
    int64_t count = 0;
    for (int i = 0; i < model->parameters; i++) {
        const cvy_parameter_spec *spec = &model->parameter[i].spec;
        count += spec->trainable ? cvy_shape_elements(&spec->shape) : 0;
    }
    return count;
}

/* ---- elasticities ---- */

static const double none = 1e18; /* of a rate: nothing takes any time by it */

/*
 * One thing alone takes time: throughput goes as it does, and by nothing else. 16 ranks; of the batch, whose share of
 * the work is the same, nothing comes of more of it, but where only what ranks send takes time: then images go as it.
 */
static void test_what_alone_takes_time_has_the_elasticity(void **state)
{
    (void)state;
    static const struct {
        double peak, memory, link, latency_s;
        cvy_varied parameter;
        double elasticity, of_batch;
    } cases[] = {
        {1e13, 1e30, 1e30, 0.0, CVY_VARIED_ARITHMETIC, 1.0, 0.0},
        {1e30, 1e12, 1e30, 0.0, CVY_VARIED_MEMORY_BANDWIDTH, 1.0, 0.0},
        {1e30, 1e30, 1e9, 0.0, CVY_VARIED_LINK_BANDWIDTH, 1.0, 1.0},
        {1e30, 1e30, 1e30, 1e-3, CVY_VARIED_LINK_LATENCY, -1.0, 1.0},
    };
    cvy_model *model = open_model("lenet5");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cvy_machine *machine = make_machine(MADE_UP_MACHINE, 1.0, 1.0);
        cvy_sweep_options options = make_options(4096, "data");
        machine->device.peak_flop_per_s[CVY_PRECISION_FP32] = cases[i].peak;
        machine->device.memory_Bps = cases[i].memory;
        machine->level[0].bandwidth_Bps = cases[i].link;
        machine->level[0].latency_s = cases[i].latency_s;
        add_ranks(&options, 16, 16);
        cvy_sweep *sweep = study(model, machine, &options);
        for (int p = CVY_VARIED_ARITHMETIC; p < CVY_VARIED_MEMORY; p++) {
            assert_within(sweep->elasticity[0][p], p == (int)cases[i].parameter ? cases[i].elasticity : 0.0, 1e-6);
        }
        assert_within(sweep->elasticity[0][CVY_VARIED_BATCH], cases[i].of_batch, 0.03); /* an update has no batch */
        assert_int_equal(sweep->cluster.parameter, cases[i].parameter);
        assert_true(isnan(sweep->elasticity[0][CVY_VARIED_MEMORY]));
        cvy_sweep_destroy(&sweep);
        cvy_machine_destroy(&machine);
    }
    cvy_model_destroy(&model);
}

/*
 * Data parallelism without overlap on a ring: T = C + 2 (p - 1) a + 2 (p - 1) / p n / B. C is what one rank takes, half
 * of it arithmetic, say c_a; elasticities are c_a / T, (C - c_a) / T, 2 (p - 1) / p n / B / T and -2 (p - 1) a / T.
 */
static void test_elasticities_are_shares_of_the_iteration(void **state)
{
    (void)state;
    cvy_model *model = open_model("alexnet");
    cvy_machine *machine = make_machine(MADE_UP_MACHINE, 10.0, 500.0);
    cvy_sweep_options options = make_options(32, "data");
    machine->device.memory_Bps = none;
    add_ranks(&options, 1, 64);
    cvy_sweep *sweep = study(model, machine, &options);
    double c = cvy_sweep_get_points(sweep, 0)[0].asked.iteration_s, bytes = 4.0 * (double)count_weights(model);
    for (int i = 0; i < options.rank_counts; i++) {
        double p = (double)options.ranks[i], ring = 2.0 * (p - 1.0) / p * bytes / 10e9, steps = 2.0 * (p - 1.0) * 5e-4;
        double t = c + ring + steps;
        assert_near(cvy_sweep_get_points(sweep, 0)[i].asked.iteration_s, t, 1e-6);
        assert_near(cvy_sweep_get_points(sweep, 0)[i].efficiency, c / t, 1e-6);
        assert_within(sweep->elasticity[i][CVY_VARIED_ARITHMETIC], c / t, 2e-3);
        assert_within(sweep->elasticity[i][CVY_VARIED_LINK_BANDWIDTH], ring / t, 2e-3);
        assert_within(sweep->elasticity[i][CVY_VARIED_LINK_LATENCY], -steps / t, 2e-3);
    }
    assert_int_equal(sweep->device.parameter, CVY_VARIED_ARITHMETIC);
    assert_int_equal(sweep->cluster.parameter, CVY_VARIED_LINK_LATENCY);
    assert_int_equal(sweep->cluster.ranks, 64);
    cvy_sweep_destroy(&sweep);
    cvy_machine_destroy(&machine);
    cvy_model_destroy(&model);
}

/* ---- points ---- */

static cvy_estimate estimate_alone(const cvy_model *model, const cvy_machine *machine, cvy_precision precision,
                                   const char *strategy, int64_t ranks, int64_t batch)
{
    cvy_sweep_options o = make_options(batch, strategy);
    cvy_estimate_question question = {.strategy = parse_strategy(model, strategy, ranks)};
    cvy_oracle *oracle = NULL;
    cvy_estimate estimate;
    o.oracle.batch = batch;
    o.oracle.precision = precision;
    assert_int_equal(cvy_oracle_create(model, machine, &o.oracle, &oracle), CVY_OK);
    assert_int_equal(cvy_oracle_estimate(oracle, &question, &estimate), CVY_OK);
    cvy_oracle_destroy(&oracle);
    return estimate;
}

static void assert_same(const cvy_estimate *found, const cvy_estimate *expected)
{
    assert_int_equal(found->feasible, expected->feasible);
    if (expected->feasible) {
        assert_true(found->iteration_s == expected->iteration_s);
        assert_memory_equal(found->part_s, expected->part_s, sizeof expected->part_s);
        assert_int_equal(found->total_bytes, expected->total_bytes);
    } else {
        assert_string_equal(found->why_not, expected->why_not);
    }
}

/* Plans that are priced again give what an estimate by itself gives, bit by bit, where the machine is made by hand. */
static void test_points_are_estimates_by_themselves(void **state)
{
    (void)state;
    static const char *const strategies[] = {"data", "spatial", "channel", "pipeline", "filter"};
    cvy_model *model = open_model("resnet18:size=64");
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        cvy_machine *machine = make_machine(MADE_UP_MACHINE, 10.0, 5.0);
        cvy_sweep_options options = make_options(8, strategies[i]);
        add_ranks(&options, 2, 8);
        add_factors(&options, CVY_VARIED_ARITHMETIC, 4.0, 4.0);
        add_factors(&options, CVY_VARIED_LINK_LATENCY, 0.5, 0.5);
        add_factors(&options, CVY_VARIED_BATCH, 2.0, 2.0);
        add_factors(&options, CVY_VARIED_MEMORY_BANDWIDTH, 0.125, 0.125);
        cvy_sweep *sweep = study(model, machine, &options);
        for (int r = 0; r < options.rank_counts; r++) {
            int64_t p = options.ranks[r];
            const cvy_precision single = CVY_PRECISION_FP32;
            cvy_estimate own = estimate_alone(model, machine, single, strategies[i], p, 8 * p);
            cvy_estimate batch = estimate_alone(model, machine, single, strategies[i], p, 16 * p);
            cvy_machine fast = *machine, near = *machine, slow = *machine;
            fast.device.peak_flop_per_s[single] *= 4.0;
            near.level[0].latency_s *= 0.5;
            slow.device.memory_Bps /= 8.0;
            cvy_estimate faster = estimate_alone(model, &fast, single, strategies[i], p, 8 * p);
            cvy_estimate nearer = estimate_alone(model, &near, single, strategies[i], p, 8 * p);
            cvy_estimate slower = estimate_alone(model, &slow, single, strategies[i], p, 8 * p);
            assert_same(&cvy_sweep_get_points(sweep, 0)[r].asked, &own);
            assert_same(&cvy_sweep_get_points(sweep, 1)[r].asked, &faster);
            assert_same(&cvy_sweep_get_points(sweep, 2)[r].asked, &nearer);
            assert_same(&cvy_sweep_get_points(sweep, 3)[r].asked, &batch);
            assert_same(&cvy_sweep_get_points(sweep, 4)[r].asked, &slower);
        }
        cvy_sweep_destroy(&sweep);
        cvy_machine_destroy(&machine);
    }
    cvy_model_destroy(&model);
}

/* 5 parameters of 5 values on 11 numbers of ranks are 275 points, beside 11 of the machine as it is. */
static void test_a_study_has_all_its_points(void **state)
{
    (void)state;
    cvy_model *model = open_model("resnet50");
    cvy_machine *machine = NULL;
    cvy_sweep_options options = make_options(32, "data");
    assert_int_equal(cvy_machine_open("abci", &machine), CVY_OK);
    add_ranks(&options, 1, 1024);
    for (int p = CVY_VARIED_BATCH; p < CVY_VARIED_MEMORY; p++) {
        add_factors(&options, (cvy_varied)p, 0.25, 4.0);
    }
    cvy_sweep *sweep = study(model, machine, &options);
    assert_int_equal(sweep->points, 11 + 5 * 5 * 11);
    assert_true(sweep->estimates >= 275);
    for (int i = 0; i < sweep->settings; i++) {
        for (int r = 0; r < 11; r++) {
            const cvy_sweep_point *point = &cvy_sweep_get_points(sweep, i)[r];
            assert_int_equal(point->ranks, 1 << r);
            assert_true(point->asked.feasible && point->asked.iteration_s > 0.0);
            assert_true(point->limit != NULL && point->efficiency > 0.0 && point->efficiency <= 1.0 + 1e-9);
        }
    }
    /* More of a rate is never slower, less of a latency neither; a value of x1 is the machine as it is. */
    for (int p = CVY_VARIED_ARITHMETIC; p < CVY_VARIED_MEMORY; p++) {
        double sign = p == CVY_VARIED_LINK_LATENCY ? -1.0 : 1.0;
        for (int r = 0; r < 11; r++) {
            for (double factor = 0.25; factor < 4.0; factor *= 2.0) {
                int less = find_setting(sweep, (cvy_varied)p, factor), more = find_setting(sweep, (cvy_varied)p,
                                                                                          2.0 * factor);
                double before = cvy_sweep_get_points(sweep, less)[r].asked.images_per_s;
                double after = cvy_sweep_get_points(sweep, more)[r].asked.images_per_s;
                assert_true(sign * (after - before) >= -1e-9 * before);
            }
            assert_same(&cvy_sweep_get_points(sweep, find_setting(sweep, (cvy_varied)p, 1.0))[r].asked,
                        &cvy_sweep_get_points(sweep, 0)[r].asked);
        }
    }
    cvy_sweep_destroy(&sweep);
    cvy_machine_destroy(&machine);
    cvy_model_destroy(&model);
}

/* The best is never slower than what was asked for, and fits: into 64 GB; into a thousandth of them nothing does. */
static void test_the_best_fits_and_is_never_slower(void **state)
{
    (void)state;
    cvy_model *model = open_model("vgg11");
    cvy_machine *machine = make_machine(MADE_UP_MACHINE, 1.0, 5.0);
    cvy_sweep_options options = make_options(16, "data");
    options.strategy[options.strategies++] = "filter";
    options.search = true;
    add_ranks(&options, 1, 16);
    add_factors(&options, CVY_VARIED_MEMORY, 1e-3, 1e-3);
    add_factors(&options, CVY_VARIED_LINK_BANDWIDTH, 0.25, 4.0);
    cvy_sweep *sweep = study(model, machine, &options);
    bool other = false;
    for (int i = 0; i < sweep->settings; i++) {
        for (int r = 0; r < options.rank_counts; r++) {
            const cvy_sweep_point *point = &cvy_sweep_get_points(sweep, i)[r];
            if (i == 1) {
                assert_true(point->asked.over_memory && !point->best.feasible);
                continue;
            }
            assert_true(point->best.feasible && !point->best.over_memory);
            assert_true(point->best.iteration_s <= point->asked.iteration_s);
            other = other || point->best.iteration_s < point->asked.iteration_s;
        }
    }
    assert_true(other); /* over links of 1 GB/s, 531 MB of gradients are not worth it */
    cvy_sweep_destroy(&sweep);
    cvy_machine_destroy(&machine);
    cvy_model_destroy(&model);
}

/* ---- a published sketch ---- */

/*
 * spec/scaling-model.md 2.2: convolutions and dense layers at 70 % of 15.7 TFLOP/s, the rest free, a blocking ring of
 * 32 ranks with 5 us a step, 64 samples a rank. Milliseconds, efficiencies at 10, 100, 200 Gbit/s, that at 100 with
 * twice the arithmetic, and what twice the arithmetic, links and memory bandwidth gain at 100. Its ResNet-50 has 0.3 %
 * more weights.
 */
static void test_the_sketch_of_the_study(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double compute_ms, ring_ms[3], efficiency[3], faster_efficiency, gain[3];
    } nets[] = {
        {"vgg16", 539.5, {858.0, 86.1, 43.2}, {0.39, 0.86, 0.93}, 0.76, {1.75, 1.07, 1.00}},
        {"resnet50", 141.5, {159.0, 16.2, 8.3}, {0.47, 0.90, 0.95}, 0.81, {1.81, 1.05, 1.00}},
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        cvy_model *model = open_model(nets[i].model);
        cvy_machine *machine = make_machine(MADE_UP_MACHINE, 12.5, 5.0);
        cvy_sweep_options options = make_options(64, "data");
        machine->device.peak_flop_per_s[CVY_PRECISION_FP32] = 15.7e12;
        machine->device.memory_Bps = none;
        machine->device.efficiencies = 3;
        for (int k = 0; k < 3; k++) {
            static const int kernels[] = {CVY_OP_CONVOLUTION, CVY_OP_DENSE, CVY_ANY};
            machine->device.efficiency[k] = (cvy_efficiency){.kernel = kernels[k], .pass = CVY_ANY,
                                                             .precision = CVY_ANY, .peak = k < 2 ? 0.7 : none,
                                                             .bandwidth = 1.0};
        }
        options.ranks[options.rank_counts++] = 1;
        options.ranks[options.rank_counts++] = 32;
        add_factors(&options, CVY_VARIED_ARITHMETIC, 2.0, 2.0);
        add_factors(&options, CVY_VARIED_LINK_BANDWIDTH, 2.0, 2.0);
        add_factors(&options, CVY_VARIED_MEMORY_BANDWIDTH, 2.0, 2.0);
        options.axis[1].value[1] = (cvy_sweep_value){.quantity = 1.25e9};
        options.axis[1].values = 2;
        cvy_sweep *sweep = study(model, machine, &options);
        const cvy_sweep_point *own = cvy_sweep_get_points(sweep, 0), *fast = cvy_sweep_get_points(sweep, 1);
        const cvy_sweep_point *at[3] = {cvy_sweep_get_points(sweep, 3), own, cvy_sweep_get_points(sweep, 2)};
        const cvy_sweep_point *more[3] = {fast, at[2], cvy_sweep_get_points(sweep, 4)};
        assert_near(1e3 * own[0].asked.iteration_s, nets[i].compute_ms, 0.005);
        for (int k = 0; k < 3; k++) {
            assert_near(1e3 * at[k][1].asked.part_s[CVY_PHASE_GRADIENT_EXCHANGE], nets[i].ring_ms[k], 0.01);
            assert_within(at[k][1].efficiency, nets[i].efficiency[k], 0.01);
            assert_within(more[k][1].asked.images_per_s / own[1].asked.images_per_s, nets[i].gain[k], 0.01);
        }
        assert_within(fast[1].efficiency, nets[i].faster_efficiency, 0.01);
        cvy_sweep_destroy(&sweep);
        cvy_machine_destroy(&machine);
        cvy_model_destroy(&model);
    }
}

/* ---- parameters ---- */

static const char two_levels[] =
    "name: two\nsummary: a machine of a test\nnodes: 4\ndevices-per-node: 4\n"
    "device: {name: d, kind: gpu, cores: 80, memory: 64 GB, memory-bandwidth: 1 TB/s,\n"
    "  peak: {fp32: 10 TFLOP/s, fp16: 80 TFLOP/s}}\n"
    "links:\n"
    "  - {name: inside, connects: device, endpoints: 4, bandwidth: %d GB/s, latency: 1 us}\n"
    "  - {name: net, connects: inside, endpoints: 4, bandwidth: 10 GB/s, latency: 5 us}\n";

/* A factor is of all links; a quantity is that of the links between nodes, and leaves those inside alone. */
static void test_quantities_are_of_links_between_nodes(void **state)
{
    (void)state;
    cvy_machine *machine = make_machine(two_levels, 100);
    const cvy_precision single = CVY_PRECISION_FP32;
    assert_near(cvy_varied_get(CVY_VARIED_LINK_BANDWIDTH, machine, single), 10e9, 1e-12);
    cvy_varied_scale(CVY_VARIED_LINK_BANDWIDTH, 0.5, machine);
    assert_near(machine->level[0].bandwidth_Bps, 50e9, 1e-12);
    assert_near(machine->level[1].bandwidth_Bps, 5e9, 1e-12);
    cvy_varied_set(CVY_VARIED_LINK_BANDWIDTH, 1.25e9, single, machine);
    assert_near(machine->level[0].bandwidth_Bps, 50e9, 1e-12);
    assert_near(machine->level[1].bandwidth_Bps, 1.25e9, 1e-12);
    cvy_varied_set(CVY_VARIED_LINK_LATENCY, 1e-5, single, machine);
    assert_near(machine->level[0].latency_s, 1e-6, 1e-12);
    assert_near(machine->level[1].latency_s, 1e-5, 1e-12);
    cvy_varied_set(CVY_VARIED_ARITHMETIC, 20e12, single, machine);
    assert_near(machine->device.peak_flop_per_s[CVY_PRECISION_FP16], 160e12, 1e-12);
    cvy_varied_set(CVY_VARIED_MEMORY, 16e9, single, machine);
    assert_int_equal(machine->device.memory_bytes, 16000000000);
    cvy_machine_destroy(&machine);
}

/* All together, the first axis slowest, batch in front; strong scaling: the batch is that of all ranks. */
static void test_a_product_has_all_values_with_all_others(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    cvy_machine *machine = make_machine(two_levels, 100);
    cvy_sweep_options options = make_options(64, "data");
    options.batch_per_rank = false;
    options.cross = true;
    add_ranks(&options, 1, 4);
    add_factors(&options, CVY_VARIED_LINK_BANDWIDTH, 1.0, 4.0);
    add_factors(&options, CVY_VARIED_BATCH, 1.0, 2.0);
    cvy_sweep *sweep = study(model, machine, &options);
    assert_int_equal(sweep->settings, 6);
    for (int i = 0; i < 6; i++) {
        const cvy_sweep_point *point = cvy_sweep_get_points(sweep, i);
        assert_int_equal(point[2].batch, i < 3 ? 64 : 128);
        assert_near(sweep->setting[i].figure[CVY_VARIED_LINK_BANDWIDTH], 10e9 * (1 << i % 3), 1e-12);
        assert_near(point[0].asked.images_per_s * 4.0, point[2].ideal_images_per_s, 1e-12);
    }
    cvy_sweep_destroy(&sweep);
    cvy_machine_destroy(&machine);
    cvy_model_destroy(&model);
}

static void expect_refusal(const cvy_model *model, const cvy_machine *machine, const cvy_sweep_options *options,
                           const char *words)
{
    cvy_sweep *sweep = NULL;
    assert_int_equal(cvy_sweep_create(model, machine, options, &sweep), CVY_ERR_INPUT);
    assert_null(sweep);
    if (!strstr(cvy_error_message(), words)) {
        fail_msg("'%s' lacks '%s'", cvy_error_message(), words);
    }
}

static void test_what_cannot_be_studied_is_refused(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    cvy_machine *machine = make_machine(two_levels, 100);
    cvy_sweep_options options = make_options(64, "data");
    add_ranks(&options, 1, 32);
    expect_refusal(model, machine, &options, "32 ranks: machine two has 16 devices");
    options.rank_counts = 1;
    options.strategy[0] = "dta";
    expect_refusal(model, machine, &options, "data");
    options.strategy[0] = "data";
    options.cross = true;
    for (int p = CVY_VARIED_BATCH; p < CVY_VARIED_MEMORY; p++) {
        add_factors(&options, (cvy_varied)p, 1.0, 0x1p40);
    }
    expect_refusal(model, machine, &options, "115,856,201 points");
    options.axes = 1;
    options.axis[0].values = 1;
    options.axis[0].value[0].factor = 1.0 / 128.0;
    expect_refusal(model, machine, &options, "less than one");
    options.axis[0] = (cvy_sweep_axis){.parameter = CVY_VARIED_PRECISION, .values = 1,
                                       .value = {{.quantity = CVY_PRECISION_BF16}}};
    expect_refusal(model, machine, &options, "no rate at bf16");
    cvy_machine_destroy(&machine);
    cvy_model_destroy(&model);
}

/* Every allocation in turn, sparsely: a failure is told, and nothing is lost. */
static void test_running_out_of_memory_is_told(void **state)
{
    (void)state;
    cvy_model *model = open_model("lenet5");
    cvy_machine *machine = make_machine(MADE_UP_MACHINE, 10.0, 5.0);
    cvy_sweep_options options = make_options(8, "data");
    options.search = true;
    add_ranks(&options, 2, 4);
    add_factors(&options, CVY_VARIED_ARITHMETIC, 0.5, 2.0);
    cvy_status status = CVY_ERR_MEMORY;
    for (int64_t i = 0; status != CVY_OK; i += 4 + i / 4) {
        cvy_sweep *sweep = NULL;
        cvy_memory_fail_after(i);
        status = cvy_sweep_create(model, machine, &options, &sweep);
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK || status == CVY_ERR_MEMORY);
        assert_true((status == CVY_OK) == (sweep != NULL));
        cvy_sweep_destroy(&sweep);
    }
    cvy_machine_destroy(&machine);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_alone_takes_time_has_the_elasticity),
        cmocka_unit_test(test_elasticities_are_shares_of_the_iteration),
        cmocka_unit_test(test_points_are_estimates_by_themselves),
        cmocka_unit_test(test_a_study_has_all_its_points),
        cmocka_unit_test(test_the_best_fits_and_is_never_slower),
        cmocka_unit_test(test_the_sketch_of_the_study),
        cmocka_unit_test(test_quantities_are_of_links_between_nodes),
        cmocka_unit_test(test_a_product_has_all_values_with_all_others),
        cmocka_unit_test(test_what_cannot_be_studied_is_refused),
        cmocka_unit_test(test_running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
