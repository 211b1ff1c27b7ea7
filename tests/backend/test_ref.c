/*
 * What the reference computes, against numbers by hand and against plain loops that are written the other way round:
 * on a copy of the input that has its padding in memory, scattered from the inputs instead of gathered by the outputs.
 */
#include "backend/support.h"

/* Make an op of a configuration, in double, and fill its operands. */
static cvy_op begin(const test_shape *shape, cvy_op_pass pass, test_operands *operands_out)
{
    cvy_op op;
    assert_true(make_op(shape, pass, CVY_F64, &op));
    *operands_out = create_operands(&op);
    return op;
}

static void run(const test_shape *shape, const cvy_op *op, const test_operands *operands)
{
    cvy_run run_now = make_run(shape);
    assert_int_equal(run_op(&cvy_backend_ref, op, operands->data, &run_now), CVY_OK);
}

static double *find_data(const cvy_op *op, const test_operands *operands, cvy_role role)
{
    int i = cvy_op_index(op, role);
    assert_true(i >= 0);
    return operands->data[i];
}

static void set_values(double *to, const double *values, int count) { memcpy(to, values, (size_t)count * sizeof *to); }

#define SET(op, operands, role, ...)                                         \
    set_values(find_data(op, operands, role), (const double[]){__VA_ARGS__}, \
               (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

static void require_values(const double *found, const double *expected, int count, int line)
{
    for (int i = 0; i < count; i++) {
        if (!(fabs(found[i] - expected[i]) <= 1e-14 * fmax(1.0, fabs(expected[i])))) {
            fail_msg("line %d: element %d is %.17g, expected %.17g", line, i, found[i], expected[i]);
        }
    }
}

#define REQUIRE(op, operands, role, ...)                                         \
    require_values(find_data(op, operands, role), (const double[]){__VA_ARGS__}, \
                   (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)), __LINE__)

/* The extents of a tensor as n,c,d,h,w, and a padded copy of it: padding everywhere is @p filler. */
typedef struct padded {
    double *data;
    int64_t n, c, space[3];
} padded;

static padded pad(const cvy_tensor *x, const double *data, const cvy_window *window, double filler)
{
    padded copy = {.n = x->shape.extent[0], .c = x->shape.extent[1]};
    int64_t in[3];
    int64_t count = copy.n * copy.c;
    cvy_space_get(&x->shape, in);
    for (int axis = 0; axis < 3; axis++) {
        int64_t after = window->after[axis] > 0 ? window->after[axis] : 0;
        copy.space[axis] = window->before[axis] + in[axis] + after;
        count *= copy.space[axis];
    }
    copy.data = cvy_calloc((size_t)count, sizeof(double));
    assert_non_null(copy.data);
    for (int64_t i = 0; i < count; i++) {
        copy.data[i] = filler;
    }
    for (int64_t e = 0; e < cvy_shape_elements(&x->shape); e++) {
        int64_t w = e % in[2], h = e / in[2] % in[1], d = e / in[2] / in[1] % in[0], nc = e / in[2] / in[1] / in[0];
        int64_t row = (nc * copy.space[0] + d + window->before[0]) * copy.space[1] + h + window->before[1];
        copy.data[row * copy.space[2] + w + window->before[2]] = data[e];
    }
    return copy;
}

/* Add filter f's products with input channel c of sample n to a plane of outputs. */
static void correlate(const padded *x, int64_t plane, const double *w, const cvy_window *window, const int64_t out[3],
                      double *y)
{
    const int64_t *k = window->kernel, *s = window->stride, *e = window->dilation;
    for (int64_t tap = 0; tap < k[0] * k[1] * k[2]; tap++) {
        int64_t kw = tap % k[2], kh = tap / k[2] % k[1], kd = tap / k[2] / k[1];
        for (int64_t o = 0; o < out[0] * out[1] * out[2]; o++) {
            int64_t ow = o % out[2], oh = o / out[2] % out[1], od = o / out[2] / out[1];
            int64_t row = (plane * x->space[0] + od * s[0] + kd * e[0]) * x->space[1] + oh * s[1] + kh * e[1];
            y[o] += w[tap] * x->data[row * x->space[2] + ow * s[2] + kw * e[2]];
        }
    }
}

/* Every convolution of the list. With groups, filter f reads channels c / cg == f / fg. */
static void test_convolutions_equal_plain_loops(void **state)
{
    (void)state;
    for (int i = 0; i < test_shape_count; i++) {
        const test_shape *shape = &test_shapes[i];
        test_operands operands;
        int64_t out[3];
        if (shape->op.kind != CVY_OP_CONVOLUTION) {
            continue;
        }
        cvy_op op = begin(shape, CVY_PASS_FORWARD, &operands);
        run(shape, &op, &operands);
        const cvy_window *window = &op.params.window.window;
        const cvy_tensor *y = &cvy_op_find(&op, CVY_ROLE_Y)->tensor;
        const double *w = find_data(&op, &operands, CVY_ROLE_W);
        padded x = pad(&op.operand[0].tensor, operands.data[0], window, 0.0);
        cvy_space_get(&y->shape, out);
        int64_t positions = out[0] * out[1] * out[2];
        int64_t taps = window->kernel[0] * window->kernel[1] * window->kernel[2];
        int64_t cg = x.c / op.params.window.groups, fg = shape->filters / op.params.window.groups;
        double *expected = cvy_calloc((size_t)cvy_shape_elements(&y->shape), sizeof(double));
        assert_non_null(expected);
        for (int64_t plane = 0; plane < x.n * shape->filters; plane++) {
            int64_t n = plane / shape->filters, f = plane % shape->filters;
            for (int64_t o = 0; shape->optional && o < positions; o++) {
                expected[plane * positions + o] = find_data(&op, &operands, CVY_ROLE_B)[f];
            }
            for (int64_t c = 0; c < cg; c++) {
                correlate(&x, n * x.c + f / fg * cg + c, w + (f * cg + c) * taps, window, out,
                          expected + plane * positions);
            }
        }
        for (int64_t o = 0; shape->relu && o < cvy_shape_elements(&y->shape); o++) {
            expected[o] = expected[o] > 0.0 ? expected[o] : 0.0;
        }
        assert_true(relative_difference(y, find_data(&op, &operands, CVY_ROLE_Y), y, expected) < 1e-13);
        cvy_free(expected);
        cvy_free(x.data);
        destroy_operands(&operands);
    }
}

/* One pooled element from the padded copy, whose padding is NaN: largest (and its tap), sum, elements inside. */
static void pool(const padded *x, int64_t plane, const cvy_window *window, const int64_t o[3], double result_out[4])
{
    const int64_t *k = window->kernel;
    memset(result_out, 0, 4 * sizeof *result_out);
    for (int64_t tap = k[0] * k[1] * k[2] - 1; tap >= 0; tap--) { /* backwards: the first of equals comes last */
        int64_t at[3] = {tap / k[2] / k[1], tap / k[2] % k[1], tap % k[2]};
        for (int axis = 0; axis < 3; axis++) {
            at[axis] = o[axis] * window->stride[axis] + at[axis] * window->dilation[axis];
        }
        double value = x->data[((plane * x->space[0] + at[0]) * x->space[1] + at[1]) * x->space[2] + at[2]];
        if (isnan(value)) {
            continue;
        }
        if (result_out[2] == 0.0 || value >= result_out[0]) {
            result_out[0] = value;
            result_out[3] = (double)tap;
        }
        result_out[1] += value;
        result_out[2] += 1.0;
    }
}

/* Every pooling of the list, on inputs of few different values so that equals meet. */
static void test_poolings_equal_plain_loops(void **state)
{
    (void)state;
    for (int i = 0; i < test_shape_count; i++) {
        const test_shape *shape = &test_shapes[i];
        bool max = shape->op.kind == CVY_OP_POOL_MAX;
        test_operands operands;
        int64_t out[3];
        if (!max && shape->op.kind != CVY_OP_POOL_AVERAGE) {
            continue;
        }
        cvy_op op = begin(shape, CVY_PASS_FORWARD, &operands);
        double *data = operands.data[0];
        for (int64_t e = 0; e < cvy_shape_elements(&shape->x); e++) {
            data[e] = floor(4.0 * data[e]);
        }
        run(shape, &op, &operands);
        const cvy_window *window = &op.params.window.window;
        padded x = pad(&op.operand[0].tensor, data, window, NAN);
        const cvy_tensor *y = &op.operand[1].tensor;
        cvy_space_get(&y->shape, out);
        for (int64_t e = 0; e < cvy_shape_elements(&y->shape); e++) {
            int64_t o[3] = {e / out[2] / out[1] % out[0], e / out[2] % out[1], e % out[2]};
            double window_size = (double)(window->kernel[0] * window->kernel[1] * window->kernel[2]);
            double result[4] = {0};
            pool(&x, e / out[2] / out[1] / out[0], window, o, result);
            result[0] = shape->relu ? fmax(result[0], 0.0) : result[0];
            double mean = result[1] / (op.params.window.count_padding ? window_size : result[2]);
            assert_true(fabs(((const double *)operands.data[1])[e] - (max ? result[0] : mean)) < 1e-14);
            assert_true(!max || get_element(op.operand[2].tensor.dtype, operands.data[2], e) == result[3]);
        }
        cvy_free(x.data);
        destroy_operands(&operands);
    }
}

/* x = (1 2), w = (3 4 / 5 6), b = (1/2 -1/2): y = (11.5 16.5). dy = (1 10): dx = (3 + 50, 4 + 60), dw = dy^T x. */
static void test_dense_by_hand(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_DENSE}, DIMS(1, 2), .filters = 2, .optional = true);
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    SET(&op, &operands, CVY_ROLE_X, 1.0, 2.0);
    SET(&op, &operands, CVY_ROLE_W, 3.0, 4.0, 5.0, 6.0);
    SET(&op, &operands, CVY_ROLE_B, 0.5, -0.5);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_Y, 11.5, 16.5);
    destroy_operands(&operands);
    op = begin(&shape, CVY_PASS_BACKWARD_DATA, &operands);
    SET(&op, &operands, CVY_ROLE_DY, 1.0, 10.0);
    SET(&op, &operands, CVY_ROLE_W, 3.0, 4.0, 5.0, 6.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_DX, 53.0, 64.0);
    destroy_operands(&operands);
    op = begin(&shape, CVY_PASS_BACKWARD_WEIGHTS, &operands);
    SET(&op, &operands, CVY_ROLE_DY, 1.0, 10.0);
    SET(&op, &operands, CVY_ROLE_X, 1.0, 2.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_DW, 1.0, 2.0, 10.0, 20.0);
    REQUIRE(&op, &operands, CVY_ROLE_DB, 1.0, 10.0);
    destroy_operands(&operands);
}

