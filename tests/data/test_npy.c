/*
 * NumPy's arrays. Those of npy2d/, npy3d/ and npz/ were written by NumPy (make_files.py), element e of x by formula:
 * bytes 7 e mod 256, floats e / 8 - 3. Hostile ones are made here.
 */
#include "data_test.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"

static cvy_data *open_set(const cvy_data_options *options, const char *kind)
{
    cvy_data *data = NULL;
    if (cvy_data_open(options, &data) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    assert_string_equal(cvy_data_kind_name(data), kind);
    return data;
}

static void expect_volume(const cvy_data *data, cvy_split split, int64_t index, int64_t elements, float *x, void *label)
{
    assert_int_equal(cvy_data_read(data, split, index, x, label), CVY_OK);
    for (int64_t i = 0; i < elements; i++) {
        assert_true(x[i] == (float)(index * elements + i) / 8 - 3);
    }
}

static void test_bytes_become_0_to_1_with_classes(void **state)
{
    (void)state;
    static const int train[] = {2, 0, 1, 2}, test[] = {1, 2};
    cvy_data_options options = class_options(CVY_TEST_DATA "/npy2d", CVY_SHAPE(3, 5, 6));
    cvy_data *data = open_set(&options, "npy");
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TRAIN], 4);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TEST], 2);
    assert_int_equal(cvy_data_get_info(data)->classes, 3);
    for (int i = 0; i < 6; i++) {
        float x[90];
        int32_t label;
        int k = i % 4;
        cvy_split split = i < 4 ? CVY_SPLIT_TRAIN : CVY_SPLIT_TEST;
        assert_int_equal(cvy_data_read(data, split, k, x, &label), CVY_OK);
        assert_int_equal(label, (i < 4 ? train : test)[k]);
        for (int e = 0; e < 90; e++) {
            assert_true(x[e] == (float)((90 * k + e) * 7 % 256) / 255.0f);
        }
    }
    cvy_data_close(&data);
}

static void test_volumes_carry_values(void **state)
{
    (void)state;
    static const float y[3][2] = {{.5f, -1}, {0, 1}, {-.25f, 2}};
    cvy_data_options options = class_options(CVY_TEST_DATA "/npy3d", CVY_SHAPE(2, 3, 4, 5));
    options.target = CVY_TARGET_VALUES;
    options.classes = 2;
    cvy_data *data = open_set(&options, "npy");
    assert_int_equal(cvy_data_get_info(data)->values, 2);
    for (int i = 0; i < 3; i++) {
        float x[120], label[2];
        expect_volume(data, CVY_SPLIT_TRAIN, i, 120, x, label);
        assert_memory_equal(label, y[i], sizeof label);
    }
    cvy_data_close(&data);
    options.classes = 3;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: 2 values", "3 outputs");
    options.target = CVY_TARGET_CLASS;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: ", "values", "classes");
}

/* Element e of all labels is 7 e mod 4. */
static void test_volumes_carry_maps_of_classes(void **state)
{
    (void)state;
    cvy_data_options options = class_options(CVY_TEST_DATA "/maps", CVY_SHAPE(2, 3, 4, 5));
    options.target = CVY_TARGET_MAP;
    options.map = CVY_SHAPE(3, 4, 5);
    options.classes = 4;
    cvy_data *data = open_set(&options, "npy");
    assert_int_equal(cvy_data_get_info(data)->classes, 4);
    assert_int_equal(cvy_data_label_bytes(data), 60 * 4);
    for (int k = 0; k < 3; k++) {
        float x[120];
        int32_t label[60];
        expect_volume(data, CVY_SPLIT_TRAIN, k, 120, x, label);
        for (int e = 0; e < 60; e++) {
            assert_int_equal(label[e], (60 * k + e) * 7 % 4);
        }
    }
    cvy_data_close(&data);
    options.classes = 3;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: sample 0 has label 3", "the model has 3 classes");
    options.map = CVY_SHAPE(3, 2, 5);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: labels of a sample are 3x4x5, expected 3x2x5");
    options.target = CVY_TARGET_CLASS;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: labels are a class for each position", "takes classes");
    options.source = CVY_TEST_DATA "/npy2d";
    options.sample = CVY_SHAPE(3, 5, 6);
    options.target = CVY_TARGET_MAP;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: labels are classes", "takes a class for each position");
}

