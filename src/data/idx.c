/*
 * MNIST's own files and all that are made like them (Fashion-MNIST, KMNIST): IDX, http://yann.lecun.com/exdb/mnist/.
 * Two zero bytes, the type (8: unsigned bytes), the count of dimensions, each extent in 4 bytes, big-endian, then the
 * numbers in plain order. A pair of files a split, plain or gzipped.
 *
 * A header is believed only after the file's length has borne it out: a plain file has exactly so many bytes, a gzipped
 * one may not claim more than deflate can pack into its length. So a damaged header costs no memory. Everything is
 * checked and read when the set is opened; a read cannot fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/kind.h"

enum {
    TYPE_BYTES = 8,          /* the header's word for unsigned bytes */
    MAX_IDX_DIMS = 3,
    DEFLATE_RATIO = 1032,    /* the most that deflate gains: 258 bytes in 2 bits, zlib's algorithm.txt */
    READ_BYTES = 1 << 30,    /* gzread counts in int */
    SHADES = 256,
};

/* One open file whose header has been checked. */
typedef struct idx_file {
    const char *path;
    gzFile stream;
    int64_t file_bytes;      /* as it lies on disk */
    int64_t extent[MAX_IDX_DIMS];
    int64_t header_bytes, body_bytes;
} idx_file;

typedef struct idx_split {
    unsigned char *pixel, *label;
    int64_t count;
} idx_split;