/* Channel 0 is 1 2 3 4: mean 5/2, variance 5/4. Channel 1 is 7 four times: variance 0, y = b. */
static void test_batch_norm_by_hand(void **state)
{
    (void)state;
    test_shape shape = CASE("", BATCH_NORM(4), DIMS(2, 2, 1, 2));
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    SET(&op, &operands, CVY_ROLE_X, 1.0, 2.0, 7.0, 7.0, 3.0, 4.0, 7.0, 7.0);
    SET(&op, &operands, CVY_ROLE_W, 3.0, 5.0);
    SET(&op, &operands, CVY_ROLE_B, 0.25, -1.0);
    run(&shape, &op, &operands);
    double unit = 3.0 / sqrt(1.25 + 1e-5);
    REQUIRE(&op, &operands, CVY_ROLE_MEAN, 2.5, 7.0);
    REQUIRE(&op, &operands, CVY_ROLE_VARIANCE, 1.25, 0.0);
    REQUIRE(&op, &operands, CVY_ROLE_Y, 0.25 - 1.5 * unit, 0.25 - 0.5 * unit, -1.0, -1.0, 0.25 + 0.5 * unit,
            0.25 + 1.5 * unit, -1.0, -1.0);
    destroy_operands(&operands);
}

/* Of 4 elements 5/4 is 5/3 unbiased: 0.9 * 1 + 0.1 * 5/3. One element stays as it is. */
static void test_batch_norm_commits_unbiased_variance(void **state)
{
    (void)state;
    test_shape shape = CASE("", BATCH_NORM(4), DIMS(2, 1, 1, 2));
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_COMMIT, &operands);
    for (int count = 4; count >= 1; count -= 3) {
        op.params.norm.count = count;
        SET(&op, &operands, CVY_ROLE_MEAN, 2.5);
        SET(&op, &operands, CVY_ROLE_VARIANCE, 1.25);
        SET(&op, &operands, CVY_ROLE_RUNNING_MEAN, 0.5);
        SET(&op, &operands, CVY_ROLE_RUNNING_VARIANCE, 1.0);
        run(&shape, &op, &operands);
        REQUIRE(&op, &operands, CVY_ROLE_RUNNING_MEAN, 0.7);
        REQUIRE(&op, &operands, CVY_ROLE_RUNNING_VARIANCE, count == 4 ? 0.9 + 0.5 / 3.0 : 1.025);
    }
    destroy_operands(&operands);
}

