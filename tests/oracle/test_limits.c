/* Limits against shares by hand, what-ifs against closed forms of the iteration, and the sentences word by word. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "made_up.h"
#include "oracle/limits.h"

/* A model on a machine, and what was found there. */
typedef struct scene {
    cvy_model *model;
    cvy_machine *machine;
    cvy_oracle *oracle;
    cvy_estimate_question question;
    cvy_estimate estimate;
    cvy_limit limit[CVY_MAX_LIMITS];
    int limits;
} scene;

static void open_scene(scene *s, const char *model, cvy_machine *machine, int64_t batch)
{
    *s = (scene){.model = open_model(model), .machine = machine};
    cvy_oracle_options options = {.batch = batch, .precision = CVY_PRECISION_FP32, .bucket_bytes = -1};
    assert_int_equal(cvy_oracle_create(s->model, machine, &options, &s->oracle), CVY_OK);
}

static void close_scene(scene *s)
{
    cvy_oracle_destroy(&s->oracle);
    cvy_machine_destroy(&s->machine);
    cvy_model_destroy(&s->model);
}

static void find(scene *s, bool what_if)
{
    assert_int_equal(cvy_limits_find(s->oracle, &s->question, &s->estimate, what_if, s->limit, &s->limits), CVY_OK);
}

static void look_again(scene *s, const char *strategy, int64_t ranks, cvy_recompute recompute)
{
    s->question = (cvy_estimate_question){.strategy = parse_strategy(s->model, strategy, ranks),
                                          .recompute = recompute};
    assert_int_equal(cvy_oracle_estimate(s->oracle, &s->question, &s->estimate), CVY_OK);
    if (!s->estimate.feasible) {
        fail_msg("%s: %s", strategy, s->estimate.why_not);
    }
    find(s, true);
}

static void look(scene *s, const char *strategy, int64_t ranks)
{
    look_again(s, strategy, ranks, CVY_RECOMPUTE_NONE);
}

static const cvy_limit *find_limit(const scene *s, const char *name)
{
    for (int i = 0; i < s->limits; i++) {
        if (strcmp(s->limit[i].name, name) == 0) {
            return &s->limit[i];
        }
    }
    return NULL;
}

/* ---- shares by hand ---- */

/*
 * Of 1 s: gradients 0.12; layers 0.17 less 0.04 between stages; point to point 0.05 + 0.04 is under a tenth; input
 * 0.15; update 0.04 of 0.18 + 0.25 + 0.04; idle 0.04 + 0.96 * 0.1 / 1.1; 5 flop for 4; 70 bytes of 100; an arena of 105
 * for 100 is under a tenth. 2 of 16 samples and 2 of more stages are a small part of what there could be. By how far
 * over: 2.5, 1.70, 1.5, 1.4, 1.3, 1.27, 1.2.
 */
