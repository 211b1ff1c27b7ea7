/*
 * Writing safetensors: the header is made first, since offsets follow from shapes alone, then the tensors stream behind
 * it. The header is padded with spaces to whole 8 bytes, so that a mapped file has aligned data; "format": "pt" is what
 * PyTorch's readers look for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/memory.h"
#include "runtime/safetensors.h"

/* A file that is being written. */
typedef struct writer {
    const char *path;
    FILE *stream;
    XXH3_state_t *hash;
    void *scratch;   /* one tensor in logical order */
} writer;

static cvy_status put(writer *file, const void *data, size_t bytes)
{
    (void)XXH3_64bits_update(file->hash, data, bytes);
    CVY_REQUIRE(fwrite(data, 1, bytes, file->stream) == bytes, CVY_ERR_CHECKPOINT, "%s: cannot write: %s", file->path,
                strerror(errno));
    return CVY_OK;
}

static const char *dtype_text(cvy_dtype dtype) { return dtype == CVY_F64 ? "F64" : "F32"; }

/* {"dtype": …, "shape": […], "data_offsets": […]}; NULL where memory is exhausted. */
static json_t *make_entry(const cvy_safetensor_item *item, cvy_dtype dtype, int64_t begin, int64_t end)
{
    json_t *shape = json_array();
    for (int i = 0; i < item->shape.dims; i++) {
        (void)json_array_append_new(shape, json_integer(item->shape.extent[i])); /* a failure shows as a short array */
    }
    if (shape && json_array_size(shape) != (size_t)item->shape.dims) {
        json_decref(shape);
        return NULL;
    }
    return shape ? json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_text(dtype), "shape", shape, "data_offsets",
                             (json_int_t)begin, (json_int_t)end)
                 : NULL;
}

/* Make the header's text, padded. cvy_free() */
static cvy_status make_header(const char *path, const cvy_safetensor_item *item, int count, cvy_dtype dtype,
                              char **text_out)
{
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    bool whole = header != NULL;
    int64_t begin = 0;
    for (int i = 0; i < count && whole; i++) {
        int64_t end = begin + cvy_shape_elements(&item[i].shape) * cvy_dtype_bytes(dtype);
        whole = json_object_set_new(header, item[i].name, make_entry(&item[i], dtype, begin, end)) == 0;
        begin = end;
    }
    bool unique = !whole || json_object_size(header) == (size_t)count + 1;
    char *text = whole ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    size_t length = text ? strlen(text) : 0;
    size_t padded = (size_t)cvy_round_up((int64_t)length, 8);
    char *out = text && unique ? cvy_calloc(padded + 1, 1) : NULL;
    if (out) {
        memset(out, ' ', padded);
        memcpy(out, text, length);
    }
    free(text);
    CVY_REQUIRE(unique, CVY_ERR_ARG, "%s: two of its tensors have one name", path);
    CVY_REQUIRE(out, CVY_ERR_MEMORY, "%s: no memory for its header, or a name is not UTF-8", path);
    *text_out = out;
    return CVY_OK;
}

static cvy_status put_header(writer *file, const cvy_safetensor_item *item, int count, cvy_dtype dtype)
{
    char *header = NULL;
    CVY_TRY(make_header(file->path, item, count, dtype, &header));
    uint64_t length = strlen(header);
    cvy_status status = put(file, &length, sizeof length);
    if (status == CVY_OK) {
        status = put(file, header, length);
    }
    cvy_free(header);
    return status;
}

static cvy_status put_tensor(writer *file, const cvy_safetensor_item *item, cvy_dtype dtype)
{
    const cvy_tensor logical = {item->shape, dtype, CVY_FORMAT_PLAIN, false};
    size_t bytes = (size_t)cvy_tensor_bytes(&logical);
    if (!item->fetch && item->tensor.format == CVY_FORMAT_PLAIN && item->tensor.dtype == dtype) {
        return put(file, item->data, bytes);
    }
    CVY_TRY(item->fetch ? item->fetch(item->context, file->scratch)
                        : cvy_tensor_copy(&item->tensor, item->data, &logical, file->scratch));
    return put(file, file->scratch, bytes);
}

/* Check what is asked for; gives the bytes of the largest tensor. */
static cvy_status check_items(const cvy_safetensor_item *item, int count, cvy_dtype dtype, int64_t *largest_out)
{
    CVY_REQUIRE(dtype == CVY_F32 || dtype == CVY_F64, CVY_ERR_ARG, "safetensors: cannot write %s",
                cvy_dtype_name(dtype));
    for (int i = 0; i < count; i++) {
        int64_t elements = cvy_shape_elements(&item[i].shape);
        CVY_REQUIRE(elements == cvy_shape_elements(&item[i].tensor.shape), CVY_ERR_ARG,
                    "%s: a tensor of other size than its shape says", item[i].name);
        *largest_out = cvy_max_i64(*largest_out, elements * cvy_dtype_bytes(dtype));
    }
    return CVY_OK;
}

static cvy_status put_all(writer *file, const cvy_safetensor_item *item, int count, cvy_dtype dtype)
{
    CVY_TRY(put_header(file, item, count, dtype));
    for (int i = 0; i < count; i++) {
        CVY_TRY(put_tensor(file, &item[i], dtype));
    }
    CVY_REQUIRE(fflush(file->stream) == 0 && fsync(fileno(file->stream)) == 0, CVY_ERR_CHECKPOINT,
                "%s: cannot write: %s", file->path, strerror(errno));
    return CVY_OK;
}

cvy_status cvy_safetensors_write(const char *path, const cvy_safetensor_item *item, int count, cvy_dtype dtype,
                                 uint64_t *checksum_out)
{
    int64_t largest = 0;
    CVY_TRY(check_items(item, count, dtype, &largest));
    cvy_status status = CVY_OK;
    writer file = {.path = path, .hash = XXH3_createState(), .scratch = cvy_calloc((size_t)largest, 1)};
    if (!file.hash || !file.scratch) {
        status = cvy_fail(CVY_ERR_MEMORY, "%s: no memory to write it", path);
        goto done;
    }
    (void)XXH3_64bits_reset(file.hash);
    file.stream = fopen(path, "wbe");
    CVY_REQUIRE_GOTO(status, done, file.stream, CVY_ERR_CHECKPOINT, "%s: cannot create: %s", path, strerror(errno));
    status = put_all(&file, item, count, dtype);
    if (fclose(file.stream) != 0 && status == CVY_OK) {
        status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: cannot write: %s", path, strerror(errno));
    }
    if (status != CVY_OK) {
        (void)unlink(path);
    } else if (checksum_out) {
        *checksum_out = XXH3_64bits_digest(file.hash);
    }
done:
    XXH3_freeState(file.hash);
    cvy_free(file.scratch);
    return status;
}
