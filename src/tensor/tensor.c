/*
 * One table describes every format: the order of the outer dimensions and the inner blocks, as letters over the
 * canonical dimension names. Letters a dimension lacks are skipped (d in 2-D), so one row serves 2-D and 3-D.
 */
#include "tensor/tensor.h"

#include <string.h>

#include "base/checked.h"

typedef struct format_row {
    const char *name;
    bool weights;         /* dimensions are (g)oi…, else nc… */
    const char *order;    /* outer dimensions, slowest first; NULL: logical order */
    const char *blocks;   /* dimensions with an inner block, outer to inner */
    int64_t size;         /* of each inner block */
} format_row;

static const format_row rows[CVY_FORMAT_COUNT] = {
    [CVY_FORMAT_PLAIN] = {"plain", false, NULL, "", 1},
    [CVY_FORMAT_CHANNELS_LAST] = {"channels-last", false, "ndhwc", "", 1},
    [CVY_FORMAT_C8] = {"c8", false, "ncdhw", "c", 8},
    [CVY_FORMAT_C16] = {"c16", false, "ncdhw", "c", 16},
    [CVY_FORMAT_W_HWIO] = {"hwio", true, "dhwigo", "", 1},
    [CVY_FORMAT_W_OHWI] = {"ohwi", true, "godhwi", "", 1},
    [CVY_FORMAT_W_I8O8] = {"i8o8", true, "goidhw", "io", 8},
    [CVY_FORMAT_W_O8I8] = {"o8i8", true, "goidhw", "oi", 8},
    [CVY_FORMAT_W_O8] = {"o8", true, "godhwi", "o", 8},
    [CVY_FORMAT_W_OI_O8] = {"oi-o8", true, "goidhw", "o", 8},
    [CVY_FORMAT_W_I16O16] = {"i16o16", true, "goidhw", "io", 16},
    [CVY_FORMAT_W_O16I16] = {"o16i16", true, "goidhw", "oi", 16},
    [CVY_FORMAT_W_O16] = {"o16", true, "godhwi", "o", 16},
    [CVY_FORMAT_W_OI_O16] = {"oi-o16", true, "goidhw", "o", 16},
    [CVY_FORMAT_W_G8] = {"g8", true, "goidhw", "g", 8},
    [CVY_FORMAT_W_G16] = {"g16", true, "goidhw", "g", 16},
    [CVY_FORMAT_W_O32] = {"o32", true, "godhwi", "o", 32},
    [CVY_FORMAT_W_O48] = {"o48", true, "godhwi", "o", 48},
    [CVY_FORMAT_W_O64] = {"o64", true, "godhwi", "o", 64},
    [CVY_FORMAT_W_HWIO_G16] = {"hwio-g16", true, "dhwiog", "g", 16},
    [CVY_FORMAT_W_IO_O16I16] = {"io-o16i16", true, "giodhw", "oi", 16},
};

const char *cvy_format_name(cvy_format format) { return rows[format].name; }

bool cvy_format_find(const char *name, cvy_format *format_out)
{
    for (int i = 0; i < CVY_FORMAT_COUNT; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *format_out = (cvy_format)i;
            return true;
        }
    }
    return false;
}

/* The letters of a tensor's dimensions: "nchw", "goidhw", … */
static const char *dimension_letters(const cvy_tensor *tensor)
{
    static const char *const activations[] = {"", "c", "nc", "ncw", "nchw", "ncdhw"};
    static const char *const weights[] = {"", "o", "oi", "oiw", "oihw", "oidhw"};
    static const char *const grouped[] = {"", "", "", "goi", "goiw", "goihw", "goidhw"};
    int dims = tensor->shape.dims;
    if (tensor->grouped) {
        return dims <= 6 ? grouped[dims] : "";
    }
    return dims > 5 ? "" : rows[tensor->format].weights ? weights[dims] : activations[dims];
}

static int find_letter(const char *letters, char letter)
{
    const char *place = strchr(letters, letter);
    return place && letter ? (int)(place - letters) : -1;
}

