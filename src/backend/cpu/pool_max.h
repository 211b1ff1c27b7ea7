/* Max pooling forward, by rows: all of a window at once, in registers. */
#ifndef CVY_BACKEND_CPU_POOL_MAX_H
#define CVY_BACKEND_CPU_POOL_MAX_H

#include "backend/cpu/pool_runs.h"

/** What a forward pass reads and writes. */
typedef struct cvy_pool_max {
    const float *x;
    float *y;
    uint8_t *window; /**< NULL in inference */
    float least;     /**< outputs below it become it: 0 with a relu, else minus infinity */
} cvy_pool_max;

/** The largest value of each output of a row of @p positions, and the tap where it was. */
void cvy_pool_max_row(const cvy_pool_row *row, int64_t positions, const cvy_pool_max *pool);

#endif
