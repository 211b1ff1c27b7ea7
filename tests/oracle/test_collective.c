/* Seconds of collectives against published figures, against messages sent one by one, and the laws they must keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "csv.h"
#include "oracle/collective.h"
#include "world.h"

static void assert_close(double found, double expected, double relative, const char *what)
{
    if (!(fabs(found - expected) <= relative * fabs(expected))) {
        fail_msg("%s: found %.9g, expected %.9g", what, found, expected);
    }
}

static double estimate(cvy_collective kind, const char *name, const cvy_wiring *wiring, double bytes)
{
    cvy_algorithm algorithm;
    assert_true(cvy_algorithm_find(name, &algorithm) && cvy_algorithm_does(algorithm, kind));
    return cvy_collective_estimate_s(cvy_collective_find(kind, algorithm), wiring, bytes);
}

static double all_reduce(const char *name, const cvy_wiring *wiring, double bytes)
{
    return estimate(CVY_COLLECTIVE_ALL_REDUCE, name, wiring, bytes);
}

/* ---- published figures ---- */

/* "hockney_ring" has a latency, one rank a node; "nccl_2_8_4_ring" a protocol in its place. */
static void test_published_rings_are_reproduced(void **state)
{
    (void)state;
    static const char *const protocols[][2] = {
        {"", "ring"}, {"LL", "nccl-ring-ll"}, {"LL128", "nccl-ring-ll128"}, {"Simple", "nccl-ring-simple"}};
    csv row;
    int rows = 0;
    open_csv(&row, "oracle/ring_allreduce_golden.csv");
    for (; next_csv_row(&row); rows++) {
        double latency_s = *csv_text(&row, "alpha_s") ? csv_number(&row, "alpha_s") : 0.0;
        cvy_line line = {latency_s, csv_number(&row, "bw_GBps") * 1e9};
        cvy_wiring wiring = {.ranks = (int)csv_number(&row, "ranks"), .nodes = (int)csv_number(&row, "nodes"),
                             .inner = line, .outer = line};
        const char *name = NULL;
        for (size_t i = 0; i < sizeof protocols / sizeof protocols[0]; i++) {
            name = strcmp(csv_text(&row, "proto"), protocols[i][0]) == 0 ? protocols[i][1] : name;
        }
        assert_non_null(name);
        assert_close(all_reduce(name, &wiring, csv_number(&row, "bytes")), csv_number(&row, "time_s"), 1e-6, name);
    }
    assert_true(rows >= 195);
}

/*
 * 16 ranks on 2 nodes, a bus of 24 GB/s, 1 KB (2^4 times 64 B). LL: 4.4 + 2 (7 * 0.52 * 1.8 + 5) = 27.504 us, bus 24 *
 * 0.92 / 3.8, half of that for two trips, 0.9 at this size. Simple: 2 (7 + 1) 28 = 448 us, 24 * 0.92 / 2, 0.9.
 * LL128: 4.4 + 2 (7 * 1.25 + 8.5) = 38.9 us, 24 * 0.92 * 0.915 / 2.
 */
static void test_trees_of_nccl_by_hand(void **state)
{
    (void)state;
    cvy_wiring wiring = {.ranks = 16, .nodes = 2, .inner = {0, 24e9}, .outer = {0, 24e9}};
    double ll_s = 27.504e-6 + 1024 / (24e9 * 0.92 / 3.8 / 2 * 0.9);
    assert_close(all_reduce("nccl-tree-ll", &wiring, 1024), ll_s, 1e-12, "LL");
    double simple_s = 448e-6 + 1024 / (24e9 * 0.92 / 2 * 0.9), ll128_s = 38.9e-6 + 1024 / (24e9 * 0.92 * 0.915 / 2);
    assert_close(all_reduce("nccl-tree-simple", &wiring, 1024), simple_s, 1e-12, "Simple");
    assert_close(all_reduce("nccl-tree-ll128", &wiring, 1024), ll128_s, 1e-12, "LL128");
    assert_close(all_reduce("nccl", &wiring, 1024), ll_s, 1e-12, "the fastest");
    /* 4 channels over 2 nodes carry 4 * 18.5 GB/s in trees, 4 * 16.9 in LL128 rings: a bus of 200 is not reached. */
    wiring.nccl.channels = 4;
    wiring.inner.bandwidth_Bps = wiring.outer.bandwidth_Bps = 200e9;
    assert_close(all_reduce("nccl-tree-simple", &wiring, 1024), 448e-6 + 1024 / (74e9 / 2 * 0.9), 1e-12, "channels");
    assert_close(all_reduce("nccl-ring-ll128", &wiring, 0), (10 + 28 * 1.9 + 2 * 4) * 1e-6, 1e-12, "crossing");
    assert_close(all_reduce("nccl-ring-ll128", &wiring, 1e9) - all_reduce("nccl-ring-ll128", &wiring, 0),
                 1e9 / (4 * 16.9e9 * 16 / 30), 1e-12, "channels of a ring");
}

