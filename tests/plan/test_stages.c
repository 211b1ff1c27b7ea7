/* Stages against all ways to cut: the bits of a number say where. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "plan/stages.h"

enum { CASES = 3000, MAX_LAYERS = 11 };

static int64_t draw(uint32_t seed, uint32_t place, int64_t low, int64_t high)
{
    cvy_words words = cvy_random_words(seed, CVY_PURPOSE_SYNTHETIC_DATA, 0, 0, 0, place);
    return low + (int64_t)(words.v[0] % (uint64_t)(high - low + 1));
}

/* Seconds are whole numbers, so that sums are exact in any order. */
static double sum_stage(const cvy_chain *chain, int begin, int end)
{
    double seconds = 0;
    for (int layer = begin; layer < end; layer++) {
        seconds += chain->layer_s[layer];
    }
    seconds += chain->cut_s && begin > 0 ? chain->cut_s[begin] : 0;
    return seconds + (chain->cut_s && end < chain->layers ? chain->cut_s[end] : 0);
}

/* The slowest stage where bit i cuts behind layer i. */
static double cut_at(const cvy_chain *chain, unsigned cuts)
{
    double slowest = 0;
    int begin = 0;
    for (int layer = 1; layer <= chain->layers; layer++) {
        if (layer == chain->layers || cuts >> (layer - 1) & 1) {
            slowest = fmax(slowest, sum_stage(chain, begin, layer));
            begin = layer;
        }
    }
    return slowest;
}

static double try_all(const cvy_chain *chain, int stages)
{
    double best = INFINITY;
    for (unsigned cuts = 0; cuts < 1u << (chain->layers - 1); cuts++) {
        if (__builtin_popcount(cuts) == stages - 1) {
            best = fmin(best, cut_at(chain, cuts));
        }
    }
    return best;
}

/* 3,000 random chains (seeds 0 to 2999), a third without costs of cuts, a third with forbidden ones. */
static void test_stages_are_the_best_of_all_cuts(void **state)
{
    (void)state;
    int impossible = 0;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        double layer_s[MAX_LAYERS], cut_s[MAX_LAYERS], slowest = -1;
        int first[MAX_LAYERS + 1];
        cvy_chain chain = {(int)draw(seed, 0, 1, MAX_LAYERS), layer_s, seed % 3 ? cut_s : NULL};
        int stages = (int)draw(seed, 1, 1, chain.layers);
        for (uint32_t i = 0; i < MAX_LAYERS; i++) {
            layer_s[i] = (double)draw(seed, 2 + i, 0, 20);
            cut_s[i] = seed % 3 == 2 && draw(seed, 30 + i, 0, 2) == 0 ? INFINITY : (double)draw(seed, 60 + i, 0, 9);
        }
        double best = try_all(&chain, stages);
        cvy_status status = cvy_stages_balance(&chain, stages, first, &slowest);
        if (isinf(best)) {
            impossible++;
            assert_int_equal(status, CVY_ERR_INFEASIBLE);
            assert_true(slowest == -1);
            continue;
        }
        assert_int_equal(status, CVY_OK);
        unsigned cuts = 0;
        assert_int_equal(first[0], 0);
        assert_int_equal(first[stages], chain.layers);
        for (int stage = 0; stage < stages; stage++) {
            assert_true(first[stage] < first[stage + 1]);
            cuts |= stage ? 1u << (first[stage] - 1) : 0;
            assert_true(cvy_stages_seconds(&chain, first[stage], first[stage + 1]) <= slowest);
        }
        if (slowest != best || cut_at(&chain, cuts) != best) {
            fail_msg("seed %u: %g, best %g", seed, slowest, best);
        }
    }
    assert_true(impossible > 100);
}

/* 1 2 3 4 5 in two: 6 and 9 (behind the third); a cut there that costs 4 makes it 10 and 13, so behind the fourth. */
static void test_a_dear_cut_moves(void **state)
{
    (void)state;
    static const double layer_s[] = {1, 2, 3, 4, 5}, cut_s[] = {0, 0, 0, 4, 1};
    cvy_chain chain = {5, layer_s, NULL};
    int first[6];
    double slowest;
    assert_int_equal(cvy_stages_balance(&chain, 2, first, &slowest), CVY_OK);
    assert_int_equal(first[1], 3);
    assert_true(slowest == 9);
    chain.cut_s = cut_s;
    assert_int_equal(cvy_stages_balance(&chain, 2, first, &slowest), CVY_OK);
    assert_int_equal(first[1], 4);
    assert_true(slowest == 11);
    assert_int_equal(cvy_stages_balance(&chain, 6, first, &slowest), CVY_ERR_INFEASIBLE);
    assert_string_equal(cvy_error_message(), "6 stages need as many layers, there are 5");
}

/* 2,000 layers of one second over 64 stages: 31.25 layers each, so 32. */
static void test_long_chains(void **state)
{
    (void)state;
    static double layer_s[2000];
    int first[65];
    double slowest;
    for (int i = 0; i < 2000; i++) {
        layer_s[i] = 1;
    }
    cvy_chain chain = {2000, layer_s, NULL};
    assert_int_equal(cvy_stages_balance(&chain, 64, first, &slowest), CVY_OK);
    assert_true(slowest == 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages_are_the_best_of_all_cuts),
        cmocka_unit_test(test_a_dear_cut_moves),
        cmocka_unit_test(test_long_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
