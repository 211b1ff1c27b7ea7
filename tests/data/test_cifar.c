/*
 * CIFAR's binary files. Those of cifar10/ and cifar100/ were written by NumPy (make_files.py): the byte at (c, y, x) of
 * sample k is (90 c + 7 y + 3 x + 11 k) mod 256. Damaged ones are made here.
 */
#include "data_test.h"

#include <math.h>

#include "base/memory.h"

enum { PIXELS = 3072, RECORD = 1 + PIXELS };

static const cvy_shape colour = {3, {3, 32, 32}};

static const float mean10[] = {0.4914f, 0.4822f, 0.4465f}, std10[] = {0.2470f, 0.2435f, 0.2616f};
static const float mean100[] = {0.5071f, 0.4865f, 0.4409f}, std100[] = {0.2673f, 0.2564f, 0.2762f};

/* Sample @p index of a split is number @p k of the formula, with a label. */
static void expect_sample(const cvy_data *data, cvy_split split, int64_t index, int k, int label, const float *mean,
                          const float *std)
{
    static float x[PIXELS];
    int32_t found;
    assert_int_equal(cvy_data_read(data, split, index, x, &found), CVY_OK);
    assert_int_equal(found, label);
    for (int i = 0; i < PIXELS; i++) {
        int c = i / 1024, row = i / 32 % 32, column = i % 32;
        float byte = (float)((90 * c + 7 * row + 3 * column + 11 * k) % 256);
        assert_true(x[i] == (byte / 255.0f - mean[c]) / std[c]);
    }
}

static void test_cifar10_is_five_files_in_order_and_a_test_file(void **state)
{
    (void)state;
    cvy_data_options options = class_options(CVY_TEST_DATA "/cifar10", colour);
    cvy_data *data;
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    assert_string_equal(cvy_data_kind_name(data), "cifar10");
    assert_int_equal(cvy_data_get_info(data)->classes, 10);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TRAIN], 5);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TEST], 2);
    for (int k = 0; k < 5; k++) {
        expect_sample(data, CVY_SPLIT_TRAIN, k, k, (3 * k + 1) % 10, mean10, std10);
    }
    expect_sample(data, CVY_SPLIT_TEST, 0, 20, 9, mean10, std10);
    expect_sample(data, CVY_SPLIT_TEST, 1, 21, 0, mean10, std10);
    cvy_data_close(&data);
}

static void test_cifar100_gives_the_fine_labels(void **state)
{
    (void)state;
    cvy_data_options options = class_options(CVY_TEST_DATA "/cifar100", colour);
    cvy_data *data;
    options.classes = 100;
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    assert_string_equal(cvy_data_kind_name(data), "cifar100");
    assert_int_equal(cvy_data_get_info(data)->classes, 100);
    expect_sample(data, CVY_SPLIT_TRAIN, 0, 0, 99, mean100, std100);
    expect_sample(data, CVY_SPLIT_TRAIN, 1, 1, 0, mean100, std100);
    expect_sample(data, CVY_SPLIT_TEST, 0, 20, 42, mean100, std100);
    cvy_data_close(&data);
}

static void test_mean_and_deviation_can_be_chosen(void **state)
{
    (void)state;
    static const float mean[] = {0.5f, 0.25f, -1.0f}, std[] = {2.0f, 2.0f, 2.0f};
    cvy_data_options options = class_options(CVY_TEST_DATA "/cifar10", colour);
    cvy_data *data;
    options.mean = "0.5,0.25,-1";
    options.std = "2";
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    expect_sample(data, CVY_SPLIT_TRAIN, 3, 3, 0, mean, std);
    cvy_data_close(&data);
    static const char *const wrong[] = {"", "0.5,", "0.5,0.5", "1,2,3,4", "x", "nan", "1e999", "1e300", "1 2 3", ","};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        options.mean = wrong[i];
        EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "mean: expected one number, or 3 ");
    }
    options.mean = NULL;
    options.std = "1,0,1";
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "std: expected numbers above 0, found 0");
}

