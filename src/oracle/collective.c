/*
 * Collectives over p ranks, n bytes; a and b are seconds of a message and of a byte, g seconds of summing a byte, L is
 * ceil(log2 p), q the largest power of two up to p.
 *
 * [T05] R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", Int. J.
 *       High Performance Computing Applications 19 (2005): all but what follows, and what to do where p is not q.
 * [R04] R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004: halving, then doubling.
 * [P09] P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69 (2009).
 * [B97] J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems",
 *       IEEE Trans. Parallel and Distributed Systems 8 (1997).
 * [S09] P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
 *       Parallel Computing 35 (2009).
 * [K21] A. Kahira et al., "An oracle for guiding large-scale model/hybrid parallel training of convolutional neural
 *       networks", HPDC 2021: two levels, by a leader of each node.
 */
#include "oracle/collective.h"

#include <math.h>

#include "oracle/collective_nccl.h"

/* What a formula needs. */
typedef struct terms {
    int p, q, rounds;  /* ranks, power of two within, L */
    double a, b, g;    /* seconds of a message, of a byte, of summing a byte */
    double halvings;   /* log2 q */
    double others;     /* (p - 1) / p: the share of the others */
    bool folded;       /* p is not q: p - q ranks stand aside meanwhile */
} terms;

static terms make_terms(cvy_line line, int ranks, double sum_s_per_byte)
{
    terms t = {.p = ranks, .q = 1, .a = line.latency_s, .b = 1.0 / line.bandwidth_Bps, .g = sum_s_per_byte};
    while (t.q <= ranks / 2) {
        t.q *= 2;
        t.halvings += 1.0;
    }
    t.folded = t.q < ranks;
    t.rounds = (int)t.halvings + t.folded;
    t.others = (ranks - 1.0) / ranks;
    return t;
}

/* Where one rank of a node talks to other nodes at a time, as in a ring. */
static terms flat_terms(const cvy_wiring *wiring)
{
    return make_terms(cvy_wiring_slowest(wiring), wiring->ranks, wiring->sum_s_per_byte);
}

static cvy_line find_crowded(const cvy_wiring *wiring)
{
    double Bps = wiring->outer_all_Bps > 0.0 ? wiring->outer_all_Bps : wiring->outer.bandwidth_Bps;
    return (cvy_line){.latency_s = wiring->outer.latency_s, .bandwidth_Bps = Bps};
}

/* Where all of them do at once: far partners of halving and doubling, pairs. */
static terms crowded_terms(const cvy_wiring *wiring)
{
    cvy_wiring crowded = *wiring;
    crowded.outer = find_crowded(wiring);
    return flat_terms(&crowded);
}

/* ---- one level ---- */

/* (p-1) (a + n/p (b + g)): each share goes round, gathering sums. [T05] pairwise, [P09] ring. */
static double reduce_scatter_ring(const cvy_wiring *wiring, double n)
{
    terms t = flat_terms(wiring);
    return (t.p - 1) * t.a + t.others * n * (t.b + t.g);
}

/* (p-1) (a + n/p b). [T05] */
static double all_gather_ring(const cvy_wiring *wiring, double n)
{
    terms t = flat_terms(wiring);
    return (t.p - 1) * t.a + t.others * n * t.b;
}

/* 2 (p-1) a + 2 (p-1)/p n b + (p-1)/p n g: the two above. [P09] */
static double all_reduce_ring(const cvy_wiring *wiring, double n)
{
    return reduce_scatter_ring(wiring, n) + all_gather_ring(wiring, n);
}

/* Where p is not q, p - q ranks first add theirs to a neighbour's buffer, all n bytes, ... [T05] */
static double fold_in(const terms *t, double n) { return t->folded ? t->a + n * (t->b + t->g) : 0.0; }

/* ... and in the end are sent what is theirs of the result. [T05] */
static double fold_out(const terms *t, double bytes) { return t->folded ? t->a + bytes * t->b : 0.0; }

/* log2 q (a + n (b + g)), and the fold of all n bytes in and out. [T05] */
static double all_reduce_doubling(const cvy_wiring *wiring, double n)
{
    terms t = crowded_terms(wiring);
    return fold_in(&t, n) + t.halvings * (t.a + n * (t.b + t.g)) + fold_out(&t, n);
}

