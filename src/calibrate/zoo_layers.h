/*
 * Layers of the zoo's models as judges of fits: ops of training iterations at some batches, with how far away their
 * operands are there. They are measured, and nothing is fitted to them.
 */
#ifndef CVY_CALIBRATE_ZOO_LAYERS_H
#define CVY_CALIBRATE_ZOO_LAYERS_H

#include "calibrate/shapes.h"

/** Ops and their distances, as a survey takes them. Starts from {0}. */
typedef struct cvy_zoo_layers {
    cvy_op *op;          /**< owned */
    double *distance;    /**< owned: bytes touched since an op's operands were */
    int ops, capacity, distances;
} cvy_zoo_layers;

/**
 * Draw layers: of each of some models, at batches of 1 to 64, as many ops of a plan on one rank.
 *
 * A function of (seed, limits, count) alone. Ops beyond the limits are left out; an op may be drawn twice.
 *
 * @param[in]     count   how many, at most
 * @param[in,out] layers  appended to; released with cvy_zoo_layers_clear(), also after a failure
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_zoo_layers_draw(uint64_t seed, const cvy_shape_limits *limits, int count, cvy_zoo_layers *layers);

/** Append an op. @retval CVY_ERR_MEMORY */
cvy_status cvy_zoo_layers_add(cvy_zoo_layers *layers, const cvy_op *op, double distance_bytes);

/** Release and empty. */
void cvy_zoo_layers_clear(cvy_zoo_layers *layers);

#endif
