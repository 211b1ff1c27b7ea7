/* Layer kinds: shapes by hand or by plain loops, parameters by PyTorch's definitions, passes against the ops' table. */
#include "model/support.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

/* Append one layer to an input; NULL output where it is refused. */
static cvy_status try_layer(cvy_model **model, cvy_shape input, const char *kind, const char *options)
{
    int at = 0;
    *model = start_model(input);
    return cvy_model_append(*model, kind, "x", &at, "%s", options);
}

static void assert_output(cvy_shape input, const char *kind, const char *options, const char *expected)
{
    cvy_model *model;
    if (try_layer(&model, input, kind, options) != CVY_OK) {
        fail_msg("%s {%s}: %s", kind, options, cvy_error_message());
    }
    assert_shape(&model->layer[1].output, expected);
    cvy_model_destroy(&model);
}

static void assert_no_layer(cvy_shape input, const char *kind, const char *options, const char *words)
{
    cvy_model *model;
    assert_int_equal(try_layer(&model, input, kind, options), CVY_ERR_INPUT);
    assert_said(words);
    assert_int_equal(model->layers, 1); /* no trace */
    assert_int_equal(model->parameters, 0);
    assert_int_equal(cvy_model_find_layer(model, "x"), -1);
    cvy_model_destroy(&model);
}

/* (224 + 6 - 7) / 2 + 1 = 112; (10 - 5) / 3 + 1 = 2; dilation 2: (10 - 5) + 1 = 6; [1, 0]: (4 + 1 - 2) / 1 + 1 = 4. */
static void test_convolution_shapes(void **state)
{
    (void)state;
    assert_output(CVY_SHAPE(3, 224, 224), "conv", "filters: 64, kernel: 7, stride: 2, padding: 3", "1x64x112x112");
    assert_output(CVY_SHAPE(3, 10, 10), "conv", "filters: 4, kernel: 5, stride: 3", "1x4x2x2");
    assert_output(CVY_SHAPE(3, 10, 10), "conv", "filters: 4, kernel: 3, dilation: 2", "1x4x6x6");
    assert_output(CVY_SHAPE(3, 9, 10), "conv", "filters: 4, kernel: [1, 10], stride: [4, 1]", "1x4x3x1");
    assert_output(CVY_SHAPE(1, 4, 4), "conv", "filters: 1, kernel: 2, padding: [[1, 0], [0, 2]]", "1x1x4x5");
    assert_output(CVY_SHAPE(1, 4, 4), "conv", "filters: 1, kernel: 2, padding: [[1, 0]]", "1x1x4x4");
    assert_output(CVY_SHAPE(4, 8, 9, 10), "conv", "filters: 6, kernel: [1, 2, 3], groups: 2", "1x6x8x8x8");
}