/* log2 q a + (q-1)/q n (b + g): halves, quarters, ... of n bytes over q ranks. [R04, T05] */
static double halve(const terms *t, double n) { return t->halvings * t->a + (t->q - 1.0) / t->q * n * (t->b + t->g); }

/* log2 q a + (q-1)/q n b: the way back. */
static double double_up(const terms *t, double n) { return t->halvings * t->a + (t->q - 1.0) / t->q * n * t->b; }

/* Rabenseifner's: 2 log2 q a + 2 (q-1)/q n b + (q-1)/q n g, and the fold. [R04, T05] */
static double all_reduce_halving(const cvy_wiring *wiring, double n)
{
    terms t = crowded_terms(wiring);
    return fold_in(&t, n) + halve(&t, n) + double_up(&t, n) + fold_out(&t, n);
}

/* log2 q a + (q-1)/q n (b + g), and the fold: all in, each share of n/p out. [T05] */
static double reduce_scatter_halving(const cvy_wiring *wiring, double n)
{
    terms t = crowded_terms(wiring);
    return fold_in(&t, n) + halve(&t, n) + fold_out(&t, n / t.p);
}

/* L a + (p-1)/p n b: recursive doubling, and Bruck's where p is not q. [T05, B97] */
static double all_gather_doubling(const cvy_wiring *wiring, double n)
{
    terms t = crowded_terms(wiring);
    return t.rounds * t.a + t.others * n * t.b;
}

/*
 * Two binary trees, each with half of the buffer in k pieces: a rank is inside one and a leaf of the other. 2 (L + k)
 * steps up, as many down, of a + n/(2k) b each, and n g. [S09] Convex in k with its least value at sqrt(L n b / (2a)),
 * so one of the two integers around it is best.
 */
static double all_reduce_trees(const cvy_wiring *wiring, double n)
{
    terms t = flat_terms(wiring);
    if (t.a <= 0.0) { /* pieces as small as may be */
        return n * (2.0 * t.b + t.g);
    }
    double below = fmax(floor(sqrt(t.rounds * n * t.b / (2.0 * t.a))), 1.0);
    double least = INFINITY;
    for (double k = below; k <= below + 1.0; k += 1.0) {
        least = fmin(least, 4.0 * (t.rounds + k) * (t.a + n / (2.0 * k) * t.b));
    }
    return least + n * t.g;
}

/*
 * The same two trees where pieces stream without a start-up each, as under NCCL, which counts its trees so: 2 L a,
 * 2 n b, and n g. For rules with measured latencies; no exchange of messages is as fast.
 */
static double all_reduce_pipelined(const cvy_wiring *wiring, double n)
{
    terms t = flat_terms(wiring);
    return 2.0 * t.rounds * t.a + n * (2.0 * t.b + t.g);
}

/* (p-1) (a + n/p b): each rank meets each other once. [T05] */
static double all_to_all_pairwise(const cvy_wiring *wiring, double n)
{
    terms t = crowded_terms(wiring);
    return (t.p - 1) * t.a + t.others * n * t.b;
}

/* Round i carries the shares whose distance has bit i set: L a + (their number) n/p b, L n/2 b where p is q. [B97] */
static double all_to_all_bruck(const cvy_wiring *wiring, double n)
{
    terms t = crowded_terms(wiring);
    double shares = 0.0;
    for (int64_t bit = 1; bit < t.p; bit *= 2) {
        int64_t whole = t.p / (2 * bit), rest = t.p % (2 * bit);
        shares += (double)(whole * bit + (rest > bit ? rest - bit : 0));
    }
    return t.rounds * t.a + shares * n / t.p * t.b;
}

static double binomial_s(const terms *t, double n) { return t->rounds * (t->a + n * t->b); }

/* L (a + n b). [T05] */
static double broadcast_binomial(const cvy_wiring *wiring, double n)
{
    terms t = flat_terms(wiring);
    return binomial_s(&t, n);
}

