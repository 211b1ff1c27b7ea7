/*
 * Segmentation by overlap: soft Dice of the softmax with the labels (Milletari, Navab and Ahmadi, "V-Net", 2016,
 * arXiv:1606.04797, with plain sums below the line), of each sample and class, background included.
 */
#include "model/layers/shared.h"

typedef struct soft_dice_options {
    double epsilon;
} soft_dice_options;

static const cvy_field fields[] = {
    {.name = "epsilon", .type = CVY_FIELD_REAL, .offset = offsetof(soft_dice_options, epsilon), .value = 1,
     .minimum = 1e-12, .maximum = 1e12, .help = "added above and below the line"},
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const soft_dice_options *options = layer->options;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_SOFT_DICE, .pass = pass};
    op_out->params.loss.epsilon = options->epsilon;
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    return cvy_layer_describe_output(layer, input, 0, output_out);
}

const cvy_layer_kind cvy_layer_soft_dice = {
    .name = "soft-dice",
    .help = "loss of a segmentation by overlap; takes n, classes, (d,) h, w",
    .fields = fields,
    .options_bytes = sizeof(soft_dice_options),
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
