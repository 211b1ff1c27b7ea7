/* Shapes of a calibration: within their limits, the same twice, thin ones among them, in the formats of plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calibrate/shapes.h"
#include "plan/plan.h"

static const cvy_shape_limits limits = {.block = 16, .least_bytes = 4096, .most_bytes = 64e6, .most_flop = 2e9};

/* Bytes of tensors without padding: never more than with it. */
static double count_bare_bytes(const cvy_op *op)
{
    double bytes = 0.0;
    for (int i = 0; i < op->operands; i++) {
        double elements = 1.0;
        for (int k = 0; k < op->operand[i].tensor.shape.dims; k++) {
            elements *= (double)op->operand[i].tensor.shape.extent[k];
        }
        bytes += elements * (double)cvy_dtype_bytes(op->operand[i].tensor.dtype);
    }
    return bytes;
}

static void assert_fits(int family, int index)
{
    const cvy_shape_family *of = cvy_shape_family_get(family);
    cvy_drawn_shape shape;
    assert_int_equal(cvy_shape_draw(1, family, index, &limits, &shape), CVY_OK);
    for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
        cvy_op op;
        if (of->passes >> pass & 1u) {
            assert_int_equal(cvy_shape_make_op(&shape, (cvy_op_pass)pass, limits.block, &op), CVY_OK);
            assert_int_equal(op.kind, of->kind);
            assert_int_equal(op.pass, pass);
            assert_int_equal(cvy_op_check(&op), CVY_OK);
            assert_true(count_bare_bytes(&op) <= limits.most_bytes);
            double times = cvy_op_convolves(op.kind) ? 4.0 : 1.0;
            assert_true(cvy_op_flop(&op) <= times * limits.most_flop);
        }
    }
}

static void test_every_shape_keeps_the_limits(void **state)
{
    (void)state;
    for (int family = 0; cvy_shape_family_get(family); family++) {
        for (int index = 0; index < 12; index++) {
            assert_fits(family, index);
        }
    }
    assert_null(cvy_shape_family_get(cvy_shape_families()));
}

static uint64_t hash_drawing(uint64_t seed, int family, int index)
{
    cvy_drawn_shape shape;
    cvy_op op;
    assert_int_equal(cvy_shape_draw(seed, family, index, &limits, &shape), CVY_OK);
    assert_int_equal(cvy_shape_make_op(&shape, CVY_PASS_FORWARD, limits.block, &op), CVY_OK);
    return cvy_op_hash(&op);
}

/* A drawing depends on what it is of, and on nothing that was drawn before. */
static void test_the_same_seed_draws_the_same(void **state)
{
    (void)state;
    uint64_t first = hash_drawing(7, 0, 3);
    (void)hash_drawing(7, 0, 4);
    assert_true(first == hash_drawing(7, 0, 3));
    assert_true(first != hash_drawing(8, 0, 3));
    assert_true(first != hash_drawing(7, 0, 4));
}

static void test_limits_that_nothing_keeps_are_told(void **state)
{
    (void)state;
    const cvy_shape_limits narrow = {.block = 16, .least_bytes = 1e6, .most_bytes = 64e6, .most_flop = 1.0};
    cvy_drawn_shape shape;
    assert_int_equal(cvy_shape_draw(1, 0, 0, &narrow, &shape), CVY_ERR_INFEASIBLE);
    assert_non_null(strstr(cvy_error_message(), "convolution: none of 1000 drawings has"));
}

/* From 1 to 1023 are 10 octaves; of 4096 draws each has 410, by a standard deviation of 19: within five of these. */
static void test_sizes_are_even_by_their_logarithm(void **state)
{
    (void)state;
    int octave[10] = {0};
    cvy_dice dice = {.seed = 3};
    for (int i = 0; i < 4096; i++) {
        int64_t value = cvy_dice_log(&dice, 1, 1023);
        assert_true(value >= 1 && value <= 1023);
        octave[63 - __builtin_clzll((unsigned long long)value)]++;
    }
    for (int i = 0; i < 10; i++) {
        assert_in_range(octave[i], 410 - 96, 410 + 96);
    }
    for (int i = 0; i < 100; i++) {
        int64_t value = cvy_dice_even(&dice, 2, 4);
        assert_true(value >= 2 && value <= 4);
    }
}

