/*
 * The one list of kinds of data sets, and how a user's words find one: an explicit kind, else the name of a synthetic
 * set, else the first kind whose files lie in the folder. A kind is one file and one line in the table.
 */
#include "data/data.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/augment.h"
#include "data/kind.h"

extern const cvy_data_kind cvy_data_kind_idx;
extern const cvy_data_kind cvy_data_kind_digits;
extern const cvy_data_kind cvy_data_kind_random;
extern const cvy_data_kind cvy_data_kind_cifar10;
extern const cvy_data_kind cvy_data_kind_cifar100;
extern const cvy_data_kind cvy_data_kind_npy;
extern const cvy_data_kind cvy_data_kind_npz;
extern const cvy_data_kind cvy_data_kind_cosmo;

/* Folders are asked in this order. */
static const cvy_data_kind *const kinds[] = {
    &cvy_data_kind_idx,
    &cvy_data_kind_digits,
    &cvy_data_kind_random,
    &cvy_data_kind_cifar10,
    &cvy_data_kind_cifar100,
    &cvy_data_kind_npy,
    &cvy_data_kind_npz,
    &cvy_data_kind_cosmo,
};
enum { KINDS = sizeof kinds / sizeof kinds[0], LIST_BYTES = 512 };

/* Which kinds a list is about. */
typedef enum kind_filter { ALL_KINDS, SYNTHETIC_KINDS, FILE_KINDS } kind_filter;

const cvy_data_kind *cvy_data_kind_get(int i) { return i >= 0 && i < KINDS ? kinds[i] : NULL; }

static bool passes(const cvy_data_kind *kind, kind_filter filter)
{
    return filter == ALL_KINDS || kind->synthetic == (filter == SYNTHETIC_KINDS);
}

/* "idx, digits, random"; with help "idx (…), …" */
static const char *list_kinds(kind_filter filter, bool with_help, char text[LIST_BYTES])
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < KINDS && length < LIST_BYTES; i++) {
        if (passes(kinds[i], filter)) {
            const char *comma = length ? ", " : "";
            length += (size_t)snprintf(text + length, LIST_BYTES - length, with_help ? "%s%s (%s)" : "%s%s", comma,
                                       kinds[i]->name, kinds[i]->help);
        }
    }
    return text;
}

