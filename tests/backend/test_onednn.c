/*
 * The oneDNN backend in f32 against the reference in double: every configuration of shapes.h, every pass, in plain,
 * channels-last and blocked formats. Nothing is skipped: whatever the backend refuses must be of a kind that problem.c
 * documents.
 */
#include "backend/rerun.h"

/* Activation formats of an op: those of its input side and of its output side. */
typedef struct format_pair {
    const char *name;
    cvy_format input, output;
} format_pair;

static const format_pair pairs[] = {
    {"plain", CVY_FORMAT_PLAIN, CVY_FORMAT_PLAIN},
    {"channels-last", CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_CHANNELS_LAST},
    {"c8", CVY_FORMAT_C8, CVY_FORMAT_C8},
    {"c16", CVY_FORMAT_C16, CVY_FORMAT_C16},
    {"plain to c8", CVY_FORMAT_PLAIN, CVY_FORMAT_C8},
    {"plain to c16", CVY_FORMAT_PLAIN, CVY_FORMAT_C16},
    {"channels-last to c8", CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_C8},
    {"c8 to plain", CVY_FORMAT_C8, CVY_FORMAT_PLAIN},
    {"c16 to channels-last", CVY_FORMAT_C16, CVY_FORMAT_CHANNELS_LAST},
};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

static cvy_role weight_role(const cvy_op *op)
{
    return cvy_op_index(op, CVY_ROLE_DW) >= 0 ? CVY_ROLE_DW : CVY_ROLE_W;
}

/* Set formats; weights take what the library wishes, given the others, and stay plain where it has no wish. */
static void set_pair(cvy_op *op, const format_pair *pair)
{
    set_formats(op, pair->output, CVY_FORMAT_PLAIN);
    int input = cvy_op_index(op, CVY_ROLE_X) >= 0 ? cvy_op_index(op, CVY_ROLE_X) : cvy_op_index(op, CVY_ROLE_DX);
    if (input >= 0) {
        cvy_tensor *x = &op->operand[input].tensor;
        x->format = pair->input;
        x->format = cvy_tensor_format_fits(x) ? pair->input : CVY_FORMAT_PLAIN;
    }
    if (cvy_op_has_weights(op->kind)) {
        cvy_role role = weight_role(op);
        cvy_format wish;
        if (cvy_backend_onednn.choose_format(op, role, &wish) == CVY_OK) {
            op->operand[cvy_op_index(op, role)].tensor.format = wish;
        }
    }
}

/* Passes that are left to other backends whatever their formats. */
static bool is_foreign(const cvy_op *op)
{
    if (op->relu && !cvy_op_has_weights(op->kind)) {
        return true;
    }
    switch (op->kind) {
    case CVY_OP_CONVOLUTION:
    case CVY_OP_TRANSPOSED_CONVOLUTION:
    case CVY_OP_DENSE:
    case CVY_OP_POOL_AVERAGE:
    case CVY_OP_REORDER: return false;
    case CVY_OP_BATCH_NORM:
        return op->pass != CVY_PASS_FORWARD && op->pass != CVY_PASS_INFERENCE && op->pass != CVY_PASS_NORMALISE;
    default: return true;
    }
}

/* The library lets a window leave out fewer than a stride of positions: what a floor leaves, and no more. */
static bool leaves_too_much(const cvy_op *op)
{
    bool windowed = cvy_op_convolves(op->kind) || op->kind == CVY_OP_POOL_AVERAGE;
    for (int axis = 0; windowed && axis < 3; axis++) {
        if (op->params.window.window.after[axis] < -op->params.window.window.stride[axis]) {
            return true;
        }
    }
    return false;
}

/* Averages of 3 a side and less are taken faster by Convoy's own loops where channels lie innermost. */
static bool is_small_average(const cvy_op *op)
{
    const int64_t *kernel = op->params.window.window.kernel;
    cvy_tensor plain = op->operand[0].tensor;
    plain.format = CVY_FORMAT_PLAIN;
    return op->kind == CVY_OP_POOL_AVERAGE && kernel[0] <= 3 && kernel[1] <= 3 && kernel[2] <= 3 &&
           kernel[0] * kernel[1] * kernel[2] <= 9 && !cvy_tensor_same_layout(&op->operand[0].tensor, &plain);
}

