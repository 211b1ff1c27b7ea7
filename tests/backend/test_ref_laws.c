/*
 * What holds for every op of the reference, whatever its numbers: formats do not change the result, nor does writing in
 * place; the parts of a batch norm make the whole; a dropout mask belongs to the sample; weight updates go by the book.
 */
#include "backend/support.h"

static const cvy_backend_chain chain = {1, {&cvy_backend_ref}};

static void test_takes_every_op_and_no_other(void **state)
{
    (void)state;
    for (int kind = 0; kind < CVY_OP_KIND_COUNT; kind++) {
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            cvy_op op = {.kind = (cvy_op_kind)kind, .pass = (cvy_op_pass)pass};
            bool exists = cvy_op_signature(op.kind, op.pass) != NULL;
            assert_int_equal(cvy_backend_ref.quality(&op), exists ? CVY_QUALITY_SLOW : CVY_QUALITY_NONE);
        }
    }
    cvy_kernel *kernel = NULL;
    cvy_op op = {.kind = CVY_OP_ADD, .pass = CVY_PASS_UPDATE};
    assert_int_equal(cvy_backend_ref.create(&op, &kernel), CVY_ERR_UNSUPPORTED);
    assert_null(kernel);
}

static void require_reference(const test_shape *shape, const cvy_op *op, double limit)
{
    char text[CVY_OP_TEXT];
    double difference;
    cvy_run run = make_run(shape);
    assert_int_equal(differ_from_reference(&cvy_backend_ref, op, &run, &difference), CVY_OK);
    if (!(difference <= limit)) {
        fail_msg("%s: %s: off by %g", shape->name, cvy_op_print(op, text), difference);
    }
}

/*
 * Loops run in logical order in every format, so doubles agree to the bit; floats are the rounded doubles (2^-24, and
 * batch norms, which read rounded statistics, a little more). Outputs start as NaN, and padding has to be zero after.
 */
static void test_formats_and_types_do_not_change_the_result(void **state)
{
    static const cvy_format activations[] = {CVY_FORMAT_PLAIN, CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_C8, CVY_FORMAT_C16};
    cvy_op op;
    (void)state;
    for (int i = 0; i < test_shape_count; i++) {
        bool filtered = cvy_op_has_weights(test_shapes[i].op.kind);
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            for (int format = 0; format < (filtered ? (int)CVY_FORMAT_COUNT : 4); format++) {
                cvy_dtype dtype = format % 2 ? CVY_F32 : CVY_F64;
                if (!make_op(&test_shapes[i], (cvy_op_pass)pass, dtype, &op)) {
                    continue;
                }
                set_formats(&op, activations[format % 4], (cvy_format)format);
                require_reference(&test_shapes[i], &op, dtype == CVY_F64 ? 0.0 : 2e-7);
            }
        }
    }
}

/* From every format to every other, and between the types; there and back again is the identity. */
static void test_reorders_between_any_two_formats(void **state)
{
    const test_shape shapes[] = {CASE("2-D", {.kind = CVY_OP_REORDER}, DIMS(2, 13, 5, 3)),
                                 CASE("3-D", {.kind = CVY_OP_REORDER}, DIMS(3, 10, 2, 3, 4)),
                                 CASE("grouped", {.kind = CVY_OP_REORDER}, DIMS(9, 3, 2, 3, 3), .grouped = true)};
    int reorders = 0;
    (void)state;
    for (int code = 0; code < 3 * CVY_FORMAT_COUNT * CVY_FORMAT_COUNT; code++) {
        const test_shape *shape = &shapes[code % 3];
        cvy_op op;
        assert_true(make_op(shape, CVY_PASS_FORWARD, CVY_F32, &op));
        op.operand[0].tensor.format = (cvy_format)(code / 3 % CVY_FORMAT_COUNT);
        op.operand[1].tensor.format = (cvy_format)(code / 3 / CVY_FORMAT_COUNT);
        op.operand[code % 2].tensor.dtype = CVY_F64;
        if (cvy_op_check(&op) == CVY_OK) {
            require_reference(shape, &op, 0.0);
            reorders++;
        }
    }
    assert_true(reorders > 2 * 13 * 13);
}

