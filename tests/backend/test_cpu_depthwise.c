/*
 * Convoy's own convolutions with one filter a channel against the reference in double: windows, strides, dilations and
 * paddings that leave a rest, few and many channels, every format that they take.
 */
#include "backend/any_threads.h"
#include "backend/support.h"

extern const cvy_backend cvy_backend_cpu;

#define DEPTHWISE(name_, channels_, window_, ...) \
    CASE(name_, GROUPED(channels_, window_), DIMS(__VA_ARGS__), .filters = channels_, .optional = true)
#define WINDOW(...) {__VA_ARGS__}

static const test_shape shapes[] = {
    DEPTHWISE("2 channels", 2, SQUARE(3, 1, 1, 1), 1, 2, 5, 6),
    DEPTHWISE("5 channels", 5, SQUARE(3, 1, 1, 1), 2, 5, 4, 9),
    DEPTHWISE("8 channels", 8, SQUARE(3, 1, 1, 1), 2, 8, 7, 8),
    DEPTHWISE("24 channels", 24, SQUARE(3, 2, 1, 1), 2, 24, 9, 12),
    DEPTHWISE("21 channels, 5x5", 21, SQUARE(5, 1, 1, 2), 3, 21, 9, 9),
    DEPTHWISE("40 channels, 5x5 stride 2", 40, SQUARE(5, 2, 1, 2), 3, 40, 14, 13),
    DEPTHWISE("144 channels", 144, SQUARE(3, 1, 1, 1), 2, 144, 8, 8),
    DEPTHWISE("one position", 48, SQUARE(3, 1, 1, 1), 70, 48, 1, 1),
    DEPTHWISE("one position by a stride of 2", 16, SQUARE(3, 2, 1, 1), 3, 16, 2, 2),
    DEPTHWISE("few positions, many samples", 145, SQUARE(3, 1, 1, 1), 41, 145, 2, 2),
    DEPTHWISE("few positions, 5x5", 33, SQUARE(5, 1, 1, 2), 19, 33, 3, 2),
    DEPTHWISE("1x1", 19, SQUARE(1, 1, 1, 0), 2, 19, 6, 5),
    DEPTHWISE("1x1 by a stride of 2", 19, SQUARE(1, 2, 1, 0), 2, 19, 6, 5),
    DEPTHWISE("stride 3 beyond a kernel of 2", 17, SQUARE(2, 3, 1, 0), 2, 17, 11, 10),
    DEPTHWISE("7x7", 10, SQUARE(7, 1, 1, 3), 1, 10, 9, 11),
    DEPTHWISE("7x7 stride 4", 12, SQUARE(7, 4, 1, 3), 2, 12, 17, 13),
    DEPTHWISE("dilation 2", 16, SQUARE(3, 1, 2, 2), 2, 16, 9, 10),
    DEPTHWISE("dilation 3, stride 2", 20, SQUARE(3, 2, 3, 3), 2, 20, 13, 12),
    DEPTHWISE("dilation 2, stride 2", 20, SQUARE(3, 2, 2, 1), 2, 20, 13, 12),
    DEPTHWISE("uneven", 18, WINDOW({1, 3, 5}, {1, 1, 2}, {1, 1, 1}, {0, 0, 3}, {0, 2, 1}), 2, 18, 8, 11),
    DEPTHWISE("negative padding", 16, WINDOW({1, 3, 3}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0}, {0, -1, -2}), 2, 16, 8, 9),
    DEPTHWISE("padding beyond the kernel", 9, SQUARE(2, 1, 1, 3), 2, 9, 4, 5),
    DEPTHWISE("3-D", 12, CUBE(3, 1, 1, 1), 2, 12, 5, 6, 7),
    DEPTHWISE("3-D stride 2", 24, CUBE(3, 2, 1, 1), 1, 24, 6, 7, 5),
    DEPTHWISE("3-D uneven", 7, WINDOW({2, 3, 1}, {1, 2, 3}, {2, 1, 1}, {1, 0, 0}, {0, 1, 0}), 2, 7, 5, 6, 8),
    DEPTHWISE("many rows", 16, SQUARE(3, 1, 1, 1), 2, 16, 67, 61),
    DEPTHWISE("many rows and strips, stride 2", 133, SQUARE(5, 2, 1, 2), 1, 133, 23, 21),
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct format_choice {
    cvy_format activations, weights;
} format_choice;

static const format_choice choices[] = {
    {CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_W_HWIO},
    {CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_W_HWIO_G16},
    {CVY_FORMAT_C8, CVY_FORMAT_W_G8},
    {CVY_FORMAT_C16, CVY_FORMAT_W_G16},
};
enum { CHOICES = sizeof choices / sizeof choices[0] };

static bool make_depthwise(const test_shape *shape, int pass, const format_choice *choice, cvy_op *op_out)
{
    if (!make_op(shape, (cvy_op_pass)pass, CVY_F32, op_out)) {
        return false;
    }
    set_formats(op_out, choice->activations, choice->weights);
    return true;
}

