/* Shapes and element types: what is let in, and that sizes near 2^63 are refused rather than wrapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/shape.h"

static void test_types(void **state)
{
    (void)state;
    assert_int_equal(cvy_dtype_bytes(CVY_F32), 4);
    assert_int_equal(cvy_dtype_bytes(CVY_F64), 8);
    assert_int_equal(cvy_dtype_bytes(CVY_I32), 4);
    assert_int_equal(cvy_dtype_bytes(CVY_U8), 1);
    assert_string_equal(cvy_dtype_name(CVY_F32), "f32");
    assert_string_equal(cvy_dtype_name(CVY_U8), "u8");
}

static void test_elements_are_the_product(void **state)
{
    (void)state;
    cvy_shape none = {0};
    cvy_shape image = CVY_SHAPE(2, 3, 5, 7);
    cvy_shape vector = CVY_SHAPE(11);
    assert_int_equal(cvy_shape_elements(&none), 0);
    assert_int_equal(cvy_shape_elements(&image), 210);
    assert_int_equal(cvy_shape_elements(&vector), 11);
}

static void test_equal_and_print(void **state)
{
    (void)state;
    char text[CVY_SHAPE_TEXT];
    cvy_shape a = CVY_SHAPE(8, 64, 56, 56), b = CVY_SHAPE(8, 64, 56, 56), c = CVY_SHAPE(8, 64, 56);
    assert_true(cvy_shape_equal(&a, &b));
    assert_false(cvy_shape_equal(&a, &c));
    b.extent[3] = 55;
    assert_false(cvy_shape_equal(&a, &b));
    assert_string_equal(cvy_shape_print(&a, text), "8x64x56x56");
    cvy_shape largest = CVY_SHAPE(INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN);
    assert_int_equal(strlen(cvy_shape_print(&largest, text)), 6 * 20 + 5);
}

static void test_check_refuses_what_is_no_shape(void **state)
{
    (void)state;
    cvy_shape shape = CVY_SHAPE(4, 0, 5);
    assert_int_equal(cvy_shape_check(&shape, "conv1"), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "conv1: shape 4x0x5 has no elements");
    shape = (cvy_shape){1, {-3}};
    assert_int_equal(cvy_shape_check(&shape, "conv1"), CVY_ERR_INPUT);
    shape = (cvy_shape){0};
    assert_int_equal(cvy_shape_check(&shape, "conv1"), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "conv1: 0 dimensions, expected 1 to 6");
    shape = (cvy_shape){.dims = 7};
    assert_int_equal(cvy_shape_check(&shape, "conv1"), CVY_ERR_INPUT);
}

/*
 * Bytes in double, every dimension counted 15 longer, must not pass 2^62: one dimension may have 2^59 - 15 elements;
 * (2^16)^4 elements, whose plain product wraps to 0, may not pass.
 */
static void test_check_refuses_what_overflows(void **state)
{
    (void)state;
    cvy_shape shape = CVY_SHAPE((INT64_C(1) << 59) - 15);
    assert_int_equal(cvy_shape_check(&shape, "x"), CVY_OK);
    shape.extent[0]++;
    assert_int_equal(cvy_shape_check(&shape, "x"), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "x: shape 576460752303423474 is beyond 2^62 bytes");
    shape = (cvy_shape){4, {65536, 65536, 65536, 65536}};
    assert_int_equal(cvy_shape_check(&shape, "x"), CVY_ERR_INPUT);
    shape = (cvy_shape){1, {INT64_MAX}};
    assert_int_equal(cvy_shape_check(&shape, "x"), CVY_ERR_INPUT);
    shape = (cvy_shape){6, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}};
    assert_int_equal(cvy_shape_check(&shape, "x"), CVY_ERR_INPUT);
    shape = CVY_SHAPE(256, 3, 512, 512, 512);
    assert_int_equal(cvy_shape_check(&shape, "x"), CVY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_elements_are_the_product),
        cmocka_unit_test(test_equal_and_print),
        cmocka_unit_test(test_check_refuses_what_is_no_shape),
        cmocka_unit_test(test_check_refuses_what_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
