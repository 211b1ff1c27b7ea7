/*
 * From the bytes of a file to a tensor in memory, element by element and without memory of its own: a load that has
 * begun cannot run out of it. Half precision is IEEE 754 binary16 (1, 5, 10 bits) and bfloat16 (the upper half of a
 * binary32); both fit into float exactly.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/safetensors.h"

typedef double (*load_function)(const unsigned char *from);

static double load_f32(const unsigned char *from)
{
    float value;
    memcpy(&value, from, sizeof value);
    return value;
}

static double load_f64(const unsigned char *from)
{
    double value;
    memcpy(&value, from, sizeof value);
    return value;
}

static double load_bf16(const unsigned char *from)
{
    uint16_t half;
    memcpy(&half, from, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double load_f16(const unsigned char *from)
{
    uint16_t half;
    memcpy(&half, from, sizeof half);
    int exponent = half >> 10 & 31;
    double fraction = half & 1023;
    double magnitude = exponent == 31 ? (fraction > 0 ? (double)NAN : HUGE_VAL)
                       : exponent == 0 ? ldexp(fraction, -24) /* subnormal: no hidden bit */
                                       : ldexp(1024 + fraction, exponent - 25);
    return half >> 15 ? -magnitude : magnitude;
}

static load_function find_loader(const char *dtype)
{
    static const struct {
        const char *dtype;
        load_function load;
    } loaders[] = {{"F32", load_f32}, {"F64", load_f64}, {"F16", load_f16}, {"BF16", load_bf16}};
    for (size_t i = 0; i < sizeof loaders / sizeof loaders[0]; i++) {
        if (strcmp(loaders[i].dtype, dtype) == 0) {
            return loaders[i].load;
        }
    }
    return NULL;
}

/* Step a logical index to its successor, last dimension fastest. */
static void next_index(const cvy_shape *shape, int64_t *index)
{
    for (int i = shape->dims - 1; i >= 0; i--) {
        if (++index[i] < shape->extent[i]) {
            return;
        }
        index[i] = 0;
    }
}

cvy_status cvy_safetensor_check(const cvy_safetensor *source, const char *path, const cvy_tensor *target)
{
    int64_t elements = cvy_shape_elements(&target->shape);
    CVY_REQUIRE(find_loader(source->dtype), CVY_ERR_CHECKPOINT,
                "%s: %s: dtype %s, expected F32, F64, F16 or BF16", path, source->name, source->dtype);
    CVY_REQUIRE(elements >= 1 && cvy_shape_elements(&source->shape) == elements, CVY_ERR_CHECKPOINT,
                "%s: %s: %" PRId64 " elements, expected %" PRId64, path, source->name,
                cvy_shape_elements(&source->shape), elements);
    CVY_REQUIRE(target->dtype == CVY_F32 || target->dtype == CVY_F64, CVY_ERR_ARG,
                "%s: %s: cannot be read into %s", path, source->name, cvy_dtype_name(target->dtype));
    return CVY_OK;
}

cvy_status cvy_safetensor_read(const cvy_safetensor *source, const char *path, const cvy_tensor *target, void *to)
{
    CVY_TRY(cvy_safetensor_check(source, path, target));
    load_function load = find_loader(source->dtype);
    int64_t elements = cvy_shape_elements(&target->shape);
    int64_t step = source->bytes / elements;
    cvy_layout layout = cvy_tensor_layout(target);
    if (layout.elements != elements) {
        memset(to, 0, (size_t)cvy_tensor_bytes(target)); /* padding holds zeros, always */
    }
    int64_t index[CVY_MAX_DIMS] = {0};
    for (int64_t i = 0; i < elements; i++) {
        double value = load(source->data + i * step);
        int64_t offset = cvy_layout_offset(&layout, index);
        if (target->dtype == CVY_F64) {
            ((double *)to)[offset] = value;
        } else {
            ((float *)to)[offset] = (float)value;
        }
        next_index(&target->shape, index);
    }
    return CVY_OK;
}
