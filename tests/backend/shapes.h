/*
 * One list of named op configurations, for the tests of every backend: small, and awkward on purpose (odd extents,
 * channels that fill no block, strides that leave a rest, uneven padding). Each makes the op of each pass that its kind
 * has, all operands plain; a test then sets the formats it wants.
 *
 *     for (int i = 0; i < test_shape_count; i++)
 *         for (int pass = 0; pass < CVY_PASS_COUNT; pass++)
 *             if (make_op(&test_shapes[i], (cvy_op_pass)pass, CVY_F32, &op)) …
 */
#ifndef CVY_TESTS_BACKEND_SHAPES_H
#define CVY_TESTS_BACKEND_SHAPES_H

#include "op/op.h"

typedef struct test_shape {
    const char *name;
    cvy_op op;       /**< kind and parameters */
    cvy_shape x;     /**< the input; the parameter of an optimizer; the source of a reorder */
    int64_t filters; /**< outputs of a convolution or dense layer; channels of a concat, of what is sliced */
    bool optional;   /**< with the optional operands: bias, velocity */
    cvy_shape y;     /**< of a reorder; 0 dimensions: as x */
    bool grouped;    /**< a reorder of weights with a leading g */
    int64_t samples; /**< valid samples of a loss; 0: all */
    int64_t others[3]; /**< channels of the inputs of a concat beside x; 0: there is none */
    bool clipped;    /**< a rule with the scale of clipping */
    bool relu;       /**< passes that may be a relu's too are */
} test_shape;

#define DIMS(...) {(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), {__VA_ARGS__}}

/* A square window in 2-D: kernel, stride, dilation, padding at both ends. */
#define SQUARE(k, s, e, p) {{1, k, k}, {1, s, s}, {1, e, e}, {0, p, p}, {0, p, p}}
/* The same in 3-D. */
#define CUBE(k, s, e, p) {{k, k, k}, {s, s, s}, {e, e, e}, {p, p, p}, {p, p, p}}

#define CONVOLUTION(...) {.kind = CVY_OP_CONVOLUTION, .params.window = {.window = __VA_ARGS__, .groups = 1}}
#define GROUPED(g, ...) {.kind = CVY_OP_CONVOLUTION, .params.window = {.window = __VA_ARGS__, .groups = g}}
#define TRANSPOSED(g, ...) \
    {.kind = CVY_OP_TRANSPOSED_CONVOLUTION, .params.window = {.window = __VA_ARGS__, .groups = g}}
#define POOL_MAX(...) {.kind = CVY_OP_POOL_MAX, .params.window = {.window = __VA_ARGS__, .groups = 1}}
#define POOL_AVERAGE(counted, ...) \
    {.kind = CVY_OP_POOL_AVERAGE, .params.window = {.window = __VA_ARGS__, .groups = 1, .count_padding = counted}}
#define ADAPTIVE(od, oh, ow) {.kind = CVY_OP_POOL_ADAPTIVE, .params.adaptive = {{od, oh, ow}}}
#define BATCH_NORM(total) \
    {.kind = CVY_OP_BATCH_NORM, .params.norm = {.epsilon = 1e-5, .momentum = 0.1, .count = total, .merged = 1}}
#define DROPOUT(p, index) {.kind = CVY_OP_DROPOUT, .params.dropout = {.probability = p, .layer = index}}
/* Of a share of a sample: extents c,d,h,w of the whole, first index in each, the dimension with stretches, these. */
#define DROPOUT_OF_SHARE(c, d, h, w, first_c, first_d, first_h, first_w, along, ...)                 \
    {.kind = CVY_OP_DROPOUT,                                                                         \
     .params.dropout = {.probability = 0.4, .layer = 5, .whole = {c, d, h, w}, .stretched = along,    \
                        .first = {first_c, first_d, first_h, first_w}, .stretches = __VA_ARGS__}}
#define LEAKY_RELU(below) {.kind = CVY_OP_LEAKY_RELU, .params.activation = {.slope = below}}
#define STOCHASTIC_DEPTH(p, index) \
    {.kind = CVY_OP_STOCHASTIC_DEPTH, .params.dropout = {.probability = p, .layer = index}}
#define SMOOTHED(share) {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY, .params.loss = {.smoothing = share}}
#define DICE(added) {.kind = CVY_OP_SOFT_DICE, .params.loss = {.epsilon = added}}
#define SGD(m, n, decay) \
    {.kind = CVY_OP_SGD, .params.optimizer = {.momentum = m, .nesterov = n, .weight_decay = decay}}
#define ADAMW(decay)        \
    {.kind = CVY_OP_ADAMW, \
     .params.optimizer = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = decay}}

#define ADAM(decay)        \
    {.kind = CVY_OP_ADAM, \
     .params.optimizer = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = decay}}
