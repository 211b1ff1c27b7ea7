/*
 * The CPU backend's own kernels: the reference in double judges them, in every format; then what they promise beyond
 * it.
 */
#include "support.h"

#include <omp.h>

extern const cvy_backend cvy_backend_cpu;

static const cvy_format activation_formats[] = {CVY_FORMAT_PLAIN, CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_C8,
                                                CVY_FORMAT_C16};
enum { FORMATS = sizeof activation_formats / sizeof activation_formats[0] };

/*
 * Beyond the shared list, large enough for several threads, for several groups of partial sums and, in channels-last,
 * for more than one strip of channels; with extents that leave a rest everywhere.
 */
static const test_shape large_shapes[] = {
    CASE("large batch norm", BATCH_NORM(2 * 23 * 17), DIMS(2, 27, 23, 17)),
    CASE("wide batch norm", BATCH_NORM(3 * 5 * 5), DIMS(3, 600, 5, 5)),
    CASE("large batch norm, relu", BATCH_NORM(2 * 23 * 17), DIMS(2, 27, 23, 17), .relu = true),
    CASE("wide batch norm, relu", BATCH_NORM(3 * 5 * 5), DIMS(3, 600, 5, 5), .relu = true),
    CASE("large add, relu", {.kind = CVY_OP_ADD}, DIMS(3, 21, 15, 19), .relu = true),
    CASE("large relu of two gradients", {.kind = CVY_OP_RELU}, DIMS(3, 21, 15, 19), .optional = true),
    CASE("large max pool, relu", POOL_MAX(SQUARE(3, 2, 1, 1)), DIMS(1, 21, 9, 131), .relu = true),
    CASE("wide max pool, relu", POOL_MAX(SQUARE(2, 2, 1, 0)), DIMS(1, 600, 7, 6), .relu = true),
    CASE("large average pool, relu", POOL_AVERAGE(false, SQUARE(3, 2, 1, 1)), DIMS(1, 21, 9, 131), .relu = true),
    CASE("wide average pool, relu", POOL_AVERAGE(true, SQUARE(3, 2, 1, 1)), DIMS(1, 600, 7, 6), .relu = true),
    CASE("large global pool, relu", {.kind = CVY_OP_POOL_GLOBAL}, DIMS(2, 600, 5, 5), .relu = true),
    CASE("large dropout, relu", DROPOUT(0.4, 9), DIMS(1, 45, 13, 19), .relu = true),
    CASE("large slice, relu", SLICE(13), DIMS(2, 16, 23, 17), .filters = 32, .relu = true),
    CASE("large response norm, relu", RESPONSE(5, 1.0, 0.75, 1.0), DIMS(2, 27, 23, 17), .relu = true),
    CASE("one sample", BATCH_NORM(19 * 22 * 21), DIMS(1, 2, 19, 22, 21)),
    CASE("wide vectors", BATCH_NORM(34), DIMS(34, 517)),
    CASE("large relu", {.kind = CVY_OP_RELU}, DIMS(3, 21, 15, 19)),
    CASE("large add", {.kind = CVY_OP_ADD}, DIMS(3, 21, 15, 19)),
    CASE("large dropout", DROPOUT(0.4, 9), DIMS(1, 45, 13, 19)),
    CASE("large dropout of vectors", DROPOUT(0.7, 2), DIMS(3, 4099)),
    CASE("large dropout of some channels", DROPOUT_OF_SHARE(90, 1, 23, 17, 0, 0, 0, 0, 0, {2, {{1, 20}, {40, 48}}}),
         DIMS(2, 27, 23, 17)),
    CASE("large dropout of a corner", DROPOUT_OF_SHARE(21, 1, 31, 29, 0, 0, 9, 3, 0, {0}), DIMS(2, 21, 15, 19)),
    CASE("large pick of channels", PICK(1, {2, {{3, 20}, {32, 48}}}), DIMS(2, 51, 23, 17)),
    CASE("large pick of blocks", PICK(1, {2, {{0, 16}, {32, 51}}}), DIMS(2, 51, 23, 17)),
    CASE("large pick of rows", PICK(2, {1, {{9, 20}}}), DIMS(2, 51, 23, 17)),
    CASE("large pick of vectors", PICK(1, {2, {{9, 4100}, {5000, 5019}}}), DIMS(2, 6001)),
    CASE("large frame of rows", FRAME(0, -1, 0, 1, 24, 17), DIMS(2, 51, 23, 17)),
    CASE("large frame of columns", FRAME(0, 0, -1, 1, 23, 19), DIMS(2, 51, 23, 17)),
    CASE("large max pool", POOL_MAX(SQUARE(3, 2, 1, 1)), DIMS(1, 21, 9, 131)),
    CASE("large max pool, stride 1", POOL_MAX(SQUARE(3, 1, 1, 1)), DIMS(2, 21, 13, 70)),
    CASE("max pool of a small plane, three strips", POOL_MAX(SQUARE(3, 1, 1, 1)), DIMS(2, 1030, 7, 7)),
    CASE("max pool of every third, with a rest", POOL_MAX(SQUARE(2, 3, 1, 0)), DIMS(2, 19, 10, 13)),
    CASE("max pool whose windows differ in many ways", POOL_MAX(SQUARE(3, 3, 1, 1)), DIMS(2, 19, 17, 20)),
    CASE("max pool 3-D, stride 1", POOL_MAX(CUBE(2, 1, 1, 0)), DIMS(2, 32, 4, 5, 6)),
    CASE("average pool, stride 1", POOL_AVERAGE(true, SQUARE(3, 1, 1, 1)), DIMS(2, 530, 7, 8)),
    CASE("average pool, stride 1, inside", POOL_AVERAGE(false, SQUARE(3, 1, 1, 1)), DIMS(2, 35, 7, 9)),
    CASE("average pool, the last window cut",
         POOL_AVERAGE(false, {{1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 1, 1}}), DIMS(2, 35, 8, 12)),
    CASE("average pool 3-D", POOL_AVERAGE(true, CUBE(2, 2, 1, 0)), DIMS(2, 17, 4, 6, 8)),
    CASE("max pool 3-D, padded", POOL_MAX(CUBE(2, 1, 1, 1)), DIMS(1, 9, 4, 5, 6)),
    CASE("wide max pool", POOL_MAX(SQUARE(2, 2, 1, 0)), DIMS(1, 600, 7, 6)),
    CASE("large average pool", POOL_AVERAGE(false, SQUARE(3, 2, 1, 1)), DIMS(1, 21, 9, 131)),
    CASE("max pool with more padding than a stride", POOL_MAX(SQUARE(7, 2, 1, 3)), DIMS(2, 9, 11, 13)),
    CASE("average pool with more padding", POOL_AVERAGE(true, SQUARE(7, 2, 1, 3)), DIMS(2, 9, 11, 13)),
    CASE("max pool to one position", POOL_MAX(SQUARE(6, 6, 1, 0)), DIMS(3, 20, 6, 6)),
    CASE("max pool of one position", POOL_MAX(SQUARE(3, 1, 1, 1)), DIMS(3, 20, 1, 1)),
    CASE("large global pool", {.kind = CVY_OP_POOL_GLOBAL}, DIMS(2, 600, 5, 5)),
    CASE("deep global pool", {.kind = CVY_OP_POOL_GLOBAL}, DIMS(2, 3, 17, 18, 19)),
    CASE("large cross-entropy", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(12, 1000), .samples = 11),
    CASE("large squared error", {.kind = CVY_OP_MEAN_SQUARED_ERROR}, DIMS(9, 2001), .samples = 7),
    CASE("large reorder", {.kind = CVY_OP_REORDER}, DIMS(2, 21, 15, 29)),
    CASE("large flatten", {.kind = CVY_OP_REORDER}, DIMS(2, 37, 12, 11), .y = DIMS(2, 37 * 12 * 11)),
    CASE("large unflatten", {.kind = CVY_OP_REORDER}, DIMS(2, 37 * 12 * 11), .y = DIMS(2, 37, 12, 11)),
    CASE("large sgd", SGD(0.0, false, 0.01), DIMS(41, 30, 3, 3)),
    CASE("large sgd with momentum", SGD(0.9, false, 0.0005), DIMS(41, 30, 3, 3), .optional = true),
    CASE("large sgd after Nesterov", SGD(0.9, true, 0.0005), DIMS(41, 30, 3, 3), .optional = true),
    CASE("large adamw", ADAMW(0.01), DIMS(41, 30, 3, 3)),
    CASE("large relu6", {.kind = CVY_OP_RELU6}, DIMS(3, 21, 15, 19)),
    CASE("large leaky relu", LEAKY_RELU(0.2), DIMS(3, 21, 15, 19)),
    CASE("large sigmoid", {.kind = CVY_OP_SIGMOID}, DIMS(3, 21, 15, 19)),
    CASE("large tanh", {.kind = CVY_OP_TANH}, DIMS(3, 21, 15, 19)),
    CASE("large silu", {.kind = CVY_OP_SILU}, DIMS(3, 21, 15, 19)),
    CASE("large hard swish", {.kind = CVY_OP_HARD_SWISH}, DIMS(3, 21, 15, 19)),
    CASE("large multiply", {.kind = CVY_OP_MULTIPLY}, DIMS(3, 21, 15, 19)),
    CASE("deep multiply", {.kind = CVY_OP_MULTIPLY}, DIMS(2, 3, 17, 18, 19)),
    CASE("wide multiply", {.kind = CVY_OP_MULTIPLY}, DIMS(3, 600, 5, 5)),
    CASE("large stochastic depth", STOCHASTIC_DEPTH(0.4, 9), DIMS(7, 21, 15, 19)),
    CASE("large smoothed cross-entropy", SMOOTHED(0.1), DIMS(12, 1000), .samples = 11),
    CASE("large cross-entropy of pixels", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(3, 5, 61, 67), .samples = 2),
    CASE("large smoothed cross-entropy of voxels", SMOOTHED(0.1), DIMS(2, 3, 13, 19, 23)),
    CASE("large dice", DICE(1.0), DIMS(3, 5, 61, 67), .samples = 2),
    CASE("deep dice", DICE(1e-3), DIMS(2, 3, 13, 19, 23)),
    CASE("large concat", {.kind = CVY_OP_CONCAT}, DIMS(2, 13, 23, 17), .others = {16, 3}, .filters = 32),
    CASE("concat of large blocks", {.kind = CVY_OP_CONCAT}, DIMS(1, 32, 19, 21), .others = {16}, .filters = 48),
    CASE("large slice", SLICE(13), DIMS(2, 16, 23, 17), .filters = 32),
    CASE("slice of large blocks", SLICE(32), DIMS(1, 16, 19, 21), .filters = 48),
    CASE("large group norm", GROUP_NORM(3), DIMS(2, 27, 23, 17)),
    CASE("wide group norm", GROUP_NORM(30), DIMS(3, 600, 5, 5)),
    CASE("group norm of one sample", GROUP_NORM(2), DIMS(1, 4, 19, 22, 21)),
    CASE("group norm of many samples", GROUP_NORM(2), DIMS(150, 10, 7, 5)),
    CASE("large response norm", RESPONSE(5, 2.0, 0.75, 2.0), DIMS(2, 27, 23, 17)),
    CASE("wide response norm", RESPONSE(5, 2.0, 0.7, 1.0), DIMS(2, 600, 5, 5)),
    CASE("long response norm", RESPONSE(3, 2.0, 0.75, 1.0), DIMS(1, 3, 61, 67)),
    CASE("large lars", RULE(CVY_OP_LARS, 0.0), DIMS(41, 30, 3, 3), .optional = true, .clipped = true),
    CASE("large lamb direction", RULE(CVY_OP_LAMB_DIRECTION, 0.0), DIMS(41, 30, 3, 3), .clipped = true),
    CASE("large lamb", RULE(CVY_OP_LAMB, 0.0), DIMS(41, 30, 3, 3), .optional = true),
    CASE("large average", AVERAGE(0.875), DIMS(41, 30, 3, 3)),
    CASE("large square sum", SQUARES(CVY_OP_SQUARE_SUM), DIMS(41, 30, 3, 3)),
};
enum { LARGE_SHAPES = sizeof large_shapes / sizeof large_shapes[0] };

