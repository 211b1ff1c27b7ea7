/* Slabs: the rows of a sample that a rank needs, in all its channels. */
#ifndef CVY_DATA_SLAB_H
#define CVY_DATA_SLAB_H

#include "tensor/interval.h"
#include "tensor/shape.h"

/** A slab, and the sample that it is of. Elements have 4 bytes: floats, or classes. */
typedef struct cvy_slab {
    int64_t channels;
    int64_t extent[3];    /**< d,h,w of the sample; 1 where it has none */
    cvy_interval rows[3]; /**< of them; none is empty */
} cvy_slab;

/**
 * Make a slab.
 *
 * @param[in]  what      for the message
 * @param[in]  shape     of a sample: channels, then (d,)h,w, or nothing
 * @param[in]  rows      of d,h,w; empty: all
 * @param[out] slab_out  untouched on failure
 * @retval CVY_ERR_ARG   rows beyond the sample
 */
cvy_status cvy_slab_setup(const char *what, const cvy_shape *shape, const cvy_interval rows[3], cvy_slab *slab_out);

/** Whether it is all of the sample. Cannot fail. */
bool cvy_slab_is_whole(const cvy_slab *slab);

/** Elements of it. Cannot fail. */
int64_t cvy_slab_elements(const cvy_slab *slab);

/** Its runs: elements that lie side by side in the sample, as many as it has of w; in plain order. Cannot fail. */
int64_t cvy_slab_count_runs(const cvy_slab *slab);

/** Where a run begins: an element of the sample. Cannot fail. */
int64_t cvy_slab_find_run(const cvy_slab *slab, int64_t run);

/** Copy it out of a sample. @param[out] out  its elements in plain order; not the sample's own memory */
void cvy_slab_cut(const cvy_slab *slab, const void *sample, void *out);

#endif
