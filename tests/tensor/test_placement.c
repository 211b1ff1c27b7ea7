/* Placements and redistributions against ownership tables: who holds which element, found index by index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "tensor/redistribution.h"

enum { CASES = 3000, MAX_PARTS = 5, MAX_EXTENT = 24 };

static int64_t draw(uint32_t seed, uint32_t place, int64_t low, int64_t high)
{
    cvy_words words = cvy_random_words(seed, CVY_PURPOSE_SYNTHETIC_DATA, 0, 0, 0, place);
    return low + (int64_t)(words.v[0] % (uint64_t)(high - low + 1));
}

static void assert_lengths(const cvy_placement *placement, int64_t extent, const int64_t *expected)
{
    for (int64_t i = 0; i < placement->parts; i++) {
        cvy_intervals share = cvy_placement_share(placement, placement->dim, extent, i);
        assert_int_equal(cvy_intervals_length(&share), expected[i]);
    }
}

/* 7 filters over 4 are 2 2 2 1; 12 channels in groups of 4 over 2 are 8 4; over 4, 4 4 4 0. */
static void test_balanced_shares_keep_units_whole(void **state)
{
    (void)state;
    cvy_placement split;
    assert_int_equal(cvy_placement_split(1, 7, 1, 4, &split), CVY_OK);
    assert_lengths(&split, 7, (int64_t[]){2, 2, 2, 1});
    assert_int_equal(cvy_placement_split(1, 12, 4, 2, &split), CVY_OK);
    assert_lengths(&split, 12, (int64_t[]){8, 4});
    assert_int_equal(cvy_placement_split(1, 12, 4, 4, &split), CVY_OK);
    assert_lengths(&split, 12, (int64_t[]){4, 4, 4, 0});
    cvy_placement kept = split;
    assert_int_equal(cvy_placement_split(1, 13, 4, 2, &split), CVY_ERR_INFEASIBLE);
    assert_string_equal(cvy_error_message(), "an extent of 13 cannot be cut in units of 4");
    assert_memory_equal(&split, &kept, sizeof kept);
}

/*
 * 13 by 3:1 are quotas of 9.75 and 3.25, so 9 and 3, and the left one to the larger remainder: 10 3. In units of 4,
 * 16 by 1:1:1 are quotas of 1.33 units: 8 4 4. 10 by 0:1:4 are 0 2 8.
 */
static void test_weighted_shares_round_to_the_largest_remainder(void **state)
{
    (void)state;
    int64_t border[4];
    assert_int_equal(cvy_placement_weigh(13, 1, (int64_t[]){3, 1}, 2, border), CVY_OK);
    assert_memory_equal(border, ((int64_t[]){0, 10, 13}), 3 * sizeof *border);
    assert_int_equal(cvy_placement_weigh(16, 4, (int64_t[]){1, 1, 1}, 3, border), CVY_OK);
    assert_memory_equal(border, ((int64_t[]){0, 8, 12, 16}), sizeof border);
    assert_int_equal(cvy_placement_weigh(10, 1, (int64_t[]){0, 1, 4}, 3, border), CVY_OK);
    assert_memory_equal(border, ((int64_t[]){0, 0, 2, 10}), sizeof border);
    assert_int_equal(cvy_placement_weigh(10, 1, (int64_t[]){3, -1}, 2, border), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "share 2 of 2 is -1, expected 0 or more");
    assert_int_equal(cvy_placement_weigh(10, 1, (int64_t[]){0, 0}, 2, border), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "all 2 shares are 0");
    assert_int_equal(cvy_placement_weigh(10, 1, (int64_t[]){1, INT64_MAX / 9}, 2, border), CVY_ERR_INPUT);
    assert_int_equal(cvy_placement_weigh(10, 4, (int64_t[]){1, 1}, 2, border), CVY_ERR_INFEASIBLE);
    assert_memory_equal(border, ((int64_t[]){0, 0, 2, 10}), sizeof border);
}

/* Equal weights are the balanced shares; any weights are within one of their quota. */
static void test_weighted_shares_stay_near_their_quota(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        int64_t parts = draw(seed, 0, 1, MAX_PARTS), extent = draw(seed, 1, 0, 100), total = 0;
        int64_t weights[MAX_PARTS], border[MAX_PARTS + 1];
        for (int64_t i = 0; i < parts; i++) {
            weights[i] = seed % 2 ? 3 : draw(seed, 2 + (uint32_t)i, i == 0, 9);
            total += weights[i];
        }
        assert_int_equal(cvy_placement_weigh(extent, 1, weights, parts, border), CVY_OK);
        assert_int_equal(border[parts], extent);
        for (int64_t i = 0; i < parts; i++) {
            int64_t share = border[i + 1] - border[i];
            assert_true(share * total > extent * weights[i] - total && share * total < extent * weights[i] + total);
            cvy_intervals balanced = cvy_intervals_share(extent, parts, i);
            assert_true(seed % 2 == 0 || share == cvy_intervals_length(&balanced));
        }
    }
}

