/*
 * Formats: that every logical index has a place of its own inside the tensor, that the places are those which oneDNN's
 * names promise (worked out by hand), and that copies move elements and zero the padding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

/* Extents that no block divides, that a block divides, and of one element. */
static const struct {
    cvy_shape shape;
    bool grouped;
} cases[] = {
    {{2, {3, 20}}, false},          {{4, {2, 20, 3, 5}}, false},    {{4, {2, 16, 4, 4}}, false},
    {{4, {3, 8, 1, 1}}, false},     {{4, {2, 24, 1, 1}}, false},    {{4, {1, 1, 2, 2}}, false},
    {{5, {2, 9, 2, 3, 4}}, false},  {{5, {5, 4, 3, 2, 20}}, true},   {{5, {18, 1, 1, 3, 3}}, true},
    {{6, {2, 10, 9, 2, 3, 3}}, true}, {{5, {2, 9, 17, 3, 3}}, true},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static bool make_tensor(int i, cvy_format format, cvy_tensor *tensor)
{
    *tensor = (cvy_tensor){cases[i].shape, CVY_F32, format, cases[i].grouped};
    return cvy_tensor_format_fits(tensor);
}

/* The k-th logical index, last dimension fastest. */
static void split_index(const cvy_shape *shape, int64_t k, int64_t *index)
{
    for (int i = shape->dims - 1; i >= 0; i--) {
        index[i] = k % shape->extent[i];
        k /= shape->extent[i];
    }
}

static int64_t offset_of(const cvy_tensor *tensor, int64_t k)
{
    int64_t index[CVY_MAX_DIMS] = {0};
    cvy_layout layout = cvy_tensor_layout(tensor);
    split_index(&tensor->shape, k, index);
    return cvy_layout_offset(&layout, index);
}

static void test_every_index_has_a_place_of_its_own(void **state)
{
    (void)state;
    int fitting = 0;
    for (int i = 0; i < CASES; i++) {
        for (int format = 0; format < CVY_FORMAT_COUNT; format++) {
            cvy_tensor tensor;
            if (!make_tensor(i, (cvy_format)format, &tensor)) {
                continue;
            }
            fitting++;
            int64_t places = cvy_tensor_elements(&tensor);
            assert_int_equal(cvy_tensor_bytes(&tensor), 4 * places);
            unsigned char *taken = calloc((size_t)places, 1);
            assert_non_null(taken);
            for (int64_t k = 0; k < cvy_shape_elements(&tensor.shape); k++) {
                int64_t offset = offset_of(&tensor, k);
                assert_in_range(offset, 0, places - 1);
                assert_false(taken[offset]);
                taken[offset] = 1;
            }
            free(taken);
        }
    }
    assert_true(fitting > 80);
}

static void test_names_are_found_again(void **state)
{
    (void)state;
    for (int i = 0; i < CVY_FORMAT_COUNT; i++) {
        cvy_format format = CVY_FORMAT_COUNT;
        assert_true(cvy_format_find(cvy_format_name((cvy_format)i), &format));
        assert_int_equal(format, i);
    }
    cvy_format untouched = CVY_FORMAT_C8;
    assert_false(cvy_format_find("nchw", &untouched));
    assert_int_equal(untouched, CVY_FORMAT_C8);
}

static void test_what_fits(void **state)
{
    (void)state;
    cvy_tensor vector = {CVY_SHAPE(64), CVY_F32, CVY_FORMAT_PLAIN, false};
    assert_true(cvy_tensor_format_fits(&vector));
    vector.format = CVY_FORMAT_C8;
    assert_false(cvy_tensor_format_fits(&vector));
    cvy_tensor weights = {CVY_SHAPE(8, 3, 3, 3), CVY_F32, CVY_FORMAT_W_G8, false};
    assert_false(cvy_tensor_format_fits(&weights));
    weights.format = CVY_FORMAT_W_I8O8;
    assert_true(cvy_tensor_format_fits(&weights));
    cvy_tensor depthwise = {CVY_SHAPE(8, 1, 1, 3, 3), CVY_F32, CVY_FORMAT_W_G8, true};
    assert_true(cvy_tensor_format_fits(&depthwise));
    depthwise.format = CVY_FORMAT_C8;
    assert_false(cvy_tensor_format_fits(&depthwise));
    cvy_tensor longest = {CVY_SHAPE(1, 2, 3, 4, 5, 6), CVY_F32, CVY_FORMAT_CHANNELS_LAST, false};
    assert_false(cvy_tensor_format_fits(&longest));
}

static void assert_offset(cvy_format format, bool grouped, cvy_shape shape, const int64_t *index, int64_t expected)
{
    cvy_tensor tensor = {shape, CVY_F32, format, grouped};
    assert_true(cvy_tensor_format_fits(&tensor));
    cvy_layout layout = cvy_tensor_layout(&tensor);
    assert_int_equal(cvy_layout_offset(&layout, index), expected);
}

#define AT(...) ((const int64_t[CVY_MAX_DIMS]){__VA_ARGS__})

static void test_activation_offsets_by_hand(void **state)
{
    (void)state;
    cvy_shape image = CVY_SHAPE(2, 20, 3, 5);    /* 20 channels are padded to 24 = 3 * 8, and to 32 = 2 * 16 */
    cvy_shape volume = CVY_SHAPE(2, 20, 2, 3, 5);
    assert_offset(CVY_FORMAT_PLAIN, false, image, AT(1, 13, 2, 4), ((1 * 20 + 13) * 3 + 2) * 5 + 4);
    assert_offset(CVY_FORMAT_CHANNELS_LAST, false, image, AT(1, 13, 2, 4), ((1 * 3 + 2) * 5 + 4) * 20 + 13);
    /* nChw8c: channel 13 is block 1, lane 5 */
    assert_offset(CVY_FORMAT_C8, false, image, AT(1, 13, 2, 4), (((1 * 3 + 1) * 3 + 2) * 5 + 4) * 8 + 5);
    assert_offset(CVY_FORMAT_C16, false, image, AT(1, 19, 2, 4), (((1 * 2 + 1) * 3 + 2) * 5 + 4) * 16 + 3);
    assert_offset(CVY_FORMAT_PLAIN, false, volume, AT(1, 13, 1, 2, 4), (((1 * 20 + 13) * 2 + 1) * 3 + 2) * 5 + 4);
    assert_offset(CVY_FORMAT_CHANNELS_LAST, false, volume, AT(1, 13, 1, 2, 4),
                  (((1 * 2 + 1) * 3 + 2) * 5 + 4) * 20 + 13);
    assert_offset(CVY_FORMAT_C8, false, volume, AT(1, 13, 1, 2, 4),
                  ((((1 * 3 + 1) * 2 + 1) * 3 + 2) * 5 + 4) * 8 + 5);
}

static void test_weight_offsets_by_hand(void **state)
{
    (void)state;
    cvy_shape square = CVY_SHAPE(20, 9, 3, 5); /* o is padded to 24 = 3 * 8, i to 16 = 2 * 8 */
    const int64_t *at = AT(13, 7, 2, 4);
    assert_offset(CVY_FORMAT_W_HWIO, false, square, at, ((2 * 5 + 4) * 9 + 7) * 20 + 13);
    assert_offset(CVY_FORMAT_W_OHWI, false, square, at, ((13 * 3 + 2) * 5 + 4) * 9 + 7);
    /* OIhw8i8o: o = 13 is block 1, lane 5; i = 7 is block 0, lane 7 */
    assert_offset(CVY_FORMAT_W_I8O8, false, square, at, ((((1 * 2 + 0) * 3 + 2) * 5 + 4) * 8 + 7) * 8 + 5);
    assert_offset(CVY_FORMAT_W_O8I8, false, square, at, ((((1 * 2 + 0) * 3 + 2) * 5 + 4) * 8 + 5) * 8 + 7);
    /* Ohwi8o: i stands behind the window, and is not padded */
    assert_offset(CVY_FORMAT_W_O8, false, square, at, (((1 * 3 + 2) * 5 + 4) * 9 + 7) * 8 + 5);
    /* Oihw8o: i stands before the window */
    assert_offset(CVY_FORMAT_W_OI_O8, false, square, at, (((1 * 9 + 7) * 3 + 2) * 5 + 4) * 8 + 5);
    /* blocks of 16: o = 13 is block 0, lane 13 */
    assert_offset(CVY_FORMAT_W_I16O16, false, square, at, (((0 * 3 + 2) * 5 + 4) * 16 + 7) * 16 + 13);
    assert_offset(CVY_FORMAT_W_O16I16, false, square, at, (((0 * 3 + 2) * 5 + 4) * 16 + 13) * 16 + 7);
    /* IOhw16o16i: blocks of i stand before those of o; 20 filters make two of them */
    assert_offset(CVY_FORMAT_W_IO_O16I16, false, CVY_SHAPE(20, 40, 3, 5), AT(17, 39, 2, 4),
                  ((((2 * 2 + 1) * 3 + 2) * 5 + 4) * 16 + 1) * 16 + 7);
    assert_offset(CVY_FORMAT_W_O16, false, square, at, ((2 * 5 + 4) * 9 + 7) * 16 + 13);
    assert_offset(CVY_FORMAT_W_O48, false, square, at, ((2 * 5 + 4) * 9 + 7) * 48 + 13);
    assert_offset(CVY_FORMAT_W_OI_O16, false, square, at, ((7 * 3 + 2) * 5 + 4) * 16 + 13);
    /* dhwio */
    assert_offset(CVY_FORMAT_W_HWIO, false, CVY_SHAPE(20, 9, 2, 3, 5), AT(13, 7, 1, 2, 4),
                  (((1 * 3 + 2) * 5 + 4) * 9 + 7) * 20 + 13);
    /* a dense layer's [in, out] */
    assert_offset(CVY_FORMAT_W_HWIO, false, CVY_SHAPE(10, 84), AT(3, 50), 50 * 10 + 3);
}

static void test_grouped_weight_offsets_by_hand(void **state)
{
    (void)state;
    cvy_shape grouped = CVY_SHAPE(3, 20, 9, 3, 5); /* as above, after g */
    assert_offset(CVY_FORMAT_PLAIN, true, grouped, AT(2, 13, 7, 2, 4), (((2 * 20 + 13) * 9 + 7) * 3 + 2) * 5 + 4);
    assert_offset(CVY_FORMAT_W_HWIO, true, grouped, AT(2, 13, 7, 2, 4), (((2 * 5 + 4) * 9 + 7) * 3 + 2) * 20 + 13);
    assert_offset(CVY_FORMAT_W_OHWI, true, grouped, AT(2, 13, 7, 2, 4), (((2 * 20 + 13) * 3 + 2) * 5 + 4) * 9 + 7);
    assert_offset(CVY_FORMAT_W_I8O8, true, grouped, AT(2, 13, 7, 2, 4),
                  (((((2 * 3 + 1) * 2 + 0) * 3 + 2) * 5 + 4) * 8 + 7) * 8 + 5);
    /* Goihw8g: g = 11 is block 1, lane 3; o = i = 1 */
    cvy_shape depthwise = CVY_SHAPE(18, 1, 1, 3, 5);
    assert_offset(CVY_FORMAT_W_G8, true, depthwise, AT(11, 0, 0, 2, 4), ((1 * 3 + 2) * 5 + 4) * 8 + 3);
    assert_offset(CVY_FORMAT_W_G16, true, depthwise, AT(17, 0, 0, 2, 4), ((1 * 3 + 2) * 5 + 4) * 16 + 1);
}

/* 2 * 20 * 3 * 5 floats: 2 * 24 * 15 * 4 bytes in blocks of 8, 2 * 32 * 15 * 4 in blocks of 16. */
static void test_bytes_count_the_padding(void **state)
{
    (void)state;
    cvy_tensor tensor = {CVY_SHAPE(2, 20, 3, 5), CVY_F32, CVY_FORMAT_PLAIN, false};
    assert_int_equal(cvy_tensor_bytes(&tensor), 2400);
    tensor.format = CVY_FORMAT_C8;
    assert_int_equal(cvy_tensor_bytes(&tensor), 2880);
    tensor.format = CVY_FORMAT_C16;
    assert_int_equal(cvy_tensor_bytes(&tensor), 3840);
    tensor.dtype = CVY_F64;
    assert_int_equal(cvy_tensor_bytes(&tensor), 7680);
    cvy_tensor none = {0};
    assert_int_equal(cvy_tensor_bytes(&none), 0);
}

/* Plain, to the format and back; in between the padding, which was poisoned, is zero. */
static void check_round_trip(const cvy_tensor *tensor)
{
    cvy_tensor plain = *tensor;
    plain.format = CVY_FORMAT_PLAIN;
    int64_t count = cvy_shape_elements(&tensor->shape);
    int64_t places = cvy_tensor_elements(tensor);
    float *from = malloc((size_t)count * sizeof *from);
    float *to = malloc((size_t)places * sizeof *to);
    float *back = malloc((size_t)count * sizeof *back);
    assert_true(from && to && back);
    memset(to, 0xff, (size_t)places * sizeof *to);
    for (int64_t k = 0; k < count; k++) {
        from[k] = (float)(k + 1);
    }
    assert_int_equal(cvy_tensor_copy(&plain, from, tensor, to), CVY_OK);
    for (int64_t k = 0; k < count; k++) {
        assert_true(to[offset_of(tensor, k)] == (float)(k + 1));
    }
    assert_int_equal(cvy_tensor_copy(tensor, to, &plain, back), CVY_OK);
    assert_memory_equal(from, back, (size_t)count * sizeof *from);
    int64_t zeros = 0;
    for (int64_t i = 0; i < places; i++) {
        zeros += to[i] == 0.0f;
    }
    assert_int_equal(zeros, places - count);
    free(from);
    free(to);
    free(back);
}

static void test_copies_go_there_and_back_and_zero_the_padding(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        for (int format = 0; format < CVY_FORMAT_COUNT; format++) {
            cvy_tensor tensor;
            if (make_tensor(i, (cvy_format)format, &tensor)) {
                check_round_trip(&tensor);
            }
        }
    }
}

