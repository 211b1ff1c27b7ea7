/* Mean over bins, to an output of a given size whatever the input's: PyTorch's AdaptiveAvgPool. */
#include "model/layers/shared.h"

typedef struct adaptive_pool_options {
    cvy_axes output;
} adaptive_pool_options;

static const cvy_field fields[] = {
    {.name = "output", .type = CVY_FIELD_AXES, .offset = offsetof(adaptive_pool_options, output), .required = true,
     .minimum = 1, .maximum = 65536, .help = "positions that come out along each axis"},
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const cvy_axes *output = &((const adaptive_pool_options *)layer->options)->output;
    int spatial = x->dims - 2;
    *op_out = (cvy_op){.kind = CVY_OP_POOL_ADAPTIVE, .pass = pass};
    for (int axis = 0; axis < 3; axis++) {
        int own = axis - (3 - spatial); /* of the axes that the tensor has */
        op_out->params.adaptive.output[axis] = own < 0 ? 1 : output->value[output->count == 1 ? 0 : own];
    }
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    const cvy_axes *output = &((const adaptive_pool_options *)layer->options)->output;
    CVY_TRY(cvy_layer_require_space(input));
    CVY_REQUIRE(output->count == 1 || output->count == input->dims - 2, CVY_ERR_INPUT,
                "output: a list of %d, expected one number or %d", output->count, input->dims - 2);
    return cvy_layer_describe_output(layer, input, 0, output_out);
}

const cvy_layer_kind cvy_layer_adaptive_pool = {
    .name = "adaptive-pool",
    .help = "mean over bins, to a given output",
    .fields = fields,
    .options_bytes = sizeof(adaptive_pool_options),
    .min_inputs = 1,
    .max_inputs = 1,
    .flow = CVY_FLOW_OPS,
    .any_format = true,
    .infer = infer,
    .make_op = make_op,
    .forward_passes = 1,
    .inference_passes = 1,
    .backward_passes = 1,
    .forward = {CVY_PASS_FORWARD},
    .inference = {CVY_PASS_FORWARD},
    .backward = {CVY_PASS_BACKWARD_DATA},
};
