/*
 * Safetensors: a file of the reference writer is read, hostile files are refused with the key named, and what is
 * written is what the format's page says, checked here by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "base/memory.h"
#include "folder.h"
#include "runtime/safetensors.h"

#define REFERENCE CVY_TEST_DATA "/safetensors/reference.safetensors"

/* Write a file of a header text and data; the length may be given falsely. */
static const char *put_file(const char *folder, const char *header, uint64_t length, size_t data_bytes)
{
    static const unsigned char data[64] = {1, 2, 3, 4, 5, 6, 7, 8};
    static char bytes[4096];
    const char *path = test_path(folder, "f.safetensors");
    size_t header_bytes = strlen(header);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, header_bytes);
    memcpy(bytes + 8 + header_bytes, data, data_bytes);
    assert_true(put_test_file(path, bytes, 8 + header_bytes + data_bytes));
    return path;
}

static void assert_refused(const char *path, const char *words)
{
    cvy_safetensors file = {0};
    cvy_status status = cvy_safetensors_open(path, &file);
    if (status != CVY_ERR_CHECKPOINT || !strstr(cvy_error_message(), path) || !strstr(cvy_error_message(), words)) {
        fail_msg("expected a refusal with \"%s\", got %s: %s", words, cvy_status_name(status), cvy_error_message());
    }
    assert_int_equal(file.count, 0);
    assert_null(file.mapping);
}

static void read_doubles(const cvy_safetensors *file, const char *name, int64_t count, double *values)
{
    const cvy_safetensor *tensor = cvy_safetensors_find(file, name);
    assert_non_null(tensor);
    const cvy_tensor target = {CVY_SHAPE(count), CVY_F64, CVY_FORMAT_PLAIN, false};
    assert_int_equal(cvy_safetensor_read(tensor, "f", &target, values), CVY_OK);
}

/* The values are those of tests/data/safetensors/README.md. */
static void test_file_of_the_reference_writer_is_read(void **state)
{
    (void)state;
    cvy_safetensors file;
    assert_int_equal(cvy_safetensors_open(REFERENCE, &file), CVY_OK);
    assert_int_equal(file.count, 5);
    const cvy_safetensor *weight = cvy_safetensors_find(&file, "conv.weight");
    assert_non_null(weight);
    assert_string_equal(weight->dtype, "F32");
    assert_true(cvy_shape_equal(&weight->shape, &CVY_SHAPE(2, 3, 1, 1)));
    double got[6];
    read_doubles(&file, "conv.weight", 6, got);
    for (int i = 0; i < 6; i++) {
        assert_true(got[i] == -1 + 0.5 * i);
    }
    read_doubles(&file, "double", 2, got);
    assert_true(got[0] == 1.0 / 3 && got[1] == -1e300);
    read_doubles(&file, "half", 5, got);
    assert_true(got[0] == 1 && got[1] == -2 && got[2] == 65504 && got[3] == 0x1p-14 && got[4] == 0x1p-24);
    read_doubles(&file, "brain", 3, got);
    assert_true(got[0] == 1 && got[1] == -2 && got[2] == 3.140625);
    const cvy_safetensor *counter = cvy_safetensors_find(&file, "bn.num_batches_tracked");
    assert_non_null(counter);
    assert_string_equal(counter->dtype, "I64");
    assert_true(cvy_shape_equal(&counter->shape, &CVY_SHAPE(1))); /* a scalar */
    const cvy_tensor target = {CVY_SHAPE(1), CVY_F32, CVY_FORMAT_PLAIN, false};
    assert_int_equal(cvy_safetensor_read(counter, "f", &target, got), CVY_ERR_CHECKPOINT);
    assert_string_equal(cvy_error_message(), "f: bn.num_batches_tracked: dtype I64, expected F32, F64, F16 or BF16");
    assert_null(cvy_safetensors_find(&file, "none"));
    cvy_safetensors_close(&file);
    cvy_safetensors_close(&file);
}

static void test_every_truncation_is_refused(void **state)
{
    char *bytes = NULL;
    size_t count = 0;
    const char *path = test_path(*state, "cut.safetensors");
    assert_int_equal(cvy_file_read(REFERENCE, 10000, CVY_ERR_IO, &bytes, &count), CVY_OK);
    for (size_t length = 0; length < count; length++) {
        assert_true(put_test_file(path, bytes, length));
        assert_refused(path, "");
    }
    cvy_free(bytes);
}