/* torch.nn.ConvTranspose2d: (extent - 1) stride - 2 padding + dilation (kernel - 1) + output padding + 1. */
static void test_transposed_convolution_shapes_and_parameters(void **state)
{
    (void)state;
    const char *const kind = "transposed-convolution";
    assert_output(CVY_SHAPE(3, 5, 6), kind, "filters: 4, kernel: 2, stride: 2", "1x4x10x12");
    assert_output(CVY_SHAPE(3, 5, 6), kind, "filters: 4, kernel: 3, stride: 2, padding: 1", "1x4x9x11");
    assert_output(CVY_SHAPE(3, 5, 6), kind, "filters: 4, kernel: 3, stride: 2, padding: 1, output-padding: [1, 0]",
                  "1x4x10x11");
    assert_output(CVY_SHAPE(3, 5, 6), kind, "filters: 4, kernel: 3, dilation: [1, 3], output-padding: [0, 2]",
                  "1x4x7x14");
    assert_output(CVY_SHAPE(4, 3, 5, 6), kind, "filters: 6, kernel: [1, 2, 3], stride: [1, 2, 3], groups: 2",
                  "1x6x3x10x18");
    assert_no_layer(CVY_SHAPE(3, 5, 6), kind, "filters: 4, kernel: 3, stride: 2, output-padding: 2",
                    "output-padding: found 2 along h, expected less than stride or dilation, 2");
    assert_no_layer(CVY_SHAPE(3, 5, 6), kind, "filters: 4, kernel: 3, stride: 2, output-padding: [1, 1, 1]",
                    "output-padding: found 3 entries, expected 1 or 2");
    assert_no_layer(CVY_SHAPE(3, 5, 6), kind, "filters: 4, kernel: 1, padding: 3", "layer x: a window of 1 along h");
    assert_no_layer(CVY_SHAPE(3, 5, 6), kind, "filters: 4, kernel: 1, groups: 2",
                    "3 channels and 4 filters do not fall into 2 equal groups");
    cvy_model *model;
    const char *options = "filters: 6, kernel: 3, groups: 2"; /* weights c, f / g as in a state_dict */
    assert_int_equal(try_layer(&model, CVY_SHAPE(4, 8, 8), kind, options), CVY_OK);
    assert_shape(&model->parameter[0].spec.shape, "4x3x3x3");
    assert_shape(&model->parameter[1].spec.shape, "6");
    assert_true(model->parameter[1].spec.init.fan_in == 27); /* torch.nn.init's, of a weight of 4,3,3,3 */
    cvy_model_destroy(&model);
    assert_int_equal(try_layer(&model, CVY_SHAPE(4, 8, 8), kind, "filters: 6, kernel: 3, bias: no"), CVY_OK);
    assert_int_equal(model->parameters, 1);
    cvy_model_destroy(&model);
}

static void test_shapes_of_the_other_kinds(void **state)
{
    (void)state;
    assert_output(CVY_SHAPE(8, 7, 5), "global-pool", "", "1x8x1x1");
    assert_output(CVY_SHAPE(8, 7, 5, 3), "global-pool", "", "1x8x1x1x1");
    assert_output(CVY_SHAPE(8, 7, 5), "flatten", "", "1x280");
    assert_output(CVY_SHAPE(2, 3, 4, 5), "flatten", "", "1x120");
    assert_output(CVY_SHAPE(20), "flatten", "", "1x20");
    assert_output(CVY_SHAPE(20), "dense", "outputs: 7", "1x7");
    assert_output(CVY_SHAPE(20), "softmax-cross-entropy", "", "2");
    assert_output(CVY_SHAPE(20), "mean-squared-error", "", "2");
    assert_output(CVY_SHAPE(3, 4, 5, 6), "softmax-cross-entropy", "", "2");
    assert_output(CVY_SHAPE(3, 4, 5), "soft-dice", "", "2");
    const char *const same[] = {"batch-norm", "relu", "dropout", "relu6", "leaky-relu", "sigmoid", "tanh", "silu",
                                "hard-swish", "stochastic-depth"};
    for (int i = 0; i < (int)(sizeof same / sizeof same[0]); i++) {
        assert_output(CVY_SHAPE(8, 7, 5), same[i], "", "1x8x7x5");
        assert_output(CVY_SHAPE(8), same[i], "", "1x8");
    }
    assert_output(CVY_SHAPE(4, 9, 9), "max-pool", "kernel: 2", "1x4x4x4"); /* stride: the kernel */
    assert_output(CVY_SHAPE(4, 9, 9), "max-pool", "kernel: [2, 3]", "1x4x4x3");
    assert_output(CVY_SHAPE(4, 9, 9, 9), "average-pool", "kernel: 3, stride: [1, 2, 3]", "1x4x7x4x3");
}

/*
 * PyTorch's count of positions, by a loop. Floor: windows that lie within the padded input. Ceil: one more, where the
 * floor left something of the padded input uncovered, if that one starts inside the input or the low padding.
 */
static int64_t count_positions(int64_t extent, int64_t kernel, int64_t stride, int64_t padding, bool ceil_mode)
{
    int64_t padded = extent + 2 * padding, count = 0;
    while (count * stride + kernel <= padded) {
        count++;
    }
    bool uncovered = count ? (count - 1) * stride + kernel < padded : padded > kernel - stride;
    if (ceil_mode && uncovered && count * stride < extent + padding) {
        count++;
    }
    return count;
}

