/*
 * Boxes of tensors against plain loops: where an element lies is written out here for each format of activations, and
 * the order in which elements travel is that of the loops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "runtime/pack.h"

enum { TRIALS = 400, GUARD = 4 };

static uint32_t drawn;

static int64_t draw(int64_t below)
{
    uint32_t word = cvy_random_words(7, CVY_PURPOSE_SYNTHETIC_DATA, 0, 0, 0, drawn++).v[0];
    return (int64_t)(word % (uint32_t)below);
}

static const cvy_format formats[] = {CVY_FORMAT_PLAIN, CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_C8, CVY_FORMAT_C16};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static int64_t blocks_of(cvy_format format) { return format == CVY_FORMAT_C8 ? 8 : format == CVY_FORMAT_C16 ? 16 : 1; }

/* n,c,d,h,w; d is 1 in tensors of four dimensions. */
typedef struct place {
    int64_t at[5];
} place;

/* Of a tensor, and of a box: where a dimension n,c,d,h,w is among theirs. -1: it has none. */
static int dim_of(const cvy_tensor *t, int k) { return t->shape.dims == 5 || k < 2 ? k : k == 2 ? -1 : k - 1; }

static int64_t extent_of(const cvy_tensor *t, int k) { return dim_of(t, k) < 0 ? 1 : t->shape.extent[dim_of(t, k)]; }

static int64_t offset_of(const cvy_tensor *t, place p)
{
    int64_t c = extent_of(t, 1), d = extent_of(t, 2), h = extent_of(t, 3), w = extent_of(t, 4);
    int64_t in_space = (p.at[2] * h + p.at[3]) * w + p.at[4], space = d * h * w, block = blocks_of(t->format);
    if (t->format == CVY_FORMAT_PLAIN) {
        return (p.at[0] * c + p.at[1]) * space + in_space;
    }
    if (t->format == CVY_FORMAT_CHANNELS_LAST) {
        return (p.at[0] * space + in_space) * c + p.at[1];
    }
    int64_t blocks = (c + block - 1) / block;
    return ((p.at[0] * blocks + p.at[1] / block) * space + in_space) * block + p.at[1] % block;
}

static int64_t elements_of(const cvy_tensor *t)
{
    int64_t block = blocks_of(t->format), c = (extent_of(t, 1) + block - 1) / block * block;
    return extent_of(t, 0) * c * extent_of(t, 2) * extent_of(t, 3) * extent_of(t, 4);
}

/* Call for each element of a box with its place and its number in an order. */
static void walk_box(const cvy_tensor *t, const cvy_box *box, bool channels_last,
                     void (*visit)(void *context, int64_t offset, int64_t number), void *context)
{
    static const int plain[5] = {0, 1, 2, 3, 4}, last[5] = {0, 2, 3, 4, 1};
    const int *order = channels_last ? last : plain;
    int64_t total = cvy_box_elements(box, t->shape.dims);
    for (int64_t number = 0; number < total; number++) {
        place p = {{0}};
        int64_t rest = number;
        for (int i = 4; i >= 0; i--) {
            int dim = dim_of(t, order[i]);
            int64_t extent = dim < 0 ? 1 : box->extent[dim];
            p.at[order[i]] = (dim < 0 ? 0 : box->begin[dim]) + rest % extent;
            rest /= extent;
        }
        visit(context, offset_of(t, p), number);
    }
}

/* Memory of a trial, in double; f32 is cast where it is laid down. */
typedef struct trial {
    cvy_tensor tensor;
    cvy_box box;
    cvy_format order;
    int64_t elements, packed_elements;
    void *memory, *packed;
    double *expected; /* the tensor, after the box came back */
    double factor;    /* of what is there: 1 where it is added to */
} trial;

static double load(const trial *t, const void *memory, int64_t i)
{
    return t->tensor.dtype == CVY_F32 ? ((const float *)memory)[i] : ((const double *)memory)[i];
}

static void store(const trial *t, void *memory, int64_t i, double value)
{
    if (t->tensor.dtype == CVY_F32) {
        ((float *)memory)[i] = (float)value;
    } else {
        ((double *)memory)[i] = value;
    }
}

static void check_packed(void *context, int64_t offset, int64_t number)
{
    const trial *t = context;
    assert_true(load(t, t->packed, number) == load(t, t->memory, offset));
}

static void expect_back(void *context, int64_t offset, int64_t number)
{
    trial *t = context;
    t->expected[offset] = t->factor * load(t, t->memory, offset) + load(t, t->packed, number);
}