/* Channels 0-3 and 4-9 over 2: rank 0 holds 0-1 and 4-6, rank 1 holds 2-3 and 7-9; over 1 all is one interval. */
static void test_a_concat_keeps_the_shares_of_its_inputs(void **state)
{
    (void)state;
    cvy_placement first, second;
    assert_int_equal(cvy_placement_split(1, 4, 1, 2, &first), CVY_OK);
    assert_int_equal(cvy_placement_split(1, 6, 1, 2, &second), CVY_OK);
    assert_int_equal(cvy_placement_concat(&first, &second), CVY_OK);
    static const cvy_intervals expected[2] = {{2, {{0, 2}, {4, 7}}}, {2, {{2, 4}, {7, 10}}}};
    for (int64_t i = 0; i < 2; i++) {
        cvy_intervals share = cvy_placement_share(&first, 1, 10, i);
        assert_memory_equal(&share, &expected[i], sizeof share);
    }
    assert_int_equal(cvy_placement_concat(&first, &first), CVY_OK); /* with itself: 0-9 again as 10-19 */
    cvy_intervals share = cvy_placement_share(&first, 1, 20, 1);
    assert_int_equal(share.count, 4);
    assert_true(share.at[3].begin == 17 && share.at[3].end == 20);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cvy_placement_concat(&first, &first), CVY_OK);
    }
    assert_int_equal(cvy_placement_concat(&first, &first), CVY_ERR_UNSUPPORTED);
    assert_string_equal(cvy_error_message(), "a concat of 32 separately cut stretches, at most 16");
    cvy_placement whole = cvy_placement_replicate(2);
    assert_int_equal(cvy_placement_concat(&first, &whole), CVY_ERR_ARG);
}

/* A tensor of two dimensions, and which rank holds which element. */
typedef struct ownership {
    bool holds[MAX_PARTS][MAX_EXTENT][MAX_EXTENT];
} ownership;

typedef struct random_placement {
    cvy_placement placement;
    int64_t border[2][MAX_PARTS + 1]; /* what the placement borrows */
} random_placement;

/* Balanced, at random borders, in units, or as a concat of two stretches. */
static void make_split(uint32_t seed, int dim, int64_t extent, int64_t parts, random_placement *r)
{
    int64_t stretch[2] = {draw(seed, 20, 0, extent)};
    stretch[1] = extent - stretch[0];
    for (int s = 0; s < 2; s++) {
        int64_t *border = r->border[s];
        for (int64_t i = 0; i < parts; i++) { /* insertion sort of random borders */
            int64_t value = i ? draw(seed, 30 + 10 * (uint32_t)s + (uint32_t)i, 0, stretch[s]) : 0, at = i;
            while (at > 0 && border[at - 1] > value) {
                border[at] = border[at - 1];
                at--;
            }
            border[at] = value;
        }
        border[parts] = stretch[s];
    }
    cvy_placement *p = &r->placement, next = cvy_placement_split_at(dim, r->border[1], parts);
    if (draw(seed, 21, 0, 2) == 0) {
        assert_int_equal(cvy_placement_split(dim, extent, extent % 3 ? 1 : 3, parts, p), CVY_OK);
    } else {
        *p = cvy_placement_split_at(dim, r->border[0], parts);
        assert_int_equal(cvy_placement_concat(p, &next), CVY_OK);
    }
}

static void make_placement(uint32_t seed, const cvy_shape *shape, int64_t parts, random_placement *r)
{
    int64_t kind = draw(seed, 10, 0, 3);
    if (kind >= 2) {
        make_split(seed, (int)kind - 2, shape->extent[kind - 2], parts, r);
    } else {
        r->placement = kind ? cvy_placement_sum(parts) : cvy_placement_replicate(parts);
    }
}

/* By the rule of a stretch, written out: the rank of an index is the last whose border is not behind it. */
static bool owns(const cvy_placement *p, int64_t rank, int dim, int64_t index)
{
    if (p->placing != CVY_PLACING_SPLIT || p->dim != dim) {
        return true;
    }
    for (int s = 0; s < p->segments; s++) {
        const cvy_segment *segment = &p->segment[s];
        int64_t at = index - segment->begin;
        if (at < 0 || at >= segment->extent) {
            continue;
        }
        if (segment->border) {
            return at >= segment->border[rank] && at < segment->border[rank + 1];
        }
        int64_t owner = 0, units = segment->extent / segment->unit;
        for (int64_t taken = 0; taken + units / p->parts + (owner < units % p->parts) <= at / segment->unit; owner++) {
            taken += units / p->parts + (owner < units % p->parts);
        }
        return owner == rank;
    }
    return false;
}

static void fill(const cvy_placement *p, const cvy_shape *shape, ownership *table)
{
    for (int64_t rank = 0; rank < p->parts; rank++) {
        for (int64_t i = 0; i < shape->extent[0]; i++) {
            for (int64_t j = 0; j < shape->extent[1]; j++) {
                table->holds[rank][i][j] = owns(p, rank, 0, i) && owns(p, rank, 1, j);
            }
        }
    }
}

