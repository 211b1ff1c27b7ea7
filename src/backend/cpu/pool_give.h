/* The gradient of max pooling where channels lie innermost, over windows of few positions: given to the winners. */
#ifndef CVY_BACKEND_CPU_POOL_GIVE_H
#define CVY_BACKEND_CPU_POOL_GIVE_H

#include "backend/cpu/pool_geometry.h"

/** Whether the function below takes a pooling; else its taps are gone over one by one. */
bool cvy_pool_give_fits(const cvy_pool *pool);

/** Add the gradient of each output of a segment to the element of @p dx at its tap; both without gaps. */
void cvy_pool_give(const cvy_pool *pool, const cvy_pool_segment *segment, const float *value, const int32_t *index,
                   float *dx);

#endif
