/*
 * IDX files. Figures of MNIST's images were taken from the files by a few lines of Python (struct and gzip); damaged
 * files are made here byte by byte.
 */
#include "data_test.h"

#include <math.h>
#include <zlib.h>

#include "base/memory.h"

enum { IMAGES_BYTES = 16 + 3 * 4, LABELS_BYTES = 8 + 3 };

/* 3 images of 2x2 and 3 labels. */
static const unsigned char images[IMAGES_BYTES] = {0,   0,  8, 3,  0,  0,  0,  3,  0,  0,  0,  2,   0,  0,
                                                   0,   2,  0, 51, 10, 20, 30, 40, 50, 60, 70, 255, 80, 90};
static const unsigned char labels[LABELS_BYTES] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9};

static int make_pair(void **state)
{
    if (create_test_folder(state) != 0) {
        return -1;
    }
    write_file(*state, "train-images-idx3-ubyte", images, sizeof images);
    write_file(*state, "train-labels-idx1-ubyte", labels, sizeof labels);
    return 0;
}

static cvy_data_options tiny_options(const char *folder) { return class_options(folder, CVY_SHAPE(1, 2, 2)); }

/* Undo (x / 255 - 0.1307) / 0.3081. */
static long find_byte(float x)
{
    double byte = (x * 0.3081 + 0.1307) * 255;
    assert_true(fabs(byte - round(byte)) < 1e-3);
    return lround(byte);
}

/* Python: label, sum of pixels, sum of position * pixel, the first nonzero pixel and its position. */
static void test_mnist_images_are_those_of_the_files(void **state)
{
    (void)state;
    static const struct {
        cvy_split split;
        int index, label;
        long sum, moment;
        int first, value;
    } known[] = {
        {CVY_SPLIT_TRAIN, 0, 5, 27525, 11192964, 152, 3},  {CVY_SPLIT_TRAIN, 1, 0, 31095, 12238684, 127, 51},
        {CVY_SPLIT_TRAIN, 199, 2, 26893, 10909324, 204, 12}, {CVY_SPLIT_TEST, 0, 7, 18454, 7696882, 202, 84},
        {CVY_SPLIT_TEST, 99, 9, 30655, 12049698, 177, 2},
    };
    cvy_data_options options = class_options(CVY_TEST_DATA "/mnist", CVY_SHAPE(1, 28, 28));
    cvy_data *data;
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    assert_string_equal(cvy_data_kind_name(data), "idx");
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TRAIN], 200);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TEST], 100);
    assert_int_equal(cvy_data_get_info(data)->classes, 10);
    assert_int_equal(cvy_data_sample_bytes(data), 784 * 4);
    assert_int_equal(cvy_data_label_bytes(data), 4);
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        float x[784];
        int32_t label;
        long sum = 0, moment = 0;
        int first = -1;
        assert_int_equal(cvy_data_read(data, known[k].split, known[k].index, x, &label), CVY_OK);
        for (int i = 0; i < 784; i++) {
            long byte = find_byte(x[i]);
            first = first < 0 && byte ? i : first;
            sum += byte;
            moment += i * byte;
        }
        assert_int_equal(label, known[k].label);
        assert_int_equal(sum, known[k].sum);
        assert_int_equal(moment, known[k].moment);
        assert_int_equal(first, known[k].first);
        assert_int_equal(find_byte(x[first]), known[k].value);
    }
    cvy_data_close(&data);
    assert_null(data);
}

/* 0 becomes -0.1307 / 0.3081 = -0.424213; 255 becomes 0.8693 / 0.3081 = 2.821486; 51 = 0.2 becomes 0.224927. */
static void test_pixels_are_scaled_by_the_mean_and_deviation_of_mnist(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    cvy_data *data;
    float x[4];
    int32_t label;
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 0, x, &label), CVY_OK);
    assert_float_equal(x[0], -0.424213, 1e-6);
    assert_float_equal(x[1], 0.224927, 1e-6);
    assert_int_equal(label, 7);
    assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 2, x, &label), CVY_OK);
    assert_float_equal(x[1], 2.821486, 1e-6);
    assert_int_equal(label, 9);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TEST], 0);
    assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, 3, x, &label), CVY_ERR_ARG);
    assert_int_equal(cvy_data_read(data, CVY_SPLIT_TRAIN, -1, x, &label), CVY_ERR_ARG);
    assert_int_equal(cvy_data_read(data, CVY_SPLIT_TEST, 0, x, &label), CVY_ERR_ARG);
    cvy_data_close(&data);
}

static void test_a_limit_takes_the_first_samples(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    cvy_data *data;
    options.train_count = 2;
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TRAIN], 2);
    assert_int_equal(cvy_data_get_info(data)->classes, 8); /* labels 7 and 0 */
    cvy_data_close(&data);
    options.train_count = 4; /* more than there are */
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TRAIN], 3);
    cvy_data_close(&data);
}

