/*
 * The cost model by which NCCL 2.8 chooses: seconds = latency + bytes / bandwidth for each algorithm and protocol.
 * Constants and rules: NVIDIA NCCL v2.8.4-1, src/graph/tuning.cc (ncclTopoTuneModel, ncclTopoGetAlgoTime); those of
 * trees as they stand in the fork microsoft/msccl, whose rings have the same ones. R ranks on N nodes:
 *
 *   ring   steps = 2(R-1) for all-reduce, R-1 for the halves of it; of these 2(N-1), N-1 cross the network
 *          latency = base + (steps - crossing) hop_inside + crossing hop_net;  bandwidth = bus R / steps
 *   tree   latency = base + 2 ((R/N - 1) hop_inside + floor(log2 N) hop_net);  bandwidth = bus / 2
 *
 * The bus is channels times what one carries, reduced by protocol. Between nodes, rings of 64 KB a sixteenth of the
 * ranks and more reach a plateau of 1.9 times the latency, and trees are derated at middle sizes, so these seconds need
 * not rise with bytes everywhere.
 */
#include "oracle/collective_nccl.h"

#include <math.h>

typedef enum protocol { LL, LL128, SIMPLE, PROTOCOLS } protocol;
typedef enum shape { TREE, RING, SHAPES } shape;
typedef enum hop { HOP_NVLINK, HOP_PCI, HOP_NET, HOPS } hop;

static const double base_us[SHAPES][PROTOCOLS] = {[TREE] = {4.4, 4.4, 0.0}, [RING] = {3.6, 10.0, 8.4}};

static const double hop_us[HOPS][SHAPES][PROTOCOLS] = {
    [HOP_NVLINK] = {[TREE] = {0.52, 1.25, 28.0}, [RING] = {0.47, 1.9, 3.4}},
    [HOP_PCI] = {[TREE] = {1.0, 1.9, 28.0}, [RING] = {1.0, 2.5, 5.7}},
    [HOP_NET] = {[TREE] = {5.0, 8.5, 28.0}, [RING] = {2.7, 4.0, 9.6}},
};

/* Most GB/s of protocol LL (Volta or Intel; Ampere or AMD) and of a channel of a tree, on 1, 2, more nodes. */
static const double ll_most_GBps[2][3] = {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}};
static const double tree_channel_GBps[2][3] = {{26.5, 18.5, 10.0}, {24.0, 22.5, 16.0}};
static const double ampere_bus_GBps = 235.0, plateau_latency = 1.9, ll_hop_latency = 1.8;

/* What NCCL takes trees' bandwidth times, from 64 B on by powers of two. */
enum { TREE_SIZES = 23 };
static const double tree_share[PROTOCOLS][TREE_SIZES] = {
    [LL] = {1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1.0, 1.0, 1.0, 1.0},
    [LL128] = {1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, .92, .92},
    [SIMPLE] = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
};

/* A kind of collective. */
typedef struct traits {
    int rounds;                /* all-reduce goes round twice */
    double ll128_channel_GBps; /* most of a channel in protocol LL128 */
    double ll_node_share;      /* of the bus in protocol LL within a node; between nodes it is a quarter */
} traits;

static const traits all_reduce = {2, 16.9, 1.0 / 4.0};
static const traits all_gather = {1, 18.3, 1.0 / 3.0};
static const traits reduce_scatter = {1, 15.2, 1.0 / 3.0};

static int count_nodes(const cvy_wiring *wiring) { return wiring->nodes > 1 ? wiring->nodes : 1; }

/* Column of the tables by nodes: 1, 2, more. */
static int size_class(int nodes) { return nodes <= 2 ? nodes - 1 : 2; }

static double ll_bound(const cvy_wiring *wiring)
{
    int nodes = count_nodes(wiring);
    bool newer = nodes == 1 ? wiring->nccl.ampere : wiring->nccl.amd;
    return ll_most_GBps[newer][size_class(nodes)];
}

static double channels_bound(const cvy_wiring *wiring, double channel_GBps)
{
    return wiring->nccl.channels ? wiring->nccl.channels * channel_GBps : INFINITY;
}

static double find_bus(const cvy_wiring *wiring)
{
    double bus_GBps = cvy_wiring_slowest(wiring).bandwidth_Bps / 1e9;
    return wiring->nccl.ampere ? fmin(bus_GBps, ampere_bus_GBps) : bus_GBps;
}

static double find_ring_bus(const cvy_wiring *wiring, const traits *kind, protocol by)
{
    int nodes = count_nodes(wiring);
    double bus_GBps = find_bus(wiring);
    if (by == LL) {
        return fmin(ll_bound(wiring), bus_GBps * (nodes > 1 ? 1.0 / 4.0 : kind->ll_node_share));
    }
    if (by == LL128) {
        double share = wiring->ranks < 2 * nodes ? 0.7 : 0.92;
        return fmin(bus_GBps * share, channels_bound(wiring, kind->ll128_channel_GBps));
    }
    return bus_GBps;
}

