/* y = max(x, 0). */
#include "model/layers/shared.h"

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_RELU, .pass = pass};
}

const cvy_layer_kind cvy_layer_relu = {
    .name = "relu",
    .help = "rectifier: the larger of x and 0",
    .min_inputs = 1,
    .max_inputs = 1,
    .flow = CVY_FLOW_OPS,
    .any_format = true,
    .cheap = true,
    .infer = cvy_layer_infer_same,
    .make_op = make_op,
    .forward_passes = 1,
    .inference_passes = 1,
    .backward_passes = 1,
    .forward = {CVY_PASS_FORWARD},
    .inference = {CVY_PASS_FORWARD},
    .backward = {CVY_PASS_BACKWARD_DATA},
};
