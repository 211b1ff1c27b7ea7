/*
 * Who runs the steps of a cut model. Formats are chosen for whole tensors; the share of a rank has other extents, and
 * must find kernels all the same: what no rank alone leaves to the plain loops of `ref`, none of many does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/distribution.h"
#include "plan/plan.h"

static cvy_plan_options make_options(cvy_layout_choice layout)
{
    cvy_plan_options options = {.batch = 4,
                                .dtype = CVY_F32,
                                .training = true,
                                .train_only = true,
                                .layout = layout,
                                .block = __builtin_cpu_supports("avx512f") ? 16 : 8,
                                .parallel = {.norm_axes = CVY_AXIS_SPACE}};
    assert_int_equal(cvy_backend_chain_find("auto", &options.backends), CVY_OK);
    return options;
}

/*
 * Steps that plain loops run. Of vectors alone, as statistics that are merged, they may; and of one or two channels
 * of an image, for which the library has no kernel without AVX-512.
 */
static int count_slow(const cvy_model *model, const cvy_plan_options *options)
{
    cvy_plan *plan = NULL;
    int slow = 0;
    if (cvy_plan_create(model, options, &plan) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < s->steps; i++) {
        int op = s->step[i].op;
        const cvy_shape *x = op >= 0 ? &s->op[op].operand[0].tensor.shape : NULL;
        if (x && x->dims > 1 && x->extent[1] > 2 && strcmp(s->choice[op].backend, "ref") == 0) {
            char text[CVY_OP_TEXT];
            print_message("%s\n", cvy_op_print(&s->op[op], text));
            slow++;
        }
    }
    cvy_plan_destroy(&plan);
    return slow;
}

static void check_cut(const cvy_model *model, const char *text, int ranks, cvy_layout_choice layout)
{
    cvy_plan_options options = make_options(layout);
    cvy_distribution_options divided = {.batch = options.batch};
    cvy_distribution *d = NULL;
    cvy_strategy strategy;
    int64_t space[3];
    cvy_space_get(&model->layer[0].output, space);
    assert_int_equal(cvy_strategy_parse(text, ranks, space, &strategy), CVY_OK);
    assert_int_equal(cvy_distribution_create(model, &strategy, &divided, &d), CVY_OK);
    options.parallel.distribution = d;
    for (options.parallel.rank = 0; options.parallel.rank < ranks; options.parallel.rank += ranks - 1) {
        int slow = count_slow(model, &options);
        if (slow > 0) {
            fail_msg("%s, %s: plain loops run %d steps of rank %d", cvy_model_name(model), text, slow,
                     (int)options.parallel.rank);
        }
    }
    cvy_distribution_destroy(&d);
}

static void test_shares_find_kernels_as_whole_tensors_do(void **state)
{
    static const char *const models[] = {"lenet5", "resnet18", "googlenet:size=75"};
    static const char *const strategies[] = {"height=2", "width=2", "filter", "channel", "alternating"};
    static const cvy_layout_choice layouts[] = {CVY_LAYOUT_BLOCKED, CVY_LAYOUT_CHANNELS_LAST};
    (void)state;
    for (int i = 0; i < 3 * 2; i++) {
        cvy_model *model = NULL;
        assert_int_equal(cvy_model_open(models[i / 2], &model), CVY_OK);
        cvy_plan_options serial = make_options(layouts[i % 2]);
        for (int k = 0; count_slow(model, &serial) == 0 && k < 5; k++) {
            check_cut(model, strategies[k], k == 2 ? 3 : 2, layouts[i % 2]);
        }
        cvy_model_destroy(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_find_kernels_as_whole_tensors_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
