/* y = min(max(x, 0), 6). */
#include "model/layers/activation.h"

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_RELU6, .pass = pass};
}

const cvy_layer_kind cvy_layer_relu6 = {
    .name = "relu6",
    .help = "rectifier that ends at 6",
    .make_op = make_op,
    CVY_ACTIVATION_SLOTS,
};
