/* How a user's words find a kind of data set, and what is said where they find none. */
#include "data_test.h"

static const cvy_shape digit_shape = {3, {1, 28, 28}};

static void test_a_name_finds_its_synthetic_set(void **state)
{
    (void)state;
    static const char *const name[] = {"digits", "random"};
    for (int i = 0; i < 2; i++) {
        cvy_data_options options = class_options(name[i], digit_shape);
        cvy_data *data;
        for (int explicit_kind = 0; explicit_kind < 2; explicit_kind++) {
            options.kind = explicit_kind ? name[i] : NULL;
            assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
            assert_string_equal(cvy_data_kind_name(data), name[i]);
            cvy_data_close(&data);
        }
    }
}

static void test_the_table_lists_every_kind_once(void **state)
{
    (void)state;
    int count = 0;
    for (const cvy_data_kind *kind; (kind = cvy_data_kind_get(count)); count++) {
        assert_true(kind->synthetic || kind->detect);
        assert_true(kind->open && kind->close && kind->read);
        for (int other = 0; other < count; other++) {
            assert_string_not_equal(kind->name, cvy_data_kind_get(other)->name);
        }
    }
    assert_int_equal(count, 8);
    assert_null(cvy_data_kind_get(-1));
}

static void test_a_misspelt_name_is_told_the_nearest(void **state)
{
    (void)state;
    cvy_data_options options = class_options("digts", digit_shape);
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "'digts'", "did you mean 'digits'?", "random");
    options = class_options("digits", digit_shape);
    options.kind = "digit";
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "'digit'", "did you mean 'digits'?", "idx, digits, random, cifar10");
    options.kind = "photographs";
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "'photographs'", "idx, digits, random, cifar10");
}

static void test_a_synthetic_kind_reads_no_folder(void **state)
{
    cvy_data_options options = class_options(*state, digit_shape);
    options.kind = "digits";
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "digits", *state);
}

static void test_missing_empty_and_unknown_folders_are_told_apart(void **state)
{
    const char *folder = *state;
    cvy_data_options options = class_options("/no/such/folder", digit_shape);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "/no/such/folder: ", "no such data folder", "digits, random, cosmo");
    options.kind = "idx";
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "/no/such/folder: ", "No such file");
    options = class_options(folder, digit_shape);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "empty");
    write_file(folder, "notes.txt", "hello", 5);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "no data set of a known kind", "idx (train-images-idx3-ubyte");
    options.kind = "idx";
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "train-images-idx3-ubyte");
    options = class_options(test_path(folder, "notes.txt"), digit_shape);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "notes.txt: ", "expected the folder");
}

static void test_options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    cvy_data_options options = class_options("random", digit_shape);
    options.train_count = -1;
    EXPECT_REFUSAL(&options, CVY_ERR_ARG, "-1");
    options = class_options("random", digit_shape);
    options.classes = 0;
    EXPECT_REFUSAL(&options, CVY_ERR_ARG, "classes");
    options = class_options("random", CVY_SHAPE(10));
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "10");
    options = class_options("random", CVY_SHAPE(1, 0, 28));
    EXPECT_REFUSAL(&options, CVY_ERR_INPUT, "1x0x28");
    options = class_options(NULL, digit_shape);
    EXPECT_REFUSAL(&options, CVY_ERR_ARG, "no data set");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_finds_its_synthetic_set),
        cmocka_unit_test(test_the_table_lists_every_kind_once),
        cmocka_unit_test(test_a_misspelt_name_is_told_the_nearest),
        cmocka_unit_test_setup_teardown(test_a_synthetic_kind_reads_no_folder, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_missing_empty_and_unknown_folders_are_told_apart, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test(test_options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
