/* The vocabulary: signatures, what an op makes of its input, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/shapes.h"

/* Passes of each kind, counted in the words of op.h. */
static void test_signatures_are_complete(void **state)
{
    static const int passes[CVY_OP_KIND_COUNT] = {3, 3, 3, 2, 2, 9, 2, 2, 1, 3, 3, 1, /* the optimizers */ 1, 1,
                                                  2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2,
                                                  1, 1, 1, 1, 1, 1, 3, 3, 1, 1};
    (void)state;
    for (int kind = 0; kind < CVY_OP_KIND_COUNT; kind++) {
        int found = 0;
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            const cvy_signature *signature = cvy_op_signature((cvy_op_kind)kind, (cvy_op_pass)pass);
            int written = 0;
            for (int i = 0; signature && i < signature->places; i++) {
                written += signature->place[i].access != CVY_ACCESS_READ;
                for (int j = 0; j < i; j++) { /* a role has one place */
                    assert_int_not_equal(signature->place[i].role, signature->place[j].role);
                }
            }
            assert_true(!signature || written > 0);
            found += signature != NULL;
        }
        assert_int_equal(found, passes[kind]);
        assert_non_null(cvy_op_kind_name((cvy_op_kind)kind));
    }
}

static void test_every_kind_and_pass_is_in_the_list_of_shapes(void **state)
{
    (void)state;
    for (int kind = 0; kind < CVY_OP_KIND_COUNT; kind++) {
        bool found = false;
        for (int i = 0; i < test_shape_count; i++) {
            found = found || (int)test_shapes[i].op.kind == kind;
        }
        assert_true(found);
    }
}

static void test_operands_keep_the_order_of_the_signature(void **state)
{
    (void)state;
    cvy_op op = {.kind = CVY_OP_RELU, .pass = CVY_PASS_FORWARD};
    cvy_tensor tensor = {.shape = CVY_SHAPE(2, 3)};
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_W, &tensor), CVY_ERR_ARG);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_Y, &tensor), CVY_OK);
    assert_int_equal(op.operand[0].access, CVY_ACCESS_WRITE);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_X, &tensor), CVY_ERR_ARG);
    assert_string_equal(cvy_error_message(), "relu forward takes no operand x here");
    assert_int_equal(cvy_op_check(&op), CVY_ERR_ARG);
    assert_string_equal(cvy_error_message(), "relu forward: operand x is missing");
}

/* Positions are counted by sliding: while the last tap is within the padded input, there is one more. */
static int64_t slide(const cvy_window *window, int axis, int64_t extent)
{
    int64_t positions = 0;
    for (int64_t at = -window->before[axis];; at += window->stride[axis]) {
        int64_t last = at + (window->kernel[axis] - 1) * window->dilation[axis];
        if (last >= extent + window->after[axis]) {
            return positions;
        }
        positions++;
    }
}

static void test_window_output_equals_sliding(void **state)
{
    (void)state;
    int64_t compared = 0;
    for (int64_t code = 0; code < 13 * 5 * 3 * 3 * 4 * 6; code++) {
        int64_t extent = 1 + code % 13;
        cvy_window window = {.kernel = {1, 1 + code / 13 % 5, 1},
                             .stride = {1, 1 + code / 65 % 3, 1},
                             .dilation = {1, 1 + code / 195 % 3, 1},
                             .before = {0, code / 585 % 4, 0},
                             .after = {0, code / 2340 % 6 - 2, 0}};
        int64_t expected = slide(&window, 1, extent);
        int64_t found = cvy_window_output(&window, 1, extent);
        assert_true(expected > 0 ? found == expected : found < 1);
        compared += expected > 0;
    }
    assert_true(compared > 10000);
}

/* The least extent with so many positions: one element less has one position less. */
static void test_window_input_is_the_least_that_slides_so_far(void **state)
{
    (void)state;
    for (int64_t code = 0; code < 6 * 5 * 3 * 3 * 3 * 4; code++) {
        int64_t positions = 1 + code % 6;
        cvy_window window = {.kernel = {1, 1 + code / 6 % 5, 1},
                             .stride = {1, 1 + code / 30 % 3, 1},
                             .dilation = {1, 1 + code / 90 % 3, 1},
                             .before = {0, code / 270 % 3, 0},
                             .after = {0, code / 810 % 4 - 2, 0}};
        int64_t found = cvy_window_input(&window, 1, positions);
        if (found >= 1) {
            assert_int_equal(slide(&window, 1, found), positions);
            assert_int_equal(slide(&window, 1, found - 1), positions - 1);
        }
    }
    assert_true(cvy_window_input(&(cvy_window)SQUARE(INT64_MAX, 1, 2, 0), 1, 5) < 1);
    assert_true(cvy_window_input(&(cvy_window)SQUARE(1, INT64_MAX, 1, 0), 1, 5) < 1);
}

