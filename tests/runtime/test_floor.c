/* Laws of the floor: arithmetic or bytes, whichever takes longer; products by the clock, and the rest by its bytes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/floor.h"

enum { MAX_STEPS = 128 };

static void require(cvy_status status)
{
    if (status != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static cvy_plan *make_plan(const cvy_model *model)
{
    cvy_plan *plan = NULL;
    cvy_plan_options options = {.batch = 4, .dtype = CVY_F32, .training = true, .block = 8};
    require(cvy_backend_chain_find(NULL, &options.backends));
    require(cvy_plan_create(model, &options, &plan));
    return plan;
}

/* 8 x 6 by 5 x 6: 2 * 8 * 6 * 5 = 480 flop; 4 bytes of 48 + 30 + 40 = 472. */
static void test_an_op_takes_its_flop_or_its_bytes(void **state)
{
    (void)state;
    cvy_op op = {.kind = CVY_OP_DENSE, .pass = CVY_PASS_FORWARD};
    const cvy_tensor x = {.shape = CVY_SHAPE(8, 6), .dtype = CVY_F32};
    const cvy_tensor w = {.shape = CVY_SHAPE(5, 6), .dtype = CVY_F32};
    const cvy_tensor y = {.shape = CVY_SHAPE(8, 5), .dtype = CVY_F32};
    require(cvy_op_add(&op, CVY_ROLE_X, &x));
    require(cvy_op_add(&op, CVY_ROLE_W, &w));
    require(cvy_op_add(&op, CVY_ROLE_Y, &y));
    assert_true(fabs(cvy_floor_op_s(&op, &(cvy_rates){.flops = 480.0, .bandwidth_Bps = 4720.0}) - 1.0) < 1e-12);
    assert_true(fabs(cvy_floor_op_s(&op, &(cvy_rates){.flops = 4800.0, .bandwidth_Bps = 236.0}) - 2.0) < 1e-12);
}

static cvy_op make_convolution(int64_t taps)
{
    int64_t side = 4 + taps - 1;
    const cvy_tensor x = {.shape = CVY_SHAPE(1, 16, side, side), .dtype = CVY_F32};
    const cvy_tensor w = {.shape = CVY_SHAPE(16, 16, taps, taps), .dtype = CVY_F32};
    const cvy_tensor y = {.shape = CVY_SHAPE(1, 16, 4, 4), .dtype = CVY_F32};
    cvy_op op = {.kind = CVY_OP_CONVOLUTION, .pass = CVY_PASS_FORWARD};
    op.params.window = (cvy_op_params_window){.window = {{1, taps, taps}, {1, 1, 1}, {1, 1, 1}, {0}, {0}}, .groups = 1};
    require(cvy_op_add(&op, CVY_ROLE_X, &x));
    require(cvy_op_add(&op, CVY_ROLE_W, &w));
    require(cvy_op_add(&op, CVY_ROLE_Y, &y));
    return op;
}

/*
 * 4x4 outputs of 3x3: 16 x 9 products summed directly, 6 x 6 of Winograd's tile, a quarter; of 5x5 16 x 25 and 8 x 8.
 * Bytes stay.
 */
static void test_winograd_takes_a_share_of_the_products(void **state)
{
    (void)state;
    static const double products[2][2] = {{4 * 4 * 9, 6 * 6}, {4 * 4 * 25, 8 * 8}};
    static const double elements[2] = {576 + 2304 + 256, 1024 + 6400 + 256};
    for (int i = 0; i < 4; i++) {
        int size = i / 2, winograd = i % 2;
        cvy_op op = make_convolution(3 + 2 * size);
        op.params.window.winograd = winograd;
        double flop_s = cvy_floor_op_s(&op, &(cvy_rates){.flops = 1.0, .bandwidth_Bps = 1e30});
        assert_true(fabs(flop_s - 2.0 * 16 * 16 * products[size][winograd]) < 1e-9 * flop_s);
        assert_true(cvy_floor_op_s(&op, &(cvy_rates){.flops = 1e30, .bandwidth_Bps = 1.0}) == 4.0 * elements[size]);
    }
}

/* The floor is a sum over steps, so that it doubles where both rates halve. */
static void test_the_floor_is_a_sum(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    require(cvy_model_open("lenet5", &model));
    cvy_plan *plan = make_plan(model);
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    double step_s[MAX_STEPS], sum_s = 0.0, steps_s = 0.0;
    assert_true(s->steps <= MAX_STEPS);
    for (int i = 0; i < s->ops; i++) {
        sum_s += fmax(cvy_op_flop(&s->op[i]) / 1e9, cvy_op_bytes(&s->op[i]) / 1e8);
    }
    double floor_s = cvy_floor_s(s, &(cvy_rates){1e9, 1e8}, step_s);
    assert_true(fabs(floor_s - sum_s) < 1e-12 * sum_s);
    for (int i = 0; i < s->steps; i++) {
        steps_s += step_s[i];
    }
    assert_true(fabs(steps_s - sum_s) < 1e-12 * sum_s);
    assert_true(fabs(cvy_floor_s(s, &(cvy_rates){0.5e9, 0.5e8}, NULL) - 2.0 * sum_s) < 1e-12 * sum_s);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

/* At a byte a second the rest takes its bytes in seconds; products are what the clock says: more than nothing. */
static void test_primitives_are_measured(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    require(cvy_model_open("lenet5", &model));
    cvy_plan *plan = make_plan(model);
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    double bytes = 0.0, floor_s = 0.0, step_s[MAX_STEPS];
    assert_true(s->steps <= MAX_STEPS);
    for (int i = 0; i < s->ops; i++) {
        bool counts = !cvy_op_has_weights(s->op[i].kind) && s->op[i].kind != CVY_OP_REORDER;
        bytes += counts ? cvy_op_bytes(&s->op[i]) : 0.0;
    }
    require(cvy_floor_measure(plan, &(cvy_rates){1e30, 1.0}, step_s, &floor_s));
    assert_true(floor_s > bytes && floor_s < bytes + 60.0);
    for (int i = 0; i < s->steps; i++) { /* a product is no byte's matter: it takes less than a second, but some */
        const cvy_op *op = s->step[i].op >= 0 ? &s->op[s->step[i].op] : NULL;
        bool product = op && cvy_op_has_weights(op->kind);
        double wanted = op && !product && op->kind != CVY_OP_REORDER ? cvy_op_bytes(op) : 0.0;
        assert_true(product ? step_s[i] > 0.0 && step_s[i] < 60.0 : step_s[i] == wanted);
    }
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_op_takes_its_flop_or_its_bytes),
        cmocka_unit_test(test_winograd_takes_a_share_of_the_products),
        cmocka_unit_test(test_the_floor_is_a_sum),
        cmocka_unit_test(test_primitives_are_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
