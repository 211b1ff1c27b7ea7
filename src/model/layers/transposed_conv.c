/*
 * Transposed convolution over 2 or 3 spatial axes, with groups: torch.nn.ConvTranspose2d and 3d. The op knows no output
 * padding: rows that are to come out beyond those of the padded window are so much less padding at the high end.
 */
#include <inttypes.h>

#include "base/checked.h"
#include "model/layers/shared.h"

typedef struct transposed_options {
    int64_t filters;
    cvy_axes kernel, stride, dilation;
    cvy_pads padding;
    cvy_axes output_padding;
    int64_t groups;
    bool bias;
    cvy_init_options init;
} transposed_options;

static const cvy_field fields[] = {
    {.name = "filters", .type = CVY_FIELD_INT, .offset = offsetof(transposed_options, filters), .required = true,
     .minimum = 1, .maximum = CVY_MAX_OPTION, .help = "output channels"},
    {.name = "kernel", .type = CVY_FIELD_AXES, .offset = offsetof(transposed_options, kernel), .required = true,
     .minimum = 1, .maximum = CVY_MAX_OPTION, .help = "extent of the window, elements an axis"},
    {.name = "stride", .type = CVY_FIELD_AXES, .offset = offsetof(transposed_options, stride), .value = 1,
     .minimum = 1, .maximum = CVY_MAX_OPTION, .help = "step of the window in the output, elements an axis"},
    {.name = "padding", .type = CVY_FIELD_PADS, .offset = offsetof(transposed_options, padding), .value = 0,
     .minimum = 0, .maximum = CVY_MAX_OPTION, .help = "elements cut off the output at both ends of an axis"},
    {.name = "output-padding", .type = CVY_FIELD_AXES, .offset = offsetof(transposed_options, output_padding),
     .value = 0, .minimum = 0, .maximum = CVY_MAX_OPTION, .help = "elements added to the output at the high end"},
    {.name = "dilation", .type = CVY_FIELD_AXES, .offset = offsetof(transposed_options, dilation), .value = 1,
     .minimum = 1, .maximum = CVY_MAX_OPTION, .help = "distance of neighbours in the window, elements"},
    {.name = "groups", .type = CVY_FIELD_INT, .offset = offsetof(transposed_options, groups), .value = 1,
     .minimum = 1, .maximum = CVY_MAX_OPTION, .help = "channels and filters fall into so many groups"},
    {.name = "bias", .type = CVY_FIELD_BOOL, .offset = offsetof(transposed_options, bias), .value = 1,
     .help = "add a number to each filter"},
    CVY_INIT_FIELDS(transposed_options, CVY_INIT_CHOICE_KAIMING),
    {0},
};

static cvy_status resolve(const transposed_options *options, const cvy_shape *x, cvy_window *window_out)
{
    const cvy_axes *added = &options->output_padding;
    int spatial = x->dims - 2;
    cvy_window window;
    CVY_TRY(cvy_window_resolve(&options->kernel, &options->stride, &options->dilation, &options->padding, spatial,
                               &window));
    CVY_REQUIRE(added->count == 1 || added->count == spatial, CVY_ERR_INPUT,
                "output-padding: found %d entries, expected 1 or %d", added->count, spatial);
    for (int i = 0; i < spatial; i++) {
        int axis = 3 - spatial + i;
        int64_t more = added->value[added->count > 1 ? i : 0];
        int64_t limit = cvy_max_i64(window.stride[axis], window.dilation[axis]);
        CVY_REQUIRE(more < limit, CVY_ERR_INPUT,
                    "output-padding: found %" PRId64 " along %c, expected less than stride or dilation, %" PRId64, more,
                    "dhw"[axis], limit);
        window.after[axis] -= more;
    }
    *window_out = window;
    return CVY_OK;
}

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const transposed_options *options = layer->options;
    *op_out = (cvy_op){.kind = CVY_OP_TRANSPOSED_CONVOLUTION, .pass = pass};
    op_out->params.window.groups = options->groups;
    (void)resolve(options, x, &op_out->params.window.window); /* infer() saw that it can */
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    const transposed_options *options = layer->options;
    cvy_window window;
    CVY_TRY(cvy_layer_require_space(input));
    CVY_TRY(resolve(options, input, &window));
    CVY_TRY(cvy_layer_require_groups(input->extent[1], options->filters, options->groups));
    return cvy_layer_describe_output(layer, input, options->filters, output_out);
}

static cvy_status parameters(const cvy_layer *layer, const cvy_shape *input, cvy_parameter_spec *spec_out,
                             int *count_out)
{
    const transposed_options *options = layer->options;
    cvy_window window;
    CVY_TRY(resolve(options, input, &window));
    cvy_shape weight = {.dims = input->dims, .extent = {input->extent[1], options->filters / options->groups}};
    for (int i = 2; i < weight.dims; i++) {
        weight.extent[i] = window.kernel[3 - weight.dims + i];
    }
    spec_out[0] = cvy_weight_spec(&options->init, &weight, options->groups);
    spec_out[1] = cvy_bias_spec(&options->init, &weight);
    spec_out[1].shape = CVY_SHAPE(options->filters); /* which come second in the weights */
    *count_out = options->bias ? 2 : 1;
    return CVY_OK;
}

const cvy_layer_kind cvy_layer_transposed_conv = {
    .name = "transposed-convolution",
    .help = "transposed convolution, 2-D or 3-D by its input",
    .fields = fields,
    .options_bytes = sizeof(transposed_options),
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