/* Run with the output on its own memory, then on that of an input: the same bits, padding included. */
static void compare_in_place(const test_shape *shape, const cvy_op *op, int input)
{
    cvy_run run = make_run(shape);
    test_operands apart = create_operands(op);
    test_operands together = create_operands(op);
    int output = 0;
    while (op->operand[output].access == CVY_ACCESS_READ) {
        output++;
    }
    void *own = together.data[output];
    together.data[output] = together.data[input];
    assert_int_equal(run_op(&cvy_backend_ref, op, apart.data, &run), CVY_OK);
    assert_int_equal(run_op(&cvy_backend_ref, op, together.data, &run), CVY_OK);
    for (int i = 0; i < op->operands; i++) {
        if (op->operand[i].access != CVY_ACCESS_READ) {
            assert_memory_equal(apart.data[i], together.data[i], (size_t)cvy_tensor_bytes(&op->operand[i].tensor));
        }
    }
    together.data[output] = own;
    destroy_operands(&apart);
    destroy_operands(&together);
}

static void test_in_place_equals_out_of_place(void **state)
{
    int compared = 0;
    cvy_op op;
    (void)state;
    for (int i = 0; i < test_shape_count; i++) {
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            for (int format = CVY_FORMAT_PLAIN; format <= CVY_FORMAT_C16; format++) {
                if (!make_op(&test_shapes[i], (cvy_op_pass)pass, CVY_F32, &op)) {
                    continue;
                }
                set_formats(&op, (cvy_format)format, CVY_FORMAT_PLAIN);
                for (int j = 0; j < op.operands; j++) {
                    if (cvy_op_in_place(&op, op.operand[j].role)) {
                        compare_in_place(&test_shapes[i], &op, j);
                        compared++;
                    }
                }
            }
        }
    }
    assert_true(compared >= 4 * (3 * 2 + 3 * 2 + 3 * 2 + 4 * 3)); /* relu, add, dropout, batch norm */
}

/* Bind the operands of a part to those of the whole, by role. */
static void run_part(const test_shape *shape, cvy_op_pass pass, const cvy_op *whole, const test_operands *operands)
{
    cvy_op op;
    cvy_run run = make_run(shape);
    void *data[CVY_MAX_OPERANDS];
    assert_true(make_op(shape, pass, whole->operand[0].tensor.dtype, &op));
    for (int i = 0; i < op.operands; i++) {
        data[i] = operands->data[cvy_op_index(whole, op.operand[i].role)];
    }
    assert_int_equal(run_op(&cvy_backend_ref, &op, data, &run), CVY_OK);
}

static void compare_parts(const test_shape *shape, cvy_dtype dtype, cvy_op_pass pass, cvy_op_pass first,
                          cvy_op_pass second)
{
    cvy_op op;
    cvy_run run = make_run(shape);
    assert_true(make_op(shape, pass, dtype, &op));
    test_operands fused = create_operands(&op);
    test_operands split = create_operands(&op);
    assert_int_equal(run_op(&cvy_backend_ref, &op, fused.data, &run), CVY_OK);
    run_part(shape, first, &op, &split);
    run_part(shape, second, &op, &split);
    for (int i = 0; i < op.operands; i++) {
        assert_memory_equal(fused.data[i], split.data[i], (size_t)cvy_tensor_bytes(&op.operand[i].tensor));
    }
    destroy_operands(&fused);
    destroy_operands(&split);
}

/* Every slice of a concat is the input that it was made of; all are in formats of their own. */
static void test_slices_undo_a_concat(void **state)
{
    (void)state;
    const test_shape *shape = find_shape("concat of 4");
    cvy_run run = make_run(shape);
    cvy_op op, slice = {.kind = CVY_OP_SLICE, .pass = CVY_PASS_BACKWARD_DATA};
    assert_true(make_op(shape, CVY_PASS_FORWARD, CVY_F32, &op));
    for (int i = 0; i < 5; i++) {
        op.operand[i].tensor.format = (cvy_format)((i + 2) % 4);
    }
    test_operands operands = create_operands(&op);
    assert_int_equal(run_op(&cvy_backend_ref, &op, operands.data, &run), CVY_OK);
    for (int i = 0; i < 4; i++) {
        slice.operands = 0;
        assert_int_equal(cvy_op_add(&slice, CVY_ROLE_DY, &op.operand[4].tensor), CVY_OK);
        assert_int_equal(cvy_op_add(&slice, CVY_ROLE_DX, &op.operand[i].tensor), CVY_OK);
        assert_int_equal(cvy_op_check(&slice), CVY_OK);
        test_operands parts = create_operands(&slice);
        void *data[2] = {operands.data[4], parts.data[1]};
        assert_int_equal(run_op(&cvy_backend_ref, &slice, data, &run), CVY_OK);
        assert_memory_equal(data[1], operands.data[i], (size_t)cvy_tensor_bytes(&op.operand[i].tensor));
        slice.params.slice.first += op.operand[i].tensor.shape.extent[1];
        destroy_operands(&parts);
    }
    destroy_operands(&operands);
}

