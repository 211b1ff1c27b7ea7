/*
 * oneDNN 2.x: operation descriptors, from which primitive descriptors are made, and memory descriptors that are plain
 * structs. https://oneapi-src.github.io/oneDNN/v2.6/; the guide to 3.0 lists what it has instead.
 *
 * A backward primitive may be given its forward descriptor as a hint. 2.x looks at it only where forward leaves a
 * workspace, which none of these does.
 *
 * Its relu turns NaN into 0, which would hide a divergence: maxps gives the second operand. With a slope below 0 it
 * compares and multiplies instead, and NaN stays. So the relu behind a product is a leaky one, its slope so small
 * that nothing is left of a number below 0 beside those above, and large enough to keep products out of the denormals,
 * which are slow.
 */
#include "backend/onednn/shim.h"

#include <pthread.h>

#define RELU_SLOPE 0x1p-64f

static cvy_onednn_device device;
static bool device_ready;
static pthread_once_t device_once = PTHREAD_ONCE_INIT;

static bool make_attributes(dnnl_primitive_attr_t *attributes_out)
{
    return dnnl_primitive_attr_create(attributes_out) == dnnl_success &&
           dnnl_primitive_attr_set_scratchpad_mode(*attributes_out, dnnl_scratchpad_mode_user) == dnnl_success &&
           dnnl_primitive_attr_set_fpmath_mode(*attributes_out, dnnl_fpmath_mode_strict) == dnnl_success;
}

/* The attributes keep a copy of the list. */
static bool add_relu(dnnl_primitive_attr_t attributes)
{
    dnnl_post_ops_t after;
    if (dnnl_post_ops_create(&after) != dnnl_success) {
        return false;
    }
    bool added = dnnl_post_ops_append_eltwise(after, 1.0f, dnnl_eltwise_relu, RELU_SLOPE, 0.0f) == dnnl_success &&
                 dnnl_primitive_attr_set_post_ops(attributes, after) == dnnl_success;
    dnnl_post_ops_destroy(after);
    return added;
}

static void make_device(void)
{
    device_ready = dnnl_engine_create(&device.engine, dnnl_cpu, 0) == dnnl_success &&
                   dnnl_stream_create(&device.stream, device.engine, dnnl_stream_default_flags) == dnnl_success &&
                   make_attributes(&device.attributes) && make_attributes(&device.rectifying) &&
                   add_relu(device.rectifying);
}

const cvy_onednn_device *cvy_onednn_device_get(void)
{
    return pthread_once(&device_once, make_device) == 0 && device_ready ? &device : NULL;
}

static dnnl_status_t make_own_desc(const cvy_onednn_layout *layout, dnnl_memory_desc_t *desc_out)
{
    if (layout->tag == dnnl_format_tag_undef) {
        return dnnl_memory_desc_init_by_strides(desc_out, layout->dims, layout->extent, layout->type, layout->stride);
    }
    return dnnl_memory_desc_init_by_tag(desc_out, layout->dims, layout->extent, layout->type, layout->tag);
}

/* Where the library counts dimensions in another order the memory stays what it is; a free layout has only extents. */
static dnnl_status_t make_memory_desc(const cvy_onednn_layout *layout, dnnl_memory_desc_t *desc_out)
{
    int first = layout->swapped - 1, axis[DNNL_MAX_NDIMS];
    if (layout->swapped == 0) {
        return make_own_desc(layout, desc_out);
    }
    if (layout->tag == dnnl_format_tag_any) {
        cvy_onednn_layout other = *layout;
        other.extent[first] = layout->extent[first + 1];
        other.extent[first + 1] = layout->extent[first];
        return make_own_desc(&other, desc_out);
    }
    dnnl_memory_desc_t own;
    dnnl_status_t status = make_own_desc(layout, &own);
    for (int i = 0; i < layout->dims; i++) {
        axis[i] = i == first ? first + 1 : i == first + 1 ? first : i;
    }
    return status == dnnl_success ? dnnl_memory_desc_permute_axes(desc_out, &own, axis) : status;
}

static dnnl_status_t make_primitive_desc(const_dnnl_op_desc_t operation, dnnl_primitive_desc_t *description_out)
{
    return dnnl_primitive_desc_create(description_out, operation, device.attributes, device.engine, NULL);
}