static void test_copy_between_types_and_shapes(void **state)
{
    (void)state;
    const float from[6] = {0.5f, 1.0f, -2.0f, 3.0f, 4.0f, 1e-3f};
    double to[6];
    cvy_tensor image = {CVY_SHAPE(1, 3, 1, 2), CVY_F32, CVY_FORMAT_CHANNELS_LAST, false};
    cvy_tensor flat = {CVY_SHAPE(1, 6), CVY_F64, CVY_FORMAT_PLAIN, false};
    assert_int_equal(cvy_tensor_copy(&image, from, &flat, to), CVY_OK);
    /* nhwc holds (h0,w0): c0 c1 c2, (h0,w1): c0 c1 c2; flattened in c,h,w order */
    const double expected[6] = {0.5, 3.0, 1.0, 4.0, -2.0, (double)1e-3f};
    assert_memory_equal(to, expected, sizeof to);
    cvy_tensor short_one = {CVY_SHAPE(1, 5), CVY_F64, CVY_FORMAT_PLAIN, false};
    assert_int_equal(cvy_tensor_copy(&image, from, &short_one, to), CVY_ERR_ARG);
    assert_string_equal(cvy_error_message(), "a copy of 6 elements into 5");
}

/* Alike in memory is: as many places, and every logical index at the same one. */
static bool lies_alike(const cvy_tensor *a, const cvy_tensor *b)
{
    bool alike = cvy_tensor_elements(a) == cvy_tensor_elements(b);
    for (int64_t k = 0; alike && k < cvy_shape_elements(&a->shape); k++) {
        alike = offset_of(a, k) == offset_of(b, k);
    }
    return alike;
}