/* train.npz is stored, test.npz deflated; labels int32 and uint8, doubles of shape n,h,w. */
static void test_archives_are_read_stored_and_deflated(void **state)
{
    (void)state;
    static const int train[] = {0, 1, 1}, test[] = {1, 0};
    cvy_data_options options = class_options(CVY_TEST_DATA "/npz", CVY_SHAPE(1, 4, 5));
    cvy_data *data = open_set(&options, "npz");
    assert_int_equal(cvy_data_get_info(data)->classes, 2);
    for (int i = 0; i < 5; i++) {
        float x[20];
        int32_t label;
        expect_volume(data, i < 3 ? CVY_SPLIT_TRAIN : CVY_SPLIT_TEST, i % 3, 20, x, &label);
        assert_int_equal(label, i < 3 ? train[i] : test[i - 3]);
    }
    cvy_data_close(&data);
}

/* LZMA's dictionary may be gigabytes, on the word of five bytes of the archive. */
static void test_archives_packed_otherwise_are_refused(void **state)
{
    (void)state;
    cvy_data_options options = class_options(CVY_TEST_DATA "/npz-lzma", CVY_SHAPE(1, 4, 5));
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "npz-lzma/train.npz: x.npy: packed as ", "lzma", "expected stored or deflated");
}

/* ---- arrays made here ---- */

/* Put an NPY array into FOLDER/NAME: version 1, the header padded so that the body begins at 128. */
static void put_array(const char *folder, const char *name, const char *header, const void *body, size_t bytes)
{
    static unsigned char file[1024];
    assert_true(strlen(header) < 117 && bytes <= sizeof file - 128);
    memset(file, ' ', 128);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(file + 10, header, strlen(header));
    file[127] = '\n';
    memcpy(file + 128, body, bytes);
    write_file(folder, name, file, 128 + bytes);
}

#define HEADER(descr, shape) "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape ", }"

static const float three[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const unsigned char three_labels[] = {0, 1, 2};

static int put_pair(void **state)
{
    if (create_test_folder(state) != 0) {
        return -1;
    }
    put_array(*state, "train_x.npy", HEADER("<f4", "(3, 2, 2)"), three, sizeof three);
    put_array(*state, "train_y.npy", HEADER("|u1", "(3,)"), three_labels, 3);
    return 0;
}

static cvy_data_options small_options(const char *folder) { return class_options(folder, CVY_SHAPE(1, 2, 2)); }

/* What a header may look like: every one of these says (3, 2, 2) of '<f4'. */
static void test_headers_are_taken_however_python_spaces_them(void **state)
{
    static const char *const headers[] = {
        HEADER("<f4", "(3, 2, 2)"),
        "{'shape':(3,2,2),'descr':'<f4','fortran_order':False}",
        "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (3, 2, 2,)}",
        "  { 'fortran_order' : False , 'descr' : '<f4' , 'shape' : ( 3 , 2 , 2 ) }",
    };
    cvy_data_options options = small_options(*state);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        float x[4];
        int32_t label;
        put_array(*state, "train_x.npy", headers[i], three, sizeof three);
        cvy_data *data = open_set(&options, "npy");
        assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 1, x, &label), CVY_OK);
        assert_memory_equal(x, three + 4, sizeof x);
        cvy_data_close(&data);
    }
}

static void test_headers_that_say_anything_else_are_refused_and_named(void **state)
{
    static const char *const headers[][2] = {
        {"", "was expected"},
        {"{}", "was expected"},
        {"{'descr': '<f4', 'fortran_order': False}", "was expected"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 2), 'descr': '<f4'}", "was expected"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 2), 'more': 1}", "was expected"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 2)", "was expected"},
        {"{'descr': '<f4, 'fortran_order': False, 'shape': (3, 2, 2)}", "was expected"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3, 2, 2)}", "was expected"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 2, 2)}", "was expected"},
        {HEADER("<f4", "(3, 2, 2") , "was expected"},
        {HEADER("<f4", "(3, -2, 2)"), "was expected"},
        {HEADER("<f4", "(3, 2.0, 2)"), "was expected"},
        {HEADER("<f4", "(99999999999999999999, 2, 2)"), "was expected"},
        {HEADER("<f4", "(1, 1, 1, 1, 3, 2, 2)"), "was expected"},
        {HEADER("<f4", "(3, 2, 2), {}"), "was expected"},
        {HEADER(">f4", "(3, 2, 2)"), "type '>f4'"},
        {HEADER("<f2", "(6, 2, 2)"), "type '<f2'"},
        {HEADER("|O", "(3, 2, 2)"), "type '|O'"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2, 2)}", "Fortran order"},
        {HEADER("<f4", "()"), "a single number"},
        {HEADER("<f4", "(3, 0, 2)"), "none"},
        {HEADER("<f4", "(3, 2, 3)"), "48 bytes follow"},
        {HEADER("<f8", "(3, 2, 2)"), "48 bytes follow"},
        {HEADER("<f4", "(9223372036854775807, 9223372036854775807, 4)"), "48 bytes follow"},
        {HEADER("<f4", "(4611686018427387904, 2, 2)"), "48 bytes follow"},
        {HEADER("<f4", "(12,)"), "expected n,h,w"},
        {HEADER("<i4", "(3, 2, 2)"), "whole numbers"},
        {HEADER("<f4", "(3, 1, 4)"), "samples are 1x1x4"},
    };
    cvy_data_options options = small_options(*state);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        put_array(*state, "train_x.npy", headers[i][0], three, sizeof three);
        EXPECT_REFUSAL(&options, CVY_ERR_DATA, "/train_x.npy: ", headers[i][1]);
    }
}