#define GLOBAL(count) {.kind = CVY_OP_POOL_GLOBAL, .params.global.positions = count}
#define PICK(along, ...) {.kind = CVY_OP_PICK, .params.pick = {.dim = along, .intervals = __VA_ARGS__}}
#define FRAME(d, h, w, od, oh, ow) {.kind = CVY_OP_FRAME, .params.frame = {{d, h, w}, {od, oh, ow}}}
#define OF_POSITIONS(count) {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY, .params.loss = {.positions = count}}
#define SLICE(channel) {.kind = CVY_OP_SLICE, .params.slice.first = channel}
#define GROUP_NORM(g) {.kind = CVY_OP_GROUP_NORM, .params.group = {.epsilon = 1e-5, .groups = g}}
#define RESPONSE(size_, alpha_, beta_, k_)   \
    {.kind = CVY_OP_LOCAL_RESPONSE_NORM, \
     .params.response = {.size = size_, .alpha = alpha_, .beta = beta_, .k = k_}}
/* Every number of a rule at once; two places of its own in `squares`. */
#define RULE(kind_, cut)                                                                                     \
    {.kind = kind_, .params.optimizer = {.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8,     \
                                         .weight_decay = 0.01, .clip_value = cut, .trust = 0.02, .slots = 2}}
#define AVERAGE(share) {.kind = CVY_OP_AVERAGE, .params.average = {.decay = share}}
#define SQUARES(kind_) {.kind = kind_, .params.squares = {.slots = 1, .clip_norm = 0.125}}

#define CASE(name_, op_, x_, ...) {.name = name_, .op = op_, .x = x_, __VA_ARGS__}