static void test_shares_and_their_order_are_those_by_hand(void **state)
{
    (void)state;
    static const struct { const char *name; double share, threshold;
    } expected[] = {
        {"computation redundancy", 0.25, 0.1},   {"weight update", 0.04 / 0.47, 0.05},
        {"I/O and staging", 0.15, 0.1},          {"memory redundancy", 0.7, 0.5},
        {"layer-wise communication", 0.13, 0.1}, {"workload balance", 0.04 + 0.96 * 0.1 / 1.1, 0.1},
        {"gradient exchange", 0.12, 0.1},
    };
    enum { EXPECTED = sizeof expected / sizeof expected[0] };
    scene s;
    open_scene(&s, "lenet5", make_machine(MADE_UP_MACHINE, 10.0, 1.0), 16);
    s.question = (cvy_estimate_question){.strategy = parse_strategy(s.model, "stage=2,sample=2", 4)};
    s.estimate = (cvy_estimate){.strategy = s.question.strategy,
                                .feasible = true,
                                .iteration_s = 1.0,
                                .part_s = {[CVY_PHASE_IO] = 0.15,
                                           [CVY_PHASE_FORWARD] = 0.18,
                                           [CVY_PHASE_BACKWARD] = 0.25,
                                           [CVY_PHASE_HALO] = 0.05,
                                           [CVY_PHASE_REDISTRIBUTE] = 0.17,
                                           [CVY_PHASE_GRADIENT_EXCHANGE] = 0.12,
                                           [CVY_PHASE_UPDATE] = 0.04,
                                           [CVY_TIME_BUBBLE] = 0.03,
                                           [CVY_TIME_WAIT] = 0.01},
                                .transfer_s = 0.04,
                                .balance = 0.1,
                                .flop = 5,
                                .serial_flop = 4,
                                .redundant_bytes = 70,
                                .total_bytes = 100,
                                .transient_bytes = 105,
                                .live_bytes = 100};
    find(&s, false);
    assert_int_equal(s.limits, EXPECTED);
    for (int i = 0; i < EXPECTED; i++) {
        assert_string_equal(s.limit[i].name, expected[i].name);
        assert_near(s.limit[i].share, expected[i].share, 1e-12);
        assert_near(s.limit[i].threshold, expected[i].threshold, 1e-12);
        assert_true(s.limit[i].what[0] && !s.limit[i].lift[0]);
    }
    assert_string_equal(find_limit(&s, "workload balance")->what,
                        "an average rank stands idle 127 ms of 1 s: slowest stage 10 % over the mean, bubble 30 ms, "
                        "wait 10 ms");
    assert_string_equal(find_limit(&s, "computation redundancy")->what,
                        "5 FLOP on each of 4 ranks, 4 FLOP if nothing were done twice");
    close_scene(&s);
}

static void test_what_is_not_feasible_has_no_limits(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "lenet5", make_machine(MADE_UP_MACHINE, 10.0, 1.0), 2);
    s.question = (cvy_estimate_question){.strategy = parse_strategy(s.model, "data", 4)};
    assert_int_equal(cvy_oracle_estimate(s.oracle, &s.question, &s.estimate), CVY_OK);
    assert_false(s.estimate.feasible);
    s.limits = -1;
    find(&s, true);
    assert_int_equal(s.limits, 0);
    close_scene(&s);
}

/* LeNet-5's first convolution makes 24 rows of 28: more shares than that would be empty. Of 64 devices. */
static void test_ranks_are_held_against_the_most_that_can_be(void **state)
{
    (void)state;
    static const struct { const char *strategy; int64_t ranks; double share; const char *what; } cases[] = {
        {"data", 24, 24.0 / 32, "24 ranks: sample 24 of at most 32"},
        {"data", 32, 1.0, "32 ranks: sample 32 of at most 32"},
        {"height=20", 20, 20.0 / 24, "20 ranks: height 20 of at most 24"},
        {"sample=16,height=4", 64, 1.0,
         "64 ranks: sample 16 of at most 32, height 4 of at most 24; the machine has 64"},
    };
    scene s;
    open_scene(&s, "lenet5", make_machine(MADE_UP_MACHINE, 10.0, 1.0), 32);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        s.question = (cvy_estimate_question){.strategy = parse_strategy(s.model, cases[i].strategy, cases[i].ranks)};
        s.estimate = (cvy_estimate){.strategy = s.question.strategy, .feasible = true, .iteration_s = 1.0};
        find(&s, false);
        assert_int_equal(s.limits, 1);
        assert_string_equal(s.limit[0].name, "number of ranks");
        assert_near(s.limit[0].share, cases[i].share, 1e-12);
        assert_string_equal(s.limit[0].what, cases[i].what);
    }
    close_scene(&s);
}

/* ---- what-ifs ---- */

/*
 * Nothing overlaps and messages start at once, so an iteration is C + G / f with f times the bandwidth, C what is no
 * exchange and G the exchange as it is: at 2x it is G / 2 faster, and G / f is a tenth of all at f = 9 G / C.
 */