static double number_element(const void *context, int64_t i) { return *(const double *)context + (double)i; }

/* Filling with 7, 8, 9, … gives what a copy of 7, 8, 9, … in plain order gives, padding included. */
static void test_fill_goes_in_logical_order(void **state)
{
    (void)state;
    cvy_tensor plain = {.shape = CVY_SHAPE(5, 3, 2, 2), .dtype = CVY_F64, .format = CVY_FORMAT_PLAIN};
    cvy_tensor blocked = {.shape = plain.shape, .dtype = CVY_F32, .format = CVY_FORMAT_W_I8O8};
    double first = 7.0, numbers[60];
    float filled[8 * 8 * 4], copied[8 * 8 * 4];
    for (int i = 0; i < 60; i++) {
        numbers[i] = first + i;
    }
    memset(filled, 0xff, sizeof filled);
    assert_int_equal(cvy_tensor_bytes(&blocked), sizeof filled);
    cvy_tensor_fill(&blocked, filled, number_element, &first);
    assert_int_equal(cvy_tensor_copy(&plain, numbers, &blocked, copied), CVY_OK);
    assert_memory_equal(filled, copied, sizeof filled);
}

static void test_same_layout_is_same_places(void **state)
{
    (void)state;
    int alike = 0;
    for (int i = 0; i < CASES; i++) {
        for (int pair = 0; pair < CVY_FORMAT_COUNT * CVY_FORMAT_COUNT; pair++) {
            cvy_tensor a, b;
            if (make_tensor(i, (cvy_format)(pair / CVY_FORMAT_COUNT), &a) &&
                make_tensor(i, (cvy_format)(pair % CVY_FORMAT_COUNT), &b)) {
                assert_int_equal(cvy_tensor_same_layout(&a, &b), lies_alike(&a, &b));
                alike += a.format != b.format && lies_alike(&a, &b);
            }
        }
    }
    assert_true(alike > 10);
}