static const test_shape test_shapes[] = {
    CASE("conv 3x3", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(2, 8, 7, 9), .filters = 16, .optional = true),
    CASE("conv 3x3 without bias", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(2, 16, 6, 5), .filters = 8),
    CASE("conv 5x5, 3 channels", CONVOLUTION(SQUARE(5, 1, 1, 2)), DIMS(2, 3, 13, 11), .filters = 7, .optional = true),
    CASE("conv 5x5, 1 channel (lenet5 conv1)", CONVOLUTION(SQUARE(5, 1, 1, 0)), DIMS(2, 1, 12, 12), .filters = 20,
         .optional = true),
    CASE("conv 5x5, 20 to 50 (lenet5 conv2)", CONVOLUTION(SQUARE(5, 1, 1, 0)), DIMS(1, 20, 8, 8), .filters = 50,
         .optional = true),
    CASE("conv 11x11 stride 4 (alexnet conv1)", CONVOLUTION(SQUARE(11, 4, 1, 2)), DIMS(1, 3, 19, 23), .filters = 8,
         .optional = true),
    CASE("conv 7x7 stride 2 (resnet stem)", CONVOLUTION(SQUARE(7, 2, 1, 3)), DIMS(1, 3, 15, 14), .filters = 16),
    CASE("conv stride 3", CONVOLUTION(SQUARE(3, 3, 1, 1)), DIMS(3, 5, 14, 13), .filters = 6, .optional = true),
    CASE("conv stride 2 beyond a kernel of 1", CONVOLUTION(SQUARE(1, 2, 1, 0)), DIMS(2, 12, 9, 8), .filters = 20),
    CASE("conv 1x1", CONVOLUTION(SQUARE(1, 1, 1, 0)), DIMS(3, 24, 5, 7), .filters = 11, .optional = true),
    CASE("conv 4x2, even kernel", CONVOLUTION({{1, 4, 2}, {1, 2, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 0}}),
         DIMS(2, 6, 9, 8), .filters = 9, .optional = true),
    CASE("conv dilation 2", CONVOLUTION(SQUARE(3, 1, 2, 2)), DIMS(2, 8, 9, 10), .filters = 8, .optional = true),
    CASE("conv dilation 2 stride 2", CONVOLUTION(SQUARE(3, 2, 2, 1)), DIMS(1, 7, 12, 15), .filters = 5),
    CASE("conv uneven padding", CONVOLUTION({{1, 3, 5}, {1, 1, 2}, {1, 1, 1}, {0, 0, 3}, {0, 2, 1}}),
         DIMS(2, 9, 8, 11), .filters = 10, .optional = true),
    CASE("conv negative padding", CONVOLUTION({{1, 3, 3}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0}, {0, -1, -2}}),
         DIMS(2, 4, 8, 9), .filters = 8, .optional = true),
    CASE("conv padding beyond the kernel", CONVOLUTION(SQUARE(2, 1, 1, 3)), DIMS(1, 3, 4, 5), .filters = 4,
         .optional = true),
    CASE("conv as large as its input", CONVOLUTION(SQUARE(6, 1, 1, 0)), DIMS(3, 8, 6, 6), .filters = 17,
         .optional = true),
    CASE("conv over one pixel", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(2, 16, 1, 1), .filters = 16, .optional = true),
    CASE("conv 3 groups", GROUPED(3, SQUARE(3, 1, 1, 1)), DIMS(2, 9, 6, 7), .filters = 6, .optional = true),
    CASE("conv 2 groups of 16 (alexnet conv2)", GROUPED(2, SQUARE(5, 1, 1, 2)), DIMS(1, 32, 7, 7), .filters = 16,
         .optional = true),
    CASE("conv depthwise", GROUPED(8, SQUARE(3, 1, 1, 1)), DIMS(2, 8, 7, 8), .filters = 8, .optional = true),
    CASE("conv depthwise stride 2, 21 channels", GROUPED(21, SQUARE(3, 2, 1, 1)), DIMS(1, 21, 9, 9), .filters = 21),
    CASE("conv depthwise, 2 filters a channel", GROUPED(5, SQUARE(3, 1, 1, 0)), DIMS(2, 5, 6, 6), .filters = 10,
         .optional = true),
    CASE("conv 3-D", CONVOLUTION(CUBE(3, 1, 1, 1)), DIMS(2, 4, 5, 6, 7), .filters = 6, .optional = true),
    CASE("conv 3-D, 1 channel (cosmoflow conv1)", CONVOLUTION(CUBE(3, 1, 1, 1)), DIMS(1, 1, 6, 7, 5), .filters = 16,
         .optional = true),
    CASE("conv 3-D stride 2", CONVOLUTION(CUBE(4, 2, 1, 1)), DIMS(1, 8, 7, 8, 6), .filters = 8),
    CASE("conv 3-D uneven", CONVOLUTION({{2, 3, 1}, {1, 2, 3}, {2, 1, 1}, {1, 0, 0}, {0, 1, 0}}), DIMS(2, 3, 5, 6, 8),
         .filters = 5, .optional = true),
    CASE("conv 3-D 2 groups", GROUPED(2, CUBE(2, 1, 1, 0)), DIMS(1, 6, 3, 4, 5), .filters = 4, .optional = true),

    CASE("dense 10 to 7", {.kind = CVY_OP_DENSE}, DIMS(5, 10), .filters = 7, .optional = true),
    CASE("dense 33 to 16 without bias", {.kind = CVY_OP_DENSE}, DIMS(4, 33), .filters = 16),
    CASE("dense 1 to 1", {.kind = CVY_OP_DENSE}, DIMS(1, 1), .filters = 1, .optional = true),
    CASE("dense 400 to 120, one sample", {.kind = CVY_OP_DENSE}, DIMS(1, 400), .filters = 120, .optional = true),

    CASE("max pool 2x2", POOL_MAX(SQUARE(2, 2, 1, 0)), DIMS(2, 20, 8, 6)),
    CASE("max pool 3x3 stride 2, overlapping", POOL_MAX(SQUARE(3, 2, 1, 0)), DIMS(2, 5, 9, 11)),
    CASE("max pool 3x3 stride 2 padded (resnet)", POOL_MAX(SQUARE(3, 2, 1, 1)), DIMS(1, 16, 8, 9)),
    CASE("max pool 2x3, uneven", POOL_MAX({{1, 2, 3}, {1, 1, 2}, {1, 1, 1}, {0, 1, 0}, {0, 0, 2}}), DIMS(2, 8, 7, 8)),
    CASE("max pool ceil mode", POOL_MAX({{1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 1, 1}}), DIMS(1, 3, 6, 8)),
    CASE("max pool that leaves a rest", POOL_MAX({{1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, -1, -1}}),
         DIMS(2, 4, 7, 5)),
    CASE("max pool 17x17, index beyond a byte", POOL_MAX(SQUARE(17, 1, 1, 0)), DIMS(1, 2, 18, 19)),
    CASE("max pool 3-D", POOL_MAX(CUBE(2, 2, 1, 0)), DIMS(2, 3, 4, 6, 5)),
    CASE("average pool 2x2", POOL_AVERAGE(true, SQUARE(2, 2, 1, 0)), DIMS(2, 9, 6, 8)),
    CASE("average pool 3x3, padding counted", POOL_AVERAGE(true, SQUARE(3, 2, 1, 1)), DIMS(2, 8, 7, 9)),
    CASE("average pool 3x3, padding not counted", POOL_AVERAGE(false, SQUARE(3, 2, 1, 1)), DIMS(2, 8, 7, 9)),
    CASE("average pool overlapping, uneven",
         POOL_AVERAGE(false, {{1, 3, 2}, {1, 1, 3}, {1, 1, 1}, {0, 1, 0}, {0, 0, 1}}), DIMS(1, 17, 6, 7)),
    CASE("average pool that leaves a rest",
         POOL_AVERAGE(true, {{1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, -1, -1}}), DIMS(2, 4, 7, 5)),
    CASE("average pool 3-D, padding counted", POOL_AVERAGE(true, CUBE(3, 2, 1, 1)), DIMS(1, 4, 5, 6, 4)),
    CASE("average pool 3-D, padding not counted", POOL_AVERAGE(false, CUBE(3, 2, 1, 1)), DIMS(1, 4, 5, 6, 4)),
    CASE("global pool", {.kind = CVY_OP_POOL_GLOBAL}, DIMS(2, 19, 7, 5)),
    CASE("global pool 3-D", {.kind = CVY_OP_POOL_GLOBAL}, DIMS(2, 8, 3, 4, 5)),

    CASE("adaptive pool 7x5 to 3x2", ADAPTIVE(1, 3, 2), DIMS(2, 11, 7, 5)),
    CASE("adaptive pool 2x2 to 6x6 (alexnet, small)", ADAPTIVE(1, 6, 6), DIMS(2, 8, 2, 2)),
    CASE("adaptive pool to itself", ADAPTIVE(1, 4, 4), DIMS(1, 3, 4, 4)),
    CASE("adaptive pool 3-D", ADAPTIVE(2, 3, 1), DIMS(2, 5, 5, 4, 3)),

    CASE("batch norm", BATCH_NORM(3 * 6 * 5), DIMS(3, 7, 6, 5)),
    CASE("batch norm, 16 channels", BATCH_NORM(2 * 5 * 7), DIMS(2, 16, 5, 7)),
    CASE("batch norm 3-D", BATCH_NORM(2 * 3 * 4 * 5), DIMS(2, 3, 3, 4, 5)),
    CASE("batch norm of vectors", BATCH_NORM(8), DIMS(8, 5)),

    CASE("relu", {.kind = CVY_OP_RELU}, DIMS(2, 11, 5, 7)),
    CASE("relu 3-D", {.kind = CVY_OP_RELU}, DIMS(1, 6, 3, 4, 5)),
    CASE("relu of vectors", {.kind = CVY_OP_RELU}, DIMS(4, 37)),
    CASE("add", {.kind = CVY_OP_ADD}, DIMS(2, 13, 4, 6)),
    CASE("add 3-D", {.kind = CVY_OP_ADD}, DIMS(1, 5, 3, 4, 5)),
    CASE("add of vectors", {.kind = CVY_OP_ADD}, DIMS(3, 29)),
    CASE("dropout 0.5", DROPOUT(0.5, 3), DIMS(4, 101)),
    CASE("dropout 0.3", DROPOUT(0.3, 7), DIMS(3, 10, 5, 7)),
    CASE("dropout of nothing", DROPOUT(0.0, 1), DIMS(2, 9)),
    CASE("dropout of a share", DROPOUT_OF_SHARE(23, 1, 9, 7, 0, 0, 3, 1, 0, {2, {{1, 4}, {12, 19}}}),
         DIMS(3, 10, 5, 6)),
    CASE("dropout of a corner, 3-D", DROPOUT_OF_SHARE(9, 5, 6, 7, 2, 1, 2, 0, 0, {0}), DIMS(2, 7, 2, 4, 5)),
    CASE("dropout of a share of vectors", DROPOUT_OF_SHARE(99, 1, 1, 1, 0, 0, 0, 0, 0, {2, {{3, 8}, {60, 92}}}),
         DIMS(4, 37)),

    CASE("cross-entropy", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(6, 10)),
    CASE("cross-entropy, 3 samples of 5 valid", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(5, 17), .samples = 3),
    CASE("cross-entropy, one class", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(3, 1)),
    CASE("squared error", {.kind = CVY_OP_MEAN_SQUARED_ERROR}, DIMS(4, 9)),
    CASE("squared error, 2 samples of 6 valid", {.kind = CVY_OP_MEAN_SQUARED_ERROR}, DIMS(6, 4), .samples = 2),

    CASE("reorder", {.kind = CVY_OP_REORDER}, DIMS(2, 13, 5, 6)),
    CASE("reorder 3-D", {.kind = CVY_OP_REORDER}, DIMS(1, 9, 3, 4, 5)),
    CASE("reorder that flattens", {.kind = CVY_OP_REORDER}, DIMS(3, 10, 2, 3), .y = DIMS(3, 60)),
    CASE("reorder of grouped weights", {.kind = CVY_OP_REORDER}, DIMS(3, 4, 5, 3, 3), .grouped = true),

    CASE("sgd", SGD(0.0, false, 0.0), DIMS(6, 5, 3, 3)),
    CASE("sgd with decay", SGD(0.0, false, 0.01), DIMS(23)),
    CASE("sgd with momentum", SGD(0.9, false, 0.0005), DIMS(6, 5, 3, 3), .optional = true),
    CASE("sgd after Nesterov", SGD(0.9, true, 0.0005), DIMS(40, 7), .optional = true),
    CASE("adamw", ADAMW(0.01), DIMS(6, 5, 3, 3)),
    CASE("adamw of a vector", ADAMW(0.0), DIMS(19)),
    CASE("adam", ADAM(0.01), DIMS(6, 5, 3, 3)),

    CASE("relu6", {.kind = CVY_OP_RELU6}, DIMS(2, 11, 5, 7)),
    CASE("relu6 of vectors", {.kind = CVY_OP_RELU6}, DIMS(4, 37)),
    CASE("leaky relu", LEAKY_RELU(0.125), DIMS(2, 11, 5, 7)),
    CASE("leaky relu 3-D, slope 0", LEAKY_RELU(0.0), DIMS(1, 6, 3, 4, 5)),
    CASE("sigmoid", {.kind = CVY_OP_SIGMOID}, DIMS(2, 11, 5, 7)),
    CASE("sigmoid 3-D", {.kind = CVY_OP_SIGMOID}, DIMS(1, 6, 3, 4, 5)),
    CASE("sigmoid of vectors", {.kind = CVY_OP_SIGMOID}, DIMS(4, 37)),
    CASE("sigmoid of factors", {.kind = CVY_OP_SIGMOID}, DIMS(3, 21, 1, 1)),
    CASE("tanh", {.kind = CVY_OP_TANH}, DIMS(2, 11, 5, 7)),
    CASE("tanh of vectors", {.kind = CVY_OP_TANH}, DIMS(4, 37)),
    CASE("silu", {.kind = CVY_OP_SILU}, DIMS(2, 11, 5, 7)),
    CASE("silu 3-D", {.kind = CVY_OP_SILU}, DIMS(1, 6, 3, 4, 5)),
    CASE("hard swish", {.kind = CVY_OP_HARD_SWISH}, DIMS(2, 11, 5, 7)),
    CASE("hard swish of vectors", {.kind = CVY_OP_HARD_SWISH}, DIMS(4, 37)),
    CASE("multiply", {.kind = CVY_OP_MULTIPLY}, DIMS(3, 11, 5, 7)),
    CASE("multiply, 16 channels", {.kind = CVY_OP_MULTIPLY}, DIMS(2, 16, 4, 3)),
    CASE("multiply 3-D", {.kind = CVY_OP_MULTIPLY}, DIMS(2, 6, 3, 4, 5)),
    CASE("multiply of one position", {.kind = CVY_OP_MULTIPLY}, DIMS(3, 13, 1, 1)),
    CASE("multiply of vectors", {.kind = CVY_OP_MULTIPLY}, DIMS(4, 37)),
    CASE("stochastic depth 0.5", STOCHASTIC_DEPTH(0.5, 3), DIMS(6, 11, 5, 7)),
    CASE("stochastic depth of vectors", STOCHASTIC_DEPTH(0.3, 4), DIMS(9, 37)),
    CASE("stochastic depth of nothing", STOCHASTIC_DEPTH(0.0, 1), DIMS(2, 6, 3, 4, 5)),
    CASE("smoothed cross-entropy", SMOOTHED(0.1), DIMS(6, 10)),
    CASE("smoothed cross-entropy, 3 samples of 5 valid", SMOOTHED(0.25), DIMS(5, 17), .samples = 3),
    CASE("cross-entropy with all classes alike", SMOOTHED(1.0), DIMS(4, 7)),

    CASE("concat", {.kind = CVY_OP_CONCAT}, DIMS(2, 7, 5, 3), .others = {6}, .filters = 13),
    CASE("concat of 3, whole blocks and a rest", {.kind = CVY_OP_CONCAT}, DIMS(2, 16, 4, 5), .others = {8, 11},
         .filters = 35),
    CASE("concat of 4", {.kind = CVY_OP_CONCAT}, DIMS(3, 5, 3, 7), .others = {1, 19, 3}, .filters = 28),
    CASE("concat 3-D", {.kind = CVY_OP_CONCAT}, DIMS(1, 8, 3, 2, 5), .others = {3}, .filters = 11),
    CASE("concat of vectors", {.kind = CVY_OP_CONCAT}, DIMS(4, 9), .others = {2, 6}, .filters = 17),
    CASE("global pooling of a share", GLOBAL(60), DIMS(2, 9, 5, 6)),
    CASE("cross-entropy of a share of pixels", OF_POSITIONS(100), DIMS(3, 5, 6, 7), .samples = 2),
    CASE("pick of channels", PICK(1, {2, {{1, 4}, {9, 13}}}), DIMS(2, 13, 5, 3)),
    CASE("pick of rows", PICK(2, {1, {{2, 5}}}), DIMS(2, 6, 5, 3)),
    CASE("pick of columns, 3-D", PICK(4, {2, {{0, 1}, {3, 5}}}), DIMS(1, 3, 3, 2, 5)),
    CASE("pick of a vector's", PICK(1, {1, {{9, 17}}}), DIMS(4, 17)),
    CASE("frame around", FRAME(0, -1, -2, 1, 7, 6), DIMS(2, 9, 5, 3)),
    CASE("frame of a part", FRAME(0, 2, 0, 1, 3, 3), DIMS(2, 6, 5, 3)),
    CASE("frame aside, 3-D", FRAME(-2, 1, 0, 3, 4, 4), DIMS(1, 3, 3, 4, 5)),
    CASE("slice from the first", SLICE(0), DIMS(2, 7, 5, 3), .filters = 13),
    CASE("slice to the last", SLICE(7), DIMS(2, 6, 5, 3), .filters = 13),
    CASE("slice of whole blocks", SLICE(16), DIMS(2, 8, 4, 5), .filters = 35),
    CASE("slice across blocks", SLICE(6), DIMS(3, 19, 3, 7), .filters = 28),
    CASE("slice 3-D", SLICE(8), DIMS(1, 3, 3, 2, 5), .filters = 11),
    CASE("slice of vectors", SLICE(9), DIMS(4, 2), .filters = 17),
    CASE("group norm", GROUP_NORM(3), DIMS(3, 15, 6, 5)),
    CASE("group norm, 4 groups of 8", GROUP_NORM(4), DIMS(2, 32, 5, 7)),
    CASE("group norm of all channels", GROUP_NORM(1), DIMS(2, 11, 4, 5)),
    CASE("group norm of each channel", GROUP_NORM(9), DIMS(2, 9, 4, 5)),
    CASE("group norm 3-D", GROUP_NORM(2), DIMS(2, 6, 3, 4, 5)),
    CASE("group norm of vectors", GROUP_NORM(4), DIMS(3, 20)),
    CASE("response norm (alexnet)", RESPONSE(5, 1e-4, 0.75, 2.0), DIMS(2, 21, 5, 7)),
    CASE("response norm, strong", RESPONSE(3, 2.0, 0.75, 1.0), DIMS(2, 13, 4, 5)),
    CASE("response norm, even size", RESPONSE(4, 1.5, 0.5, 0.5), DIMS(2, 10, 3, 5)),
    CASE("response norm, wider than its input", RESPONSE(11, 3.0, 0.6, 1.0), DIMS(2, 4, 3, 3)),
    CASE("response norm of each channel", RESPONSE(1, 1.0, 1.0, 1.0), DIMS(1, 9, 4, 3)),
    CASE("response norm 3-D", RESPONSE(5, 1.0, 0.75, 2.0), DIMS(1, 17, 2, 3, 4)),
    CASE("response norm of vectors", RESPONSE(5, 1.0, 0.75, 2.0), DIMS(3, 33)),
    CASE("sgd clipped", RULE(CVY_OP_SGD, 0.25), DIMS(6, 5, 3, 3), .optional = true, .clipped = true),
    CASE("adam clipped", RULE(CVY_OP_ADAM, 0.25), DIMS(6, 5, 3, 3), .clipped = true),
    CASE("square sum", SQUARES(CVY_OP_SQUARE_SUM), DIMS(6, 5, 3, 3)),
    CASE("clip", SQUARES(CVY_OP_CLIP), DIMS(1)),
    CASE("lars", RULE(CVY_OP_LARS, 0.0), DIMS(6, 5, 3, 3), .optional = true, .clipped = true),
    CASE("lars of a vector", RULE(CVY_OP_LARS, 0.0), DIMS(19)),
    CASE("lamb direction", RULE(CVY_OP_LAMB_DIRECTION, 0.0), DIMS(6, 5, 3, 3)),
    CASE("lamb direction clipped", RULE(CVY_OP_LAMB_DIRECTION, 0.25), DIMS(6, 5, 3, 3), .clipped = true),
    CASE("lamb", RULE(CVY_OP_LAMB, 0.0), DIMS(6, 5, 3, 3), .optional = true),
    CASE("lamb of a vector", RULE(CVY_OP_LAMB, 0.0), DIMS(19)),
    CASE("average", AVERAGE(0.875), DIMS(6, 5, 3, 3)),
    CASE("transposed 3x3", TRANSPOSED(1, SQUARE(3, 1, 1, 1)), DIMS(2, 8, 7, 9), .filters = 16, .optional = true),
    CASE("transposed 2x2 stride 2 without bias", TRANSPOSED(1, SQUARE(2, 2, 1, 0)), DIMS(2, 16, 5, 4), .filters = 8),
    CASE("transposed stride 2, one row of output padding",
         TRANSPOSED(1, {{1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 0, 0}}), DIMS(2, 6, 4, 5), .filters = 10,
         .optional = true),
    CASE("transposed stride 3 beyond a kernel of 2, output padding",
         TRANSPOSED(1, {{1, 2, 2}, {1, 3, 3}, {1, 1, 1}, {0, 0, 0}, {0, -2, -1}}), DIMS(1, 3, 4, 3), .filters = 5,
         .optional = true),
    CASE("transposed dilation 2", TRANSPOSED(1, SQUARE(3, 1, 2, 1)), DIMS(2, 8, 6, 5), .filters = 8, .optional = true),
    CASE("transposed dilation 3, output padding beyond the stride",
         TRANSPOSED(1, {{1, 2, 2}, {1, 1, 1}, {1, 3, 3}, {0, 0, 0}, {0, -2, -2}}), DIMS(1, 4, 3, 4), .filters = 3),
    CASE("transposed 1x1 stride 2", TRANSPOSED(1, SQUARE(1, 2, 1, 0)), DIMS(2, 12, 4, 5), .filters = 20),
    CASE("transposed uneven padding", TRANSPOSED(1, {{1, 3, 5}, {1, 1, 2}, {1, 1, 1}, {0, 0, 3}, {0, 2, 1}}),
         DIMS(2, 9, 6, 5), .filters = 10, .optional = true),
    CASE("transposed 3 groups", TRANSPOSED(3, SQUARE(3, 2, 1, 1)), DIMS(2, 9, 4, 5), .filters = 6, .optional = true),
    CASE("transposed depthwise", TRANSPOSED(8, SQUARE(4, 2, 1, 1)), DIMS(2, 8, 4, 5), .filters = 8, .optional = true),
    CASE("transposed 3-D stride 2 (u-net)", TRANSPOSED(1, CUBE(2, 2, 1, 0)), DIMS(1, 16, 3, 2, 4), .filters = 16),
    CASE("transposed 3-D, output padding",
         TRANSPOSED(1, {{3, 3, 2}, {2, 2, 1}, {1, 1, 1}, {1, 1, 0}, {0, 1, 0}}), DIMS(2, 5, 3, 4, 3), .filters = 4,
         .optional = true),
    CASE("transposed 3-D 2 groups, dilation", TRANSPOSED(2, {{2, 2, 2}, {1, 2, 1}, {2, 1, 2}, {1, 0, 0}, {0, 0, 1}}),
         DIMS(1, 4, 4, 3, 5), .filters = 6, .optional = true),
    CASE("cross-entropy of pixels", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(3, 5, 7, 9), .samples = 2),
    CASE("cross-entropy of voxels", {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, DIMS(2, 3, 4, 3, 5)),
    CASE("smoothed cross-entropy of voxels", SMOOTHED(0.25), DIMS(2, 4, 3, 2, 3)),
    CASE("dice of pixels", DICE(1.0), DIMS(3, 4, 7, 9), .samples = 2),
    CASE("dice of voxels", DICE(0.25), DIMS(2, 3, 4, 3, 5)),
    CASE("dice of one class", DICE(1.0), DIMS(2, 1, 3, 4)),
    CASE("dice of one label a sample", DICE(0.5), DIMS(4, 6)),
    CASE("conv 3x3, relu", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(2, 8, 7, 9), .filters = 16, .optional = true,
         .relu = true),
    CASE("conv 7x7 stride 2 of 3 channels, relu", CONVOLUTION(SQUARE(7, 2, 1, 3)), DIMS(1, 3, 15, 14), .filters = 16,
         .optional = true, .relu = true),
    CASE("conv 1x1 without bias, relu", CONVOLUTION(SQUARE(1, 1, 1, 0)), DIMS(3, 24, 5, 7), .filters = 11,
         .relu = true),
    CASE("conv depthwise, relu", GROUPED(8, SQUARE(3, 1, 1, 1)), DIMS(2, 8, 7, 8), .filters = 8, .optional = true,
         .relu = true),
    CASE("conv 3-D, relu", CONVOLUTION(CUBE(3, 1, 1, 1)), DIMS(2, 4, 5, 6, 7), .filters = 6, .optional = true,
         .relu = true),
    CASE("batch norm, relu", BATCH_NORM(3 * 6 * 5), DIMS(3, 7, 6, 5), .relu = true),
    CASE("batch norm, 16 channels, relu", BATCH_NORM(2 * 5 * 7), DIMS(2, 16, 5, 7), .relu = true),
    CASE("batch norm 3-D, relu", BATCH_NORM(2 * 3 * 4 * 5), DIMS(2, 3, 3, 4, 5), .relu = true),
    CASE("batch norm of vectors, relu", BATCH_NORM(8), DIMS(8, 5), .relu = true),
    CASE("add, relu", {.kind = CVY_OP_ADD}, DIMS(2, 13, 4, 6), .relu = true),
    CASE("add of vectors, relu", {.kind = CVY_OP_ADD}, DIMS(3, 29), .relu = true),
    CASE("dense 33 to 16, relu", {.kind = CVY_OP_DENSE}, DIMS(4, 33), .filters = 16, .optional = true, .relu = true),
    CASE("max pool 3x3 stride 2, relu", POOL_MAX(SQUARE(3, 2, 1, 1)), DIMS(2, 9, 9, 8), .relu = true),
    CASE("max pool 2x2, 16 channels, relu", POOL_MAX(SQUARE(2, 2, 1, 0)), DIMS(2, 16, 7, 6), .relu = true),
    CASE("max pool 3-D, relu", POOL_MAX(CUBE(2, 2, 1, 0)), DIMS(2, 5, 4, 5, 6), .relu = true),
    CASE("max pool 17x17, relu", POOL_MAX(SQUARE(17, 1, 1, 0)), DIMS(1, 2, 18, 17), .relu = true),
    CASE("average pool 3x3 stride 2, relu", POOL_AVERAGE(true, SQUARE(3, 2, 1, 1)), DIMS(2, 9, 9, 8), .relu = true),
    CASE("average pool of the inside, relu", POOL_AVERAGE(false, SQUARE(3, 2, 1, 1)), DIMS(2, 16, 9, 8), .relu = true),
    CASE("average pool 3-D, relu", POOL_AVERAGE(true, CUBE(2, 2, 1, 0)), DIMS(2, 5, 4, 5, 6), .relu = true),
    CASE("global pool, relu", {.kind = CVY_OP_POOL_GLOBAL}, DIMS(2, 11, 5, 4), .relu = true),
    CASE("global pool 3-D, relu", {.kind = CVY_OP_POOL_GLOBAL}, DIMS(2, 3, 3, 5, 4), .relu = true),
    CASE("dropout 0.3, relu", DROPOUT(0.3, 7), DIMS(3, 10, 5, 7), .relu = true),
    CASE("dropout of vectors, relu", DROPOUT(0.5, 7), DIMS(3, 37), .relu = true),
    CASE("slice, relu", SLICE(5), DIMS(2, 9, 4, 6), .filters = 21, .relu = true),
    CASE("slice of blocks, relu", SLICE(16), DIMS(2, 16, 4, 3), .filters = 32, .relu = true),
    CASE("response norm over 5, relu", RESPONSE(5, 1.0, 0.75, 1.0), DIMS(2, 11, 5, 4), .relu = true),
    CASE("relu of two gradients", {.kind = CVY_OP_RELU}, DIMS(2, 11, 5, 7), .optional = true),
    CASE("relu of vectors, two gradients", {.kind = CVY_OP_RELU}, DIMS(4, 37), .optional = true),
};
enum { test_shape_count = sizeof test_shapes / sizeof test_shapes[0] };