/* Kinds that move elements from a format into any other. */
static bool moves(cvy_op_kind kind) { return kind == CVY_OP_REORDER || kind == CVY_OP_PICK || kind == CVY_OP_FRAME; }

/* Run one configuration in every format and pass; counts what the backend took. */
static void check_shape(const test_shape *shape, int *taken)
{
    cvy_run run = make_run(shape);
    for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
        for (int from = 0; from < FORMATS; from++) {
            for (int to = 0; to < (moves(shape->op.kind) ? FORMATS : 1); to++) {
                cvy_op op;
                char text[CVY_OP_TEXT];
                double difference;
                if (!make_op(shape, (cvy_op_pass)pass, CVY_F32, &op)) {
                    continue;
                }
                set_formats(&op, activation_formats[from], CVY_FORMAT_PLAIN);
                if (moves(op.kind)) {
                    op.operand[1].tensor.format = activation_formats[to];
                }
                if (cvy_op_check(&op) != CVY_OK || cvy_backend_cpu.quality(&op) == CVY_QUALITY_NONE) {
                    continue;
                }
                cvy_status status = differ_from_reference(&cvy_backend_cpu, &op, &run, &difference);
                if (status != CVY_OK || !(difference <= 1e-4)) {
                    fail_msg("%s: %s: status %d, difference %g", shape->name, cvy_op_print(&op, text), status,
                             difference);
                }
                (*taken)++;
            }
        }
    }
}