/* 1, 2, 3 (mean 2, variance 2/3) and 7 (mean 7): all four have mean 13/4 and variance 63/4 - 169/16 = 83/16. */
static void test_batch_norm_merges_statistics(void **state)
{
    (void)state;
    test_shape shape = CASE("", BATCH_NORM(4), DIMS(2, 1, 1, 2));
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_MERGE, &operands);
    op.params.norm.merged = 3;
    SET(&op, &operands, CVY_ROLE_MEAN, 7.0);
    SET(&op, &operands, CVY_ROLE_VARIANCE, 0.0);
    SET(&op, &operands, CVY_ROLE_RUNNING_MEAN, 2.0);
    SET(&op, &operands, CVY_ROLE_RUNNING_VARIANCE, 2.0 / 3.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_RUNNING_MEAN, 3.25);
    REQUIRE(&op, &operands, CVY_ROLE_RUNNING_VARIANCE, 83.0 / 16.0);
    destroy_operands(&operands);
}

static void test_relu_keeps_nan(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_RELU}, DIMS(1, 4));
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    SET(&op, &operands, CVY_ROLE_X, -2.0, 0.0, 3.0, NAN);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_Y, 0.0, 0.0, 3.0);
    assert_true(isnan(find_data(&op, &operands, CVY_ROLE_Y)[3]));
    destroy_operands(&operands);
}

