/* From one placement of a tensor to another, over the ranks of one axis: which collective, and who sends how much. */
#ifndef CVY_TENSOR_REDISTRIBUTION_H
#define CVY_TENSOR_REDISTRIBUTION_H

#include "tensor/placement.h"
#include "tensor/shape.h"

typedef enum cvy_redistribution {
    CVY_REDISTRIBUTION_NONE,           /**< every rank has what it needs, as it needs it */
    CVY_REDISTRIBUTION_LOCAL,          /**< a slice of what a rank has, or zeros around it; nothing is sent */
    CVY_REDISTRIBUTION_ALL_GATHER,     /**< split to replicated */
    CVY_REDISTRIBUTION_ALL_REDUCE,     /**< partial to replicated */
    CVY_REDISTRIBUTION_REDUCE_SCATTER, /**< partial to split */
    CVY_REDISTRIBUTION_ALL_TO_ALL,     /**< split to another split */
    CVY_REDISTRIBUTION_COUNT
} cvy_redistribution;

/** "none", "local", "all-gather", "all-reduce", "reduce-scatter", "all-to-all". Cannot fail. */
const char *cvy_redistribution_name(cvy_redistribution redistribution);

/** What leads from one placement to another of as many ranks. Between replicas and summands, rank 0's copy counts. */
cvy_redistribution cvy_redistribution_find(const cvy_placement *from, const cvy_placement *to);

/**
 * Elements that rank @p sender has for rank @p receiver, exact for shares of any kind; for the rank itself, what it
 * keeps. Of sums, what it adds to what the receiver needs, before any algorithm adds on the way.
 *
 * @param[in] shape  as the ranks of this group hold it before it is cut along this axis; within cvy_shape_check()
 */
int64_t cvy_redistribution_elements(const cvy_placement *from, const cvy_placement *to, const cvy_shape *shape,
                                    int64_t sender, int64_t receiver);

#endif
