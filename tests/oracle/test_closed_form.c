/* The closed forms against the published vectors, sums by hand, and the laws that they must keep. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layer_list.h"

enum { STRATEGIES = 7 };
static const char *const strategy_names[STRATEGIES] = {"data",     "spatial",     "filter",      "channel",
                                                       "pipeline", "data+filter", "data+spatial"};

static void assert_close(double found, double expected, double relative, const char *what)
{
    if (!(fabs(found - expected) <= relative * fabs(expected))) {
        fail_msg("%s: found %.9g, expected %.9g", what, found, expected);
    }
}

static cvy_closed_form estimate(const char *strategy, const cvy_closed_case *what)
{
    cvy_closed_form form;
    assert_int_equal(cvy_closed_form_estimate(cvy_closed_form_find(strategy), what, &form), CVY_OK);
    return form;
}

/* ---- published figures ---- */

/* The list and the profiled seconds of a published model. */
static void read_model(const char *model, layer_list *list)
{
    csv totals;
    char name[64] = "oracle/layers_";
    double sample_s = 0.0;
    open_csv(&totals, "oracle/model_totals.csv");
    while (next_csv_row(&totals)) {
        if (strcmp(csv_text(&totals, "model"), model) == 0) {
            sample_s = csv_number(&totals, "profiled_sec_per_sample_FW_BW_WU");
        }
    }
    assert_true(sample_s > 0.0);
    size_t length = strlen(name);
    for (const char *c = model; *c; c++) {
        name[length++] = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    }
    snprintf(name + length, sizeof name - length, ".csv");
    read_layer_list(name, sample_s, list);
}

/*
 * A row as a question. The lines of hybrids: the row's own is between groups, phi flows share it; that inside is in the
 * words of the variant. NAN where those are not there.
 */
static cvy_closed_case read_case(const csv *row, const layer_list *list)
{
    double inner_s = NAN, inner_s_per_byte = NAN;
    double latency_s = csv_number(row, "alpha_s"), s_per_byte = csv_number(row, "beta_s_per_byte");
    const char *variant = csv_text(row, "variant"), *inside = strstr(variant, "intra alpha");
    cvy_line line = {latency_s, 1.0 / s_per_byte};
    cvy_closed_case what = {.layer = list->layer,
                            .layers = list->layers,
                            .batch = csv_number(row, "B_global"),
                            .ranks = (int)csv_number(row, "p"),
                            .group_ranks = (int)csv_number(row, "p2"),
                            .item_bytes = 4.0,
                            .layerwise_rounds = 3,
                            .whole_gradients = strstr(variant, "full weights") != NULL,
                            .inner = line,
                            .outer = cvy_line_share(line, csv_number(row, "phi"))};
    if (inside) {
        assert_int_equal(sscanf(inside, "intra alpha %lf beta %lf", &inner_s, &inner_s_per_byte), 2);
        what.inner = (cvy_line){inner_s, 1.0 / inner_s_per_byte};
    }
    return what;
}

/*
 * Of an epoch. The authors' programs count whole iterations, but for the computation of data, D / B of them. "filter or
 * channel" is both.
 */
static void test_published_vectors_are_reproduced(void **state)
{
    (void)state;
    csv row;
    layer_list list;
    int rows = 0;
    open_csv(&row, "oracle/golden_vectors.csv");
    for (; next_csv_row(&row); rows++) {
        read_model(csv_text(&row, "model"), &list);
        cvy_closed_case what = read_case(&row, &list);
        const char *strategy = csv_text(&row, "strategy");
        bool either = strcmp(strategy, "filter_or_channel") == 0;
        double iterations = csv_number(&row, "D") / what.batch;
        double computed = strcmp(strategy, "data") == 0 ? iterations : ceil(iterations);
        for (int i = 0; i < 1 + either; i++) {
            cvy_closed_form form = estimate(either ? (i ? "channel" : "filter") : strategy, &what);
            assert_close(computed * cvy_closed_form_compute_s(&form), csv_number(&row, "Tcomp_epoch_s"), 1e-6,
                         strategy);
            assert_close(ceil(iterations) * cvy_closed_form_communication_s(&form), csv_number(&row, "Tcomm_epoch_s"),
                         1e-6, strategy);
        }
    }
    assert_true(rows >= 52);
}

