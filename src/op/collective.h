/*
 * The vocabulary of what goes over links: collectives and messages, and the algorithms of collectives. Machine files,
 * schedules and the oracle speak it alike.
 */
#ifndef CVY_OP_COLLECTIVE_H
#define CVY_OP_COLLECTIVE_H

#include <stdbool.h>

/** What the ranks of a group do together. */
typedef enum cvy_collective {
    CVY_COLLECTIVE_ALL_REDUCE,     /**< each brings a buffer, and ends with the sum of all */
    CVY_COLLECTIVE_ALL_GATHER,     /**< each brings a part, and ends with all parts */
    CVY_COLLECTIVE_REDUCE_SCATTER, /**< each brings a buffer, and ends with a part of the sum */
    CVY_COLLECTIVE_ALL_TO_ALL,     /**< each brings a part for each other one */
    CVY_COLLECTIVE_BROADCAST,      /**< one has the buffer, and all end with it */
    CVY_COLLECTIVE_POINT_TO_POINT, /**< no collective: messages from one rank to another */
    CVY_COLLECTIVE_COUNT
} cvy_collective;

/** How they do it. */
typedef enum cvy_algorithm {
    CVY_ALGORITHM_RING,               /**< p - 1 steps of a share each, to the next one; all-reduce goes round twice */
    CVY_ALGORITHM_RECURSIVE_DOUBLING, /**< log2 p steps; of all-reduce with the whole buffer in each */
    CVY_ALGORITHM_RECURSIVE_HALVING,  /**< log2 p steps of a half, a quarter, … */
    CVY_ALGORITHM_HALVING_DOUBLING,   /**< recursive halving, then doubling */
    CVY_ALGORITHM_TREE,               /**< binomial: log2 p steps with the whole buffer */
    CVY_ALGORITHM_SCATTER_GATHER,     /**< scattered by a binomial tree, gathered round a ring */
    CVY_ALGORITHM_DOUBLE_TREE,        /**< two binary trees, each for half of the buffer, in pieces */
    CVY_ALGORITHM_PIPELINED_TREE,     /**< the same where a next piece needs no new start-up */
    CVY_ALGORITHM_PAIRWISE,           /**< p - 1 steps, each with another partner */
    CVY_ALGORITHM_BRUCK,              /**< log2 p steps of about half of the buffer */
    CVY_ALGORITHM_HIERARCHICAL,       /**< scattered inside each domain, each share across, gathered inside */
    CVY_ALGORITHM_LEADER,             /**< to a leader of each domain, among leaders, and back */
    CVY_ALGORITHM_TWO_RINGS,          /**< a ring in each domain, then one of leaders, and not back */
    CVY_ALGORITHM_NCCL,               /**< the cheapest by the cost model that NCCL publishes; its own stand last */
    CVY_ALGORITHM_NCCL_RING_LL,       /**< NCCL's rings and double binary trees by protocol */
    CVY_ALGORITHM_NCCL_RING_LL128,
    CVY_ALGORITHM_NCCL_RING_SIMPLE,
    CVY_ALGORITHM_NCCL_TREE_LL,
    CVY_ALGORITHM_NCCL_TREE_LL128,
    CVY_ALGORITHM_NCCL_TREE_SIMPLE,
    CVY_ALGORITHM_COUNT
} cvy_algorithm;

/** "all-reduce", "point-to-point", … Cannot fail. */
const char *cvy_collective_name(cvy_collective collective);

/** "ring", "nccl-tree-ll128", … Cannot fail. */
const char *cvy_algorithm_name(cvy_algorithm algorithm);

/** Find an algorithm by its name; false where there is none. */
bool cvy_algorithm_find(const char *name, cvy_algorithm *algorithm_out);

/** Whether an algorithm does a collective: a tree no all-to-all. */
bool cvy_algorithm_does(cvy_algorithm algorithm, cvy_collective collective);

#endif