/*
 * f32 has 24 bits; sums of a few thousand terms lose less than three digits of the seven: 1e-4 of the largest element.
 */
static void test_agrees_with_reference_in_every_format(void **state)
{
    (void)state;
    int kinds[CVY_OP_KIND_COUNT] = {0};
    for (int i = 0; i < test_shape_count; i++) {
        check_shape(&test_shapes[i], &kinds[test_shapes[i].op.kind]);
    }
    for (int kind = 0; kind < CVY_OP_KIND_COUNT; kind++) {
        bool left = cvy_op_has_weights((cvy_op_kind)kind) || kind == CVY_OP_CLIP;
        assert_int_equal(kinds[kind] == 0, left); /* products, a handful of doubles are for others */
    }
}

static void test_agrees_with_reference_when_large(void **state)
{
    (void)state;
    for (int i = 0; i < LARGE_SHAPES; i++) {
        int taken = 0;
        check_shape(&large_shapes[i], &taken);
        assert_true(taken > 0);
    }
}

static void test_leaves_double_to_others(void **state)
{
    (void)state;
    for (int i = 0; i < test_shape_count; i++) {
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            cvy_op op;
            if (make_op(&test_shapes[i], (cvy_op_pass)pass, CVY_F64, &op)) {
                assert_int_equal(cvy_backend_cpu.quality(&op), CVY_QUALITY_NONE);
            }
        }
    }
}

