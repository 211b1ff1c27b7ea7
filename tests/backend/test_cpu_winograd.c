/*
 * Convoy's own 3x3 and 5x5 convolutions, of volumes too, by Winograd's algorithm in f32 against the reference in
 * double, which sums directly: tiles of 4x4 that fit and that do not, planes smaller than one, every padding, blocks of
 * 8 and of 16, filled and not, one chunk of tiles and many, taps along the depth. What has no such kernel is refused,
 * never summed otherwise.
 */
#include "backend/any_threads.h"
#include "backend/support.h"

extern const cvy_backend cvy_backend_cpu;

#define CASE_3X3(name_, padding_, filters_, ...) \
    CASE(name_, CONVOLUTION(SQUARE(3, 1, 1, padding_)), DIMS(__VA_ARGS__), .filters = filters_, .optional = true)
#define CASE_VOLUME(name_, taps_, padding_, filters_, ...)                                                          \
    CASE(name_, CONVOLUTION(CUBE(taps_, 1, 1, padding_)), DIMS(__VA_ARGS__), .filters = filters_, .optional = true)
#define CASE_5X5(name_, padding_, filters_, ...) \
    CASE(name_, CONVOLUTION(SQUARE(5, 1, 1, padding_)), DIMS(__VA_ARGS__), .filters = filters_, .optional = true)

