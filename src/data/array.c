/*
 * Arrays of files are mapped, so that a set larger than memory is read as it is used; those of archives lie in memory.
 * Elements are copied out byte by byte, since a header may place them anywhere.
 */
#include "data/array.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/npy_header.h"

/* Map a regular file whole. */
static cvy_status map_file(const char *path, void **memory_out, int64_t *bytes_out)
{
    cvy_status status = CVY_OK;
    struct stat about;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold us up */
    CVY_REQUIRE_GOTO(status, done, descriptor >= 0 && fstat(descriptor, &about) == 0, CVY_ERR_DATA,
                     "%s: cannot open: %s", path, strerror(errno));
    CVY_REQUIRE_GOTO(status, done, S_ISREG(about.st_mode), CVY_ERR_DATA, "%s: not a regular file", path);
    CVY_REQUIRE_GOTO(status, done, about.st_size > 0, CVY_ERR_DATA, "%s: an empty file, expected an NPY array", path);
    void *memory = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    CVY_REQUIRE_GOTO(status, done, memory != MAP_FAILED, CVY_ERR_DATA, "%s: cannot map: %s", path, strerror(errno));
    *memory_out = memory;
    *bytes_out = about.st_size;
done:
    if (descriptor >= 0) {
        close(descriptor);
    }
    return status;
}

cvy_status cvy_array_map(const char *path, cvy_array *array_out)
{
    void *memory;
    int64_t bytes;
    CVY_TRY(map_file(path, &memory, &bytes));
    cvy_status status = cvy_array_adopt(path, memory, bytes, array_out);
    if (status != CVY_OK) {
        munmap(memory, (size_t)bytes);
        return status;
    }
    array_out->mapped_bytes = bytes;
    return CVY_OK;
}

cvy_status cvy_array_adopt(const char *name, void *memory, int64_t bytes, cvy_array *array_out)
{
    cvy_array array;
    CVY_TRY(cvy_npy_parse_header(name, memory, bytes, &array));
    array.name = cvy_strdup(name);
    if (!array.name) {
        return CVY_ERR_MEMORY;
    }
    array.memory = memory;
    *array_out = array;
    return CVY_OK;
}

void cvy_array_destroy(cvy_array *array)
{
    if (array->mapped_bytes) {
        munmap(array->memory, (size_t)array->mapped_bytes);
    } else {
        cvy_free(array->memory);
    }
    cvy_free(array->name);
    *array = (cvy_array){.name = NULL};
}

bool cvy_array_is_integer(const cvy_array *array)
{
    return array->type != CVY_ARRAY_F32 && array->type != CVY_ARRAY_F64;
}

int64_t cvy_array_get_integer(const cvy_array *array, int64_t at)
{
    int32_t narrow;
    int64_t wide;
    switch (array->type) {
    case CVY_ARRAY_I32:
        memcpy(&narrow, array->body + at * (int64_t)sizeof narrow, sizeof narrow);
        return narrow;
    case CVY_ARRAY_I64:
        memcpy(&wide, array->body + at * (int64_t)sizeof wide, sizeof wide);
        return wide;
    default:
        return array->body[at];
    }
}

static void copy_floats(const cvy_array *array, int64_t first, int64_t count, float *out)
{
    switch (array->type) {
    case CVY_ARRAY_U8:
        for (int64_t i = 0; i < count; i++) {
            out[i] = (float)array->body[first + i] / 255.0f;
        }
        break;
    case CVY_ARRAY_F32:
        memcpy(out, array->body + first * (int64_t)sizeof *out, (size_t)count * sizeof *out);
        break;
    case CVY_ARRAY_F64:
        for (int64_t i = 0; i < count; i++) {
            double value;
            memcpy(&value, array->body + (first + i) * (int64_t)sizeof value, sizeof value);
            out[i] = (float)value;
        }
        break;
    default:
        for (int64_t i = 0; i < count; i++) {
            out[i] = (float)cvy_array_get_integer(array, first + i);
        }
    }
}

/* Whether all are finite: 0 times what is not is NaN, so the sum tells, and the loop has no branch. */
static bool all_finite(const float *x, int64_t count)
{
    float sum = 0.0f;
    for (int64_t i = 0; i < count; i++) {
        sum += 0.0f * x[i];
    }
    return sum == 0.0f;
}

cvy_status cvy_array_get_floats(const cvy_array *array, int64_t first, int64_t count, float *out)
{
    copy_floats(array, first, count, out);
    if (cvy_array_is_integer(array) || all_finite(out, count)) {
        return CVY_OK;
    }
    int64_t at = 0;
    while (isfinite(out[at])) {
        at++;
    }
    return cvy_fail(CVY_ERR_DATA, "element %" PRId64 " is %g, expected a number that single precision holds", at,
                    (double)out[at]);
}
