/*
 * Convolutions of fewer channels than a block holds, their input in blocks: run over the padding, they give what the
 * reference gives over the channels, and leave the padding zero.
 */
#include "backend/rerun.h"

static const test_shape narrow[] = {
    CASE("1 channel", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(2, 1, 7, 9), .filters = 16, .optional = true),
    CASE("3 channels, stride 2", CONVOLUTION(SQUARE(7, 2, 1, 3)), DIMS(2, 3, 15, 13), .filters = 16, .optional = true),
    CASE("3 channels, 20 filters", CONVOLUTION(SQUARE(3, 1, 1, 0)), DIMS(1, 3, 9, 11), .filters = 20, .optional = true),
    CASE("4 channels, uneven", CONVOLUTION({{1, 3, 5}, {1, 1, 2}, {1, 1, 1}, {0, 0, 2}, {0, 2, 1}}),
         DIMS(3, 4, 8, 11), .filters = 32),
    CASE("5 channels, dilated", CONVOLUTION(SQUARE(3, 1, 2, 2)), DIMS(2, 5, 9, 10), .filters = 16, .optional = true),
    CASE("1 channel, 3-D", CONVOLUTION(CUBE(3, 1, 1, 0)), DIMS(2, 1, 5, 6, 7), .filters = 16, .optional = true),
    CASE("3 channels, 3-D, stride 2", CONVOLUTION(CUBE(3, 2, 1, 0)), DIMS(1, 3, 7, 9, 8), .filters = 16,
         .optional = true),
    CASE("4 channels, 3-D (cosmoflow conv1)", CONVOLUTION(CUBE(3, 1, 1, 1)), DIMS(2, 4, 6, 5, 7), .filters = 16,
         .optional = true),
    CASE("5 channels, 3-D, 20 filters", CONVOLUTION(CUBE(2, 1, 1, 0)), DIMS(1, 5, 4, 6, 5), .filters = 20),
};
enum { NARROW = sizeof narrow / sizeof narrow[0] };

static const cvy_format blocks[] = {CVY_FORMAT_C8, CVY_FORMAT_C16};

/* All activations in blocks, the weights as the library wishes; false where it has no kernel of this size of block. */
static bool put_into_blocks(const test_shape *shape, cvy_op_pass pass, cvy_format format, cvy_op *op_out)
{
    cvy_role role = pass == CVY_PASS_BACKWARD_WEIGHTS ? CVY_ROLE_DW : CVY_ROLE_W;
    cvy_format wish;
    assert_true(make_op(shape, pass, CVY_F32, op_out));
    set_formats(op_out, format, CVY_FORMAT_PLAIN);
    if (cvy_backend_onednn.choose_format(op_out, role, &wish) != CVY_OK) {
        return false;
    }
    op_out->operand[cvy_op_index(op_out, role)].tensor.format = wish;
    return true;
}

/* Every pass, twice on one memory: 1e-4 from double, padding exactly zero (compare_written() looks). */
static void test_narrow_inputs_in_blocks_agree_with_the_reference(void **state)
{
    (void)state;
    int ran[CVY_PASS_COUNT] = {0};
    cvy_op op;
    for (int i = 0; i < NARROW * 2; i++) {
        const test_shape *shape = &narrow[i / 2];
        cvy_run run = make_run(shape);
        for (int pass = CVY_PASS_FORWARD; pass < CVY_PASS_COUNT; pass++) {
            bool convolves = pass == CVY_PASS_FORWARD || pass == CVY_PASS_BACKWARD_DATA ||
                             pass == CVY_PASS_BACKWARD_WEIGHTS;
            double difference = INFINITY;
            if (!convolves || !put_into_blocks(shape, (cvy_op_pass)pass, blocks[i % 2], &op)) {
                continue;
            }
            assert_int_equal(differ_when_rerun(&op, &run, &difference), CVY_OK);
            if (!(difference <= TOLERANCE)) {
                char text[CVY_OP_TEXT];
                fail_msg("%s: %s differs by %g", shape->name, cvy_op_print(&op, text), difference);
            }
            ran[pass]++;
        }
    }
    print_message("%d forward, %d of data, %d of weights\n", ran[CVY_PASS_FORWARD], ran[CVY_PASS_BACKWARD_DATA],
                  ran[CVY_PASS_BACKWARD_WEIGHTS]);
    if (__builtin_cpu_supports("avx2")) {
        assert_true(ran[CVY_PASS_FORWARD] >= 5 && ran[CVY_PASS_BACKWARD_DATA] >= 5);
        assert_true(ran[CVY_PASS_BACKWARD_WEIGHTS] >= 5);
    }
}