/* Memory of its own with the same values. */
static test_operands clone_operands(const cvy_op *op, const test_operands *source)
{
    test_operands operands = create_operands(op);
    for (int i = 0; i < op->operands; i++) {
        memcpy(operands.data[i], source->data[i], (size_t)cvy_tensor_bytes(&op->operand[i].tensor));
    }
    return operands;
}

static int find_written(const cvy_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        if (op->operand[i].access == CVY_ACCESS_WRITE) {
            return i;
        }
    }
    return -1;
}

/* The first written operand on the memory of a read one gives the same bits as memory of its own. */
static void check_in_place(const test_shape *shape, cvy_op_pass pass, cvy_format format, int *checked)
{
    cvy_op op;
    cvy_run run = make_run(shape);
    if (!make_op(shape, pass, CVY_F32, &op)) {
        return;
    }
    set_formats(&op, format, CVY_FORMAT_PLAIN);
    for (int i = 0; i < op.operands; i++) {
        if (!cvy_op_in_place(&op, op.operand[i].role)) {
            continue;
        }
        int written = find_written(&op);
        test_operands apart = create_operands(&op), shared = clone_operands(&op, &apart);
        assert_int_equal(run_op(&cvy_backend_cpu, &op, apart.data, &run), CVY_OK);
        void *kept = shared.data[written];
        shared.data[written] = shared.data[i];
        assert_int_equal(run_op(&cvy_backend_cpu, &op, shared.data, &run), CVY_OK);
        assert_memory_equal(apart.data[written], shared.data[i],
                            (size_t)cvy_tensor_bytes(&op.operand[written].tensor));
        shared.data[written] = kept;
        destroy_operands(&apart);
        destroy_operands(&shared);
        (*checked)++;
    }
}

static void test_in_place_equals_out_of_place(void **state)
{
    (void)state;
    int checked = 0;
    for (int i = 0; i < LARGE_SHAPES; i++) {
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            for (int format = 0; format < FORMATS; format++) {
                check_in_place(&large_shapes[i], (cvy_op_pass)pass, activation_formats[format], &checked);
            }
        }
    }
    /* 4 formats of 6 batch norms in 3 passes, relu in 2 and with two gradients, 2 adds with 2 inputs, 5 dropouts in 2;
     * then 6 activations, 3 multiplies, stochastic depth and 4 group norms in 2 */
    assert_int_equal(checked, 4 * (6 * 3 + 2 + 3 + 2 * 2 + 5 * 2 + (6 + 3 + 1 + 4) * 2));
}