static void test_window_output_does_not_wrap(void **state)
{
    (void)state;
    cvy_window window = SQUARE(INT64_MAX, 1, 2, 0);
    assert_true(cvy_window_output(&window, 1, 100) < 1);
    window = (cvy_window)SQUARE(3, 1, 1, INT64_MAX);
    assert_true(cvy_window_output(&window, 1, 100) < 1);
}

/* AlexNet's conv1: (224 + 2 + 2 - 11) / 4 + 1 = 55. VGG's pool halves; ResNet's stem: (224 + 6 - 7) / 2 + 1 = 112. */
static void test_describe_known_layers(void **state)
{
    (void)state;
    cvy_tensor x = {.shape = CVY_SHAPE(32, 3, 224, 224), .dtype = CVY_F32, .format = CVY_FORMAT_CHANNELS_LAST};
    cvy_tensor y;
    cvy_op conv = CONVOLUTION(SQUARE(11, 4, 1, 2));
    assert_int_equal(cvy_op_describe(&conv, &x, 64, CVY_ROLE_Y, &y), CVY_OK);
    assert_true(cvy_shape_equal(&y.shape, &CVY_SHAPE(32, 64, 55, 55)));
    assert_int_equal(y.format, CVY_FORMAT_CHANNELS_LAST);
    cvy_op stem = CONVOLUTION(SQUARE(7, 2, 1, 3));
    assert_int_equal(cvy_op_describe(&stem, &x, 64, CVY_ROLE_DY, &y), CVY_OK);
    assert_true(cvy_shape_equal(&y.shape, &CVY_SHAPE(32, 64, 112, 112)));
    cvy_op pool = POOL_MAX(SQUARE(2, 2, 1, 0));
    assert_int_equal(cvy_op_describe(&pool, &x, 0, CVY_ROLE_WINDOW, &y), CVY_OK);
    assert_true(cvy_shape_equal(&y.shape, &CVY_SHAPE(32, 3, 112, 112)));
    assert_int_equal(y.dtype, CVY_U8);
    cvy_op global = {.kind = CVY_OP_POOL_GLOBAL};
    assert_int_equal(cvy_op_describe(&global, &x, 0, CVY_ROLE_Y, &y), CVY_OK);
    assert_true(cvy_shape_equal(&y.shape, &CVY_SHAPE(32, 3, 1, 1)));
}

/* A byte tells 256 positions apart: 16x16 fits, 17x16 does not. */
static void test_describe_index_of_winner(void **state)
{
    (void)state;
    cvy_tensor x = {.shape = CVY_SHAPE(1, 1, 20, 20), .dtype = CVY_F32};
    cvy_tensor window;
    cvy_op pool = POOL_MAX(SQUARE(16, 1, 1, 0));
    assert_int_equal(cvy_op_describe(&pool, &x, 0, CVY_ROLE_WINDOW, &window), CVY_OK);
    assert_int_equal(window.dtype, CVY_U8);
    pool.params.window.window.kernel[1] = 17;
    assert_int_equal(cvy_op_describe(&pool, &x, 0, CVY_ROLE_WINDOW, &window), CVY_OK);
    assert_int_equal(window.dtype, CVY_I32);
}

