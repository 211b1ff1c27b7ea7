/*
 * One array in NumPy's NPY format, from a file or an archive.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
#ifndef CVY_DATA_ARRAY_H
#define CVY_DATA_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/shape.h"

typedef enum cvy_array_type { CVY_ARRAY_U8, CVY_ARRAY_I32, CVY_ARRAY_I64, CVY_ARRAY_F32, CVY_ARRAY_F64 } cvy_array_type;

typedef struct cvy_array {
    char *name;                /**< file, and member of an archive, for messages */
    cvy_array_type type;
    cvy_shape shape;
    const unsigned char *body; /**< the numbers, little-endian, in C order; not aligned */
    void *memory;              /**< what holds the body: mapped, or cvy_calloc()'s where mapped_bytes is 0 */
    int64_t mapped_bytes;
} cvy_array;

/**
 * Map an NPY file. It must not be made shorter while the array lives.
 *
 * @param[out] array_out   released with cvy_array_destroy(); untouched on failure
 * @retval CVY_ERR_DATA    no NPY file, a type or order that is not taken, or a length that does not bear out the header
 */
cvy_status cvy_array_map(const char *path, cvy_array *array_out);

/**
 * Make an array of the bytes of an NPY file.
 *
 * @param[in] name    copied
 * @param[in] memory  from cvy_calloc(); the array's on success, still the caller's on failure
 */
cvy_status cvy_array_adopt(const char *name, void *memory, int64_t bytes, cvy_array *array_out);

/** Release what an array owns, and empty it; an empty one is fine. */
void cvy_array_destroy(cvy_array *array);

/** Whether elements are whole numbers. */
bool cvy_array_is_integer(const cvy_array *array);

/** Element @p at of an array of whole numbers. Cannot fail. */
int64_t cvy_array_get_integer(const cvy_array *array, int64_t at);

/**
 * Give elements as floats: bytes as 0 to 1, whole numbers and floats as they are.
 *
 * @param[in] first       element of the array
 * @retval CVY_ERR_DATA   one is NaN, infinite or beyond single precision; it is named, counted from @p first
 */
cvy_status cvy_array_get_floats(const cvy_array *array, int64_t first, int64_t count, float *out);

#endif
