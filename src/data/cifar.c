/*
 * CIFAR-10 and CIFAR-100 in their binary form, https://www.cs.toronto.edu/~kriz/cifar.html: records without a header.
 * A record is its labels, one byte each, and 3 planes of 32x32 bytes: red, green, blue. CIFAR-10 has one label,
 * CIFAR-100 two, the coarse one of 20 and the fine one of 100, which is the one that is learned.
 *
 * There is no header to believe: a file's length must be whole records, and every label must be below the set's count
 * of classes. Everything is checked and read when the set is opened; reading a sample cannot fail.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/kind.h"
#include "data/stream.h"

enum { SIDE = 32, PIXEL_BYTES = 3 * SIDE * SIDE, MAX_FILES = 5 };

/* What the two sets differ in. */
typedef struct cifar_form {
    const char *name;
    const char *file[2][MAX_FILES + 1];  /* of each split; end with NULL */
    int label_bytes;
    int fine;                            /* which of the labels is learned */
    int classes[2];                      /* of each label */
} cifar_form;

static const cifar_form cifar10 = {
    .name = "cifar10",
    .file = {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
             {"test_batch.bin"}},
    .label_bytes = 1,
    .classes = {10},
};

static const cifar_form cifar100 = {
    .name = "cifar100",
    .file = {{"train.bin"}, {"test.bin"}},
    .label_bytes = 2,
    .fine = 1,
    .classes = {20, 100},
};

typedef struct cifar_split {
    unsigned char *record;
    int64_t count;
} cifar_split;

typedef struct cifar_set {
    const cifar_form *form;
    cifar_split split[2];
} cifar_set;

static int64_t record_bytes(const cifar_form *form) { return form->label_bytes + PIXEL_BYTES; }

/* How many of a split's files there are; *missing_out is the first that is not there. */
static cvy_status count_files(const char *folder, const char *const *file, int *found_out, const char **missing_out)
{
    *found_out = 0;
    *missing_out = NULL;
    for (; *file; file++) {
        char *path = cvy_path_join(folder, *file);
        if (!path) {
            return CVY_ERR_MEMORY;
        }
        bool exists = cvy_file_exists(path);
        cvy_free(path);
        *found_out += exists;
        *missing_out = exists || *missing_out ? *missing_out : *file;
    }
    return CVY_OK;
}

static bool detect(const char *folder, const cifar_form *form)
{
    bool found = false;
    for (int i = 0; i < 2 && !found; i++) {
        const char *missing;
        int count;
        found = count_files(folder, form->file[i], &count, &missing) == CVY_OK && count > 0;
    }
    return found;
}

/* Every label is one of the set's; the one that is learned is one of the model's. */
static cvy_status check_labels(const char *path, const cifar_form *form, const unsigned char *record, int64_t count,
                               const cvy_data_options *options)
{
    for (int64_t i = 0; i < count; i++, record += record_bytes(form)) {
        for (int k = 0; k < form->label_bytes; k++) {
            CVY_REQUIRE(record[k] < form->classes[k], CVY_ERR_DATA,
                        "%s: sample %" PRId64 " has %slabel %d, but those of %s are 0 to %d", path, i,
                        k == form->fine ? "" : "coarse ", record[k], form->name, form->classes[k] - 1);
        }
        CVY_TRY(cvy_data_check_label(path, i, record[form->fine], options));
    }
    return CVY_OK;
}

/* Append the records of one file to a split. */
static cvy_status read_records(const char *path, cvy_stream *stream, const cvy_data_options *options,
                               const cifar_form *form, cifar_split *split)
{
    int64_t bytes = cvy_stream_file_bytes(stream), one = record_bytes(form), count = bytes / one;
    CVY_REQUIRE(!cvy_stream_is_packed(stream), CVY_ERR_DATA, "%s: gzipped; unpack it first", path);
    CVY_REQUIRE(count > 0 && bytes % one == 0, CVY_ERR_DATA,
                "%s: %" PRId64 " bytes, expected records of %" PRId64 ": cut short, or not of %s", path, bytes, one,
                form->name);
    unsigned char *grown = cvy_recalloc(split->record, (size_t)split->count, (size_t)(split->count + count),
                                        (size_t)one);
    if (!grown) {
        return cvy_fail_within(CVY_ERR_MEMORY, "%s", path);
    }
    split->record = grown;
    unsigned char *record = grown + split->count * one;
    CVY_TRY(cvy_stream_read(stream, record, bytes, "records"));
    CVY_TRY(cvy_stream_finish(stream));
    split->count += count;
    return check_labels(path, form, record, count, options);
}

