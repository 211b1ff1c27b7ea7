/*
 * Random numbers: known answers of the cipher, moments of the distributions, and the order of an epoch. Known answers
 * are from the Random123 distribution (Salmon and others), file kat_vectors, "philox4x32 10".
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static void assert_words(cvy_words found, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    assert_int_equal(found.v[0], a);
    assert_int_equal(found.v[1], b);
    assert_int_equal(found.v[2], c);
    assert_int_equal(found.v[3], d);
}

static void test_philox_gives_the_known_answers(void **state)
{
    (void)state;
    cvy_words zero = {{0, 0, 0, 0}};
    cvy_words ones = {{~0u, ~0u, ~0u, ~0u}};
    cvy_words pi = {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}};
    assert_words(cvy_philox(zero, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    assert_words(cvy_philox(ones, ~0u, ~0u), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
    assert_words(cvy_philox(pi, 0xa4093822, 0x299f31d0), 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

/* The place of a number, as the design says: key (seed, purpose), counter (block, sample, time, owner). */
static void test_words_are_philox_of_the_place(void **state)
{
    (void)state;
    cvy_words counter = {{11, 7, 5, 3}};
    cvy_words expected = cvy_philox(counter, 0x89abcdefu, 0x01234567u ^ 4u << 24);
    cvy_words found = cvy_random_words(0x0123456789abcdef, CVY_PURPOSE_DROPOUT, 3, 5, 7, 11);
    assert_memory_equal(&found, &expected, sizeof found);
}

/* A change of any part of the place changes the words. */
static void test_every_part_of_a_place_counts(void **state)
{
    (void)state;
    cvy_words base = cvy_random_words(1, CVY_PURPOSE_ORDER, 0, 0, 0, 0);
    cvy_words other[] = {
        cvy_random_words(2, CVY_PURPOSE_ORDER, 0, 0, 0, 0),
        cvy_random_words(1 + (UINT64_C(1) << 40), CVY_PURPOSE_ORDER, 0, 0, 0, 0),
        cvy_random_words(1, CVY_PURPOSE_DROPOUT, 0, 0, 0, 0),
        cvy_random_words(1, CVY_PURPOSE_ORDER, 1, 0, 0, 0),
        cvy_random_words(1, CVY_PURPOSE_ORDER, 0, 1, 0, 0),
        cvy_random_words(1, CVY_PURPOSE_ORDER, 0, 0, 1, 0),
        cvy_random_words(1, CVY_PURPOSE_ORDER, 0, 0, 0, 1),
    };
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        assert_memory_not_equal(&base, &other[i], sizeof base);
    }
}

static void test_units_stay_inside_their_interval(void **state)
{
    (void)state;
    assert_true(cvy_random_unit(0) == 0.0f);
    assert_true(cvy_random_unit(~0u) == 16777215.0f / 16777216.0f);
    assert_true(cvy_random_unit(0x80000000u) == 0.5f);
    assert_true(cvy_random_unit_double(0, 0) > 0.0);
    assert_true(cvy_random_unit_double(~0u, ~0u) < 1.0);
    assert_true(fabs(cvy_random_unit_double(0x80000000u, 0) - 0.5) <= 0x1p-53);
}

/*
 * Uniform on [0, 1): mean 1/2, variance 1/12, both within 5 standard errors of 400,000 draws:
 * 5 sqrt(1/12 / N) = 0.0023, 5 sqrt(1/180 / N) = 0.0006.
 */
static void test_uniform_moments(void **state)
{
    (void)state;
    enum { DRAWS = 400000 };
    double sum = 0.0, squares = 0.0;
    for (uint32_t block = 0; block < DRAWS / 4; block++) {
        cvy_words words = cvy_random_words(7, CVY_PURPOSE_SYNTHETIC_DATA, 0, 0, 0, block);
        for (int lane = 0; lane < 4; lane++) {
            double deviation = (double)cvy_random_unit(words.v[lane]) - 0.5;
            sum += deviation;
            squares += deviation * deviation;
        }
    }
    assert_true(fabs(sum / DRAWS) < 0.0023);
    assert_true(fabs(squares / DRAWS - 1.0 / 12.0) < 0.0006);
}

/*
 * Standard normal: mean 0, variance 1, fourth moment 3, the two of a pair independent. Five standard errors of 400,000
 * draws: 5 sqrt(1/N) = 0.0079, 5 sqrt(2/N) = 0.0112, 5 sqrt(96/N) = 0.0775; of 200,000 pairs 5 sqrt(1/N) = 0.0112.
 */