/* Van de Geijn's: scatter by a binomial tree, gather round a ring: (L + p-1) a + 2 (p-1)/p n b. [T05] */
static double scatter_gather_s(const terms *t, double n)
{
    return (t->rounds + t->p - 1) * t->a + 2.0 * t->others * n * t->b;
}

static double broadcast_scatter_gather(const cvy_wiring *wiring, double n)
{
    terms t = flat_terms(wiring);
    return scatter_gather_s(&t, n);
}

/* ---- two levels ---- */

static int count_node_ranks(const cvy_wiring *wiring)
{
    int nodes = wiring->nodes > 1 ? wiring->nodes : 1;
    return wiring->node_ranks ? wiring->node_ranks : (wiring->ranks + nodes - 1) / nodes;
}

static cvy_wiring flat_wiring(int ranks, cvy_line line, double sum_s_per_byte)
{
    return (cvy_wiring){.ranks = ranks, .inner = line, .sum_s_per_byte = sum_s_per_byte};
}

/*
 * To the leader of a node, whichever is faster: a binomial tree, L (a + n (b + g)), or reduce-scatter round a ring and
 * a gather by a tree, (p-1 + L) a + 2 (p-1)/p n b + (p-1)/p n g. [T05] Neither falls with p, nor does telling the
 * node, so the fullest node is the last one done.
 */
static double reduce_s(const terms *t, double n)
{
    return fmin(binomial_s(t, n) + t->rounds * n * t->g, scatter_gather_s(t, n) + t->others * n * t->g);
}

/* Leaders add up their nodes, all-reduce among themselves by the fastest way, and tell their nodes. [K21 4.7] */
static double all_reduce_leader(const cvy_wiring *wiring, double n)
{
    int node_ranks = count_node_ranks(wiring);
    cvy_wiring between = flat_wiring(wiring->nodes, wiring->outer, wiring->sum_s_per_byte);
    double seconds = 0.0;
    if (node_ranks > 1) {
        terms t = make_terms(wiring->inner, node_ranks, wiring->sum_s_per_byte);
        seconds += reduce_s(&t, n) + fmin(binomial_s(&t, n), scatter_gather_s(&t, n));
    }
    if (wiring->nodes > 1) {
        double least_s = fmin(all_reduce_ring(&between, n), all_reduce_halving(&between, n));
        least_s = fmin(least_s, all_reduce_doubling(&between, n));
        seconds += fmin(least_s, all_reduce_trees(&between, n));
    }
    return seconds;
}

/*
 * A ring in each node, then a ring of leaders: 2 (p2-1) (a1 + n/p2 b1) + 2 (p1-1) (a2 + n/p1 b2), p2 ranks a node, p1
 * nodes. What [K21] counts for data+spatial, and what its programs do: telling the nodes is not in it.
 */
static double all_reduce_two_rings(const cvy_wiring *wiring, double n)
{
    cvy_wiring inside = flat_wiring(count_node_ranks(wiring), wiring->inner, wiring->sum_s_per_byte);
    cvy_wiring between = flat_wiring(wiring->nodes, wiring->outer, wiring->sum_s_per_byte);
    double seconds = inside.ranks > 1 ? all_reduce_ring(&inside, n) : 0.0;
    return wiring->nodes > 1 ? seconds + all_reduce_ring(&between, n) : seconds;
}

/*
 * Scattered in sums round a ring of each node, each share all-reduced across by those that hold it, gathered round the
 * rings: (p2-1) (a1 + n/p2 (b1 + g)), a ring of n/p2 over p1 nodes, (p2-1) (a1 + n/p2 b1).
 */
static double all_reduce_hierarchical(const cvy_wiring *wiring, double n)
{
    int node_ranks = count_node_ranks(wiring);
    cvy_wiring inside = flat_wiring(node_ranks, wiring->inner, wiring->sum_s_per_byte);
    cvy_wiring between = flat_wiring(wiring->nodes, find_crowded(wiring), wiring->sum_s_per_byte);
    double seconds = node_ranks > 1 ? all_reduce_ring(&inside, n) : 0.0;
    return wiring->nodes > 1 ? seconds + all_reduce_ring(&between, n / node_ranks) : seconds;
}