/*
 * What a newer device or another processor changes. 64 B in a node of 4: LL128 trees 4.4 + 2 * 3 * 1.25 = 11.9 us and
 * 84 * 0.92 * 7/9 GB/s; LL rings 3.6 + 6 * 0.47 us, at most 39 GB/s, with Ampere a quarter of 235. On 4 nodes of one
 * rank 3.6 + 6 * 2.7 us, at most 20.4 GB/s, 19 with AMD.
 */
static void test_machines_of_nccl(void **state)
{
    (void)state;
    cvy_wiring wiring = {.ranks = 4, .inner = {0, 84e9}};
    assert_close(all_reduce("nccl-tree-ll128", &wiring, 64), 11.9e-6 + 64 / (84e9 * 0.92 * 7 / 9 / 2), 1e-12, "node");
    wiring.inner.bandwidth_Bps = 600e9;
    assert_close(all_reduce("nccl-ring-ll", &wiring, 64), 6.42e-6 + 64 / (39e9 * 4 / 6), 1e-12, "Volta");
    wiring.nccl.ampere = true;
    assert_close(all_reduce("nccl-ring-ll", &wiring, 64), 6.42e-6 + 64 / (235e9 / 4 * 4 / 6), 1e-12, "Ampere");
    wiring = (cvy_wiring){.ranks = 4, .nodes = 4, .outer = {0, 200e9}};
    assert_close(all_reduce("nccl-ring-ll", &wiring, 64), 19.8e-6 + 64 / (20.4e9 * 4 / 6), 1e-12, "Intel");
    wiring.nccl.amd = true;
    assert_close(all_reduce("nccl-ring-ll", &wiring, 64), 19.8e-6 + 64 / (19e9 * 4 / 6), 1e-12, "AMD");
}

/* Half of an all-reduce's steps: 7 in a node of 8, base 3.6 us for LL; a third of the bus, at most 39 GB/s. */
static void test_halves_by_nccl(void **state)
{
    (void)state;
    cvy_wiring wiring = {.ranks = 8, .inner = {0, 126e9}};
    double expected_s = (3.6 + 7 * 0.47) * 1e-6 + 4096 / (39e9 * 8 / 7);
    assert_close(estimate(CVY_COLLECTIVE_ALL_GATHER, "nccl", &wiring, 4096), expected_s, 1e-12, "all-gather");
    assert_close(estimate(CVY_COLLECTIVE_REDUCE_SCATTER, "nccl", &wiring, 4096), expected_s, 1e-12, "reduce-scatter");
    /* PCIe: hops of 1 us; 12 GB/s, a third of it. LL128 would be 2.5 us a hop. */
    wiring = (cvy_wiring){.ranks = 8, .inner = {0, 12e9}, .nccl = {.pcie = true}};
    expected_s = (3.6 + 7 * 1.0) * 1e-6 + 4096 / (4e9 * 8 / 7);
    assert_close(estimate(CVY_COLLECTIVE_ALL_GATHER, "nccl", &wiring, 4096), expected_s, 1e-12, "PCIe");
}

/* ---- message by message ---- */

/* 1 us and 1 GB/s, sums at 4 GB/s, pieces of 1000 B. */
static void make_world(world *w, int ranks, int pieces)
{
    *w = (world){.ranks = ranks, .pieces = pieces, .piece_bytes = 1000, .latency_s = 1e-6, .s_per_byte = 1e-9,
                 .sum_s_per_byte = 0.25e-9};
    begin_world(w);
}

static cvy_wiring flat_wiring(int ranks)
{
    return (cvy_wiring){.ranks = ranks, .inner = {1e-6, 1e9}, .sum_s_per_byte = 0.25e-9};
}