static const cvy_data_kind *find_kind(const char *name, kind_filter filter)
{
    for (int i = 0; i < KINDS; i++) {
        if (passes(kinds[i], filter) && strcmp(kinds[i]->name, name) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}

/* The kind's name that is nearest to a word; NULL where none is near. */
static const char *find_nearest(const char *word, kind_filter filter)
{
    const char *names[KINDS + 1] = {NULL};
    int count = 0;
    for (int i = 0; i < KINDS; i++) {
        if (passes(kinds[i], filter)) {
            names[count++] = kinds[i]->name;
        }
    }
    return cvy_nearest(word, names);
}

static cvy_status check_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    CVY_REQUIRE(entries, CVY_ERR_DATA, "%s: cannot open the data folder: %s", folder, strerror(errno));
    int count = 0;
    const struct dirent *entry;
    while (!count && (entry = readdir(entries))) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(entries);
    CVY_REQUIRE(count, CVY_ERR_DATA, "%s: the data folder is empty", folder);
    return CVY_OK;
}

static cvy_status detect_kind(const char *folder, const cvy_data_kind **kind_out)
{
    char list[LIST_BYTES];
    bool is_path = strchr(folder, '/') || cvy_folder_exists(folder) || cvy_file_exists(folder);
    const char *nearest = is_path ? NULL : find_nearest(folder, SYNTHETIC_KINDS);
    CVY_REQUIRE(!nearest, CVY_ERR_INPUT, "no data set or folder '%s': did you mean '%s'? Known by name: %s", folder,
                nearest, list_kinds(SYNTHETIC_KINDS, false, list));
    CVY_REQUIRE(cvy_folder_exists(folder) || cvy_file_exists(folder), CVY_ERR_DATA,
                "%s: no such data folder; without a folder there are %s", folder,
                list_kinds(SYNTHETIC_KINDS, false, list));
    CVY_REQUIRE(cvy_folder_exists(folder), CVY_ERR_DATA, "%s: a file, expected the folder that holds it", folder);
    CVY_TRY(check_folder(folder));
    for (int i = 0; i < KINDS; i++) {
        if (!kinds[i]->synthetic && kinds[i]->detect(folder)) {
            *kind_out = kinds[i];
            return CVY_OK;
        }
    }
    return cvy_fail(CVY_ERR_DATA, "%s: holds no data set of a known kind; there are %s", folder,
                    list_kinds(FILE_KINDS, true, list));
}

static cvy_status choose_kind(const cvy_data_options *options, const cvy_data_kind **kind_out)
{
    char list[LIST_BYTES];
    if (!options->kind) {
        *kind_out = find_kind(options->source, SYNTHETIC_KINDS);
        return *kind_out ? CVY_OK : detect_kind(options->source, kind_out);
    }
    const cvy_data_kind *kind = find_kind(options->kind, ALL_KINDS);
    const char *nearest = kind ? NULL : find_nearest(options->kind, ALL_KINDS);
    CVY_REQUIRE(kind, CVY_ERR_INPUT, "no data kind '%s'%s%s%s; there are %s", options->kind,
                nearest ? ": did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "",
                list_kinds(ALL_KINDS, false, list));
    if (kind->synthetic) {
        CVY_REQUIRE(strcmp(kind->name, options->source) == 0, CVY_ERR_INPUT,
                    "data kind %s is made up and reads no files, but the data set is '%s'; name %s as the data set",
                    kind->name, options->source, kind->name);
    } else {
        CVY_TRY(check_folder(options->source));
    }
    *kind_out = kind;
    return CVY_OK;
}

static cvy_status check_options(const cvy_data_options *options)
{
    char text[CVY_SHAPE_TEXT];
    const cvy_shape *sample = &options->sample;
    CVY_REQUIRE(options->source && options->source[0], CVY_ERR_ARG, "no data set is named");
    CVY_REQUIRE(options->train_count >= 0 && options->test_count >= 0, CVY_ERR_ARG,
                "counts of samples must not be negative, got %" PRId64 " and %" PRId64, options->train_count,
                options->test_count);
    if (!sample->dims) {
        return CVY_OK;
    }
    CVY_TRY(cvy_shape_check(sample, "a sample of the model's input"));
    CVY_REQUIRE(sample->dims == 3 || sample->dims == 4, CVY_ERR_INPUT,
                "the model takes samples of shape %s; data sets give CxHxW or CxDxHxW", cvy_shape_print(sample, text));
    CVY_TRY(options->target == CVY_TARGET_MAP ? cvy_shape_check(&options->map, "the model's labels") : CVY_OK);
    CVY_REQUIRE(options->classes >= 1 && options->classes <= INT32_MAX, CVY_ERR_ARG,
                "classes (of a regression: outputs) must be 1 to %d, got %" PRId64, INT32_MAX, options->classes);
    return CVY_OK;
}

cvy_status cvy_data_open(const cvy_data_options *options, cvy_data **data_out)
{
    cvy_status status = CVY_OK;
    const cvy_data_kind *kind;
    cvy_data_options wanted = *options;
    CVY_TRY(check_options(options));
    CVY_TRY(choose_kind(options, &kind));
    CVY_REQUIRE(options->sample.dims || !kind->synthetic, CVY_ERR_INPUT,
                "%s: made up by the program at the size that a model asks for; there are no files", kind->name);
    if (!options->sample.dims) {
        wanted.classes = CVY_DATA_MAX_CLASSES; /* a stray label must not cost memory */
    }
    cvy_data *data = cvy_calloc(1, sizeof *data);
    if (!data) {
        return CVY_ERR_MEMORY;
    }
    data->kind = kind;
    CVY_TRY_GOTO(status, done, kind->open(&wanted, &data->info, &data->state));
    CVY_TRY_GOTO(status, done, cvy_data_choose_scale(options, data));
    CVY_TRY_GOTO(status, done, cvy_augment_check(&options->augmentation, &data->info.sample, &data->info.map));
    data->augmentation = options->augmentation;
    data->seed = options->seed;
    *data_out = data; /* the caller owns it from here */
    data = NULL;
done:
    cvy_data_close(&data);
    return status;
}

void cvy_data_close(cvy_data **data)
{
    if (*data) {
        (*data)->kind->close((*data)->state);
        cvy_free((*data)->mean);
        cvy_free((*data)->std);
        cvy_free(*data);
        *data = NULL;
    }
}

const cvy_data_info *cvy_data_get_info(const cvy_data *data) { return &data->info; }

const char *cvy_data_kind_name(const cvy_data *data) { return data->kind->name; }

static cvy_status check_index(const cvy_data *data, cvy_split split, int64_t index)
{
    CVY_REQUIRE(index >= 0 && index < data->info.count[split], CVY_ERR_ARG,
                "sample %" PRId64 " of %s: there are %" PRId64, index, data->kind->name, data->info.count[split]);
    return CVY_OK;
}

static void scale(const cvy_data *data, int64_t elements, float *x)
{
    if (x) {
        cvy_data_apply_scale(data, elements / data->info.sample.extent[0], x);
    }
}

cvy_status cvy_data_read(const cvy_data *data, cvy_split split, int64_t index, float *x_out, void *label_out)
{
    CVY_TRY(check_index(data, split, index));
    CVY_TRY(data->kind->read(data->state, split, index, x_out, label_out));
    scale(data, cvy_shape_elements(&data->info.sample), x_out);
    return CVY_OK;
}

bool cvy_data_has_slabs(const cvy_data *data, bool augmented)
{
    const cvy_augmentation *augmentation = &data->augmentation;
    bool moves = augmented && (augmentation->crop_padding > 0 || augmentation->hflip > 0.0);
    return data->kind->read_slab && !moves;
}

cvy_status cvy_data_read_slab(const cvy_data *data, cvy_split split, int64_t index, const cvy_slab *slab, float *x_out,
                              void *label_out)
{
    CVY_TRY(check_index(data, split, index));
    CVY_TRY(data->kind->read_slab(data->state, split, index, slab, x_out, label_out));
    scale(data, cvy_slab_elements(slab), x_out);
    return CVY_OK;
}

cvy_status cvy_data_read_augmented(const cvy_data *data, cvy_split split, int64_t index, uint32_t epoch, float *x_out,
                                   void *label_out)
{
    const cvy_shape *sample = &data->info.sample;
    CVY_TRY(check_index(data, split, index));
    CVY_TRY(data->kind->read(data->state, split, index, x_out, label_out));
    cvy_augment_draw draw = cvy_augment_choose(&data->augmentation, data->seed, epoch, index, sample->dims);
    if (x_out) {
        cvy_augment_apply(&draw, sample, x_out);
    }
    if (label_out && data->info.target == CVY_TARGET_MAP) {
        cvy_augment_apply_map(&draw, &data->info.map, label_out);
    }
    scale(data, cvy_shape_elements(sample), x_out);
    return CVY_OK;
}

int64_t cvy_data_sample_bytes(const cvy_data *data)
{
    return cvy_shape_elements(&data->info.sample) * cvy_dtype_bytes(CVY_F32);
}

int64_t cvy_data_count_labels(const cvy_data_info *info)
{
    switch (info->target) {
    case CVY_TARGET_CLASS: return 1;
    case CVY_TARGET_MAP: return cvy_shape_elements(&info->map);
    default: return 0;
    }
}

cvy_shape cvy_data_label_shape(const cvy_data *data)
{
    const cvy_data_info *info = &data->info;
    cvy_shape shape = CVY_SHAPE(info->target == CVY_TARGET_VALUES ? info->values : 1);
    for (int i = 0; info->target == CVY_TARGET_MAP && i < info->map.dims; i++) {
        shape.extent[shape.dims++] = info->map.extent[i];
    }
    return shape;
}

int64_t cvy_data_label_bytes(const cvy_data *data)
{
    return cvy_data_count_labels(&data->info) * cvy_dtype_bytes(CVY_I32) +
           data->info.values * cvy_dtype_bytes(CVY_F32);
}
