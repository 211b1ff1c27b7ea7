/*
 * Mean over a window. PyTorch counts asked padding (count-padding) but never what ceil mode adds. An op divides either
 * by the whole window or by the positions inside the input, so: without asked padding the two agree once an overhanging
 * window counts only what is inside; with both padding and overhang neither is PyTorch's, and the layer is refused.
 */
#include "model/layers/pool.h"

typedef struct average_pool_options {
    cvy_pool_options pool;
    bool count_padding;
} average_pool_options;

static const cvy_field fields[] = {
    CVY_POOL_FIELDS(average_pool_options),
    {.name = "count-padding", .type = CVY_FIELD_BOOL, .offset = offsetof(average_pool_options, count_padding),
     .value = 1, .help = "divide by the whole window, padding included"},
    {0},
};

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    const average_pool_options *options = layer->options;
    *op_out = (cvy_op){.kind = CVY_OP_POOL_AVERAGE, .pass = pass};
    op_out->params.window.groups = 1;
    op_out->params.window.count_padding = options->count_padding && !cvy_pool_overhangs(&options->pool, x);
    (void)cvy_pool_resolve(&options->pool, x, &op_out->params.window.window); /* infer() saw that it can */
}

static bool has_padding(const cvy_pads *padding)
{
    for (int i = 0; i < padding->count; i++) {
        if (padding->before[i] || padding->after[i]) {
            return true;
        }
    }
    return false;
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    const average_pool_options *options = layer->options;
    cvy_window window;
    CVY_TRY(cvy_pool_resolve(&options->pool, input, &window));
    bool mixed = options->count_padding && has_padding(&options->pool.padding) &&
                 cvy_pool_overhangs(&options->pool, input);
    CVY_REQUIRE(!mixed, CVY_ERR_INPUT,
                "padding counts, but what ceil-mode adds would not: say count-padding: no, or ceil-mode: no");
    return cvy_layer_describe_output(layer, input, 0, output_out);
}

const cvy_layer_kind cvy_layer_average_pool = {
    .name = "average-pool",
    .help = "mean of a window",
    .fields = fields,
    .options_bytes = sizeof(average_pool_options),
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
    .inference = {CVY_PASS_FORWARD},
    .backward = {CVY_PASS_BACKWARD_DATA},
};