static void test_limits_take_the_first_samples(void **state)
{
    (void)state;
    cvy_data_options options = class_options(CVY_TEST_DATA "/cifar10", colour);
    cvy_data *data;
    options.train_count = 3;
    options.test_count = 1;
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TRAIN], 3);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TEST], 1);
    cvy_data_close(&data);
}

static void test_another_model_is_told_what_fits(void **state)
{
    (void)state;
    cvy_data_options options = class_options(CVY_TEST_DATA "/cifar10", CVY_SHAPE(1, 28, 28));
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "cifar10: samples are 3x32x32", "1x28x28", "channels=3,size=32");
    options = class_options(CVY_TEST_DATA "/cifar10", colour);
    options.classes = 9;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "test_batch.bin: sample 0 has label 9", "9 classes");
    options.target = CVY_TARGET_VALUES;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "classes", "values");
}

/* A record at every length but whole ones; a label of 10, of which there are 10; a coarse label of 20. */
static void test_damage_is_refused_and_named(void **state)
{
    const char *folder = *state;
    static unsigned char records[2 * RECORD + 2];
    cvy_data_options options = class_options(folder, colour);
    cvy_data *data;
    for (size_t bytes = 0; bytes < sizeof records; bytes += bytes < 4 || bytes > 2 * RECORD - 4 ? 1 : 97) {
        write_file(folder, "test_batch.bin", records, bytes);
        if (bytes == 2 * RECORD) {
            assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
            cvy_data_close(&data);
            continue;
        }
        EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "/test_batch.bin: ", "3073");
    }
    records[RECORD] = 10;
    write_file(folder, "test_batch.bin", records, 2 * RECORD);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "/test_batch.bin: sample 1 has label 10", "0 to 9");
    records[RECORD] = 0;
    records[0] = 0x1f;
    records[1] = 0x8b;
    write_file(folder, "test_batch.bin", records, 2 * RECORD);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "/test_batch.bin: gzipped");
    remove_file(folder, "test_batch.bin");
    records[0] = 20;
    write_file(folder, "test.bin", records, RECORD + 1);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "/test.bin: sample 0 has coarse label 20", "0 to 19");
}

static void test_a_missing_file_is_named(void **state)
{
    const char *folder = *state;
    static const unsigned char record[RECORD];
    static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_4.bin", "data_batch_5.bin"};
    cvy_data_options options = class_options(folder, colour);
    for (int i = 0; i < 4; i++) {
        write_file(folder, names[i], record, sizeof record);
    }
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "data_batch_3.bin is missing");
    options.kind = "cifar100";
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "holds no train.bin");
}

static void test_every_failed_allocation_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    cvy_data_options options = class_options(CVY_TEST_DATA "/cifar10", colour);
    cvy_data *data = NULL;
    cvy_status status = CVY_ERR_MEMORY;
    int failures = 0;
    options.kind = "cifar10"; /* detection would take a failed allocation for a missing file */
    for (; status == CVY_ERR_MEMORY && failures < 100; failures++) {
        cvy_memory_fail_after(failures);
        status = cvy_data_open(&options, &data);
        cvy_memory_fail_after(-1);
    }
    assert_int_equal(status, CVY_OK);
    assert_true(failures > 20); /* 6 files: found, read, opened */
    cvy_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cifar10_is_five_files_in_order_and_a_test_file),
        cmocka_unit_test(test_cifar100_gives_the_fine_labels),
        cmocka_unit_test(test_mean_and_deviation_can_be_chosen),
        cmocka_unit_test(test_limits_take_the_first_samples),
        cmocka_unit_test(test_another_model_is_told_what_fits),
        cmocka_unit_test_setup_teardown(test_damage_is_refused_and_named, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_missing_file_is_named, create_test_folder, remove_test_folder),
        cmocka_unit_test(test_every_failed_allocation_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
