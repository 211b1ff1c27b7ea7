/* y = x above 0, a small part of x below, so that a gradient passes everywhere. */
#include "model/layers/activation.h"

typedef struct leaky_relu_options {
    double slope;
} leaky_relu_options;

/* Backward tells the sign of x by that of y, so the slope is not negative. */
static const cvy_field fields[] = {
    {.name = "slope", .type = CVY_FIELD_REAL, .offset = offsetof(leaky_relu_options, slope), .value = 0.01,
     .minimum = 0, .maximum = 1, .help = "what x is multiplied with below 0"},
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const leaky_relu_options *options = layer->options;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_LEAKY_RELU, .pass = pass};
    op_out->params.activation.slope = options->slope;
}

const cvy_layer_kind cvy_layer_leaky_relu = {
    .name = "leaky-relu",
    .help = "x above 0, slope x below",
    .fields = fields,
    .options_bytes = sizeof(leaky_relu_options),
    .make_op = make_op,
    CVY_ACTIVATION_SLOTS,
};
