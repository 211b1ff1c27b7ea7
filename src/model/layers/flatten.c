/* n,c,(d),h,w as n,c: the elements of a sample in c,d,h,w order. No op: the same memory, seen otherwise. */
#include "model/layers/shared.h"

static cvy_status infer(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    (void)layer;
    *output_out = CVY_SHAPE(input->extent[0], cvy_shape_elements(input) / input->extent[0]);
    return CVY_OK;
}

const cvy_layer_kind cvy_layer_flatten = {
    .name = "flatten",
    .help = "a sample as one vector, in c, d, h, w order",
    .min_inputs = 1,
    .max_inputs = 1,
    .flow = CVY_FLOW_VIEW,
    .infer = infer,
};