bool cvy_tensor_format_fits(const cvy_tensor *tensor)
{
    const format_row *row = &rows[tensor->format];
    if (!row->order) {
        return true;
    }
    const char *letters = dimension_letters(tensor);
    if (tensor->shape.dims < 2 || !letters[0] || (tensor->grouped && !row->weights)) {
        return false;
    }
    for (const char *block = row->blocks; *block; block++) {
        if (find_letter(letters, *block) < 0) {
            return false;
        }
    }
    return true;
}

cvy_layout cvy_tensor_layout(const cvy_tensor *tensor)
{
    const format_row *row = &rows[tensor->format];
    cvy_layout layout = {.dims = tensor->shape.dims};
    for (int i = 0; i < layout.dims; i++) {
        layout.block[i] = 1;
        layout.padded[i] = tensor->shape.extent[i];
    }
    int64_t stride = 1;
    if (!row->order) {
        for (int i = layout.dims - 1; i >= 0; i--) {
            layout.stride[i] = stride;
            stride *= layout.padded[i];
        }
        layout.elements = layout.dims ? stride : 0;
        return layout;
    }
    const char *letters = dimension_letters(tensor);
    for (int i = (int)strlen(row->blocks) - 1; i >= 0; i--) { /* innermost block first */
        int dim = find_letter(letters, row->blocks[i]);
        layout.block[dim] = row->size;
        layout.padded[dim] = cvy_round_up(layout.padded[dim], row->size);
        layout.inner_stride[dim] = stride;
        stride *= row->size;
    }
    for (int i = (int)strlen(row->order) - 1; i >= 0; i--) {
        int dim = find_letter(letters, row->order[i]);
        if (dim >= 0) {
            layout.stride[dim] = stride;
            stride *= layout.padded[dim] / layout.block[dim];
        }
    }
    layout.elements = stride;
    return layout;
}

/* As cvy_tensor_layout() counts them, without the strides: the oracle counts millions of tensors. */
static inline int64_t count_elements(const cvy_tensor *tensor)
{
    const format_row *row = &rows[tensor->format];
    if (row->size == 1) {
        return cvy_shape_elements(&tensor->shape);
    }
    cvy_shape padded = tensor->shape;
    for (const char *block = row->blocks; *block; block++) {
        int dim = *block == 'g' ? 0 : (*block == 'i' || *block == 'c') + (tensor->grouped && row->weights);
        padded.extent[dim] = cvy_round_up(padded.extent[dim], row->size);
    }
    return cvy_shape_elements(&padded);
}

int64_t cvy_tensor_elements(const cvy_tensor *tensor) { return count_elements(tensor); }

int64_t cvy_tensor_bytes(const cvy_tensor *tensor) { return count_elements(tensor) * cvy_dtype_bytes(tensor->dtype); }

bool cvy_tensor_equal(const cvy_tensor *a, const cvy_tensor *b)
{
    return a->dtype == b->dtype && a->format == b->format && a->grouped == b->grouped &&
           cvy_shape_equal(&a->shape, &b->shape);
}

/* Bring a dimension to one block of one element where its blocks follow each other without a gap, or there is one. */
static void drop_idle_block(cvy_layout *layout, int dim, int64_t extent)
{
    bool gapless = layout->stride[dim] == layout->block[dim] * layout->inner_stride[dim];
    if (layout->block[dim] > 1 && (gapless || extent <= layout->block[dim])) {
        layout->stride[dim] = layout->inner_stride[dim];
        layout->inner_stride[dim] = 0;
        layout->block[dim] = 1;
    }
}