/* -2 + 1, 1 - 1, 3 + 0.5. */
static void test_add_with_relu_by_hand(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_ADD}, DIMS(1, 4), .relu = true);
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    SET(&op, &operands, CVY_ROLE_X, -2.0, 1.0, 3.0, NAN);
    SET(&op, &operands, CVY_ROLE_X1, 1.0, -1.0, 0.5, 1.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_Y, 0.0, 0.0, 3.5);
    assert_true(isnan(find_data(&op, &operands, CVY_ROLE_Y)[3]));
    destroy_operands(&operands);
}

/* Gradients of weights in groups, over volumes, have six dimensions: each element has its sum. */
static void test_add_of_weights_by_hand(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_ADD}, DIMS(2, 2, 1, 1, 1, 2));
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    SET(&op, &operands, CVY_ROLE_X, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0);
    SET(&op, &operands, CVY_ROLE_X1, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_Y, 11.0, 22.0, 33.0, 44.0, 55.0, 66.0, 77.0, 88.0);
    destroy_operands(&operands);
}

/* Where y is above 0, 2 + 5 and 3 - 1; elsewhere nothing. */
static void test_relu_of_two_gradients_by_hand(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_RELU}, DIMS(1, 4), .optional = true);
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_BACKWARD_DATA, &operands);
    SET(&op, &operands, CVY_ROLE_Y, 0.5, 0.0, 1.0, 0.0);
    SET(&op, &operands, CVY_ROLE_DY, 2.0, 7.0, 3.0, -4.0);
    SET(&op, &operands, CVY_ROLE_DY1, 5.0, 1.0, -1.0, 8.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_DX, 7.0, 0.0, 2.0, 0.0);
    destroy_operands(&operands);
}