static void test_messages_of_a_ring_take_as_long(void **state)
{
    (void)state;
    static world w;
    for (int ranks = 2; ranks <= 33; ranks++) {
        cvy_wiring wiring = flat_wiring(ranks);
        make_world(&w, ranks, ranks);
        run_ring(&w);
        assert_true(all_have_sums(&w));
        assert_close(all_reduce("ring", &wiring, ranks * 1000.0), end_world(&w), 1e-12, "ring");
    }
}

static void test_messages_of_recursive_doubling_take_as_long(void **state)
{
    (void)state;
    static world w;
    for (int ranks = 2; ranks <= 33; ranks++) {
        cvy_wiring wiring = flat_wiring(ranks);
        make_world(&w, ranks, 3);
        run_doubling(&w, NULL, ranks);
        assert_true(all_have_sums(&w));
        assert_close(all_reduce("recursive-doubling", &wiring, 3000), end_world(&w), 1e-12, "recursive-doubling");
    }
}

static void test_messages_of_halving_and_doubling_take_as_long(void **state)
{
    (void)state;
    static world w;
    for (int ranks = 2; ranks <= 33; ranks++) {
        cvy_wiring wiring = flat_wiring(ranks);
        make_world(&w, ranks, 32);
        run_halving(&w);
        assert_true(all_have_sums(&w));
        assert_close(all_reduce("halving-doubling", &wiring, 32000), end_world(&w), 1e-12, "halving-doubling");
    }
}

static void test_messages_of_a_binomial_broadcast_take_as_long(void **state)
{
    (void)state;
    static world w;
    for (int ranks = 2; ranks <= 33; ranks++) {
        cvy_wiring wiring = flat_wiring(ranks);
        make_world(&w, ranks, 2);
        run_binomial(&w, 0, ranks, false);
        for (int r = 0; r < ranks; r++) {
            assert_true(w.piece[r][0] == 100.0 && w.piece[r][1] == 101.0);
        }
        assert_close(estimate(CVY_COLLECTIVE_BROADCAST, "tree", &wiring, 2000), end_world(&w), 1e-12, "tree");
    }
}

/* Nodes of 4, 3 and 1: sums to leaders, recursive doubling of three, and back; small enough for trees to be best. */
static void test_messages_through_leaders_of_uneven_nodes_take_as_long(void **state)
{
    (void)state;
    static world w;
    static const int node_ranks[] = {4, 3, 1}, leaders[] = {0, 4, 7};
    make_world(&w, 8, 2);
    w.piece_bytes = 4;
    w.outer_latency_s = 10e-6;
    w.outer_s_per_byte = 3e-9;
    for (int node = 0; node < 3; node++) {
        for (int r = 0; r < node_ranks[node]; r++) {
            w.node[leaders[node] + r] = node;
        }
    }
    for (int node = 0; node < 3; node++) {
        run_binomial(&w, leaders[node], node_ranks[node], true);
    }
    run_doubling(&w, leaders, 3);
    for (int node = 0; node < 3; node++) {
        run_binomial(&w, leaders[node], node_ranks[node], false);
    }
    assert_true(all_have_sums(&w));
    cvy_wiring wiring = {.ranks = 8, .nodes = 3, .node_ranks = 4, .inner = {1e-6, 1e9}, .outer = {10e-6, 1 / 3e-9},
                         .sum_s_per_byte = 0.25e-9};
    assert_close(all_reduce("leader", &wiring, 8), end_world(&w), 1e-12, "leader");
}

/* ---- by hand ---- */

/*
 * 8 MB, inside 4 ranks 10 us and 10 GB/s, 3 nodes 100 us and 1 GB/s. Inside: reduce-scatter, gather, scatter and
 * all-gather, 2 (3 + 2) messages and 4 * 3/4 of the bytes, 2.5 ms; between: a ring, 4 messages and 4/3, 11.07 ms. Two
 * rings: 6 messages and 3/2 of the bytes inside.
 */