static dnnl_status_t make_rectifying_desc(const_dnnl_op_desc_t operation, dnnl_primitive_desc_t *description_out)
{
    return dnnl_primitive_desc_create(description_out, operation, device.rectifying, device.engine, NULL);
}

/* The memory descriptors of a layer; a layout that is missing gives the zero descriptor, which means "none". */
typedef struct layer_descs {
    dnnl_memory_desc_t x, w, b, y;
} layer_descs;

static dnnl_status_t make_layer_descs(const cvy_onednn_operands *operands, layer_descs *descs_out)
{
    const cvy_onednn_layout *layout[4] = {operands->x, operands->w, operands->b, operands->y};
    dnnl_memory_desc_t *desc[4] = {&descs_out->x, &descs_out->w, &descs_out->b, &descs_out->y};
    *descs_out = (layer_descs){0};
    for (int i = 0; i < 4; i++) {
        dnnl_status_t status = layout[i] ? make_memory_desc(layout[i], desc[i]) : dnnl_success;
        if (status != dnnl_success) {
            return status;
        }
    }
    return dnnl_success;
}

dnnl_status_t cvy_onednn_describe_convolution(dnnl_prop_kind_t pass, bool relu, const cvy_onednn_operands *operands,
                                              const cvy_onednn_window *window, dnnl_primitive_desc_t *description_out)
{
    layer_descs desc;
    dnnl_convolution_desc_t operation;
    dnnl_alg_kind_t algorithm = window->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
    dnnl_status_t status = make_layer_descs(operands, &desc);
    if (status != dnnl_success) {
        return status;
    }
    if (pass == dnnl_backward_data) {
        status = dnnl_dilated_convolution_backward_data_desc_init(&operation, algorithm, &desc.x, &desc.w, &desc.y,
                                                                  window->stride, window->dilation, window->before,
                                                                  window->after);
    } else if (pass == dnnl_backward_weights) {
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &operation, algorithm, &desc.x, &desc.w, operands->b ? &desc.b : NULL, &desc.y, window->stride,
            window->dilation, window->before, window->after);
    } else {
        status = dnnl_dilated_convolution_forward_desc_init(
            &operation, pass, algorithm, &desc.x, &desc.w, operands->b ? &desc.b : NULL, &desc.y, window->stride,
            window->dilation, window->before, window->after);
    }
    if (status != dnnl_success) {
        return status;
    }
    return relu ? make_rectifying_desc(&operation, description_out) : make_primitive_desc(&operation, description_out);
}

dnnl_status_t cvy_onednn_describe_deconvolution(dnnl_prop_kind_t pass, const cvy_onednn_operands *operands,
                                                const cvy_onednn_window *window,
                                                dnnl_primitive_desc_t *description_out)
{
    layer_descs desc;
    dnnl_deconvolution_desc_t operation;
    dnnl_status_t status = make_layer_descs(operands, &desc);
    if (status != dnnl_success) {
        return status;
    }
    if (pass == dnnl_backward_data) {
        status = dnnl_dilated_deconvolution_backward_data_desc_init(&operation, dnnl_deconvolution_direct, &desc.x,
                                                                    &desc.w, &desc.y, window->stride, window->dilation,
                                                                    window->before, window->after);
    } else if (pass == dnnl_backward_weights) {
        status = dnnl_dilated_deconvolution_backward_weights_desc_init(
            &operation, dnnl_deconvolution_direct, &desc.x, &desc.w, operands->b ? &desc.b : NULL, &desc.y,
            window->stride, window->dilation, window->before, window->after);
    } else {
        status = dnnl_dilated_deconvolution_forward_desc_init(
            &operation, pass, dnnl_deconvolution_direct, &desc.x, &desc.w, operands->b ? &desc.b : NULL, &desc.y,
            window->stride, window->dilation, window->before, window->after);
    }
    return status == dnnl_success ? make_primitive_desc(&operation, description_out) : status;
}