static void test_fused_batch_norm_equals_its_parts(void **state)
{
    (void)state;
    for (int i = 0; i < test_shape_count; i++) {
        if (test_shapes[i].op.kind == CVY_OP_BATCH_NORM) {
            for (int dtype = CVY_F32; dtype <= CVY_F64; dtype++) {
                compare_parts(&test_shapes[i], (cvy_dtype)dtype, CVY_PASS_FORWARD, CVY_PASS_STATS, CVY_PASS_NORMALISE);
                compare_parts(&test_shapes[i], (cvy_dtype)dtype, CVY_PASS_BACKWARD, CVY_PASS_GRAD_STATS,
                              CVY_PASS_GRAD_APPLY);
            }
        }
    }
}

/*
 * Two ranks with half of the samples each: sums of GRAD_STATS added, GRAD_APPLY with the whole count. Then each half of
 * dx is that half of the whole batch's.
 */
static void test_batch_norm_over_two_ranks_equals_one(void **state)
{
    (void)state;
    const test_shape whole = CASE("", BATCH_NORM(4 * 6), DIMS(4, 3, 2, 3));
    const test_shape half = CASE("", BATCH_NORM(4 * 6), DIMS(2, 3, 2, 3));
    enum { HALF = 2 * 3 * 6, X = 0, DY = 1, MEAN = 3, DW = 5, DB = 6 };
    cvy_run run = make_run(&whole);
    cvy_op backward, stats, apply;
    double sums[2][3] = {{0}}, part[2][3], dx[2 * HALF];
    assert_true(make_op(&whole, CVY_PASS_BACKWARD, CVY_F64, &backward));
    assert_true(make_op(&half, CVY_PASS_GRAD_STATS, CVY_F64, &stats));
    assert_true(make_op(&half, CVY_PASS_GRAD_APPLY, CVY_F64, &apply));
    test_operands all = create_operands(&backward);
    assert_int_equal(run_op(&cvy_backend_ref, &backward, all.data, &run), CVY_OK);
    double *x = all.data[X], *dy = all.data[DY];
    for (int rank = 0; rank < 2; rank++) {
        void *data[] = {x + rank * HALF, dy + rank * HALF, all.data[MEAN], all.data[MEAN + 1], part[0], part[1]};
        assert_int_equal(run_op(&cvy_backend_ref, &stats, data, &run), CVY_OK);
        for (int i = 0; i < 6; i++) {
            sums[i / 3][i % 3] += part[i / 3][i % 3];
        }
    }
    for (int rank = 0; rank < 2; rank++) {
        void *data[] = {x + rank * HALF,    dy + rank * HALF, all.data[2], all.data[MEAN],
                        all.data[MEAN + 1], sums[0],          sums[1],     dx + rank * HALF};
        assert_int_equal(run_op(&cvy_backend_ref, &apply, data, &run), CVY_OK);
    }
    const cvy_tensor *tensor = &backward.operand[X].tensor;
    assert_true(relative_difference(tensor, dx, tensor, all.data[DW]) < 1e-14);
    destroy_operands(&all);
}

/* Drop from ones: what is left is 0 or 1 / (1 - p). */
static void drop(double probability, int64_t n, int64_t e, cvy_op_pass pass, int64_t sample_first, double *y)
{
    test_shape shape = CASE("", DROPOUT(0.5, 3), DIMS(n, 1, 1, e));
    cvy_run run = make_run(&shape);
    cvy_op op;
    shape.op.params.dropout.probability = probability;
    run.sample_first = sample_first;
    assert_true(make_op(&shape, pass, CVY_F64, &op));
    double *x = cvy_calloc((size_t)(n * e), sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n * e; i++) {
        x[i] = 1.0;
    }
    void *data[] = {x, y};
    assert_int_equal(run_op(&cvy_backend_ref, &op, data, &run), CVY_OK);
    cvy_free(x);
}

