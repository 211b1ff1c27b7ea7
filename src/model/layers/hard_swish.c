/* y = x min(max(x + 3, 0), 6) / 6: swish without an exponential (Howard et al., "Searching for MobileNetV3", 2019). */
#include "model/layers/activation.h"

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_HARD_SWISH, .pass = pass};
}

const cvy_layer_kind cvy_layer_hard_swish = {
    .name = "hard-swish",
    .help = "x min(max(x + 3, 0), 6) / 6",
    .make_op = make_op,
    CVY_ACTIVATION_SLOTS,
};