static void test_describe_vectors_weights_and_loss(void **state)
{
    (void)state;
    cvy_tensor x = {.shape = CVY_SHAPE(4, 6, 5, 7, 9), .dtype = CVY_F64, .format = CVY_FORMAT_C8};
    cvy_tensor tensor;
    cvy_op conv = GROUPED(2, {{3, 1, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}});
    assert_int_equal(cvy_op_describe(&conv, &x, 8, CVY_ROLE_DW, &tensor), CVY_OK);
    assert_true(cvy_shape_equal(&tensor.shape, &CVY_SHAPE(2, 4, 3, 3, 1, 2)));
    assert_true(tensor.grouped && tensor.format == CVY_FORMAT_PLAIN && tensor.dtype == CVY_F64);
    assert_int_equal(cvy_op_describe(&conv, &x, 8, CVY_ROLE_B, &tensor), CVY_OK);
    assert_true(cvy_shape_equal(&tensor.shape, &CVY_SHAPE(8)));
    conv.kind = CVY_OP_TRANSPOSED_CONVOLUTION; /* channels first: 6 / 2, then 8 / 2 filters; 5 + 2, 7, 9 + 1 */
    assert_int_equal(cvy_op_describe(&conv, &x, 8, CVY_ROLE_W, &tensor), CVY_OK);
    assert_true(cvy_shape_equal(&tensor.shape, &CVY_SHAPE(2, 3, 4, 3, 1, 2)) && tensor.grouped);
    assert_int_equal(cvy_op_describe(&conv, &x, 8, CVY_ROLE_DB, &tensor), CVY_OK);
    assert_true(cvy_shape_equal(&tensor.shape, &CVY_SHAPE(8)));
    assert_int_equal(cvy_op_describe(&conv, &x, 8, CVY_ROLE_DY, &tensor), CVY_OK);
    assert_true(cvy_shape_equal(&tensor.shape, &CVY_SHAPE(4, 8, 7, 7, 10)) && tensor.format == CVY_FORMAT_C8);
    cvy_op norm = BATCH_NORM(1);
    assert_int_equal(cvy_op_describe(&norm, &x, 0, CVY_ROLE_RUNNING_VARIANCE, &tensor), CVY_OK);
    assert_true(cvy_shape_equal(&tensor.shape, &CVY_SHAPE(6)));
    cvy_op loss = {.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY};
    x = (cvy_tensor){.shape = CVY_SHAPE(4, 10), .dtype = CVY_F32};
    assert_int_equal(cvy_op_describe(&loss, &x, 0, CVY_ROLE_LABEL, &tensor), CVY_OK);
    assert_true(cvy_shape_equal(&tensor.shape, &CVY_SHAPE(4)) && tensor.dtype == CVY_I32);
    assert_int_equal(cvy_op_describe(&loss, &x, 0, CVY_ROLE_LOSS, &tensor), CVY_OK);
    assert_true(cvy_shape_equal(&tensor.shape, &CVY_SHAPE(2)) && tensor.dtype == CVY_F64);
}

static void test_windows_that_do_not_fit_are_input_errors(void **state)
{
    (void)state;
    cvy_tensor x = {.shape = CVY_SHAPE(1, 2, 4, 9), .dtype = CVY_F32};
    cvy_tensor y;
    cvy_op conv = CONVOLUTION(SQUARE(5, 1, 1, 0));
    assert_int_equal(cvy_op_describe(&conv, &x, 4, CVY_ROLE_Y, &y), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "a window of 5 along h"));
    conv.params.window.window.dilation[2] = 3; /* spans 13 of 9, and 4 + 2 reach for h */
    conv.params.window.window.before[1] = 1;
    assert_int_equal(cvy_op_describe(&conv, &x, 4, CVY_ROLE_Y, &y), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "along w"));
}

/* A pooling position that lies in the padding alone has no maximum and no mean: first, last, or between far taps. */
static void test_pooling_of_padding_alone_is_refused(void **state)
{
    (void)state;
    cvy_tensor x = {.shape = CVY_SHAPE(1, 2, 4, 4), .dtype = CVY_F32};
    cvy_tensor y;
    cvy_op pool = POOL_MAX(SQUARE(2, 1, 1, 1));
    assert_int_equal(cvy_op_describe(&pool, &x, 0, CVY_ROLE_Y, &y), CVY_OK);
    pool.params.window.window.before[1] = 2;
    assert_int_equal(cvy_op_describe(&pool, &x, 0, CVY_ROLE_Y, &y), CVY_ERR_INPUT);
    pool.params.window.window.before[1] = 0;
    pool.params.window.window.after[1] = 2;
    assert_int_equal(cvy_op_describe(&pool, &x, 0, CVY_ROLE_Y, &y), CVY_ERR_INPUT);
    /* Taps 2 apart over one element, padded by one: -1 and 1, never 0. */
    x.shape = CVY_SHAPE(1, 2, 1, 1);
    pool = (cvy_op)POOL_MAX(SQUARE(2, 1, 2, 1));
    assert_int_equal(cvy_op_describe(&pool, &x, 0, CVY_ROLE_Y, &y), CVY_ERR_INPUT);
    pool = (cvy_op)POOL_MAX(SQUARE(3, 1, 2, 2)); /* -2, 0, 2 */
    assert_int_equal(cvy_op_describe(&pool, &x, 0, CVY_ROLE_Y, &y), CVY_OK);
}