/* Formats that it has no name for: blocks of n,c without space. */
static bool is_nameless(const cvy_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        const cvy_tensor *tensor = &op->operand[i].tensor;
        if (tensor->shape.dims == 2 && (tensor->format == CVY_FORMAT_C8 || tensor->format == CVY_FORMAT_C16)) {
            return true;
        }
    }
    return false;
}

/* What runs on any machine: products, and every reorder of activations. */
static bool must_run(const cvy_op *op, const format_pair *pair)
{
    bool even = pair->input == pair->output &&
                (pair->input == CVY_FORMAT_PLAIN || pair->input == CVY_FORMAT_CHANNELS_LAST);
    return op->kind == CVY_OP_DENSE || op->kind == CVY_OP_REORDER || (cvy_op_convolves(op->kind) && even);
}

typedef struct test_tally {
    int ran, refused, foreign;
} test_tally;

static void judge_one(const test_shape *shape, const cvy_op *op, const format_pair *pair, test_tally *tally)
{
    char text[CVY_OP_TEXT];
    cvy_run run = make_run(shape);
    double difference = INFINITY;
    cvy_quality quality = cvy_backend_onednn.quality(op);
    cvy_status status = differ_when_rerun(op, &run, &difference);
    if (status == CVY_OK && !(difference <= TOLERANCE)) {
        fail_msg("%s: %s differs by %g", shape->name, cvy_op_print(op, text), difference);
    }
    if ((status == CVY_OK) != (quality != CVY_QUALITY_NONE)) {
        fail_msg("%s: %s has quality %d but status %d", shape->name, cvy_op_print(op, text), quality, status);
    }
    bool foreign = is_foreign(op) || leaves_too_much(op) || is_small_average(op) || is_nameless(op);
    if (status == CVY_OK ? foreign : !foreign && must_run(op, pair)) {
        fail_msg("%s: %s was %s", shape->name, cvy_op_print(op, text),
                 status == CVY_OK ? "taken" : cvy_error_message());
    }
    if (status != CVY_OK) { /* what is not documented above must be a want of kernels in these formats */
        assert_int_equal(status, CVY_ERR_UNSUPPORTED);
        assert_true(foreign || strstr(cvy_error_message(), "no kernel made"));
    }
    tally->ran += status == CVY_OK;
    tally->foreign += foreign;
    tally->refused += status != CVY_OK && !foreign;
}

static void test_every_shape_agrees_with_the_reference(void **state)
{
    (void)state;
    test_tally by_pair[PAIRS] = {{0, 0, 0}};
    cvy_op op;
    for (int i = 0; i < test_shape_count; i++) {
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            for (int k = 0; k < PAIRS && make_op(&test_shapes[i], (cvy_op_pass)pass, CVY_F32, &op); k++) {
                set_pair(&op, &pairs[k]);
                judge_one(&test_shapes[i], &op, &pairs[k], &by_pair[k]);
            }
        }
    }
    for (int k = 0; k < PAIRS; k++) {
        print_message("%-22s %3d ran, %3d without kernel, %3d left to others\n", pairs[k].name, by_pair[k].ran,
                      by_pair[k].refused, by_pair[k].foreign);
    }
    if (__builtin_cpu_supports("avx2")) { /* blocked kernels: by 8 there, by 16 where AVX-512 is */
        assert_true(by_pair[2].ran + by_pair[3].ran > 40);
    }
}

/* A run with NaN in the input: without relu and with, of one op; counts the outputs that are NaN. */
static void judge_relu(const test_shape *shape, const cvy_op *with, int *lost)
{
    cvy_op without = *with;
    cvy_run run = make_run(shape);
    int y = cvy_op_index(with, CVY_ROLE_Y);
    without.relu = false;
    assert_int_equal(!cvy_backend_onednn.quality(with), !cvy_backend_onednn.quality(&without));
    test_operands found = create_operands(with), plain = create_operands(&without);
    set_element(CVY_F32, found.data[0], 0, NAN);
    set_element(CVY_F32, plain.data[0], 0, NAN);
    if (run_op(&cvy_backend_onednn, with, found.data, &run) == CVY_OK) {
        assert_int_equal(run_op(&cvy_backend_onednn, &without, plain.data, &run), CVY_OK);
        for (int64_t i = 0; i < cvy_tensor_elements(&with->operand[y].tensor); i++) {
            float before = ((const float *)plain.data[y])[i], after = ((const float *)found.data[y])[i];
            *lost += isnan(before);
            assert_true(isnan(before) ? isnan(after) : fabsf(after - fmaxf(before, 0)) <= 1e-19f * fabsf(before));
        }
    }
    destroy_operands(&found);
    destroy_operands(&plain);
}