dnnl_status_t cvy_onednn_describe_dense(dnnl_prop_kind_t pass, bool relu, const cvy_onednn_operands *operands,
                                        dnnl_primitive_desc_t *description_out)
{
    layer_descs desc;
    dnnl_inner_product_desc_t operation;
    dnnl_status_t status = make_layer_descs(operands, &desc);
    if (status != dnnl_success) {
        return status;
    }
    if (pass == dnnl_backward_data) {
        status = dnnl_inner_product_backward_data_desc_init(&operation, &desc.x, &desc.w, &desc.y);
    } else if (pass == dnnl_backward_weights) {
        status = dnnl_inner_product_backward_weights_desc_init(&operation, &desc.x, &desc.w,
                                                               operands->b ? &desc.b : NULL, &desc.y);
    } else {
        status = dnnl_inner_product_forward_desc_init(&operation, pass, &desc.x, &desc.w,
                                                      operands->b ? &desc.b : NULL, &desc.y);
    }
    if (status != dnnl_success) {
        return status;
    }
    return relu ? make_rectifying_desc(&operation, description_out) : make_primitive_desc(&operation, description_out);
}

dnnl_status_t cvy_onednn_describe_average_pool(dnnl_prop_kind_t pass, bool count_padding,
                                               const cvy_onednn_operands *operands, const cvy_onednn_window *window,
                                               dnnl_primitive_desc_t *description_out)
{
    layer_descs desc;
    dnnl_pooling_v2_desc_t operation;
    dnnl_alg_kind_t algorithm = count_padding ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
    dnnl_status_t status = make_layer_descs(operands, &desc);
    if (status != dnnl_success) {
        return status;
    }
    if (pass == dnnl_backward_data) {
        status = dnnl_pooling_v2_backward_desc_init(&operation, algorithm, &desc.x, &desc.y, window->stride,
                                                    window->kernel, window->dilation, window->before, window->after);
    } else {
        status = dnnl_pooling_v2_forward_desc_init(&operation, pass, algorithm, &desc.x, &desc.y, window->stride,
                                                   window->kernel, window->dilation, window->before, window->after);
    }
    return status == dnnl_success ? make_primitive_desc(&operation, description_out) : status;
}

dnnl_status_t cvy_onednn_describe_norm(dnnl_prop_kind_t pass, const cvy_onednn_layout *data, float epsilon,
                                       dnnl_primitive_desc_t *description_out)
{
    dnnl_memory_desc_t desc;
    dnnl_batch_normalization_desc_t operation;
    unsigned statistics = pass == dnnl_forward_inference ? dnnl_use_global_stats : 0u;
    dnnl_status_t status = make_memory_desc(data, &desc);
    if (status == dnnl_success) {
        status = dnnl_batch_normalization_forward_desc_init(&operation, pass, &desc, epsilon,
                                                            dnnl_use_scale | dnnl_use_shift | statistics);
    }
    return status == dnnl_success ? make_primitive_desc(&operation, description_out) : status;
}

dnnl_status_t cvy_onednn_describe_reorder(const cvy_onednn_layout *x, const cvy_onednn_layout *y,
                                          dnnl_primitive_desc_t *description_out)
{
    layer_descs desc;
    dnnl_status_t status = make_layer_descs(&(cvy_onednn_operands){.x = x, .y = y}, &desc);
    if (status == dnnl_success) {
        status = dnnl_reorder_primitive_desc_create(description_out, &desc.x, device.engine, &desc.y, device.engine,
                                                    device.attributes);
    }
    return status;
}

bool cvy_onednn_takes(const_dnnl_primitive_desc_t description, int argument, const cvy_onednn_layout *layout)
{
    dnnl_memory_desc_t expected;
    const dnnl_memory_desc_t *found =
        dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, argument);
    return found && make_memory_desc(layout, &expected) == dnnl_success && dnnl_memory_desc_equal(found, &expected);
}

size_t cvy_onednn_argument_bytes(const_dnnl_primitive_desc_t description, int argument)
{
    const dnnl_memory_desc_t *desc = dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, argument);
    return desc ? dnnl_memory_desc_get_size(desc) : 0;
}

dnnl_status_t cvy_onednn_memory_create(const_dnnl_primitive_desc_t description, int argument,
                                       dnnl_memory_t *memory_out)
{
    const dnnl_memory_desc_t *desc = dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, argument);
    return desc ? dnnl_memory_create(memory_out, desc, device.engine, DNNL_MEMORY_NONE) : dnnl_invalid_arguments;
}

dnnl_status_t cvy_onednn_memory_point(dnnl_memory_t memory, void *address)
{
    return dnnl_memory_set_data_handle_v2(memory, address, device.stream);
}
