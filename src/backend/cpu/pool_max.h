/* Max pooling where channels lie innermost, over windows of few positions: all of a window at once, in registers. */
#ifndef CVY_BACKEND_CPU_POOL_MAX_H
#define CVY_BACKEND_CPU_POOL_MAX_H

#include "backend/cpu/pool_geometry.h"

/** Whether the functions below take a pooling; else its taps are gone over one by one. */
bool cvy_pool_max_fits(const cvy_pool *pool);

/** The largest value of each output of a segment, and the tap where it was; both without gaps. */
void cvy_pool_max_find(const cvy_pool *pool, const cvy_pool_segment *segment, const float *x, float *value_out,
                       int32_t *index_out);

/** Add the gradient of each output of a segment to the element of @p dx at its tap; both without gaps. */
void cvy_pool_max_give(const cvy_pool *pool, const cvy_pool_segment *segment, const float *value, const int32_t *index,
                       float *dx);

#endif
