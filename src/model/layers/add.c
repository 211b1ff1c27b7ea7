/* y = x0 + x1, as in residual networks. */
#include "model/layers/shared.h"

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_ADD, .pass = pass};
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    char first[CVY_SHAPE_TEXT], second[CVY_SHAPE_TEXT];
    (void)layer;
    CVY_REQUIRE(cvy_shape_equal(&input[0], &input[1]), CVY_ERR_INPUT, "the inputs are %s and %s, expected equal shapes",
                cvy_shape_print(&input[0], first), cvy_shape_print(&input[1], second));
    *output_out = input[0];
    return CVY_OK;
}

const cvy_layer_kind cvy_layer_add = {
    .name = "add",
    .help = "sum of two inputs of one shape",
    .min_inputs = 2,
    .max_inputs = 2,
    .flow = CVY_FLOW_SUM,
    .any_format = true,
    .cheap = true,
    .infer = infer,
    .make_op = make_op,
    .forward_passes = 1,
    .inference_passes = 1,
    .forward = {CVY_PASS_FORWARD},
    .inference = {CVY_PASS_FORWARD},
};