static void test_bandwidth_lifts_the_gradient_exchange_by_the_closed_form(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "alexnet", make_machine(MADE_UP_MACHINE, 5.0, 0.0), 512);
    look(&s, "data", 8);
    double exchange_s = s.estimate.part_s[CVY_PHASE_GRADIENT_EXCHANGE], rest_s = s.estimate.iteration_s - exchange_s;
    const cvy_limit *limit = find_limit(&s, "gradient exchange");
    assert_non_null(limit);
    assert_near(limit->share, exchange_s / s.estimate.iteration_s, 1e-9);
    assert_near(limit->faster, exchange_s / 2 / s.estimate.iteration_s, 1e-6);
    assert_near(limit->gone_at, 9 * exchange_s / rest_s, 0.015);
    char lift[CVY_LIMIT_TEXT];
    snprintf(lift, sizeof lift, "with 2x link bandwidth %.0f %% faster, limit gone at %.2gx", 100 * limit->faster,
             limit->gone_at);
    assert_string_equal(limit->lift, lift);
    close_scene(&s);
}

/* The same of latency: with bandwidth without end, L / f is a tenth at f = 9 L / C. */
static void test_latency_is_told_where_latency_limits(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "lenet5", make_machine(MADE_UP_MACHINE, 1e6, 200.0), 64);
    look(&s, "data", 8);
    double exchange_s = s.estimate.part_s[CVY_PHASE_GRADIENT_EXCHANGE], rest_s = s.estimate.iteration_s - exchange_s;
    const cvy_limit *limit = find_limit(&s, "gradient exchange");
    assert_non_null(limit);
    assert_near(limit->faster, exchange_s / 2 / s.estimate.iteration_s, 1e-4);
    assert_near(limit->gone_at, 9 * exchange_s / rest_s, 0.015);
    assert_non_null(strstr(limit->lift, "with 0.5x link latency "));
    close_scene(&s);
}

/* 64 filters for 60 ranks leave two to some. No peak makes them fewer: the share is one of operations. */
static void test_a_limit_that_nothing_lifts_is_never_gone(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "alexnet", make_machine(MADE_UP_MACHINE, 1000.0, 0.0), 64);
    look(&s, "filter", 60);
    const cvy_limit *limit = find_limit(&s, "computation redundancy");
    assert_non_null(limit);
    assert_true(isinf(limit->gone_at));
    assert_non_null(strstr(limit->lift, "with 2x peak rate "));
    assert_non_null(strstr(limit->lift, ", limit never gone"));
    close_scene(&s);
}

/* What is made again is done twice. The what-if is what the same oracle says when it is asked without. */
static void test_keeping_activations_lifts_recomputation(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "resnet50:size=64", make_machine(MADE_UP_MACHINE, 100.0, 0.0), 64);
    look_again(&s, "data", 2, CVY_RECOMPUTE_ALL);
    cvy_estimate kept;
    s.question.recompute = CVY_RECOMPUTE_NONE;
    assert_int_equal(cvy_oracle_estimate(s.oracle, &s.question, &kept), CVY_OK);
    assert_true(kept.iteration_s < s.estimate.iteration_s - s.estimate.part_s[CVY_PHASE_RECOMPUTE] / 2);
    const cvy_limit *limit = find_limit(&s, "computation redundancy");
    assert_non_null(limit);
    assert_near(limit->faster, 1 - kept.iteration_s / s.estimate.iteration_s, 1e-9);
    assert_near(limit->gone_at, 1.0, 0.0);
    assert_non_null(strstr(limit->lift, "with all activations kept "));
    assert_non_null(strstr(limit->lift, ", limit gone"));
    close_scene(&s);
}

/* 32 samples are what 32 ranks can have; of twice as many the 32 are half, and a half is no limit. */
static void test_a_larger_batch_lifts_the_number_of_ranks(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "lenet5", make_machine(MADE_UP_MACHINE, 10.0, 1.0), 32);
    look(&s, "data", 32);
    const cvy_limit *limit = find_limit(&s, "number of ranks");
    assert_non_null(limit);
    assert_near(limit->gone_at, 2.0, 0.0);
    assert_non_null(strstr(limit->lift, "with 2x batch "));
    assert_non_null(strstr(limit->lift, ", limit gone at 2x"));
    close_scene(&s);
}

