/* Convoy's formats in the library's words. */
#ifndef CVY_BACKEND_ONEDNN_FORMAT_H
#define CVY_BACKEND_ONEDNN_FORMAT_H

#include "backend/onednn/shim.h"
#include "tensor/tensor.h"

/** Say how a tensor lies in memory; false where the library has no such type or format. */
bool cvy_onednn_layout_get(const cvy_tensor *tensor, cvy_onednn_layout *layout_out);

/**
 * Find the format in which a primitive takes one argument.
 *
 * Several formats may be one layout in memory (plain and channels-last of 1x1 images): the tensor's own comes first,
 * then the order of cvy_format.
 *
 * @param[in] tensor  the argument's shape and type
 * @param[in] swapped as in cvy_onednn_layout
 * @return false where none of Convoy's formats is the primitive's
 */
bool cvy_onednn_format_find(const_dnnl_primitive_desc_t description, int argument, const cvy_tensor *tensor,
                            int swapped, cvy_format *format_out);

#endif
