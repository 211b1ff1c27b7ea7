/*
 * Stochastic depth (Huang et al., "Deep networks with stochastic depth", 2016; torchvision's mode "row"): in training a
 * residual branch is dropped for some samples and grows for the others, so that the mean stays; at evaluation y is x.
 */
#include "model/layers/shared.h"

typedef struct stochastic_depth_options {
    double probability;
} stochastic_depth_options;

/* At 1 nothing would be left to scale up. */
static const cvy_field fields[] = {
    {.name = "probability", .type = CVY_FIELD_REAL, .offset = offsetof(stochastic_depth_options, probability),
     .value = 0.2, .minimum = 0, .maximum = 0.99, .help = "share of the samples that is dropped"},
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const stochastic_depth_options *options = layer->options;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_STOCHASTIC_DEPTH, .pass = pass};
    op_out->params.dropout.probability = options->probability;
    op_out->params.dropout.layer = layer->index;
}

const cvy_layer_kind cvy_layer_stochastic_depth = {
    .name = "stochastic-depth",
    .help = "drop whole samples of a branch at random in training",
    .fields = fields,
    .options_bytes = sizeof(stochastic_depth_options),
    .min_inputs = 1,
    .max_inputs = 1,
    .flow = CVY_FLOW_OPS,
    .any_format = true,
    .cheap = true,
    .infer = cvy_layer_infer_same,
    .make_op = make_op,
    .forward_passes = 1,
    .backward_passes = 1,
    .forward = {CVY_PASS_FORWARD},
    .backward = {CVY_PASS_BACKWARD_DATA},
};