/*
 * One channel of 1, 3, 5, 7: mean 4, variance 5; with w = sqrt 5 and b = 2 y is x - 2, so 0 1 3 5 behind the relu. Of
 * dy = 9, 1, 2, 3 the first does not count.
 */
static void test_batch_norm_with_relu_by_hand(void **state)
{
    (void)state;
    test_shape shape = CASE("", BATCH_NORM(4), DIMS(2, 1, 1, 2), .relu = true);
    test_operands operands;
    shape.op.params.norm.epsilon = 0.0;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    SET(&op, &operands, CVY_ROLE_X, 1.0, 3.0, 5.0, 7.0);
    SET(&op, &operands, CVY_ROLE_W, sqrt(5.0));
    SET(&op, &operands, CVY_ROLE_B, 2.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_Y, 0.0, 1.0, 3.0, 5.0);
    destroy_operands(&operands);
    op = begin(&shape, CVY_PASS_GRAD_STATS, &operands);
    SET(&op, &operands, CVY_ROLE_X, 1.0, 3.0, 5.0, 7.0);
    SET(&op, &operands, CVY_ROLE_DY, 9.0, 1.0, 2.0, 3.0);
    SET(&op, &operands, CVY_ROLE_MEAN, 4.0);
    SET(&op, &operands, CVY_ROLE_VARIANCE, 5.0);
    SET(&op, &operands, CVY_ROLE_W, sqrt(5.0));
    SET(&op, &operands, CVY_ROLE_B, 2.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_DB, 6.0);
    REQUIRE(&op, &operands, CVY_ROLE_DW, (-1.0 * 1.0 + 1.0 * 2.0 + 3.0 * 3.0) / sqrt(5.0));
    destroy_operands(&operands);
}

/* Windows of two: 1 and 3 win with 3, a relu's zeros with 0, 5 and 2 with 5; only a winner above 0 takes its dy. */
static void test_max_pool_with_relu_by_hand(void **state)
{
    (void)state;
    cvy_op_params_window pairs = {.window = {{1, 1, 2}, {1, 1, 2}, {1, 1, 1}}, .groups = 1};
    test_shape shape = CASE("", {.kind = CVY_OP_POOL_MAX}, DIMS(1, 1, 1, 8), .relu = true);
    test_operands operands;
    shape.op.params.window = pairs;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    SET(&op, &operands, CVY_ROLE_X, 1.0, 3.0, -2.0, -1.0, 5.0, 2.0, NAN, 1.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_Y, 3.0, 0.0, 5.0);
    assert_true(isnan(find_data(&op, &operands, CVY_ROLE_Y)[3]));
    destroy_operands(&operands);
    op = begin(&shape, CVY_PASS_BACKWARD_DATA, &operands);
    SET(&op, &operands, CVY_ROLE_DY, 10.0, 20.0, 30.0, 40.0);
    SET(&op, &operands, CVY_ROLE_Y, 3.0, 0.0, 5.0, NAN);
    memcpy(operands.data[cvy_op_index(&op, CVY_ROLE_WINDOW)], (const uint8_t[]){1, 0, 0, 0}, 4);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_DX, 0.0, 10.0, 0.0, 0.0, 30.0, 0.0, 0.0, 0.0);
    destroy_operands(&operands);
}

