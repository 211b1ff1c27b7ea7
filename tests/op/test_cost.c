/* What ops cost, in numbers by hand, and that a hash knows every field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/shapes.h"

static cvy_op make(const test_shape *shape, cvy_op_pass pass)
{
    cvy_op op;
    assert_true(make_op(shape, pass, CVY_F32, &op));
    return op;
}

/* torchvision's AlexNet conv1: 64 filters of 3x11x11 at 55x55 positions: 2 * 64 * 363 * 3025 = 140,553,600, and
 * 64 * 3025 = 193,600 additions of a bias. */
static void test_flop_of_alexnet_conv1(void **state)
{
    (void)state;
    test_shape shape = CASE("", CONVOLUTION(SQUARE(11, 4, 1, 2)), DIMS(1, 3, 224, 224), .filters = 64);
    cvy_op forward = make(&shape, CVY_PASS_FORWARD);
    cvy_op data = make(&shape, CVY_PASS_BACKWARD_DATA);
    cvy_op weights = make(&shape, CVY_PASS_BACKWARD_WEIGHTS);
    assert_true(cvy_op_flop(&forward) == 140553600.0);
    assert_true(cvy_op_flop(&data) == 140553600.0);
    assert_true(cvy_op_flop(&weights) == 140553600.0);
    shape.optional = true;
    shape.x.extent[0] = 10;
    forward = make(&shape, CVY_PASS_FORWARD);
    weights = make(&shape, CVY_PASS_BACKWARD_WEIGHTS);
    assert_true(cvy_op_flop(&forward) == 1407472000.0);
    assert_true(cvy_op_flop(&weights) == 1407472000.0);
}

/*
 * 32 filters of 16/4 channels, 3x3x3, at 8x8x8: 2 * 32 * 4 * 27 * 512 = 3,538,944; four times that without groups.
 */
static void test_flop_of_groups_and_depth(void **state)
{
    (void)state;
    test_shape shape = CASE("", GROUPED(4, CUBE(3, 1, 1, 1)), DIMS(1, 16, 8, 8, 8), .filters = 32);
    cvy_op op = make(&shape, CVY_PASS_FORWARD);
    assert_true(cvy_op_flop(&op) == 3538944.0);
    shape.op.params.window.groups = 1;
    op = make(&shape, CVY_PASS_FORWARD);
    assert_true(cvy_op_flop(&op) == 4.0 * 3538944.0);
}

/*
 * 16 channels at 4x4x4 spread over 2x2x2 for each of 8 filters: 2 * 16 * 8 * 8 * 64 = 131,072 in each pass; the bias is
 * added to 8 * 512 outputs.
 */
static void test_flop_of_a_transposed_convolution(void **state)
{
    (void)state;
    test_shape shape = CASE("", TRANSPOSED(1, CUBE(2, 2, 1, 0)), DIMS(1, 16, 4, 4, 4), .filters = 8, .optional = true);
    cvy_op forward = make(&shape, CVY_PASS_FORWARD);
    cvy_op data = make(&shape, CVY_PASS_BACKWARD_DATA);
    cvy_op weights = make(&shape, CVY_PASS_BACKWARD_WEIGHTS);
    assert_true(cvy_op_flop(&forward) == 131072.0 + 4096.0);
    assert_true(cvy_op_flop(&data) == 131072.0);
    assert_true(cvy_op_flop(&weights) == 131072.0 + 4096.0);
}

/* AlexNet's classifier.1: 2 * 9216 * 4096 = 75,497,472 a sample, and 4096 for the bias. */
static void test_flop_of_dense(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_DENSE}, DIMS(2, 9216), .filters = 4096, .optional = true);
    cvy_op forward = make(&shape, CVY_PASS_FORWARD);
    cvy_op data = make(&shape, CVY_PASS_BACKWARD_DATA);
    assert_true(cvy_op_flop(&forward) == 2.0 * (75497472.0 + 4096.0));
    assert_true(cvy_op_flop(&data) == 2.0 * 75497472.0);
}