static double find_tree_bus(const cvy_wiring *wiring, protocol by)
{
    int nodes = count_nodes(wiring);
    double channel_GBps = tree_channel_GBps[wiring->nccl.ampere][size_class(nodes)];
    double bus_GBps = fmin(find_bus(wiring) * 0.92, channels_bound(wiring, channel_GBps));
    if (by == LL) {
        return fmin(bus_GBps / 3.8, ll_bound(wiring));
    }
    if (by == LL128) {
        double share = nodes == 1 ? 7.0 / 9.0 : 0.915;
        return fmin(bus_GBps * share, channels_bound(wiring, all_reduce.ll128_channel_GBps));
    }
    return bus_GBps;
}

static double find_inner_hop(const cvy_wiring *wiring, shape over, protocol by)
{
    double us = hop_us[wiring->nccl.pcie ? HOP_PCI : HOP_NVLINK][over][by];
    return by == LL && count_nodes(wiring) > 1 ? us * ll_hop_latency : us;
}

static double estimate_ring(const cvy_wiring *wiring, const traits *kind, protocol by, double bytes)
{
    int ranks = wiring->ranks, nodes = count_nodes(wiring);
    double steps = kind->rounds * (ranks - 1.0), crossing = kind->rounds * (nodes - 1.0);
    double latency_us = base_us[RING][by] + (steps - crossing) * find_inner_hop(wiring, RING, by) +
                        crossing * hop_us[HOP_NET][RING][by];
    if (by == SIMPLE && nodes > 1 && kind == &all_reduce && bytes >= ranks / 16.0 * 65536.0) {
        latency_us *= plateau_latency;
    }
    double bandwidth_GBps = find_ring_bus(wiring, kind, by) * ranks / steps;
    return latency_us * 1e-6 + bytes / (bandwidth_GBps * 1e9);
}

static double estimate_tree(const cvy_wiring *wiring, protocol by, double bytes)
{
    int nodes = count_nodes(wiring), node_ranks = wiring->ranks / nodes;
    double latency_us = base_us[TREE][by] + 2.0 * ((node_ranks - 1) * find_inner_hop(wiring, TREE, by) +
                                                   floor(log2(nodes)) * hop_us[HOP_NET][TREE][by]);
    int size = bytes >= 128.0 ? (int)floor(log2(bytes / 64.0)) : 0;
    double share = size < TREE_SIZES ? tree_share[by][size] : 1.0;
    double bandwidth_GBps = find_tree_bus(wiring, by) * share / 2.0;
    return latency_us * 1e-6 + bytes / (bandwidth_GBps * 1e9);
}

/* NCCL takes LL128 over NVLink alone. */
static double estimate_fastest_ring(const cvy_wiring *wiring, const traits *kind, double bytes)
{
    double least_s = fmin(estimate_ring(wiring, kind, LL, bytes), estimate_ring(wiring, kind, SIMPLE, bytes));
    return wiring->nccl.pcie ? least_s : fmin(least_s, estimate_ring(wiring, kind, LL128, bytes));
}

double cvy_nccl_all_reduce_s(const cvy_wiring *wiring, double bytes)
{
    double tree_s = fmin(estimate_tree(wiring, LL, bytes), estimate_tree(wiring, SIMPLE, bytes));
    if (!wiring->nccl.pcie) {
        tree_s = fmin(tree_s, estimate_tree(wiring, LL128, bytes));
    }
    return fmin(tree_s, estimate_fastest_ring(wiring, &all_reduce, bytes));
}

double cvy_nccl_all_gather_s(const cvy_wiring *wiring, double bytes)
{
    return estimate_fastest_ring(wiring, &all_gather, bytes);
}

double cvy_nccl_reduce_scatter_s(const cvy_wiring *wiring, double bytes)
{
    return estimate_fastest_ring(wiring, &reduce_scatter, bytes);
}

double cvy_nccl_ring_ll_s(const cvy_wiring *wiring, double bytes)
{
    return estimate_ring(wiring, &all_reduce, LL, bytes);
}

double cvy_nccl_ring_ll128_s(const cvy_wiring *wiring, double bytes)
{
    return estimate_ring(wiring, &all_reduce, LL128, bytes);
}

double cvy_nccl_ring_simple_s(const cvy_wiring *wiring, double bytes)
{
    return estimate_ring(wiring, &all_reduce, SIMPLE, bytes);
}

double cvy_nccl_tree_ll_s(const cvy_wiring *wiring, double bytes) { return estimate_tree(wiring, LL, bytes); }

double cvy_nccl_tree_ll128_s(const cvy_wiring *wiring, double bytes) { return estimate_tree(wiring, LL128, bytes); }

double cvy_nccl_tree_simple_s(const cvy_wiring *wiring, double bytes) { return estimate_tree(wiring, SIMPLE, bytes); }
