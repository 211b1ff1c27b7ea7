/*
 * The header of a safetensors file, {"name": {"dtype", "shape", "data_offsets"}, ...}, entry by entry: jansson reads a
 * name or an entry at a time, so that a hostile header takes memory for one entry, and not for a tree of 50 times the
 * header's length. What stands between them is looked at here.
 */
#include "runtime/safetensors_header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/memory.h"

enum { MAX_ENTRY_BYTES = 1 << 20 };

/* What is left of the header. */
typedef struct scan {
    const cvy_safetensors_text *header;
    cvy_json_source source;
    size_t at;
    int capacity;        /* of the table of tensors */
    bool has_metadata;
} scan;

typedef struct dtype_row {
    const char *name;
    int64_t bytes;
} dtype_row;

static const dtype_row dtypes[] = {
    {"F32", 4},     {"F64", 8},     {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1}, {"U64", 8},
    {"U32", 4},     {"U16", 2},     {"U8", 1},  {"BOOL", 1}, {"C64", 8}, {"F8_E4M3", 1},         {"F8_E5M2", 1},
};

static const dtype_row *find_dtype(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            return &dtypes[i];
        }
    }
    return NULL;
}

/* Read a shape; a scalar becomes one element in one dimension. Extents may be 0, as in the format. */
static cvy_status read_shape(const json_t *json, const cvy_json_source *source, const char *name, cvy_shape *shape,
                             int64_t *elements)
{
    size_t dims = json_array_size(json);
    CVY_REQUIRE(dims <= CVY_MAX_DIMS, source->status, "%s: %s: %zu dimensions, expected at most %d", source->file, name,
                dims, (int)CVY_MAX_DIMS);
    *shape = (cvy_shape){.dims = dims ? (int)dims : 1, .extent = {1}};
    *elements = 1;
    for (size_t i = 0; i < dims; i++) {
        const json_t *extent = json_array_get(json, i);
        int64_t value = json_is_integer(extent) ? json_integer_value(extent) : -1;
        CVY_REQUIRE(value >= 0 && cvy_mul_i64(*elements, value, elements), source->status,
                    "%s: %s: extent %zu of its shape is not a size, or the product is beyond 2^63", source->file, name,
                    i);
        shape->extent[i] = value;
    }
    return CVY_OK;
}

/* Fill in one tensor from its header entry: {"dtype", "shape", "data_offsets"}. */
static cvy_status read_entry(const json_t *entry, const cvy_json_source *source, const unsigned char *data,
                             int64_t data_bytes, cvy_safetensor *tensor)
{
    const char *name = tensor->name;
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    CVY_REQUIRE(dtype && json_is_array(shape) && json_array_size(offsets) == 2, source->status,
                "%s: %s: its entry lacks dtype, shape or two data_offsets", source->file, name);
    const dtype_row *row = find_dtype(dtype);
    CVY_REQUIRE(row, source->status, "%s: %s: unknown dtype %.16s", source->file, name, dtype);
    memcpy(tensor->dtype, row->name, strlen(row->name) + 1);
    int64_t elements = 0;
    CVY_TRY(read_shape(shape, source, name, &tensor->shape, &elements));
    int64_t bytes;
    CVY_REQUIRE(cvy_mul_i64(elements, row->bytes, &bytes), source->status, "%s: %s: its bytes are beyond 2^63",
                source->file, name);
    const json_t *first = json_array_get(offsets, 0);
    const json_t *last = json_array_get(offsets, 1);
    int64_t begin = json_is_integer(first) ? json_integer_value(first) : -1;
    int64_t end = json_is_integer(last) ? json_integer_value(last) : -1;
    CVY_REQUIRE(begin >= 0 && begin <= end && end <= data_bytes, source->status,
                "%s: %s: data_offsets [%" PRId64 ", %" PRId64 "] are not within its %" PRId64 " bytes of data",
                source->file, name, begin, end, data_bytes);
    CVY_REQUIRE(end - begin == bytes, source->status,
                "%s: %s: %" PRId64 " bytes of data, expected %" PRId64 " for its shape and dtype %s", source->file,
                name, end - begin, bytes, row->name);
    tensor->data = data + begin;
    tensor->bytes = bytes;
    return CVY_OK;
}

static int compare_places(const void *left, const void *right)
{
    const cvy_safetensor *a = *(const cvy_safetensor *const *)left;
    const cvy_safetensor *b = *(const cvy_safetensor *const *)right;
    if (a->data != b->data) {
        return a->data < b->data ? -1 : 1;
    }
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes; /* empty ones before what starts there */
}

static int compare_names(const void *left, const void *right)
{
    return strcmp((*(const cvy_safetensor *const *)left)->name, (*(const cvy_safetensor *const *)right)->name);
}

