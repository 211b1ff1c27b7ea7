/*
 * Scores of classes at each position of a sample, in plain order: class by class, positions side by side, so that a
 * loop over positions is vector code. A block of positions of one sample is the unit of work and of partial sums.
 */
#ifndef CVY_BACKEND_CPU_MAP_H
#define CVY_BACKEND_CPU_MAP_H

#include "backend/cpu/cpu.h"

enum { CVY_CPU_MAP_BLOCK = 512 };

/** Extents of a map; positions is 1 of scores n,c. */
typedef struct cvy_cpu_map {
    int64_t samples, classes, positions;
    int64_t blocks; /**< of a sample */
} cvy_cpu_map;

/** One block. */
typedef struct cvy_cpu_map_block {
    int64_t sample, first, count; /**< positions */
    int64_t scores;               /**< offset of its first position in class 0 */
    int64_t labels;               /**< … among the labels */
} cvy_cpu_map_block;

/** What the softmax of a block needs. */
typedef struct cvy_cpu_softmax {
    float largest[CVY_CPU_MAP_BLOCK];  /**< score */
    float total[CVY_CPU_MAP_BLOCK];    /**< sum over classes of exp(x - largest) */
    int32_t winner[CVY_CPU_MAP_BLOCK]; /**< class of the largest, the first of equals */
} cvy_cpu_softmax;

/** Whether all operands of a loss of classes lie so. */
bool cvy_cpu_map_fits(const cvy_op *op);

/** The map of a loss, by its first operand. */
cvy_cpu_map cvy_cpu_map_get(const cvy_op *op);

/** The i-th of samples * blocks. */
cvy_cpu_map_block cvy_cpu_map_find(const cvy_cpu_map *map, int64_t i);

/** Check the labels of the first @p samples samples. @retval CVY_ERR_DATA one is no class; it is named */
cvy_status cvy_cpu_map_check(const cvy_cpu_map *map, const int32_t *label, int64_t samples);

/** Look at a block: @p x is its first position in class 0. NaN among the scores makes the total NaN. */
void cvy_cpu_softmax_open(const cvy_cpu_map *map, const float *x, int64_t count, cvy_cpu_softmax *softmax_out);

/** Probabilities of one class: @p x is the block's first position in it. */
void cvy_cpu_softmax_share(const cvy_cpu_softmax *softmax, const float *x, int64_t count, float *p);

/** How many of a block's labels are its winners. */
int64_t cvy_cpu_softmax_count(const cvy_cpu_softmax *softmax, const int32_t *label, int64_t count);

#endif
