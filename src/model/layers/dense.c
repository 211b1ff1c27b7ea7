/* Dense (fully connected) layer: y = x w^T + b. */
#include "model/layers/shared.h"

typedef struct dense_options {
    int64_t outputs;
    bool bias;
    cvy_init_options init;
} dense_options;

static const cvy_field fields[] = {
    {.name = "outputs", .type = CVY_FIELD_INT, .offset = offsetof(dense_options, outputs), .required = true,
     .minimum = 1, .maximum = CVY_MAX_OPTION, .help = "numbers that come out"},
    {.name = "bias", .type = CVY_FIELD_BOOL, .offset = offsetof(dense_options, bias), .value = 1,
     .help = "add a number to each output"},
    CVY_INIT_FIELDS(dense_options, CVY_INIT_CHOICE_UNIFORM),
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_DENSE, .pass = pass};
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    const dense_options *options = layer->options;
    CVY_TRY(cvy_layer_require_flat(input));
    return cvy_layer_describe_output(layer, input, options->outputs, output_out);
}

static cvy_status parameters(const cvy_layer *layer, const cvy_shape *input, cvy_parameter_spec *spec_out,
                             int *count_out)
{
    const dense_options *options = layer->options;
    cvy_shape weight = CVY_SHAPE(options->outputs, input->extent[1]);
    spec_out[0] = cvy_weight_spec(&options->init, &weight, 1);
    spec_out[1] = cvy_bias_spec(&options->init, &weight);
    *count_out = options->bias ? 2 : 1;
    return CVY_OK;
}

const cvy_layer_kind cvy_layer_dense = {
    .name = "dense",
    .help = "fully connected layer; takes n, c",
    .fields = fields,
    .options_bytes = sizeof(dense_options),
    .min_inputs = 1,
    .max_inputs = 1,
    .flow = CVY_FLOW_OPS,
    .infer = infer,
    .parameters = parameters,
    .make_op = make_op,
    .forward_passes = 1,
    .inference_passes = 1,
    .backward_passes = 2,
    .forward = {CVY_PASS_FORWARD},
    .inference = {CVY_PASS_FORWARD},
    .backward = {CVY_PASS_BACKWARD_WEIGHTS, CVY_PASS_BACKWARD_DATA},
};
