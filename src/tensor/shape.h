/* Data types and logical shapes. */
#ifndef CVY_TENSOR_SHAPE_H
#define CVY_TENSOR_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/** Type of one element. */
typedef enum cvy_dtype { CVY_F32, CVY_F64, CVY_I32, CVY_U8, CVY_DTYPE_COUNT } cvy_dtype;

/** Bytes of one element. Cannot fail. */
static inline int64_t cvy_dtype_bytes(cvy_dtype dtype) { return dtype == CVY_U8 ? 1 : dtype == CVY_F64 ? 8 : 4; }

/** "f32", "f64", "i32", "u8". Cannot fail. */
const char *cvy_dtype_name(cvy_dtype dtype);

/** g,o,i,d,h,w is the longest shape there is. */
enum { CVY_MAX_DIMS = 6 };

/**
 * Logical extents. Activations are n,c / n,c,h,w / n,c,d,h,w. Weights are o,i / o,i,(d),h,w, and with a leading g where
 * a convolution has groups (o and i are then per group). Vectors have one dimension; 0 dimensions is "no tensor".
 */
typedef struct cvy_shape {
    int dims;
    int64_t extent[CVY_MAX_DIMS];
} cvy_shape;

/** Make a shape from extents, outermost first: CVY_SHAPE(n, c, h, w). */
#define CVY_SHAPE(...)                                                      \
    ((cvy_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                 {__VA_ARGS__}})

/** Product of the extents; 0 dimensions give 0. The shape must have passed cvy_shape_check(). */
static inline int64_t cvy_shape_elements(const cvy_shape *shape)
{
    int64_t elements = shape->dims ? 1 : 0;
    for (int i = 0; i < shape->dims; i++) {
        elements *= shape->extent[i];
    }
    return elements;
}

/**
 * Check extents of outside origin: each at least 1, 1 to CVY_MAX_DIMS dimensions, and the bytes of such a tensor in
 * double within 2^62, each dimension counted 15 longer since a format may pad it.
 *
 * @param[in] what  names the tensor in the message
 * @retval CVY_ERR_INPUT otherwise
 */
cvy_status cvy_shape_check(const cvy_shape *shape, const char *what);

/** Same dimensions and extents. */
bool cvy_shape_equal(const cvy_shape *a, const cvy_shape *b);

/** Write "8x64x56x56" into @p text (at least CVY_SHAPE_TEXT bytes); returns @p text. */
enum { CVY_SHAPE_TEXT = 128 };
const char *cvy_shape_print(const cvy_shape *shape, char *text);

#endif