static void test_the_other_spelling_and_an_explicit_kind_are_taken(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    cvy_data *data;
    remove_file(folder, "train-images-idx3-ubyte");
    write_file(folder, "train-images.idx3-ubyte", images, sizeof images);
    options.kind = "idx";
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    assert_int_equal(cvy_data_get_info(data)->count[CVY_SPLIT_TRAIN], 3);
    cvy_data_close(&data);
}

static void test_a_file_cut_anywhere_is_refused_and_named(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    for (size_t bytes = 0; bytes < sizeof images; bytes++) {
        write_file(folder, "train-images-idx3-ubyte", images, bytes);
        EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "/train-images-idx3-ubyte: ");
    }
    write_file(folder, "train-images-idx3-ubyte", images, sizeof images);
    for (size_t bytes = 0; bytes < sizeof labels; bytes++) {
        write_file(folder, "train-labels-idx1-ubyte", labels, bytes);
        EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "/train-labels-idx1-ubyte: ");
    }
}

/* No flip of one bit in either header leaves a pair that fits the files' lengths, the model and each other. */
static void test_every_flipped_bit_of_a_header_is_refused_and_named(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    for (int bit = 0; bit < 16 * 8; bit++) {
        unsigned char damaged[IMAGES_BYTES];
        memcpy(damaged, images, sizeof images);
        damaged[bit / 8] = (unsigned char)(damaged[bit / 8] ^ 1 << bit % 8);
        write_file(folder, "train-images-idx3-ubyte", damaged, sizeof damaged);
        EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "/train-images-idx3-ubyte: ");
    }
    write_file(folder, "train-images-idx3-ubyte", images, sizeof images);
    for (int bit = 0; bit < 8 * 8; bit++) {
        unsigned char damaged[LABELS_BYTES];
        memcpy(damaged, labels, sizeof labels);
        damaged[bit / 8] = (unsigned char)(damaged[bit / 8] ^ 1 << bit % 8);
        write_file(folder, "train-labels-idx1-ubyte", damaged, sizeof damaged);
        EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "/train-labels-idx1-ubyte: ");
    }
}

/* (2^32 - 1)^3 is beyond 64 bits. */
static void test_absurd_extents_are_refused_before_memory_is_taken(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    unsigned char damaged[IMAGES_BYTES];
    memcpy(damaged, images, sizeof images);
    memset(damaged + 4, 0xff, 12);
    write_file(folder, "train-images-idx3-ubyte", damaged, sizeof damaged);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "4294967295x4294967295x4294967295", "beyond any file");
    memset(damaged + 4, 0, 12);
    write_file(folder, "train-images-idx3-ubyte", damaged, sizeof damaged);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "0x0x0", "no samples");
}

static void test_bytes_behind_the_data_are_refused(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    unsigned char longer[IMAGES_BYTES + 1] = {0};
    memcpy(longer, images, sizeof images);
    write_file(folder, "train-images-idx3-ubyte", longer, sizeof longer);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train-images-idx3-ubyte: ", "3x2x2", "28", "29");
}

static void test_images_and_labels_must_be_as_many(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    static const unsigned char two[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 0};
    write_file(folder, "train-labels-idx1-ubyte", two, sizeof two);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train-labels-idx1-ubyte: 2 labels", "train-images-idx3-ubyte holds 3");
    remove_file(folder, "train-labels-idx1-ubyte");
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train-labels-idx1-ubyte(.gz) is missing");
    remove_file(folder, "train-images-idx3-ubyte");
    write_file(folder, "t10k-labels-idx1-ubyte", two, sizeof two);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "t10k-images-idx3-ubyte(.gz) is missing");
}

static void test_a_label_beyond_the_models_classes_names_its_sample(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    options.classes = 9;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train-labels-idx1-ubyte: sample 2 has label 9", "9 classes");
}

static void test_another_shape_says_which_options_fit(void **state)
{
    (void)state;
    cvy_data_options options = class_options(CVY_TEST_DATA "/mnist", CVY_SHAPE(3, 32, 32));
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "mnist/train-images-idx3-ubyte.gz: ", "1x28x28", "3x32x32",
                   "channels=1,size=28");
    options = class_options(CVY_TEST_DATA "/mnist", CVY_SHAPE(1, 28, 28));
    options.target = CVY_TARGET_VALUES;
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "mnist: ", "classes", "values");
}

static void test_foreign_files_are_refused(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    write_file(folder, "train-images-idx3-ubyte", "\x89PNG\r\n\x1a\n and more of it that is no image", 40);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "not an IDX file of images", "89504e47", "00000803");
    write_file(folder, "train-images-idx3-ubyte", labels, sizeof labels);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "not an IDX file of images", "00000801");
}

/* Gzip @p data; returns the bytes in @p out. */
static size_t pack(const void *data, size_t bytes, unsigned char *out, size_t room)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)bytes, .next_out = out,
                       .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&stream), Z_OK);
    return stream.total_out;
}

