/*
 * A share of a sample, element by element in logical order: where each lies in another tensor, the whole sample or what
 * the share is copied from. Elements that follow each other in both form a run, and kernels go run by run.
 */
#ifndef CVY_BACKEND_CPU_SHARE_MAP_H
#define CVY_BACKEND_CPU_SHARE_MAP_H

#include "tensor/interval.h"

/** How c,d,h,w of a sample lie in those of another: each in one stretch, one of them perhaps in several. */
typedef struct cvy_share_map {
    int64_t extent[4];
    int64_t other[4];        /**< extents of the other sample */
    int64_t first[4];        /**< index there of index 0 here; below 0 where this sample begins before it */
    int stretched;           /**< the dimension that holds ... */
    cvy_intervals stretches; /**< ... these indices of the other; none where `first` says it all */
} cvy_share_map;

/** Elements that follow each other. */
typedef struct cvy_share_run {
    int64_t at;    /**< number of the first in the other sample; -1: these have no place there */
    int64_t count; /**< at least 1 */
} cvy_share_run;

/** The longest run from element @p e of a sample on. Cannot fail. */
cvy_share_run cvy_share_map_find(const cvy_share_map *map, int64_t e);

#endif