/* Sums over the lists as published: what is read here is what the vectors were made of. */
static void test_lists_have_the_published_totals(void **state)
{
    (void)state;
    static const struct { const char *net, *list; } lists[] = {
        {"ALEXNET_ImageNet_profall.net_sc", "oracle/layers_alexnet.csv"},
        {"VGG_ImageNet_profall.net_sc", "oracle/layers_vgg16.csv"},
        {"RESNET50_ImageNet_profall.net_sc", "oracle/layers_resnet50.csv"},
        {"COSMOFLOW.net", "models/layers_cosmoflow512.csv"},
    };
    csv totals;
    layer_list list;
    int found = 0;
    open_csv(&totals, "oracle/model_totals.csv");
    while (next_csv_row(&totals)) {
        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
            if (strcmp(csv_text(&totals, "net_file"), lists[i].net) != 0) {
                continue;
            }
            double w = 0.0, x = 0.0, y = 0.0, y_conv = 0.0, flop = 0.0;
            read_layer_list(lists[i].list, 1.0, &list);
            for (int l = 0; l < list.layers; l++) {
                x += list.layer[l].x_items;
                y += list.layer[l].y_items;
                w += list.layer[l].w_items;
                y_conv += list.conv[l] ? list.layer[l].y_items : 0.0;
                flop += list.flop[l];
            }
            assert_close(x, csv_number(&totals, "sum_x_items_all"), 0.0, lists[i].list);
            assert_close(y, csv_number(&totals, "sum_y_items_all"), 0.0, lists[i].list);
            assert_close(w, csv_number(&totals, "sum_w_items"), 0.0, lists[i].list);
            assert_close(y_conv, csv_number(&totals, "sum_y_items_conv_only"), 0.0, lists[i].list);
            assert_close(flop, csv_number(&totals, "flop_estimate_per_sample"), 0.0, lists[i].list);
            found++;
        }
    }
    assert_int_equal(found, 4);
}

/*
 * Worked figures that are not in the file of vectors. ResNet-50, 16 groups of 4 with 64 samples, an epoch of 1250
 * iterations: 71.903 s of computing, and with whole gradients, 8 flows between nodes, 273.863 s of exchanges; with the
 * convolutions' shards and 4 flows 159.117 s. Channels are cut at most 64 ways.
 */
static void test_worked_figures(void **state)
{
    (void)state;
    layer_list list;
    read_model("ResNet50", &list);
    cvy_line net = {40.31e-6, 12.5e9};
    cvy_closed_case what = {.layer = list.layer, .layers = list.layers, .batch = 1024, .ranks = 64, .group_ranks = 4,
                            .item_bytes = 4.0, .layerwise_rounds = 3, .whole_gradients = true,
                            .inner = {9e-6, 50e9}, .outer = cvy_line_share(net, 8)};
    cvy_closed_form form = estimate("data+filter", &what);
    assert_close(1250 * cvy_closed_form_compute_s(&form), 71.903, 1e-5, "computing");
    assert_close(1250 * cvy_closed_form_communication_s(&form), 273.863, 1e-5, "whole gradients");
    what.whole_gradients = false;
    what.outer = cvy_line_share(net, 4);
    form = estimate("data+filter", &what);
    assert_close(1250 * cvy_closed_form_communication_s(&form), 159.117, 1e-5, "shards");
    assert_true(estimate("filter", &what).most_ranks == 64.0);
    assert_true(estimate("data+filter", &what).most_ranks == 64.0 * 1024);
    assert_true(estimate("data", &what).most_ranks == 1024.0);
    list.layer[0].cut_channels = false; /* of 3 channels */
    assert_true(estimate("channel", &what).most_ranks == 64.0);
    read_model("VGG16", &list);
    what.layers = list.layers;
    assert_true(estimate("filter", &what).most_ranks == 64.0);
}

/* ---- by hand ---- */

