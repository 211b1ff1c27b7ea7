/* Where a graph can be cut in one tensor: by hand, and against a walk over all paths of a zoo net. */
#include "model/support.h"

#include <stdlib.h>

/* input - conv - relu -(branch)- conv2 - add - pool: the branch from relu to add leaves conv2 out. */
static void test_a_branch_is_not_narrow(void **state)
{
    (void)state;
    cvy_model *model = start_model(CVY_SHAPE(1, 4, 8, 8));
    int at = 0;
    assert_int_equal(cvy_model_append(model, "conv", "conv", &at, "filters: 4, kernel: 3, padding: 1"), CVY_OK);
    assert_int_equal(cvy_model_append(model, "relu", "relu", &at, "%s", ""), CVY_OK);
    int branch = at;
    assert_int_equal(cvy_model_append(model, "conv", "conv2", &at, "filters: 4, kernel: 3, padding: 1"), CVY_OK);
    const int input[] = {at, branch};
    const cvy_layer_spec spec = {.kind = "add", .name = "add", .input = input, .inputs = 2};
    assert_int_equal(cvy_model_add(model, &spec, &at), CVY_OK);
    assert_int_equal(cvy_model_append(model, "global-pool", "pool", &at, "%s", ""), CVY_OK);
    const bool expected[] = {true, true, true, false, true, true};
    bool narrow[6];
    assert_int_equal(cvy_model_find_narrow(model, narrow), CVY_OK);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(narrow[i], expected[i]);
    }
    cvy_model_destroy(&model);
}

/* The plain law: layer i is narrow where no layer behind it takes anything from before it. */
static void test_a_zoo_net_is_narrow_where_no_edge_passes(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_open("googlenet:size=64", &model), CVY_OK);
    bool *narrow = calloc((size_t)model->layers, sizeof *narrow);
    assert_non_null(narrow);
    assert_int_equal(cvy_model_find_narrow(model, narrow), CVY_OK);
    int count = 0;
    for (int i = 0; i < model->layers; i++) {
        bool passed = false;
        for (int k = i + 1; k < model->layers; k++) {
            for (int n = 0; n < model->layer[k].inputs; n++) {
                passed |= model->layer[k].input[n] < i;
            }
        }
        assert_int_equal(narrow[i], !passed);
        count += narrow[i];
    }
    assert_true(count > 10 && count < model->layers);
    free(narrow);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_branch_is_not_narrow),
        cmocka_unit_test(test_a_zoo_net_is_narrow_where_no_edge_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