static void test_pooling_counts_positions_as_pytorch_does(void **state)
{
    (void)state;
    int tried = 0;
    for (int extent = 1; extent <= 12; extent++) {
        for (int kernel = 1; kernel <= 4; kernel++) {
            for (int stride = 1; stride <= 4; stride++) {
                for (int mixed = 0; mixed < 4; mixed++) {
                    int padding = mixed / 2, ceil_mode = mixed % 2;
                    int64_t expected = count_positions(extent, kernel, stride, padding, ceil_mode);
                    char options[128], shape[64];
                    if (padding > kernel / 2 || expected < 1) { /* PyTorch refuses such padding */
                        continue;
                    }
                    snprintf(options, sizeof options, "kernel: %d, stride: %d, padding: %d, ceil-mode: %s", kernel,
                             stride, padding, ceil_mode ? "yes" : "no");
                    snprintf(shape, sizeof shape, "1x2x%dx%d", (int)expected, (int)expected);
                    assert_output(CVY_SHAPE(2, extent, extent), "max-pool", options, shape);
                    tried++;
                }
            }
        }
    }
    assert_true(tried > 400);
}

/* 16 rows, windows of 3 by steps of 2: the eighth covers rows 14, 15 and one that is not there: one row after. */
static void test_ceil_mode_becomes_padding_at_the_high_end(void **state)
{
    (void)state;
    cvy_model *model;
    cvy_op op;
    const char *options = "kernel: 3, stride: 2, ceil-mode: yes";
    assert_int_equal(try_layer(&model, CVY_SHAPE(2, 16, 17), "average-pool", options), CVY_OK);
    const cvy_layer *layer = &model->layer[1];
    layer->kind->make_op(layer, &model->layer[0].output, CVY_PASS_FORWARD, &op);
    assert_int_equal(op.params.window.window.after[1], 1);
    assert_int_equal(op.params.window.window.after[2], 0); /* 17 = 7 * 2 + 3 exactly */
    assert_int_equal(op.params.window.window.before[1], 0);
    assert_false(op.params.window.count_padding); /* what ceil mode adds never counts */
    cvy_model_destroy(&model);
    options = "kernel: 3, stride: 2, padding: 1";
    assert_int_equal(try_layer(&model, CVY_SHAPE(2, 16, 16), "average-pool", options), CVY_OK);
    layer = &model->layer[1];
    layer->kind->make_op(layer, &model->layer[0].output, CVY_PASS_FORWARD, &op);
    assert_true(op.params.window.count_padding);
    cvy_model_destroy(&model);
    assert_no_layer(CVY_SHAPE(2, 17, 17), "average-pool", "kernel: 4, stride: 2, padding: 1, ceil-mode: yes",
                    "layer x: padding counts");
    assert_output(CVY_SHAPE(2, 17, 17), "average-pool",
                  "kernel: 4, stride: 2, padding: 1, ceil-mode: yes, count-padding: no", "1x2x9x9");
}

/* fan_in = c/g * 3 * 3 = 2 * 9, fan_out = 6 * 9, as torch.nn.init computes them from a weight of 6,2,3,3. */
static void test_convolution_parameters(void **state)
{
    (void)state;
    cvy_model *model;
    const char *options = "filters: 6, kernel: 3, groups: 2";
    assert_int_equal(try_layer(&model, CVY_SHAPE(4, 8, 8), "conv", options), CVY_OK);
    assert_int_equal(model->parameters, 2);
    const cvy_parameter *weight = &model->parameter[0], *bias = &model->parameter[1];
    assert_string_equal(weight->name, "x.weight");
    assert_shape(&weight->spec.shape, "6x2x3x3");
    assert_int_equal(weight->spec.groups, 2);
    assert_int_equal(weight->spec.role, CVY_ROLE_W);
    assert_int_equal(weight->spec.init.kind, CVY_INIT_KAIMING);
    assert_true(weight->spec.init.fan_in == 18 && weight->spec.init.fan_out == 54);
    assert_string_equal(bias->name, "x.bias");
    assert_shape(&bias->spec.shape, "6");
    assert_int_equal(bias->spec.init.kind, CVY_INIT_UNIFORM);
    assert_true(bias->spec.init.fan_in == 18);
    assert_int_equal(cvy_model_find_parameter(model, "x.bias"), 1);
    assert_int_equal(cvy_model_find_parameter(model, "x"), -1);
    cvy_model_destroy(&model);
}

