/*
 * Reading safetensors. The checks are those of the reference reader: the header's length lies within the file, its JSON
 * is an object with unique keys, every dtype is known, offsets follow from shape and dtype, and the tensors tile the
 * data with neither gap, overlap nor rest. After that a tensor's bytes can be trusted to be there.
 *
 * The file is mapped: a file that another process shortens meanwhile kills this one (SIGBUS), as with any mapping.
 * Data may start at any byte, so elements are copied out, never pointed at. The format is little endian, as is the
 * host.
 */
#include "runtime/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/memory.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors files are little endian");

enum { LENGTH_BYTES = 8, MAX_HEADER_BYTES = 32 << 20 }; /* the reference reader allows 100 MB; no model comes near */

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

/* Check that the tensors tile the data. */
static cvy_status check_tiling(const cvy_safetensors *file, const char *path, const unsigned char *data,
                               int64_t data_bytes)
{
    const cvy_safetensor **order = cvy_calloc((size_t)file->count, sizeof(const cvy_safetensor *));
    if (!order) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < file->count; i++) {
        order[i] = &file->tensor[i];
    }
    qsort(order, (size_t)file->count, sizeof *order, compare_places);
    cvy_status status = CVY_OK;
    const unsigned char *end = data;
    for (int i = 0; i < file->count && status == CVY_OK; end = order[i]->data + order[i]->bytes, i++) {
        if (order[i]->data != end) {
            status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: %s: its data %s", path, order[i]->name,
                              order[i]->data < end ? "overlaps another tensor's" : "comes after a gap");
        }
    }
    if (status == CVY_OK && end != data + data_bytes) {
        status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: %td bytes behind the last tensor", path, data + data_bytes - end);
    }
    cvy_free(order);
    return status;
}

/* "__metadata__" maps texts to texts; nothing in it is of use here. */
static cvy_status check_metadata(json_t *metadata, const cvy_json_source *source)
{
    const char *key;
    json_t *value;
    CVY_REQUIRE(json_is_object(metadata), source->status, "%s: __metadata__ is not an object", source->file);
    json_object_foreach(metadata, key, value) {
        CVY_REQUIRE(json_is_string(value), source->status, "%s: __metadata__: %s is not a text", source->file, key);
    }
    return CVY_OK;
}

/* Turn the header's entries into tensors. */
static cvy_status read_entries(json_t *header, const cvy_json_source *source, const unsigned char *data,
                               int64_t data_bytes, cvy_safetensors *file)
{
    CVY_REQUIRE(json_is_object(header), source->status, "%s: the header is not an object", source->file);
    file->tensor = cvy_calloc(json_object_size(header), sizeof *file->tensor);
    if (!file->tensor) {
        return CVY_ERR_MEMORY;
    }
    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry) {
        if (strcmp(name, "__metadata__") == 0) {
            CVY_TRY(check_metadata(entry, source));
            continue;
        }
        cvy_safetensor *tensor = &file->tensor[file->count];
        tensor->name = cvy_strdup(name);
        if (!tensor->name) {
            return CVY_ERR_MEMORY;
        }
        file->count++;
        CVY_TRY(read_entry(entry, source, data, data_bytes, tensor));
    }
    return check_tiling(file, source->file, data, data_bytes);
}

static cvy_status read_header(const char *path, cvy_safetensors *file)
{
    const cvy_json_source source = {path, CVY_ERR_CHECKPOINT};
    const unsigned char *bytes = file->mapping;
    uint64_t header_bytes;
    memcpy(&header_bytes, bytes, sizeof header_bytes);
    size_t rest = file->mapping_bytes - LENGTH_BYTES;
    CVY_REQUIRE(header_bytes <= rest && header_bytes <= MAX_HEADER_BYTES, CVY_ERR_CHECKPOINT,
                "%s: a header of %" PRIu64 " bytes in a file of %zu: not a safetensors file, or cut off", path,
                header_bytes, file->mapping_bytes);
    const char *text = (const char *)bytes + LENGTH_BYTES;
    CVY_REQUIRE(header_bytes && text[0] == '{', CVY_ERR_CHECKPOINT,
                "%s: its header is not JSON: not a safetensors file", path);
    json_t *header = NULL;
    CVY_TRY(cvy_json_parse(&source, text, header_bytes, &header));
    cvy_status status =
        read_entries(header, &source, bytes + LENGTH_BYTES + header_bytes, (int64_t)(rest - header_bytes), file);
    json_decref(header);
    return status;
}

static cvy_status map_file(const char *path, cvy_safetensors *file)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    CVY_REQUIRE(descriptor >= 0, CVY_ERR_CHECKPOINT, "%s: %s", path, strerror(errno));
    struct stat info;
    cvy_status status = CVY_OK;
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: not a regular file", path);
    } else if (info.st_size < LENGTH_BYTES) {
        status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: %jd bytes: not a safetensors file, or cut off", path,
                          (intmax_t)info.st_size);
    } else {
        void *mapping = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (mapping == MAP_FAILED) {
            status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: cannot map: %s", path, strerror(errno));
        } else {
            file->mapping = mapping;
            file->mapping_bytes = (size_t)info.st_size;
        }
    }
    close(descriptor);
    return status;
}

cvy_status cvy_safetensors_open(const char *path, cvy_safetensors *file_out)
{
    cvy_safetensors file = {0};
    cvy_status status = map_file(path, &file);
    if (status == CVY_OK) {
        status = read_header(path, &file);
    }
    if (status != CVY_OK) {
        cvy_safetensors_close(&file);
        return status;
    }
    *file_out = file;
    return CVY_OK;
}

void cvy_safetensors_close(cvy_safetensors *file)
{
    if (!file) {
        return;
    }
    for (int i = 0; i < file->count; i++) {
        cvy_free(file->tensor[i].name);
    }
    cvy_free(file->tensor);
    if (file->mapping) {
        munmap(file->mapping, file->mapping_bytes);
    }
    *file = (cvy_safetensors){0};
}

const cvy_safetensor *cvy_safetensors_find(const cvy_safetensors *file, const char *name)
{
    for (int i = 0; i < file->count; i++) {
        if (strcmp(file->tensor[i].name, name) == 0) {
            return &file->tensor[i];
        }
    }
    return NULL;
}
