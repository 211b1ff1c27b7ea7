/*
 * Formats without inner blocks are told by their strides, which are Convoy's own; blocked ones by the library's tag,
 * since a tag is how both 2.x and 3.x take an inner block. A tag differs by the count of dimensions, hence the columns.
 * A zero in the table is dnnl_format_tag_undef: the library has no such format.
 */
#include "backend/onednn/format.h"

typedef struct tag_row {
    bool blocked;
    dnnl_format_tag_t flat, volume;                 /* nchw, ncdhw; oihw, oidhw */
    dnnl_format_tag_t grouped_flat, grouped_volume; /* goihw, goidhw */
} tag_row;

static const tag_row tags[CVY_FORMAT_COUNT] = {
    [CVY_FORMAT_C8] = {true, dnnl_nChw8c, dnnl_nCdhw8c, 0, 0},
    [CVY_FORMAT_C16] = {true, dnnl_nChw16c, dnnl_nCdhw16c, 0, 0},
    [CVY_FORMAT_W_I8O8] = {true, dnnl_OIhw8i8o, dnnl_OIdhw8i8o, dnnl_gOIhw8i8o, dnnl_gOIdhw8i8o},
    [CVY_FORMAT_W_O8I8] = {true, dnnl_OIhw8o8i, dnnl_OIdhw8o8i, dnnl_gOIhw8o8i, dnnl_gOIdhw8o8i},
    [CVY_FORMAT_W_O8] = {true, dnnl_Ohwi8o, dnnl_Odhwi8o, dnnl_gOhwi8o, dnnl_gOdhwi8o},
    [CVY_FORMAT_W_OI_O8] = {true, dnnl_Abcd8a, dnnl_Abcde8a, dnnl_aBcde8b, 0},
    [CVY_FORMAT_W_I16O16] = {true, dnnl_OIhw16i16o, dnnl_OIdhw16i16o, dnnl_gOIhw16i16o, dnnl_gOIdhw16i16o},
    [CVY_FORMAT_W_O16I16] = {true, dnnl_OIhw16o16i, dnnl_OIdhw16o16i, dnnl_gOIhw16o16i, dnnl_gOIdhw16o16i},
    [CVY_FORMAT_W_O16] = {true, dnnl_Ohwi16o, dnnl_Odhwi16o, dnnl_gOhwi16o, dnnl_gOdhwi16o},
    [CVY_FORMAT_W_OI_O16] = {true, dnnl_Oihw16o, dnnl_Oidhw16o, dnnl_gOihw16o, dnnl_gOidhw16o},
    [CVY_FORMAT_W_G8] = {true, 0, 0, dnnl_Goihw8g, 0},
    [CVY_FORMAT_W_G16] = {true, 0, 0, dnnl_Goihw16g, dnnl_Goidhw16g},
    [CVY_FORMAT_W_O32] = {true, dnnl_Ohwi32o, dnnl_Odhwi32o, dnnl_gOhwi32o, dnnl_gOdhwi32o},
    [CVY_FORMAT_W_O48] = {true, dnnl_Ohwi48o, dnnl_Odhwi48o, dnnl_gOhwi48o, dnnl_gOdhwi48o},
    [CVY_FORMAT_W_O64] = {true, dnnl_Ohwi64o, dnnl_Odhwi64o, dnnl_gOhwi64o, dnnl_gOdhwi64o},
    [CVY_FORMAT_W_HWIO_G16] = {true, 0, 0, dnnl_hwioG16g, 0},
    [CVY_FORMAT_W_IO_O16I16] = {true, dnnl_IOhw16o16i, dnnl_IOdhw16o16i, dnnl_gIOhw16o16i, dnnl_gIOdhw16o16i},
};

static dnnl_data_type_t find_type(cvy_dtype dtype)
{
    static const dnnl_data_type_t types[CVY_DTYPE_COUNT] = {
        [CVY_F32] = dnnl_f32, [CVY_F64] = dnnl_data_type_undef, [CVY_I32] = dnnl_s32, [CVY_U8] = dnnl_u8};
    return types[dtype];
}

static dnnl_format_tag_t find_tag(const cvy_tensor *tensor)
{
    const tag_row *row = &tags[tensor->format];
    switch (tensor->shape.dims - tensor->grouped) {
    case 4: return tensor->grouped ? row->grouped_flat : row->flat;
    case 5: return tensor->grouped ? row->grouped_volume : row->volume;
    default: return dnnl_format_tag_undef;
    }
}

bool cvy_onednn_layout_get(const cvy_tensor *tensor, cvy_onednn_layout *layout_out)
{
    cvy_onednn_layout layout = {.dims = tensor->shape.dims, .type = find_type(tensor->dtype)};
    if (layout.type == dnnl_data_type_undef || layout.dims < 1 || !cvy_tensor_format_fits(tensor)) {
        return false;
    }
    if (tags[tensor->format].blocked) {
        layout.tag = find_tag(tensor);
        if (layout.tag == dnnl_format_tag_undef) {
            return false;
        }
    }
    cvy_layout own = cvy_tensor_layout(tensor);
    for (int i = 0; i < layout.dims; i++) {
        layout.extent[i] = tensor->shape.extent[i];
        layout.stride[i] = own.stride[i];
    }
    *layout_out = layout;
    return true;
}

static bool takes_format(const_dnnl_primitive_desc_t description, int argument, const cvy_tensor *tensor, int swapped,
                         cvy_format format)
{
    cvy_tensor candidate = *tensor;
    cvy_onednn_layout layout;
    candidate.format = format;
    if (!cvy_onednn_layout_get(&candidate, &layout)) {
        return false;
    }
    layout.swapped = swapped;
    return cvy_onednn_takes(description, argument, &layout);
}

bool cvy_onednn_format_find(const_dnnl_primitive_desc_t description, int argument, const cvy_tensor *tensor,
                            int swapped, cvy_format *format_out)
{
    if (takes_format(description, argument, tensor, swapped, tensor->format)) {
        *format_out = tensor->format;
        return true;
    }
    for (int i = 0; i < CVY_FORMAT_COUNT; i++) {
        if (takes_format(description, argument, tensor, swapped, (cvy_format)i)) {
            *format_out = (cvy_format)i;
            return true;
        }
    }
    return false;
}
