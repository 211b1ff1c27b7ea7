/* How strategies divide layers, by hand on small nets, and why some layers stay whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/distribution.h"

enum { H = 1 << CVY_AXIS_HEIGHT, C = 1 << CVY_AXIS_CHANNEL };

/* conv a 6 filters, relu r, conv b 4 filters, global pooling p, flatten, dense d 3 outputs, loss; images 5 x 12 x 9. */
static cvy_model *make_net(void)
{
    cvy_model *m = NULL;
    int at = 0;
    assert_int_equal(cvy_model_create("net", &CVY_SHAPE(5, 12, 9), &m), CVY_OK);
    assert_int_equal(cvy_model_append(m, "conv", "a", &at, "filters: 6, kernel: 3, padding: 1"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "relu", "r", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(m, "conv", "b", &at, "filters: 4, kernel: 1"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "global-pool", "p", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(m, "flatten", "f", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(m, "dense", "d", &at, "outputs: 3"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "softmax-cross-entropy", "loss", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_finish(m), CVY_OK);
    return m;
}

static cvy_status divide(const cvy_model *m, const char *text, int64_t ranks, const cvy_distribution_options *options,
                         cvy_distribution **d)
{
    cvy_strategy strategy;
    assert_int_equal(cvy_strategy_parse(text, ranks, (int64_t[]){1, 12, 9}, &strategy), CVY_OK);
    return cvy_distribution_create(m, &strategy, options, d);
}

static const cvy_layer_distribution *find(const cvy_distribution *d, const char *name)
{
    return &d->layer[cvy_model_find_layer(d->model, name)];
}

/* Rows 0-3, 4-7, 8-11 through a, r and b; the pooling leaves a sum, and behind it all is whole, as said. */
static void test_space_goes_as_far_as_rows_do(void **state)
{
    cvy_model *m = make_net();
    cvy_distribution *d = NULL;
    (void)state;
    assert_int_equal(divide(m, "height=3", 3, &(cvy_distribution_options){.batch = 2}, &d), CVY_OK);
    const char *const split[] = {"a", "r", "b"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(find(d, split[i])->input_split, H);
        assert_int_equal(find(d, split[i])->output_split, H);
        assert_int_equal(find(d, split[i])->gradient_axes, H);
    }
    assert_int_equal(find(d, "p")->raw_partial, H);
    assert_int_equal(find(d, "p")->output_split, 0);
    assert_string_equal(find(d, "d")->why_whole[CVY_AXIS_HEIGHT], "it needs whole samples");
    assert_int_equal(find(d, "d")->gradient_axes, 0);
    assert_true(cvy_distribution_has_halo(d, 1, CVY_AXIS_HEIGHT));
    assert_false(cvy_distribution_has_halo(d, 3, CVY_AXIS_HEIGHT)); /* a window of one */
    cvy_placement rows = cvy_distribution_output(d, 1, CVY_AXIS_HEIGHT);
    cvy_intervals second = cvy_distribution_share(&rows, CVY_AXIS_HEIGHT, &m->layer[1].output, 1);
    assert_int_equal(second.at[0].begin, 4);
    assert_int_equal(second.at[0].end, 8);
    cvy_distribution_destroy(&d);
    cvy_model_destroy(&m);
}

/* a by 6 filters in 3, 3; b by the channels that come so, which leaves a sum; d by filters of 3 in 2, 1. */
static void test_channels_alternate(void **state)
{
    cvy_model *m = make_net();
    cvy_distribution *d = NULL;
    (void)state;
    assert_int_equal(divide(m, "alternating", 2, &(cvy_distribution_options){.batch = 2}, &d), CVY_OK);
    assert_int_equal(find(d, "a")->cut, CVY_CUT_FILTER);
    assert_int_equal(find(d, "a")->dx_partial, C);
    assert_int_equal(find(d, "r")->cut, CVY_CUT_FOLLOW);
    assert_int_equal(find(d, "b")->cut, CVY_CUT_CHANNEL);
    assert_int_equal(find(d, "b")->raw_partial, C);
    assert_int_equal(find(d, "b")->output_split, 0);
    assert_int_equal(find(d, "d")->cut, CVY_CUT_FILTER);
    assert_string_equal(find(d, "loss")->why_whole[CVY_AXIS_CHANNEL], "it needs all channels of a sample");
    assert_int_equal(cvy_distribution_slices(d, 1), 2);
    assert_int_equal(cvy_distribution_slices(d, 2), 1);
    /* weights of a: f of 6,5,3,3; of b: c of 4,6,1,1; the bias of b is the first rank's alone */
    cvy_placement a = cvy_distribution_parameter(d, cvy_model_find_parameter(m, "a.weight"));
    cvy_placement b = cvy_distribution_parameter(d, cvy_model_find_parameter(m, "b.weight"));
    cvy_placement bias = cvy_distribution_parameter(d, cvy_model_find_parameter(m, "b.bias"));
    assert_int_equal(a.dim, 0);
    assert_int_equal(b.dim, 1);
    assert_int_equal(cvy_placement_share(&b, 1, 6, 1).at[0].begin, 3);
    assert_int_equal(cvy_placement_share(&bias, 0, 4, 0).at[0].end, 4);
    assert_int_equal(cvy_placement_share(&bias, 0, 4, 1).count, 0);
    cvy_distribution_destroy(&d);
    cvy_model_destroy(&m);
}

/* 4 ranks: d has 3 outputs, too few to cut by filters, but takes 4 channels. 5 ranks: b cuts its 6 channels. */
static void test_too_few_of_one_are_cut_by_the_other(void **state)
{
    cvy_model *m = make_net();
    cvy_distribution *d = NULL;
    (void)state;
    assert_int_equal(divide(m, "filter", 4, &(cvy_distribution_options){.batch = 2}, &d), CVY_OK);
    assert_int_equal(find(d, "d")->cut, CVY_CUT_CHANNEL);
    cvy_distribution_destroy(&d);
    assert_int_equal(divide(m, "filter", 5, &(cvy_distribution_options){.batch = 2}, &d), CVY_OK);
    assert_int_equal(find(d, "b")->cut, CVY_CUT_CHANNEL);
    assert_int_equal(find(d, "d")->cut, CVY_CUT_WHOLE);
    assert_string_equal(find(d, "d")->why_whole[CVY_AXIS_CHANNEL], "fewer channels than ranks");
    cvy_distribution_destroy(&d);
    cvy_model_destroy(&m);
}

/* A framework that gathers at once: everything between layers is whole. Dense layers may be left alone. */
static void test_habits_of_a_framework(void **state)
{
    cvy_model *m = make_net();
    cvy_distribution *d = NULL;
    const cvy_distribution_options habits = {.batch = 2, .whole_channels = true, .whole_dense = true};
    (void)state;
    assert_int_equal(divide(m, "filter", 2, &habits, &d), CVY_OK);
    for (int i = 0; i < m->layers; i++) {
        assert_int_equal(d->layer[i].output_split, 0);
    }
    assert_int_equal(find(d, "a")->raw_split, C);
    assert_int_equal(find(d, "d")->cut, CVY_CUT_WHOLE);
    cvy_distribution_destroy(&d);
    cvy_model_destroy(&m);
}

/* A window of one over two rows of padding: the last of three ranks would have them alone. */
static void test_windows_in_the_padding_alone_are_not_cut(void **state)
{
    cvy_model *m = NULL;
    cvy_distribution *d = NULL;
    int at = 0;
    (void)state;
    assert_int_equal(cvy_model_create("net", &CVY_SHAPE(1, 12, 9), &m), CVY_OK);
    assert_int_equal(cvy_model_append(m, "conv", "a", &at, "filters: 2, kernel: 3, padding: 1"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "max-pool", "p", &at, "kernel: 4"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "conv", "b", &at, "filters: 2, kernel: 1, padding: 1"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "flatten", "f", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(m, "dense", "d", &at, "outputs: 3"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "softmax-cross-entropy", "loss", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_finish(m), CVY_OK);
    assert_int_equal(divide(m, "height=3", 3, &(cvy_distribution_options){.batch = 2}, &d), CVY_OK);
    assert_int_equal(find(d, "p")->output_split, H); /* 3 rows of 12 */
    assert_string_equal(find(d, "b")->why_whole[CVY_AXIS_HEIGHT], /* 5 of 3: 2, 2, 1 */
                        "windows of one rank would lie in the padding alone");
    cvy_distribution_destroy(&d);
    cvy_model_destroy(&m);
}

static void test_what_cannot_be_divided_says_why(void **state)
{
    cvy_model *m = make_net();
    cvy_distribution *d = NULL;
    (void)state;
    assert_int_equal(divide(m, "data", 3, &(cvy_distribution_options){.batch = 2}, &d), CVY_ERR_INFEASIBLE);
    assert_string_equal(cvy_error_message(), "sample=3 needs a batch of at least 3, got 2");
    assert_int_equal(divide(m, "height=13", 13, &(cvy_distribution_options){.batch = 2}, &d), CVY_ERR_INFEASIBLE);
    assert_string_equal(cvy_error_message(), "height=13 cuts no layer: layer a: fewer rows than ranks");
    assert_int_equal(divide(m, "pipeline", 9, &(cvy_distribution_options){.batch = 2}, &d), CVY_ERR_INFEASIBLE);
    assert_null(d);
    cvy_model_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_space_goes_as_far_as_rows_do),
        cmocka_unit_test(test_channels_alternate),
        cmocka_unit_test(test_too_few_of_one_are_cut_by_the_other),
        cmocka_unit_test(test_habits_of_a_framework),
        cmocka_unit_test(test_windows_in_the_padding_alone_are_not_cut),
        cmocka_unit_test(test_what_cannot_be_divided_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
