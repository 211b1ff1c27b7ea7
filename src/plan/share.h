/*
 * What one rank has: where it sits in the mesh, how the tensors of a layer lie along all axes at once, and the local
 * tensors that follow.
 */
#ifndef CVY_PLAN_SHARE_H
#define CVY_PLAN_SHARE_H

#include "plan/distribution.h"
#include "plan/schedule.h"

/** A rank's place. */
typedef struct cvy_seat {
    const cvy_distribution *distribution; /**< NULL: one rank does it all, and no axis is cut */
    int64_t size[CVY_AXES];       /**< of the mesh */
    int64_t coordinate[CVY_AXES]; /**< of the rank */
    int axes;
    cvy_axis axis[CVY_AXES];      /**< those from depth to channel that are longer than 1 */
    int64_t batch;                /**< samples of all ranks */
    cvy_interval samples;         /**< of the rank, at this moment: a micro-batch's */
} cvy_seat;

/** How the ranks hold a tensor: a placement for each of the seat's axes; the others are not filled in. */
typedef struct cvy_spread {
    cvy_placement along[CVY_AXES];
} cvy_spread;

/** Which tensor of a layer lies so. */
typedef enum cvy_spread_of {
    CVY_SPREAD_INPUT,          /**< input i, as the op takes it */
    CVY_SPREAD_INPUT_GRADIENT, /**< its gradient, as the op leaves it; perhaps a sum */
    CVY_SPREAD_RAW,            /**< the output, as the op leaves it; perhaps a sum */
    CVY_SPREAD_RAW_GRADIENT,   /**< its gradient, as the op takes it: where the output is a sum, each has all of it */
    CVY_SPREAD_OUTPUT,         /**< the output and its gradient, as all others find them */
} cvy_spread_of;

/** Take a seat. @param[in] distribution  borrowed; NULL for one rank */
void cvy_seat_take(const cvy_distribution *distribution, int64_t rank, cvy_seat *seat_out);

/** Find how a tensor of a layer lies; @p i counts for inputs alone. */
void cvy_spread_find(const cvy_seat *seat, cvy_spread_of of, int layer, int i, cvy_spread *spread_out);

/** Whether every rank has the same under both. */
bool cvy_spread_equal(const cvy_seat *seat, const cvy_spread *a, const cvy_spread *b);

/** A tensor of a layer. */
typedef struct cvy_spread_name {
    cvy_spread_of of;
    int layer, i;
} cvy_spread_name;

/** Whether two tensors of layers lie alike. */
bool cvy_spread_same(const cvy_seat *seat, cvy_spread_name a, cvy_spread_name b);

/**
 * Fill in a buffer's extents: of all ranks, and local ones. Its type and format are there already.
 *
 * @param[in]     shape  as the model has it, of one sample
 * @param[in,out] buffer `global`, `local` and the tensor's shape are set
 */
void cvy_spread_describe(const cvy_seat *seat, const cvy_shape *shape, const cvy_spread *spread, cvy_buffer *buffer);

/** The same of a parameter; with groups the tensor has a leading g. An extent of 0: the rank has nothing of it. */
void cvy_seat_describe_parameter(const cvy_seat *seat, const cvy_model *model, int parameter, cvy_buffer *buffer);

/** Samples of all ranks that go through a micro-batch at a time: each rank's own part of its share. */
int64_t cvy_seat_count_samples(const cvy_seat *seat, int micro_batches, int micro_batch);

/** Elements of a tensor in bytes, without the padding of its format. */
int64_t cvy_share_bytes(const cvy_tensor *tensor);

#endif
