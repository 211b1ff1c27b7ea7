/*
 * Convolutions by Winograd's algorithm in f32 against the reference in double, which sums directly; and what has no
 * such kernel is refused, never run otherwise. Where the machine has no kernels (before AVX-512) only refusals are
 * left, and a line says so.
 */
#include <stdlib.h>

#include "backend/rerun.h"

extern const cvy_backend cvy_backend_cpu;

#define CASE_3X3(name, padding, x, f, ...) \
    CASE(name, CONVOLUTION(SQUARE(3, 1, 1, padding)), x, .filters = f, __VA_ARGS__)

/* Tiles of 4x4 that fit and that do not, planes smaller than one; few transforms and many. */
static const test_shape shapes[] = {
    CASE_3X3("13 by 9", 1, DIMS(2, 16, 13, 9), 16, .optional = true),
    CASE_3X3("7 by 7, 32 to 48", 1, DIMS(1, 32, 7, 7), 48, .optional = true),
    CASE_3X3("28 by 28, three samples", 1, DIMS(3, 64, 28, 28), 32, .optional = false),
    CASE_3X3("no padding, 6 by 11", 0, DIMS(2, 16, 6, 11), 32, .optional = true),
    CASE_3X3("smaller than a tile", 1, DIMS(5, 32, 3, 2), 32, .optional = true),
    CASE_3X3("two pixels", 1, DIMS(2, 16, 1, 2), 16, .optional = true),
    CASE_3X3("uneven, many channels", 1, DIMS(1, 128, 15, 17), 64, .optional = true),
    CASE_3X3("14 by 14 of 256", 1, DIMS(2, 256, 14, 14), 256, .optional = true),
    CASE_3X3("wide plane", 1, DIMS(1, 16, 65, 70), 16, .optional = false),
    CASE("padding of columns", CONVOLUTION({{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}, {0, 0, 1}}),
         DIMS(2, 16, 9, 10), .filters = 16, .optional = true),
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* The op of a pass by Winograd's algorithm, blocked by 16; weights as the library wishes, where it has a wish. */
static bool make_winograd(const test_shape *shape, cvy_op_pass pass, cvy_op *op)
{
    cvy_format wish;
    if (!make_op(shape, pass, CVY_F32, op)) {
        return false;
    }
    cvy_role role = pass == CVY_PASS_BACKWARD_WEIGHTS ? CVY_ROLE_DW : CVY_ROLE_W;
    set_formats(op, CVY_FORMAT_C16, CVY_FORMAT_W_I16O16);
    op->params.window.winograd = true;
    if (cvy_backend_onednn.choose_format(op, role, &wish) == CVY_OK) {
        assert_int_equal(wish, CVY_FORMAT_W_I16O16); /* what a plan counts on */
    }
    return true;
}

/* Whether this machine has kernels at all; where it should have them, it must. */
static bool has_kernels(void)
{
    cvy_op op;
    assert_true(make_winograd(&shapes[0], CVY_PASS_FORWARD, &op));
    bool found = cvy_backend_onednn.quality(&op) == CVY_QUALITY_FAST;
    bool expected = __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && !getenv("ONEDNN_MAX_CPU_ISA");
    assert_true(found || !expected);
    if (!found) {
        print_message("no kernels for Winograd's algorithm on this machine: nothing to compare\n");
    }
    return found;
}

static void judge(const test_shape *shape, const cvy_op *op, int *ran, double *worst)
{
    char text[CVY_OP_TEXT];
    cvy_run run = make_run(shape);
    double difference = INFINITY;
    cvy_kernel *kernel = NULL;
    if (cvy_backend_onednn.create(op, &kernel) != CVY_OK) {
        fail_msg("%s: %s was refused: %s", shape->name, cvy_op_print(op, text), cvy_error_message());
    }
    assert_non_null(strstr(cvy_backend_onednn.algorithm(kernel), "wino"));
    cvy_kernel_destroy(&kernel);
    assert_int_equal(differ_when_rerun(op, &run, &difference), CVY_OK);
    if (!(difference <= TOLERANCE)) {
        fail_msg("%s: %s differs by %g", shape->name, cvy_op_print(op, text), difference);
    }
    *worst = fmax(*worst, difference);
    *ran += 1;
}

static void test_all_passes_agree_with_direct_sums(void **state)
{
    (void)state;
    cvy_op op;
    double worst = 0.0;
    int ran = 0;
    if (!has_kernels()) {
        skip();
    }
    for (int i = 0; i < SHAPES; i++) {
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            if (make_winograd(&shapes[i], (cvy_op_pass)pass, &op)) {
                judge(&shapes[i], &op, &ran, &worst);
            }
        }
    }
    print_message("%d ops, largest difference %.1e\n", ran, worst);
    assert_int_equal(ran, 3 * SHAPES);
}

