/* Half-open intervals of logical indices: what part of a dimension a rank holds. */
#ifndef CVY_TENSOR_INTERVAL_H
#define CVY_TENSOR_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/** [begin, end). */
typedef struct cvy_interval {
    int64_t begin, end;
} cvy_interval;

enum { CVY_MAX_INTERVALS = 16 };

/** A sorted list of intervals that neither touch nor overlap; usually one. */
typedef struct cvy_intervals {
    int count;
    cvy_interval at[CVY_MAX_INTERVALS];
} cvy_intervals;

/** The whole of a dimension; empty for extent 0. */
cvy_intervals cvy_intervals_whole(int64_t extent);

/** Share @p index of @p parts of [0, extent), balanced: the first extent % parts shares are one longer. */
cvy_intervals cvy_intervals_share(int64_t extent, int64_t parts, int64_t index);

/** Indices held. */
int64_t cvy_intervals_length(const cvy_intervals *list);

/** Whether @p index is held. */
bool cvy_intervals_hold(const cvy_intervals *list, int64_t index);

/** Indices that both hold. */
int64_t cvy_intervals_overlap(const cvy_intervals *a, const cvy_intervals *b);

/** a and b. @retval CVY_ERR_UNSUPPORTED over CVY_MAX_INTERVALS pieces */
cvy_status cvy_intervals_intersect(const cvy_intervals *a, const cvy_intervals *b, cvy_intervals *out);

/** a without b. @retval CVY_ERR_UNSUPPORTED over CVY_MAX_INTERVALS pieces */
cvy_status cvy_intervals_subtract(const cvy_intervals *a, const cvy_intervals *b, cvy_intervals *out);

/** a or b. @retval CVY_ERR_UNSUPPORTED over CVY_MAX_INTERVALS pieces */
cvy_status cvy_intervals_union(const cvy_intervals *a, const cvy_intervals *b, cvy_intervals *out);

#endif
