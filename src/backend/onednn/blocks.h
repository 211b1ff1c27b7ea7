/* Convolutions over whole blocks of channels. */
#ifndef CVY_BACKEND_ONEDNN_BLOCKS_H
#define CVY_BACKEND_ONEDNN_BLOCKS_H

#include "op/op.h"

/**
 * Describe a convolution of fewer channels than its input's blocks hold as the one of all that the blocks hold.
 *
 * @param[in]  free       index of the one operand whose format is still open, or -1
 * @param[out] whole_out  the same op, with more channels; untouched where the answer is false
 * @return false where there is nothing to round up, or an operand's memory is not that of the rounded one
 */
bool cvy_onednn_blocks_fill(const cvy_op *op, int free, cvy_op *whole_out);

/** Whether a tensor takes the memory that @p whole, the same one rounded up, takes in the format @p format. */
bool cvy_onednn_blocks_hold(const cvy_tensor *tensor, const cvy_tensor *whole, cvy_format format);

#endif
