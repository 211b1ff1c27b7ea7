/*
 * Shares of a tensor, in every backend that takes them and every format: a share's dropout draws the mask that the
 * whole tensor has there, and what is picked or framed is what plain loops over the whole tensor find. What a rank
 * holds of a dimension is written as a row of marks, one for each index of the whole: # it holds, . it does not.
 */
#include "support.h"

static const cvy_format formats[] = {CVY_FORMAT_PLAIN, CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_C8, CVY_FORMAT_C16};
enum { FORMATS = sizeof formats / sizeof formats[0], SAMPLES = 3 };

/* What is held of c, d, h, w; NULL where the tensor has no such dimension. */
typedef struct held {
    const char *marks[4];
} held;

static const held shares[] = {
    {{".####...", NULL, "#####", "######"}},
    {{"..##.####..#######.", NULL, "####", "#####"}},
    {{"################........", NULL, "###", "##"}},
    {{"#########", NULL, "..###...", "#######"}},
    {{"#########", NULL, "########", "....####"}},
    {{"###.##", NULL, ".###.", "..##"}},
    {{"#################", NULL, "#.##.#", "####"}},
    {{"####", "###", "#####", "###.#.##"}},
    {{".####", "..#", "###..", ".#####"}},
    {{"#########", ".##", "####", "###"}},
    {{"..#########.##############....#########", NULL, NULL, NULL}},
    {{"............................................#############", NULL, NULL, NULL}},
    {{".#....................", NULL, "#.", ".#"}},
};
enum { SHARES = sizeof shares / sizeof shares[0] };

static int64_t count_held(const char *marks)
{
    int64_t count = marks ? 0 : 1;
    for (; marks && *marks; marks++) {
        count += *marks == '#';
    }
    return count;
}

/* The index in the whole of the i-th that is held. */
static int64_t find_held(const char *marks, int64_t i)
{
    int64_t at = 0;
    for (; marks && (marks[at] != '#' || i > 0); at++) {
        i -= marks[at] == '#';
    }
    return at;
}

static int64_t get_whole(const char *marks) { return marks ? (int64_t)strlen(marks) : 1; }

/* The stretches of a row of marks. */
static cvy_intervals find_stretches(const char *marks)
{
    cvy_intervals list = {0};
    for (int64_t i = 0; marks && marks[i]; i++) {
        if (marks[i] == '#' && (i == 0 || marks[i - 1] != '#')) {
            list.at[list.count].begin = i;
        }
        if (marks[i] == '#' && marks[i + 1] != '#') {
            list.at[list.count++].end = i + 1;
        }
    }
    return list;
}

/* n and the dimensions that there are, as held or whole. */
static cvy_shape make_shape(const held *h, bool whole)
{
    cvy_shape shape = CVY_SHAPE(SAMPLES);
    for (int dim = 0; dim < 4; dim++) {
        if (h->marks[dim]) {
            shape.extent[shape.dims++] = whole ? get_whole(h->marks[dim]) : count_held(h->marks[dim]);
        }
    }
    return shape;
}

/* The number in a whole sample of element e of a share. */
static int64_t number_in_whole(const held *h, int64_t e)
{
    int64_t index[4], number = 0;
    for (int dim = 3; dim >= 0; dim--) {
        index[dim] = find_held(h->marks[dim], e % count_held(h->marks[dim]));
        e /= count_held(h->marks[dim]);
    }
    for (int dim = 0; dim < 4; dim++) {
        number = number * get_whole(h->marks[dim]) + index[dim];
    }
    return number;
}

static void make_dropout(const held *h, cvy_dtype dtype, cvy_op_pass pass, cvy_format format, cvy_op *op)
{
    test_shape shape = {.op = DROPOUT(0.4, 11), .x = make_shape(h, false)};
    cvy_op_params_dropout *params = &shape.op.params.dropout;
    for (int dim = 0; dim < 4; dim++) {
        cvy_intervals stretches = find_stretches(h->marks[dim]);
        params->whole[dim] = get_whole(h->marks[dim]);
        params->first[dim] = stretches.count ? stretches.at[0].begin : 0;
        if (stretches.count > 1) {
            params->stretched = dim;
            params->stretches = stretches;
        }
    }
    assert_true(make_op(&shape, pass, dtype, op));
    set_formats(op, format, CVY_FORMAT_PLAIN);
    assert_int_equal(cvy_op_check(op), CVY_OK);
}