typedef struct idx_set {
    idx_split split[2];
    int64_t pixels;          /* of one image */
    float shade[SHADES];     /* what a byte becomes */
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

static void close_file(idx_file *file)
{
    if (file->stream) {
        gzclose_r(file->stream);
        file->stream = NULL;
    }
}

/* Read exactly @p bytes; fewer are the file's fault. */
static cvy_status read_bytes(const idx_file *file, void *out, int64_t bytes, const char *part)
{
    int64_t got = 0;
    while (got < bytes) {
        int step = gzread(file->stream, (unsigned char *)out + got, (unsigned)cvy_min_i64(bytes - got, READ_BYTES));
        int error;
        const char *words = gzerror(file->stream, &error);
        CVY_REQUIRE(step >= 0, CVY_ERR_DATA, "%s: cannot read: %s", file->path,
                    error == Z_ERRNO ? strerror(errno) : words);
        CVY_REQUIRE(step > 0, CVY_ERR_DATA, "%s: ends after %" PRId64 " bytes of its %s, expected %" PRId64, file->path,
                    got, part, bytes);
        got += step;
    }
    return CVY_OK;
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
    int64_t body = 1, total = 0;
    bool fits = true;
    for (int i = 0; i < dims; i++) {
        fits = fits && cvy_mul_i64(body, file->extent[i], &body);
    }
    fits = fits && cvy_add_i64(body, file->header_bytes, &total);
    CVY_REQUIRE(fits, CVY_ERR_DATA, "%s: the header says %s bytes, beyond any file; the file has %" PRId64, file->path,
                print_extents(file, dims, text), file->file_bytes);
    CVY_REQUIRE(body > 0, CVY_ERR_DATA, "%s: the header says %s bytes: the file holds no samples", file->path,
                print_extents(file, dims, text));
    if (gzdirect(file->stream)) {
        CVY_REQUIRE(total == file->file_bytes, CVY_ERR_DATA,
                    "%s: the header says %s bytes, so a file of %" PRId64 ", but the file has %" PRId64, file->path,
                    print_extents(file, dims, text), total, file->file_bytes);
    } else {
        CVY_REQUIRE(total / DEFLATE_RATIO <= file->file_bytes, CVY_ERR_DATA,
                    "%s: the header says %s bytes, more than a gzip file of %" PRId64 " can hold", file->path,
                    print_extents(file, dims, text), file->file_bytes);
    }
    file->body_bytes = body;
    return CVY_OK;
}

static cvy_status read_header(idx_file *file, int dims)
{
    unsigned char magic[4], extent[4 * MAX_IDX_DIMS];
    CVY_TRY(read_bytes(file, magic, sizeof magic, "header"));
    CVY_REQUIRE(magic[0] == 0 && magic[1] == 0 && magic[2] == TYPE_BYTES && magic[3] == dims, CVY_ERR_DATA,
                "%s: not an IDX file of %s: it starts with %02x%02x%02x%02x, expected %02x%02x%02x%02x", file->path,
                dims == 1 ? "labels" : "images", magic[0], magic[1], magic[2], magic[3], 0, 0, TYPE_BYTES, dims);
    CVY_TRY(read_bytes(file, extent, 4 * dims, "extents"));
    for (int i = 0; i < dims; i++) {
        const unsigned char *e = extent + 4 * i;
        file->extent[i] = (int64_t)e[0] << 24 | (int64_t)e[1] << 16 | (int64_t)e[2] << 8 | (int64_t)e[3];
    }
    file->header_bytes = 4 + 4 * dims;
    return check_length(file, dims);
}

/* Open a file and check its header; on success close_file() is the caller's. */
static cvy_status open_file(const char *path, int dims, idx_file *file_out)
{
    struct stat about;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    CVY_REQUIRE(descriptor >= 0, CVY_ERR_DATA, "%s: cannot open: %s", path, strerror(errno));
    idx_file file = {.path = path};
    cvy_status status = CVY_OK;
    CVY_REQUIRE_GOTO(status, done, fstat(descriptor, &about) == 0, CVY_ERR_DATA, "%s: %s", path, strerror(errno));
    file.file_bytes = about.st_size;
    file.stream = gzdopen(descriptor, "rb"); /* reads plain files as they are */
    CVY_REQUIRE_GOTO(status, done, file.stream, CVY_ERR_MEMORY, "%s: no memory to read it", path);
    descriptor = -1; /* the stream's */
    CVY_TRY_GOTO(status, done, read_header(&file, dims));
    *file_out = file;
    file.stream = NULL;
done:
    close_file(&file);
    if (descriptor >= 0) {
        close(descriptor);
    }
    return status;
}

/* Read all numbers; nothing may follow, and a gzip file's checksum must fit. */
static cvy_status read_body(const idx_file *file, unsigned char **data_out)
{
    cvy_status status;
    unsigned char more;
    int error;
    unsigned char *data = cvy_calloc((size_t)file->body_bytes, 1);
    if (!data) {
        return cvy_fail_within(CVY_ERR_MEMORY, "%s", file->path);
    }
    CVY_TRY_GOTO(status, done, read_bytes(file, data, file->body_bytes, "data"));
    int behind = gzread(file->stream, &more, 1);
    const char *words = gzerror(file->stream, &error);
    CVY_REQUIRE_GOTO(status, done, behind <= 0, CVY_ERR_DATA,
                     "%s: holds more than the %" PRId64 " bytes that its header says", file->path, file->body_bytes);
    CVY_REQUIRE_GOTO(status, done, error == Z_OK || error == Z_STREAM_END, CVY_ERR_DATA, "%s: damaged at its end: %s",
                     file->path, words);
    *data_out = data;
    data = NULL;
done:
    cvy_free(data);
    return status;
}

static cvy_status read_images(const char *path, const cvy_data_options *options, idx_split *split)
{
    idx_file file;
    CVY_TRY(open_file(path, 3, &file));
    cvy_shape sample = CVY_SHAPE(1, file.extent[1], file.extent[2]);
    cvy_status status = cvy_data_check_sample(path, &sample, options);
    if (status == CVY_OK) {
        split->count = file.extent[0];
        status = read_body(&file, &split->pixel);
    }
    close_file(&file);
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
    close_file(&file);
    return status;
}

/* The largest label decides how many classes the set has; one that the model has not is named. */
static cvy_status check_labels(const char *path, const idx_split *split, const cvy_data_options *options,
                               int64_t *classes)
{
    for (int64_t i = 0; i < split->count; i++) {
        CVY_REQUIRE(split->label[i] < options->classes, CVY_ERR_DATA,
                    "%s: sample %" PRId64 " has label %d, but the model has %" PRId64 " classes: 0 to %" PRId64, path, i,
                    split->label[i], options->classes, options->classes - 1);
        *classes = cvy_max_i64(*classes, split->label[i] + 1);
    }
    return CVY_OK;
}

/* A split without files is empty; one of its two files alone is an error. */
static cvy_status open_split(const cvy_data_options *options, cvy_split which, idx_split *split, int64_t *classes)
{
    char *images = NULL, *labels = NULL;
    int64_t limit = which == CVY_SPLIT_TRAIN ? options->train_count : options->test_count;
    cvy_status status;
    CVY_TRY_GOTO(status, done, find_file(options->source, stem[which], "images", &images));
    CVY_TRY_GOTO(status, done, find_file(options->source, stem[which], "labels", &labels));
    CVY_REQUIRE_GOTO(status, done, images || !labels, CVY_ERR_DATA, "%s: %s-images-idx3-ubyte(.gz) is missing beside %s",
                     options->source, stem[which], labels);
    CVY_REQUIRE_GOTO(status, done, labels || !images, CVY_ERR_DATA, "%s: %s-labels-idx1-ubyte(.gz) is missing beside %s",
                     options->source, stem[which], images);
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
    CVY_TRY(cvy_data_check_target(options->source, CVY_TARGET_CLASS, options));
    idx_set *set = cvy_calloc(1, sizeof *set);
    if (!set) {
        return CVY_ERR_MEMORY;
    }
    CVY_TRY_GOTO(status, done, open_split(options, CVY_SPLIT_TRAIN, &set->split[CVY_SPLIT_TRAIN], &classes));
    CVY_TRY_GOTO(status, done, open_split(options, CVY_SPLIT_TEST, &set->split[CVY_SPLIT_TEST], &classes));
    CVY_REQUIRE_GOTO(status, done, set->split[0].count + set->split[1].count > 0, CVY_ERR_DATA,
                     "%s: holds no train-images-idx3-ubyte(.gz)", options->source);
    set->pixels = cvy_shape_elements(&options->sample);
    for (int i = 0; i < SHADES; i++) {
        set->shade[i] = cvy_data_normalise_ink(i / 255.0);
    }
    *info_out = (cvy_data_info){.sample = options->sample,
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
    for (int64_t i = 0; i < set->pixels; i++) {
        x_out[i] = set->shade[pixel[i]];
    }
    *(int32_t *)label_out = set->split[split].label[index];
    return CVY_OK;
}

const cvy_data_kind cvy_data_kind_idx = {
    .name = "idx",
    .help = "train-images-idx3-ubyte and its like, plain or .gz: MNIST, Fashion-MNIST",
    .detect = detect_idx,
    .open = open_idx,
    .close = close_idx,
    .read = read_idx,
};
