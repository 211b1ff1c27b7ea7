/*
 * x is [n,h,w] (one channel), [n,c,h,w] or [n,c,d,h,w]; y is whole numbers [n], which are classes, or floats [n] or
 * [n,values], which are the targets of a regression. A model of volumes takes [n,d,h,w] for one channel. Whole numbers
 * [n,h,w] or [n,d,h,w] are maps: a class for each position.
 *
 * Shapes and labels are checked when the set is opened; floats when they are read, since a set may be larger than
 * memory.
 */
#include "data/array_set.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/kind.h"

typedef struct array_set {
    cvy_array pair[2][2];    /* of each split: x, y */
    int64_t elements;        /* of a sample */
    int64_t values;          /* of a sample's target; 0: classes */
    int64_t labels;          /* classes of a sample: one, or a map of them */
} array_set;

enum { X, Y };

/* The shape of a sample of x: n gives way to the one channel where there is no axis for channels. */
static cvy_status find_sample(const cvy_array *x, const cvy_data_options *options, cvy_shape *sample_out)
{
    char text[CVY_SHAPE_TEXT];
    bool has_channels = x->shape.dims > 3 && x->shape.dims != options->sample.dims;
    CVY_REQUIRE(x->shape.dims >= 3 && x->shape.dims <= 5, CVY_ERR_DATA,
                "%s: shape %s, expected n,h,w or n,c,h,w or n,c,d,h,w", x->name, cvy_shape_print(&x->shape, text));
    CVY_REQUIRE(x->type != CVY_ARRAY_I32 && x->type != CVY_ARRAY_I64, CVY_ERR_DATA,
                "%s: samples are whole numbers of more than a byte, expected uint8, float32 or float64", x->name);
    *sample_out = has_channels ? (cvy_shape){.dims = 0} : CVY_SHAPE(1);
    for (int i = 1; i < x->shape.dims; i++) {
        sample_out->extent[sample_out->dims++] = x->shape.extent[i];
    }
    return cvy_data_check_sample(x->name, sample_out, options);
}

/* Every label of the first @p count samples, of which each has @p labels. */
static cvy_status check_classes(const cvy_array *y, int64_t count, int64_t labels, const cvy_data_options *options,
                                int64_t *classes)
{
    for (int64_t i = 0; i < count * labels; i++) {
        int64_t label = cvy_array_get_integer(y, i);
        CVY_TRY(cvy_data_check_label(y->name, i / labels, label, options));
        *classes = cvy_max_i64(*classes, label + 1);
    }
    return CVY_OK;
}

/* What y is by its type and shape: a class, a map of them (its shape is told) or values. */
static cvy_status find_target(const cvy_array *y, cvy_target *target_out, cvy_shape *map_out)
{
    char text[CVY_SHAPE_TEXT];
    int dims = y->shape.dims;
    bool whole = cvy_array_is_integer(y);
    CVY_REQUIRE(dims == 1 || (dims == 2 && !whole) || ((dims == 3 || dims == 4) && whole), CVY_ERR_DATA,
                "%s: shape %s, expected whole numbers of shape n, n,h,w or n,d,h,w, or floats of shape n or n,values",
                y->name, cvy_shape_print(&y->shape, text));
    *target_out = !whole ? CVY_TARGET_VALUES : dims == 1 ? CVY_TARGET_CLASS : CVY_TARGET_MAP;
    *map_out = (cvy_shape){.dims = 0};
    for (int i = 1; i < dims && *target_out == CVY_TARGET_MAP; i++) {
        map_out->extent[map_out->dims++] = y->shape.extent[i];
    }
    return CVY_OK;
}

/* Labels must be a map of the model's positions; where there is no model, those of both splits must be alike. */
static cvy_status check_map(const cvy_array *y, const cvy_shape *map, const cvy_data_options *options,
                            const cvy_data_info *info)
{
    char found[CVY_SHAPE_TEXT], expected[CVY_SHAPE_TEXT];
    const cvy_shape *wanted = options->sample.dims ? &options->map : &info->map;
    CVY_REQUIRE(!wanted->dims || cvy_shape_equal(map, wanted), CVY_ERR_DATA,
                "%s: labels of a sample are %s, expected %s", y->name, cvy_shape_print(map, found),
                cvy_shape_print(wanted, expected));
    return CVY_OK;
}