/* Of 200 convolutions some are strips with padding on one edge alone, some have few filters or channels. */
static void test_slices_of_strategies_are_among_them(void **state)
{
    (void)state;
    int strips = 0, few_filters = 0, few_channels = 0;
    for (int index = 0; index < 200; index++) {
        cvy_drawn_shape shape;
        assert_int_equal(cvy_shape_draw(1, 1, index, &limits, &shape), CVY_OK);
        strips += shape.op.params.window.window.before[1] != shape.op.params.window.window.after[1];
        few_filters += shape.filters <= 8;
        few_channels += shape.x.extent[1] <= 8;
    }
    assert_in_range(strips, 5, 60);
    assert_true(few_filters >= 10 && few_channels >= 10);
}

/* ---- against plans ---- */

static const cvy_tensor *find_tensor(const cvy_op *op, cvy_role first, cvy_role second)
{
    const cvy_operand *operand = cvy_op_find(op, first);
    operand = operand ? operand : cvy_op_find(op, second);
    assert_non_null(operand);
    return &operand->tensor;
}

static bool is_given(const cvy_op *op, cvy_role role) { return cvy_op_find(op, role) != NULL; }

/* The op of a plan, taken apart and made again. */
static void assert_made_alike(const cvy_op *op, int block)
{
    const cvy_tensor *x = find_tensor(op, CVY_ROLE_X, CVY_ROLE_DX), *y = find_tensor(op, CVY_ROLE_Y, CVY_ROLE_DY);
    cvy_drawn_shape shape = {.op = {.kind = op->kind, .params = op->params},
                             .x = x->shape, .filters = y->shape.extent[1], .relu = op->relu,
                             .biased = is_given(op, CVY_ROLE_B) || is_given(op, CVY_ROLE_DB),
                             .input = x->format, .output = y->format};
    char text[2][CVY_OP_TEXT];
    cvy_op made;
    assert_int_equal(cvy_shape_make_op(&shape, op->pass, block, &made), CVY_OK);
    assert_string_equal(cvy_op_print(&made, text[0]), cvy_op_print(op, text[1]));
    assert_true(cvy_op_hash(&made) == cvy_op_hash(op));
}

static int assert_model_alike(const char *name, int block)
{
    int seen = 0;
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    const cvy_plan_options options = {.batch = 4, .dtype = CVY_F32, .training = true, .train_only = true,
                                      .block = block};
    assert_int_equal(cvy_model_open(name, &model), CVY_OK);
    assert_int_equal(cvy_plan_create(model, &options, &plan), CVY_OK);
    const cvy_schedule *schedule = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < schedule->steps; i++) {
        int op = schedule->step[i].op;
        if (op >= 0 && cvy_op_convolves(schedule->op[op].kind)) {
            assert_made_alike(&schedule->op[op], block);
            seen++;
        }
    }
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
    return seen;
}

/* resnet18 has 20 convolutions of three passes, the first without a gradient of its input. */
static void test_ops_have_the_formats_of_plans(void **state)
{
    (void)state;
    assert_int_equal(assert_model_alike("resnet18", 16), 59);
    assert_true(assert_model_alike("mobilenet-v2", 8) > 100);
    assert_true(assert_model_alike("unet3d:size=16", 16) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shape_keeps_the_limits),
        cmocka_unit_test(test_the_same_seed_draws_the_same),
        cmocka_unit_test(test_limits_that_nothing_keeps_are_told),
        cmocka_unit_test(test_sizes_are_even_by_their_logarithm),
        cmocka_unit_test(test_slices_of_strategies_are_among_them),
        cmocka_unit_test(test_ops_have_the_formats_of_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