static cvy_status read_file(const cvy_data_options *options, const char *name, const cifar_form *form,
                            cifar_split *split)
{
    cvy_stream *stream = NULL;
    char *path = cvy_path_join(options->source, name);
    if (!path) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = cvy_stream_open(path, &stream);
    if (status == CVY_OK) {
        status = read_records(path, stream, options, form, split);
        cvy_stream_close(&stream);
    }
    cvy_free(path);
    return status;
}

/* A split without files is empty; some of its files without the others are an error. */
static cvy_status open_split(const cvy_data_options *options, const cifar_form *form, cvy_split which,
                             cifar_split *split)
{
    const char *missing;
    int64_t limit = which == CVY_SPLIT_TRAIN ? options->train_count : options->test_count;
    int found;
    CVY_TRY(count_files(options->source, form->file[which], &found, &missing));
    CVY_REQUIRE(!found || !missing, CVY_ERR_DATA, "%s: %s is missing beside the others", options->source, missing);
    for (int i = 0; found && form->file[which][i]; i++) {
        CVY_TRY(read_file(options, form->file[which][i], form, split));
    }
    split->count = cvy_data_limit(split->count, limit);
    return CVY_OK;
}

static void close_cifar(void *opaque)
{
    cifar_set *set = opaque;
    for (int i = 0; set && i < 2; i++) {
        cvy_free(set->split[i].record);
    }
    cvy_free(set);
}

static cvy_status open_cifar(const cvy_data_options *options, const cifar_form *form, cvy_data_info *info_out,
                             void **state_out)
{
    cvy_status status = CVY_OK;
    const cvy_shape sample = CVY_SHAPE(3, SIDE, SIDE);
    CVY_TRY(cvy_data_check_target(options->source, CVY_TARGET_CLASS, options));
    CVY_TRY(cvy_data_check_sample(options->source, &sample, options));
    cifar_set *set = cvy_calloc(1, sizeof *set);
    if (!set) {
        return CVY_ERR_MEMORY;
    }
    set->form = form;
    for (int i = 0; i < 2; i++) {
        CVY_TRY_GOTO(status, done, open_split(options, form, (cvy_split)i, &set->split[i]));
    }
    CVY_REQUIRE_GOTO(status, done, set->split[0].count + set->split[1].count > 0, CVY_ERR_DATA, "%s: holds no %s",
                     options->source, form->file[CVY_SPLIT_TRAIN][0]);
    *info_out = (cvy_data_info){.sample = sample,
                                .target = CVY_TARGET_CLASS,
                                .classes = form->classes[form->fine],
                                .count = {set->split[0].count, set->split[1].count}};
    *state_out = set;
    set = NULL;
done:
    close_cifar(set);
    return status;
}

static cvy_status read_cifar(const void *opaque, cvy_split split, int64_t index, float *x_out, void *label_out)
{
    const cifar_set *set = opaque;
    const unsigned char *record = set->split[split].record + index * record_bytes(set->form);
    if (label_out) {
        *(int32_t *)label_out = record[set->form->fine];
    }
    if (x_out) {
        cvy_data_scale_bytes(record + set->form->label_bytes, PIXEL_BYTES, x_out);
    }
    return CVY_OK;
}

static bool detect_cifar10(const char *folder) { return detect(folder, &cifar10); }
static bool detect_cifar100(const char *folder) { return detect(folder, &cifar100); }

static cvy_status open_cifar10(const cvy_data_options *options, cvy_data_info *info_out, void **state_out)
{
    return open_cifar(options, &cifar10, info_out, state_out);
}

static cvy_status open_cifar100(const cvy_data_options *options, cvy_data_info *info_out, void **state_out)
{
    return open_cifar(options, &cifar100, info_out, state_out);
}

/* Means and standard deviations of the training pixels, in 0 to 1, to the four digits that are in use. */
const cvy_data_kind cvy_data_kind_cifar10 = {
    .name = "cifar10",
    .help = "data_batch_1.bin to 5, test_batch.bin",
    .scale = {.channels = 3, .mean = {0.4914, 0.4822, 0.4465}, .std = {0.2470, 0.2435, 0.2616}},
    .detect = detect_cifar10,
    .open = open_cifar10,
    .close = close_cifar,
    .read = read_cifar,
};

const cvy_data_kind cvy_data_kind_cifar100 = {
    .name = "cifar100",
    .help = "train.bin, test.bin; the fine labels",
    .scale = {.channels = 3, .mean = {0.5071, 0.4865, 0.4409}, .std = {0.2673, 0.2564, 0.2762}},
    .detect = detect_cifar100,
    .open = open_cifar100,
    .close = close_cifar,
    .read = read_cifar,
};