/* Which input beside x a role is; -1 for all others. */
static inline int find_other(cvy_role role)
{
    return role == CVY_ROLE_X1 ? 0 : role == CVY_ROLE_X2 ? 1 : role == CVY_ROLE_X3 ? 2 : -1;
}

/* Describe one operand of a pass, plain. */
static inline cvy_status describe_operand(const test_shape *shape, const cvy_op *op, const cvy_tensor *x, cvy_role role,
                                          cvy_tensor *tensor_out)
{
    CVY_TRY(cvy_op_describe(op, x, shape->filters, role, tensor_out));
    if (op->kind == CVY_OP_REORDER && role == CVY_ROLE_Y && shape->y.dims) {
        tensor_out->shape = shape->y;
    }
    if (op->kind == CVY_OP_CONCAT && find_other(role) >= 0) {
        tensor_out->shape.extent[1] = shape->others[find_other(role)];
    }
    return CVY_OK;
}

static inline bool leaves_out(const test_shape *shape, cvy_op_pass pass, const cvy_signature_place *place)
{
    int other = find_other(place->role);
    if (cvy_op_tells_relu(shape->op.kind, pass, place->role)) {
        return !shape->relu;
    }
    if (place->role == CVY_ROLE_SCALE) {
        return place->optional && !shape->clipped;
    }
    return place->optional && (other >= 0 ? shape->others[other] == 0 : !shape->optional);
}

