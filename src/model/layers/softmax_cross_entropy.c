/* Classification: -log of the probability that softmax gives to the label's class. */
#include "model/layers/shared.h"

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY, .pass = pass};
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    CVY_TRY(cvy_layer_require_flat(input));
    return cvy_layer_describe_output(layer, input, 0, output_out);
}

const cvy_layer_kind cvy_layer_softmax_cross_entropy = {
    .name = "softmax-cross-entropy",
    .help = "loss of a classification; takes n, classes",
    .min_inputs = 1,
    .max_inputs = 1,
    .flow = CVY_FLOW_LOSS,
    .infer = infer,
    .make_op = make_op,
    .forward_passes = 1,
    .inference_passes = 1,
    .backward_passes = 1,
    .forward = {CVY_PASS_FORWARD},
    .inference = {CVY_PASS_INFERENCE},
    .backward = {CVY_PASS_BACKWARD_DATA},
};