static void test_normal_moments(void **state)
{
    (void)state;
    enum { PAIRS = 200000 };
    double sum = 0.0, squares = 0.0, fourths = 0.0, products = 0.0;
    for (uint32_t block = 0; block < PAIRS; block++) {
        double pair[2];
        cvy_random_normal_pair(cvy_random_words(7, CVY_PURPOSE_INITIALISATION, 0, 0, 0, block), pair);
        for (int i = 0; i < 2; i++) {
            sum += pair[i];
            squares += pair[i] * pair[i];
            fourths += pair[i] * pair[i] * pair[i] * pair[i];
        }
        products += pair[0] * pair[1];
    }
    assert_true(fabs(sum / (2 * PAIRS)) < 0.0079);
    assert_true(fabs(squares / (2 * PAIRS) - 1.0) < 0.0112);
    assert_true(fabs(fourths / (2 * PAIRS) - 3.0) < 0.0775);
    assert_true(fabs(products / PAIRS) < 0.0112);
}

static void test_normals_are_finite_at_the_ends(void **state)
{
    (void)state;
    double pair[2];
    cvy_random_normal_pair((cvy_words){{0, 0, 0, 0}}, pair);
    assert_true(isfinite(pair[0]) && isfinite(pair[1]));
    cvy_random_normal_pair((cvy_words){{~0u, ~0u, ~0u, ~0u}}, pair);
    assert_true(isfinite(pair[0]) && isfinite(pair[1]));
}

/* floor(word * bound / 2^64): half the range of words is half of the bound. */
static void test_below_scales_the_word(void **state)
{
    (void)state;
    assert_int_equal(cvy_random_below(0, 0, 10), 0);
    assert_int_equal(cvy_random_below(~0u, ~0u, 10), 9);
    assert_int_equal(cvy_random_below(0x80000000u, 0, 10), 5);
    assert_int_equal(cvy_random_below(0x7fffffffu, ~0u, 10), 4);
    assert_int_equal(cvy_random_below(12345, 6789, 1), 0);
    assert_true(cvy_random_below(~0u, ~0u, UINT64_MAX) == UINT64_MAX - 1);
}

static void assert_permutation(const int64_t *order, int64_t count)
{
    unsigned char *seen = calloc((size_t)count, 1);
    assert_non_null(seen);
    for (int64_t i = 0; i < count; i++) {
        assert_in_range(order[i], 0, count - 1);
        assert_false(seen[order[i]]);
        seen[order[i]] = 1;
    }
    free(seen);
}

static void test_order_is_a_permutation_of_seed_and_epoch(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    int64_t order[COUNT], again[COUNT], epoch[COUNT], seed[COUNT];
    cvy_random_order(3, 1, COUNT, order);
    cvy_random_order(3, 1, COUNT, again);
    cvy_random_order(3, 2, COUNT, epoch);
    cvy_random_order(4, 1, COUNT, seed);
    assert_permutation(order, COUNT);
    assert_permutation(epoch, COUNT);
    assert_permutation(seed, COUNT);
    assert_memory_equal(order, again, sizeof order);
    assert_memory_not_equal(order, epoch, sizeof order);
    assert_memory_not_equal(order, seed, sizeof order);
    int64_t one = -1;
    cvy_random_order(3, 1, 1, &one);
    assert_int_equal(one, 0);
    cvy_random_order(3, 1, 0, NULL);
}

/*
 * Each of the 24 orders of 4 things has probability 1/24: over 24,000 epochs 1,000 each, and the sum over orders of
 * (seen - 1000)^2 / 1000 is chi-squared with 23 degrees of freedom, above 49.7 with probability 0.001.
 */
static void test_orders_are_equally_likely(void **state)
{
    (void)state;
    int seen[256] = {0};
    for (uint32_t epoch = 0; epoch < 24000; epoch++) {
        int64_t order[4];
        cvy_random_order(11, epoch, 4, order);
        seen[order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3]]++;
    }
    double chi_squared = 0.0;
    int orders = 0;
    for (int i = 0; i < 256; i++) {
        if (seen[i]) {
            orders++;
            chi_squared += (seen[i] - 1000.0) * (seen[i] - 1000.0) / 1000.0;
        }
    }
    assert_int_equal(orders, 24);
    assert_true(chi_squared < 49.7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox_gives_the_known_answers),
        cmocka_unit_test(test_words_are_philox_of_the_place),
        cmocka_unit_test(test_every_part_of_a_place_counts),
        cmocka_unit_test(test_units_stay_inside_their_interval),
        cmocka_unit_test(test_uniform_moments),
        cmocka_unit_test(test_normal_moments),
        cmocka_unit_test(test_normals_are_finite_at_the_ends),
        cmocka_unit_test(test_below_scales_the_word),
        cmocka_unit_test(test_order_is_a_permutation_of_seed_and_epoch),
        cmocka_unit_test(test_orders_are_equally_likely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