/* A convolution or dense layer that is a relu's too runs wherever it runs alone, is max(y, 0) of it, and NaN stays. */
static void test_relu_behind_a_product_is_the_relu(void **state)
{
    (void)state;
    int lost = 0;
    cvy_op op;
    for (int i = 0; i < test_shape_count; i++) {
        test_shape shape = test_shapes[i];
        shape.relu = cvy_op_has_weights(shape.op.kind) && cvy_op_takes_relu(shape.op.kind, CVY_PASS_FORWARD);
        for (int k = 0; k < PAIRS && shape.relu; k++) {
            assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F32, &op));
            set_pair(&op, &pairs[k]);
            judge_relu(&shape, &op, &lost);
        }
    }
    assert_true(lost > 1000);
}

/* Free one operand at a time: what the library wishes there, it takes, and better than in loops. */
static void judge_wishes(const cvy_op *op, int *wishes)
{
    static const cvy_role roles[] = {CVY_ROLE_X, CVY_ROLE_DX, CVY_ROLE_W, CVY_ROLE_DW, CVY_ROLE_Y, CVY_ROLE_DY};
    cvy_format wish;
    for (int i = 0; i < 6; i++) {
        int place = cvy_op_index(op, roles[i]);
        if (place >= 0 && cvy_backend_onednn.choose_format(op, roles[i], &wish) == CVY_OK) {
            cvy_op granted = *op;
            granted.operand[place].tensor.format = wish;
            assert_true(cvy_backend_onednn.quality(&granted) >= CVY_QUALITY_GEMM);
            *wishes += 1;
        }
    }
}

static void test_wishes_are_taken(void **state)
{
    (void)state;
    int wishes = 0;
    cvy_op op;
    for (int i = 0; i < test_shape_count; i++) {
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            for (int k = 0; k < 3 && make_op(&test_shapes[i], (cvy_op_pass)pass, CVY_F32, &op); k++) {
                set_pair(&op, &pairs[k]);
                judge_wishes(&op, &wishes);
            }
        }
    }
    assert_true(wishes > 100);
}

/* Dense weights as [out,in] and as [in,out], whatever the library would choose. */
static void test_dense_takes_weights_both_ways(void **state)
{
    (void)state;
    static const cvy_format both[] = {CVY_FORMAT_PLAIN, CVY_FORMAT_W_HWIO};
    const format_pair *plain = &pairs[0];
    cvy_op op;
    test_tally tally = {0, 0, 0};
    for (int i = 0; i < test_shape_count; i++) {
        for (int pass = 0; pass < CVY_PASS_COUNT && test_shapes[i].op.kind == CVY_OP_DENSE; pass++) {
            for (int k = 0; k < 2 && make_op(&test_shapes[i], (cvy_op_pass)pass, CVY_F32, &op); k++) {
                op.operand[cvy_op_index(&op, weight_role(&op))].tensor.format = both[k];
                judge_one(&test_shapes[i], &op, plain, &tally);
                assert_int_equal(cvy_backend_onednn.quality(&op), CVY_QUALITY_FAST);
            }
        }
    }
    assert_int_equal(tally.ran, 5 * 3 * 2);
}

/* Ones through a 3x3 kernel of ones, padded by one: the taps inside the image, 4 in corners, 6 on edges, 9 within. */
static void test_convolution_counts_its_taps(void **state)
{
    (void)state;
    static const float expected[] = {4, 6, 4, 6, 9, 6, 4, 6, 4};
    test_shape shape = CASE("ones", CONVOLUTION(SQUARE(3, 1, 1, 1)), DIMS(1, 1, 3, 3), .filters = 1);
    float x[9], w[9], y[9];
    void *data[] = {x, w, y};
    cvy_op op;
    cvy_run run = {0};
    for (int i = 0; i < 9; i++) {
        x[i] = w[i] = 1.0f;
    }
    assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F32, &op));
    assert_int_equal(run_op(&cvy_backend_onednn, &op, data, &run), CVY_OK);
    assert_memory_equal(y, expected, sizeof y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shape_agrees_with_the_reference),
        cmocka_unit_test(test_relu_behind_a_product_is_the_relu),
        cmocka_unit_test(test_wishes_are_taken),
        cmocka_unit_test(test_dense_takes_weights_both_ways),
        cmocka_unit_test(test_convolution_counts_its_taps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