/* 3 + 5 + 2 channels; 2 groups of 4 channels; AlexNet's numbers. */
static void test_concat_and_its_companions(void **state)
{
    (void)state;
    cvy_model *model = start_model(CVY_SHAPE(3, 6, 4));
    cvy_op op;
    int at[4] = {0, 0, 0, 0};
    assert_int_equal(cvy_model_append(model, "conv", "a", &at[1], "filters: 5, kernel: 1"), CVY_OK);
    assert_int_equal(cvy_model_append(model, "conv", "b", &at[2], "filters: 2, kernel: 1"), CVY_OK);
    assert_int_equal(cvy_model_append(model, "conv", "c", &at[3], "filters: 2, kernel: 2"), CVY_OK);
    cvy_layer_spec concat = {.kind = "concat", .name = "all", .input = at, .inputs = 4};
    assert_int_equal(cvy_model_add(model, &concat, NULL), CVY_ERR_INPUT);
    assert_said("layer all: inputs 1 and 4 are 1x3x6x4 and 1x2x5x3, expected shapes that differ in their channels");
    concat.inputs = 3;
    int all;
    assert_int_equal(cvy_model_add(model, &concat, &all), CVY_OK);
    assert_shape(&model->layer[all].output, "1x10x6x4");
    cvy_model_destroy(&model);
    assert_int_equal(try_layer(&model, CVY_SHAPE(8, 3, 3), "group-norm", "groups: 2, epsilon: 0.01"), CVY_OK);
    assert_int_equal(cvy_model_parameters(model), 16);
    model->layer[1].kind->make_op(&model->layer[1], &model->layer[0].output, CVY_PASS_FORWARD, &op);
    assert_true(op.params.group.groups == 2 && op.params.group.epsilon == 0.01);
    cvy_model_destroy(&model);
    assert_no_layer(CVY_SHAPE(8, 3, 3), "group-norm", "groups: 3", "layer x: groups: 3 do not divide 8 channels");
    assert_no_layer(CVY_SHAPE(8, 3, 3), "local-response-norm", "size: 5, k: 0", "layer x: k: found '0'");
    assert_int_equal(try_layer(&model, CVY_SHAPE(8, 3, 3), "local-response-norm",
                               "size: 5, alpha: 5e-4, beta: 0.5, k: 2"), CVY_OK);
    assert_int_equal(cvy_model_parameters(model), 0);
    model->layer[1].kind->make_op(&model->layer[1], &model->layer[0].output, CVY_PASS_BACKWARD_DATA, &op);
    assert_true(op.params.response.size == 5 && op.params.response.alpha == 5e-4);
    assert_true(op.params.response.beta == 0.5 && op.params.response.k == 2.0);
    cvy_model_destroy(&model);
}

