/*
 * Placements: how the ranks along one axis of a mesh hold a tensor. All of it each (replicated), a sum that is still to
 * be made each (partial), or a share of one dimension each (split). A mesh of several axes has one placement for each.
 */
#ifndef CVY_TENSOR_PLACEMENT_H
#define CVY_TENSOR_PLACEMENT_H

#include "tensor/interval.h"

typedef enum cvy_placing {
    CVY_PLACING_REPLICATED, /**< the same elements on every rank */
    CVY_PLACING_PARTIAL,    /**< the tensor is the sum over the ranks */
    CVY_PLACING_SPLIT,      /**< each element on one rank */
} cvy_placing;

/** A stretch of a dimension that is divided on its own: the whole of it, or what one input of a concat brought. */
typedef struct cvy_segment {
    int64_t begin, extent;
    int64_t unit;          /**< ranks get multiples of it: channels of a group of convolutions or norms; else 1 */
    const int64_t *border; /**< part i is [border[i], border[i + 1]) of the stretch; borrowed; NULL: balanced */
} cvy_segment;

/** How @p parts ranks hold a tensor. */
typedef struct cvy_placement {
    cvy_placing placing;
    int dim;       /**< that is split; 0 otherwise */
    int64_t parts; /**< ranks along the axis */
    int segments;  /**< 0 where nothing is split */
    cvy_segment segment[CVY_MAX_INTERVALS];
} cvy_placement;

/** All of the tensor on each of @p parts ranks. */
cvy_placement cvy_placement_replicate(int64_t parts);

/** A summand on each of @p parts ranks. */
cvy_placement cvy_placement_sum(int64_t parts);

/**
 * Split dimension @p dim balanced: its units go around, the first ranks get one more, late ones perhaps nothing.
 *
 * @param[in]  extent         of the dimension, at least 1
 * @param[in]  unit           at least 1; 1 where any border is fine
 * @retval CVY_ERR_INFEASIBLE @p unit does not divide @p extent
 */
cvy_status cvy_placement_split(int dim, int64_t extent, int64_t unit, int64_t parts, cvy_placement *placement_out);

/**
 * Split dimension @p dim at given borders.
 *
 * @param[in]  border  @p parts + 1 ascending indices, the first 0, the last the dimension's extent; borrowed, must
 *                     outlive the placement
 */
cvy_placement cvy_placement_split_at(int dim, const int64_t *border, int64_t parts);

/**
 * Find the borders of shares in proportion to weights, such as 3 and 1: each rank gets its quota of units rounded down,
 * and those with the largest remainders, of equal ones the first, get one more. Equal weights give balanced shares.
 *
 * @param[in]  weights     @p parts of them, at least 0, not all 0
 * @param[out] border_out  @p parts + 1; untouched on failure
 * @retval CVY_ERR_INPUT      a weight below 0, all 0, or too large to count with
 * @retval CVY_ERR_INFEASIBLE @p unit does not divide @p extent
 */
cvy_status cvy_placement_weigh(int64_t extent, int64_t unit, const int64_t *weights, int64_t parts,
                               int64_t *border_out);

/**
 * Put the dimension that @p next splits behind the one that @p placement splits, as concat does without moving
 * anything: each rank then holds a share of both.
 *
 * @param[in,out] placement  as before on failure
 * @retval CVY_ERR_ARG         the two are not splits of one dimension over as many ranks
 * @retval CVY_ERR_UNSUPPORTED more than CVY_MAX_INTERVALS stretches
 */
cvy_status cvy_placement_concat(cvy_placement *placement, const cvy_placement *next);

/** What rank @p index along the axis holds of dimension @p dim of @p extent. */
cvy_intervals cvy_placement_share(const cvy_placement *placement, int dim, int64_t extent, int64_t index);

/** Whether every rank holds the same under both, and as the same kind of value. */
bool cvy_placement_equal(const cvy_placement *a, const cvy_placement *b);

#endif
