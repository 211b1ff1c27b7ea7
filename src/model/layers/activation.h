/* What activations share: y has the shape of x, whatever the format, in training and at evaluation alike. */
#ifndef CVY_MODEL_LAYERS_ACTIVATION_H
#define CVY_MODEL_LAYERS_ACTIVATION_H

#include "model/layers/shared.h"

/** The slots of an activation's kind besides name, help, options and make_op. */
#define CVY_ACTIVATION_SLOTS                                                                                           \
    .min_inputs = 1, .max_inputs = 1, .flow = CVY_FLOW_OPS, .any_format = true, .cheap = true,                   \
    .infer = cvy_layer_infer_same,                                                                                     \
    .forward_passes = 1, .inference_passes = 1, .backward_passes = 1, .forward = {CVY_PASS_FORWARD},                   \
    .inference = {CVY_PASS_FORWARD}, .backward = {CVY_PASS_BACKWARD_DATA}

#endif