/* Check y against x and the model; info's target, classes and values are set, or held to what the other split has. */
static cvy_status check_targets(const cvy_array *y, const cvy_array *x, int64_t count,
                                const cvy_data_options *options, cvy_data_info *info)
{
    cvy_target target;
    cvy_shape map;
    CVY_TRY(find_target(y, &target, &map));
    bool classes = target != CVY_TARGET_VALUES;
    int64_t values = classes ? 0 : y->shape.dims == 2 ? y->shape.extent[1] : 1;
    CVY_REQUIRE(y->shape.extent[0] == x->shape.extent[0], CVY_ERR_DATA,
                "%s: %" PRId64 " targets, but %s holds %" PRId64 " samples", y->name, y->shape.extent[0], x->name,
                x->shape.extent[0]);
    CVY_TRY(cvy_data_check_target(y->name, target, options));
    CVY_REQUIRE(classes || !options->sample.dims || values == options->classes, CVY_ERR_DATA,
                "%s: %" PRId64 " values a sample, but the model has %" PRId64 " outputs", y->name, values,
                options->classes);
    CVY_REQUIRE((!info->classes && !info->values) || (info->values == values && info->target == target), CVY_ERR_DATA,
                "%s: targets are of another kind than those of the other split", y->name);
    CVY_TRY(target == CVY_TARGET_MAP ? check_map(y, &map, options, info) : CVY_OK);
    info->target = target;
    info->values = values;
    info->map = map;
    return classes ? check_classes(y, count, cvy_data_count_labels(info), options, &info->classes) : CVY_OK;
}

/* Samples must be the model's; where there is no model, those of both splits must be alike. */
static cvy_status check_split(const cvy_array pair[2], cvy_split split, const cvy_data_options *options,
                              cvy_data_info *info)
{
    int64_t limit = split == CVY_SPLIT_TRAIN ? options->train_count : options->test_count;
    cvy_data_options wanted = *options;
    wanted.sample = wanted.sample.dims ? wanted.sample : info->sample;
    CVY_TRY(find_sample(&pair[X], &wanted, &info->sample));
    info->count[split] = cvy_data_limit(pair[X].shape.extent[0], limit);
    return check_targets(&pair[Y], &pair[X], info->count[split], options, info);
}

void cvy_array_set_close(void *opaque)
{
    array_set *set = opaque;
    for (int i = 0; set && i < 4; i++) {
        cvy_array_destroy(&set->pair[i / 2][i % 2]);
    }
    cvy_free(set);
}

cvy_status cvy_array_set_open(const cvy_data_options *options, cvy_array_load load, cvy_data_info *info_out,
                              void **state_out)
{
    cvy_status status = CVY_OK;
    cvy_data_info info = {.target = CVY_TARGET_CLASS};
    array_set *set = cvy_calloc(1, sizeof *set);
    if (!set) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < 2; i++) {
        CVY_TRY_GOTO(status, done, load(options->source, (cvy_split)i, set->pair[i]));
        if (set->pair[i][X].body) {
            CVY_TRY_GOTO(status, done, check_split(set->pair[i], (cvy_split)i, options, &info));
        }
    }
    CVY_REQUIRE_GOTO(status, done, info.count[0] + info.count[1] > 0, CVY_ERR_DATA, "%s: holds no arrays of samples",
                     options->source);
    set->elements = cvy_shape_elements(&info.sample);
    set->values = info.values;
    set->labels = cvy_data_count_labels(&info);
    *info_out = info;
    *state_out = set;
    set = NULL;
done:
    cvy_array_set_close(set);
    return status;
}

cvy_status cvy_array_set_read(const void *opaque, cvy_split split, int64_t index, float *x_out, void *label_out)
{
    static const char *const words[] = {[CVY_SPLIT_TRAIN] = "training", [CVY_SPLIT_TEST] = "test"};
    const array_set *set = opaque;
    const cvy_array *pair = set->pair[split];
    int bad = X;
    cvy_status status = x_out ? cvy_array_get_floats(&pair[X], index * set->elements, set->elements, x_out) : CVY_OK;
    if (status == CVY_OK && label_out && set->values) {
        bad = Y;
        status = cvy_array_get_floats(&pair[Y], index * set->values, set->values, label_out);
    }
    for (int64_t i = 0; status == CVY_OK && label_out && i < set->labels; i++) {
        ((int32_t *)label_out)[i] = (int32_t)cvy_array_get_integer(&pair[Y], index * set->labels + i);
    }
    return status == CVY_OK ? CVY_OK
                            : cvy_fail_within(status, "%s: %s sample %" PRId64, pair[bad].name, words[split], index);
}