/* Two of three channels of dy; and survivors of a half, twice as large: where x, or y, is above 0. */
static void test_gradients_behind_a_relu_by_hand(void **state)
{
    (void)state;
    test_shape slice = CASE("", SLICE(1), DIMS(1, 2, 1, 2), .filters = 3, .relu = true);
    test_shape dropout = CASE("", DROPOUT(0.5, 0), DIMS(1, 4), .relu = true);
    test_operands operands;
    cvy_op op = begin(&slice, CVY_PASS_BACKWARD_DATA, &operands);
    SET(&op, &operands, CVY_ROLE_DY, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
    SET(&op, &operands, CVY_ROLE_X, 0.5, 0.0, 0.0, 7.0);
    run(&slice, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_DX, 3.0, 0.0, 0.0, 6.0);
    destroy_operands(&operands);
    op = begin(&dropout, CVY_PASS_BACKWARD_DATA, &operands);
    SET(&op, &operands, CVY_ROLE_DY, 1.0, 2.0, 3.0, 4.0);
    SET(&op, &operands, CVY_ROLE_Y, 0.0, 6.0, 8.0, 0.0);
    run(&dropout, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_DX, 0.0, 4.0, 6.0, 0.0);
    destroy_operands(&operands);
}

static void test_max_pool_shows_nan(void **state)
{
    (void)state;
    test_shape shape = CASE("", POOL_MAX(SQUARE(2, 2, 1, 0)), DIMS(1, 1, 2, 2));
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    SET(&op, &operands, CVY_ROLE_X, 1.0, NAN, 5.0, NAN);
    run(&shape, &op, &operands);
    assert_true(isnan(find_data(&op, &operands, CVY_ROLE_Y)[0]));
    assert_int_equal(((const uint8_t *)operands.data[2])[0], 1);
    destroy_operands(&operands);
}

/* Scores ln 1, ln 2, ln 5: p = 1/8, 2/8, 5/8. Label 1 costs ln 4, label 2 ln (8/5). Scale 1/8. */
static void test_cross_entropy_by_hand(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(3, 3), .samples = 2);
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    SET(&op, &operands, CVY_ROLE_X, 0.0, log(2.0), log(5.0), 1000.0, 1000.0 + log(2.0), 1000.0 + log(5.0), 1.0, 1.0,
        1.0);
    memcpy(find_data(&op, &operands, CVY_ROLE_LABEL), (const int32_t[]){1, 2, 99}, 12); /* the last is not valid */
    run(&shape, &op, &operands);
    double *loss = find_data(&op, &operands, CVY_ROLE_LOSS);
    assert_true(fabs(loss[0] - (log(4.0) + log(1.6)) / 8.0) < 1e-13);
    assert_true(loss[1] == 1.0);
    double *probability = find_data(&op, &operands, CVY_ROLE_PROBABILITY);
    require_values(probability, (const double[]){0.125, 0.25, 0.625}, 3, __LINE__);
    assert_true(fabs(probability[5] - 0.625) < 1e-12 && fabs(probability[8] - 1.0 / 3.0) < 1e-15);
    test_operands back;
    cvy_op gradient = begin(&shape, CVY_PASS_BACKWARD_DATA, &back);
    SET(&gradient, &back, CVY_ROLE_PROBABILITY, 0.125, 0.25, 0.625, 0.125, 0.25, 0.625, 0.5, 0.25, 0.25);
    memcpy(find_data(&gradient, &back, CVY_ROLE_LABEL), (const int32_t[]){1, 2, 99}, 12);
    run(&shape, &gradient, &back);
    REQUIRE(&gradient, &back, CVY_ROLE_DX, 1.0 / 64.0, -6.0 / 64.0, 5.0 / 64.0, 1.0 / 64.0, 2.0 / 64.0, -3.0 / 64.0,
            0.0, 0.0, 0.0);
    destroy_operands(&back);
    destroy_operands(&operands);
}

