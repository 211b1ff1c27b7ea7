/* The batch. The first layer of every model, and the only one of its kind. */
#include "model/layers/shared.h"

typedef struct input_options {
    cvy_shape shape;
} input_options;

static const cvy_field fields[] = {
    {.name = "shape", .type = CVY_FIELD_SHAPE, .offset = offsetof(input_options, shape), .required = true,
     .minimum = 1, .maximum = CVY_MAX_OPTION, .help = "one sample: [c, h, w], [c, d, h, w] or [c]"},
    {0},
};

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    const input_options *options = layer->options;
    (void)input;
    *output_out = options->shape;
    return CVY_OK;
}

const cvy_layer_kind cvy_layer_input = {
    .name = "input",
    .help = "the batch; stands first in every model",
    .fields = fields,
    .options_bytes = sizeof(input_options),
    .flow = CVY_FLOW_SOURCE,
    .infer = infer,
};
