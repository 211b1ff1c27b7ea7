/* Group normalisation (Wu and He, arXiv:1803.08494) of each sample, with PyTorch's defaults. */
#include <inttypes.h>

#include "model/layers/shared.h"

typedef struct group_norm_options {
    int64_t groups;
    double epsilon;
} group_norm_options;

static const cvy_field fields[] = {
    {.name = "groups", .type = CVY_FIELD_INT, .offset = offsetof(group_norm_options, groups), .required = true,
     .minimum = 1, .maximum = CVY_MAX_OPTION, .help = "channels fall into so many groups; it must divide them"},
    {.name = "epsilon", .type = CVY_FIELD_REAL, .offset = offsetof(group_norm_options, epsilon), .value = 1e-5,
     .minimum = 1e-12, .maximum = 1, .help = "added to the variance"},
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const group_norm_options *options = layer->options;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_GROUP_NORM, .pass = pass};
    op_out->params.group.groups = options->groups;
    op_out->params.group.epsilon = options->epsilon;
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    const group_norm_options *options = layer->options;
    CVY_REQUIRE(input->extent[1] % options->groups == 0, CVY_ERR_INPUT,
                "groups: %" PRId64 " do not divide %" PRId64 " channels", options->groups, input->extent[1]);
    *output_out = *input;
    return CVY_OK;
}

static cvy_parameter_spec make_spec(const char *suffix, cvy_role role, int64_t channels, cvy_init_kind init)
{
    return (cvy_parameter_spec){.suffix = suffix, .role = role, .shape = CVY_SHAPE(channels), .groups = 1,
                                .trainable = true, .init = {.kind = init}};
}

static cvy_status parameters(const cvy_layer *layer, const cvy_shape *input, cvy_parameter_spec *spec_out,
                             int *count_out)
{
    (void)layer;
    spec_out[0] = make_spec("weight", CVY_ROLE_W, input->extent[1], CVY_INIT_ONE);
    spec_out[1] = make_spec("bias", CVY_ROLE_B, input->extent[1], CVY_INIT_ZERO);
    *count_out = 2;
    return CVY_OK;
}

const cvy_layer_kind cvy_layer_group_norm = {
    .name = "group-norm",
    .help = "normalisation of each sample over groups of channels",
    .fields = fields,
    .options_bytes = sizeof(group_norm_options),
    .min_inputs = 1,
    .max_inputs = 1,
    .flow = CVY_FLOW_OPS,
    .any_format = true,
    .cheap = true,
    .infer = infer,
    .parameters = parameters,
    .make_op = make_op,
    .forward_passes = 1,
    .inference_passes = 1,
    .backward_passes = 1,
    .forward = {CVY_PASS_FORWARD},
    .inference = {CVY_PASS_FORWARD},
    .backward = {CVY_PASS_BACKWARD},
};
