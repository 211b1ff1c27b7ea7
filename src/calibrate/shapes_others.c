/* Every op but convolutions: what passes over memory, products of vectors, losses, rules of optimizers, copies. */
#include "calibrate/shapes_internal.h"

#include "base/checked.h"

enum { IN_2D = 2, IN_3D = 3 };

static const double volumes = 0.25; /* share of the maps that are volumes */

static int draw_space(cvy_dice *dice) { return cvy_dice_chance(dice, volumes) ? IN_3D : IN_2D; }

static void draw_map(cvy_dice *dice, cvy_drawn_shape *shape)
{
    shape->x = cvy_draw_map(dice, draw_space(dice));
    shape->filters = shape->x.extent[1];
    if (cvy_dice_chance(dice, 0.25)) {
        int dim = (int)cvy_dice_even(dice, 0, 2);
        shape->x.extent[dim] = cvy_draw_share(dice, shape->x.extent[dim]);
    }
}

/* Three in four are whole multiples of 64, as in nets: products of matrices take longer for any others. */
static int64_t draw_width(cvy_dice *dice, int64_t least, int64_t most)
{
    enum { LANES = 64 };
    bool whole = cvy_dice_chance(dice, 0.75);
    int64_t width = cvy_dice_log(dice, whole ? LANES : least, most);
    return whole ? cvy_min_i64(cvy_round_up(width, LANES), most) : width;
}

/* The last layer of a classifier now and then. */
static int64_t draw_outputs(cvy_dice *dice)
{
    enum { MOST = 4096 };
    static const int64_t classes[] = {10, 100, 1000};
    return cvy_dice_chance(dice, 0.25) ? classes[cvy_dice_even(dice, 0, 2)] : draw_width(dice, 2, MOST);
}

static void draw_dense(cvy_dice *dice, cvy_drawn_shape *shape)
{
    enum { MOST_SAMPLES = 512, MOST_INPUTS = 25088 };
    shape->x = CVY_SHAPE(cvy_dice_log(dice, 1, MOST_SAMPLES), draw_width(dice, 8, MOST_INPUTS));
    shape->filters = draw_outputs(dice);
    if (cvy_dice_chance(dice, 0.25)) {
        shape->filters = cvy_draw_share(dice, shape->filters);
    }
}

static void draw_batch_norm(cvy_dice *dice, cvy_drawn_shape *shape)
{
    draw_map(dice, shape);
    int64_t elements = cvy_shape_elements(&shape->x) / shape->x.extent[1];
    shape->op.params.norm = (cvy_op_params_norm){.epsilon = 1e-5, .momentum = 0.1, .count = elements + 1, .merged = 1};
}

static void draw_group_norm(cvy_dice *dice, cvy_drawn_shape *shape)
{
    int64_t groups = (int64_t)1 << cvy_dice_even(dice, 0, 5);
    draw_map(dice, shape);
    shape->x.extent[1] = cvy_round_up(shape->x.extent[1], groups);
    shape->op.params.group = (cvy_op_params_group_norm){.epsilon = 1e-5, .groups = groups};
}

static void draw_pooling(cvy_dice *dice, cvy_drawn_shape *shape)
{
    int64_t kernel = cvy_dice_even(dice, 2, 3), stride = cvy_dice_even(dice, 1, 2);
    draw_map(dice, shape);
    int64_t pad = kernel == 3 && cvy_dice_chance(dice, 0.5) ? 1 : 0;
    shape->op.params.window.window = cvy_make_window(shape->x.dims - 2, kernel, stride, pad);
    shape->op.params.window.groups = 1;
    shape->op.params.window.count_padding = true;
}

static void draw_dropout(cvy_dice *dice, cvy_drawn_shape *shape)
{
    draw_map(dice, shape);
    shape->op.params.dropout.probability = 0.5;
    if (cvy_dice_chance(dice, 0.5)) { /* between dense layers */
        shape->x = CVY_SHAPE(cvy_dice_log(dice, 1, 512), cvy_dice_log(dice, 64, 8192));
    }
}

static void draw_concat(cvy_dice *dice, cvy_drawn_shape *shape)
{
    draw_map(dice, shape);
    shape->filters = 2 * shape->x.extent[1];
}