/* A batch of 8 is two batches of 4 that say where they begin; forward and backward draw one mask. */
static void test_dropout_masks_belong_to_samples(void **state)
{
    enum { E = 37 };
    double whole[8 * E], halves[8 * E], backward[8 * E];
    (void)state;
    drop(0.3, 8, E, CVY_PASS_FORWARD, 0, whole);
    drop(0.3, 4, E, CVY_PASS_FORWARD, 0, halves);
    drop(0.3, 4, E, CVY_PASS_FORWARD, 4, halves + 4 * E);
    drop(0.3, 8, E, CVY_PASS_BACKWARD_DATA, 0, backward);
    assert_memory_equal(whole, halves, sizeof whole);
    assert_memory_equal(whole, backward, sizeof whole);
    assert_true(memcmp(whole, whole + 4 * E, 4 * E * sizeof(double)) != 0);
}

/* The words of op.h, element by element: seed 42, layer 3, step 5, sample 16 + n, block e / 4, lane e % 4. */
static void test_dropout_draws_the_words_that_it_says(void **state)
{
    enum { E = 11 };
    double y[2 * E];
    (void)state;
    drop(0.3, 2, E, CVY_PASS_FORWARD, 16, y);
    for (uint32_t i = 0; i < 2 * E; i++) {
        cvy_words words = cvy_random_words(42, CVY_PURPOSE_DROPOUT, 3, 5, 16 + i / E, i % E / 4);
        bool dropped = cvy_random_unit(words.v[i % E % 4]) < 0.3;
        assert_true(fabs(y[i] - (dropped ? 0.0 : 1.0 / 0.7)) < 1e-15);
    }
}

/* 40,000 elements: the share kept is 0.7 with a standard deviation of sqrt(0.3 * 0.7 / 40000) = 0.0023; within five. */
static void test_dropout_keeps_the_share_that_it_says(void **state)
{
    enum { ELEMENTS = 40000 };
    static double y[ELEMENTS];
    int kept = 0;
    (void)state;
    drop(0.3, 40, ELEMENTS / 40, CVY_PASS_FORWARD, 0, y);
    for (int i = 0; i < ELEMENTS; i++) {
        kept += y[i] != 0.0;
    }
    assert_true(fabs((double)kept / ELEMENTS - 0.7) < 5 * 0.0023);
}

/* One element a sample, of ones: 0 for samples that are dropped, 1 / (1 - p) for the others. */
static void drop_samples(int64_t n, cvy_op_pass pass, int64_t sample_first, double *y)
{
    test_shape shape = CASE("", STOCHASTIC_DEPTH(0.3, 3), DIMS(n, 1));
    cvy_run run = make_run(&shape);
    cvy_op op;
    run.sample_first = sample_first;
    assert_true(make_op(&shape, pass, CVY_F64, &op));
    double *x = cvy_calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) {
        x[i] = 1.0;
    }
    void *data[] = {x, y};
    assert_int_equal(run_op(&cvy_backend_ref, &op, data, &run), CVY_OK);
    cvy_free(x);
}

/*
 * The words of op.h: seed 42, layer 3, step 5, sample 16 + n, block 0, lane 0; the same backward, and however the batch
 * is cut. Of 40,000 samples 0.7 is kept, with a standard deviation of sqrt(0.3 * 0.7 / 40000) = 0.0023; within five.
 */
static void test_stochastic_depth_draws_a_number_a_sample(void **state)
{
    enum { N = 40000 };
    static double y[N], again[N];
    int kept = 0;
    (void)state;
    drop_samples(N, CVY_PASS_FORWARD, 16, y);
    for (uint32_t i = 0; i < N; i++) {
        cvy_words words = cvy_random_words(42, CVY_PURPOSE_STOCHASTIC_DEPTH, 3, 5, 16 + i, 0);
        assert_true(fabs(y[i] - (cvy_random_unit(words.v[0]) < 0.3 ? 0.0 : 1.0 / 0.7)) < 1e-15);
        kept += y[i] != 0.0;
    }
    assert_true(fabs((double)kept / N - 0.7) < 5 * 0.0023);
    drop_samples(N, CVY_PASS_BACKWARD_DATA, 16, again);
    assert_memory_equal(y, again, sizeof y);
    drop_samples(1000, CVY_PASS_FORWARD, 16, again);
    drop_samples(N - 1000, CVY_PASS_FORWARD, 1016, again + 1000);
    assert_memory_equal(y, again, sizeof y);
}

