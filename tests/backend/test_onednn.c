/*
 * The oneDNN backend in f32 against the reference in double: every configuration of shapes.h, every pass, in plain,
 * channels-last and blocked formats. Each kernel runs twice on the same memory, what it writes poisoned in between, so
 * that padding counts which the library would zero only when it first sees an address. Nothing is skipped: whatever the
 * backend refuses must be of a kind that problem.c documents.
 */
#include <pthread.h>

#include "backend/support.h"

extern const cvy_backend cvy_backend_onednn;

static const double TOLERANCE = 1e-4;

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

static bool is_filtered(const cvy_op *op) { return op->kind == CVY_OP_CONVOLUTION || op->kind == CVY_OP_DENSE; }

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
    if (is_filtered(op)) {
        cvy_role role = weight_role(op);
        cvy_format wish;
        if (cvy_backend_onednn.choose_format(op, role, &wish) == CVY_OK) {
            op->operand[cvy_op_index(op, role)].tensor.format = wish;
        }
    }
}

static cvy_status run_twice(const cvy_op *op, void *const *data, const cvy_run *run)
{
    cvy_kernel *kernel = NULL;
    cvy_arena scratch = {0};
    CVY_TRY(cvy_backend_onednn.create(op, &kernel));
    assert_int_equal(cvy_arena_create(cvy_kernel_scratch_bytes(kernel), &scratch), CVY_OK);
    cvy_status status = cvy_kernel_run(kernel, data, scratch.base, run);
    for (int i = 0; i < op->operands; i++) {
        if (op->operand[i].access == CVY_ACCESS_WRITE) {
            fill_operand(op, i, data[i]);
        }
    }
    if (status == CVY_OK) {
        status = cvy_kernel_run(kernel, data, scratch.base, run);
    }
    cvy_arena_destroy(&scratch);
    cvy_kernel_destroy(&kernel);
    return status;
}

static cvy_status differ_when_rerun(const cvy_op *op, const cvy_run *run, double *difference_out)
{
    cvy_op reference = make_reference_op(op);
    test_operands found = create_operands(op);
    test_operands expected = create_operands(&reference);
    cvy_status status = run_twice(op, found.data, run);
    if (status == CVY_OK) {
        for (int i = 0; i < op->operands; i++) {
            if (op->operand[i].access == CVY_ACCESS_READ) {
                assert_int_equal(cvy_tensor_copy(&op->operand[i].tensor, found.data[i], &reference.operand[i].tensor,
                                                 expected.data[i]),
                                 CVY_OK);
            }
        }
        assert_int_equal(run_op(&cvy_backend_ref, &reference, expected.data, run), CVY_OK);
        *difference_out = compare_written(op, &found, &reference, &expected);
    }
    destroy_operands(&found);
    destroy_operands(&expected);
    return status;
}

/* Passes that are left to other backends whatever their formats. */
static bool is_foreign(const cvy_op *op)
{
    switch (op->kind) {
    case CVY_OP_CONVOLUTION:
    case CVY_OP_DENSE:
    case CVY_OP_POOL_AVERAGE:
    case CVY_OP_REORDER: return false;
    case CVY_OP_BATCH_NORM:
        return op->pass != CVY_PASS_FORWARD && op->pass != CVY_PASS_INFERENCE && op->pass != CVY_PASS_BACKWARD;
    default: return true;
    }
}