/* Of equal scores the first counts as the prediction. */
static void test_cross_entropy_counts_the_first_of_equals(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(2, 3));
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_INFERENCE, &operands);
    SET(&op, &operands, CVY_ROLE_X, 0.0, 2.0, 2.0, 2.0, 2.0, 2.0);
    memcpy(find_data(&op, &operands, CVY_ROLE_LABEL), (const int32_t[]){2, 0}, 8);
    run(&shape, &op, &operands);
    assert_true(find_data(&op, &operands, CVY_ROLE_LOSS)[1] == 1.0);
    destroy_operands(&operands);
}

static void test_cross_entropy_refuses_labels_outside(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(2, 3));
    cvy_run run_now = make_run(&shape);
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    for (int32_t label = -1; label <= 3; label += 4) {
        memcpy(find_data(&op, &operands, CVY_ROLE_LABEL), (const int32_t[]){0, label}, 8);
        assert_int_equal(run_op(&cvy_backend_ref, &op, operands.data, &run_now), CVY_ERR_DATA);
    }
    assert_string_equal(cvy_error_message(), "label 3 of sample 1, expected 0 to 2");
    destroy_operands(&operands);
}

/* (1 - 3)^2 / 2 + (2 - 0)^2 / 2 = 4 for the one valid sample; times 1/8. dx = 2 (x - label) / 2 / 8. */
static void test_squared_error_by_hand(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_MEAN_SQUARED_ERROR}, DIMS(2, 2), .samples = 1);
    test_operands operands;
    cvy_op op = begin(&shape, CVY_PASS_FORWARD, &operands);
    SET(&op, &operands, CVY_ROLE_X, 1.0, 2.0, 50.0, 60.0);
    SET(&op, &operands, CVY_ROLE_LABEL, 3.0, 0.0, 0.0, 0.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_LOSS, 0.5, 0.0);
    destroy_operands(&operands);
    op = begin(&shape, CVY_PASS_BACKWARD_DATA, &operands);
    SET(&op, &operands, CVY_ROLE_X, 1.0, 2.0, 50.0, 60.0);
    SET(&op, &operands, CVY_ROLE_LABEL, 3.0, 0.0, 0.0, 0.0);
    run(&shape, &op, &operands);
    REQUIRE(&op, &operands, CVY_ROLE_DX, -0.25, 0.25, 0.0, 0.0);
    destroy_operands(&operands);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions_equal_plain_loops),
        cmocka_unit_test(test_poolings_equal_plain_loops),
        cmocka_unit_test(test_dense_by_hand),
        cmocka_unit_test(test_batch_norm_by_hand),
        cmocka_unit_test(test_batch_norm_commits_unbiased_variance),
        cmocka_unit_test(test_batch_norm_merges_statistics),
        cmocka_unit_test(test_relu_keeps_nan),
        cmocka_unit_test(test_add_with_relu_by_hand),
        cmocka_unit_test(test_add_of_weights_by_hand),
        cmocka_unit_test(test_relu_of_two_gradients_by_hand),
        cmocka_unit_test(test_batch_norm_with_relu_by_hand),
        cmocka_unit_test(test_max_pool_with_relu_by_hand),
        cmocka_unit_test(test_gradients_behind_a_relu_by_hand),
        cmocka_unit_test(test_max_pool_shows_nan),
        cmocka_unit_test(test_cross_entropy_by_hand),
        cmocka_unit_test(test_cross_entropy_counts_the_first_of_equals),
        cmocka_unit_test(test_cross_entropy_refuses_labels_outside),
        cmocka_unit_test(test_squared_error_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