static void test_dense_and_norm_parameters(void **state)
{
    (void)state;
    static const char *const suffix[] = {"x.weight", "x.bias", "x.running_mean", "x.running_var"};
    static const cvy_init_kind init[] = {CVY_INIT_ONE, CVY_INIT_ZERO, CVY_INIT_ZERO, CVY_INIT_ONE};
    cvy_model *model;
    assert_int_equal(try_layer(&model, CVY_SHAPE(20), "dense", "outputs: 7, init: normal, init-std: 0.25"), CVY_OK);
    assert_shape(&model->parameter[0].spec.shape, "7x20");
    assert_int_equal(model->parameter[0].spec.init.kind, CVY_INIT_NORMAL);
    assert_true(model->parameter[0].spec.init.scale == 0.25);
    assert_int_equal(cvy_model_parameters(model), 7 * 20 + 7);
    cvy_model_destroy(&model);
    assert_int_equal(try_layer(&model, CVY_SHAPE(5, 3, 3), "batch-norm", ""), CVY_OK);
    assert_int_equal(model->parameters, 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(model->parameter[i].name, suffix[i]);
        assert_shape(&model->parameter[i].spec.shape, "5");
        assert_int_equal(model->parameter[i].spec.init.kind, init[i]);
        assert_int_equal(model->parameter[i].spec.trainable, i < 2);
    }
    assert_int_equal(cvy_model_parameters(model), 10); /* statistics are none */
    cvy_model_destroy(&model);
    assert_int_equal(try_layer(&model, CVY_SHAPE(5, 3, 3), "batch-norm", "zero-init-gamma: yes"), CVY_OK);
    assert_int_equal(model->parameter[0].spec.init.kind, CVY_INIT_ZERO);
    cvy_model_destroy(&model);
    assert_int_equal(try_layer(&model, CVY_SHAPE(20), "dense", "outputs: 7, bias: no, init: xavier"), CVY_OK);
    assert_int_equal(model->parameters, 1);
    assert_int_equal(model->parameter[0].spec.init.kind, CVY_INIT_XAVIER);
    cvy_model_destroy(&model);
}

/* Statistics of 6 samples of 3x4 are taken over 72 elements a channel. */
static void test_ops_carry_the_options(void **state)
{
    (void)state;
    cvy_model *model;
    cvy_op op;
    assert_int_equal(try_layer(&model, CVY_SHAPE(5, 3, 4), "batch-norm", "epsilon: 0.001, momentum: 0.2"), CVY_OK);
    cvy_shape batch = CVY_SHAPE(6, 5, 3, 4);
    model->layer[1].kind->make_op(&model->layer[1], &batch, CVY_PASS_COMMIT, &op);
    assert_int_equal(op.pass, CVY_PASS_COMMIT);
    assert_int_equal(op.params.norm.count, 72);
    assert_true(op.params.norm.epsilon == 0.001 && op.params.norm.momentum == 0.2);
    cvy_model_destroy(&model);
    assert_int_equal(try_layer(&model, CVY_SHAPE(5, 3, 4), "dropout", "probability: 0.25"), CVY_OK);
    model->layer[1].kind->make_op(&model->layer[1], &batch, CVY_PASS_FORWARD, &op);
    assert_true(op.params.dropout.probability == 0.25);
    assert_int_equal(op.params.dropout.layer, 1);
    cvy_model_destroy(&model);
    assert_int_equal(try_layer(&model, CVY_SHAPE(4, 9, 9), "conv",
                               "filters: 2, kernel: [3, 1], stride: [2, 1], padding: [[1, 2], 0], groups: 2"), CVY_OK);
    model->layer[1].kind->make_op(&model->layer[1], &model->layer[0].output, CVY_PASS_FORWARD, &op);
    const cvy_window *window = &op.params.window.window;
    const cvy_window expected = {{1, 3, 1}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0}, {0, 2, 0}};
    assert_memory_equal(window, &expected, sizeof expected);
    assert_int_equal(op.params.window.groups, 2);
    cvy_model_destroy(&model);
}

static void test_options_of_activations_and_losses(void **state)
{
    (void)state;
    cvy_model *model;
    cvy_op op;
    assert_int_equal(try_layer(&model, CVY_SHAPE(5, 3, 4), "leaky-relu", "slope: 0.25"), CVY_OK);
    model->layer[1].kind->make_op(&model->layer[1], &model->layer[0].output, CVY_PASS_FORWARD, &op);
    assert_true(op.params.activation.slope == 0.25);
    cvy_model_destroy(&model);
    assert_int_equal(try_layer(&model, CVY_SHAPE(5, 3, 4), "stochastic-depth", "probability: 0.75"), CVY_OK);
    model->layer[1].kind->make_op(&model->layer[1], &model->layer[0].output, CVY_PASS_FORWARD, &op);
    assert_true(op.params.dropout.probability == 0.75);
    assert_int_equal(op.params.dropout.layer, 1);
    cvy_model_destroy(&model);
    assert_int_equal(try_layer(&model, CVY_SHAPE(5), "softmax-cross-entropy", "label-smoothing: 0.125"), CVY_OK);
    model->layer[1].kind->make_op(&model->layer[1], &model->layer[0].output, CVY_PASS_FORWARD, &op);
    assert_true(op.params.loss.smoothing == 0.125);
    cvy_model_destroy(&model);
    assert_no_layer(CVY_SHAPE(5), "leaky-relu", "slope: -1", "slope: found '-1', expected a number from 0 to 1");
    assert_no_layer(CVY_SHAPE(5), "softmax-cross-entropy", "label-smoothing: 2", "expected a number from 0 to 1");
}

