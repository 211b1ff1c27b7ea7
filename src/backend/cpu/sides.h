/*
 * Channels moved from one tensor into another, over every activation format and between any two: a tensor is a side
 * whose channels lie in strips side by side.
 */
#ifndef CVY_BACKEND_CPU_SIDES_H
#define CVY_BACKEND_CPU_SIDES_H

#include "backend/cpu/cpu.h"

/** How channels lie: in strips of `block` side by side. Strides in elements. */
typedef struct cvy_side {
    float *data;
    int64_t block, channels, padded;
    int64_t position_stride, strip_stride, sample_stride;
} cvy_side;

/** Positions of one sample. */
typedef struct cvy_region {
    int64_t sample, first, last;
} cvy_region;

/** The cut of a tensor's positions into pieces of work: by its shape alone. */
typedef struct cvy_side_cut {
    int64_t samples, area, pieces;
} cvy_side_cut;

/** See an activation that columns describe as a side. */
cvy_side cvy_side_view(const cvy_tensor *tensor, void *data);

/** Where a channel lies at the first position of a region. */
static inline float *cvy_side_at(const cvy_side *side, const cvy_region *where, int64_t channel)
{
    return side->data + where->sample * side->sample_stride + channel / side->block * side->strip_stride +
           channel % side->block + where->first * side->position_stride;
}

/** Channels from @p channel on that lie side by side, at most @p count. */
static inline int64_t cvy_side_run(const cvy_side *side, int64_t channel, int64_t count)
{
    int64_t left = side->block - channel % side->block;
    return left < count ? left : count;
}

/** Copy @p count channels of a region, from channel @p first of a side to channel @p target of another. */
void cvy_sides_copy(const cvy_side *from, int64_t first, const cvy_side *to, int64_t target, int64_t count,
                    const cvy_region *where);

/** Set the lanes beyond the last channel of a region to zero. */
void cvy_side_clear_padding(const cvy_side *to, const cvy_region *where);

/** Cut a tensor's positions: into enough pieces for any number of threads, none of them tiny. */
cvy_side_cut cvy_side_cut_positions(const cvy_tensor *tensor);

/** Piece @p index of a cut. */
cvy_region cvy_side_region(const cvy_side_cut *cut, int64_t index);

#endif