/* Three layers: two that can be divided, and a dense one. Round numbers. */
static const cvy_closed_layer three[] = {
    {.x_items = 100, .y_items = 200, .w_items = 10, .forward_s = 1, .backward_s = 2, .update_s = 0.5, .halo_items = 20,
     .cut_channels = true, .cut_space = true, .channels = 4, .filters = 8, .positions = 32, .stage = 0},
    {.x_items = 200, .y_items = 300, .w_items = 20, .forward_s = 3, .backward_s = 4, .update_s = 0.25,
     .cut_channels = true, .cut_space = true, .channels = 8, .filters = 6, .positions = 16, .stage = 0},
    {.x_items = 300, .y_items = 10, .w_items = 3000, .forward_s = 5, .backward_s = 6, .update_s = 0.125, .channels = 6,
     .filters = 10, .positions = 1, .stage = 1},
};

/* 8 samples; 2 bytes an element; 1 ms and 1 kB/s inside, 2 ms and 500 B/s outside, ... */
static const cvy_closed_case hand = {.layer = three, .layers = 3, .batch = 8, .ranks = 4, .group_ranks = 2,
                                     .micro_batches = 4, .item_bytes = 2, .layerwise_rounds = 3, .inner = {1e-3, 1000},
                                     .outer = {2e-3, 500}, .halo = {3e-3, 250}, .gather = {4e-3, 200}};

static void assert_phases(const cvy_closed_form *form, const double *expected, double memory_bytes)
{
    static const cvy_phase phases[] = {CVY_PHASE_FORWARD, CVY_PHASE_BACKWARD, CVY_PHASE_UPDATE, CVY_PHASE_HALO,
                                       CVY_PHASE_REDISTRIBUTE, CVY_PHASE_GRADIENT_EXCHANGE};
    static const char *const names[] = {"forward", "backward", "update", "halo", "redistribute", "gradient exchange"};
    for (int i = 0; i < 6; i++) {
        assert_close(form->phase_s[phases[i]], expected[i], 1e-12, names[i]);
    }
    assert_close(form->memory_bytes, memory_bytes, 1e-12, "memory");
}

/*
 * 4 ranks. Forward 8/4 (1 + 3) + 8 * 5 = 48, backward 8/4 (2 + 4) + 8 * 6 = 60; halos 4 (3e-3 + 8 * 20 * 2 / 250);
 * gather 2 * 3 (4e-3 + 8 * 300 / 4 * 2 / 200); gradients 2 * 3 (1e-3 + 3030 / 4 * 2 / 1000). Memory
 * 2 * 2 (8 (300 + 500) / 4 + 8 * 310 + 3030).
 */
static void test_spatial_by_hand(void **state)
{
    (void)state;
    cvy_closed_form form = estimate("spatial", &hand);
    const double expected[] = {48, 60, 0.875, 4 * (3e-3 + 1.28), 6 * (4e-3 + 6), 6 * (1e-3 + 1.515)};
    assert_phases(&form, expected, 4 * (1600 + 2480 + 3030));
    assert_true(form.most_ranks == 16.0); /* the second layer has 16 positions */
}

/*
 * 2 groups of 2, 4 samples each. Forward 4 (4/2 + 5) = 28, backward 4 (6/2 + 6) = 36; halos 4 (3e-3 + 4 * 20 * 2 /
 * 250); gather 2 (4e-3 + 4 * 300 / 2 * 2 / 200); gradients 2 (1e-3 + 1515 * 2 / 1000) and 2 (2e-3 + 1515 * 2 / 500).
 */
static void test_data_and_spatial_by_hand(void **state)
{
    (void)state;
    cvy_closed_form form = estimate("data+spatial", &hand);
    const double gradients_s = 2 * (1e-3 + 3.03) + 2 * (2e-3 + 6.06);
    const double expected[] = {28, 36, 0.875, 4 * (3e-3 + 0.64), 2 * (4e-3 + 6), gradients_s};
    assert_phases(&form, expected, 4 * (4 * 800 / 2 + 4 * 310 + 3030));
    assert_true(form.most_ranks == 8 * 16.0);
}

/*
 * 4 ranks. Work as spatial; the update of what is cut 0.75 / 4; layerwise 3 * 3 times, of 8/4 * 200 and 8/4 * 300
 * elements of 2 bytes. Activations stay whole: 2 * 2 (8 (300 + 500 + 310) + 30 / 4 + 3000).
 */
