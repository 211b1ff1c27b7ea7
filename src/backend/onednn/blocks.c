/*
 * Blocks are padded with zeros, so a tensor of 4 channels in blocks of 16 lies in memory as one of 16, and so do its
 * weights where their format has blocks of input channels. The library has no kernels for fewer channels than a block
 * holds where x comes in blocks; for the memory as it is, all zeros counted, it has.
 *
 * What is added are products with zeros. y is a sum over channels: nothing joins it. The padding of dw is a sum of
 * dy * 0, that of dx of dy * 0: zeros, as they must be, since weights and all their state are updated with the padding.
 * Infinity or NaN in dy makes that padding NaN, but never alone: every channel of x meets the same elements of dy, so
 * where the padding of a filter's gradient is not finite the rest of it is not either, and no update takes it.
 *
 * Filters stay as they are: a bias has no padding, and the library fills the blocks of y itself.
 */
#include "backend/onednn/blocks.h"

bool cvy_onednn_blocks_hold(const cvy_tensor *tensor, const cvy_tensor *whole, cvy_format format)
{
    cvy_tensor one = *tensor, other = *whole;
    one.format = other.format = format;
    return cvy_tensor_format_fits(&one) && cvy_tensor_elements(&one) == cvy_tensor_elements(&other);
}

bool cvy_onednn_blocks_fill(const cvy_op *op, int free, cvy_op *whole_out)
{
    int x = cvy_op_index_either(op, CVY_ROLE_X, CVY_ROLE_DX), w = cvy_op_index_either(op, CVY_ROLE_W, CVY_ROLE_DW);
    if (op->kind != CVY_OP_CONVOLUTION || op->params.window.groups != 1 || x < 0 || w < 0 || x == free ||
        !cvy_tensor_format_fits(&op->operand[x].tensor)) {
        return false;
    }
    int64_t channels = cvy_tensor_layout(&op->operand[x].tensor).padded[1];
    cvy_op whole = *op;
    whole.operand[x].tensor.shape.extent[1] = channels;
    whole.operand[w].tensor.shape.extent[1] = channels;
    const cvy_tensor *weights = &op->operand[w].tensor;
    if (channels == op->operand[x].tensor.shape.extent[1] ||
        (w != free && !cvy_onednn_blocks_hold(weights, &whole.operand[w].tensor, weights->format))) {
        return false;
    }
    *whole_out = whole;
    return true;
}
