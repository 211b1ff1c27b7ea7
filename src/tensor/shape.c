/* Shapes: checked once where they come in, trusted after. */
#include "tensor/shape.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"

const char *cvy_dtype_name(cvy_dtype dtype)
{
    static const char *const name[CVY_DTYPE_COUNT] = {
        [CVY_F32] = "f32", [CVY_F64] = "f64", [CVY_I32] = "i32", [CVY_U8] = "u8"};
    return name[dtype];
}

cvy_status cvy_shape_check(const cvy_shape *shape, const char *what)
{
    char text[CVY_SHAPE_TEXT];
    CVY_REQUIRE(shape->dims >= 1 && shape->dims <= CVY_MAX_DIMS, CVY_ERR_INPUT,
                "%s: %d dimensions, expected 1 to %d", what, shape->dims, (int)CVY_MAX_DIMS);
    int64_t bytes = cvy_dtype_bytes(CVY_F64);
    for (int i = 0; i < shape->dims; i++) {
        CVY_REQUIRE(shape->extent[i] >= 1, CVY_ERR_INPUT, "%s: shape %s has no elements", what,
                    cvy_shape_print(shape, text));
        int64_t padded; /* any two dimensions may be padded to a block of 16: allow it for all */
        bool fits = cvy_add_i64(shape->extent[i], 15, &padded) && cvy_mul_i64(bytes, padded, &bytes);
        CVY_REQUIRE(fits && bytes <= INT64_C(1) << 62, CVY_ERR_INPUT, "%s: shape %s is beyond 2^62 bytes", what,
                    cvy_shape_print(shape, text));
    }
    return CVY_OK;
}

bool cvy_shape_equal(const cvy_shape *a, const cvy_shape *b)
{
    if (a->dims != b->dims) {
        return false;
    }
    for (int i = 0; i < a->dims; i++) {
        if (a->extent[i] != b->extent[i]) {
            return false;
        }
    }
    return true;
}

const char *cvy_shape_print(const cvy_shape *shape, char *text)
{
    int length = 0;
    text[0] = '\0';
    for (int i = 0; i < shape->dims && i < CVY_MAX_DIMS; i++) {
        length += snprintf(text + length, (size_t)(CVY_SHAPE_TEXT - length), "%s%" PRId64, i ? "x" : "",
                           shape->extent[i]);
    }
    return text;
}