/* The lowest bit of each byte is flipped: in the stream's last byte the upper bits are padding that means nothing. */
static void test_a_gzip_file_cut_anywhere_or_damaged_is_refused(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    cvy_data *data;
    unsigned char packed[256];
    size_t bytes = pack(images, sizeof images, packed, sizeof packed);
    remove_file(folder, "train-images-idx3-ubyte");
    write_file(folder, "train-images-idx3-ubyte.gz", packed, bytes);
    assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
    cvy_data_close(&data);
    for (size_t cut = 0; cut < bytes; cut++) {
        write_file(folder, "train-images-idx3-ubyte.gz", packed, cut);
        EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "/train-images-idx3-ubyte.gz: ");
    }
    for (size_t at = 10; at < bytes; at++) { /* behind gzip's own header: the stream, its checksum, its length */
        packed[at] ^= 1;
        write_file(folder, "train-images-idx3-ubyte.gz", packed, bytes);
        EXPECT_REFUSAL(&options, CVY_ERR_DATA, folder, "/train-images-idx3-ubyte.gz: ");
        packed[at] ^= 1;
    }
}

/* 3 images of 30,000x30,000 are 2.7 GB, from a gzip file of some 50 bytes: 50 * 1032 is the most that it can hold. */
static void test_a_gzip_header_that_claims_too_much_costs_no_memory(void **state)
{
    const char *folder = *state;
    cvy_data_options options = class_options(folder, CVY_SHAPE(1, 30000, 30000));
    unsigned char bomb[IMAGES_BYTES], packed[256];
    memcpy(bomb, images, sizeof images);
    bomb[10] = bomb[14] = 30000 >> 8;
    bomb[11] = bomb[15] = 30000 & 0xff;
    size_t bytes = pack(bomb, sizeof bomb, packed, sizeof packed);
    remove_file(folder, "train-images-idx3-ubyte");
    write_file(folder, "train-images-idx3-ubyte.gz", packed, bytes);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train-images-idx3-ubyte.gz: ", "3x30000x30000", "more than a gzip file");
}

/* A megabyte of zeros behind the 12 bytes, and a stray byte behind a whole stream. */
static void test_a_gzip_stream_that_goes_on_is_refused(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    static unsigned char longer[1 << 20], packed[1 << 14];
    memcpy(longer, images, sizeof images);
    size_t bytes = pack(longer, sizeof longer, packed, sizeof packed);
    remove_file(folder, "train-images-idx3-ubyte");
    write_file(folder, "train-images-idx3-ubyte.gz", packed, bytes);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train-images-idx3-ubyte.gz: holds more than its header says");
    bytes = pack(images, sizeof images, packed, sizeof packed);
    packed[bytes] = 0;
    write_file(folder, "train-images-idx3-ubyte.gz", packed, bytes + 1);
    EXPECT_REFUSAL(&options, CVY_ERR_DATA, "train-images-idx3-ubyte.gz: ", "bytes behind the end of the gzip stream");
}

static void test_every_failed_allocation_is_told_and_leaks_nothing(void **state)
{
    const char *folder = *state;
    cvy_data_options options = tiny_options(folder);
    cvy_data *data = NULL;
    cvy_status status = CVY_ERR_MEMORY;
    int failures = 0;
    for (; status == CVY_ERR_MEMORY && failures < 100; failures++) {
        options.kind = "idx"; /* detection would take a failed allocation for a missing file */
        cvy_memory_fail_after(failures);
        status = cvy_data_open(&options, &data);
        cvy_memory_fail_after(-1);
    }
    assert_int_equal(status, CVY_OK);
    assert_true(failures > 5);
    cvy_data_close(&data);
}

int main(void)
{
#define ON_TINY_FILES(test) cmocka_unit_test_setup_teardown(test, make_pair, remove_test_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mnist_images_are_those_of_the_files),
        ON_TINY_FILES(test_pixels_are_scaled_by_the_mean_and_deviation_of_mnist),
        ON_TINY_FILES(test_a_limit_takes_the_first_samples),
        ON_TINY_FILES(test_the_other_spelling_and_an_explicit_kind_are_taken),
        ON_TINY_FILES(test_a_file_cut_anywhere_is_refused_and_named),
        ON_TINY_FILES(test_every_flipped_bit_of_a_header_is_refused_and_named),
        ON_TINY_FILES(test_absurd_extents_are_refused_before_memory_is_taken),
        ON_TINY_FILES(test_bytes_behind_the_data_are_refused),
        ON_TINY_FILES(test_images_and_labels_must_be_as_many),
        ON_TINY_FILES(test_a_label_beyond_the_models_classes_names_its_sample),
        cmocka_unit_test(test_another_shape_says_which_options_fit),
        ON_TINY_FILES(test_foreign_files_are_refused),
        ON_TINY_FILES(test_a_gzip_file_cut_anywhere_or_damaged_is_refused),
        ON_TINY_FILES(test_a_gzip_header_that_claims_too_much_costs_no_memory),
        ON_TINY_FILES(test_a_gzip_stream_that_goes_on_is_refused),
        ON_TINY_FILES(test_every_failed_allocation_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