/* False where the backend does not take it. */
static bool check_dropout(const cvy_backend *backend, const held *h, cvy_dtype dtype, cvy_op_pass pass,
                          cvy_format format)
{
    cvy_op op;
    make_dropout(h, dtype, pass, format, &op);
    if (backend->quality(&op) == CVY_QUALITY_NONE) {
        return false;
    }
    const cvy_run run = {.seed = 42, .step = 5, .sample_first = 16, .samples = SAMPLES};
    const cvy_tensor *x = &op.operand[0].tensor;
    int64_t elements = cvy_shape_elements(&x->shape), values = elements / SAMPLES;
    cvy_layout layout = cvy_tensor_layout(x);
    test_operands operands = create_operands(&op);
    assert_int_equal(run_op(backend, &op, operands.data, &run), CVY_OK);
    for (int64_t e = 0; e < elements; e++) {
        int64_t number = number_in_whole(h, e % values), at = element_offset(x, &layout, e);
        cvy_words words = cvy_random_words(42, CVY_PURPOSE_DROPOUT, 11, 5, (uint32_t)(16 + e / values),
                                           (uint32_t)(number / 4));
        double factor = cvy_random_unit(words.v[number % 4]) < 0.4 ? 0.0 : 1 / 0.6;
        double y = get_element(dtype, operands.data[1], at);
        double wanted = factor * get_element(dtype, operands.data[0], at);
        if (!(fabs(y - wanted) <= 1e-6 * fabs(wanted))) {
            char text[CVY_OP_TEXT];
            fail_msg("%s: %s: element %d is %g, expected %g", backend->name, cvy_op_print(&op, text), (int)e, y,
                     wanted);
        }
    }
    assert_true(padding_is_zero(&op.operand[1].tensor, operands.data[1]));
    destroy_operands(&operands);
    return true;
}

static void test_the_mask_of_a_share_is_that_of_the_whole(void **state)
{
    (void)state;
    for (int k = 0; cvy_backend_get(k); k++) {
        const cvy_backend *backend = cvy_backend_get(k);
        int taken = 0;
        for (int i = 0; i < SHARES * FORMATS * 4; i++) {
            const held *h = &shares[i / 4 / FORMATS];
            cvy_dtype dtype = i % 2 ? CVY_F64 : CVY_F32;
            cvy_op_pass pass = i / 2 % 2 ? CVY_PASS_BACKWARD_DATA : CVY_PASS_FORWARD;
            taken += check_dropout(backend, h, dtype, pass, formats[i / 4 % FORMATS]);
        }
        bool ref = strcmp(backend->name, "ref") == 0, cpu = strcmp(backend->name, "cpu") == 0;
        assert_int_equal(taken, SHARES * FORMATS * (ref ? 4 : cpu ? 2 : 0));
    }
}

/* Copy on a backend and compare with @p expected, -1: zero, else the number of the element of x that comes there. */
static bool check_copy(const cvy_backend *backend, const cvy_op *op, const int64_t *expected)
{
    const cvy_tensor *x = &op->operand[0].tensor, *y = &op->operand[1].tensor;
    const cvy_run run = {.samples = SAMPLES};
    if (backend->quality(op) == CVY_QUALITY_NONE) {
        return false;
    }
    cvy_layout from = cvy_tensor_layout(x), to = cvy_tensor_layout(y);
    test_operands operands = create_operands(op);
    for (int64_t e = 0; e < cvy_shape_elements(&x->shape); e++) {
        set_element(x->dtype, operands.data[0], element_offset(x, &from, e), (double)(e + 1));
    }
    assert_int_equal(run_op(backend, op, operands.data, &run), CVY_OK);
    for (int64_t e = 0; e < cvy_shape_elements(&y->shape); e++) {
        double found = get_element(y->dtype, operands.data[1], element_offset(y, &to, e));
        if (found != (double)(expected[e] + 1)) {
            char text[CVY_OP_TEXT];
            fail_msg("%s: %s: element %d is %g, expected %g", backend->name, cvy_op_print(op, text), (int)e, found,
                     (double)(expected[e] + 1));
        }
    }
    assert_true(padding_is_zero(y, operands.data[1]));
    destroy_operands(&operands);
    return true;
}

/* Between any two formats; counts what a backend took of them in single precision. */
static int check_copies(const cvy_backend *backend, const test_shape *shape, const int64_t *expected)
{
    int taken = 0;
    for (int i = 0; i < FORMATS * FORMATS; i++) {
        cvy_op op;
        assert_true(make_op(shape, CVY_PASS_FORWARD, CVY_F32, &op));
        for (int k = 0; k < 2; k++) {
            op.operand[k].tensor.format = formats[k ? i / FORMATS : i % FORMATS];
            if (!cvy_tensor_format_fits(&op.operand[k].tensor)) {
                op.operand[k].tensor.format = CVY_FORMAT_PLAIN;
            }
        }
        assert_int_equal(cvy_op_check(&op), CVY_OK);
        taken += check_copy(backend, &op, expected);
    }
    return taken;
}