/* Factors are as a global pooling leaves them: one for each channel of a sample. */
static void test_multiply_takes_a_factor_for_each_channel(void **state)
{
    (void)state;
    static const cvy_shape inputs[] = {CVY_SHAPE(4, 6, 5), CVY_SHAPE(4, 3, 6, 5)};
    for (int i = 0; i < 2; i++) {
        cvy_model *model = start_model(inputs[i]);
        int at = 0, last;
        assert_int_equal(cvy_model_append(model, "global-pool", "pool", &at, " "), CVY_OK);
        int input[] = {0, at};
        cvy_layer_spec product = {.kind = "multiply", .name = "product", .input = input, .inputs = 2};
        assert_int_equal(cvy_model_add(model, &product, &last), CVY_OK);
        assert_shape(&model->layer[last].output, i ? "1x4x3x6x5" : "1x4x6x5");
        input[0] = at;
        input[1] = 0;
        product.name = "swapped";
        assert_int_equal(cvy_model_add(model, &product, NULL), CVY_ERR_INPUT);
        assert_said(i ? "layer swapped: the inputs are 1x4x1x1x1 and 1x4x3x6x5, expected 1x4x1x1x1 as the second"
                      : "layer swapped: the inputs are 1x4x1x1 and 1x4x6x5, expected 1x4x1x1 as the second");
        cvy_model_destroy(&model);
    }
}

/* Whatever passes a kind lists, the vocabulary has; tensors of ops kinds get a gradient. */
static void test_every_pass_is_in_the_table_of_ops(void **state)
{
    (void)state;
    static const char *const needed[] = {"conv", "filters: 2, kernel: 1", "dense", "outputs: 2", "max-pool",
                                         "kernel: 1", "average-pool", "kernel: 1", "adaptive-pool", "output: 2",
                                         "group-norm", "groups: 2", "local-response-norm", "size: 5",
                                         "transposed-convolution", "filters: 2, kernel: 2", NULL};
    int kinds = 0;
    for (const cvy_layer_kind *kind; (kind = cvy_layer_kind_get(kinds)); kinds++) {
        assert_ptr_equal(cvy_layer_kind_find(kind->name), kind);
        if (!kind->make_op || kind->max_inputs != 1) {
            continue;
        }
        const char *options = "";
        for (int i = 0; needed[i]; i += 2) {
            options = strcmp(needed[i], kind->name) == 0 ? needed[i + 1] : options;
        }
        bool flat = strcmp(kind->name, "dense") == 0 || kind->flow == CVY_FLOW_LOSS;
        cvy_model *model;
        assert_int_equal(try_layer(&model, flat ? CVY_SHAPE(4) : CVY_SHAPE(4, 4, 4), kind->name, options), CVY_OK);
        const struct { int count; const cvy_op_pass *pass; } lists[] = {
            {kind->forward_passes, kind->forward},
            {kind->inference_passes, kind->inference},
            {kind->backward_passes, kind->backward}};
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < lists[i].count; k++) {
                cvy_op op;
                kind->make_op(&model->layer[1], &model->layer[0].output, lists[i].pass[k], &op);
                assert_int_equal(op.pass, lists[i].pass[k]);
                assert_int_equal(op.operands, 0);
                assert_non_null(cvy_op_signature(op.kind, op.pass));
            }
        }
        assert_true(kind->forward_passes >= 1 && kind->backward_passes >= 1);
        cvy_model_destroy(&model);
    }
    assert_true(kinds >= 13);
    assert_null(cvy_layer_kind_find("no such kind"));
}