/* 2x3x4x4 in windows of 2x2: 24 outputs of 4 comparisons, or 4 additions and a division; relu: 96 elements. */
static void test_flop_of_small_ops(void **state)
{
    (void)state;
    test_shape shape = CASE("", POOL_MAX(SQUARE(2, 2, 1, 0)), DIMS(2, 3, 4, 4));
    cvy_op op = make(&shape, CVY_PASS_FORWARD);
    assert_true(cvy_op_flop(&op) == 96.0);
    op = make(&shape, CVY_PASS_BACKWARD_DATA);
    assert_true(cvy_op_flop(&op) == 24.0);
    shape.op.kind = CVY_OP_POOL_AVERAGE;
    op = make(&shape, CVY_PASS_FORWARD);
    assert_true(cvy_op_flop(&op) == 120.0);
    shape.op.kind = CVY_OP_RELU;
    op = make(&shape, CVY_PASS_FORWARD);
    assert_true(cvy_op_flop(&op) == 96.0);
    shape.op = (cvy_op)RESPONSE(5, 1.0, 0.75, 1.0); /* 5 squares and sums; two for the scale, a power, a product */
    op = make(&shape, CVY_PASS_FORWARD);
    assert_true(cvy_op_flop(&op) == 14.0 * 96.0);
    shape.op = (cvy_op)SGD(0.9, true, 0.1); /* g + wd w, mu v + g, g + mu v, w - lr d: four multiply-adds */
    shape.optional = true;
    op = make(&shape, CVY_PASS_UPDATE);
    assert_true(cvy_op_flop(&op) == 8.0 * 96.0);
    shape.op = (cvy_op)SGD(0.0, false, 0.0);
    shape.optional = false;
    op = make(&shape, CVY_PASS_UPDATE);
    assert_true(cvy_op_flop(&op) == 2.0 * 96.0);
}

static double flop_of(const char *name, cvy_op_pass pass)
{
    cvy_op op = make(find_shape(name), pass);
    return cvy_op_flop(&op);
}

/*
 * Of 90 elements in 7 channels, 630: batch norm's 6 and 8 an element, 1 more for the relu; backward y is made twice, of
 * a product, a sum and a comparison. 2 x 11 x 5 x 7 = 770: two gradients are one addition more. Max pooling of
 * 2x16x7x6 leaves 2x16x3x3 = 288: four comparisons and the relu's; backward an addition and a comparison of each. The
 * gradient of averages compares every element of x, as 2 x 11 means of 20.
 */
static void test_flop_of_a_relu_in_an_op(void **state)
{
    (void)state;
    assert_true(flop_of("batch norm, relu", CVY_PASS_FORWARD) == 7.0 * 630.0);
    assert_true(flop_of("batch norm, relu", CVY_PASS_BACKWARD) == 14.0 * 630.0);
    assert_true(flop_of("batch norm, relu", CVY_PASS_GRAD_STATS) == 7.0 * 630.0);
    assert_true(flop_of("conv 3x3, relu", CVY_PASS_FORWARD) ==
                flop_of("conv 3x3", CVY_PASS_FORWARD) + 2.0 * 16.0 * 7.0 * 9.0);
    assert_true(flop_of("relu of two gradients", CVY_PASS_BACKWARD_DATA) == 2.0 * 770.0);
    assert_true(flop_of("max pool 2x2, 16 channels, relu", CVY_PASS_FORWARD) == 5.0 * 288.0);
    assert_true(flop_of("max pool 2x2, 16 channels, relu", CVY_PASS_BACKWARD_DATA) == 2.0 * 288.0);
    assert_true(flop_of("global pool, relu", CVY_PASS_BACKWARD_DATA) == 22.0 + 440.0);
}

static bool only_moves(const cvy_op *op)
{
    return op->kind == CVY_OP_REORDER || op->kind == CVY_OP_CONCAT || op->kind == CVY_OP_PICK ||
           op->kind == CVY_OP_FRAME || (op->kind == CVY_OP_SLICE && !op->relu);
}

