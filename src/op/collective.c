/* Names of collectives and of algorithms, and who does what: one table each. */
#include "op/collective.h"

#include <string.h>

#define BIT(collective) (1u << CVY_COLLECTIVE_##collective)

static const char *const collectives[CVY_COLLECTIVE_COUNT] = {
    [CVY_COLLECTIVE_ALL_REDUCE] = "all-reduce",
    [CVY_COLLECTIVE_ALL_GATHER] = "all-gather",
    [CVY_COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
    [CVY_COLLECTIVE_ALL_TO_ALL] = "all-to-all",
    [CVY_COLLECTIVE_BROADCAST] = "broadcast",
    [CVY_COLLECTIVE_POINT_TO_POINT] = "point-to-point",
};

enum { HALVES = BIT(ALL_GATHER) | BIT(REDUCE_SCATTER) };

static const struct {
    const char *name;
    unsigned does; /* bits of collectives */
} algorithms[CVY_ALGORITHM_COUNT] = {
    [CVY_ALGORITHM_RING] = {"ring", BIT(ALL_REDUCE) | HALVES},
    [CVY_ALGORITHM_RECURSIVE_DOUBLING] = {"recursive-doubling", BIT(ALL_REDUCE) | BIT(ALL_GATHER)},
    [CVY_ALGORITHM_RECURSIVE_HALVING] = {"recursive-halving", BIT(REDUCE_SCATTER)},
    [CVY_ALGORITHM_HALVING_DOUBLING] = {"halving-doubling", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_TREE] = {"tree", BIT(BROADCAST)},
    [CVY_ALGORITHM_SCATTER_GATHER] = {"scatter-gather", BIT(BROADCAST)},
    [CVY_ALGORITHM_DOUBLE_TREE] = {"double-tree", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_PIPELINED_TREE] = {"pipelined-tree", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_PAIRWISE] = {"pairwise", BIT(ALL_TO_ALL)},
    [CVY_ALGORITHM_BRUCK] = {"bruck", BIT(ALL_TO_ALL)},
    [CVY_ALGORITHM_HIERARCHICAL] = {"hierarchical", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_LEADER] = {"leader", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_TWO_RINGS] = {"two-rings", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_NCCL] = {"nccl", BIT(ALL_REDUCE) | HALVES},
    [CVY_ALGORITHM_NCCL_RING_LL] = {"nccl-ring-ll", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_NCCL_RING_LL128] = {"nccl-ring-ll128", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_NCCL_RING_SIMPLE] = {"nccl-ring-simple", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_NCCL_TREE_LL] = {"nccl-tree-ll", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_NCCL_TREE_LL128] = {"nccl-tree-ll128", BIT(ALL_REDUCE)},
    [CVY_ALGORITHM_NCCL_TREE_SIMPLE] = {"nccl-tree-simple", BIT(ALL_REDUCE)},
};

const char *cvy_collective_name(cvy_collective collective) { return collectives[collective]; }

const char *cvy_algorithm_name(cvy_algorithm algorithm) { return algorithms[algorithm].name; }

bool cvy_algorithm_find(const char *name, cvy_algorithm *algorithm_out)
{
    for (int i = 0; i < CVY_ALGORITHM_COUNT; i++) {
        if (strcmp(name, algorithms[i].name) == 0) {
            *algorithm_out = (cvy_algorithm)i;
            return true;
        }
    }
    return false;
}

bool cvy_algorithm_does(cvy_algorithm algorithm, cvy_collective collective)
{
    return algorithms[algorithm].does >> collective & 1;
}
