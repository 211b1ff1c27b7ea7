/*
 * Classification, of samples or of every position of them: -log of the probability that softmax gives to the label's
 * class. Label smoothing (Szegedy et al., "Rethinking the Inception architecture", 2016) spreads a share of the label's
 * weight over all classes, as PyTorch's option does; the loss of an evaluation is the same.
 */
#include "model/layers/shared.h"

typedef struct cross_entropy_options {
    double smoothing;
} cross_entropy_options;

static const cvy_field fields[] = {
    {.name = "label-smoothing", .type = CVY_FIELD_REAL, .offset = offsetof(cross_entropy_options, smoothing),
     .value = 0, .minimum = 0, .maximum = 1, .help = "share of the label's weight that goes to all classes evenly"},
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const cross_entropy_options *options = layer->options;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY, .pass = pass};
    op_out->params.loss.smoothing = options->smoothing;
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    return cvy_layer_describe_output(layer, input, 0, output_out);
}

const cvy_layer_kind cvy_layer_softmax_cross_entropy = {
    .name = "softmax-cross-entropy",
    .help = "loss of a classification; takes n, classes, or n, classes, (d,) h, w for a class of each position",
    .fields = fields,
    .options_bytes = sizeof(cross_entropy_options),
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