static void check_pack(trial *t, const cvy_pack *pack)
{
    bool last = t->order != CVY_FORMAT_PLAIN;
    for (int64_t i = 0; i < t->elements; i++) {
        store(t, t->memory, i, (double)i + 1.0); /* all different, exact in float */
    }
    for (int64_t i = 0; i < t->packed_elements + GUARD; i++) {
        store(t, t->packed, i, -3.0);
    }
    cvy_pack_run(pack);
    walk_box(&t->tensor, &t->box, last, check_packed, t);
    for (int i = 0; i < GUARD; i++) {
        assert_true(load(t, t->packed, t->packed_elements + i) == -3.0);
    }
}

static void check_back(trial *t, const cvy_pack *pack, bool add)
{
    for (int64_t i = 0; i < t->packed_elements; i++) {
        store(t, t->packed, i, 0.5 - (double)i);
    }
    for (int64_t i = 0; i < t->elements; i++) {
        t->expected[i] = load(t, t->memory, i);
    }
    t->factor = add ? 1.0 : 0.0;
    walk_box(&t->tensor, &t->box, t->order != CVY_FORMAT_PLAIN, expect_back, t);
    cvy_pack_run_back(pack, add);
    for (int64_t i = 0; i < t->elements; i++) {
        assert_true(load(t, t->memory, i) == t->expected[i]);
    }
}

static void check_trial(trial *t)
{
    cvy_pack pack;
    t->elements = elements_of(&t->tensor);
    t->packed_elements = cvy_box_elements(&t->box, t->tensor.shape.dims);
    assert_int_equal(t->elements, cvy_tensor_elements(&t->tensor));
    t->memory = malloc((size_t)t->elements * sizeof(double));
    t->packed = malloc((size_t)(t->packed_elements + GUARD) * sizeof(double));
    t->expected = malloc((size_t)t->elements * sizeof(double));
    assert_true(t->memory && t->packed && t->expected);
    cvy_pack_setup(&t->tensor, t->memory, &t->box, t->order, t->packed, &pack);
    check_pack(t, &pack);
    check_back(t, &pack, false);
    check_back(t, &pack, true);
    free(t->memory);
    free(t->packed);
    free(t->expected);
}

static void test_boxes_of_every_format_are_packed_and_put_back(void **state)
{
    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        trial t = {.tensor = {.dtype = i & 1 ? CVY_F32 : CVY_F64, .format = formats[i / 2 % FORMATS]},
                   .order = formats[draw(FORMATS)]};
        t.tensor.shape.dims = 4 + (int)draw(2);
        for (int dim = 0; dim < t.tensor.shape.dims; dim++) {
            t.tensor.shape.extent[dim] = 1 + draw(dim == 1 ? 40 : 4);
            t.box.begin[dim] = draw(t.tensor.shape.extent[dim]);
            t.box.extent[dim] = 1 + draw(t.tensor.shape.extent[dim] - t.box.begin[dim]);
        }
        check_trial(&t);
    }
}

/* Blocks of 8: channels 5 to 7 end a block, 8 to 23 are whole ones, 24 to 26 begin the last. */
static void test_a_box_begins_and_ends_within_blocks(void **state)
{
    (void)state;
    static const int64_t ends[][2] = {{5, 27}, {5, 8}, {5, 7}, {0, 27}, {8, 24}, {8, 27}, {23, 25}, {27, 28}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        trial t = {.tensor = {{4, {2, 29, 3, 2}}, CVY_F32, CVY_FORMAT_C8, false}, .order = CVY_FORMAT_C8};
        t.box = cvy_box_whole(&t.tensor);
        t.box.begin[1] = ends[i][0];
        t.box.extent[1] = ends[i][1] - ends[i][0];
        check_trial(&t);
    }
}

/* More elements than one thread copies alone. */
static void test_large_boxes_are_shared_by_threads(void **state)
{
    (void)state;
    for (int i = 0; i < FORMATS * FORMATS; i++) {
        trial t = {.tensor = {{4, {3, 37, 33, 31}}, CVY_F32, formats[i % FORMATS], false},
                   .order = formats[i / FORMATS]};
        t.box = cvy_box_whole(&t.tensor);
        t.box.begin[1] = 3;
        t.box.extent[1] = 31;
        t.box.extent[2] = 32;
        check_trial(&t);
    }
}

static void test_an_empty_box_moves_nothing(void **state)
{
    (void)state;
    trial t = {.tensor = {{4, {2, 9, 3, 2}}, CVY_F64, CVY_FORMAT_C8, false}, .order = CVY_FORMAT_PLAIN};
    t.box = cvy_box_whole(&t.tensor);
    t.box.begin[2] = 3;
    t.box.extent[2] = 0;
    check_trial(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes_of_every_format_are_packed_and_put_back),
        cmocka_unit_test(test_a_box_begins_and_ends_within_blocks),
        cmocka_unit_test(test_large_boxes_are_shared_by_threads),
        cmocka_unit_test(test_an_empty_box_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