/* Work is cut by the shape and merged in order: runs with 1, 2 and 3 threads, and again, give the same bits. */
static void check_threads(const cvy_op *op, const cvy_run *run)
{
    static const int threads[] = {1, 2, 3, 2};
    char text[CVY_OP_TEXT];
    test_operands start = create_operands(op), first = clone_operands(op, &start);
    int most = omp_get_max_threads();
    for (int i = 0; i < 4; i++) {
        test_operands again = clone_operands(op, &start);
        omp_set_num_threads(threads[i]);
        assert_int_equal(run_op(&cvy_backend_cpu, op, i ? again.data : first.data, run), CVY_OK);
        for (int j = 0; i && j < op->operands; j++) {
            if (memcmp(first.data[j], again.data[j], (size_t)cvy_tensor_bytes(&op->operand[j].tensor)) != 0) {
                fail_msg("%s differs with %d threads", cvy_op_print(op, text), threads[i]);
            }
        }
        destroy_operands(&again);
    }
    omp_set_num_threads(most);
    destroy_operands(&start);
    destroy_operands(&first);
}

static void test_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    for (int i = 0; i < LARGE_SHAPES; i++) {
        cvy_run run = make_run(&large_shapes[i]);
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            for (int format = 0; format < FORMATS; format++) {
                cvy_op op;
                if (make_op(&large_shapes[i], (cvy_op_pass)pass, CVY_F32, &op)) {
                    set_formats(&op, activation_formats[format], CVY_FORMAT_PLAIN);
                    if (cvy_op_check(&op) == CVY_OK && cvy_backend_cpu.quality(&op) != CVY_QUALITY_NONE) {
                        check_threads(&op, &run);
                    }
                }
            }
        }
    }
}

/*
 * x = 4096 + 1 and 4096 - 1 in turn: mean 4096, variance 1, y = +-1 / sqrt(1 + 1e-5); sums of squares would lose it
 * all.
 */
static void test_batch_norm_keeps_digits_under_a_large_mean(void **state)
{
    (void)state;
    test_shape shape = CASE("large mean", BATCH_NORM(2 * 64 * 64), DIMS(2, 3, 64, 64));
    cvy_run run = make_run(&shape);
    for (int format = 0; format < FORMATS; format++) {
        cvy_op op;
        assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F32, &op));
        set_formats(&op, activation_formats[format], CVY_FORMAT_PLAIN);
        test_operands operands = create_operands(&op);
        const cvy_tensor *x = &op.operand[0].tensor;
        cvy_layout layout = cvy_tensor_layout(x);
        for (int64_t e = 0; e < cvy_shape_elements(&x->shape); e++) {
            set_element(CVY_F32, operands.data[0], element_offset(x, &layout, e), e % 2 ? 4095 : 4097);
        }
        for (int c = 0; c < 3; c++) {
            ((float *)operands.data[1])[c] = 1;
            ((float *)operands.data[2])[c] = 0;
        }
        assert_int_equal(run_op(&cvy_backend_cpu, &op, operands.data, &run), CVY_OK);
        for (int c = 0; c < 3; c++) {
            assert_true(((float *)operands.data[4])[c] == 4096.0f);
            assert_true(fabs(((float *)operands.data[5])[c] - 1.0) < 1e-6);
        }
        double y = get_element(CVY_F32, operands.data[3], element_offset(x, &layout, 0));
        assert_true(fabs(y - 1.0 / sqrt(1.0 + 1e-5)) < 1e-6);
        destroy_operands(&operands);
    }
}

/*
 * Equal values: the first tap that is not padding wins, 4 (the middle of 3x3) in the corner, 3 beside it, 1 below it, 0
 * elsewhere. A NaN at the input's end makes the last output NaN.
 */