/* Make the op of a pass, all operands plain; false where the kind has no such pass (or, worded, on failure). */
static inline bool make_op(const test_shape *shape, cvy_op_pass pass, cvy_dtype dtype, cvy_op *op_out)
{
    const cvy_signature *signature = cvy_op_signature(shape->op.kind, pass);
    cvy_tensor x = {.shape = shape->x, .dtype = dtype, .grouped = shape->grouped};
    cvy_tensor tensor;
    *op_out = shape->op;
    op_out->pass = pass;
    op_out->relu = shape->relu && cvy_op_takes_relu(op_out->kind, pass);
    for (int i = 0; signature && i < signature->places; i++) {
        const cvy_signature_place *place = &signature->place[i];
        if (leaves_out(shape, pass, place)) {
            continue;
        }
        if (describe_operand(shape, op_out, &x, place->role, &tensor) != CVY_OK ||
            cvy_op_add(op_out, place->role, &tensor) != CVY_OK) {
            return false;
        }
    }
    return signature != NULL;
}

/* Find a configuration by its name; NULL if absent. */
static inline const test_shape *find_shape(const char *name)
{
    for (int i = 0; i < test_shape_count; i++) {
        if (__builtin_strcmp(test_shapes[i].name, name) == 0) {
            return &test_shapes[i];
        }
    }
    return NULL;
}

#endif