/* Out of twice to sixteen times as many channels, as dense blocks join many parts. */
static void draw_slice(cvy_dice *dice, cvy_drawn_shape *shape)
{
    draw_map(dice, shape);
    shape->filters = shape->x.extent[1] * cvy_dice_log(dice, 2, 16);
}

static void draw_response(cvy_dice *dice, cvy_drawn_shape *shape)
{
    shape->x = cvy_draw_map(dice, IN_2D);
    shape->op.params.response = (cvy_op_params_response){.size = 5, .alpha = 1e-4, .beta = 0.75, .k = 1.0};
}

static void draw_classes(cvy_dice *dice, cvy_drawn_shape *shape)
{
    shape->x = CVY_SHAPE(cvy_dice_log(dice, 1, 1024), cvy_dice_log(dice, 2, 1000));
}

static void draw_values(cvy_dice *dice, cvy_drawn_shape *shape)
{
    shape->x = CVY_SHAPE(cvy_dice_log(dice, 1, 1024), cvy_dice_log(dice, 1, 1000));
}

static void draw_segments(cvy_dice *dice, cvy_drawn_shape *shape)
{
    shape->x = cvy_draw_map(dice, draw_space(dice));
    shape->x.extent[1] = cvy_dice_log(dice, 2, 32);
    shape->op.params.loss.epsilon = 1e-5;
}

static void draw_parameter(cvy_dice *dice, cvy_drawn_shape *shape)
{
    enum { MOST = 1 << 25 };
    shape->x = CVY_SHAPE(cvy_dice_log(dice, 64, MOST));
    shape->op.params.optimizer = (cvy_op_params_optimizer){.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999,
                                                           .epsilon = 1e-8, .weight_decay = 1e-4, .trust = 1e-3,
                                                           .slots = 2};
}

static void draw_squares(cvy_dice *dice, cvy_drawn_shape *shape)
{
    draw_parameter(dice, shape);
    shape->op.params.squares = (cvy_op_params_squares){.slots = 1, .clip_norm = 1.0};
}

/* A rank's share of channels or of rows. */
static void draw_pick(cvy_dice *dice, cvy_drawn_shape *shape)
{
    shape->x = cvy_draw_map(dice, draw_space(dice));
    int dim = (int)cvy_dice_even(dice, 1, 2);
    int64_t ranks = cvy_min_i64((int64_t)1 << cvy_dice_even(dice, 1, 4), shape->x.extent[dim]);
    shape->op.params.pick = (cvy_op_params_pick){.dim = dim,
                                                 .intervals = cvy_intervals_share(shape->x.extent[dim], ranks, 0)};
}

/* One to three rows more at one edge or at both: a halo's place. */
static void draw_frame(cvy_dice *dice, cvy_drawn_shape *shape)
{
    shape->x = cvy_draw_map(dice, draw_space(dice));
    cvy_op_params_frame *frame = &shape->op.params.frame;
    int64_t halo = cvy_dice_even(dice, 1, 3), edges = cvy_dice_even(dice, 1, 2);
    int axis = shape->x.dims == 5 ? 0 : 1;
    cvy_space_get(&shape->x, frame->output);
    frame->output[axis] += halo * edges;
    frame->first[axis] = -halo;
}

#define PASS(name) (1u << CVY_PASS_##name)
#define THERE_AND_BACK (PASS(FORWARD) | PASS(BACKWARD_DATA))
#define ALL_THREE (THERE_AND_BACK | PASS(BACKWARD_WEIGHTS))