/* What only moves computes nothing; the fused batch norm costs what its parts cost. */
static void test_flop_of_every_op(void **state)
{
    (void)state;
    cvy_op op;
    for (int i = 0; i < test_shape_count; i++) {
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            if (make_op(&test_shapes[i], (cvy_op_pass)pass, CVY_F32, &op)) {
                assert_true((cvy_op_flop(&op) > 0.0) == !only_moves(&op));
            }
        }
    }
    assert_true(flop_of("batch norm", CVY_PASS_FORWARD) ==
                flop_of("batch norm", CVY_PASS_STATS) + flop_of("batch norm", CVY_PASS_NORMALISE));
    assert_true(flop_of("multiply", CVY_PASS_FORWARD) == 3 * 11 * 5 * 7); /* a product; and dy x1, dy x, a sum */
    assert_true(flop_of("multiply", CVY_PASS_BACKWARD) == 3 * 3 * 11 * 5 * 7);
    assert_true(flop_of("batch norm", CVY_PASS_BACKWARD) ==
                flop_of("batch norm", CVY_PASS_GRAD_STATS) + flop_of("batch norm", CVY_PASS_GRAD_APPLY));
}

/* 2x11x5x7: 770 elements, in blocks of 8 channels 2*16*5*7 = 1120. An updated operand moves both ways. */
static void test_bytes(void **state)
{
    (void)state;
    cvy_op op = make(find_shape("relu"), CVY_PASS_FORWARD);
    assert_true(cvy_op_bytes(&op) == 2.0 * 4.0 * 770.0);
    op.operand[1].tensor.format = CVY_FORMAT_C8;
    assert_true(cvy_op_bytes(&op) == 4.0 * 770.0 + 4.0 * 1120.0);
    op.operand[1].tensor.dtype = CVY_F64;
    assert_true(cvy_op_bytes(&op) == 4.0 * 770.0 + 8.0 * 1120.0);
    op = make(find_shape("sgd with momentum"), CVY_PASS_UPDATE); /* 270 elements: dw once, w and v twice */
    assert_true(cvy_op_bytes(&op) == 5.0 * 4.0 * 270.0);
}

/* Of what parts are taken out of, the part alone is read: a slice is read and written, whatever it is cut out of. */
static void test_bytes_of_parts(void **state)
{
    (void)state;
    cvy_op op = make(find_shape("slice from the first"), CVY_PASS_BACKWARD_DATA);
    double part = (double)cvy_tensor_bytes(&op.operand[op.operands - 1].tensor);
    assert_true(cvy_tensor_bytes(&op.operand[0].tensor) > part);
    assert_true(cvy_op_bytes(&op) == 2.0 * part);
}

/*
 * FNV-1a over the words 6, 0, 2 and, for x and y, role, access, type, format, grouped, dimensions, 2, 3; computed
 * apart.
 */
static void test_hash_of_a_known_op(void **state)
{
    (void)state;
    test_shape shape = CASE("", {.kind = CVY_OP_RELU}, DIMS(2, 3));
    cvy_op op = make(&shape, CVY_PASS_FORWARD);
    assert_true(cvy_op_hash(&op) == UINT64_C(0x72bd72618afd56e0));
}

/* Bytes between fields, unused operands and members of other kinds do not count. */
static void test_hash_ignores_what_is_not_said(void **state)
{
    (void)state;
    cvy_op op = make(find_shape("conv 3x3"), CVY_PASS_FORWARD);
    cvy_op copy;
    memset(&copy, 0xAA, sizeof copy);
    copy.kind = op.kind;
    copy.pass = op.pass;
    copy.relu = op.relu;
    copy.params.window.groups = op.params.window.groups;
    copy.params.window.count_padding = op.params.window.count_padding;
    copy.params.window.winograd = op.params.window.winograd;
    copy.params.window.window = op.params.window.window;
    copy.operands = op.operands;
    for (int i = 0; i < op.operands; i++) {
        copy.operand[i].role = op.operand[i].role;
        copy.operand[i].access = op.operand[i].access;
        copy.operand[i].tensor.dtype = op.operand[i].tensor.dtype;
        copy.operand[i].tensor.format = op.operand[i].tensor.format;
        copy.operand[i].tensor.grouped = op.operand[i].tensor.grouped;
        copy.operand[i].tensor.shape.dims = op.operand[i].tensor.shape.dims;
        memcpy(copy.operand[i].tensor.shape.extent, op.operand[i].tensor.shape.extent,
               (size_t)op.operand[i].tensor.shape.dims * sizeof(int64_t));
    }
    assert_true(memcmp(&op, &copy, sizeof op) != 0);
    assert_true(cvy_op_hash(&op) == cvy_op_hash(&copy));
    op = make(find_shape("relu"), CVY_PASS_FORWARD);
    copy = op;
    copy.params.norm.epsilon = 1.0;
    assert_true(cvy_op_hash(&op) == cvy_op_hash(&copy));
}

