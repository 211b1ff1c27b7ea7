/*
 * y = x0 x1, with one factor for a channel of a sample: the excitation of Hu, Shen, Sun, "Squeeze-and-excitation
 * networks" (2018). The factors come from a global pooling of the same channels, as n,c,1,1.
 */
#include "model/layers/shared.h"

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_MULTIPLY, .pass = pass};
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    char first[CVY_SHAPE_TEXT], second[CVY_SHAPE_TEXT], wanted[CVY_SHAPE_TEXT];
    cvy_op op;
    cvy_tensor x1, x = {.shape = input[0], .dtype = CVY_F32, .format = CVY_FORMAT_PLAIN};
    make_op(layer, input, CVY_PASS_FORWARD, &op);
    CVY_TRY(cvy_op_describe(&op, &x, 0, CVY_ROLE_X1, &x1));
    CVY_REQUIRE(cvy_shape_equal(&input[1], &x1.shape), CVY_ERR_INPUT,
                "the inputs are %s and %s, expected %s as the second: a factor for each channel",
                cvy_shape_print(&input[0], first), cvy_shape_print(&input[1], second),
                cvy_shape_print(&x1.shape, wanted));
    *output_out = input[0];
    return CVY_OK;
}

const cvy_layer_kind cvy_layer_multiply = {
    .name = "multiply",
    .help = "channels of the first input times the factors of the second",
    .min_inputs = 2,
    .max_inputs = 2,
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
    .backward = {CVY_PASS_BACKWARD},
};