static void test_two_levels_of_large_buffers(void **state)
{
    (void)state;
    cvy_wiring wiring = {.ranks = 12, .nodes = 3, .inner = {10e-6, 10e9}, .outer = {100e-6, 1e9}};
    double ring_s = 4 * 100e-6 + 4.0 / 3 * 8e-3;
    assert_close(all_reduce("leader", &wiring, 8e6), 10 * 10e-6 + 3 * 8e-4 + ring_s, 1e-12, "leader");
    assert_close(all_reduce("two-rings", &wiring, 8e6), 6 * 10e-6 + 1.5 * 8e-4 + ring_s, 1e-12, "two-rings");
    /* What does not know nodes waits for the slowest line. */
    assert_close(all_reduce("ring", &wiring, 8e6), 22 * 100e-6 + 11.0 / 6 * 8e-3, 1e-12, "ring");
    /* One rank a node: what joins ranks of a node is not there. */
    cvy_wiring spread = {.ranks = 3, .nodes = 3, .inner = {1, 1}, .outer = wiring.outer};
    assert_close(all_reduce("ring", &spread, 8e6), ring_s, 1e-12, "spread");
    assert_close(all_reduce("two-rings", &spread, 8e6), ring_s, 1e-12, "spread");
    /* 10 ranks leave nodes of 4, 3, 3. */
    wiring.ranks = 10;
    assert_close(all_reduce("leader", &wiring, 8e6), 10 * 10e-6 + 3 * 8e-4 + ring_s, 1e-12, "uneven");
}

/* 6 ranks: two stand aside, 4 go on. 6000 B: all in, 2 steps with 3/4 of it, a sixth out. */
static void test_reduce_scatter_of_six_ranks(void **state)
{
    (void)state;
    cvy_wiring wiring = flat_wiring(6);
    double expected_s = (1e-6 + 6000 * 1.25e-9) + (2e-6 + 4500 * 1.25e-9) + (1e-6 + 1000 * 1e-9);
    assert_close(estimate(CVY_COLLECTIVE_REDUCE_SCATTER, "recursive-halving", &wiring, 6000), expected_s, 1e-12, "six");
    /* Three rounds, and five of six shares from the others. */
    assert_close(estimate(CVY_COLLECTIVE_ALL_GATHER, "recursive-doubling", &wiring, 6000), 8e-6, 1e-12, "gather");
    assert_close(estimate(CVY_COLLECTIVE_BROADCAST, "scatter-gather", &wiring, 6000), 8e-6 + 10e-6, 1e-12, "broadcast");
}

/* Two trees, 2 (rounds + k) steps up and down: no number k of pieces is better than the one taken. */
static void test_trees_take_the_best_number_of_pieces(void **state)
{
    (void)state;
    static const int ranks[] = {2, 3, 8, 100, 1000}, rounds[] = {1, 2, 3, 7, 10};
    for (int i = 0; i < 5; i++) {
        for (double bytes = 8; bytes < 1e9; bytes *= 37) {
            cvy_wiring wiring = {.ranks = ranks[i], .inner = {1e-6, 1e9}};
            double least_s = INFINITY;
            for (int k = 1; k <= 3000; k++) {
                least_s = fmin(least_s, 4 * (rounds[i] + k) * (1e-6 + bytes / (2.0 * k) * 1e-9));
            }
            assert_close(all_reduce("double-tree", &wiring, bytes), least_s, 1e-12, "double-tree");
        }
    }
}

/* Bruck's rounds carry the shares that a binary numeral of the distance says. */
static void test_all_to_all_by_rounds(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 70; ranks++) {
        cvy_wiring wiring = flat_wiring(ranks);
        double expected_s = 0.0;
        for (int bit = 1; bit < ranks; bit *= 2) {
            int shares = 0;
            for (int distance = 0; distance < ranks; distance++) {
                shares += (distance & bit) != 0;
            }
            expected_s += 1e-6 + shares * 100 * 1e-9;
        }
        assert_close(estimate(CVY_COLLECTIVE_ALL_TO_ALL, "bruck", &wiring, ranks * 100.0), expected_s, 1e-12, "bruck");
        expected_s = (ranks - 1) * (1e-6 + 100 * 1e-9);
        assert_close(estimate(CVY_COLLECTIVE_ALL_TO_ALL, "pairwise", &wiring, ranks * 100.0), expected_s, 1e-12, "");
    }
}

/* ---- laws ---- */

/* Both halves, the ring's for any number of ranks, the others' for powers of two. */
static void test_all_reduce_is_reduce_scatter_and_all_gather(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 33; ranks++) {
        cvy_wiring wiring = flat_wiring(ranks);
        double halves_s = estimate(CVY_COLLECTIVE_REDUCE_SCATTER, "ring", &wiring, 12345) +
                          estimate(CVY_COLLECTIVE_ALL_GATHER, "ring", &wiring, 12345);
        assert_close(all_reduce("ring", &wiring, 12345), halves_s, 1e-12, "ring");
        if ((ranks & (ranks - 1)) == 0) {
            halves_s = estimate(CVY_COLLECTIVE_REDUCE_SCATTER, "recursive-halving", &wiring, 12345) +
                       estimate(CVY_COLLECTIVE_ALL_GATHER, "recursive-doubling", &wiring, 12345);
            assert_close(all_reduce("halving-doubling", &wiring, 12345), halves_s, 1e-12, "halving-doubling");
        }
    }
}