/* Every backend that has picks and frames has them between any two formats. */
static void check_everywhere(const test_shape *shape, const int64_t *expected)
{
    for (int k = 0; cvy_backend_get(k); k++) {
        const cvy_backend *backend = cvy_backend_get(k);
        bool takes = strcmp(backend->name, "onednn") != 0;
        assert_int_equal(check_copies(backend, shape, expected), takes ? FORMATS * FORMATS : 0);
    }
}

/* Along one dimension of a tensor what is held there, and all of the others. */
static void test_a_pick_takes_what_is_held(void **state)
{
    (void)state;
    for (int i = 0; i < SHARES * 4; i++) {
        const char *marks = shares[i / 4].marks[i % 4];
        held one = shares[i / 4];
        int64_t expected[8192];
        if (!marks) {
            continue;
        }
        test_shape shape = {.op = PICK(0, {0}), .x = make_shape(&one, true)};
        for (int dim = 0; dim < 4; dim++) { /* the others are whole, as are those behind them that count */
            static const char all[] = "########################################################################";
            bool there = one.marks[dim] != NULL && dim != i % 4;
            one.marks[dim] = there ? all + sizeof all - 1 - strlen(one.marks[dim]) : one.marks[dim];
            shape.op.params.pick.dim += dim <= i % 4 && one.marks[dim];
        }
        shape.op.params.pick.intervals = find_stretches(marks);
        cvy_shape y = make_shape(&one, false);
        int64_t values = cvy_shape_elements(&y) / SAMPLES, whole = cvy_shape_elements(&shape.x) / SAMPLES;
        assert_true(SAMPLES * values <= 8192);
        for (int64_t e = 0; e < SAMPLES * values; e++) {
            expected[e] = e / values * whole + number_in_whole(&one, e % values);
        }
        check_everywhere(&shape, expected);
    }
}

static const test_shape frames[] = {
    {.op = FRAME(0, -1, -2, 1, 7, 6), .x = DIMS(SAMPLES, 9, 5, 3)},
    {.op = FRAME(0, 2, 0, 1, 3, 3), .x = DIMS(SAMPLES, 18, 6, 3)},
    {.op = FRAME(0, -2, 0, 1, 9, 6), .x = DIMS(SAMPLES, 16, 7, 6)},
    {.op = FRAME(0, 1, 0, 1, 4, 6), .x = DIMS(SAMPLES, 16, 7, 6)},
    {.op = FRAME(0, 0, 3, 1, 5, 4), .x = DIMS(SAMPLES, 5, 5, 5)},
    {.op = FRAME(-2, 1, 0, 3, 4, 4), .x = DIMS(SAMPLES, 3, 3, 4, 5)},
    {.op = FRAME(1, -1, -1, 4, 6, 5), .x = DIMS(SAMPLES, 11, 3, 4, 3)},
    {.op = FRAME(-1, 0, 0, 4, 4, 3), .x = DIMS(SAMPLES, 8, 2, 4, 3)},
    {.op = FRAME(0, -1, 0, 1, 3, 2), .x = DIMS(SAMPLES, 20, 1, 1)},
    {.op = FRAME(0, 7, 0, 1, 2, 3), .x = DIMS(SAMPLES, 10, 7, 3)},
};

static void test_a_frame_takes_the_rows_that_there_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        const int64_t *first = frames[i].op.params.frame.first, *output = frames[i].op.params.frame.output;
        int64_t expected[8192], x[3], e = 0;
        cvy_space_get(&frames[i].x, x);
        for (int64_t plane = 0; plane < SAMPLES * frames[i].x.extent[1]; plane++) {
            for (int64_t p = 0; p < output[0] * output[1] * output[2]; p++) {
                int64_t d = p / output[2] / output[1] + first[0], h = p / output[2] % output[1] + first[1];
                int64_t w = p % output[2] + first[2];
                bool inside = d >= 0 && d < x[0] && h >= 0 && h < x[1] && w >= 0 && w < x[2];
                expected[e++] = inside ? ((plane * x[0] + d) * x[1] + h) * x[2] + w : -1;
            }
        }
        assert_true(e <= 8192);
        check_everywhere(&frames[i], expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_mask_of_a_share_is_that_of_the_whole),
        cmocka_unit_test(test_a_pick_takes_what_is_held),
        cmocka_unit_test(test_a_frame_takes_the_rows_that_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
