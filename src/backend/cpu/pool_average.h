/* Average pooling by rows, both ways: a mean of few taps, in registers. */
#ifndef CVY_BACKEND_CPU_POOL_AVERAGE_H
#define CVY_BACKEND_CPU_POOL_AVERAGE_H

#include "backend/cpu/pool_runs.h"

/**
 * The averages of a row, forward; the gradients of its inputs, backward: the sum of their shares in the outputs whose
 * windows cover them, in the order of outputs. Which one the runs say.
 *
 * @param whole  divide by the whole window, padding and all
 * @param from   x or dy
 * @param to     y or dx
 */
void cvy_pool_average_row(const cvy_pool_runs *runs, const cvy_pool_row *row, bool whole, const float *from, float *to);

#endif