static void test_max_pool_takes_the_first_of_equals(void **state)
{
    (void)state;
    test_shape shape = CASE("equals", POOL_MAX(SQUARE(3, 2, 1, 1)), DIMS(1, 3, 5, 5));
    cvy_run run = make_run(&shape);
    for (int format = 0; format < FORMATS; format++) {
        cvy_op op;
        assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F32, &op));
        set_formats(&op, activation_formats[format], CVY_FORMAT_PLAIN);
        test_operands operands = create_operands(&op);
        const cvy_tensor *x = &op.operand[0].tensor, *y = &op.operand[1].tensor, *window = &op.operand[2].tensor;
        cvy_layout from = cvy_tensor_layout(x), to = cvy_tensor_layout(y);
        for (int64_t e = 0; e < 3 * 25; e++) {
            set_element(CVY_F32, operands.data[0], element_offset(x, &from, e), e % 25 == 24 ? NAN : -2);
        }
        assert_int_equal(run_op(&cvy_backend_cpu, &op, operands.data, &run), CVY_OK);
        for (int64_t e = 0; e < 3 * 9; e++) {
            static const double first[9] = {4, 3, 3, 1, 0, 0, 1, 0, 4};
            double value = get_element(CVY_F32, operands.data[1], element_offset(y, &to, e));
            assert_true(e % 9 == 8 ? isnan(value) : value == -2);
            assert_true(get_element(CVY_U8, operands.data[2], element_offset(window, &to, e)) == first[e % 9]);
        }
        destroy_operands(&operands);
    }
}

/* What wins a window at row oh, column ow of a plane of 7 x 7 by plain loops: the first NaN, else the first largest. */
static int find_winner(const double plane[49], int stride, int oh, int ow)
{
    int winner = -1;
    double largest = 0.0;
    for (int k = 0; k < 9; k++) {
        int h = oh * stride - 1 + k / 3, w = ow * stride - 1 + k % 3;
        if (h < 0 || h >= 7 || w < 0 || w >= 7) {
            continue;
        }
        double value = plane[h * 7 + w];
        if (winner < 0 || (!isnan(largest) && (isnan(value) || value > largest))) {
            winner = k;
            largest = value;
        }
    }
    return winner;
}

/* Values of {-1, 0, 1} are often equal; one in sixteen is NaN. 35 channels fill two blocks of 16 and a bit. */
static void test_max_pool_among_equals_and_nans(void **state)
{
    (void)state;
    enum { CHANNELS = 35 };
    for (int i = 0; i < 2 * FORMATS; i++) {
        int stride = 1 + i % 2, out = stride == 1 ? 7 : 4;
        test_shape shape = CASE("ties", POOL_MAX(SQUARE(3, stride, 1, 1)), DIMS(1, CHANNELS, 7, 7));
        cvy_run run = make_run(&shape);
        cvy_op op;
        assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F32, &op));
        set_formats(&op, activation_formats[i / 2], CVY_FORMAT_PLAIN);
        test_operands operands = create_operands(&op);
        cvy_layout from = cvy_tensor_layout(&op.operand[0].tensor), to = cvy_tensor_layout(&op.operand[2].tensor);
        double x[CHANNELS][49];
        for (int64_t e = 0; e < CHANNELS * 49; e++) {
            uint32_t word = cvy_random_words(3, CVY_PURPOSE_SYNTHETIC_DATA, 1, 0, 0, (uint32_t)e).v[0];
            x[e / 49][e % 49] = word % 16 == 0 ? NAN : (double)(word / 16 % 3) - 1.0;
            set_element(CVY_F32, operands.data[0], element_offset(&op.operand[0].tensor, &from, e), x[e / 49][e % 49]);
        }
        assert_int_equal(run_op(&cvy_backend_cpu, &op, operands.data, &run), CVY_OK);
        for (int64_t e = 0; e < CHANNELS * out * out; e++) {
            int oh = (int)(e / out % out), ow = (int)(e % out);
            const double *plane = x[e / (out * out)];
            int k = find_winner(plane, stride, oh, ow);
            double wanted = plane[(oh * stride - 1 + k / 3) * 7 + ow * stride - 1 + k % 3];
            int64_t at = element_offset(&op.operand[1].tensor, &to, e);
            double value = get_element(CVY_F32, operands.data[1], at);
            assert_true(isnan(wanted) ? isnan(value) : value == wanted);
            assert_int_equal((int)get_element(CVY_U8, operands.data[2], at), k);
        }
        destroy_operands(&operands);
    }
}

