/* Mixes against every combination of cuts of a small chain, by the same seconds of layers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "bound_machine.h"
#include "oracle/mix.h"

enum { UNITS = 4, CUTS = 3 };

static const int cuts[CUTS] = {CVY_CUT_WHOLE, CVY_CUT_FILTER, CVY_CUT_CHANNEL};

/* Four units: three convolutions, of which the second is wide, and a dense layer; relus go with what is before them. */
static cvy_model *make_chain(void)
{
    static const int filters[] = {8, 64, 16};
    static const char *const names[] = {"a", "b", "c"}, *const relus[] = {"ra", "rb", "rc"};
    cvy_model *model = NULL;
    int at = 0;
    assert_int_equal(cvy_model_create("chain", &CVY_SHAPE(8, 16, 16), &model), CVY_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cvy_model_append(model, "conv", names[i], &at, "filters: %d, kernel: 3, padding: 1, bias: no",
                                          filters[i]), CVY_OK);
        assert_int_equal(cvy_model_append(model, "relu", relus[i], &at, " "), CVY_OK);
    }
    assert_int_equal(cvy_model_append(model, "flatten", "flat", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(model, "dense", "fc", &at, "outputs: 10"), CVY_OK);
    assert_int_equal(cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_finish(model), CVY_OK);
    return model;
}

/* Seconds of a choice; INFINITY where it cannot be. */
static double sum_layers(cvy_bound *bound, const cvy_model *model, const cvy_strategy *strategy,
                         const cvy_layer_choice *choices)
{
    double layer_s[16], sum_s = 0;
    cvy_block block = {.size = {1, 1, 1, 1, 1, strategy->mesh.size[CVY_AXIS_CHANNEL]},
                       .ranks = strategy->mesh.size[CVY_AXIS_CHANNEL], .cut = strategy->channel_cut};
    assert_true(model->layers <= 16);
    if (cvy_bound_enter(bound, &block, choices) != CVY_OK) {
        return INFINITY;
    }
    cvy_bound_estimate_layers(bound, strategy, layer_s);
    for (int i = 0; i < model->layers; i++) {
        sum_s += layer_s[i];
    }
    return sum_s;
}

/* Layers 1 2, 3 4, 5 6 7, 8 9; the input goes with the first. */
static double try_all(cvy_bound *bound, const cvy_model *model, const cvy_strategy *strategy)
{
    static const int unit[] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 3};
    double best_s = INFINITY;
    for (int code = 0; code < CUTS * CUTS * CUTS * CUTS; code++) {
        cvy_layer_choice choices[10];
        int digit[UNITS] = {code % CUTS, code / CUTS % CUTS, code / CUTS / CUTS % CUTS, code / CUTS / CUTS / CUTS};
        for (int i = 0; i < 10; i++) {
            choices[i] = (cvy_layer_choice){cuts[digit[unit[i]]], 0};
        }
        best_s = fmin(best_s, sum_layers(bound, model, strategy, choices));
    }
    return best_s;
}

/* On a fast network layers are cut, on a slow one they are left whole, in between some are. */
static void test_no_combination_is_better(void **state)
{
    (void)state;
    static const double slower[] = {1e-3, 1, 10, 100, 1000};
    static const char *const texts[] = {"channel=4", "filter", "channel", "sample=2,channel=4"};
    cvy_model *model = make_chain();
    int mixed = 0;
    assert_int_equal(model->layers, 10);
    for (size_t i = 0; i < sizeof slower / sizeof *slower; i++) {
        cvy_machine machine = make_bound_machine();
        machine.level[0].bandwidth_Bps /= slower[i];
        machine.level[1].bandwidth_Bps /= slower[i];
        cvy_oracle_options options = make_options(64);
        cvy_bound *bound = NULL;
        assert_int_equal(cvy_bound_create(model, &machine, &options, &bound), CVY_OK);
        for (int k = 0; k < 4; k++) {
            cvy_strategy strategy = parse(model, texts[k], k == 3 ? 8 : 4);
            cvy_layer_choice *choices = NULL;
            assert_int_equal(cvy_mix_find(bound, &strategy, &choices), CVY_OK);
            double found_s = sum_layers(bound, model, &strategy, choices);
            double best_s = try_all(bound, model, &strategy);
            if (!(found_s <= best_s * (1 + 1e-12))) {
                fail_msg("%s, links %g times slower: %g s, at best %g s", texts[k], slower[i], found_s, best_s);
            }
            mixed += choices != NULL;
            cvy_free(choices);
        }
        cvy_bound_destroy(&bound);
    }
    assert_true(mixed > 3);
    cvy_model_destroy(&model);
}

/* Messages of a second each: space is whole as soon as it can be. With none it stays split as long as it can be. */
static void test_space_is_split_where_it_pays(void **state)
{
    (void)state;
    cvy_model *model = open_model("vgg16");
    cvy_oracle_options options = make_options(8);
    for (int slow = 0; slow < 2; slow++) {
        cvy_machine machine = make_bound_machine();
        cvy_bound *bound = NULL;
        cvy_layer_choice *choices = NULL;
        machine.level[0].latency_s = slow ? 1 : 0;
        machine.level[0].bandwidth_Bps = 1e15;
        assert_int_equal(cvy_bound_create(model, &machine, &options, &bound), CVY_OK);
        cvy_strategy strategy = parse(model, "height=4", 4);
        assert_int_equal(cvy_mix_find(bound, &strategy, &choices), CVY_OK);
        if (slow) {
            assert_non_null(choices);
            assert_int_equal(choices[model->layers - 2].space, 0);
            assert_int_equal(choices[model->layers / 2].space, 0);
        } else {
            assert_null(choices);
        }
        cvy_free(choices);
        cvy_bound_destroy(&bound);
    }
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_combination_is_better),
        cmocka_unit_test(test_space_is_split_where_it_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