/* Sums of a few thousand products in f32: 1e-5 of the largest element. */
static void test_agrees_with_the_reference(void **state)
{
    (void)state;
    int ran = 0;
    char text[CVY_OP_TEXT];
    for (int i = 0; i < SHAPES * CVY_PASS_COUNT * CHOICES * 2; i++) {
        test_shape shape = shapes[i % SHAPES];
        cvy_run run = make_run(&shape);
        double difference;
        cvy_op op;
        shape.relu = i / SHAPES / CVY_PASS_COUNT / CHOICES;
        shape.optional = !shape.relu || i % 2;
        const format_choice *choice = &choices[i / SHAPES / CVY_PASS_COUNT % CHOICES];
        int pass = i / SHAPES % CVY_PASS_COUNT;
        if ((shape.relu && pass != CVY_PASS_FORWARD) || !make_depthwise(&shape, pass, choice, &op)) {
            continue;
        }
        assert_int_equal(cvy_backend_cpu.quality(&op), CVY_QUALITY_FAST);
        cvy_status status = differ_from_reference(&cvy_backend_cpu, &op, &run, &difference);
        if (status != CVY_OK || !(difference <= 1e-5)) {
            fail_msg("%s: %s: status %d, difference %g", shape.name, cvy_op_print(&op, text), status, difference);
        }
        ran++;
    }
    assert_int_equal(ran, SHAPES * CHOICES * (3 + 1)); /* passes, and forward with relu */
}

static void test_same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    for (int i = 0; i < SHAPES * CVY_PASS_COUNT; i++) {
        const test_shape *shape = &shapes[i % SHAPES];
        cvy_run run = make_run(shape);
        cvy_op op;
        if (make_depthwise(shape, i / SHAPES, &choices[i % CHOICES], &op)) {
            assert_same_bits_on_any_threads(&cvy_backend_cpu, &op, &run);
        }
    }
}

/* One NaN in the middle of 3x3 with relu: the 9 outputs that see it are NaN, and no other, in its channel alone. */
static void test_nan_goes_where_its_taps_go(void **state)
{
    (void)state;
    test_shape shape = DEPTHWISE("NaN", 17, SQUARE(3, 1, 1, 1), 1, 17, 5, 6);
    shape.relu = true;
    for (int i = 0; i < CHOICES; i++) {
        cvy_run run = make_run(&shape);
        cvy_op op;
        int found = 0;
        assert_true(make_depthwise(&shape, CVY_PASS_FORWARD, &choices[i], &op));
        test_operands operands = create_operands(&op);
        const cvy_tensor *x = &op.operand[0].tensor, *y = &op.operand[op.operands - 1].tensor;
        cvy_layout from = cvy_tensor_layout(x), to = cvy_tensor_layout(y);
        set_element(CVY_F32, operands.data[0], element_offset(x, &from, 16 * 30 + 2 * 6 + 3), NAN);
        assert_int_equal(run_op(&cvy_backend_cpu, &op, operands.data, &run), CVY_OK);
        for (int64_t e = 0; e < 17 * 30; e++) {
            int64_t h = e % 30 / 6, w = e % 6;
            bool sees = e / 30 == 16 && h >= 1 && h <= 3 && w >= 2 && w <= 4;
            double value = get_element(CVY_F32, operands.data[op.operands - 1], element_offset(y, &to, e));
            assert_true(sees ? isnan(value) : value >= 0);
            found += isnan(value);
        }
        assert_int_equal(found, 9);
        destroy_operands(&operands);
    }
}

/* What a plan asks for: weights by channels, however they lie now; nothing for other convolutions and plain order. */
static void test_wishes_for_weights_by_channels(void **state)
{
    (void)state;
    static const cvy_format wish[] = {CVY_FORMAT_W_HWIO, CVY_FORMAT_W_HWIO, CVY_FORMAT_W_G8, CVY_FORMAT_W_G16};
    test_shape full = CASE("full", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(2, 8, 7, 8), .filters = 8);
    test_shape double_filters = CASE("2 filters", GROUPED(8, SQUARE(3, 1, 1, 1)), DIMS(2, 8, 7, 8), .filters = 16);
    cvy_format format;
    cvy_op op;
    for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
        cvy_role role = pass == CVY_PASS_BACKWARD_WEIGHTS ? CVY_ROLE_DW : CVY_ROLE_W;
        for (int i = 0; i < CHOICES; i++) {
            const format_choice now = {choices[i].activations, CVY_FORMAT_PLAIN}, plain = {0};
            if (make_depthwise(&shapes[2], pass, &now, &op)) {
                assert_int_equal(cvy_backend_cpu.quality(&op), CVY_QUALITY_NONE);
                assert_int_equal(cvy_backend_cpu.choose_format(&op, role, &format), CVY_OK);
                assert_int_equal(format, wish[i]);
                assert_true(make_depthwise(&shapes[2], pass, &plain, &op));
                assert_int_equal(cvy_backend_cpu.choose_format(&op, role, &format), CVY_ERR_UNSUPPORTED);
                assert_true(make_depthwise(&full, pass, &now, &op));
                assert_int_equal(cvy_backend_cpu.choose_format(&op, role, &format), CVY_ERR_UNSUPPORTED);
                assert_true(make_depthwise(&double_filters, pass, &now, &op));
                assert_int_equal(cvy_backend_cpu.choose_format(&op, role, &format), CVY_ERR_UNSUPPORTED);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_the_reference),
        cmocka_unit_test(test_same_bits_for_any_number_of_threads),
        cmocka_unit_test(test_nan_goes_where_its_taps_go),
        cmocka_unit_test(test_wishes_for_weights_by_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