bool cvy_tensor_same_layout(const cvy_tensor *a, const cvy_tensor *b)
{
    cvy_layout x = cvy_tensor_layout(a);
    cvy_layout y = cvy_tensor_layout(b);
    if (!cvy_shape_equal(&a->shape, &b->shape) || x.elements != y.elements) {
        return false;
    }
    for (int i = 0; i < x.dims; i++) {
        int64_t extent = a->shape.extent[i];
        drop_idle_block(&x, i, extent);
        drop_idle_block(&y, i, extent);
        bool alike = x.block[i] == y.block[i] && x.inner_stride[i] == y.inner_stride[i] && x.stride[i] == y.stride[i];
        if (extent > 1 && !alike) { /* the stride of a dimension of one element does not matter */
            return false;
        }
    }
    return true;
}

static double load_element(cvy_dtype dtype, const void *from, int64_t offset)
{
    switch (dtype) {
    case CVY_F32: return ((const float *)from)[offset];
    case CVY_F64: return ((const double *)from)[offset];
    case CVY_I32: return ((const int32_t *)from)[offset];
    default: return ((const uint8_t *)from)[offset];
    }
}

static void store_element(cvy_dtype dtype, void *to, int64_t offset, double value)
{
    switch (dtype) {
    case CVY_F32: ((float *)to)[offset] = (float)value; break;
    case CVY_F64: ((double *)to)[offset] = value; break;
    case CVY_I32: ((int32_t *)to)[offset] = (int32_t)value; break;
    default: ((uint8_t *)to)[offset] = (uint8_t)value; break;
    }
}

/* A logical index on its way through a tensor, and where its element lies. */
typedef struct cursor {
    const cvy_shape *shape;
    cvy_layout layout;
    int64_t index[CVY_MAX_DIMS];
    int64_t offset;
} cursor;

static int64_t offset_along(const cvy_layout *layout, int dim, int64_t index)
{
    int64_t block = layout->block[dim];
    return block == 1 ? index * layout->stride[dim] /* spares the division */
                      : index / block * layout->stride[dim] + index % block * layout->inner_stride[dim];
}

/* Step to the successor, last dimension fastest; after the last element comes the first. */
static void step(cursor *at)
{
    for (int i = at->shape->dims - 1; i >= 0; i--) {
        int64_t next = at->index[i] + 1 < at->shape->extent[i] ? at->index[i] + 1 : 0;
        at->offset += offset_along(&at->layout, i, next) - offset_along(&at->layout, i, at->index[i]);
        at->index[i] = next;
        if (next > 0) {
            return;
        }
    }
}

cvy_status cvy_tensor_copy(const cvy_tensor *source, const void *from, const cvy_tensor *target, void *to)
{
    int64_t elements = cvy_shape_elements(&source->shape);
    CVY_REQUIRE(elements == cvy_shape_elements(&target->shape), CVY_ERR_ARG,
                "a copy of %lld elements into %lld", (long long)elements,
                (long long)cvy_shape_elements(&target->shape));
    cursor in = {.shape = &source->shape, .layout = cvy_tensor_layout(source)};
    cursor out = {.shape = &target->shape, .layout = cvy_tensor_layout(target)};
    if (out.layout.elements != elements) {
        memset(to, 0, (size_t)(out.layout.elements * cvy_dtype_bytes(target->dtype)));
    }
    bool alike = out.layout.elements == elements && cvy_tensor_same_layout(source, target);
    for (int64_t i = 0; i < elements; i++) {
        store_element(target->dtype, to, alike ? i : out.offset,
                      load_element(source->dtype, from, alike ? i : in.offset));
        if (!alike) {
            step(&in);
            step(&out);
        }
    }
    return CVY_OK;
}

void cvy_tensor_fill(const cvy_tensor *target, void *to, double (*value)(const void *context, int64_t element),
                     const void *context)
{
    int64_t elements = cvy_shape_elements(&target->shape);
    cursor at = {.shape = &target->shape, .layout = cvy_tensor_layout(target)};
    if (at.layout.elements != elements) {
        memset(to, 0, (size_t)(at.layout.elements * cvy_dtype_bytes(target->dtype)));
    }
    for (int64_t i = 0; i < elements; i++) {
        store_element(target->dtype, to, at.offset, value(context, i));
        step(&at);
    }
}