/* A flipped bit is refused, unless it changed a name, a text or a type to another of equal size: never a crash. */
static void test_no_flipped_bit_of_the_header_reads_beyond_the_file(void **state)
{
    char *bytes = NULL;
    size_t count = 0;
    uint64_t header_bytes;
    const char *path = test_path(*state, "flipped.safetensors");
    assert_int_equal(cvy_file_read(REFERENCE, 10000, CVY_ERR_IO, &bytes, &count), CVY_OK);
    memcpy(&header_bytes, bytes, 8);
    size_t refused = 0;
    unsigned touched = 0;
    for (size_t bit = 0; bit < 8 * (8 + header_bytes); bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        assert_true(put_test_file(path, bytes, count));
        cvy_safetensors file = {0};
        refused += cvy_safetensors_open(path, &file) != CVY_OK;
        for (int i = 0; i < file.count; i++) { /* touch the ends of what it says is there */
            const cvy_safetensor *tensor = &file.tensor[i];
            touched += tensor->bytes ? tensor->data[0] + tensor->data[tensor->bytes - 1] + 1u : 1u;
        }
        cvy_safetensors_close(&file);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
    assert_true(refused > 4 * header_bytes); /* more than half of the bits */
    assert_true(touched > 0);
    cvy_free(bytes);
}

#define ENTRY(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(dtype, shape, offsets) "{" ENTRY("a", dtype, shape, offsets) "}"
#define TWO(first, second) "{" ENTRY("a", "F32", "[1]", first) "," ENTRY("b", "F32", "[1]", second) "}"

static void test_hostile_headers_are_refused_with_the_key_named(void **state)
{
    static const struct {
        const char *header, *words;
        size_t data_bytes;
    } cases[] = {
        {"", "not JSON", 0},
        {"[]", "not JSON", 0},
        {" {}", "not JSON", 0},
        {"{", "}", 0},
        {"{}", "1 bytes behind the last tensor", 1},
        {"{\"a\":1}", "a: its entry lacks", 0},
        {"{\"a\":{}}", "a: its entry lacks", 0},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", "a: its entry lacks", 4},
        {ONE("F32", "[1]", "[0]"), "a: its entry lacks", 4},
        {ONE("F32", "[1]", "[0,4,4]"), "a: its entry lacks", 4},
        {ONE("F33", "[1]", "[0,4]"), "a: unknown dtype F33", 4},
        {ONE("F32", "1", "[0,4]"), "a: its entry lacks", 4},
        {ONE("F32", "[-1]", "[0,4]"), "a: extent 0", 4},
        {ONE("F32", "[1.0]", "[0,4]"), "a: extent 0", 4},
        {ONE("F32", "[4294967296,4294967296]", "[0,0]"), "a: extent 1", 0},
        {ONE("F32", "[4611686018427387904]", "[0,0]"), "a: its bytes are beyond 2^63", 0},
        {ONE("F32", "[1,1,1,1,1,1,1]", "[0,4]"), "a: 7 dimensions, expected at most 6", 4},
        {ONE("F32", "[1]", "[0,8]"), "a: 8 bytes of data, expected 4", 8},
        {ONE("F32", "[2]", "[0,8]"), "a: data_offsets [0, 8] are not within its 4 bytes", 4},
        {ONE("F32", "[1]", "[4,0]"), "a: data_offsets [4, 0]", 4},
        {ONE("F32", "[1]", "[-4,0]"), "a: data_offsets [-4, 0]", 4},
        {ONE("F32", "[1]", "[0.0,4]"), "a: data_offsets", 4},
        {ONE("F32", "[1]", "[4,8]"), "a: its data comes after a gap", 8},
        {TWO("[0,4]", "[0,4]"), "overlaps another tensor's", 4},
        {TWO("[0,4]", "[2,6]"), "b: its data overlaps", 6},
        {TWO("[0,4]", "[8,12]"), "b: its data comes after a gap", 12},
        {ONE("F32", "[1]", "[0,4]"), "4 bytes behind the last tensor", 8},
        {"{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("a", "F32", "[1]", "[4,8]") "}", "duplicate", 8},
        {"{" ENTRY("\xff\xfe", "F32", "[1]", "[0,4]") "}", "unable to decode byte 0xff", 4},
        {"{" ENTRY("a\\u0000", "F32", "[1]", "[0,4]") "}", "\\u0000", 4},
        {"{\"a\"}", "byte 4: expected ':'", 0},
        {"{\"a\":}", "byte 6", 0},
        {"{,}", "byte 1: expected '\"' or '}'", 0},
        {"{a:1}", "byte 1: expected '\"' or '}'", 0},
        {"{" ENTRY("a", "F32", "[1]", "[0,4]") ",}", "expected '\"' or '}'", 4},
        {"{" ENTRY("a", "F32", "[1]", "[0,4]") ";}", "expected ',' or '}'", 4},
        {"{" ENTRY("a", "F32", "[1]", "[0,4]"), "expected ',' or '}'", 4},
        {"{}{}", "byte 2: expected its end", 0},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", "__metadata__: a duplicate key", 0},
        {"{\"__metadata__\":3}", "__metadata__ is not an object", 0},
        {"{\"__metadata__\":{\"k\":3}}", "__metadata__: k is not a text", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(put_file(*state, cases[i].header, strlen(cases[i].header), cases[i].data_bytes), cases[i].words);
    }
    static const uint64_t lengths[] = {3, 1000, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63, 1 << 30};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_refused(put_file(*state, "{}", lengths[i], 0), "a header of");
    }
    assert_refused(*state, "not a regular file");
    assert_refused(test_path(*state, "none"), "No such file");
}

/* An entry of 16 MiB would make a tree of half a gigabyte. */
static void test_a_long_entry_is_refused(void **state)
{
    enum { BYTES = 16 << 20 };
    static const char begin[] = "{\"__metadata__\":[";
    const char *path = test_path(*state, "long.safetensors");
    char *bytes = malloc(8 + BYTES);
    assert_non_null(bytes);
    memcpy(bytes, &(uint64_t){BYTES}, 8);
    memcpy(bytes + 8, begin, sizeof begin - 1);
    for (size_t i = 0; i < BYTES - (sizeof begin - 1); i++) {
        bytes[8 + sizeof begin - 1 + i] = "[],"[i % 3];
    }
    assert_true(put_test_file(path, bytes, 8 + BYTES));
    free(bytes);
    assert_refused(path, "a value of more than 1048576 bytes");
}

/* Names in any order are found, among many. */
static void test_every_name_is_found(void **state)
{
    enum { NAMES = 1000 };
    static char header[64 * NAMES + 2];
    int length = 1;
    header[0] = '{';
    for (int i = 0; i < NAMES; i++) { /* 7 and 1000 have no common factor: every name once */
        length += snprintf(header + length, sizeof header - (size_t)length,
                           "\"n%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}%s", i * 7 % NAMES,
                           i + 1 < NAMES ? "," : "}");
    }
    const char *path = test_path(*state, "names.safetensors");
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(&(uint64_t){(uint64_t)length}, 8, 1, stream), 1);
    assert_int_equal(fwrite(header, 1, (size_t)length, stream), length);
    assert_int_equal(fclose(stream), 0);
    cvy_safetensors file;
    assert_int_equal(cvy_safetensors_open(path, &file), CVY_OK);
    assert_int_equal(file.count, NAMES);
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i * 7 % NAMES);
        assert_ptr_equal(cvy_safetensors_find(&file, name), &file.tensor[i]);
    }
    assert_null(cvy_safetensors_find(&file, "n1000"));
    cvy_safetensors_close(&file);
}