static void test_targets_must_fit_the_samples_and_the_model(void **state)
{
    static const int64_t negative[] = {0, -1, 2}, wide[] = {0, 1, INT64_C(1) << 32};
    static const unsigned char four[] = {0, 1, 2, 3};
    cvy_data_options options = small_options(*state);
    put_array(*state, "train_y.npy", HEADER("|u1", "(4,)"), four, 4);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: 4 targets", "train_x.npy holds 3");
    put_array(*state, "train_y.npy", HEADER("<i8", "(3,)"), negative, sizeof negative);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: sample 1 has label -1");
    put_array(*state, "train_y.npy", HEADER("<i8", "(3,)"), wide, sizeof wide);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: sample 2 has label 4294967296", "10 classes");
    options.sample.dims = 0; /* without a model either: a stray label must not cost memory */
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: sample 2 has label 4294967296");
    options = small_options(*state);
    put_array(*state, "train_y.npy", HEADER("|u1", "(3, 1)"), three_labels, 3);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy: shape 3x1");
    remove_file(*state, "train_y.npy");
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train_y.npy is missing beside");
}

/* n,d,h,w is one channel of a volume where the model says so; otherwise d is c. */
static void test_an_array_without_channels_has_one(void **state)
{
    cvy_data_options options = class_options(*state, CVY_SHAPE(1, 1, 2, 2));
    put_array(*state, "train_x.npy", HEADER("<f4", "(3, 1, 2, 2)"), three, sizeof three);
    cvy_data *data = open_set(&options, "npy");
    assert_int_equal(cvy_data_get_info(data)->sample.dims, 4);
    cvy_data_close(&data);
    options = small_options(*state);
    data = open_set(&options, "npy");
    assert_int_equal(cvy_data_get_info(data)->sample.dims, 3);
    cvy_data_close(&data);
}

static void test_a_number_that_is_none_names_file_and_sample(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1e300};
    cvy_data_options options = small_options(*state);
    options.target = CVY_TARGET_VALUES;
    options.classes = 1;
    for (int i = 0; i < 8; i++) {
        double x[12] = {0}, y[3] = {0};
        float sample[4], label;
        *(i < 4 ? &x[6] : &y[1]) = bad[i % 4];
        put_array(*state, "train_x.npy", HEADER("<f8", "(3, 2, 2)"), x, sizeof x);
        put_array(*state, "train_y.npy", HEADER("<f8", "(3,)"), y, sizeof y);
        cvy_data *data = open_set(&options, "npy");
        assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 0, sample, &label), CVY_OK);
        assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 2, sample, &label), CVY_OK);
        assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 1, sample, &label), CVY_ERR_DATA);
        assert_non_null(strstr(cvy_error_message(), i < 4 ? "train_x.npy: training sample 1: element 2 is"
                                                          : "train_y.npy: training sample 1: element 0 is"));
        cvy_data_close(&data);
    }
}

/* ---- damage ---- */

static unsigned char *read_whole(const char *path, size_t *bytes_out)
{
    char *data;
    assert_int_equal(cvy_file_read(path, 1 << 20, CVY_ERR_DATA, &data, bytes_out), CVY_OK);
    return (unsigned char *)data;
}

static void test_a_file_cut_anywhere_is_refused_and_named(void **state)
{
    size_t bytes;
    cvy_data_options options = small_options(*state);
    unsigned char *file = read_whole(test_path(*state, "train_x.npy"), &bytes);
    for (size_t cut = 0; cut < bytes; cut++) {
        write_file(*state, "train_x.npy", file, cut);
        EXPECT_REFUSAL(&options, CVY_ERR_DATA, "/train_x.npy: ");
    }
    cvy_free(file);
}

