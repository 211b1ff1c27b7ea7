/*
 * Initialisation and shapes that kinds have in common. Fans are PyTorch's: fan_in = i k, fan_out = o k with o the whole
 * count of filters, i the channels of one group, k the positions of the kernel.
 */
#include "model/layers/shared.h"

#include <inttypes.h>

const char *const cvy_init_choices[] = {"kaiming", "xavier", "uniform", "normal", NULL};
const char *const cvy_bias_init_choices[] = {"uniform", "zero", NULL};

static cvy_init make_init(cvy_init_kind kind, const cvy_shape *weight, double scale)
{
    double positions = 1;
    for (int i = 2; i < weight->dims; i++) {
        positions *= (double)weight->extent[i];
    }
    return (cvy_init){.kind = kind,
                      .fan_in = (double)weight->extent[1] * positions,
                      .fan_out = (double)weight->extent[0] * positions,
                      .scale = scale};
}

cvy_parameter_spec cvy_weight_spec(const cvy_init_options *init, const cvy_shape *shape, int64_t groups)
{
    static const cvy_init_kind kind[] = {[CVY_INIT_CHOICE_KAIMING] = CVY_INIT_KAIMING,
                                         [CVY_INIT_CHOICE_XAVIER] = CVY_INIT_XAVIER,
                                         [CVY_INIT_CHOICE_UNIFORM] = CVY_INIT_UNIFORM,
                                         [CVY_INIT_CHOICE_NORMAL] = CVY_INIT_NORMAL};
    return (cvy_parameter_spec){.suffix = "weight", .role = CVY_ROLE_W, .shape = *shape, .groups = groups,
                                .trainable = true, .init = make_init(kind[init->weight], shape, init->deviation)};
}

cvy_parameter_spec cvy_bias_spec(const cvy_init_options *init, const cvy_shape *weight)
{
    cvy_init_kind kind = init->bias ? CVY_INIT_ZERO : CVY_INIT_UNIFORM;
    return (cvy_parameter_spec){.suffix = "bias", .role = CVY_ROLE_B, .shape = CVY_SHAPE(weight->extent[0]),
                                .groups = 1, .trainable = true, .init = make_init(kind, weight, 0)};
}

cvy_status cvy_layer_describe_output(const cvy_layer *layer, const cvy_shape *input, int64_t filters,
                                     cvy_shape *output_out)
{
    cvy_op op;
    cvy_tensor y, x = {.shape = *input, .dtype = CVY_F32, .format = CVY_FORMAT_PLAIN};
    cvy_role role = layer->kind->flow == CVY_FLOW_LOSS ? CVY_ROLE_LOSS : CVY_ROLE_Y;
    layer->kind->make_op(layer, input, CVY_PASS_FORWARD, &op);
    CVY_TRY(cvy_op_describe(&op, &x, filters, role, &y));
    *output_out = y.shape;
    return CVY_OK;
}

cvy_status cvy_layer_infer_same(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out)
{
    (void)layer;
    *output_out = *input;
    return CVY_OK;
}

cvy_status cvy_layer_require_space(const cvy_shape *input)
{
    char text[CVY_SHAPE_TEXT];
    CVY_REQUIRE(input->dims == 4 || input->dims == 5, CVY_ERR_INPUT,
                "the input is %s (n, c), expected n, c, h, w or n, c, d, h, w", cvy_shape_print(input, text));
    return CVY_OK;
}

cvy_status cvy_layer_require_groups(int64_t channels, int64_t filters, int64_t groups)
{
    CVY_REQUIRE(channels % groups == 0 && filters % groups == 0, CVY_ERR_INPUT,
                "%" PRId64 " channels and %" PRId64 " filters do not fall into %" PRId64 " equal groups", channels,
                filters, groups);
    return CVY_OK;
}

cvy_status cvy_layer_require_flat(const cvy_shape *input)
{
    char text[CVY_SHAPE_TEXT];
    CVY_REQUIRE(input->dims == 2, CVY_ERR_INPUT, "the input is %s, expected n, c: put a flatten layer before",
                cvy_shape_print(input, text));
    return CVY_OK;
}
