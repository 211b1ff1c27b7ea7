/* Batch normalisation (Ioffe and Szegedy, arXiv:1502.03167) over n and space, with PyTorch's defaults. */
#include "model/layers/shared.h"

typedef struct norm_options {
    double epsilon, momentum;
    bool zero_init_gamma;
} norm_options;

static const cvy_field fields[] = {
    {.name = "epsilon", .type = CVY_FIELD_REAL, .offset = offsetof(norm_options, epsilon), .value = 1e-5,
     .minimum = 1e-12, .maximum = 1, .help = "added to the variance"},
    {.name = "momentum", .type = CVY_FIELD_REAL, .offset = offsetof(norm_options, momentum), .value = 0.1,
     .minimum = 0, .maximum = 1, .help = "share of the new batch in the running statistics"},
    {.name = "zero-init-gamma", .type = CVY_FIELD_BOOL, .offset = offsetof(norm_options, zero_init_gamma), .value = 0,
     .help = "weights are born 0, not 1: a residual branch begins as nothing"},
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const norm_options *options = layer->options;
    *op_out = (cvy_op){.kind = CVY_OP_BATCH_NORM, .pass = pass};
    op_out->params.norm.epsilon = options->epsilon;
    op_out->params.norm.momentum = options->momentum;
    op_out->params.norm.count = cvy_shape_elements(x) / x->extent[1];
}

static cvy_parameter_spec make_spec(const char *suffix, cvy_role role, int64_t channels, cvy_init_kind init)
{
    bool trainable = role == CVY_ROLE_W || role == CVY_ROLE_B;
    return (cvy_parameter_spec){.suffix = suffix, .role = role, .shape = CVY_SHAPE(channels), .groups = 1,
                                .trainable = trainable, .init = {.kind = init}};
}

static cvy_status parameters(const cvy_layer *layer, const cvy_shape *input, cvy_parameter_spec *spec_out,
                             int *count_out)
{
    const norm_options *options = layer->options;
    int64_t channels = input->extent[1];
    spec_out[0] = make_spec("weight", CVY_ROLE_W, channels, options->zero_init_gamma ? CVY_INIT_ZERO : CVY_INIT_ONE);
    spec_out[1] = make_spec("bias", CVY_ROLE_B, channels, CVY_INIT_ZERO);
    spec_out[2] = make_spec("running_mean", CVY_ROLE_RUNNING_MEAN, channels, CVY_INIT_ZERO);
    spec_out[3] = make_spec("running_var", CVY_ROLE_RUNNING_VARIANCE, channels, CVY_INIT_ONE);
    *count_out = 4;
    return CVY_OK;
}

const cvy_layer_kind cvy_layer_batch_norm = {
    .name = "batch-norm",
    .help = "batch normalisation of every channel",
    .fields = fields,
    .options_bytes = sizeof(norm_options),
    .min_inputs = 1,
    .max_inputs = 1,
    .flow = CVY_FLOW_OPS,
    .any_format = true,
    .cheap = true,
    .infer = cvy_layer_infer_same,
    .parameters = parameters,
    .make_op = make_op,
    .forward_passes = 2,
    .inference_passes = 1,
    .backward_passes = 1,
    .forward = {CVY_PASS_FORWARD, CVY_PASS_COMMIT},
    .inference = {CVY_PASS_INFERENCE},
    .backward = {CVY_PASS_BACKWARD},
};
