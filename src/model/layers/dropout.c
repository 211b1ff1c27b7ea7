/* Dropout: in training some elements become 0 and the others grow, so that the mean stays; at evaluation y is x. */
#include "model/layers/shared.h"

typedef struct dropout_options {
    double probability;
} dropout_options;

/* At 1 nothing would be left to scale up. */
static const cvy_field fields[] = {
    {.name = "probability", .type = CVY_FIELD_REAL, .offset = offsetof(dropout_options, probability), .value = 0.5,
     .minimum = 0, .maximum = 0.99, .help = "share of the elements that is dropped"},
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const dropout_options *options = layer->options;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_DROPOUT, .pass = pass};
    op_out->params.dropout.probability = options->probability;
    op_out->params.dropout.layer = layer->index;
}

const cvy_layer_kind cvy_layer_dropout = {
    .name = "dropout",
    .help = "drop elements at random in training",
    .fields = fields,
    .options_bytes = sizeof(dropout_options),
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