/* The library lets a window leave out fewer than a stride of positions: what a floor leaves, and no more. */
static bool leaves_too_much(const cvy_op *op)
{
    bool windowed = op->kind == CVY_OP_CONVOLUTION || op->kind == CVY_OP_POOL_AVERAGE;
    for (int axis = 0; windowed && axis < 3; axis++) {
        if (op->params.window.window.after[axis] < -op->params.window.window.stride[axis]) {
            return true;
        }
    }
    return false;
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
    return op->kind == CVY_OP_DENSE || op->kind == CVY_OP_REORDER || (op->kind == CVY_OP_CONVOLUTION && even);
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
    bool foreign = is_foreign(op) || leaves_too_much(op) || is_nameless(op);
    if (status == CVY_OK ? foreign : !foreign && must_run(op, pair)) {
        fail_msg("%s: %s was %s", shape->name, cvy_op_print(op, text), status == CVY_OK ? "taken" : cvy_error_message());
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
    assert_int_equal(tally.ran, 4 * 3 * 2);
}

/* A reorder of weights from plain to @p format and back: exact, since it moves elements only, and the padding zero. */
static void judge_weight_reorder(const cvy_tensor *plain, cvy_format format, int *ran)
{
    cvy_tensor other = *plain;
    other.format = format;
    if (!cvy_tensor_format_fits(&other)) {
        return;
    }
    for (int back = 0; back < 2; back++) {
        cvy_op op = {.kind = CVY_OP_REORDER, .pass = CVY_PASS_FORWARD};
        cvy_run run = {0};
        double difference = INFINITY;
        assert_int_equal(cvy_op_add(&op, CVY_ROLE_X, back ? &other : plain), CVY_OK);
        assert_int_equal(cvy_op_add(&op, CVY_ROLE_Y, back ? plain : &other), CVY_OK);
        if (differ_when_rerun(&op, &run, &difference) == CVY_OK) {
            assert_true(difference == 0.0);
            *ran += 1;
        }
    }
}

/*
 * All formats of weights but two have a name in the library: it lacks Goidhw8g and gOidhw8o. 12 weight formats less
 * G8, G16 fit oihw and oidhw: with plain, 11 each. With groups also G8, G16: 13 for goihw, 11 of 13 for goidhw.
 */
static void test_weights_reorder_exactly(void **state)
{
    (void)state;
    const cvy_tensor plain[] = {
        {.shape = CVY_SHAPE(10, 3, 3, 2)},
        {.shape = CVY_SHAPE(17, 9, 2, 3, 3)},
        {.shape = CVY_SHAPE(5, 6, 4, 3, 3), .grouped = true},
        {.shape = CVY_SHAPE(3, 4, 9, 2, 3, 3), .grouped = true},
    };
    const int expected[] = {11, 11, 13, 11};
    for (int i = 0; i < 4; i++) {
        int ran = 0;
        judge_weight_reorder(&plain[i], CVY_FORMAT_PLAIN, &ran);
        for (int format = CVY_FORMAT_W_HWIO; format < CVY_FORMAT_COUNT; format++) {
            judge_weight_reorder(&plain[i], (cvy_format)format, &ran);
        }
        assert_int_equal(ran, 2 * expected[i]);
    }
}

/* Nine filters of g=1 or of two groups of them are the same elements with or without the leading g. */
static void test_reorder_adds_and_drops_the_group(void **state)
{
    (void)state;
    const cvy_tensor flat = {.shape = CVY_SHAPE(6, 4, 3, 3)};
    const cvy_tensor grouped = {.shape = CVY_SHAPE(2, 3, 4, 3, 3), .format = CVY_FORMAT_W_I8O8, .grouped = true};
    for (int back = 0; back < 2; back++) {
        cvy_op op = {.kind = CVY_OP_REORDER, .pass = CVY_PASS_FORWARD};
        cvy_run run = {0};
        double difference = INFINITY;
        assert_int_equal(cvy_op_add(&op, CVY_ROLE_X, back ? &grouped : &flat), CVY_OK);
        assert_int_equal(cvy_op_add(&op, CVY_ROLE_Y, back ? &flat : &grouped), CVY_OK);
        assert_int_equal(differ_when_rerun(&op, &run, &difference), CVY_OK);
        assert_true(difference == 0.0);
    }
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

/* Batch norm's dx may lie on dy, and in inference y on x: the same bits as apart. */
static void judge_in_place(const test_shape *shape, cvy_op_pass pass, cvy_role source, int *ran)
{
    cvy_op op;
    cvy_run run = make_run(shape);
    assert_true(make_op(shape, pass, CVY_F32, &op));
    set_formats(&op, CVY_FORMAT_C8, CVY_FORMAT_PLAIN);
    test_operands apart = create_operands(&op);
    test_operands together = create_operands(&op);
    int in = cvy_op_index(&op, source);
    int out = cvy_op_index(&op, pass == CVY_PASS_BACKWARD ? CVY_ROLE_DX : CVY_ROLE_Y);
    assert_true(cvy_op_in_place(&op, source));
    if (run_op(&cvy_backend_onednn, &op, apart.data, &run) == CVY_OK) {
        void *aside = together.data[out];
        together.data[out] = together.data[in];
        assert_int_equal(run_op(&cvy_backend_onednn, &op, together.data, &run), CVY_OK);
        for (int i = 0; i < op.operands; i++) {
            if (op.operand[i].access == CVY_ACCESS_WRITE) {
                assert_memory_equal(together.data[i], apart.data[i],
                                    (size_t)cvy_tensor_bytes(&op.operand[i].tensor));
            }
        }
        together.data[out] = aside;
        *ran += 1;
    }
    destroy_operands(&apart);
    destroy_operands(&together);
}

static void test_batch_norm_runs_in_place(void **state)
{
    (void)state;
    int ran = 0;
    for (int i = 0; i < test_shape_count; i++) {
        if (test_shapes[i].op.kind == CVY_OP_BATCH_NORM) {
            judge_in_place(&test_shapes[i], CVY_PASS_BACKWARD, CVY_ROLE_DY, &ran);
            judge_in_place(&test_shapes[i], CVY_PASS_INFERENCE, CVY_ROLE_X, &ran);
        }
    }
    assert_true(ran > 0 || !__builtin_cpu_supports("avx2"));
}

/* A run stays within the scratch memory it asked for, and takes none of its own from the library's allocator. */
static void test_run_keeps_to_its_scratch(void **state)
{
    (void)state;
    enum { GUARD = 256 };
    cvy_op op;
    cvy_kernel *kernel;
    cvy_arena scratch;
    const test_shape *shape = find_shape("conv 5x5, 20 to 50 (lenet5 conv2)");
    for (int pass = CVY_PASS_FORWARD; pass <= CVY_PASS_BACKWARD_WEIGHTS; pass++) {
        if (!make_op(shape, (cvy_op_pass)pass, CVY_F32, &op)) {
            continue;
        }
        cvy_run run = make_run(shape);
        test_operands operands = create_operands(&op);
        assert_int_equal(cvy_backend_onednn.create(&op, &kernel), CVY_OK);
        size_t bytes = cvy_kernel_scratch_bytes(kernel);
        assert_true(bytes > 0); /* plain: im2col */
        assert_int_equal(cvy_arena_create(bytes + GUARD, &scratch), CVY_OK);
        memset(scratch.base, 0xA5, bytes + GUARD);
        int64_t allocations = cvy_memory_allocations();
        assert_int_equal(cvy_kernel_run(kernel, operands.data, scratch.base, &run), CVY_OK);
        assert_int_equal(cvy_memory_allocations(), allocations);
        for (size_t i = bytes; i < bytes + GUARD; i++) {
            assert_int_equal(scratch.base[i], 0xA5);
        }
        cvy_arena_destroy(&scratch);
        cvy_kernel_destroy(&kernel);
        destroy_operands(&operands);
    }
}

/* What is imposed: an op that asks for double, or for formats that do not go together, is refused and not converted. */
static void test_what_it_cannot_do_is_refused(void **state)
{
    (void)state;
    cvy_op op;
    cvy_kernel *kernel = NULL;
    assert_true(make_op(find_shape("conv 3x3"), CVY_PASS_FORWARD, CVY_F64, &op));
    assert_int_equal(cvy_backend_onednn.create(&op, &kernel), CVY_ERR_UNSUPPORTED);
    assert_int_equal(cvy_backend_onednn.quality(&op), CVY_QUALITY_NONE);
    assert_true(make_op(find_shape("batch norm, 16 channels"), CVY_PASS_FORWARD, CVY_F32, &op));
    set_formats(&op, CVY_FORMAT_C8, CVY_FORMAT_PLAIN);
    op.operand[cvy_op_index(&op, CVY_ROLE_Y)].tensor.format = CVY_FORMAT_CHANNELS_LAST;
    assert_int_equal(cvy_backend_onednn.create(&op, &kernel), CVY_ERR_UNSUPPORTED);
    assert_null(kernel);
}

static void test_create_survives_want_of_memory(void **state)
{
    (void)state;
    cvy_op op;
    cvy_kernel *kernel = NULL;
    assert_true(make_op(find_shape("conv 3x3"), CVY_PASS_FORWARD, CVY_F32, &op));
    cvy_memory_fail_after(0);
    assert_int_equal(cvy_backend_onednn.create(&op, &kernel), CVY_ERR_MEMORY);
    cvy_memory_fail_after(-1);
    assert_null(kernel);
}

static void *run_many(void *failures)
{
    const test_shape *shape = find_shape("conv 3x3");
    cvy_run run = make_run(shape);
    cvy_op op;
    for (int i = 0; i < 20; i++) {
        double difference = INFINITY;
        bool made = make_op(shape, CVY_PASS_FORWARD, CVY_F32, &op);
        cvy_status status = made ? differ_from_reference(&cvy_backend_onednn, &op, &run, &difference) : CVY_ERR_ARG;
        *(int *)failures += status != CVY_OK || !(difference <= TOLERANCE);
    }
    return NULL;
}

/* Kernels of different threads share the engine and the stream, and nothing else. */
static void test_threads_make_and_run_kernels_at_once(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    pthread_t thread[THREADS];
    int failures[THREADS] = {0};
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, run_many, &failures[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(failures[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_shape_agrees_with_the_reference),
        cmocka_unit_test(test_dense_takes_weights_both_ways),
        cmocka_unit_test(test_weights_reorder_exactly),
        cmocka_unit_test(test_reorder_adds_and_drops_the_group),
        cmocka_unit_test(test_convolution_counts_its_taps),
        cmocka_unit_test(test_batch_norm_runs_in_place),
        cmocka_unit_test(test_run_keeps_to_its_scratch),
        cmocka_unit_test(test_what_it_cannot_do_is_refused),
        cmocka_unit_test(test_create_survives_want_of_memory),
        cmocka_unit_test(test_threads_make_and_run_kernels_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
