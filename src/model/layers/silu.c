/* y = x sigmoid(x), also called swish (Ramachandran, Zoph, Le, "Searching for activation functions", 2017). */
#include "model/layers/activation.h"

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_SILU, .pass = pass};
}

const cvy_layer_kind cvy_layer_silu = {
    .name = "silu",
    .help = "x times its sigmoid (swish)",
    .make_op = make_op,
    CVY_ACTIVATION_SLOTS,
};