/* Three updates of one weight that starts at 1, gradients in turn; returns after each. */
static void update(const cvy_op *params, bool momentum, const double gradient[3], double w_out[3])
{
    test_shape shape = {.name = "", .op = *params, .x = DIMS(1), .optional = momentum};
    cvy_run run = make_run(&shape);
    double w = 1.0, v = 0.0, s = 0.0, g;
    void *data[] = {&g, &w, &v, &s};
    cvy_op op;
    assert_true(make_op(&shape, CVY_PASS_UPDATE, CVY_F64, &op));
    run.learning_rate = 0.1;
    for (int i = 0; i < 3; i++) {
        run.update = i + 1;
        g = gradient[i];
        assert_int_equal(run_op(&cvy_backend_ref, &op, data, &run), CVY_OK);
        w_out[i] = w;
    }
}

static void require_weights(const double found[3], double first, double second, double third)
{
    assert_true(fabs(found[0] - first) < 1e-14);
    assert_true(fabs(found[1] - second) < 1e-14);
    assert_true(fabs(found[2] - third) < 1e-14);
}

static void test_sgd_by_hand(void **state)
{
    const double half[3] = {0.5, 0.5, 0.5};
    double w[3];
    (void)state;
    cvy_op plain = SGD(0.0, false, 0.0);
    update(&plain, false, half, w);
    require_weights(w, 0.95, 0.90, 0.85);
    cvy_op momentum = SGD(0.9, false, 0.0); /* v = 0.5, 0.95, 1.355 */
    update(&momentum, true, half, w);
    require_weights(w, 0.95, 0.855, 0.7195);
    cvy_op nesterov = SGD(0.9, true, 0.0); /* steps 0.5 + 0.45, 0.5 + 0.855, 0.5 + 1.2195 */
    update(&nesterov, true, half, w);
    require_weights(w, 0.905, 0.7695, 0.59755);
    cvy_op decay = SGD(0.0, false, 0.1); /* g = 0.6, 0.594, 0.58806 */
    update(&decay, false, half, w);
    require_weights(w, 0.94, 0.8806, 0.821794);
}

/*
 * A constant gradient has both unbiased moments at once, so each step is the learning rate: after decay by 1 - 0.01,
 * 0.99 - 0.1 and so on. With beta 1/2 and gradients 1, -1, 2: m = 1/2, -1/4, 7/8, unbiased 1, -1/3, 1; s = 1/2, 3/4,
 * 19/8, unbiased 1, 1, 19/7.
 */
static void test_adamw_by_hand(void **state)
{
    const double half[3] = {0.5, 0.5, 0.5};
    const double mixed[3] = {1.0, -1.0, 2.0};
    double w[3];
    (void)state;
    cvy_op decay = ADAMW(0.1);
    decay.params.optimizer.epsilon = 0.0;
    update(&decay, true, half, w);
    require_weights(w, 0.89, 0.7811, 0.673289);
    cvy_op moments = ADAMW(0.0);
    moments.params.optimizer.beta1 = moments.params.optimizer.beta2 = 0.5;
    moments.params.optimizer.epsilon = 0.25;
    update(&moments, true, mixed, w);
    double second = 0.92 + 0.1 / 3.0 / 1.25; /* 1 - 0.1 / 1.25 first */
    require_weights(w, 0.92, second, second - 0.1 / (sqrt(19.0 / 7.0) + 0.25));
}

/* 1 + 4 + 9 lies at its place and nowhere else; squares 9 and 16 are a norm of 5, brought down to 1, or left at 5. */
static void test_clipping_by_hand(void **state)
{
    float x[3] = {1.0f, -2.0f, 3.0f};
    double squares[4] = {-1.0, -1.0, -1.0, -1.0}, of_two[2] = {9.0, 16.0}, scale = 0.0;
    cvy_run run = {.update = 1};
    test_shape sum = {"sum", SQUARES(CVY_OP_SQUARE_SUM), DIMS(3), .filters = 0};
    test_shape clip = {"clip", SQUARES(CVY_OP_CLIP), DIMS(2), .filters = 0};
    cvy_op op;
    (void)state;
    sum.op.params.squares.slots = 4;
    sum.op.params.squares.slot = 2;
    assert_true(make_op(&sum, CVY_PASS_UPDATE, CVY_F32, &op));
    assert_int_equal(run_op(&cvy_backend_ref, &op, (void *[]){x, squares}, &run), CVY_OK);
    assert_true(squares[0] == -1.0 && squares[1] == -1.0 && squares[2] == 14.0 && squares[3] == -1.0);
    clip.op.params.squares = (cvy_op_params_squares){.slots = 2, .clip_norm = 1.0};
    assert_true(make_op(&clip, CVY_PASS_UPDATE, CVY_F32, &op));
    assert_int_equal(run_op(&cvy_backend_ref, &op, (void *[]){of_two, &scale}, &run), CVY_OK);
    assert_true(fabs(scale - 1.0 / (5.0 + 1e-6)) < 1e-15);
    op.params.squares.clip_norm = 5.5;
    assert_int_equal(run_op(&cvy_backend_ref, &op, (void *[]){of_two, &scale}, &run), CVY_OK);
    assert_true(scale == 1.0);
}