static void test_inputs_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    assert_no_layer(CVY_SHAPE(20), "conv", "filters: 1, kernel: 1", "layer x: the input is 1x20 (n, c)");
    assert_no_layer(CVY_SHAPE(20), "max-pool", "kernel: 1", "layer x: the input is 1x20");
    assert_no_layer(CVY_SHAPE(20), "global-pool", "", "layer x: the input is 1x20");
    assert_no_layer(CVY_SHAPE(3, 4, 4), "dense", "outputs: 1", "put a flatten layer before");
    assert_no_layer(CVY_SHAPE(3, 4, 4), "conv", "filters: 4, kernel: 5", "layer x: a window of 5 along h");
    assert_no_layer(CVY_SHAPE(3, 4, 4), "conv", "filters: 4, kernel: 3, dilation: 2", "layer x: a window of 3 along h");
    assert_no_layer(CVY_SHAPE(3, 4, 4), "conv", "filters: 4, kernel: 1, groups: 2",
                    "3 channels and 4 filters do not fall into 2 equal groups");
    assert_no_layer(CVY_SHAPE(3, 4, 4), "conv", "filters: 4, kernel: [1, 1, 1]",
                    "kernel: found 3 entries, expected 1 or 2");
    assert_no_layer(CVY_SHAPE(3, 4, 4), "max-pool", "kernel: 2, padding: 3", "layer x: a window of 2");
    assert_no_layer(CVY_SHAPE(3, 4, 4), "input", "shape: [1]", "the input is the first layer");
}

static void test_wrong_options_say_what_is_expected(void **state)
{
    (void)state;
    const cvy_shape image = CVY_SHAPE(3, 8, 8);
    assert_no_layer(image, "conv", "kernel: 3", "layer x: filters: missing; it is output channels");
    assert_no_layer(image, "conv", "filters: 2, kernal: 3", "layer x: unknown option 'kernal'; did you mean 'kernel'?");
    assert_no_layer(image, "conv", "filters: 2, kernel: 3, zzz: 1", "unknown option 'zzz', expected filters, kernel");
    assert_no_layer(image, "relu", "zzz: 1", "layer x: unknown option 'zzz', expected none");
    assert_no_layer(image, "conv", "filters: 0, kernel: 3", "layer x: filters: found '0', expected a whole number");
    assert_no_layer(image, "conv", "filters: 2, kernel: []", "layer x: kernel: found 0 entries");
    assert_no_layer(image, "conv", "filters: 2, kernel: [1, 2, 3, 4]", "layer x: kernel: found 4 entries");
    assert_no_layer(image, "conv", "filters: 2, kernel: {h: 3}", "layer x: kernel: found a mapping");
    assert_no_layer(image, "conv", "filters: 2, kernel: 3, padding: [[1, 2, 3], 0]", "expected [low, high]");
    assert_no_layer(image, "conv", "filters: 2, kernel: 3, padding: -1", "layer x: padding: found '-1'");
    assert_no_layer(image, "conv", "filters: 2, kernel: 3, init: magic",
                    "layer x: init: found 'magic', expected one of kaiming, xavier, uniform, normal");
    assert_no_layer(image, "conv", "filters: 2, kernel: 3, bias: maybe", "found 'maybe', expected yes or no");
    assert_no_layer(image, "dropout", "probability: 1", "probability: found '1', expected a number from 0 to 0.99");
    assert_no_layer(image, "convolution", "filters: 2", "layer x: unknown kind 'convolution'; did you mean 'conv'?");
}

