/* Maximum over a window. */
#include "model/layers/pool.h"

typedef struct max_pool_options {
    cvy_pool_options pool;
} max_pool_options;

static const cvy_field fields[] = {CVY_POOL_FIELDS(max_pool_options), {0}};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const max_pool_options *options = layer->options;
    *op_out = (cvy_op){.kind = CVY_OP_POOL_MAX, .pass = pass};
    op_out->params.window.groups = 1;
    (void)cvy_pool_resolve(&options->pool, x, &op_out->params.window.window); /* infer() saw that it can */
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    const max_pool_options *options = layer->options;
    cvy_window window;
    CVY_TRY(cvy_pool_resolve(&options->pool, input, &window));
    return cvy_layer_describe_output(layer, input, 0, output_out);
}

const cvy_layer_kind cvy_layer_max_pool = {
    .name = "max-pool",
    .help = "largest element of a window",
    .fields = fields,
    .options_bytes = sizeof(max_pool_options),
    .min_inputs = 1,
    .max_inputs = 1,
    .flow = CVY_FLOW_OPS,
    .any_format = true,
    .cheap = true,
    .infer = infer,
    .make_op = make_op,
    .forward_passes = 1,
    .inference_passes = 1,
    .backward_passes = 1,
    .forward = {CVY_PASS_FORWARD},
    .inference = {CVY_PASS_INFERENCE},
    .backward = {CVY_PASS_BACKWARD_DATA},
};