enum { MAX_HASHES = 64 };

/* Hashes seen so far: each new one must differ from all. */
typedef struct hashes {
    int count;
    uint64_t seen[MAX_HASHES];
} hashes;

static void add_hash(hashes *known, const cvy_op *op)
{
    uint64_t hash = cvy_op_hash(op);
    for (int i = 0; i < known->count; i++) {
        assert_true(known->seen[i] != hash);
    }
    assert_true(known->count < MAX_HASHES);
    known->seen[known->count++] = hash;
}

/* Change one field, take the hash, and change it back. */
#define VARY(known, op, field, other)             \
    do {                                          \
        __typeof__((op).field) kept = (op).field; \
        (op).field = (other);                     \
        add_hash((known), &(op));                 \
        (op).field = kept;                        \
    } while (0)

static void test_hash_differs_with_each_field_of_a_convolution(void **state)
{
    (void)state;
    hashes known = {0};
    cvy_op op = make(find_shape("conv uneven padding"), CVY_PASS_FORWARD);
    add_hash(&known, &op);
    VARY(&known, op, pass, CVY_PASS_INFERENCE);
    VARY(&known, op, relu, true);
    VARY(&known, op, kind, CVY_OP_POOL_MAX);
    for (int axis = 0; axis < 3; axis++) {
        VARY(&known, op, params.window.window.kernel[axis], 9);
        VARY(&known, op, params.window.window.stride[axis], 9);
        VARY(&known, op, params.window.window.dilation[axis], 9);
        VARY(&known, op, params.window.window.before[axis], 9);
        VARY(&known, op, params.window.window.after[axis], -1);
    }
    VARY(&known, op, params.window.groups, 2);
    VARY(&known, op, params.window.count_padding, true);
    VARY(&known, op, params.window.winograd, true);
    VARY(&known, op, operands, 3);
    for (int i = 0; i < op.operands; i++) {
        VARY(&known, op, operand[i].role, CVY_ROLE_MOMENT2);
        VARY(&known, op, operand[i].access, CVY_ACCESS_UPDATE);
        VARY(&known, op, operand[i].tensor.dtype, CVY_F64);
        VARY(&known, op, operand[i].tensor.format, CVY_FORMAT_C16);
        VARY(&known, op, operand[i].tensor.grouped, true);
        VARY(&known, op, operand[i].tensor.shape.extent[0], 77);
    }
    VARY(&known, op, operand[0].tensor.shape.dims, 3);
    VARY(&known, op, operand[0].tensor.shape.extent[3], 78);
}

static void test_hash_differs_with_the_place_of_a_share(void **state)
{
    (void)state;
    hashes known = {0};
    cvy_op share = make(find_shape("dropout of a share"), CVY_PASS_FORWARD);
    add_hash(&known, &share);
    VARY(&known, share, params.dropout.whole[1], 2);
    VARY(&known, share, params.dropout.first[3], 0);
    VARY(&known, share, params.dropout.stretches.at[1].end, 20);
    VARY(&known, share, params.dropout.stretched, 2);
    VARY(&known, share, params.dropout.stretches.count, 0);
    VARY(&known, share, params.dropout.whole[0], 0);
}