static void test_space(void **state)
{
    (void)state;
    int64_t space[3];
    cvy_space_get(&CVY_SHAPE(2, 3), space);
    assert_true(space[0] == 1 && space[1] == 1 && space[2] == 1);
    cvy_space_get(&CVY_SHAPE(2, 3, 5, 7), space);
    assert_true(space[0] == 1 && space[1] == 5 && space[2] == 7);
    cvy_space_get(&CVY_SHAPE(2, 3, 4, 5, 7), space);
    assert_true(space[0] == 4 && space[1] == 5 && space[2] == 7);
}

static void test_check_takes_every_shape(void **state)
{
    (void)state;
    cvy_op op;
    for (int i = 0; i < test_shape_count; i++) {
        int passes = 0;
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            if (make_op(&test_shapes[i], (cvy_op_pass)pass, pass % 2 ? CVY_F32 : CVY_F64, &op)) {
                assert_int_equal(cvy_op_check(&op), CVY_OK);
                passes++;
            } else {
                assert_null(cvy_op_signature(test_shapes[i].op.kind, (cvy_op_pass)pass));
            }
        }
        assert_true(passes > 0);
    }
}

/* Every operand of every op counts: one more sample (of statistics, which take any number of them: one more channel),
 * another type or another access is refused. A sum of squares takes any shape. */
static void test_check_refuses_a_wrong_operand(void **state)
{
    (void)state;
    cvy_op op;
    for (int i = 0; i < test_shape_count; i++) {
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            if (!make_op(&test_shapes[i], (cvy_op_pass)pass, CVY_F32, &op)) {
                continue;
            }
            for (int j = 0; j < op.operands; j++) {
                cvy_op wrong = op;
                wrong.operand[j].tensor.shape.extent[op.pass == CVY_PASS_STATS && j == 0]++;
                if (op.kind != CVY_OP_SQUARE_SUM || j > 0) {
                    assert_int_equal(cvy_op_check(&wrong), CVY_ERR_ARG);
                    assert_non_null(strstr(cvy_error_message(), cvy_op_kind_name(op.kind)));
                }
                wrong = op;
                wrong.operand[j].tensor.dtype = op.operand[j].tensor.dtype == CVY_I32 ? CVY_U8 : CVY_I32;
                assert_int_equal(cvy_op_check(&wrong), CVY_ERR_ARG);
                wrong = op;
                wrong.operand[j].access = CVY_ACCESS_NONE;
                assert_int_equal(cvy_op_check(&wrong), CVY_ERR_ARG);
            }
        }
    }
}

static void refuse(cvy_op op, const char *words)
{
    assert_int_equal(cvy_op_check(&op), CVY_ERR_ARG);
    if (!strstr(cvy_error_message(), words)) {
        fail_msg("'%s' does not say '%s'", cvy_error_message(), words);
    }
}

/* More than the sample has, in disorder, or a place without a sample. */
static void test_a_share_lies_within_its_sample(void **state)
{
    (void)state;
    cvy_op op, wrong;
    assert_true(make_op(find_shape("dropout of a share"), CVY_PASS_FORWARD, CVY_F32, &op));
    wrong = op;
    wrong.params.dropout.first[2] = 5; /* rows 5 to 9 of 9 are 4 */
    refuse(wrong, "a share of 5 from 5 on of 9 along h");
    wrong = op;
    wrong.params.dropout.stretches.at[1].end = 20;
    refuse(wrong, "a share of 10 from 0 on of 23 along c");
    wrong = op;
    wrong.params.dropout.stretches.at[1].begin = 3;
    refuse(wrong, "indices 3 to 19 of 23, in order");
    wrong = op;
    wrong.params.dropout.stretched = 4;
    refuse(wrong, "2 stretches along dimension 4 of no share");
    wrong = op;
    wrong.params.dropout.whole[0] = 0;
    refuse(wrong, "2 stretches along dimension 0 of no share");
}

