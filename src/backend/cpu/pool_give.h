/* The gradient of max pooling where channels lie innermost and windows are small: given to the winners, by rows. */
#ifndef CVY_BACKEND_CPU_POOL_GIVE_H
#define CVY_BACKEND_CPU_POOL_GIVE_H

#include "backend/cpu/pool_runs.h"

/** What the gradient is made of; @p y is NULL where no relu follows: else what is not above 0 there gives nothing. */
typedef struct cvy_pool_given {
    const float *dy, *y;
    const uint8_t *window;
} cvy_pool_given;

/** Make the gradient of strip @p unit, counted through all samples, from the runs of the forward pass. */
void cvy_pool_give(const cvy_pool_runs *runs, int64_t unit, const cvy_pool_given *given, float *dx);

#endif