/* The contract, word by word: element e of sample n is dropped where its lane of its Philox block is below p. */
static void test_dropout_mask_is_that_of_the_logical_element(void **state)
{
    (void)state;
    test_shape shape = CASE("mask", DROPOUT(0.3, 11), DIMS(3, 21, 9, 11));
    cvy_run run = make_run(&shape);
    int64_t values = 21 * 9 * 11;
    for (int format = 0; format < FORMATS; format++) {
        cvy_op op;
        assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F32, &op));
        set_formats(&op, activation_formats[format], CVY_FORMAT_PLAIN);
        test_operands operands = create_operands(&op);
        const cvy_tensor *x = &op.operand[0].tensor;
        cvy_layout layout = cvy_tensor_layout(x);
        for (int64_t e = 0; e < 3 * values; e++) {
            set_element(CVY_F32, operands.data[0], element_offset(x, &layout, e), 1);
        }
        assert_int_equal(run_op(&cvy_backend_cpu, &op, operands.data, &run), CVY_OK);
        for (int64_t e = 0; e < 3 * values; e++) {
            cvy_words words = cvy_random_words(run.seed, CVY_PURPOSE_DROPOUT, 11, (uint32_t)run.step,
                                               (uint32_t)(run.sample_first + e / values), (uint32_t)(e % values / 4));
            bool dropped = cvy_random_unit(words.v[e % values % 4]) < 0.3;
            double y = get_element(CVY_F32, operands.data[1], element_offset(x, &layout, e));
            assert_true(y == (dropped ? 0.0 : (double)(float)(1 / 0.7)));
        }
        destroy_operands(&operands);
    }
}

/* One gradient of NaN or infinity is told, wherever it lies, and never reaches a weight. */
static void test_update_tells_a_gradient_that_is_not_finite(void **state)
{
    (void)state;
    static const char *const names[] = {"large sgd", "large sgd with momentum", "large sgd after Nesterov",
                                        "large adamw"};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 4 * 3; i++) {
        int at = 0;
        while (strcmp(large_shapes[at].name, names[i / 3]) != 0) {
            at++;
        }
        cvy_op op;
        cvy_run run = make_run(&large_shapes[at]);
        assert_true(make_op(&large_shapes[at], CVY_PASS_UPDATE, CVY_F32, &op));
        test_operands operands = create_operands(&op);
        int64_t count = cvy_tensor_elements(&op.operand[0].tensor);
        ((float *)operands.data[0])[count - 3] = bad[i % 3];
        assert_int_equal(run_op(&cvy_backend_cpu, &op, operands.data, &run), CVY_ERR_DIVERGED);
        assert_non_null(strstr(cvy_error_message(), "a gradient is not finite"));
        for (int j = 1; j < op.operands; j++) {
            for (int64_t e = 0; e < count; e++) {
                assert_true(isfinite(((float *)operands.data[j])[e]));
            }
        }
        destroy_operands(&operands);
    }
}

/* Scores 20000 apart: p = (1, 0), the loss of label 1 is their distance; exp(10000) would be infinite. */
static void test_cross_entropy_of_large_scores_is_finite(void **state)
{
    (void)state;
    test_shape shape = CASE("two classes", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(1, 2));
    cvy_run run = make_run(&shape);
    cvy_op op;
    assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F32, &op));
    float x[2] = {10000, -10000}, p[2];
    int32_t label[1] = {1};
    double loss[2];
    void *data[] = {x, label, p, loss};
    run.loss_scale = 0.5;
    assert_int_equal(run_op(&cvy_backend_cpu, &op, data, &run), CVY_OK);
    assert_true(loss[0] == 10000.0 && loss[1] == 0.0 && p[0] == 1.0f && p[1] == 0.0f);
    label[0] = 2;
    assert_int_equal(run_op(&cvy_backend_cpu, &op, data, &run), CVY_ERR_DATA);
    x[0] = NAN;
    label[0] = 0;
    assert_int_equal(run_op(&cvy_backend_cpu, &op, data, &run), CVY_OK);
    assert_true(isnan(loss[0]));
}

/* A function of one number, in double. */
typedef double (*scalar)(double);

/* Each element of a pass within 1e-6 of @p expected, relative down to @p least; in gradients dy is 1. */
static void check_function(cvy_op_kind kind, cvy_op_pass pass, const float *x, int count, scalar expected, double least)
{
    test_shape shape = CASE("", {.kind = kind}, DIMS(1, count));
    cvy_run run = make_run(&shape);
    cvy_op op;
    assert_true(make_op(&shape, pass, CVY_F32, &op));
    test_operands operands = create_operands(&op);
    memcpy(operands.data[0], x, (size_t)count * sizeof *x);
    for (int i = 0; op.operands == 3 && i < count; i++) {
        ((float *)operands.data[1])[i] = 1;
    }
    assert_int_equal(run_op(&cvy_backend_cpu, &op, operands.data, &run), CVY_OK);
    for (int i = 0; i < count; i++) {
        double found = ((const float *)operands.data[op.operands - 1])[i], wanted = expected(x[i]);
        if (!(fabs(found - wanted) <= 1e-6 * fmax(fabs(wanted), least))) {
            fail_msg("%s %s of %.9g: %.9g, expected %.9g", cvy_op_kind_name(kind), cvy_op_pass_name(pass), x[i], found,
                     wanted);
        }
    }
    destroy_operands(&operands);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x / (1 + exp(-x)); }