/* More bytes are never faster, more bandwidth or less latency never slower; NCCL's trees are not meant to keep this. */
static void judge_row(const cvy_collective_algorithm *row, int ranks, int nodes)
{
    double before_s = 0.0;
    if (strstr(cvy_algorithm_name(row->algorithm), "nccl-tree") || row->algorithm == CVY_ALGORITHM_NCCL) {
        return;
    }
    for (double bytes = 1; bytes < 1e10; bytes *= 1.7) {
        cvy_wiring wiring = {.ranks = ranks, .nodes = nodes, .inner = {2e-6, 2e10}, .outer = {20e-6, 3e9},
                             .sum_s_per_byte = 1e-10};
        double seconds = cvy_collective_estimate_s(row, &wiring, bytes);
        cvy_line *lines[] = {&wiring.inner, &wiring.outer};
        assert_true(seconds > 0.0 && seconds >= before_s);
        before_s = seconds;
        for (int i = 0; i < 2; i++) {
            cvy_wiring better = wiring;
            cvy_line *line = i ? &better.outer : &better.inner;
            line->bandwidth_Bps = lines[i]->bandwidth_Bps * 1.3;
            double faster_s = cvy_collective_estimate_s(row, &better, bytes);
            assert_true(faster_s <= seconds);
            line->latency_s *= 0.5;
            assert_true(cvy_collective_estimate_s(row, &better, bytes) <= faster_s);
        }
    }
    cvy_wiring alone = {.ranks = 1, .nodes = 1, .inner = {2e-6, 2e10}, .sum_s_per_byte = 1e-10};
    assert_true(cvy_collective_estimate_s(row, &alone, 1e9) == 0.0);
}

/*
 * No algorithm on one line beats what must be: log2 p messages one after the other; and each byte that a rank has to
 * receive, of all-reduce 2 (p-1)/p n. (E. Chan et al., "Collective communication: theory, practice, and experience",
 * Concurrency and Computation 19, 2007.)
 */
static void judge_bounds(const cvy_collective_algorithm *row, int ranks)
{
    double shares = (ranks - 1.0) / ranks;
    shares = row->kind == CVY_COLLECTIVE_ALL_REDUCE ? 2.0 * shares : shares;
    shares = row->kind == CVY_COLLECTIVE_BROADCAST ? 1.0 : shares;
    for (double bytes = 1; bytes < 1e10; bytes *= 10) {
        cvy_wiring wiring = {.ranks = ranks, .inner = {2e-6, 2e10}};
        double seconds = cvy_collective_estimate_s(row, &wiring, bytes);
        assert_true(seconds * (1 + 1e-12) >= shares * bytes / 2e10);
        assert_true(!row->candidate || seconds * (1 + 1e-12) >= log2(ranks) * 2e-6);
    }
}

static void test_every_algorithm_keeps_the_laws(void **state)
{
    (void)state;
    static const int shapes[][2] = {{2, 1}, {3, 1}, {8, 1}, {2, 2}, {7, 7}, {8, 2}, {12, 3}, {10, 3}, {64, 16}};
    int rows = 0;
    for (int i = 0; i < CVY_COLLECTIVE_COUNT * CVY_ALGORITHM_COUNT; i++) {
        cvy_collective kind = (cvy_collective)(i / CVY_ALGORITHM_COUNT);
        cvy_algorithm algorithm = (cvy_algorithm)(i % CVY_ALGORITHM_COUNT);
        const cvy_collective_algorithm *row = cvy_collective_find(kind, algorithm);
        assert_true((row != NULL) == cvy_algorithm_does(algorithm, kind));
        if (!row) {
            continue;
        }
        rows++;
        judge_bounds(row, 3 + (int)algorithm);
        judge_bounds(row, 64);
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            judge_row(row, shapes[s][0], shapes[s][1]);
        }
    }
    assert_true(rows >= 24);
}

