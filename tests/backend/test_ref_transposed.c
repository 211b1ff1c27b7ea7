/*
 * Transposed convolutions of the reference: by hand, and against loops that scatter each input over the output, as the
 * op's sentence in op.h says it, while the kernel gathers what each output takes part in.
 */
#include "backend/support.h"

/* x = (1 2), w = (1 10 100), stride 2: 1 10 100, and 2 20 200 two on; bias 0.5. One of output padding is bias alone. */
static void test_by_hand(void **state)
{
    (void)state;
    static const double expected[] = {1.5, 10.5, 102.5, 20.5, 200.5, 0.5};
    test_shape shape = CASE("", TRANSPOSED(1, {{1, 1, 3}, {1, 1, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, -1}}),
                            DIMS(1, 1, 1, 2), .filters = 1, .optional = true);
    double x[] = {1, 2}, w[] = {1, 10, 100}, b[] = {0.5}, y[6];
    void *data[] = {x, w, b, y};
    cvy_run run = make_run(&shape);
    cvy_op op;
    assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F64, &op));
    assert_true(cvy_shape_equal(&op.operand[3].tensor.shape, &CVY_SHAPE(1, 1, 1, 6)));
    assert_int_equal(run_op(&cvy_backend_ref, &op, data, &run), CVY_OK);
    assert_memory_equal(y, expected, sizeof y);
}

/* The same: dy = (1 2 3 4 5 6): dx gathers 1 + 20 + 300 and 3 + 40 + 500, dw = x dy over its places, db their sum. */
static void test_gradients_by_hand(void **state)
{
    (void)state;
    static const double dx_expected[] = {321, 543}, dw_expected[] = {1 + 2 * 3, 2 + 2 * 4, 3 + 2 * 5};
    test_shape shape = CASE("", TRANSPOSED(1, {{1, 1, 3}, {1, 1, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, -1}}),
                            DIMS(1, 1, 1, 2), .filters = 1, .optional = true);
    double x[] = {1, 2}, w[] = {1, 10, 100}, dy[] = {1, 2, 3, 4, 5, 6}, dx[2], dw[3], db[1];
    cvy_run run = make_run(&shape);
    cvy_op op;
    assert_true(make_op(&shape, CVY_PASS_BACKWARD_DATA, CVY_F64, &op));
    assert_int_equal(run_op(&cvy_backend_ref, &op, (void *[]){dy, w, dx}, &run), CVY_OK);
    assert_memory_equal(dx, dx_expected, sizeof dx);
    assert_true(make_op(&shape, CVY_PASS_BACKWARD_WEIGHTS, CVY_F64, &op));
    assert_int_equal(run_op(&cvy_backend_ref, &op, (void *[]){x, dy, dw, db}, &run), CVY_OK);
    assert_memory_equal(dw, dw_expected, sizeof dw);
    assert_true(db[0] == 21);
}

/* Add x[i] w to a plane of outputs, tap by tap, wherever a tap falls inside. */
static void scatter(const double *x, const int64_t in[3], const double *w, const cvy_window *window, double *y,
                    const int64_t out[3])
{
    const int64_t *k = window->kernel;
    for (int64_t i = 0; i < in[0] * in[1] * in[2]; i++) {
        const int64_t at[3] = {i / in[2] / in[1], i / in[2] % in[1], i % in[2]};
        for (int64_t tap = 0; tap < k[0] * k[1] * k[2]; tap++) {
            const int64_t taps[3] = {tap / k[2] / k[1], tap / k[2] % k[1], tap % k[2]};
            int64_t to = 0;
            bool inside = true;
            for (int axis = 0; axis < 3; axis++) {
                int64_t o = at[axis] * window->stride[axis] + taps[axis] * window->dilation[axis];
                o -= window->before[axis];
                inside = inside && o >= 0 && o < out[axis];
                to = to * out[axis] + o;
            }
            if (inside) {
                y[to] += x[i] * w[tap];
            }
        }
    }
}

/* What comes out of one op, from its operands in double; released by the caller. */
static double *compute(const cvy_op *op, const test_operands *operands)
{
    const cvy_tensor *input = &op->operand[0].tensor, *output = &op->operand[op->operands - 1].tensor;
    const double *x = operands->data[0], *w = operands->data[1];
    const double *b = cvy_op_index(op, CVY_ROLE_B) >= 0 ? operands->data[2] : NULL;
    const cvy_window *window = &op->params.window.window;
    int64_t in[3], out[3], c = input->shape.extent[1], f = output->shape.extent[1];
    cvy_space_get(&input->shape, in);
    cvy_space_get(&output->shape, out);
    int64_t inputs = in[0] * in[1] * in[2], outputs = out[0] * out[1] * out[2];
    int64_t taps = window->kernel[0] * window->kernel[1] * window->kernel[2];
    int64_t cg = c / op->params.window.groups, fg = f / op->params.window.groups;
    double *y = cvy_calloc((size_t)cvy_shape_elements(&output->shape), sizeof *y);
    assert_non_null(y);
    for (int64_t plane = 0; plane < output->shape.extent[0] * f; plane++) {
        int64_t n = plane / f, filter = plane % f;
        for (int64_t o = 0; b && o < outputs; o++) {
            y[plane * outputs + o] = b[filter];
        }
        for (int64_t i = 0; i < cg; i++) { /* of the filter's group */
            int64_t channel = filter / fg * cg + i;
            scatter(x + (n * c + channel) * inputs, in, w + (channel * fg + filter % fg) * taps, window,
                    y + plane * outputs, out);
        }
    }
    return y;
}

static void test_every_shape_equals_plain_loops(void **state)
{
    (void)state;
    int compared = 0;
    for (int i = 0; i < test_shape_count; i++) {
        const test_shape *shape = &test_shapes[i];
        cvy_run run = make_run(shape);
        cvy_op op;
        if (shape->op.kind != CVY_OP_TRANSPOSED_CONVOLUTION) {
            continue;
        }
        assert_true(make_op(shape, CVY_PASS_FORWARD, CVY_F64, &op));
        test_operands operands = create_operands(&op);
        assert_int_equal(run_op(&cvy_backend_ref, &op, operands.data, &run), CVY_OK);
        double *expected = compute(&op, &operands);
        const cvy_tensor *y = &op.operand[op.operands - 1].tensor;
        assert_true(relative_difference(y, operands.data[op.operands - 1], y, expected) < 1e-13);
        cvy_free(expected);
        destroy_operands(&operands);
        compared++;
    }
    assert_true(compared > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_gradients_by_hand),
        cmocka_unit_test(test_every_shape_equals_plain_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
