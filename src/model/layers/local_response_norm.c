/* Local response normalisation across channels, as in AlexNet, with PyTorch's meaning of alpha and its defaults. */
#include "model/layers/shared.h"

typedef struct response_options {
    int64_t size;
    double alpha, beta, k;
} response_options;

static const cvy_field fields[] = {
    {.name = "size", .type = CVY_FIELD_INT, .offset = offsetof(response_options, size), .required = true, .minimum = 1,
     .maximum = CVY_MAX_OPTION, .help = "channels that are summed over"},
    {.name = "alpha", .type = CVY_FIELD_REAL, .offset = offsetof(response_options, alpha), .value = 1e-4, .minimum = 0,
     .maximum = 1e6, .help = "weight of the mean square"},
    {.name = "beta", .type = CVY_FIELD_REAL, .offset = offsetof(response_options, beta), .value = 0.75, .minimum = 0,
     .maximum = 100, .help = "exponent"},
    {.name = "k", .type = CVY_FIELD_REAL, .offset = offsetof(response_options, k), .value = 1, .minimum = 1e-6,
     .maximum = 1e6, .help = "added to the weighted mean square"},
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const response_options *options = layer->options;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_LOCAL_RESPONSE_NORM, .pass = pass};
    op_out->params.response = (cvy_op_params_response){.size = options->size, .alpha = options->alpha,
                                                       .beta = options->beta, .k = options->k};
}

const cvy_layer_kind cvy_layer_local_response_norm = {
    .name = "local-response-norm",
    .help = "normalisation by the squares of neighbouring channels",
    .fields = fields,
    .options_bytes = sizeof(response_options),
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
