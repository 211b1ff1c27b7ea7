/*
 * MNIST's own files and all that are made like them (Fashion-MNIST, KMNIST): IDX, http://yann.lecun.com/exdb/mnist/.
 * Two zero bytes, the type (8: unsigned bytes), the count of dimensions, each extent in 4 bytes, big-endian, then the
 * numbers in plain order. A pair of files a split, plain or gzipped.
 *
 * A header is believed only after the file's length has borne it out, so a damaged one costs no memory. Everything is
 * checked and read when the set is opened; reading a sample cannot fail.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/kind.h"
#include "data/stream.h"

enum {
    TYPE_BYTES = 8,          /* the header's word for unsigned bytes */
    MAX_IDX_DIMS = 3,
};

/* One open file whose header has been checked. */
typedef struct idx_file {
    const char *path;
    cvy_stream *stream;
    int64_t extent[MAX_IDX_DIMS];
    int64_t body_bytes;
} idx_file;

typedef struct idx_split {
    unsigned char *pixel, *label;
    int64_t count;
} idx_split;

typedef struct idx_set {
    idx_split split[2];
    int64_t pixels;          /* of one image */
} idx_set;

static const char *const stem[2] = {[CVY_SPLIT_TRAIN] = "train", [CVY_SPLIT_TEST] = "t10k"};

/* Find FOLDER/train-images-idx3-ubyte, also with a dot before idx, also with .gz; *path_out is NULL where none is. */
static cvy_status find_file(const char *folder, const char *split, const char *part, char **path_out)
{
    const char *ending = strcmp(part, "images") == 0 ? "idx3-ubyte" : "idx1-ubyte";
    *path_out = NULL;
    for (int i = 0; i < 4; i++) {
        char name[64];
        const char *separator = i % 2 ? "." : "-";
        snprintf(name, sizeof name, "%s-%s%s%s%s", split, part, separator, ending, i / 2 ? ".gz" : "");
        char *path = cvy_path_join(folder, name);
        if (!path) {
            return CVY_ERR_MEMORY;
        }
        if (cvy_file_exists(path)) {
            *path_out = path;
            return CVY_OK;
        }
        cvy_free(path);
    }
    return CVY_OK;
}

static bool detect_idx(const char *folder)
{
    static const char *const part[] = {"images", "labels"};
    for (int i = 0; i < 4; i++) {
        char *path;
        bool found = find_file(folder, stem[i / 2], part[i % 2], &path) == CVY_OK && path;
        cvy_free(path);
        if (found) {
            return true;
        }
    }
    return false;
}

/* The words for "60000x28x28". */
static const char *print_extents(const idx_file *file, int dims, char text[CVY_SHAPE_TEXT])
{
    cvy_shape shape = {.dims = dims};
    memcpy(shape.extent, file->extent, (size_t)dims * sizeof shape.extent[0]);
    return cvy_shape_print(&shape, text);
}

/* Whether the file's length bears out what the header says. */
static cvy_status check_length(idx_file *file, int dims)
{
    char text[CVY_SHAPE_TEXT];
    int64_t body = 1, total = 0, file_bytes = cvy_stream_file_bytes(file->stream);
    bool fits = true;
    for (int i = 0; i < dims; i++) {
        fits = fits && cvy_mul_i64(body, file->extent[i], &body);
    }
    fits = fits && cvy_add_i64(body, 4 + 4 * dims, &total);
    print_extents(file, dims, text);
    CVY_REQUIRE(fits, CVY_ERR_DATA, "%s: the header says %s bytes, beyond any file; the file has %" PRId64, file->path,
                text, file_bytes);
    CVY_REQUIRE(body > 0, CVY_ERR_DATA, "%s: the header says %s bytes: no samples", file->path, text);
    CVY_REQUIRE(cvy_stream_may_hold(file->stream, total), CVY_ERR_DATA,
                cvy_stream_is_packed(file->stream)
                    ? "%s: the header says %s bytes, so %" PRId64 ", more than a gzip file of %" PRId64 " can hold"
                    : "%s: the header says %s bytes, so a file of %" PRId64 ", but the file has %" PRId64,
                file->path, text, total, file_bytes);
    file->body_bytes = body;
    return CVY_OK;
}

static cvy_status read_header(idx_file *file, int dims)
{
    unsigned char magic[4], extent[4 * MAX_IDX_DIMS];
    CVY_TRY(cvy_stream_read(file->stream, magic, sizeof magic, "header"));
    CVY_REQUIRE(magic[0] == 0 && magic[1] == 0 && magic[2] == TYPE_BYTES && magic[3] == dims, CVY_ERR_DATA,
                "%s: not an IDX file of %s: it starts with %02x%02x%02x%02x, expected 0000%02x%02x", file->path,
                dims == 1 ? "labels" : "images", magic[0], magic[1], magic[2], magic[3], TYPE_BYTES, dims);
    CVY_TRY(cvy_stream_read(file->stream, extent, 4 * dims, "extents"));
    for (int i = 0; i < dims; i++) {
        const unsigned char *e = extent + 4 * i;
        file->extent[i] = (int64_t)e[0] << 24 | (int64_t)e[1] << 16 | (int64_t)e[2] << 8 | (int64_t)e[3];
    }
    return check_length(file, dims);
}

/* Open a file and check its header; on success the caller closes the stream. */
static cvy_status open_file(const char *path, int dims, idx_file *file_out)
{
    *file_out = (idx_file){.path = path};
    CVY_TRY(cvy_stream_open(path, &file_out->stream));
    cvy_status status = read_header(file_out, dims);
    if (status != CVY_OK) {
        cvy_stream_close(&file_out->stream);
    }
    return status;
}