const cvy_shape_family cvy_shape_table[] = {
    {"convolution", CVY_OP_CONVOLUTION, ALL_THREE, 4, cvy_draw_convolution},
    {"convolution 3x3", CVY_OP_CONVOLUTION, ALL_THREE, 6, cvy_draw_convolution_3x3},
    {"convolution in groups", CVY_OP_CONVOLUTION, ALL_THREE, 1, cvy_draw_convolution_grouped},
    {"convolution by depth", CVY_OP_CONVOLUTION, ALL_THREE, 2, cvy_draw_convolution_depthwise},
    {"convolution of volumes", CVY_OP_CONVOLUTION, ALL_THREE, 4, cvy_draw_convolution_volume},
    {"convolution transposed", CVY_OP_TRANSPOSED_CONVOLUTION, ALL_THREE, 1, cvy_draw_convolution_transposed},
    {"dense", CVY_OP_DENSE, ALL_THREE, 3, draw_dense},
    {"batch norm", CVY_OP_BATCH_NORM, PASS(FORWARD) | PASS(BACKWARD), 4, draw_batch_norm},
    {"batch norm in parts", CVY_OP_BATCH_NORM,
     PASS(STATS) | PASS(NORMALISE) | PASS(GRAD_STATS) | PASS(GRAD_APPLY) | PASS(COMMIT), 1, draw_batch_norm},
    {"group norm", CVY_OP_GROUP_NORM, PASS(FORWARD) | PASS(BACKWARD), 1, draw_group_norm},
    {"max pooling", CVY_OP_POOL_MAX, THERE_AND_BACK, 3, draw_pooling},
    {"average pooling", CVY_OP_POOL_AVERAGE, THERE_AND_BACK, 1, draw_pooling},
    {"global pooling", CVY_OP_POOL_GLOBAL, THERE_AND_BACK, 1, draw_map},
    {"relu", CVY_OP_RELU, THERE_AND_BACK, 3, draw_map},
    {"relu6", CVY_OP_RELU6, THERE_AND_BACK, 1, draw_map},
    {"sigmoid", CVY_OP_SIGMOID, THERE_AND_BACK, 1, draw_map},
    {"tanh", CVY_OP_TANH, THERE_AND_BACK, 1, draw_map},
    {"silu", CVY_OP_SILU, THERE_AND_BACK, 1, draw_map},
    {"hard swish", CVY_OP_HARD_SWISH, THERE_AND_BACK, 1, draw_map},
    {"dropout", CVY_OP_DROPOUT, THERE_AND_BACK, 1, draw_dropout},
    {"add", CVY_OP_ADD, PASS(FORWARD), 2, draw_map},
    {"multiply", CVY_OP_MULTIPLY, PASS(FORWARD) | PASS(BACKWARD), 1, draw_map},
    {"concat", CVY_OP_CONCAT, PASS(FORWARD), 1, draw_concat},
    {"slice", CVY_OP_SLICE, PASS(BACKWARD_DATA), 1, draw_slice},
    {"local response norm", CVY_OP_LOCAL_RESPONSE_NORM, THERE_AND_BACK, 1, draw_response},
    {"cross-entropy", CVY_OP_SOFTMAX_CROSS_ENTROPY, THERE_AND_BACK, 1, draw_classes},
    {"squared error", CVY_OP_MEAN_SQUARED_ERROR, THERE_AND_BACK, 1, draw_values},
    {"soft Dice", CVY_OP_SOFT_DICE, THERE_AND_BACK, 1, draw_segments},
    {"sgd", CVY_OP_SGD, PASS(UPDATE), 2, draw_parameter},
    {"adamw", CVY_OP_ADAMW, PASS(UPDATE), 1, draw_parameter},
    {"adam", CVY_OP_ADAM, PASS(UPDATE), 1, draw_parameter},
    {"lars", CVY_OP_LARS, PASS(UPDATE), 1, draw_parameter},
    {"sum of squares", CVY_OP_SQUARE_SUM, PASS(UPDATE), 1, draw_squares},
    {"reorder", CVY_OP_REORDER, PASS(FORWARD), 2, draw_map},
    {"pick", CVY_OP_PICK, PASS(FORWARD), 1, draw_pick},
    {"frame", CVY_OP_FRAME, PASS(FORWARD), 1, draw_frame},
    {"convolution 5x5", CVY_OP_CONVOLUTION, ALL_THREE, 4, cvy_draw_convolution_5x5},
    {"convolution 1x1", CVY_OP_CONVOLUTION, ALL_THREE, 6, cvy_draw_convolution_1x1},
};

const int cvy_shape_table_size = sizeof cvy_shape_table / sizeof cvy_shape_table[0];
