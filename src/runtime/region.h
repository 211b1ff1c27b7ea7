/* What a rank holds of a tensor of all ranks, and what two ranks hold both: boxes of either's local tensor. */
#ifndef CVY_RUNTIME_REGION_H
#define CVY_RUNTIME_REGION_H

#include "plan/schedule.h"
#include "runtime/pack.h"

/** Indices of each dimension, of the whole tensor. Plain memory: ranks send it to each other. */
typedef struct cvy_region {
    int dims;
    cvy_intervals held[CVY_MAX_DIMS];
} cvy_region;

/** What a buffer holds. */
cvy_region cvy_region_of(const cvy_buffer *buffer);

/** Elements of a region, and those that two have both. */
int64_t cvy_region_elements(const cvy_region *region);
int64_t cvy_region_overlap(const cvy_region *a, const cvy_region *b);

/** A walk over the boxes that two regions have both, in the order of the whole tensor's indices. */
typedef struct cvy_region_walk {
    const cvy_region *mine, *other;
    int at[CVY_MAX_DIMS];               /**< the piece of each dimension */
    bool ended;
} cvy_region_walk;

/** Start a walk; regions of as many dimensions, borrowed. */
void cvy_region_walk_start(const cvy_region *mine, const cvy_region *other, cvy_region_walk *walk_out);

/** The next box, as @p mine lies in memory. False at the end. */
bool cvy_region_walk_next(cvy_region_walk *walk, cvy_box *box_out);

#endif
