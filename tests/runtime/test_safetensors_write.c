/* Safetensors that are written: the bytes are what the format's page says, checked here by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <xxhash.h>

#include "base/memory.h"
#include "folder.h"
#include "runtime/safetensors.h"

/* 3 filters and 2 channels of 2x2 as OIhw8i8o: one block of each, so (o,i,at) lies at 64 at + 8 i + o. */
static void fill_blocked(float *memory)
{
    memset(memory, 0, 256 * sizeof *memory);
    for (int o = 0; o < 3; o++) {
        for (int i = 0; i < 2; i++) {
            for (int at = 0; at < 4; at++) {
                memory[at * 64 + i * 8 + o] = (float)(8 * o + 4 * i + at) / 3;
            }
        }
    }
}

static const cvy_tensor blocked_tensor = {{4, {3, 2, 2, 2}}, CVY_F32, CVY_FORMAT_W_I8O8, false};

/* The length, JSON padded to 8 bytes, the data in the order given; logical order whatever the format in memory. */
static void test_written_bytes_are_those_of_the_format(void **state)
{
    static float blocked[256];
    static const double vector[3] = {0.1, -0.0, 1e300};
    fill_blocked(blocked);
    const cvy_safetensor_item items[] = {
        {.name = "v", .shape = CVY_SHAPE(3), .tensor = {CVY_SHAPE(3), CVY_F64, CVY_FORMAT_PLAIN, false},
         .data = vector},
        {.name = "a.w\"\xc3\xa9", .shape = blocked_tensor.shape, .tensor = blocked_tensor, .data = blocked},
    };
    const char *path = test_path(*state, "w.safetensors");
    uint64_t checksum = 0;
    assert_int_equal(cvy_safetensors_write(path, items, 2, CVY_F64, &checksum), CVY_OK);
    char *bytes = NULL;
    size_t count = 0;
    assert_int_equal(cvy_file_read(path, 10000, CVY_ERR_IO, &bytes, &count), CVY_OK);
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"v\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[0,24]},"
        "\"a.w\\\"\xc3\xa9\":{\"dtype\":\"F64\",\"shape\":[3,2,2,2],\"data_offsets\":[24,216]}}";
    uint64_t length;
    memcpy(&length, bytes, 8);
    assert_int_equal(length, (sizeof header - 1 + 7) / 8 * 8);
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    assert_int_equal(count, 8 + length + 216);
    for (size_t i = sizeof header - 1; i < length; i++) {
        assert_int_equal(bytes[8 + i], ' ');
    }
    assert_memory_equal(bytes + 8 + length, vector, 24);
    for (int i = 0; i < 24; i++) {
        double expected = (double)((float)i / 3);
        assert_memory_equal(bytes + 8 + length + 24 + 8 * i, &expected, 8);
    }
    assert_true(checksum == XXH3_64bits(bytes, count));
    cvy_free(bytes);
}

static void test_written_tensors_are_read_back_into_their_format(void **state)
{
    static float blocked[256], back[256];
    fill_blocked(blocked);
    memset(back, 0xff, sizeof back);
    const cvy_safetensor_item item = {.name = "w", .shape = blocked_tensor.shape, .tensor = blocked_tensor,
                                      .data = blocked};
    const char *path = test_path(*state, "w.safetensors");
    assert_int_equal(cvy_safetensors_write(path, &item, 1, CVY_F32, NULL), CVY_OK);
    cvy_safetensors file;
    assert_int_equal(cvy_safetensors_open(path, &file), CVY_OK);
    assert_int_equal(cvy_safetensor_read(&file.tensor[0], path, &blocked_tensor, back), CVY_OK);
    assert_memory_equal(back, blocked, sizeof back); /* with its padding, zero again */
    cvy_safetensors_close(&file);
}

static void test_what_cannot_be_written_is_refused(void **state)
{
    static const float values[4];
    const cvy_tensor two = {CVY_SHAPE(2), CVY_F32, CVY_FORMAT_PLAIN, false};
    const cvy_safetensor_item one = {.name = "a", .shape = CVY_SHAPE(2), .tensor = two, .data = values};
    const cvy_safetensor_item twice[] = {one, one};
    const cvy_safetensor_item other = {.name = "a", .shape = CVY_SHAPE(3), .tensor = two, .data = values};
    const char *path = test_path(*state, "w.safetensors");
    assert_int_equal(cvy_safetensors_write(path, twice, 2, CVY_F32, NULL), CVY_ERR_ARG);
    assert_int_equal(cvy_safetensors_write(path, &other, 1, CVY_F32, NULL), CVY_ERR_ARG);
    assert_int_equal(cvy_safetensors_write(path, twice, 1, CVY_U8, NULL), CVY_ERR_ARG);
    assert_false(cvy_file_exists(path));
    assert_int_equal(cvy_safetensors_write(test_path(*state, "no/f"), twice, 1, CVY_F32, NULL), CVY_ERR_CHECKPOINT);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, create_test_folder, remove_test_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_written_bytes_are_those_of_the_format),
        IN_FOLDER(test_written_tensors_are_read_back_into_their_format),
        IN_FOLDER(test_what_cannot_be_written_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
