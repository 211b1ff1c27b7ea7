/*
 * What the oneDNN backend owes its callers beside numbers: reorders of weights that move elements exactly, results in
 * place, scratch memory, refusals, and kernels that threads make and run at once.
 */
#include <pthread.h>

#include "backend/rerun.h"

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
 * All formats of weights but three have a name in the library: it lacks Goidhw8g, gOidhw8o and dhwioG16g. 17 weight
 * formats less the three by groups fit oihw and oidhw: with plain, 15 each. With groups also those: 18 for goihw, 15 of
 * 18 for goidhw.
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
    const int expected[] = {15, 15, 18, 15};
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

/* In inference a batch norm's y may lie on x: the same bits as apart. */
static void judge_in_place(const test_shape *shape, int *ran)
{
    cvy_op op;
    cvy_run run = make_run(shape);
    assert_true(make_op(shape, CVY_PASS_INFERENCE, CVY_F32, &op));
    set_formats(&op, CVY_FORMAT_C8, CVY_FORMAT_PLAIN);
    test_operands apart = create_operands(&op);
    test_operands together = create_operands(&op);
    int in = cvy_op_index(&op, CVY_ROLE_X);
    int out = cvy_op_index(&op, CVY_ROLE_Y);
    assert_true(cvy_op_in_place(&op, CVY_ROLE_X));
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
        if (test_shapes[i].op.kind == CVY_OP_BATCH_NORM && !test_shapes[i].relu) {
            judge_in_place(&test_shapes[i], &ran);
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

/* The gradient of a strided 1x1 convolution over few channels, channels innermost: refused, or right in every run. */
static void test_strided_1x1_gradient_is_right_every_time(void **state)
{
    (void)state;
    const cvy_backend *backend = &cvy_backend_onednn;
    for (int64_t channels = 1; channels <= 9; channels++) {
        cvy_tensor x = {.shape = CVY_SHAPE(8, channels, 14, 14), .format = CVY_FORMAT_CHANNELS_LAST};
        cvy_tensor dy = {.shape = CVY_SHAPE(8, 24, 7, 7), .format = CVY_FORMAT_CHANNELS_LAST};
        cvy_tensor dw = {.shape = CVY_SHAPE(24, channels, 1, 1), .format = CVY_FORMAT_W_I8O8};
        cvy_op op = {.kind = CVY_OP_CONVOLUTION, .pass = CVY_PASS_BACKWARD_WEIGHTS};
        cvy_run run = {.samples = 8};
        op.params.window = (cvy_op_params_window){.window = {{1, 1, 1}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
                                                  .groups = 1};
        assert_int_equal(cvy_op_add(&op, CVY_ROLE_X, &x), CVY_OK);
        assert_int_equal(cvy_op_add(&op, CVY_ROLE_DY, &dy), CVY_OK);
        assert_int_equal(cvy_op_add(&op, CVY_ROLE_DW, &dw), CVY_OK);
        for (int i = 0; i < 20; i++) {
            double difference = 0.0;
            cvy_status status = differ_from_reference(backend, &op, &run, &difference);
            assert_true(status == CVY_OK || status == CVY_ERR_UNSUPPORTED);
            if (status == CVY_OK && !(difference <= 1e-5)) {
                fail_msg("%d channels, run %d: relative error %g", (int)channels, i, difference);
            }
        }
    }
}

/* 65536 x 65536 positions are 2^32, which the library's int takes for 0; a pooling would divide by it. */
static void test_planes_beyond_int_are_refused(void **state)
{
    (void)state;
    const test_shape shape = CASE("plane of 2^32", POOL_AVERAGE(true, SQUARE(4, 4, 1, 0)), DIMS(1, 8, 65536, 65536));
    const test_shape within = CASE("plane of 2^16", POOL_AVERAGE(true, SQUARE(4, 4, 1, 0)), DIMS(1, 8, 256, 256));
    cvy_op op;
    assert_true(make_op(&within, CVY_PASS_FORWARD, CVY_F32, &op));
    set_formats(&op, CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_PLAIN);
    assert_true(cvy_backend_onednn.quality(&op) != CVY_QUALITY_NONE || !__builtin_cpu_supports("avx2"));
    assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F32, &op));
    set_formats(&op, CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_PLAIN);
    assert_int_equal(cvy_backend_onednn.quality(&op), CVY_QUALITY_NONE);
}

/* A plane of one position goes through its product, and so to Convoy's own kernels: as it is, and by its wish. */
static void test_leaves_depthwise_products_to_own_kernels(void **state)
{
    (void)state;
    test_shape shape = CASE("one position", GROUPED(48, SQUARE(3, 1, 1, 1)), DIMS(2, 48, 1, 1), .filters = 48);
    for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
        cvy_role role = pass == CVY_PASS_BACKWARD_WEIGHTS ? CVY_ROLE_DW : CVY_ROLE_W;
        cvy_format format;
        cvy_op op;
        if (make_op(&shape, (cvy_op_pass)pass, CVY_F32, &op)) {
            set_formats(&op, CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_PLAIN);
            assert_int_equal(cvy_backend_onednn.choose_format(&op, role, &format), CVY_ERR_UNSUPPORTED);
            set_formats(&op, CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_W_HWIO);
            assert_int_equal(cvy_backend_onednn.quality(&op), CVY_QUALITY_NONE);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_reorder_exactly),
        cmocka_unit_test(test_reorder_adds_and_drops_the_group),
        cmocka_unit_test(test_batch_norm_runs_in_place),
        cmocka_unit_test(test_run_keeps_to_its_scratch),
        cmocka_unit_test(test_what_it_cannot_do_is_refused),
        cmocka_unit_test(test_planes_beyond_int_are_refused),
        cmocka_unit_test(test_create_survives_want_of_memory),
        cmocka_unit_test(test_threads_make_and_run_kernels_at_once),
        cmocka_unit_test(test_strided_1x1_gradient_is_right_every_time),
        cmocka_unit_test(test_leaves_depthwise_products_to_own_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