/* Few bytes go by few messages, many by few bytes; and none of the candidates is faster than the one taken. */
static void test_the_fastest_is_found(void **state)
{
    (void)state;
    cvy_wiring wiring = {.ranks = 16, .inner = {1e-6, 1e9}};
    const cvy_collective kind = CVY_COLLECTIVE_ALL_REDUCE;
    assert_int_equal(cvy_collective_fastest(kind, &wiring, 8)->algorithm, CVY_ALGORITHM_RECURSIVE_DOUBLING);
    assert_int_equal(cvy_collective_fastest(kind, &wiring, 1e6)->algorithm, CVY_ALGORITHM_HALVING_DOUBLING);
    wiring.ranks = 9; /* no power of two: halving would move the whole buffer twice more */
    assert_int_equal(cvy_collective_fastest(kind, &wiring, 1e8)->algorithm, CVY_ALGORITHM_RING);
    for (double bytes = 1; bytes < 1e9; bytes *= 3) {
        double least_s = cvy_collective_estimate_s(cvy_collective_fastest(kind, &wiring, bytes), &wiring, bytes);
        for (int i = 0; i < CVY_ALGORITHM_COUNT; i++) {
            const cvy_collective_algorithm *row = cvy_collective_find(kind, (cvy_algorithm)i);
            assert_true(!row || !row->candidate || cvy_collective_estimate_s(row, &wiring, bytes) >= least_s);
        }
    }
}

/*
 * 12 ranks on 3 nodes, 4 a node; 1e6 bytes. Hierarchical: 3 steps out and 3 back in the node, 1 us and a quarter at
 * 1 GB/s each, and 4 across, 10 us and a third of a quarter each, at 0.25 GB/s where four share a line of 1 GB/s.
 * Pairwise: 11 steps, each a twelfth at 0.25 GB/s.
 */
static void test_ranks_of_a_node_share_its_line(void **state)
{
    (void)state;
    cvy_wiring wiring = {.ranks = 12, .nodes = 3, .inner = {1e-6, 1e9}, .outer = {10e-6, 1e9}};
    double inside_s = 6 * (1e-6 + 250e-6);
    assert_close(all_reduce("hierarchical", &wiring, 1e6), inside_s + 4 * (10e-6 + 1e-3 / 12), 1e-12, "alone");
    wiring.outer_all_Bps = 0.25e9;
    assert_close(all_reduce("hierarchical", &wiring, 1e6), inside_s + 4 * (10e-6 + 4e-3 / 12), 1e-12, "shared");
    double pairs_s = estimate(CVY_COLLECTIVE_ALL_TO_ALL, "pairwise", &wiring, 1e6);
    assert_close(pairs_s, 11 * (10e-6 + 4e-3 / 12), 1e-12, "pairwise");
    assert_close(all_reduce("ring", &wiring, 1e6), 22 * (10e-6 + 1e-3 / 12), 1e-12, "a ring crosses once");
}

/* 2 us and 1 GB/s; four flows leave each a quarter. */
static void test_a_line_is_latency_and_bandwidth(void **state)
{
    (void)state;
    cvy_line line = {2e-6, 1e9};
    assert_close(cvy_line_estimate_s(line, 3000), 5e-6, 1e-12, "alone");
    assert_close(cvy_line_estimate_s(cvy_line_share(line, 4), 3000), 14e-6, 1e-12, "shared");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_rings_are_reproduced),
        cmocka_unit_test(test_trees_of_nccl_by_hand),
        cmocka_unit_test(test_machines_of_nccl),
        cmocka_unit_test(test_halves_by_nccl),
        cmocka_unit_test(test_messages_of_a_ring_take_as_long),
        cmocka_unit_test(test_messages_of_recursive_doubling_take_as_long),
        cmocka_unit_test(test_messages_of_halving_and_doubling_take_as_long),
        cmocka_unit_test(test_messages_of_a_binomial_broadcast_take_as_long),
        cmocka_unit_test(test_messages_through_leaders_of_uneven_nodes_take_as_long),
        cmocka_unit_test(test_two_levels_of_large_buffers),
        cmocka_unit_test(test_reduce_scatter_of_six_ranks),
        cmocka_unit_test(test_trees_take_the_best_number_of_pieces),
        cmocka_unit_test(test_all_to_all_by_rounds),
        cmocka_unit_test(test_all_reduce_is_reduce_scatter_and_all_gather),
        cmocka_unit_test(test_every_algorithm_keeps_the_laws),
        cmocka_unit_test(test_the_fastest_is_found),
        cmocka_unit_test(test_ranks_of_a_node_share_its_line),
        cmocka_unit_test(test_a_line_is_latency_and_bandwidth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
