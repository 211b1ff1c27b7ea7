/*
 * Regions against loops over every index: a region is the set of the places whose every index is held, and in memory
 * an index lies as far from the first as there are held ones before it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "runtime/region.h"

enum { TRIALS = 500, INDICES = 9, PLACES = INDICES * INDICES * INDICES };

static uint32_t drawn;

static int64_t draw(int64_t below)
{
    uint32_t word = cvy_random_words(11, CVY_PURPOSE_SYNTHETIC_DATA, 0, 0, 0, drawn++).v[0];
    return (int64_t)(word % (uint32_t)below);
}

/* Which indices of three dimensions are held. */
typedef struct held {
    bool index[3][INDICES];
} held;

static cvy_intervals to_intervals(const bool *index)
{
    cvy_intervals list = {0};
    for (int i = 0; i < INDICES; i++) {
        if (index[i] && i > 0 && index[i - 1]) {
            list.at[list.count - 1].end = i + 1;
        } else if (index[i]) {
            list.at[list.count++] = (cvy_interval){i, i + 1};
        }
    }
    return list;
}

/* Some stretches in one dimension, one stretch in the others, now and then nothing. */
static held draw_held(void)
{
    held h = {{{false}}};
    int64_t stretched = draw(3);
    for (int dim = 0; dim < 3; dim++) {
        int64_t begin = draw(INDICES), end = begin + draw(INDICES + 1 - begin);
        for (int64_t i = 0; i < INDICES; i++) {
            h.index[dim][i] = dim == stretched ? draw(2) == 1 : begin <= i && i < end;
        }
    }
    return h;
}

static cvy_region to_region(const held *h)
{
    cvy_region region = {.dims = 3};
    for (int dim = 0; dim < 3; dim++) {
        region.held[dim] = to_intervals(h->index[dim]);
    }
    return region;
}

/* Places that both hold, in the order of their indices: as numbers of the whole tensor. */
static int list_common(const held *a, const held *b, int places[PLACES])
{
    int count = 0;
    for (int place = 0; place < PLACES; place++) {
        int at[3] = {place / (INDICES * INDICES), place / INDICES % INDICES, place % INDICES};
        bool both = true;
        for (int dim = 0; dim < 3; dim++) {
            both = both && a->index[dim][at[dim]] && b->index[dim][at[dim]];
        }
        if (both) {
            places[count++] = place;
        }
    }
    return count;
}

/* The index of the whole dimension that lies at a place of what is held. */
static int find_index(const bool *index, int64_t local)
{
    for (int i = 0; i < INDICES; i++) {
        if (index[i] && local-- == 0) {
            return i;
        }
    }
    fail_msg("a box reaches beyond what is held");
    return -1;
}

/* The places that the boxes of a walk have, in the order in which they travel. */
static int list_walked(const held *mine, const cvy_region *a, const cvy_region *b, int places[PLACES])
{
    cvy_region_walk walk;
    cvy_box box;
    int count = 0;
    cvy_region_walk_start(a, b, &walk);
    while (cvy_region_walk_next(&walk, &box)) {
        int64_t elements = cvy_box_elements(&box, 3);
        assert_true(elements > 0 && count + elements <= PLACES);
        for (int64_t i = 0; i < elements; i++) {
            int64_t local[3] = {box.begin[0] + i / (box.extent[1] * box.extent[2]),
                                box.begin[1] + i / box.extent[2] % box.extent[1], box.begin[2] + i % box.extent[2]};
            int place = 0;
            for (int dim = 0; dim < 3; dim++) {
                place = place * INDICES + find_index(mine->index[dim], local[dim]);
            }
            places[count++] = place;
        }
    }
    return count;
}

static int compare_places(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void test_both_sides_walk_over_what_both_hold_in_one_order(void **state)
{
    (void)state;
    static int common[PLACES], sent[PLACES], received[PLACES];
    for (int trial = 0; trial < TRIALS; trial++) {
        held h[2] = {draw_held(), draw_held()};
        cvy_region a = to_region(&h[0]), b = to_region(&h[1]);
        int count = list_common(&h[0], &h[1], common);
        assert_int_equal(cvy_region_overlap(&a, &b), count);
        assert_int_equal(list_walked(&h[0], &a, &b, sent), count);
        assert_int_equal(list_walked(&h[1], &b, &a, received), count);
        assert_memory_equal(sent, received, (size_t)count * sizeof *sent);
        qsort(sent, (size_t)count, sizeof *sent, compare_places);
        assert_memory_equal(sent, common, (size_t)count * sizeof *sent);
        assert_int_equal(cvy_region_elements(&a), list_common(&h[0], &h[0], common));
    }
}

/* 2 samples of channels 1 to 3 and 6, and no rows: nothing is held. With rows 4 and 5 it is 2 * 4 * 2. */
static void test_a_region_is_what_a_buffer_holds(void **state)
{
    (void)state;
    cvy_buffer buffer = {.local = {{0, 2}, {1, 7}, {4, 4}}, .stretched = 1, .stretches = {2, {{1, 4}, {6, 7}}}};
    buffer.tensor.shape.dims = 3;
    cvy_region none = cvy_region_of(&buffer);
    buffer.local[2] = (cvy_interval){4, 6};
    cvy_region region = cvy_region_of(&buffer);
    assert_int_equal(cvy_region_elements(&none), 0);
    assert_int_equal(cvy_region_overlap(&none, &region), 0);
    assert_int_equal(cvy_region_elements(&region), 16);
    buffer.stretches.count = 0;
    buffer.local[1] = (cvy_interval){3, 7};
    cvy_region other = cvy_region_of(&buffer);
    assert_int_equal(cvy_region_overlap(&region, &other), 8); /* channels 3 and 6 */
}

static void test_a_walk_over_nothing_ends_at_once(void **state)
{
    (void)state;
    cvy_region a = {.dims = 1, .held = {{1, {{0, 3}}}}}, b = {.dims = 1, .held = {{1, {{3, 5}}}}};
    cvy_region_walk walk;
    cvy_box box;
    cvy_region_walk_start(&a, &b, &walk);
    assert_false(cvy_region_walk_next(&walk, &box));
    assert_false(cvy_region_walk_next(&walk, &box));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_sides_walk_over_what_both_hold_in_one_order),
        cmocka_unit_test(test_a_region_is_what_a_buffer_holds),
        cmocka_unit_test(test_a_walk_over_nothing_ends_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