static void test_hash_differs_with_other_parameters(void **state)
{
    (void)state;
    hashes known = {0};
    cvy_op norm = make(find_shape("batch norm"), CVY_PASS_FORWARD);
    add_hash(&known, &norm);
    VARY(&known, norm, params.norm.epsilon, 1e-3);
    VARY(&known, norm, params.norm.momentum, 0.2);
    VARY(&known, norm, params.norm.count, 7);
    cvy_op dropout = make(find_shape("dropout 0.5"), CVY_PASS_FORWARD);
    add_hash(&known, &dropout);
    VARY(&known, dropout, params.dropout.probability, 0.25);
    VARY(&known, dropout, params.dropout.layer, 4);
    cvy_op sgd = make(find_shape("sgd with momentum"), CVY_PASS_UPDATE);
    add_hash(&known, &sgd);
    VARY(&known, sgd, params.optimizer.momentum, 0.5);
    VARY(&known, sgd, params.optimizer.nesterov, true);
    VARY(&known, sgd, params.optimizer.weight_decay, 0.5);
    cvy_op adamw = make(find_shape("adamw"), CVY_PASS_UPDATE);
    add_hash(&known, &adamw);
    VARY(&known, adamw, params.optimizer.beta1, 0.5);
    VARY(&known, adamw, params.optimizer.beta2, 0.5);
    VARY(&known, adamw, params.optimizer.epsilon, 0.5);
    cvy_op leaky = make(find_shape("leaky relu"), CVY_PASS_FORWARD);
    add_hash(&known, &leaky);
    VARY(&known, leaky, params.activation.slope, 0.5);
    cvy_op depth = make(find_shape("stochastic depth 0.5"), CVY_PASS_FORWARD);
    add_hash(&known, &depth);
    VARY(&known, depth, params.dropout.probability, 0.25);
    VARY(&known, depth, params.dropout.layer, 4);
    cvy_op loss = make(find_shape("smoothed cross-entropy"), CVY_PASS_FORWARD);
    add_hash(&known, &loss);
    VARY(&known, loss, params.loss.smoothing, 0.5);
    cvy_op dice = make(find_shape("dice of voxels"), CVY_PASS_FORWARD);
    add_hash(&known, &dice);
    VARY(&known, dice, params.loss.epsilon, 0.5);
    cvy_op slice = make(find_shape("slice from the first"), CVY_PASS_BACKWARD_DATA);
    add_hash(&known, &slice);
    VARY(&known, slice, params.slice.first, 3);
    cvy_op group = make(find_shape("group norm"), CVY_PASS_FORWARD);
    add_hash(&known, &group);
    VARY(&known, group, params.group.epsilon, 1e-3);
    VARY(&known, group, params.group.groups, 5);
    cvy_op response = make(find_shape("response norm (alexnet)"), CVY_PASS_FORWARD);
    add_hash(&known, &response);
    VARY(&known, response, params.response.size, 3);
    VARY(&known, response, params.response.alpha, 1e-3);
    VARY(&known, response, params.response.beta, 0.5);
    VARY(&known, response, params.response.k, 1.0);
    cvy_op lars = make(find_shape("lars"), CVY_PASS_UPDATE);
    add_hash(&known, &lars);
    VARY(&known, lars, params.optimizer.clip_value, 0.5);
    VARY(&known, lars, params.optimizer.trust, 0.5);
    VARY(&known, lars, params.optimizer.slot, 1);
    cvy_op average = make(find_shape("average"), CVY_PASS_UPDATE);
    add_hash(&known, &average);
    VARY(&known, average, params.average.decay, 0.5);
    cvy_op clip = make(find_shape("clip"), CVY_PASS_UPDATE);
    add_hash(&known, &clip);
    VARY(&known, clip, params.squares.clip_norm, 0.5);
    VARY(&known, clip, params.squares.slot, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flop_of_alexnet_conv1),
        cmocka_unit_test(test_flop_of_groups_and_depth),
        cmocka_unit_test(test_flop_of_a_transposed_convolution),
        cmocka_unit_test(test_flop_of_dense),
        cmocka_unit_test(test_flop_of_small_ops),
        cmocka_unit_test(test_flop_of_a_relu_in_an_op),
        cmocka_unit_test(test_flop_of_every_op),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bytes_of_parts),
        cmocka_unit_test(test_hash_of_a_known_op),
        cmocka_unit_test(test_hash_ignores_what_is_not_said),
        cmocka_unit_test(test_hash_differs_with_each_field_of_a_convolution),
        cmocka_unit_test(test_hash_differs_with_the_place_of_a_share),
        cmocka_unit_test(test_hash_differs_with_other_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
