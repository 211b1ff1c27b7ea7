/* Interval lists against bitmaps: a list is a set of indices, so a set operation is a loop over indices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "tensor/interval.h"

enum { INDICES = 64 };

static void assert_proper(const cvy_intervals *list)
{
    for (int i = 0; i < list->count; i++) {
        assert_true(list->at[i].begin < list->at[i].end);
        if (i) {
            assert_true(list->at[i - 1].end < list->at[i].begin);
        }
    }
}

static uint64_t to_bits(const cvy_intervals *list)
{
    uint64_t bits = 0;
    for (int i = 0; i < list->count; i++) {
        for (int64_t index = list->at[i].begin; index < list->at[i].end; index++) {
            bits |= UINT64_C(1) << index;
        }
    }
    return bits;
}

/* The runs of a bitmap; the count may go beyond what a list holds, then false. */
static bool from_bits(uint64_t bits, cvy_intervals *list)
{
    *list = (cvy_intervals){0};
    for (int i = 0; i < INDICES; i++) {
        bool now = bits >> i & 1;
        bool before = i && (bits >> (i - 1) & 1);
        if (now && !before) {
            if (list->count == CVY_MAX_INTERVALS) {
                return false;
            }
            list->at[list->count++] = (cvy_interval){i, i + 1};
        } else if (now) {
            list->at[list->count - 1].end = i + 1;
        }
    }
    return true;
}

typedef cvy_status (*operation)(const cvy_intervals *, const cvy_intervals *, cvy_intervals *);

static void check_operation(operation run, const cvy_intervals *a, const cvy_intervals *b, uint64_t expected)
{
    cvy_intervals wanted, found = {.count = 1, .at = {{-7, -5}}};
    cvy_intervals kept = found;
    if (from_bits(expected, &wanted)) {
        assert_int_equal(run(a, b, &found), CVY_OK);
        assert_proper(&found);
        assert_true(to_bits(&found) == expected);
        assert_int_equal(found.count, wanted.count);
    } else {
        assert_int_equal(run(a, b, &found), CVY_ERR_UNSUPPORTED);
        assert_memory_equal(&found, &kept, sizeof found);
    }
}

/* 20,000 pairs of random sets; every second pair has long runs, so that both few and many intervals occur. */
static void test_operations_are_those_of_sets(void **state)
{
    (void)state;
    int many = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        cvy_words words = cvy_random_words(1, CVY_PURPOSE_SYNTHETIC_DATA, 0, 0, 0, i);
        uint64_t bits_a = (uint64_t)words.v[0] << 32 | words.v[1];
        uint64_t bits_b = (uint64_t)words.v[2] << 32 | words.v[3];
        if (i % 2) {
            bits_a &= bits_a >> 1 & bits_a >> 2; /* holes grow */
            bits_b |= bits_b >> 1 | bits_b >> 2; /* runs grow */
        }
        cvy_intervals a, b;
        if (!from_bits(bits_a, &a) || !from_bits(bits_b, &b)) {
            continue;
        }
        many += a.count > 8;
        check_operation(cvy_intervals_intersect, &a, &b, bits_a & bits_b);
        check_operation(cvy_intervals_subtract, &a, &b, bits_a & ~bits_b);
        check_operation(cvy_intervals_union, &a, &b, bits_a | bits_b);
        assert_int_equal(cvy_intervals_length(&a), __builtin_popcountll(bits_a));
        assert_int_equal(cvy_intervals_overlap(&a, &b), __builtin_popcountll(bits_a & bits_b));
        for (int index = -2; index < INDICES + 2; index++) {
            bool held = index >= 0 && index < INDICES && (bits_a >> index & 1);
            assert_int_equal(cvy_intervals_hold(&a, index), held);
        }
    }
    assert_true(many > 1000);
}