/* Four devices a node behind one port: four rings of gradients, one for each place in the node, share it. */
static void test_flows_that_share_a_port_are_congestion(void **state)
{
    (void)state;
    static const char shared[] =
        "name: shared\nsummary: a machine of a test\nnodes: 4\ndevices-per-node: 4\n"
        "device: {name: d, kind: gpu, cores: 80, memory: 64 GB, memory-bandwidth: 1 TB/s,\n"
        "  peak: {fp32: 10 TFLOP/s}}\n"
        "links:\n"
        "  - {name: inside, connects: device, endpoints: 4, bandwidth: 1000 GB/s, latency: 0 us}\n"
        "  - {name: net, connects: inside, endpoints: 4, bandwidth: 5 GB/s, latency: 0 us, ports: %d}\n"
        "collectives: [{collective: all-reduce, algorithm: ring}]\n";
    static const int ports[] = {1, 4};
    for (int i = 0; i < 2; i++) {
        scene s;
        open_scene(&s, "alexnet", make_machine(shared, ports[i]), 256);
        look(&s, "sample=4,channel=4,channel-cut=filter", 16);
        const cvy_limit *limit = find_limit(&s, "network congestion");
        double exchange_s = s.estimate.part_s[CVY_PHASE_GRADIENT_EXCHANGE];
        assert_int_equal(limit != NULL, ports[i] == 1);
        if (limit) { /* three of the four quarters */
            assert_near(limit->share, 0.75 * exchange_s / s.estimate.iteration_s, 0.01);
        }
        close_scene(&s);
    }
}

/* ---- sentences ---- */

typedef struct tale {
    cvy_candidate candidate[3];
    cvy_search search;
    char text[CVY_WHY_TEXT];
} tale;

/* data, 16 ranks; sample=4,height=4; filter. Bars of 9, 5 and 5 %. */
static void begin_tale(tale *t, double data_s, double mixed_s)
{
    static const char *const strategies[] = {"data", "sample=4,height=4", "filter"};
    const double seconds[] = {data_s, mixed_s, 2.0};
    static const int64_t space[3] = {1, 32, 32};
    *t = (tale){.search = {.count = 3, .candidate = t->candidate, .options = {.ranks = 16}}};
    for (int i = 0; i < 3; i++) {
        cvy_estimate *e = &t->candidate[i].estimate;
        assert_int_equal(cvy_strategy_parse(strategies[i], 16, space, &e->strategy), CVY_OK);
        e->feasible = t->candidate[i].fits = true;
        e->iteration_s = seconds[i];
        e->strategy.micro_batches = 1; /* as an estimate says of no pipeline: not told */
        e->error_relative = i == 0 ? 0.09 : 0.05;
        e->part_s[CVY_PHASE_FORWARD] = 0.2;
        e->part_s[CVY_PHASE_GRADIENT_EXCHANGE] = seconds[i] - 0.2;
        e->total_bytes = (i + 8) * (int64_t)1000000000;
        e->capacity_bytes = 16 * (int64_t)1000000000;
    }
}

/* 1 - 0.3 / 0.4 is a quarter; the exchange takes 0.2 s and 0.1 s. */
static void test_a_faster_pick_says_by_how_much_and_why(void **state)
{
    (void)state;
    tale t;
    begin_tale(&t, 0.4, 0.3);
    t.search.pick = 1;
    assert_string_equal(cvy_limits_say_why(&t.search, t.text),
                        "sample=4,height=4 is 25 % faster than data (300 ms against 400 ms) because of its "
                        "gradient exchange, 2x smaller, outside the error bar of 9 %");
    t.candidate[1].estimate.part_s[CVY_PHASE_GRADIENT_EXCHANGE] = 0.0;
    cvy_limits_say_why(&t.search, t.text);
    assert_non_null(strstr(t.text, "because it has next to no gradient exchange"));
}

