/* y = tanh(x). */
#include "model/layers/activation.h"

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_TANH, .pass = pass};
}

const cvy_layer_kind cvy_layer_tanh = {
    .name = "tanh",
    .help = "hyperbolic tangent",
    .make_op = make_op,
    CVY_ACTIVATION_SLOTS,
};