static void test_check_refuses_parameters_that_make_no_sense(void **state)
{
    (void)state;
    cvy_op op, wrong;
    assert_true(make_op(find_shape("conv 3 groups"), CVY_PASS_FORWARD, CVY_F32, &op));
    wrong = op;
    wrong.params.window.groups = 2;
    refuse(wrong, "2 groups do not divide 9 channels and 6 filters");
    wrong = op;
    wrong.params.window.window.stride[1] = 0;
    refuse(wrong, "along h");
    wrong = op;
    wrong.params.window.window.kernel[0] = 2;
    refuse(wrong, "a window with depth over an input without");
    wrong = op;
    wrong.operand[1].tensor.grouped = false;
    refuse(wrong, "operand w is 3x2x3x3x3, expected 3x2x3x3x3 (grouped)");
    wrong = op;
    wrong.operand[0].tensor.format = CVY_FORMAT_W_G8;
    refuse(wrong, "operand x of 4 dimensions cannot lie in format g8");
    assert_true(make_op(find_shape("dropout 0.5"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.params.dropout.probability = 1.0;
    refuse(op, "probability 1");
    assert_true(make_op(find_shape("stochastic depth 0.5"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.params.dropout.probability = -0.5;
    refuse(op, "probability -0.5");
    assert_true(make_op(find_shape("leaky relu"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.params.activation.slope = -0.125; /* y would not tell the sign of x */
    refuse(op, "slope -0.125");
    assert_true(make_op(find_shape("smoothed cross-entropy"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.params.loss.smoothing = 1.5;
    refuse(op, "smoothing 1.5");
    assert_true(make_op(find_shape("multiply"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.operand[1].tensor.shape = CVY_SHAPE(3, 11, 5, 7);
    refuse(op, "operand x1 is 3x11x5x7, expected 3x11x1x1");
    assert_true(make_op(find_shape("batch norm"), CVY_PASS_COMMIT, CVY_F32, &op));
    op.params.norm.count = 0;
    refuse(op, "statistics over 0 elements");
    assert_true(make_op(find_shape("batch norm"), CVY_PASS_MERGE, CVY_F32, &op));
    op.params.norm.merged = op.params.norm.count;
    refuse(op, "statistics of ");
    assert_true(make_op(find_shape("max pool 2x2"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.operand[1].tensor.format = CVY_FORMAT_C8;
    refuse(op, "operand y is in format c8, expected plain as window");
    assert_true(make_op(find_shape("sgd with momentum"), CVY_PASS_UPDATE, CVY_F32, &op));
    op.operand[2].tensor.format = CVY_FORMAT_W_I8O8;
    refuse(op, "operand momentum is in format i8o8, expected plain as dw");
    assert_true(make_op(find_shape("square sum"), CVY_PASS_UPDATE, CVY_F32, &op));
    op.params.squares.slot = 1;
    refuse(op, "place 1 of 1 sums of squares");
    assert_true(make_op(find_shape("lars"), CVY_PASS_UPDATE, CVY_F32, &op));
    op.params.optimizer.slot = 1; /* it needs two */
    refuse(op, "place 1 of 2 sums of squares");
    assert_true(make_op(find_shape("clip"), CVY_PASS_UPDATE, CVY_F32, &op));
    op.params.squares.clip_norm = 0.0;
    refuse(op, "clipped to a norm of 0");
    op = (cvy_op){.kind = CVY_OP_RELU, .pass = CVY_PASS_UPDATE};
    refuse(op, "relu update: there is no such pass");
    op.operands = 99;
    refuse(op, "relu update");
    op.kind = (cvy_op_kind)77;
    refuse(op, "no op of kind 77");
}

static void test_check_refuses_a_relu_out_of_place(void **state)
{
    (void)state;
    cvy_op op;
    assert_true(make_op(find_shape("dense 10 to 7"), CVY_PASS_BACKWARD_DATA, CVY_F32, &op));
    op.relu = true;
    refuse(op, "there is none with relu");
    assert_true(make_op(find_shape("global pool"), CVY_PASS_BACKWARD_DATA, CVY_F32, &op));
    op.relu = true;
    refuse(op, "operand x is missing with relu");
    assert_true(make_op(find_shape("batch norm"), CVY_PASS_BACKWARD, CVY_F32, &op));
    op.relu = true;
    refuse(op, "operand b is missing with relu");
    assert_true(make_op(find_shape("batch norm, relu"), CVY_PASS_GRAD_STATS, CVY_F32, &op));
    op.relu = false;
    refuse(op, "operand w is there without relu");
}

static void test_check_refuses_labels_that_are_no_map(void **state)
{
    (void)state;
    cvy_op op;
    assert_true(make_op(find_shape("dice of pixels"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.params.loss.epsilon = 0.0; /* 0 / 0 of a class that is nowhere */
    refuse(op, "epsilon 0");
    op.params.loss.epsilon = 1.0;
    op.operand[1].tensor.format = CVY_FORMAT_CHANNELS_LAST;
    refuse(op, "operand label is in format channels-last, expected plain");
    op.operand[1].tensor = (cvy_tensor){.shape = CVY_SHAPE(3, 4, 7, 9), .dtype = CVY_I32};
    refuse(op, "operand label is 3x4x7x9, expected 3x7x9");
}

static void test_check_refuses_channels_that_do_not_add_up(void **state)
{
    (void)state;
    cvy_op op;
    assert_true(make_op(find_shape("concat of 4"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.operand[2].tensor.shape.extent[1] = 20;
    refuse(op, "inputs of 29 channels make 28");
    assert_true(make_op(find_shape("slice to the last"), CVY_PASS_BACKWARD_DATA, CVY_F32, &op));
    op.params.slice.first = 8;
    refuse(op, "channels 8 to 14 of 13");
    op.params.slice.first = -1;
    refuse(op, "channels -1");
    assert_true(make_op(find_shape("group norm"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.params.group.groups = 4;
    refuse(op, "4 groups do not divide 15 channels");
    assert_true(make_op(find_shape("response norm (alexnet)"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.params.response.k = 0.0;
    refuse(op, "k not above 0");
}

/* One group may be written o,i,… or with a leading g = 1. */
static void test_one_group_may_be_written_both_ways(void **state)
{
    (void)state;
    cvy_op op;
    assert_true(make_op(find_shape("conv 3x3"), CVY_PASS_FORWARD, CVY_F32, &op));
    op.operand[1].tensor.grouped = true;
    op.operand[1].tensor.shape = CVY_SHAPE(1, 16, 8, 3, 3);
    assert_int_equal(cvy_op_check(&op), CVY_OK);
    op.operand[1].tensor.shape = CVY_SHAPE(1, 8, 16, 3, 3);
    assert_int_equal(cvy_op_check(&op), CVY_ERR_ARG);
}

/* What comes out of a place has come from that place alone, but for sums of all: activations, sums and updates. */
static void test_kinds_that_go_element_by_element(void **state)
{
    (void)state;
    static const cvy_op_kind alike[] = {CVY_OP_RELU, CVY_OP_RELU6, CVY_OP_LEAKY_RELU, CVY_OP_SIGMOID, CVY_OP_TANH,
                                        CVY_OP_SILU, CVY_OP_HARD_SWISH, CVY_OP_DROPOUT, CVY_OP_STOCHASTIC_DEPTH,
                                        CVY_OP_ADD, CVY_OP_MEAN_SQUARED_ERROR, CVY_OP_SGD, CVY_OP_ADAM, CVY_OP_ADAMW,
                                        CVY_OP_LARS, CVY_OP_LAMB_DIRECTION, CVY_OP_LAMB, CVY_OP_SQUARE_SUM,
                                        CVY_OP_CLIP, CVY_OP_AVERAGE};
    int count = 0;
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        assert_true(cvy_op_is_elementwise(alike[i]));
    }
    for (int kind = 0; kind < CVY_OP_KIND_COUNT; kind++) {
        count += cvy_op_is_elementwise((cvy_op_kind)kind);
    }
    assert_int_equal(count, sizeof alike / sizeof *alike);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_that_go_element_by_element),
        cmocka_unit_test(test_signatures_are_complete),
        cmocka_unit_test(test_every_kind_and_pass_is_in_the_list_of_shapes),
        cmocka_unit_test(test_operands_keep_the_order_of_the_signature),
        cmocka_unit_test(test_window_output_equals_sliding),
        cmocka_unit_test(test_window_input_is_the_least_that_slides_so_far),
        cmocka_unit_test(test_window_output_does_not_wrap),
        cmocka_unit_test(test_describe_known_layers),
        cmocka_unit_test(test_describe_index_of_winner),
        cmocka_unit_test(test_describe_vectors_weights_and_loss),
        cmocka_unit_test(test_windows_that_do_not_fit_are_input_errors),
        cmocka_unit_test(test_pooling_of_padding_alone_is_refused),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_check_takes_every_shape),
        cmocka_unit_test(test_check_refuses_a_wrong_operand),
        cmocka_unit_test(test_a_share_lies_within_its_sample),
        cmocka_unit_test(test_check_refuses_parameters_that_make_no_sense),
        cmocka_unit_test(test_check_refuses_a_relu_out_of_place),
        cmocka_unit_test(test_check_refuses_labels_that_are_no_map),
        cmocka_unit_test(test_check_refuses_channels_that_do_not_add_up),
        cmocka_unit_test(test_one_group_may_be_written_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