/* With relu: max(y, 0) of what comes out without, bit for bit, and NaN stays. */
static void test_its_relu_is_exact_and_keeps_nan(void **state)
{
    (void)state;
    cvy_op with, without;
    int64_t nans = 0, zeros = 0;
    if (!has_kernels()) {
        skip();
    }
    for (int i = 0; i < SHAPES; i++) {
        cvy_run run = make_run(&shapes[i]);
        assert_true(make_winograd(&shapes[i], CVY_PASS_FORWARD, &without));
        with = without;
        with.relu = true;
        test_operands found = create_operands(&with), plain = create_operands(&without);
        set_element(CVY_F32, found.data[0], 0, NAN);
        set_element(CVY_F32, plain.data[0], 0, NAN);
        assert_int_equal(run_op(&cvy_backend_onednn, &with, found.data, &run), CVY_OK);
        assert_int_equal(run_op(&cvy_backend_onednn, &without, plain.data, &run), CVY_OK);
        int y = cvy_op_index(&with, CVY_ROLE_Y);
        for (int64_t e = 0; e < cvy_tensor_elements(&with.operand[y].tensor); e++) {
            float before = ((const float *)plain.data[y])[e], after = ((const float *)found.data[y])[e];
            nans += isnan(after) != 0;
            zeros += after == 0.0f;
            assert_true(isnan(before) ? isnan(after) : after == fmaxf(before, 0.0f));
        }
        destroy_operands(&found);
        destroy_operands(&plain);
    }
    assert_true(nans > 100 && zeros > 10000);
}

/* The same kernel, the same bits, with as many threads. */
static void test_a_run_repeats_its_bits(void **state)
{
    (void)state;
    cvy_op op;
    if (!has_kernels()) {
        skip();
    }
    for (int i = 0; i < SHAPES; i++) {
        for (int pass = CVY_PASS_FORWARD; pass <= CVY_PASS_BACKWARD_WEIGHTS; pass++) {
            cvy_run run = make_run(&shapes[i]);
            if (!make_winograd(&shapes[i], (cvy_op_pass)pass, &op)) {
                continue;
            }
            test_operands one = create_operands(&op), other = create_operands(&op);
            assert_int_equal(run_op(&cvy_backend_onednn, &op, one.data, &run), CVY_OK);
            assert_int_equal(run_op(&cvy_backend_onednn, &op, other.data, &run), CVY_OK);
            for (int k = 0; k < op.operands; k++) {
                assert_memory_equal(one.data[k], other.data[k], (size_t)cvy_tensor_bytes(&op.operand[k].tensor));
            }
            destroy_operands(&one);
            destroy_operands(&other);
        }
    }
}

/* Its kernels store whole lines: other addresses, which no plan has, are an error and not a crash. */
static void test_operands_between_lines_are_refused(void **state)
{
    (void)state;
    cvy_op op;
    if (!has_kernels()) {
        skip();
    }
    cvy_run run = make_run(&shapes[0]);
    assert_true(make_winograd(&shapes[0], CVY_PASS_BACKWARD_WEIGHTS, &op));
    test_operands operands = create_operands(&op);
    operands.data[cvy_op_index(&op, CVY_ROLE_DW)] = (char *)operands.data[cvy_op_index(&op, CVY_ROLE_DW)] + 16;
    assert_int_equal(run_op(&cvy_backend_onednn, &op, operands.data, &run), CVY_ERR_ARG);
    assert_non_null(strstr(cvy_error_message(), "multiples of 64 bytes"));
    destroy_operands(&operands);
}

