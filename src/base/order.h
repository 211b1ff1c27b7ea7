/* Numbers in order, for medians and quantiles. */
#ifndef CVY_BASE_ORDER_H
#define CVY_BASE_ORDER_H

#include <stdint.h>

/** Sort numbers, the smallest first; none of them may be NaN. */
void cvy_sort_doubles(double *values, int64_t count);

/** The median of numbers, which come out in order; of two in the middle their mean; 0 of none. */
double cvy_find_median(double *values, int64_t count);

#endif
