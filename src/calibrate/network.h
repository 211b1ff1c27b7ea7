/*
 * The network between the ranks that measure: messages between two of them and round all, collectives of all and of
 * groups, against their size. What is fitted is piece-wise lines, latency and bandwidth, which become levels of links
 * and rules of collectives of a machine file.
 */
#ifndef CVY_CALIBRATE_NETWORK_H
#define CVY_CALIBRATE_NETWORK_H

#include "comm/comm.h"
#include "machine/machine.h"

enum { CVY_NETWORK_POINTS = 16, CVY_NETWORK_PIECES = 3, CVY_NETWORK_CURVES = 16 };

/** Seconds of a message or collective of a size. */
typedef struct cvy_network_point {
    double bytes, seconds;
    double error; /**< half the distance of the quartiles, by the median */
} cvy_network_point;

/** A line over a range of sizes: constant_s + bytes s_per_byte. */
typedef struct cvy_network_piece {
    double up_to_bytes; /**< largest size; the last piece goes on for ever */
    double constant_s, s_per_byte;
    double residual;    /**< the largest relative error of a point */
} cvy_network_piece;

/** What one kind of transfer takes. */
typedef struct cvy_network_curve {
    cvy_collective collective;
    bool both;  /**< of messages: each rank sends one and receives one at once; else one way at a time */
    int level;  /**< of the machine: 0 is the innermost that was measured */
    int ranks;
    int groups; /**< of so many ranks, that do the same at the same time */
    int flows;  /**< of them that share the links of a node: each has its part of what is measured */
    cvy_network_point point[CVY_NETWORK_POINTS];
    int points;
    cvy_network_piece piece[CVY_NETWORK_PIECES];
    int pieces;
} cvy_network_curve;

/** A network. */
typedef struct cvy_network_profile {
    int nodes, node_ranks; /**< ranks of each node */
    cvy_network_curve curve[CVY_NETWORK_CURVES];
    int curves;            /**< 0: one rank has no network */
    int64_t bucket_bytes;  /**< the least message that is reduced at nearly the best rate; 0: unknown */
    int64_t burst_bytes;   /**< what the outermost links carry at once behind a pause, beyond their rate; 0: nothing */
} cvy_network_profile;

/**
 * Measure. Collective over all ranks, which get the same profile. A curve ends with the first size that takes long, so
 * that slow networks take no longer than fast ones.
 *
 * Links that save up while nothing is sent, as those of a token bucket, are seen by messages behind a pause; curves are
 * of what they carry without it.
 *
 * @param[in]  node         of each rank: a number that ranks of one node share
 * @param[in]  most_bytes   of the largest message
 * @param[out] profile_out  of one rank: without a curve
 * @retval CVY_ERR_INPUT    nodes with unlike numbers of ranks, or whose ranks do not follow each other
 * @retval CVY_ERR_RANK, CVY_ERR_MEMORY
 */
cvy_status cvy_network_measure(cvy_comm *comm, const int *node, double most_bytes, cvy_network_profile *profile_out);

/**
 * Fit the fewest pieces, up to CVY_NETWORK_PIECES, of which none is off by more than a tenth; else as many as allowed,
 * with the least largest error. Lines neither fall nor begin below 0.
 *
 * @param[in]  point      by growing size, at least 1
 * @param[out] piece_out  room for CVY_NETWORK_PIECES
 * @return how many
 */
int cvy_network_fit(const cvy_network_point *point, int points, cvy_network_piece *piece_out);

/** Write levels, rules of collectives and the bucket of a profile into a machine. @retval CVY_ERR_MEMORY */
cvy_status cvy_network_fill(const cvy_network_profile *profile, const char *date, cvy_machine *machine);

#endif