static void test_what_the_format_allows_is_read(void **state)
{
    static const struct {
        const char *header;
        int count;
        size_t data_bytes;
    } cases[] = {
        {"{}   ", 0, 0},
        {"{\"__metadata__\":{}}", 0, 0},
        {"{ \"__metadata__\" :\t{ } ,\n\"a\": {\"data_offsets\":[0,4],\"shape\":[],\"dtype\":\"F32\", \"more\":1}\r}  ",
         1, 4},
        {ONE("F32", "[0,3]", "[0,0]"), 1, 0},
        {"{" ENTRY("b", "I64", "[0]", "[8,8]") "," ENTRY("a", "U8", "[2,2,2]", "[0,8]") "}", 2, 8},
        {"{" ENTRY("later", "U8", "[]", "[7,8]") "," ENTRY("first", "I8", "[7]", "[0,7]") "}", 2, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cvy_safetensors file;
        const char *path = put_file(*state, cases[i].header, strlen(cases[i].header), cases[i].data_bytes);
        if (cvy_safetensors_open(path, &file) != CVY_OK) {
            fail_msg("%s: %s", cases[i].header, cvy_error_message());
        }
        assert_int_equal(file.count, cases[i].count);
        cvy_safetensors_close(&file);
    }
}

/* One element of half precision at an odd address, read into f32. */
static float read_half(const char *dtype, uint16_t bits)
{
    const cvy_tensor target = {CVY_SHAPE(1), CVY_F32, CVY_FORMAT_PLAIN, false};
    unsigned char bytes[4] __attribute__((aligned(4)));
    memcpy(bytes + 1, &bits, 2);
    cvy_safetensor tensor = {.shape = CVY_SHAPE(1), .data = bytes + 1, .bytes = 2};
    snprintf(tensor.dtype, sizeof tensor.dtype, "%s", dtype);
    float got = 5;
    assert_int_equal(cvy_safetensor_read(&tensor, "f", &target, &got), CVY_OK);
    return got;
}

/* IEEE 754 binary16 (1, 5, 10 bits; bias 15) and bfloat16 (1, 8, 7 bits; bias 127), worked out by hand. */
static void test_halves_convert_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *dtype;
        uint16_t bits;
        double value;
    } cases[] = {
        {"F16", 0x0000, 0},           {"F16", 0x8000, -0.0},         {"F16", 0x3c00, 1},
        {"F16", 0xc000, -2},          {"F16", 0x7bff, 65504},        {"F16", 0x0001, 0x1p-24},
        {"F16", 0x03ff, 0x3ffp-24},   {"F16", 0x0400, 0x1p-14},      {"F16", 0x3555, 0x1.554p-2},
        {"F16", 0x7c00, HUGE_VAL},    {"F16", 0xfc00, -HUGE_VAL},    {"BF16", 0x0000, 0},
        {"BF16", 0x8000, -0.0},       {"BF16", 0x3f80, 1},           {"BF16", 0xc000, -2},
        {"BF16", 0x4049, 3.140625},   {"BF16", 0x0001, 0x1p-133},    {"BF16", 0x7f7f, 0x1.fep127},
        {"BF16", 0x7f80, HUGE_VAL},   {"BF16", 0xff80, -HUGE_VAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float got = read_half(cases[i].dtype, cases[i].bits);
        if (got != (float)cases[i].value || !signbit(got) != !signbit(cases[i].value)) {
            fail_msg("%s %04x: got %a, expected %a", cases[i].dtype, cases[i].bits, (double)got, cases[i].value);
        }
    }
    assert_true(isnan(read_half("F16", 0x7e01)));
    assert_true(isnan(read_half("BF16", 0x7fc1)));
}

