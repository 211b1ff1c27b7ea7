/* Convolutions of which input and output have few positions, as products of matrices. */
#ifndef CVY_BACKEND_ONEDNN_POINTS_H
#define CVY_BACKEND_ONEDNN_POINTS_H

#include "backend/backend.h"

/** Whether an op is such a convolution, in formats that suit: channels last, weights hwio. It is run here then. */
bool cvy_onednn_points_take(const cvy_op *op);

/** Whether it should have its weights in hwio, since it would then run here, and faster than elsewhere. */
bool cvy_onednn_points_want(const cvy_op *op);

/**
 * Make a kernel of an op that cvy_onednn_points_take() takes.
 *
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_onednn_points_create(const cvy_op *op, cvy_kernel **kernel_out);

#endif