/* Check that the tensors, in the order of their data, tile it. */
static cvy_status check_tiling(const cvy_safetensors_text *header, const cvy_safetensor *const *order, int count)
{
    const unsigned char *end = header->data;
    for (int i = 0; i < count; end = order[i]->data + order[i]->bytes, i++) {
        CVY_REQUIRE(order[i]->data == end, CVY_ERR_CHECKPOINT, "%s: %s: its data %s", header->path, order[i]->name,
                    order[i]->data < end ? "overlaps another tensor's" : "comes after a gap");
    }
    CVY_REQUIRE(end == header->data + header->data_bytes, CVY_ERR_CHECKPOINT, "%s: %td bytes behind the last tensor",
                header->path, header->data + header->data_bytes - end);
    return CVY_OK;
}

/* Sort the tensors by name, after they were checked in the order of their data. */
static cvy_status make_index(const cvy_safetensors_text *header, cvy_safetensors *file)
{
    file->by_name = cvy_calloc((size_t)file->count, sizeof *file->by_name);
    if (!file->by_name) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < file->count; i++) {
        file->by_name[i] = &file->tensor[i];
    }
    qsort(file->by_name, (size_t)file->count, sizeof *file->by_name, compare_places);
    CVY_TRY(check_tiling(header, file->by_name, file->count));
    qsort(file->by_name, (size_t)file->count, sizeof *file->by_name, compare_names);
    for (int i = 1; i < file->count; i++) {
        CVY_REQUIRE(strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) != 0, CVY_ERR_CHECKPOINT,
                    "%s: %s: a duplicate key", header->path, file->by_name[i]->name);
    }
    return CVY_OK;
}

/* "__metadata__" maps texts to texts; nothing in it is of use here. */
static cvy_status check_metadata(scan *s, json_t *metadata)
{
    const char *key;
    json_t *value;
    CVY_REQUIRE(!s->has_metadata, s->source.status, "%s: __metadata__: a duplicate key", s->source.file);
    s->has_metadata = true;
    CVY_REQUIRE(json_is_object(metadata), s->source.status, "%s: __metadata__ is not an object", s->source.file);
    json_object_foreach(metadata, key, value) {
        CVY_REQUIRE(json_is_string(value), s->source.status, "%s: __metadata__: %s is not a text", s->source.file, key);
    }
    return CVY_OK;
}

/* Take a mark where it comes next, after blanks. */
static bool take(scan *s, char mark)
{
    const cvy_safetensors_text *header = s->header;
    while (s->at < header->bytes && memchr(" \t\n\r", header->text[s->at], 4)) {
        s->at++;
    }
    bool found = s->at < header->bytes && header->text[s->at] == mark;
    s->at += found;
    return found;
}

static cvy_status fail_mark(const scan *s, const char *expected)
{
    return cvy_fail(s->source.status, "%s: its header is not JSON: byte %zu: expected %s", s->source.file, s->at,
                    expected);
}

/* Take a text or an object. */
static cvy_status take_value(scan *s, json_t **value_out)
{
    return cvy_json_parse_at(&s->source, s->header->text, s->header->bytes, MAX_ENTRY_BYTES, &s->at, value_out);
}

/* Take NAME: ENTRY. */
static cvy_status take_entry(scan *s, cvy_safetensors *file)
{
    json_t *name = NULL, *entry = NULL;
    cvy_status status;
    if (!take(s, '"')) {
        return fail_mark(s, "'\"' or '}'");
    }
    s->at--;
    CVY_TRY_GOTO(status, done, take_value(s, &name));
    if (!take(s, ':')) {
        status = fail_mark(s, "':'");
        goto done;
    }
    CVY_TRY_GOTO(status, done, take_value(s, &entry));
    if (strcmp(json_string_value(name), "__metadata__") == 0) {
        status = check_metadata(s, entry);
        goto done;
    }
    CVY_TRY_GOTO(status, done, cvy_array_reserve(&file->tensor, file->count, &s->capacity, sizeof *file->tensor));
    cvy_safetensor *tensor = &file->tensor[file->count];
    tensor->name = cvy_strdup(json_string_value(name));
    if (!tensor->name) {
        status = CVY_ERR_MEMORY;
        goto done;
    }
    file->count++;
    status = read_entry(entry, &s->source, s->header->data, s->header->data_bytes, tensor);
done:
    json_decref(name);
    json_decref(entry);
    return status;
}

cvy_status cvy_safetensors_parse(const cvy_safetensors_text *header, cvy_safetensors *file)
{
    scan s = {.header = header, .source = {header->path, CVY_ERR_CHECKPOINT}};
    if (!take(&s, '{')) {
        return fail_mark(&s, "'{'");
    }
    if (!take(&s, '}')) {
        do {
            CVY_TRY(take_entry(&s, file));
        } while (take(&s, ','));
        if (!take(&s, '}')) {
            return fail_mark(&s, "',' or '}'");
        }
    }
    (void)take(&s, '\0'); /* goes over the blanks that pad it */
    return s.at == header->bytes ? make_index(header, file) : fail_mark(&s, "its end");
}
