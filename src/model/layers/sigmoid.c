/* y = 1 / (1 + exp(-x)): between 0 and 1, as the gate of a squeeze-excitation. */
#include "model/layers/activation.h"

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_SIGMOID, .pass = pass};
}

const cvy_layer_kind cvy_layer_sigmoid = {
    .name = "sigmoid",
    .help = "1 / (1 + exp(-x))",
    .make_op = make_op,
    CVY_ACTIVATION_SLOTS,
};