static void test_elements_must_be_as_many_as_expected(void **state)
{
    (void)state;
    static const unsigned char values[12];
    char name[] = "a.weight";
    const cvy_safetensor tensor = {name, "F32", CVY_SHAPE(3), values, sizeof values};
    const cvy_tensor target = {CVY_SHAPE(2, 2), CVY_F32, CVY_FORMAT_PLAIN, false};
    float to[4];
    assert_int_equal(cvy_safetensor_read(&tensor, "f", &target, to), CVY_ERR_CHECKPOINT);
    assert_string_equal(cvy_error_message(), "f: a.weight: 3 elements, expected 4");
}

static void test_lost_allocations_leak_nothing(void **state)
{
    (void)state;
    cvy_safetensors file = {0};
    cvy_status status = CVY_ERR_MEMORY;
    int calls = 0;
    for (; status == CVY_ERR_MEMORY; calls++) {
        cvy_memory_fail_after(calls);
        status = cvy_safetensors_open(REFERENCE, &file);
    }
    cvy_memory_fail_after(-1);
    assert_int_equal(status, CVY_OK);
    assert_int_equal(calls - 1, 1 + 5 + 1); /* the table, five names, the order */
    cvy_safetensors_close(&file);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_of_the_reference_writer_is_read),
        IN_FOLDER(test_every_truncation_is_refused),
        IN_FOLDER(test_no_flipped_bit_of_the_header_reads_beyond_the_file),
        IN_FOLDER(test_hostile_headers_are_refused_with_the_key_named),
        IN_FOLDER(test_a_long_entry_is_refused),
        IN_FOLDER(test_every_name_is_found),
        IN_FOLDER(test_what_the_format_allows_is_read),
        cmocka_unit_test(test_halves_convert_exactly),
        cmocka_unit_test(test_elements_must_be_as_many_as_expected),
        cmocka_unit_test(test_lost_allocations_leak_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