static const test_shape shapes[] = {
    CASE_3X3("13 by 9", 1, 16, 2, 16, 13, 9),
    CASE_3X3("16 by 16, 32 to 32", 1, 32, 5, 32, 16, 16),
    CASE_3X3("14 by 14, 48 to 80", 1, 80, 3, 48, 14, 14),
    CASE_3X3("7 by 7, 32 to 48", 1, 48, 9, 32, 7, 7),
    CASE_3X3("no padding, 6 by 11", 0, 32, 2, 16, 6, 11),
    CASE_3X3("padding of 2", 2, 16, 1, 16, 3, 4),
    CASE_3X3("smaller than a tile", 1, 16, 5, 32, 3, 2),
    CASE_3X3("one output", 0, 16, 3, 16, 3, 3),
    CASE_3X3("many tiles", 1, 16, 3, 48, 61, 58),
    CASE_3X3("many channels", 1, 272, 1, 304, 9, 5),
    CASE_3X3("many channels and tiles", 0, 144, 500, 128, 3, 3),
    CASE("3x3, sides that differ", CONVOLUTION({{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 2}, {0, 1, 0}}),
         DIMS(2, 16, 9, 10), .filters = 16, .optional = true),
    CASE("3x3, last positions that are not used",
         CONVOLUTION({{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 0}, {0, -1, -2}}), DIMS(2, 16, 9, 11), .filters = 16,
         .optional = true),
    CASE_5X5("13 by 9", 2, 16, 2, 16, 13, 9),
    CASE_5X5("16 by 16, 32 to 32", 2, 32, 5, 32, 16, 16),
    CASE_5X5("8 by 8, 32 to 64", 2, 64, 9, 32, 8, 8),
    CASE_5X5("7 by 7, 32 to 48", 2, 48, 1, 32, 7, 7),
    CASE_5X5("no padding, 6 by 11", 0, 32, 2, 16, 6, 11),
    CASE_5X5("padding of 1", 1, 16, 2, 16, 9, 10),
    CASE_5X5("padding of 4", 4, 16, 1, 16, 3, 4),
    CASE_5X5("smaller than a tile", 2, 16, 5, 32, 3, 2),
    CASE_5X5("one output", 0, 16, 3, 16, 5, 5),
    CASE_5X5("many tiles", 2, 16, 3, 48, 33, 30),
    CASE_5X5("many channels", 2, 112, 1, 144, 9, 5),
    CASE("sides that differ", CONVOLUTION({{1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 1, 3}, {0, 0, 2}}),
         DIMS(2, 16, 9, 10), .filters = 16, .optional = true),
    CASE("last positions that are not used", CONVOLUTION({{1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 2, 0}, {0, -1, -2}}),
         DIMS(2, 16, 9, 11), .filters = 16, .optional = true),
    CASE_3X3("3 to 16, blocks of padding", 1, 16, 2, 3, 9, 10),
    CASE_5X5("20 to 50, blocks of padding", 2, 50, 3, 20, 12, 12),
    CASE_VOLUME("volume of 4 to 20, blocks of padding", 3, 1, 20, 2, 4, 6, 9, 10),
    CASE_VOLUME("volume of 9 by 13 by 10", 3, 1, 16, 2, 16, 9, 13, 10),
    CASE_VOLUME("volume of 33, 16 to 32", 3, 1, 32, 1, 16, 33, 9, 10),
    CASE_VOLUME("cube of 4, 64 to 80", 3, 1, 80, 3, 64, 4, 4, 4),
    CASE_VOLUME("cube of 2, 32 to 48", 3, 1, 48, 9, 32, 2, 2, 2),
    CASE_VOLUME("volume without padding", 3, 0, 32, 2, 16, 5, 7, 11),
    CASE_VOLUME("volume, padding of 2", 3, 2, 16, 1, 32, 3, 4, 5),
    CASE_VOLUME("one output of a volume", 3, 0, 16, 3, 16, 3, 3, 3),
    CASE_VOLUME("many channels of a volume", 3, 1, 144, 2, 112, 5, 9, 6),
    CASE_VOLUME("volume, 5x5x5", 5, 2, 32, 2, 16, 6, 9, 10),
    CASE("volume, 1x3x3", CONVOLUTION({{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}}),
         DIMS(2, 16, 5, 9, 10), .filters = 32, .optional = true),
    CASE("volume, 4x3x3, sides that differ", CONVOLUTION({{4, 3, 3}, {1, 1, 1}, {1, 1, 1}, {2, 0, 2}, {0, 1, 0}}),
         DIMS(2, 16, 7, 9, 10), .filters = 16, .optional = true),
    CASE("volume, last slices that are not used",
         CONVOLUTION({{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 0}, {-1, 0, -2}}), DIMS(2, 16, 7, 9, 11), .filters = 16,
         .optional = true),
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static const cvy_format blocks[][3] = {{CVY_FORMAT_C16, CVY_FORMAT_W_I16O16, CVY_FORMAT_W_O16I16},
                                       {CVY_FORMAT_C8, CVY_FORMAT_W_I8O8, CVY_FORMAT_W_O8I8}};
enum { BLOCKS = sizeof blocks / sizeof blocks[0] };

static bool make_winograd(const test_shape *shape, int pass, const cvy_format *formats, cvy_op *op_out)
{
    if (!make_op(shape, (cvy_op_pass)pass, CVY_F32, op_out)) {
        return false;
    }
    set_formats(op_out, formats[0], formats[1 + pass % 2]); /* the formats of weights that plans have, and others */
    op_out->params.window.winograd = true;
    return true;
}

/* A tolerance of 1e-4 where nets are given 1e-3; sums by taps over so many channels come to 1e-6 directly. */
static void test_agrees_with_direct_sums(void **state)
{
    (void)state;
    char text[CVY_OP_TEXT];
    int ran = 0;
    double worst = 0.0;
    for (int i = 0; i < SHAPES * CVY_PASS_COUNT * BLOCKS * 2; i++) {
        test_shape shape = shapes[i % SHAPES];
        cvy_run run = make_run(&shape);
        double difference;
        cvy_op op;
        shape.relu = i / SHAPES / CVY_PASS_COUNT / BLOCKS;
        shape.optional = !shape.relu || i % 2; /* the bias */
        int pass = i / SHAPES % CVY_PASS_COUNT;
        const cvy_format *formats = blocks[i / SHAPES / CVY_PASS_COUNT % BLOCKS];
        if ((shape.relu && pass != CVY_PASS_FORWARD) || !make_winograd(&shape, pass, formats, &op)) {
            continue;
        }
        assert_int_equal(cvy_backend_cpu.quality(&op), CVY_QUALITY_FAST);
        cvy_status status = differ_from_reference(&cvy_backend_cpu, &op, &run, &difference);
        if (status != CVY_OK || !(difference <= 1e-4)) {
            fail_msg("%s: %s: status %d, difference %g", shape.name, cvy_op_print(&op, text), status, difference);
        }
        worst = fmax(worst, difference);
        ran++;
    }
    print_message("%d ops, largest difference %.1e\n", ran, worst);
    assert_int_equal(ran, SHAPES * BLOCKS * (3 + 1)); /* passes, and forward with relu */
}

static void test_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    for (int i = 0; i < SHAPES * CVY_PASS_COUNT; i++) {
        const test_shape *shape = &shapes[i % SHAPES];
        cvy_run run = make_run(shape);
        cvy_op op;
        if (make_winograd(shape, i / SHAPES, blocks[i % BLOCKS], &op)) {
            assert_same_bits_on_any_threads(&cvy_backend_cpu, &op, &run);
        }
    }
}