/* Magic, version, length and dictionary: 10 + 56 bytes. A flip among the blanks behind may go unnoticed as a tab. */
static void test_every_flipped_bit_of_a_header_is_refused_or_harmless(void **state)
{
    size_t bytes;
    int refused = 0;
    cvy_data_options options = small_options(*state);
    unsigned char *file = read_whole(test_path(*state, "train_x.npy"), &bytes);
    int length = (int)strlen(HEADER("<f4", "(3, 2, 2)"));
    for (int bit = 0; bit < (10 + length) * 8; bit++) {
        cvy_data *data = NULL;
        file[bit / 8] = (unsigned char)(file[bit / 8] ^ 1 << bit % 8);
        write_file(*state, "train_x.npy", file, bytes);
        cvy_status status = cvy_data_open(&options, &data);
        refused += status == CVY_ERR_DATA;
        assert_true(status == CVY_OK || strstr(cvy_error_message(), "/train_x.npy: "));
        cvy_data_close(&data);
        file[bit / 8] = (unsigned char)(file[bit / 8] ^ 1 << bit % 8);
    }
    assert_in_range(refused, (10 + length) * 8 - 10, (10 + length) * 8);
    cvy_free(file);
}

/* Whether x and y of an archive are what they were: nothing that opens may differ. */
static void expect_unchanged_or_refused(const char *folder, int64_t count, int *refused)
{
    cvy_data_options options = class_options(folder, CVY_SHAPE(1, 4, 5));
    cvy_data *data = NULL;
    if (cvy_data_open(&options, &data) != CVY_OK) {
        assert_non_null(strstr(cvy_error_message(), "/test.npz"));
        ++*refused;
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        float x[20];
        int32_t label;
        expect_volume(data, CVY_SPLIT_TEST, i, 20, x, &label);
        assert_int_equal(label, i == 0);
    }
    cvy_data_close(&data);
}

static void test_a_damaged_archive_is_refused_or_reads_the_same(void **state)
{
    size_t bytes;
    int refused = 0;
    unsigned char *file = read_whole(CVY_TEST_DATA "/npz/test.npz", &bytes);
    for (size_t cut = 0; cut < bytes; cut++) {
        write_file(*state, "test.npz", file, cut);
        expect_unchanged_or_refused(*state, 2, &refused);
    }
    assert_int_equal(refused, bytes);
    refused = 0;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        file[bit / 8] = (unsigned char)(file[bit / 8] ^ 1 << bit % 8);
        write_file(*state, "test.npz", file, bytes);
        expect_unchanged_or_refused(*state, 2, &refused);
        file[bit / 8] = (unsigned char)(file[bit / 8] ^ 1 << bit % 8);
    }
    assert_true(refused > (int)bytes * 8 / 2);
    cvy_free(file);
}

static void test_every_failed_allocation_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    static const char *const kinds[] = {"npy", "npz"};
    static const char *const folders[] = {CVY_TEST_DATA "/npy2d", CVY_TEST_DATA "/npz"};
    for (int k = 0; k < 2; k++) {
        cvy_data_options options = class_options(folders[k], k ? CVY_SHAPE(1, 4, 5) : CVY_SHAPE(3, 5, 6));
        cvy_data *data = NULL;
        cvy_status status = CVY_ERR_MEMORY;
        int failures = 0;
        options.kind = kinds[k];
        for (; status == CVY_ERR_MEMORY && failures < 100; failures++) {
            cvy_memory_fail_after(failures);
            status = cvy_data_open(&options, &data);
            cvy_memory_fail_after(-1);
        }
        assert_int_equal(status, CVY_OK);
        assert_true(failures > 8);
        cvy_data_close(&data);
    }
}

int main(void)
{
#define ON_A_PAIR(test) cmocka_unit_test_setup_teardown(test, put_pair, remove_test_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_become_0_to_1_with_classes),
        cmocka_unit_test(test_volumes_carry_values),
        cmocka_unit_test(test_volumes_carry_maps_of_classes),
        cmocka_unit_test(test_archives_are_read_stored_and_deflated),
        cmocka_unit_test(test_archives_packed_otherwise_are_refused),
        ON_A_PAIR(test_headers_are_taken_however_python_spaces_them),
        ON_A_PAIR(test_headers_that_say_anything_else_are_refused_and_named),
        ON_A_PAIR(test_targets_must_fit_the_samples_and_the_model),
        ON_A_PAIR(test_an_array_without_channels_has_one),
        ON_A_PAIR(test_a_number_that_is_none_names_file_and_sample),
        ON_A_PAIR(test_a_file_cut_anywhere_is_refused_and_named),
        ON_A_PAIR(test_every_flipped_bit_of_a_header_is_refused_or_harmless),
        cmocka_unit_test_setup_teardown(test_a_damaged_archive_is_refused_or_reads_the_same, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test(test_every_failed_allocation_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
