/* The ways in which an op may run here: those that plans choose among. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calibrate/meter.h"
#include "calibrate/shapes_internal.h"

enum { BLOCK = 16, CHANNELS = 32, FILTERS = 48, SIDE = 28 };

static void make_square(cvy_op_pass pass, cvy_op *op)
{
    cvy_drawn_shape shape = {.op.kind = CVY_OP_CONVOLUTION, .filters = FILTERS, .input = CVY_FORMAT_C16,
                             .output = CVY_FORMAT_C16};
    shape.op.params.window.window = cvy_make_window(2, 3, 1, 1);
    shape.op.params.window.groups = 1;
    shape.x = CVY_SHAPE(2, CHANNELS, SIDE, SIDE);
    assert_int_equal(cvy_shape_make_op(&shape, pass, BLOCK, op), CVY_OK);
}

static int count_winograd(const cvy_backend_chain *chain, cvy_op_pass pass)
{
    cvy_op op, way[CVY_MAX_WAYS];
    make_square(pass, &op);
    int ways = cvy_op_find_ways(chain, &op, BLOCK, way), found = 0;
    for (int i = 0; i < ways; i++) {
        assert_int_equal(cvy_op_check(&way[i]), CVY_OK);
        found += cvy_op_by_winograd(&way[i]);
    }
    return found;
}

/* A layer that goes forward by Winograd's algorithm may go backward so: by the forward's weights, as plans have it. */
static void test_both_ways_go_by_winograd(void **state)
{
    (void)state;
    cvy_backend_chain chain;
    assert_int_equal(cvy_backend_chain_find(NULL, &chain), CVY_OK);
    assert_int_equal(count_winograd(&chain, CVY_PASS_BACKWARD_DATA) > 0, count_winograd(&chain, CVY_PASS_FORWARD) > 0);
}

/* No way comes twice. */
static void test_ways_differ(void **state)
{
    (void)state;
    cvy_backend_chain chain;
    assert_int_equal(cvy_backend_chain_find(NULL, &chain), CVY_OK);
    static const cvy_op_pass passes[] = {CVY_PASS_FORWARD, CVY_PASS_BACKWARD_DATA, CVY_PASS_BACKWARD_WEIGHTS};
    for (size_t p = 0; p < sizeof passes / sizeof passes[0]; p++) {
        cvy_op op, way[CVY_MAX_WAYS];
        make_square(passes[p], &op);
        int ways = cvy_op_find_ways(&chain, &op, BLOCK, way);
        assert_true(ways >= 1);
        for (int i = 0; i < ways; i++) {
            for (int k = 0; k < i; k++) {
                assert_true(cvy_op_hash(&way[i]) != cvy_op_hash(&way[k]));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways_go_by_winograd),
        cmocka_unit_test(test_ways_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