/* Ones, three channels of them in a block, through a 3x3 kernel of ones: 3 * (4 6 4, 6 9 6, 4 6 4), not 8 times. */
static void test_padding_counts_for_nothing(void **state)
{
    (void)state;
    static const float taps[] = {4, 6, 4, 6, 9, 6, 4, 6, 4};
    const test_shape shape = CASE("ones", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(1, 3, 3, 3), .filters = 16);
    cvy_run run = make_run(&shape);
    cvy_op op;
    for (int k = 0; k < 2; k++) {
        if (!put_into_blocks(&shape, CVY_PASS_FORWARD, blocks[k], &op)) {
            continue;
        }
        test_operands operands = create_operands(&op);
        for (int i = 0; i < 2; i++) {
            const cvy_tensor *tensor = &op.operand[i].tensor;
            cvy_layout layout = cvy_tensor_layout(tensor);
            for (int64_t e = 0; e < cvy_shape_elements(&tensor->shape); e++) {
                set_element(CVY_F32, operands.data[i], element_offset(tensor, &layout, e), 1.0);
            }
        }
        assert_int_equal(run_op(&cvy_backend_onednn, &op, operands.data, &run), CVY_OK);
        cvy_layout layout = cvy_tensor_layout(&op.operand[2].tensor);
        for (int64_t e = 0; e < 16 * 9; e++) {
            double y = get_element(CVY_F32, operands.data[2], element_offset(&op.operand[2].tensor, &layout, e));
            assert_true(y == 3.0 * (double)taps[e % 9]);
        }
        destroy_operands(&operands);
    }
}

/* A filter whose gradient's padding is not finite has one that is not finite either: no update takes it. */
static int count_poisoned(const cvy_tensor *dw, const float *gradient)
{
    cvy_tensor whole = *dw; /* the same memory, its padding counted as channels */
    whole.shape.extent[1] = cvy_tensor_layout(dw).padded[1];
    cvy_layout layout = cvy_tensor_layout(&whole);
    int64_t channels = whole.shape.extent[1], all = cvy_shape_elements(&whole.shape);
    int64_t filter = all / whole.shape.extent[0], taps = filter / channels;
    int poisoned = 0;
    for (int64_t f = 0; f < whole.shape.extent[0]; f++) {
        int lost[2] = {0, 0};
        for (int64_t e = 0; e < filter; e++) {
            bool padding = e / taps >= dw->shape.extent[1];
            lost[padding] += !isfinite(gradient[element_offset(&whole, &layout, f * filter + e)]);
        }
        assert_true(lost[1] == 0 || lost[0] > 0);
        poisoned += lost[0] > 0;
    }
    return poisoned;
}

/* NaN, or infinity, in one element of dy that meets x within the image. */
static void test_padding_is_never_poisoned_alone(void **state)
{
    (void)state;
    static const float poison[] = {NAN, INFINITY};
    cvy_op op;
    for (int i = 0; i < NARROW * 4; i++) {
        const test_shape *shape = &narrow[i / 4];
        cvy_run run = make_run(shape);
        if (!put_into_blocks(shape, CVY_PASS_BACKWARD_WEIGHTS, blocks[i % 2], &op)) {
            continue;
        }
        test_operands operands = create_operands(&op);
        int dw = cvy_op_index(&op, CVY_ROLE_DW);
        set_element(CVY_F32, operands.data[cvy_op_index(&op, CVY_ROLE_DY)], 0, poison[i / 2 % 2]);
        assert_int_equal(run_op(&cvy_backend_onednn, &op, operands.data, &run), CVY_OK);
        assert_true(count_poisoned(&op.operand[dw].tensor, operands.data[dw]) > 0);
        destroy_operands(&operands);
    }
}

/* Plain weights have no padding to read, groups no block of their own; what pads is not called a kernel made for it. */
static void test_only_whole_blocks_are_filled(void **state)
{
    (void)state;
    const test_shape wide = CASE("16 channels", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(2, 16, 7, 9), .filters = 16);
    const test_shape groups = CASE("3 groups", GROUPED(3, SQUARE(3, 1, 1, 1)), DIMS(2, 3, 7, 9), .filters = 6);
    cvy_op op;
    for (int k = 0; k < 2; k++) {
        bool there = put_into_blocks(&wide, CVY_PASS_FORWARD, blocks[k], &op);
        assert_int_equal(put_into_blocks(&narrow[1], CVY_PASS_FORWARD, blocks[k], &op), there);
        if (there) {
            assert_int_equal(cvy_backend_onednn.quality(&op), CVY_QUALITY_GEMM);
            op.operand[cvy_op_index(&op, CVY_ROLE_W)].tensor.format = CVY_FORMAT_PLAIN;
            assert_int_equal(cvy_backend_onednn.quality(&op), CVY_QUALITY_NONE);
        }
        assert_false(put_into_blocks(&groups, CVY_PASS_FORWARD, blocks[k], &op));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_narrow_inputs_in_blocks_agree_with_the_reference),
        cmocka_unit_test(test_padding_counts_for_nothing),
        cmocka_unit_test(test_padding_is_never_poisoned_alone),
        cmocka_unit_test(test_only_whole_blocks_are_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