/* A pooled 2x24x1x1 is the same memory plain, channels-last and in blocks of 8, but not in blocks of 16 (32 places). */
static void test_pooled_tensors_need_no_reorder(void **state)
{
    (void)state;
    cvy_tensor plain = {CVY_SHAPE(2, 24, 1, 1), CVY_F32, CVY_FORMAT_PLAIN, false};
    cvy_tensor other = plain;
    other.format = CVY_FORMAT_CHANNELS_LAST;
    assert_true(cvy_tensor_same_layout(&plain, &other));
    other.format = CVY_FORMAT_C8;
    assert_true(cvy_tensor_same_layout(&plain, &other));
    assert_false(cvy_tensor_equal(&plain, &other));
    other.format = CVY_FORMAT_C16;
    assert_false(cvy_tensor_same_layout(&plain, &other));
    other = plain;
    assert_true(cvy_tensor_equal(&plain, &other));
    other.shape.extent[0] = 3;
    assert_false(cvy_tensor_same_layout(&plain, &other));
    assert_false(cvy_tensor_equal(&plain, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_has_a_place_of_its_own),
        cmocka_unit_test(test_names_are_found_again),
        cmocka_unit_test(test_what_fits),
        cmocka_unit_test(test_activation_offsets_by_hand),
        cmocka_unit_test(test_weight_offsets_by_hand),
        cmocka_unit_test(test_grouped_weight_offsets_by_hand),
        cmocka_unit_test(test_bytes_count_the_padding),
        cmocka_unit_test(test_copies_go_there_and_back_and_zero_the_padding),
        cmocka_unit_test(test_copy_between_types_and_shapes),
        cmocka_unit_test(test_fill_goes_in_logical_order),
        cmocka_unit_test(test_same_layout_is_same_places),
        cmocka_unit_test(test_pooled_tensors_need_no_reorder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