/* 1 - 0.39 / 0.4 is 2.5 %. */
static void test_data_is_kept_inside_the_error_bar(void **state)
{
    (void)state;
    tale t;
    begin_tale(&t, 0.4, 0.39);
    assert_string_equal(cvy_limits_say_why(&t.search, t.text),
                        "data is kept: the fastest other one, sample=4,height=4, is 2.5 % faster, inside the error bar "
                        "of 9 %");
    t.candidate[0].fits = t.candidate[2].fits = false;
    t.candidate[1].estimate.strategy = t.candidate[0].estimate.strategy;
    t.candidate[1].estimate.recompute = CVY_RECOMPUTE_ALL;
    t.search.data = t.search.pick = 1;
    assert_string_equal(cvy_limits_say_why(&t.search, t.text), "data recompute all is the only one that fits");
    begin_tale(&t, 0.4, 0.5);
    assert_string_equal(cvy_limits_say_why(&t.search, t.text),
                        "data is the fastest: the next one, sample=4,height=4, takes 25 % more (500 ms against "
                        "400 ms)");
}

static void test_what_keeps_data_out_is_said(void **state)
{
    (void)state;
    tale t;
    begin_tale(&t, 0.4, 0.5);
    t.search.pick = 1;
    t.candidate[0].fits = false;
    t.candidate[0].estimate.total_bytes = 20100000000;
    assert_string_equal(cvy_limits_say_why(&t.search, t.text),
                        "data does not fit (20.1 GB of 16 GB): sample=4,height=4 is the fastest that fits, 500 ms");
    t.search.data = -1;
    t.candidate[0].estimate.feasible = false;
    snprintf(t.candidate[0].estimate.why_not, CVY_WHY_TEXT, "sample=16 needs a batch of at least 16, got 8");
    assert_string_equal(cvy_limits_say_why(&t.search, t.text),
                        "data cannot be (sample=16 needs a batch of at least 16, got 8): sample=4,height=4 is the "
                        "fastest that fits, 500 ms");
    t.search.pick = -1;
    t.candidate[1].estimate.total_bytes = 17000000000;
    t.candidate[2].estimate.total_bytes = 18000000000;
    assert_string_equal(cvy_limits_say_why(&t.search, t.text),
                        "nothing fits: sample=4,height=4 needs least, 17 GB of 16 GB");
}

/* 8 GB, 9 GB, 10 GB; the pick of a search for memory is judged by bytes. */
static void test_the_objective_is_spoken_of(void **state)
{
    (void)state;
    tale t;
    begin_tale(&t, 0.4, 0.3);
    t.search.options.objective = CVY_OBJECTIVE_MEMORY;
    t.search.pick = 1;
    t.candidate[0].estimate.total_bytes = 12000000000;
    t.candidate[0].estimate.memory_bytes[CVY_BUFFER_ACTIVATIONS] = 11000000000;
    t.candidate[1].estimate.memory_bytes[CVY_BUFFER_ACTIVATIONS] = 8000000000;
    cvy_limits_say_why(&t.search, t.text);
    assert_non_null(strstr(t.text, "sample=4,height=4 is 25 % smaller than data (9 GB against 12 GB) because of its "
                                   "activations, 27 % smaller"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_and_their_order_are_those_by_hand),
        cmocka_unit_test(test_what_is_not_feasible_has_no_limits),
        cmocka_unit_test(test_ranks_are_held_against_the_most_that_can_be),
        cmocka_unit_test(test_bandwidth_lifts_the_gradient_exchange_by_the_closed_form),
        cmocka_unit_test(test_latency_is_told_where_latency_limits),
        cmocka_unit_test(test_a_limit_that_nothing_lifts_is_never_gone),
        cmocka_unit_test(test_keeping_activations_lifts_recomputation),
        cmocka_unit_test(test_a_larger_batch_lifts_the_number_of_ranks),
        cmocka_unit_test(test_flows_that_share_a_port_are_congestion),
        cmocka_unit_test(test_a_faster_pick_says_by_how_much_and_why),
        cmocka_unit_test(test_data_is_kept_inside_the_error_bar),
        cmocka_unit_test(test_what_keeps_data_out_is_said),
        cmocka_unit_test(test_the_objective_is_spoken_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