/* Other windows and padding, channels that fill no block, formats without blocks, volumes: no kernel, anywhere. */
static void test_what_has_no_kernel_is_refused(void **state)
{
    (void)state;
    static const test_shape others[] = {
        CASE("stride 2", CONVOLUTION(SQUARE(3, 2, 1, 1)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("dilation 2", CONVOLUTION(SQUARE(3, 1, 2, 2)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("5x5", CONVOLUTION(SQUARE(5, 1, 1, 2)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("1x1", CONVOLUTION(SQUARE(1, 1, 1, 0)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("padding on one side", CONVOLUTION({{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}, {0, 1, 0}}),
             DIMS(2, 16, 9, 10), .filters = 16),
        CASE("padding of 2", CONVOLUTION(SQUARE(3, 1, 1, 2)), DIMS(2, 16, 9, 9), .filters = 16),
        CASE("two groups", GROUPED(2, SQUARE(3, 1, 1, 1)), DIMS(2, 32, 9, 9), .filters = 32),
        CASE("20 channels", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(2, 20, 9, 9), .filters = 16),
        CASE("50 filters", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(2, 16, 9, 9), .filters = 50),
        CASE("a volume", CONVOLUTION(CUBE(3, 1, 1, 1)), DIMS(1, 16, 5, 5, 5), .filters = 16),
    };
    cvy_op op;
    cvy_kernel *kernel = NULL;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        for (int pass = CVY_PASS_FORWARD; pass <= CVY_PASS_BACKWARD_WEIGHTS; pass++) {
            if (make_winograd(&others[i], (cvy_op_pass)pass, &op)) {
                assert_int_equal(cvy_backend_onednn.quality(&op), CVY_QUALITY_NONE);
                assert_int_equal(cvy_backend_onednn.create(&op, &kernel), CVY_ERR_UNSUPPORTED);
            }
        }
    }
    static const cvy_format formats[] = {CVY_FORMAT_PLAIN, CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_C8};
    for (int i = 0; i < 3; i++) {
        assert_true(make_winograd(&shapes[0], CVY_PASS_FORWARD, &op));
        set_formats(&op, formats[i], CVY_FORMAT_W_I16O16);
        assert_int_equal(cvy_backend_onednn.create(&op, &kernel), CVY_ERR_UNSUPPORTED);
    }
    assert_null(kernel);
}

/* An order, not a hint: backends without the algorithm do not sum directly instead. */
static void test_other_backends_refuse(void **state)
{
    (void)state;
    cvy_op op;
    cvy_kernel *kernel = NULL;
    cvy_backend_chain chain = {2, {&cvy_backend_cpu, &cvy_backend_ref}};
    assert_true(make_op(&shapes[0], CVY_PASS_FORWARD, CVY_F32, &op));
    assert_int_equal(cvy_backend_quality(&chain, &op, NULL), CVY_QUALITY_SLOW);
    op.params.window.winograd = true;
    assert_int_equal(cvy_backend_quality(&chain, &op, NULL), CVY_QUALITY_NONE);
    assert_int_equal(cvy_kernel_create(&chain, &op, &kernel), CVY_ERR_UNSUPPORTED);
    assert_non_null(strstr(cvy_error_message(), "convolution forward winograd"));
    assert_null(kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_passes_agree_with_direct_sums),
        cmocka_unit_test(test_its_relu_is_exact_and_keeps_nan),
        cmocka_unit_test(test_a_run_repeats_its_bits),
        cmocka_unit_test(test_operands_between_lines_are_refused),
        cmocka_unit_test(test_what_has_no_kernel_is_refused),
        cmocka_unit_test(test_other_backends_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