static void test_filter_by_hand(void **state)
{
    (void)state;
    cvy_closed_form form = estimate("filter", &hand);
    double expected[] = {48, 60, 0.1875 + 0.125, 0, 9 * (1e-3 + 0.8 + 1e-3 + 1.2), 0};
    assert_phases(&form, expected, 4 * (8880 + 7.5 + 3000));
    assert_true(form.most_ranks == 6.0);
    assert_true(estimate("channel", &hand).most_ranks == 4.0);
    cvy_closed_case with_scatter = hand;
    with_scatter.layerwise_rounds = 2;
    expected[4] *= 2.0 / 3.0;
    form = estimate("channel", &with_scatter);
    assert_phases(&form, expected, 4 * (8880 + 7.5 + 3000));
}

/*
 * 2 groups of 2: layerwise 3 times, of 8/4 * 200 and 8/4 * 300 elements; gradients 2 (2e-3 + 3015 / 2 * 2 / 500) of the
 * shard's 30/2 + 3000.
 */
static void test_data_and_filter_by_hand(void **state)
{
    (void)state;
    cvy_closed_form form = estimate("data+filter", &hand);
    const double expected[] = {28, 36, 0.375 + 0.125, 0, 3 * (1e-3 + 0.8 + 1e-3 + 1.2), 2 * (2e-3 + 6.03)};
    assert_phases(&form, expected, 4 * (4 * 1110 + 15 + 3000));
}

/*
 * 2 stages, 4 micro-batches of 2: forward 8 max(4, 5), backward 8 max(6, 6), bubble a quarter of both; 2 (2 + 4 - 2)
 * messages of 2 * 300 elements. Memory 2 * 2 max(8 * 800 + 30, 8 * 310 + 3000).
 */
static void test_pipeline_by_hand(void **state)
{
    (void)state;
    cvy_closed_case what = hand;
    what.ranks = 2;
    cvy_closed_form form = estimate("pipeline", &what);
    const double expected[] = {40, 48, 0.75, 0, 8 * (1e-3 + 1.2), 0};
    assert_phases(&form, expected, 4 * 6430);
    assert_close(form.bubble_s, 22, 1e-12, "bubble");
    assert_close(cvy_closed_form_compute_s(&form), 110.75, 1e-12, "computing");
    assert_true(form.most_ranks == 3.0);
}

/* Of the first two layers alone: what the last one makes is not gathered. 3 * 3 (1e-3 + 8/4 * 200 * 2 / 1000) stays. */
static void test_the_last_layer_is_not_gathered(void **state)
{
    (void)state;
    cvy_closed_case what = hand;
    what.layers = 2;
    assert_close(estimate("filter", &what).phase_s[CVY_PHASE_REDISTRIBUTE], 9 * (1e-3 + 0.8), 1e-12, "filter");
    assert_true(estimate("spatial", &what).phase_s[CVY_PHASE_REDISTRIBUTE] == 0.0);
}

/* A 3x3 kernel needs one row of each neighbour, 7x7 three, a 2x2 pooling none. */
static void test_halos_are_half_a_kernel(void **state)
{
    (void)state;
    assert_true(cvy_closed_halo_items(1, 50) == 0.0);
    assert_true(cvy_closed_halo_items(2, 50) == 0.0);
    assert_true(cvy_closed_halo_items(3, 50) == 50.0);
    assert_true(cvy_closed_halo_items(7, 50) == 150.0);
}

/* ---- laws ---- */

/* Serial: 8 * 9 forward, 8 * 12 backward, and nothing to say. */
static void test_one_rank_is_serial(void **state)
{
    (void)state;
    cvy_closed_layer one_stage[3];
    memcpy(one_stage, three, sizeof three);
    one_stage[2].stage = 0;
    cvy_closed_case what = hand;
    what.layer = one_stage;
    what.ranks = what.group_ranks = 1;
    for (int i = 0; i < STRATEGIES; i++) {
        cvy_closed_form form = estimate(strategy_names[i], &what);
        assert_close(cvy_closed_form_compute_s(&form), 8 * 21 + 0.875, 1e-12, strategy_names[i]);
        assert_true(cvy_closed_form_communication_s(&form) == 0.0);
        assert_close(form.memory_bytes, 4 * (8 * 1110 + 3030), 1e-12, strategy_names[i]);
    }
}