/* One NaN in x: with relu, too, at least the outputs that see it are NaN, and nothing beyond tiles that do. */
static void assert_nan_stays(test_shape shape, int reach)
{
    shape.relu = true;
    cvy_run run = make_run(&shape);
    cvy_op op;
    assert_true(make_winograd(&shape, CVY_PASS_FORWARD, blocks[0], &op));
    test_operands operands = create_operands(&op);
    const cvy_tensor *x = &op.operand[0].tensor, *y = &op.operand[op.operands - 1].tensor;
    cvy_layout from = cvy_tensor_layout(x), to = cvy_tensor_layout(y);
    set_element(CVY_F32, operands.data[0], element_offset(x, &from, 3 * 144 + 3 * 12 + 3), NAN);
    assert_int_equal(run_op(&cvy_backend_cpu, &op, operands.data, &run), CVY_OK);
    for (int64_t e = 0; e < 16 * 144; e++) {
        int64_t h = e % 144 / 12, w = e % 12;
        bool sees = h >= 3 - reach && h <= 3 + reach && w >= 3 - reach && w <= 3 + reach;
        bool near = h < 8 && w < 8; /* tiles begin at 0, 4, 8 */
        bool found = isnan(get_element(CVY_F32, operands.data[op.operands - 1], element_offset(y, &to, e))) != 0;
        assert_true(found ? near : !sees);
    }
    destroy_operands(&operands);
}

static void test_nan_stays(void **state)
{
    (void)state;
    assert_nan_stays((test_shape)CASE_3X3("NaN", 1, 16, 1, 16, 12, 12), 1);
    assert_nan_stays((test_shape)CASE_5X5("NaN", 2, 16, 1, 16, 12, 12), 2);
}

/* Other windows, other formats, groups. */
static void test_what_has_no_kernel_is_refused(void **state)
{
    (void)state;
    static const test_shape others[] = {
        CASE("1x1", CONVOLUTION(SQUARE(1, 1, 1, 0)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("7x7", CONVOLUTION(SQUARE(7, 1, 1, 3)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("3x5", CONVOLUTION({{1, 3, 5}, {1, 1, 1}, {1, 1, 1}, {0, 1, 2}, {0, 1, 2}}), DIMS(2, 16, 9, 9),
             .filters = 16),
        CASE("3x3 at stride 2", CONVOLUTION(SQUARE(3, 2, 1, 1)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("3x3 padded beyond the window", CONVOLUTION(SQUARE(3, 1, 1, 3)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("stride 2", CONVOLUTION(SQUARE(5, 2, 1, 2)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("dilation 2", CONVOLUTION(SQUARE(5, 1, 2, 2)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("padding beyond the window", CONVOLUTION(SQUARE(5, 1, 1, 5)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("two groups", GROUPED(2, SQUARE(5, 1, 1, 2)), DIMS(2, 32, 9, 9), .filters = 32),
        CASE("a volume at stride 2 along the depth",
             CONVOLUTION({{3, 3, 3}, {2, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}), DIMS(1, 16, 5, 5, 5),
             .filters = 16),
        CASE("a volume padded beyond the window along the depth",
             CONVOLUTION({{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {3, 1, 1}, {1, 1, 1}}), DIMS(1, 16, 5, 5, 5),
             .filters = 16),
    };
    cvy_op op;
    cvy_kernel *kernel = NULL;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        for (int pass = CVY_PASS_FORWARD; pass <= CVY_PASS_BACKWARD_WEIGHTS; pass++) {
            if (make_winograd(&others[i], pass, blocks[0], &op)) {
                assert_int_equal(cvy_backend_cpu.quality(&op), CVY_QUALITY_NONE);
                assert_int_equal(cvy_backend_cpu.create(&op, &kernel), CVY_ERR_UNSUPPORTED);
            }
        }
    }
    static const cvy_format formats[] = {CVY_FORMAT_PLAIN, CVY_FORMAT_CHANNELS_LAST};
    for (int i = 0; i < 2; i++) {
        assert_true(make_winograd(&shapes[0], CVY_PASS_FORWARD, blocks[0], &op));
        set_formats(&op, formats[i], CVY_FORMAT_W_I16O16);
        assert_int_equal(cvy_backend_cpu.quality(&op), CVY_QUALITY_NONE);
    }
    const test_shape padded = CASE("20 channels", CONVOLUTION(SQUARE(5, 1, 1, 2)), DIMS(2, 20, 9, 9), .filters = 16);
    assert_true(make_winograd(&padded, CVY_PASS_FORWARD, blocks[0], &op));
    set_formats(&op, CVY_FORMAT_C16, CVY_FORMAT_PLAIN); /* whose weights have no padding */
    assert_int_equal(cvy_backend_cpu.quality(&op), CVY_QUALITY_NONE);
    assert_null(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_direct_sums),
        cmocka_unit_test(test_same_bits_for_any_number_of_threads),
        cmocka_unit_test(test_nan_stays),
        cmocka_unit_test(test_what_has_no_kernel_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