/* Each element for itself, from the smallest numbers to where exp(-x) leaves the normal ones, 1e-38. */
static void test_exponentials_keep_their_digits_everywhere(void **state)
{
    (void)state;
    enum { COUNT = 4001 };
    static float x[COUNT];
    for (int i = 0; i < COUNT; i++) {
        double far = (i - COUNT / 2) / 20.0; /* -100 to 100 */
        x[i] = (float)(i % 2 ? far : ldexp(far, -(i % 40)));
    }
    check_function(CVY_OP_SIGMOID, CVY_PASS_FORWARD, x, COUNT, sigmoid, 1e-30);
    check_function(CVY_OP_TANH, CVY_PASS_FORWARD, x, COUNT, tanh, 1e-30);
    check_function(CVY_OP_SILU, CVY_PASS_FORWARD, x, COUNT, silu, 1e-29);
}

static double silu_slope(double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); }
static double hard_swish(double x) { return x * fmin(fmax(x + 3, 0), 6) / 6; }
static double hard_swish_slope(double x) { return x < -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5; }

/* -8 to 8 in steps of 1/16: all pieces and their borders are met. Slopes pass 0, so they count as parts of 1. */
static void test_activations_on_all_their_pieces(void **state)
{
    (void)state;
    enum { COUNT = 257 };
    static float x[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i - COUNT / 2) / 16;
    }
    check_function(CVY_OP_SILU, CVY_PASS_BACKWARD_DATA, x, COUNT, silu_slope, 1.0);
    check_function(CVY_OP_HARD_SWISH, CVY_PASS_FORWARD, x, COUNT, hard_swish, 1e-30);
    check_function(CVY_OP_HARD_SWISH, CVY_PASS_BACKWARD_DATA, x, COUNT, hard_swish_slope, 1.0);
}

static void test_activations_keep_nan_and_limits(void **state)
{
    (void)state;
    static const cvy_op_kind kinds[] = {CVY_OP_RELU6, CVY_OP_LEAKY_RELU, CVY_OP_SIGMOID, CVY_OP_TANH, CVY_OP_SILU,
                                        CVY_OP_HARD_SWISH};
    static const double at_infinity[] = {6, INFINITY, 1, 1, INFINITY, INFINITY};
    for (int i = 0; i < 6; i++) {
        test_shape shape = CASE("", {.kind = kinds[i]}, DIMS(1, 17));
        cvy_run run = make_run(&shape);
        cvy_op op;
        assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F32, &op));
        test_operands operands = create_operands(&op);
        for (int k = 0; k < 17; k++) {
            ((float *)operands.data[0])[k] = k % 2 ? INFINITY : NAN;
        }
        assert_int_equal(run_op(&cvy_backend_cpu, &op, operands.data, &run), CVY_OK);
        for (int k = 0; k < 17; k++) {
            double y = ((const float *)operands.data[1])[k];
            assert_true(k % 2 ? y == at_infinity[i] : isnan(y));
        }
        destroy_operands(&operands);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_reference_in_every_format),
        cmocka_unit_test(test_agrees_with_reference_when_large),
        cmocka_unit_test(test_leaves_double_to_others),
        cmocka_unit_test(test_in_place_equals_out_of_place),
        cmocka_unit_test(test_same_bits_for_any_number_of_threads),
        cmocka_unit_test(test_batch_norm_keeps_digits_under_a_large_mean),
        cmocka_unit_test(test_max_pool_takes_the_first_of_equals),
        cmocka_unit_test(test_max_pool_among_equals_and_nans),
        cmocka_unit_test(test_dropout_mask_is_that_of_the_logical_element),
        cmocka_unit_test(test_update_tells_a_gradient_that_is_not_finite),
        cmocka_unit_test(test_cross_entropy_of_large_scores_is_finite),
        cmocka_unit_test(test_exponentials_keep_their_digits_everywhere),
        cmocka_unit_test(test_activations_on_all_their_pieces),
        cmocka_unit_test(test_activations_keep_nan_and_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
