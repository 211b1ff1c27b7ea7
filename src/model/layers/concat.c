/* Inputs joined along the channels, as in GoogLeNet and DenseNet. */
#include "base/checked.h"
#include "model/layers/shared.h"

static void make_op(const cvy_layer *layer, const cvy_shape *x, cvy_op_pass pass, cvy_op *op_out)
{
    (void)layer;
    (void)x;
    *op_out = (cvy_op){.kind = CVY_OP_CONCAT, .pass = pass};
}

/* Whether two shapes are equal but for their channels. */
static bool fits(const cvy_shape *a, const cvy_shape *b)
{
    cvy_shape other = *b;
    other.extent[1] = a->extent[1];
    return cvy_shape_equal(a, &other);
}

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    char first[CVY_SHAPE_TEXT], other[CVY_SHAPE_TEXT];
    cvy_shape output = input[0];
    for (int i = 1; i < layer->inputs; i++) {
        CVY_REQUIRE(fits(&input[0], &input[i]), CVY_ERR_INPUT,
                    "inputs 1 and %d are %s and %s, expected shapes that differ in their channels alone", i + 1,
                    cvy_shape_print(&input[0], first), cvy_shape_print(&input[i], other));
        CVY_REQUIRE(cvy_add_i64(output.extent[1], input[i].extent[1], &output.extent[1]), CVY_ERR_INPUT,
                    "more channels than 64 bits can count");
    }
    *output_out = output;
    return CVY_OK;
}

const cvy_layer_kind cvy_layer_concat = {
    .name = "concat",
    .help = "two to four inputs, one after the other along the channels",
    .min_inputs = 2,
    .max_inputs = CVY_MAX_INPUTS,
    .flow = CVY_FLOW_CONCAT,
    .any_format = true,
    .cheap = true,
    .infer = infer,
    .make_op = make_op,
    .forward_passes = 1,
    .inference_passes = 1,
    .forward = {CVY_PASS_FORWARD},
    .inference = {CVY_PASS_FORWARD},
};