/* A group of all ranks is the pure strategy; groups of one are data. */
static void test_hybrids_end_in_pure_strategies(void **state)
{
    (void)state;
    cvy_closed_case what = hand;
    what.group_ranks = 4;
    cvy_closed_form hybrid = estimate("data+filter", &what), pure = estimate("filter", &what);
    assert_close(cvy_closed_form_communication_s(&hybrid), cvy_closed_form_communication_s(&pure), 0.0, "filter");
    hybrid = estimate("data+spatial", &what);
    pure = estimate("spatial", &what);
    assert_close(cvy_closed_form_communication_s(&hybrid), cvy_closed_form_communication_s(&pure), 0.0, "spatial");
    what.group_ranks = 1;
    pure = estimate("data", &what);
    for (int i = 5; i < STRATEGIES; i++) {
        hybrid = estimate(strategy_names[i], &what);
        assert_close(cvy_closed_form_communication_s(&hybrid), cvy_closed_form_communication_s(&pure), 0.0, "data");
        assert_close(hybrid.memory_bytes, pure.memory_bytes, 0.0, "memory");
    }
}

static void test_more_bandwidth_is_never_slower(void **state)
{
    (void)state;
    cvy_closed_case what = hand;
    what.ranks = 2;
    for (int i = 0; i < STRATEGIES; i++) {
        cvy_closed_form before = estimate(strategy_names[i], &what);
        cvy_closed_case faster = what;
        cvy_line *lines[] = {&faster.inner, &faster.outer, &faster.halo, &faster.gather};
        for (int line = 0; line < 4; line++) {
            lines[line]->bandwidth_Bps *= 1.5;
            cvy_closed_form form = estimate(strategy_names[i], &faster);
            assert_true(cvy_closed_form_communication_s(&form) <= cvy_closed_form_communication_s(&before));
            before = form;
        }
    }
}

/* Each wrong case, and words of its message. */
static void test_wrong_cases_are_refused(void **state)
{
    (void)state;
    cvy_closed_layer skipping[3];
    memcpy(skipping, three, sizeof three);
    skipping[2].stage = 2;
    const struct { const char *strategy; cvy_closed_case what; const char *words; } wrong[] = {
        {"data", {.layer = three, .layers = 3, .batch = 8, .ranks = 0}, "ranks"},
        {"data", {.layer = three, .layers = 0, .batch = 8, .ranks = 1}, "layers"},
        {"data", {.layer = three, .layers = 3, .batch = NAN, .ranks = 1}, "batch"},
        {"data+filter", {.layer = three, .layers = 3, .batch = 8, .ranks = 4, .group_ranks = 3}, "groups of 3"},
        {"pipeline", {.layer = three, .layers = 3, .batch = 8, .ranks = 3, .micro_batches = 1}, "found 2 stages"},
        {"pipeline", {.layer = three, .layers = 3, .batch = 8, .ranks = 2, .micro_batches = 0}, "micro-batches"},
        {"pipeline", {.layer = skipping, .layers = 3, .batch = 8, .ranks = 3, .micro_batches = 1}, "layer 2"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cvy_closed_form form = {.memory_bytes = -1.0};
        assert_int_equal(cvy_closed_form_estimate(cvy_closed_form_find(wrong[i].strategy), &wrong[i].what, &form),
                         CVY_ERR_ARG);
        assert_non_null(strstr(cvy_error_message(), wrong[i].words));
        assert_true(form.memory_bytes == -1.0);
    }
    assert_null(cvy_closed_form_find("tensor"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_vectors_are_reproduced),
        cmocka_unit_test(test_lists_have_the_published_totals),
        cmocka_unit_test(test_worked_figures),
        cmocka_unit_test(test_spatial_by_hand),
        cmocka_unit_test(test_data_and_spatial_by_hand),
        cmocka_unit_test(test_filter_by_hand),
        cmocka_unit_test(test_data_and_filter_by_hand),
        cmocka_unit_test(test_pipeline_by_hand),
        cmocka_unit_test(test_the_last_layer_is_not_gathered),
        cmocka_unit_test(test_halos_are_half_a_kernel),
        cmocka_unit_test(test_one_rank_is_serial),
        cmocka_unit_test(test_hybrids_end_in_pure_strategies),
        cmocka_unit_test(test_more_bandwidth_is_never_slower),
        cmocka_unit_test(test_wrong_cases_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