static void test_names_are_checked(void **state)
{
    (void)state;
    cvy_model *model = start_model(CVY_SHAPE(3, 8, 8));
    char longest[CVY_MAX_NAME + 2];
    int at = 0;
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(cvy_model_append(model, "relu", longest, &at, " "), CVY_ERR_INPUT);
    longest[CVY_MAX_NAME] = '\0';
    assert_int_equal(cvy_model_append(model, "relu", longest, &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(model, "relu", "", &at, " "), CVY_ERR_INPUT);
    assert_int_equal(cvy_model_append(model, "relu", "a b", &at, " "), CVY_ERR_INPUT);
    assert_said("layer 'a b': expected 1 to 200 of letters");
    assert_int_equal(cvy_model_append(model, "relu", "input", &at, " "), CVY_ERR_INPUT);
    assert_said("layer 'input': the name is taken");
    cvy_model_destroy(&model);
}

static void test_graph_is_checked(void **state)
{
    (void)state;
    cvy_model *model = start_model(CVY_SHAPE(3, 8, 8));
    int at = 0, other = 0;
    const int wrong[] = {0, 9};
    cvy_layer_spec sum = {.kind = "add", .name = "a", .input = wrong, .inputs = 2};
    assert_int_equal(cvy_model_add(model, &sum, NULL), CVY_ERR_INPUT);
    sum.inputs = 1;
    assert_int_equal(cvy_model_add(model, &sum, NULL), CVY_ERR_INPUT);
    assert_said("layer a: found 1 inputs, expected at least 2 for kind add");
    assert_int_equal(cvy_model_finish(model), CVY_ERR_INPUT); /* an input alone */
    assert_int_equal(cvy_model_append(model, "global-pool", "pool", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append_add(model, "sum", 0, at, NULL), CVY_ERR_INPUT);
    assert_said("layer sum: the inputs are 1x3x8x8 and 1x3x1x1, expected equal shapes");
    assert_int_equal(cvy_model_append(model, "relu", "idle", &other, " "), CVY_OK);
    assert_int_equal(cvy_model_append(model, "flatten", "flat", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_finish(model), CVY_ERR_INPUT);
    assert_said("layer flat: the model ends here, expected a loss");
    assert_int_equal(cvy_model_append(model, "mean-squared-error", "loss", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_finish(model), CVY_ERR_INPUT);
    assert_said("layer idle: no layer takes its output");
    other = at;
    assert_int_equal(cvy_model_append(model, "relu", "late", &other, " "), CVY_ERR_INPUT);
    assert_said("layer late: takes the loss layer loss as input");
    assert_int_equal(cvy_model_output(model), cvy_model_find_layer(model, "flat"));
    cvy_model_destroy(&model);
}

/* Each allocation fails once: the answer is out of memory, the model is as before, nothing leaks or dangles. */
static void test_exhausted_memory_leaves_no_trace(void **state)
{
    (void)state;
    cvy_model *model = start_model(CVY_SHAPE(3, 8, 8));
    cvy_status status = CVY_ERR_MEMORY;
    for (int count = 0; status != CVY_OK; count++) {
        int at = 0;
        cvy_memory_fail_after(count);
        status = cvy_model_append(model, "batch-norm", "bn", &at, "epsilon: 0.1");
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK || status == CVY_ERR_MEMORY);
        assert_int_equal(model->layers, status == CVY_OK ? 2 : 1);
        assert_int_equal(cvy_model_find_parameter(model, "bn.bias"), status == CVY_OK ? 1 : -1);
    }
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolution_shapes),
        cmocka_unit_test(test_transposed_convolution_shapes_and_parameters),
        cmocka_unit_test(test_shapes_of_the_other_kinds),
        cmocka_unit_test(test_pooling_counts_positions_as_pytorch_does),
        cmocka_unit_test(test_ceil_mode_becomes_padding_at_the_high_end),
        cmocka_unit_test(test_convolution_parameters),
        cmocka_unit_test(test_concat_and_its_companions),
        cmocka_unit_test(test_dense_and_norm_parameters),
        cmocka_unit_test(test_ops_carry_the_options),
        cmocka_unit_test(test_options_of_activations_and_losses),
        cmocka_unit_test(test_multiply_takes_a_factor_for_each_channel),
        cmocka_unit_test(test_every_pass_is_in_the_table_of_ops),
        cmocka_unit_test(test_inputs_that_do_not_fit_are_refused),
        cmocka_unit_test(test_wrong_options_say_what_is_expected),
        cmocka_unit_test(test_names_are_checked),
        cmocka_unit_test(test_graph_is_checked),
        cmocka_unit_test(test_exhausted_memory_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