/* What must go from one rank to another: elements that the sender holds or adds to, and the receiver is to hold. */
static int64_t count(const cvy_placement *from, const cvy_placement *to, const ownership *had, const ownership *needed,
                     const cvy_shape *shape, const int64_t pair[2])
{
    int64_t elements = 0;
    bool self = pair[0] == pair[1];
    for (int64_t i = 0; i < shape->extent[0]; i++) {
        for (int64_t j = 0; j < shape->extent[1]; j++) {
            bool both = had->holds[pair[0]][i][j] && needed->holds[pair[1]][i][j];
            bool moves = from->placing != CVY_PLACING_REPLICATED && to->placing != CVY_PLACING_PARTIAL;
            bool counted_once = from->placing != CVY_PLACING_REPLICATED || to->placing != CVY_PLACING_PARTIAL;
            elements += both && (moves || (self && (counted_once || pair[1] == 0)));
        }
    }
    return elements;
}

static cvy_redistribution classify(const cvy_placement *from, const cvy_placement *to, const ownership *had,
                                   const ownership *needed, const cvy_shape *shape)
{
    bool same = true;
    for (int64_t rank = 0; rank < from->parts; rank++) {
        for (int64_t i = 0; i < shape->extent[0]; i++) {
            same = same && !memcmp(had->holds[rank][i], needed->holds[rank][i], (size_t)shape->extent[1]);
        }
    }
    if (from->parts == 1 || (from->placing == to->placing && same)) {
        return CVY_REDISTRIBUTION_NONE;
    }
    if (from->placing == CVY_PLACING_REPLICATED || to->placing == CVY_PLACING_PARTIAL) {
        return CVY_REDISTRIBUTION_LOCAL;
    }
    if (from->placing == CVY_PLACING_PARTIAL) {
        return to->placing == CVY_PLACING_SPLIT ? CVY_REDISTRIBUTION_REDUCE_SCATTER : CVY_REDISTRIBUTION_ALL_REDUCE;
    }
    return to->placing == CVY_PLACING_SPLIT ? CVY_REDISTRIBUTION_ALL_TO_ALL : CVY_REDISTRIBUTION_ALL_GATHER;
}

static cvy_placement transpose(const cvy_placement *placement)
{
    cvy_placement result = *placement;
    if (placement->placing != CVY_PLACING_SPLIT) {
        result.placing = placement->placing == CVY_PLACING_PARTIAL ? CVY_PLACING_REPLICATED : CVY_PLACING_PARTIAL;
    }
    return result;
}

/* 3,000 random pairs of placements (seeds 0 to 2999): kind and elements of every pair of ranks; backward is the
 * transpose, with as many elements the other way. Every kind occurs. */
static void test_redistributions_move_what_ownership_says(void **state)
{
    (void)state;
    static ownership had, needed;
    int seen[CVY_REDISTRIBUTION_COUNT] = {0};
    for (uint32_t seed = 0; seed < CASES; seed++) {
        int64_t parts = draw(seed, 0, 1, MAX_PARTS);
        cvy_shape shape = CVY_SHAPE(draw(seed, 1, 1, MAX_EXTENT), draw(seed, 2, 1, MAX_EXTENT));
        random_placement a, b;
        make_placement(seed, &shape, parts, &a);
        make_placement(seed + CASES, &shape, parts, &b);
        cvy_placement *from = &a.placement, *to = &b.placement;
        fill(from, &shape, &had);
        fill(to, &shape, &needed);
        cvy_redistribution kind = cvy_redistribution_find(from, to);
        if (kind != classify(from, to, &had, &needed, &shape)) {
            fail_msg("seed %u: %s", seed, cvy_redistribution_name(kind));
        }
        seen[kind]++;
        cvy_placement back_from = transpose(to), back_to = transpose(from);
        bool replicas = from->placing == CVY_PLACING_REPLICATED && to->placing == CVY_PLACING_PARTIAL;
        for (int64_t i = 0; i < parts * parts; i++) {
            int64_t pair[2] = {i / parts, i % parts};
            int64_t elements = cvy_redistribution_elements(from, to, &shape, pair[0], pair[1]);
            if (elements != count(from, to, &had, &needed, &shape, pair)) {
                fail_msg("seed %u: %d to %d", seed, (int)pair[0], (int)pair[1]);
            }
            int64_t back = cvy_redistribution_elements(&back_from, &back_to, &shape, pair[1], pair[0]);
            assert_true(replicas || elements == back);
        }
    }
    for (int kind = 0; kind < CVY_REDISTRIBUTION_COUNT; kind++) {
        assert_true(seen[kind] > 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_balanced_shares_keep_units_whole),
        cmocka_unit_test(test_weighted_shares_round_to_the_largest_remainder),
        cmocka_unit_test(test_weighted_shares_stay_near_their_quota),
        cmocka_unit_test(test_a_concat_keeps_the_shares_of_its_inputs),
        cmocka_unit_test(test_redistributions_move_what_ownership_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