/* ---- the table ---- */

static const cvy_collective_algorithm rows[] = {
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RING, true, all_reduce_ring},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RECURSIVE_DOUBLING, true, all_reduce_doubling},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_HALVING_DOUBLING, true, all_reduce_halving},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_DOUBLE_TREE, true, all_reduce_trees},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_PIPELINED_TREE, false, all_reduce_pipelined},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_LEADER, true, all_reduce_leader},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_TWO_RINGS, false, all_reduce_two_rings},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_HIERARCHICAL, true, all_reduce_hierarchical},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_NCCL, false, cvy_nccl_all_reduce_s},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_NCCL_RING_LL, false, cvy_nccl_ring_ll_s},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_NCCL_RING_LL128, false, cvy_nccl_ring_ll128_s},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_NCCL_RING_SIMPLE, false, cvy_nccl_ring_simple_s},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_NCCL_TREE_LL, false, cvy_nccl_tree_ll_s},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_NCCL_TREE_LL128, false, cvy_nccl_tree_ll128_s},
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_NCCL_TREE_SIMPLE, false, cvy_nccl_tree_simple_s},
    {CVY_COLLECTIVE_ALL_GATHER, CVY_ALGORITHM_RING, true, all_gather_ring},
    {CVY_COLLECTIVE_ALL_GATHER, CVY_ALGORITHM_RECURSIVE_DOUBLING, true, all_gather_doubling},
    {CVY_COLLECTIVE_ALL_GATHER, CVY_ALGORITHM_NCCL, false, cvy_nccl_all_gather_s},
    {CVY_COLLECTIVE_REDUCE_SCATTER, CVY_ALGORITHM_RING, true, reduce_scatter_ring},
    {CVY_COLLECTIVE_REDUCE_SCATTER, CVY_ALGORITHM_RECURSIVE_HALVING, true, reduce_scatter_halving},
    {CVY_COLLECTIVE_REDUCE_SCATTER, CVY_ALGORITHM_NCCL, false, cvy_nccl_reduce_scatter_s},
    {CVY_COLLECTIVE_ALL_TO_ALL, CVY_ALGORITHM_PAIRWISE, true, all_to_all_pairwise},
    {CVY_COLLECTIVE_ALL_TO_ALL, CVY_ALGORITHM_BRUCK, true, all_to_all_bruck},
    {CVY_COLLECTIVE_BROADCAST, CVY_ALGORITHM_TREE, true, broadcast_binomial},
    {CVY_COLLECTIVE_BROADCAST, CVY_ALGORITHM_SCATTER_GATHER, true, broadcast_scatter_gather},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

cvy_line cvy_wiring_slowest(const cvy_wiring *wiring)
{
    const cvy_line *inner = &wiring->inner, *outer = &wiring->outer;
    if (wiring->nodes <= 1) {
        return *inner;
    }
    if (wiring->nodes >= wiring->ranks) { /* no two ranks share a node */
        return *outer;
    }
    return (cvy_line){.latency_s = fmax(inner->latency_s, outer->latency_s),
                      .bandwidth_Bps = fmin(inner->bandwidth_Bps, outer->bandwidth_Bps)};
}

const cvy_collective_algorithm *cvy_collective_find(cvy_collective kind, cvy_algorithm algorithm)
{
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].kind == kind && rows[i].algorithm == algorithm) {
            return &rows[i];
        }
    }
    return NULL;
}

double cvy_collective_estimate_s(const cvy_collective_algorithm *algorithm, const cvy_wiring *wiring, double bytes)
{
    return wiring->ranks > 1 ? algorithm->estimate_s(wiring, bytes) : 0.0;
}

const cvy_collective_algorithm *cvy_collective_fastest(cvy_collective kind, const cvy_wiring *wiring, double bytes)
{
    const cvy_collective_algorithm *fastest = NULL;
    double least_s = INFINITY;
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].kind != kind || !rows[i].candidate) {
            continue;
        }
        double seconds = cvy_collective_estimate_s(&rows[i], wiring, bytes);
        if (!fastest || seconds < least_s) {
            fastest = &rows[i];
            least_s = seconds;
        }
    }
    return fastest;
}