static cvy_status read_body(const idx_file *file, unsigned char **data_out)
{
    unsigned char *data = cvy_calloc((size_t)file->body_bytes, 1);
    if (!data) {
        return cvy_fail_within(CVY_ERR_MEMORY, "%s", file->path);
    }
    cvy_status status = cvy_stream_read(file->stream, data, file->body_bytes, "data");
    if (status == CVY_OK) {
        status = cvy_stream_finish(file->stream);
    }
    if (status != CVY_OK) {
        cvy_free(data);
        return status;
    }
    *data_out = data;
    return CVY_OK;
}

static cvy_status read_images(const char *path, cvy_data_options *options, idx_split *split)
{
    idx_file file;
    CVY_TRY(open_file(path, 3, &file));
    cvy_shape sample = CVY_SHAPE(1, file.extent[1], file.extent[2]);
    cvy_status status = cvy_data_check_sample(path, &sample, options);
    if (status == CVY_OK) {
        options->sample = sample; /* the other split must have it too */
        split->count = file.extent[0];
        status = read_body(&file, &split->pixel);
    }
    cvy_stream_close(&file.stream);
    return status;
}

static cvy_status read_labels(const char *path, const char *images_path, idx_split *split)
{
    idx_file file;
    CVY_TRY(open_file(path, 1, &file));
    cvy_status status;
    CVY_REQUIRE_GOTO(status, done, file.extent[0] == split->count, CVY_ERR_DATA,
                     "%s: %" PRId64 " labels, but %s holds %" PRId64 " images", path, file.extent[0], images_path,
                     split->count);
    status = read_body(&file, &split->label);
done:
    cvy_stream_close(&file.stream);
    return status;
}

/* The largest label decides how many classes the set has; one that the model has not is named. */
static cvy_status check_labels(const char *path, const idx_split *split, const cvy_data_options *options,
                               int64_t *classes)
{
    for (int64_t i = 0; i < split->count; i++) {
        CVY_TRY(cvy_data_check_label(path, i, split->label[i], options));
        *classes = cvy_max_i64(*classes, split->label[i] + 1);
    }
    return CVY_OK;
}

/* A split without files is empty; one of its two files alone is an error. */
static cvy_status open_split(cvy_data_options *options, cvy_split which, idx_split *split, int64_t *classes)
{
    char *images = NULL, *labels = NULL;
    int64_t limit = which == CVY_SPLIT_TRAIN ? options->train_count : options->test_count;
    cvy_status status;
    CVY_TRY_GOTO(status, done, find_file(options->source, stem[which], "images", &images));
    CVY_TRY_GOTO(status, done, find_file(options->source, stem[which], "labels", &labels));
    CVY_REQUIRE_GOTO(status, done, !images == !labels, CVY_ERR_DATA, "%s: %s-%s-ubyte(.gz) is missing beside %s",
                     options->source, stem[which], images ? "labels-idx1" : "images-idx3", images ? images : labels);
    if (images) {
        CVY_TRY_GOTO(status, done, read_images(images, options, split));
        CVY_TRY_GOTO(status, done, read_labels(labels, images, split));
        split->count = cvy_data_limit(split->count, limit);
        status = check_labels(labels, split, options, classes);
    }
done:
    cvy_free(images);
    cvy_free(labels);
    return status;
}

static void close_idx(void *opaque)
{
    idx_set *set = opaque;
    for (int i = 0; set && i < 2; i++) {
        cvy_free(set->split[i].pixel);
        cvy_free(set->split[i].label);
    }
    cvy_free(set);
}

static cvy_status open_idx(const cvy_data_options *options, cvy_data_info *info_out, void **state_out)
{
    cvy_status status = CVY_OK;
    int64_t classes = 1;
    cvy_data_options wanted = *options;
    CVY_TRY(cvy_data_check_target(options->source, CVY_TARGET_CLASS, options));
    idx_set *set = cvy_calloc(1, sizeof *set);
    if (!set) {
        return CVY_ERR_MEMORY;
    }
    CVY_TRY_GOTO(status, done, open_split(&wanted, CVY_SPLIT_TRAIN, &set->split[CVY_SPLIT_TRAIN], &classes));
    CVY_TRY_GOTO(status, done, open_split(&wanted, CVY_SPLIT_TEST, &set->split[CVY_SPLIT_TEST], &classes));
    CVY_REQUIRE_GOTO(status, done, set->split[0].count + set->split[1].count > 0, CVY_ERR_DATA,
                     "%s: holds no train-images-idx3-ubyte(.gz)", options->source);
    set->pixels = cvy_shape_elements(&wanted.sample);
    *info_out = (cvy_data_info){.sample = wanted.sample,
                                .target = CVY_TARGET_CLASS,
                                .classes = classes,
                                .count = {set->split[0].count, set->split[1].count}};
    *state_out = set;
    set = NULL;
done:
    close_idx(set);
    return status;
}

static cvy_status read_idx(const void *opaque, cvy_split split, int64_t index, float *x_out, void *label_out)
{
    const idx_set *set = opaque;
    const unsigned char *pixel = set->split[split].pixel + index * set->pixels;
    if (x_out) {
        cvy_data_scale_bytes(pixel, set->pixels, x_out);
    }
    if (label_out) {
        *(int32_t *)label_out = set->split[split].label[index];
    }
    return CVY_OK;
}

const cvy_data_kind cvy_data_kind_idx = {
    .name = "idx",
    .help = "train-images-idx3-ubyte and its like, plain or .gz: MNIST, Fashion-MNIST",
    .scale = CVY_DATA_SCALE_INK,
    .detect = detect_idx,
    .open = open_idx,
    .close = close_idx,
    .read = read_idx,
};
