/*
 * Seconds of collectives by latency-bandwidth lines (Hockney's alpha and beta), one row an algorithm. Each algorithm is
 * the published one; where ranks are no power of two, its published variant for that.
 *
 * Steps are synchronous and full duplex: a rank sends and receives at once, and a step costs its slowest pair.
 * Contention is the caller's: a line that k flows share has 1/k of the bandwidth (cvy_line_share()).
 */
#ifndef CVY_ORACLE_COLLECTIVE_H
#define CVY_ORACLE_COLLECTIVE_H

#include <stdbool.h>

#include "machine/machine.h"

/** A message of n bytes takes latency_s + n / bandwidth_Bps seconds. */
typedef struct cvy_line {
    double latency_s;     /**< of one message */
    double bandwidth_Bps; /**< of one rank, each way, while all ranks do the same */
} cvy_line;

/** What joins the ranks of a collective. */
typedef struct cvy_wiring {
    int ranks;      /**< at least 1 */
    int nodes;      /**< that the ranks lie on; 0 is 1 */
    int node_ranks; /**< on the fullest node, where nodes hold uneven numbers; 0: balanced, ceil(ranks / nodes) */
    cvy_line inner; /**< between ranks of a node */
    cvy_line outer; /**< between nodes, one rank of a node at a time; not read where there is one node */
    double outer_all_Bps;  /**< of outer, for each rank while all of a node cross; 0: outer's bandwidth */
    double sum_s_per_byte; /**< of reducing; 0: not counted */
    cvy_nccl nccl;
} cvy_wiring;

/** An algorithm: a row of the table. */
typedef struct cvy_collective_algorithm {
    cvy_collective kind;
    cvy_algorithm algorithm;
    bool candidate; /**< for the fastest: not so a library's model, with latencies of its own, nor half an exchange */
    double (*estimate_s)(const cvy_wiring *wiring, double bytes); /**< at least 2 ranks */
} cvy_collective_algorithm;

/** The line as each of @p flows, at least 1, sees it that share it. */
static inline cvy_line cvy_line_share(cvy_line line, double flows)
{
    return (cvy_line){.latency_s = line.latency_s, .bandwidth_Bps = line.bandwidth_Bps / flows};
}

/** Seconds of one message from point to point. */
static inline double cvy_line_estimate_s(cvy_line line, double bytes)
{
    return line.latency_s + bytes / line.bandwidth_Bps;
}

/** The line of an algorithm that does not know nodes: each step waits for its slowest pair. */
cvy_line cvy_wiring_slowest(const cvy_wiring *wiring);

/** The row of a collective by an algorithm; NULL where cvy_algorithm_does() says no. */
const cvy_collective_algorithm *cvy_collective_find(cvy_collective kind, cvy_algorithm algorithm);

/**
 * Seconds of a collective.
 *
 * @param[in] bytes all-reduce, broadcast: of the whole buffer, which each rank has. reduce-scatter: of the buffer that
 *                  each rank brings. all-gather: of the buffer that each rank ends with. all-to-all: of what each rank
 *                  brings, its share for itself included
 * @return 0 for one rank
 */
double cvy_collective_estimate_s(const cvy_collective_algorithm *algorithm, const cvy_wiring *wiring, double bytes);

/** The fastest row of a kind at this size; of equal ones the first. Candidates alone compete. */
const cvy_collective_algorithm *cvy_collective_fastest(cvy_collective kind, const cvy_wiring *wiring, double bytes);

#endif