/* A gradient that is not finite stops the update with nothing touched, wherever it stands. */
static void test_update_stops_at_a_gradient_that_is_not_finite(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (int i = 0; i < test_shape_count; i++) {
        const test_shape *shape = &test_shapes[i];
        cvy_run run = make_run(shape);
        cvy_op op;
        if (shape->op.kind == CVY_OP_AVERAGE || /* which looks at no gradient */
            !make_op(shape, CVY_PASS_UPDATE, i % 2 ? CVY_F32 : CVY_F64, &op)) {
            continue;
        }
        test_operands operands = create_operands(&op);
        test_operands before = create_operands(&op);
        const cvy_tensor *dw = &op.operand[0].tensor;
        set_element(dw->dtype, operands.data[0], cvy_tensor_elements(dw) - 1, bad[i % 3]);
        assert_int_equal(run_op(&cvy_backend_ref, &op, operands.data, &run), CVY_ERR_DIVERGED);
        assert_string_equal(cvy_error_message(), "a gradient is not finite");
        for (int j = 1; j < op.operands; j++) {
            assert_memory_equal(operands.data[j], before.data[j], (size_t)cvy_tensor_bytes(&op.operand[j].tensor));
        }
        destroy_operands(&operands);
        destroy_operands(&before);
    }
}

/* A kernel allocates when it is made, and says so where that fails; never when it runs. */
static void test_memory_is_taken_in_create_alone(void **state)
{
    (void)state;
    for (int i = 0; i < test_shape_count; i++) {
        cvy_run run = make_run(&test_shapes[i]);
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            cvy_op op;
            cvy_kernel *kernel = NULL;
            if (!make_op(&test_shapes[i], (cvy_op_pass)pass, CVY_F32, &op)) {
                continue;
            }
            for (int allocation = 0; allocation < 2; allocation++) {
                cvy_memory_fail_after(allocation);
                assert_int_equal(cvy_kernel_create(&chain, &op, &kernel), CVY_ERR_MEMORY);
                assert_null(kernel);
            }
            cvy_memory_fail_after(-1);
            test_operands operands = create_operands(&op);
            assert_int_equal(cvy_kernel_create(&chain, &op, &kernel), CVY_OK);
            assert_int_equal(cvy_kernel_scratch_bytes(kernel), 0);
            int64_t allocations = cvy_memory_allocations();
            assert_int_equal(cvy_kernel_run(kernel, operands.data, NULL, &run), CVY_OK);
            assert_int_equal(cvy_memory_allocations(), allocations);
            cvy_kernel_destroy(&kernel);
            destroy_operands(&operands);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes_every_op_and_no_other),
        cmocka_unit_test(test_formats_and_types_do_not_change_the_result),
        cmocka_unit_test(test_reorders_between_any_two_formats),
        cmocka_unit_test(test_in_place_equals_out_of_place),
        cmocka_unit_test(test_slices_undo_a_concat),
        cmocka_unit_test(test_fused_batch_norm_equals_its_parts),
        cmocka_unit_test(test_batch_norm_over_two_ranks_equals_one),
        cmocka_unit_test(test_dropout_masks_belong_to_samples),
        cmocka_unit_test(test_dropout_draws_the_words_that_it_says),
        cmocka_unit_test(test_dropout_keeps_the_share_that_it_says),
        cmocka_unit_test(test_stochastic_depth_draws_a_number_a_sample),
        cmocka_unit_test(test_sgd_by_hand),
        cmocka_unit_test(test_adamw_by_hand),
        cmocka_unit_test(test_clipping_by_hand),
        cmocka_unit_test(test_update_stops_at_a_gradient_that_is_not_finite),
        cmocka_unit_test(test_memory_is_taken_in_create_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