/* 32 of 64 indices, every second one: 32 intervals, more than the 16 of a list. */
static void test_too_many_pieces_are_refused(void **state)
{
    (void)state;
    cvy_intervals whole = cvy_intervals_whole(2 * 2 * CVY_MAX_INTERVALS), first = {0}, second = {0}, out;
    for (int i = 0; i < CVY_MAX_INTERVALS; i++) {
        first.at[first.count++] = (cvy_interval){4 * i, 4 * i + 1};
        second.at[second.count++] = (cvy_interval){4 * i + 2, 4 * i + 3};
    }
    assert_int_equal(cvy_intervals_union(&first, &second, &out), CVY_ERR_UNSUPPORTED);
    assert_string_equal(cvy_error_message(), "a share of more than 16 separate ranges of indices, at index 32");
    assert_int_equal(cvy_intervals_subtract(&whole, &first, &out), CVY_OK);
    assert_int_equal(out.count, CVY_MAX_INTERVALS);
    assert_int_equal(cvy_intervals_length(&out), 64 - 16);
}

static void test_an_output_may_be_an_input(void **state)
{
    (void)state;
    cvy_intervals a = {2, {{0, 10}, {20, 30}}};
    cvy_intervals b = {1, {{5, 25}}};
    assert_int_equal(cvy_intervals_intersect(&a, &b, &a), CVY_OK);
    assert_int_equal(a.count, 2);
    assert_true(a.at[0].begin == 5 && a.at[0].end == 10 && a.at[1].begin == 20 && a.at[1].end == 25);
    assert_int_equal(cvy_intervals_subtract(&a, &b, &b), CVY_OK);
    assert_int_equal(b.count, 0);
}

static void test_neighbours_merge(void **state)
{
    (void)state;
    cvy_intervals a = {1, {{0, 5}}}, b = {1, {{5, 9}}}, out;
    assert_int_equal(cvy_intervals_union(&a, &b, &out), CVY_OK);
    assert_int_equal(out.count, 1);
    assert_true(out.at[0].begin == 0 && out.at[0].end == 9);
}

/* Extents near the end of 64 bits do not wrap. */
static void test_large_extents(void **state)
{
    (void)state;
    cvy_intervals all = cvy_intervals_whole(INT64_MAX), hole = {1, {{5, INT64_MAX - 5}}}, out;
    assert_int_equal(cvy_intervals_subtract(&all, &hole, &out), CVY_OK);
    assert_int_equal(out.count, 2);
    assert_true(out.at[1].begin == INT64_MAX - 5 && out.at[1].end == INT64_MAX);
    assert_int_equal(cvy_intervals_length(&out), 10);
    assert_int_equal(cvy_intervals_union(&out, &hole, &out), CVY_OK);
    assert_int_equal(out.count, 1);
}

/* 7 over 4 is 2 2 2 1; 2 over 4 is 1 1 0 0. In general: in order, without gaps, lengths falling by at most one. */
static void test_shares_are_balanced_and_cover(void **state)
{
    (void)state;
    static const int64_t lengths[4] = {2, 2, 2, 1};
    for (int64_t i = 0; i < 4; i++) {
        cvy_intervals share = cvy_intervals_share(7, 4, i);
        assert_int_equal(cvy_intervals_length(&share), lengths[i]);
        share = cvy_intervals_share(2, 4, i);
        assert_int_equal(cvy_intervals_length(&share), i < 2);
        assert_int_equal(share.count, i < 2);
    }
    for (int64_t extent = 0; extent < 40; extent++) {
        for (int64_t parts = 1; parts < 12; parts++) {
            int64_t next = 0;
            for (int64_t i = 0; i < parts; i++) {
                cvy_intervals share = cvy_intervals_share(extent, parts, i);
                int64_t length = cvy_intervals_length(&share);
                assert_true(length == extent / parts || (length == extent / parts + 1 && i < extent % parts));
                if (length) {
                    assert_int_equal(share.at[0].begin, next);
                }
                next += length;
            }
            assert_int_equal(next, extent);
        }
    }
    assert_int_equal(cvy_intervals_whole(0).count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_are_those_of_sets),
        cmocka_unit_test(test_too_many_pieces_are_refused),
        cmocka_unit_test(test_an_output_may_be_an_input),
        cmocka_unit_test(test_neighbours_merge),
        cmocka_unit_test(test_large_extents),
        cmocka_unit_test(test_shares_are_balanced_and_cover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
