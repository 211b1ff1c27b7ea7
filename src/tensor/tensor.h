/*
 * Formats, and the description of a tensor in memory: shape, type, format. A format says in which order the dimensions
 * lie and which of them are cut into inner blocks; blocked dimensions are padded to whole blocks, and the padding holds
 * zeros, always.
 */
#ifndef CVY_TENSOR_TENSOR_H
#define CVY_TENSOR_TENSOR_H

#include "tensor/shape.h"

/**
 * How a tensor lies in memory. Activation formats count dimensions n,c,…; weight formats o,i,… with g before them where
 * there are groups. Names give the inner block, outer to inner: I8O8 is OIhw8i8o.
 */
typedef enum cvy_format {
    CVY_FORMAT_PLAIN,         /**< logical order: nchw, oihw, [out,in], vectors */
    CVY_FORMAT_CHANNELS_LAST, /**< nhwc, ndhwc */
    CVY_FORMAT_C8,            /**< nChw8c */
    CVY_FORMAT_C16,           /**< nChw16c */
    CVY_FORMAT_W_HWIO,        /**< weights hwio, dhwio; hwigo with groups; [in,out] for dense layers */
    CVY_FORMAT_W_OHWI,        /**< weights ohwi, odhwi; gohwi with groups */
    CVY_FORMAT_W_I8O8,        /**< OIhw8i8o */
    CVY_FORMAT_W_O8I8,        /**< OIhw8o8i */
    CVY_FORMAT_W_O8,          /**< Ohwi8o: few input channels */
    CVY_FORMAT_W_OI_O8,       /**< Oihw8o: few input channels, image in plain order */
    CVY_FORMAT_W_I16O16,      /**< OIhw16i16o */
    CVY_FORMAT_W_O16I16,      /**< OIhw16o16i */
    CVY_FORMAT_W_O16,         /**< Ohwi16o */
    CVY_FORMAT_W_OI_O16,      /**< Oihw16o */
    CVY_FORMAT_W_G8,          /**< Goihw8g: depthwise */
    CVY_FORMAT_W_G16,         /**< Goihw16g */
    CVY_FORMAT_W_O32,         /**< Ohwi32o: products of small matrices, channels last */
    CVY_FORMAT_W_O48,         /**< Ohwi48o */
    CVY_FORMAT_W_O64,         /**< Ohwi64o */
    CVY_FORMAT_W_HWIO_G16,    /**< hwioG16g: depthwise, channels last */
    CVY_FORMAT_W_IO_O16I16,   /**< IOhw16o16i: gradients of 1x1 convolutions */
    CVY_FORMAT_COUNT
} cvy_format;

/** "plain", "channels-last", "c8", … as plan files say. Cannot fail. */
const char *cvy_format_name(cvy_format format);

/** Find a format by its name; false where there is none. */
bool cvy_format_find(const char *name, cvy_format *format_out);

/** A tensor in memory, without the memory. */
typedef struct cvy_tensor {
    cvy_shape shape;
    cvy_dtype dtype;
    cvy_format format;
    bool grouped; /**< weights with a leading g */
} cvy_tensor;

/** The layout that a format gives to a shape: strides of outer dimensions and of inner blocks, in elements. */
typedef struct cvy_layout {
    int dims;
    int64_t block[CVY_MAX_DIMS];        /**< inner block of each dimension, 1 where it has none */
    int64_t stride[CVY_MAX_DIMS];       /**< of the outer index (logical index / block) */
    int64_t inner_stride[CVY_MAX_DIMS]; /**< of the inner index (logical index % block) */
    int64_t padded[CVY_MAX_DIMS];       /**< extents rounded up to whole blocks */
    int64_t elements;                   /**< with padding */
} cvy_layout;

/** Whether a format can hold such a tensor (c8 needs a channel dimension, …). */
bool cvy_tensor_format_fits(const cvy_tensor *tensor);

/** Lay a tensor out. It must fit its format. Cannot fail. */
cvy_layout cvy_tensor_layout(const cvy_tensor *tensor);

/** Elements with padding. */
int64_t cvy_tensor_elements(const cvy_tensor *tensor);

/** Bytes with padding, exact. */
int64_t cvy_tensor_bytes(const cvy_tensor *tensor);

/** Same shape, type, format. */
bool cvy_tensor_equal(const cvy_tensor *a, const cvy_tensor *b);

/**
 * Whether two tensors of equal shape lie in memory alike, whatever their formats are called (nc and nhwc with h=w=1).
 */
bool cvy_tensor_same_layout(const cvy_tensor *a, const cvy_tensor *b);

/** Offset, in elements, of a logical index under a layout. */
static inline int64_t cvy_layout_offset(const cvy_layout *layout, const int64_t *index)
{
    int64_t offset = 0;
    for (int i = 0; i < layout->dims; i++) {
        offset +=
            index[i] / layout->block[i] * layout->stride[i] + index[i] % layout->block[i] * layout->inner_stride[i];
    }
    return offset;
}

/**
 * Copy the logical elements of @p source into @p target, which may differ in format and, between f32 and f64, in type;
 * the target's padding becomes zero. Plain and slow: for checkpoints, tests and the reference backend.
 *
 * Both describe the same number of logical elements in the same logical order (a leading g, or a flatten, may differ).
 * @retval CVY_ERR_ARG the counts differ
 */
cvy_status cvy_tensor_copy(const cvy_tensor *source, const void *from, const cvy_tensor *target, void *to);

/**
 * Give every logical element the value that @p value has for its number in logical order; padding becomes zero. Takes
 * no memory, so that parameters of any size can be born.
 */
void cvy_tensor_fill(const cvy_tensor *target, void *to, double (*value)(const void *context, int64_t element),
                     const void *context);

#endif
