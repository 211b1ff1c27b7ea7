/*
 * The part of oneDNN that changes with its major version, in terms that do not: memory descriptors, operation
 * descriptors, data handles. The 2.x interface lives in shim.c; everything beside it uses calls that 2.x and 3.x share.
 *
 * Functions return the library's status. dnnl_unimplemented and dnnl_invalid_arguments both mean that it has no such
 * primitive.
 */
#ifndef CVY_BACKEND_ONEDNN_SHIM_H
#define CVY_BACKEND_ONEDNN_SHIM_H

#include <dnnl.h>
#include <stdbool.h>
#include <stddef.h>

/** What every primitive of this process shares: one CPU engine, one stream. Lives until the process ends. */
typedef struct cvy_onednn_device {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attributes; /**< scratch memory from the caller, single precision kept */
    dnnl_primitive_attr_t rectifying; /**< and a relu behind the primitive; see shim.c */
} cvy_onednn_device;

/** The device; NULL where the library cannot make one. Any thread may ask. */
const cvy_onednn_device *cvy_onednn_device_get(void);

/** How an operand lies in memory. A value: nothing to release. */
typedef struct cvy_onednn_layout {
    int dims;
    dnnl_dims_t extent;
    dnnl_data_type_t type;
    dnnl_format_tag_t tag; /**< a blocked format; dnnl_format_tag_undef: strides count; dnnl_format_tag_any: free */
    dnnl_dims_t stride;    /**< in elements */
    int swapped;           /**< the library counts dimensions swapped - 1 and swapped the other way round; 0: none */
} cvy_onednn_layout;

/** Window over the spatial dimensions of a tensor, outermost first. */
typedef struct cvy_onednn_window {
    dnnl_dims_t kernel, stride, before, after;
    dnnl_dims_t dilation; /**< 0 is dense, as the library counts */
    bool winograd;        /**< a convolution by Winograd's algorithm */
} cvy_onednn_window;

/** Operands of a layer; in backward passes x, w, b, y stand for their gradients where those are meant. */
typedef struct cvy_onednn_operands {
    const cvy_onednn_layout *x, *w, *y;
    const cvy_onednn_layout *b; /**< NULL: no bias */
} cvy_onednn_operands;

/**
 * Describe a convolution, direct or as the window says; pass is dnnl_forward_training, dnnl_backward_data or
 * dnnl_backward_weights. With @p relu (forward) y is max(y, 0).
 */
dnnl_status_t cvy_onednn_describe_convolution(dnnl_prop_kind_t pass, bool relu, const cvy_onednn_operands *operands,
                                              const cvy_onednn_window *window, dnnl_primitive_desc_t *description_out);

/** Describe a transposed convolution; passes as for a convolution. The library counts the filters of w first. */
dnnl_status_t cvy_onednn_describe_deconvolution(dnnl_prop_kind_t pass, const cvy_onednn_operands *operands,
                                                const cvy_onednn_window *window,
                                                dnnl_primitive_desc_t *description_out);

/** Describe a dense layer; passes and relu as for a convolution. */
dnnl_status_t cvy_onednn_describe_dense(dnnl_prop_kind_t pass, bool relu, const cvy_onednn_operands *operands,
                                        dnnl_primitive_desc_t *description_out);

/** Describe an average pooling of x to y; pass is dnnl_forward_training or dnnl_backward_data. */
dnnl_status_t cvy_onednn_describe_average_pool(dnnl_prop_kind_t pass, bool count_padding,
                                               const cvy_onednn_operands *operands, const cvy_onednn_window *window,
                                               dnnl_primitive_desc_t *description_out);

/**
 * Describe a batch norm with scale and shift; pass is dnnl_forward_training or dnnl_forward_inference (statistics are
 * read). @p data is x and y.
 */
dnnl_status_t cvy_onednn_describe_norm(dnnl_prop_kind_t pass, const cvy_onednn_layout *data, float epsilon,
                                       dnnl_primitive_desc_t *description_out);

/** Describe a change of format from x to y. */
dnnl_status_t cvy_onednn_describe_reorder(const cvy_onednn_layout *x, const cvy_onednn_layout *y,
                                          dnnl_primitive_desc_t *description_out);

/** Whether the primitive takes argument @p argument (DNNL_ARG_…) exactly as @p layout says. */
bool cvy_onednn_takes(const_dnnl_primitive_desc_t description, int argument, const cvy_onednn_layout *layout);

/** Bytes of an argument; 0 where the primitive has none such. */
size_t cvy_onednn_argument_bytes(const_dnnl_primitive_desc_t description, int argument);

/** Make a memory object, without memory, for an argument of a primitive. */
dnnl_status_t cvy_onednn_memory_create(const_dnnl_primitive_desc_t description, int argument,
                                       dnnl_memory_t *memory_out);

/** Point a memory object to an address; in 2.x this zeroes the padding behind it, so call it for new addresses only. */
dnnl_status_t cvy_onednn_memory_point(dnnl_memory_t memory, void *address);

#endif
