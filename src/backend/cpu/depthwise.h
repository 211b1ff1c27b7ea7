/* Convolutions with one filter for each channel: where their passes find what they multiply. */
#ifndef CVY_BACKEND_CPU_DEPTHWISE_H
#define CVY_BACKEND_CPU_DEPTHWISE_H

#include "backend/cpu/cpu.h"

enum {
    CVY_DEPTHWISE_TAPS = 343, /**< positions of the largest window: 7 x 7 x 7 */
    CVY_DEPTHWISE_RANGES = 32, /**< phases times taps of an axis, at most */
    CVY_DEPTHWISE_LANES = 16,  /**< channels whose sums are in registers at once */
};

/** Positions [first, last) of a phase whose source at a tap is inside; that of position p is base + p from_step. */
typedef struct cvy_depthwise_range {
    int64_t first, last, base;
} cvy_depthwise_range;

/**
 * An axis of a pass. Its targets fall into *phases*, as many as the stride of a gradient of data, else one: positions
 * of a phase are `phases` targets and `from_step` sources apart.
 */
typedef struct cvy_depthwise_axis {
    int64_t from, to; /**< extents of sources and targets */
    int64_t from_step, phases;
    int64_t taps;
    int64_t dilation; /**< sources from a tap to the next one, forward */
    int64_t weight_step;
    cvy_depthwise_range range[CVY_DEPTHWISE_RANGES]; /**< by phase and tap; empty where nothing is inside */
} cvy_depthwise_axis;

/** Positions [first, last) of a phase that have the same taps. */
typedef struct cvy_depthwise_band {
    int64_t phase, first, last;
} cvy_depthwise_band;

/**
 * A pass over targets, each of which is made of the sources that its taps find. Targets are y, and sources x, but in
 * the gradient of data, where targets are dx and sources dy.
 */
typedef struct cvy_depthwise {
    cvy_depthwise_axis axis[3]; /**< d,h,w */
    cvy_columns source, target;
    cvy_layout weight;          /**< of w or dw: g,1,1,(kd),kh,kw */
    int64_t taps;
    int64_t rows, samples;      /**< of a tile */
    int64_t row_groups, sample_groups;
} cvy_depthwise;

/** A piece of work: targets of rows [h, h + rows) at depth d of some samples of a strip. */
typedef struct cvy_depthwise_tile {
    cvy_strip from, to;
    int64_t sample, samples, d, h, rows;
} cvy_depthwise_tile;

/** Whether an op is such a convolution, of tensors that cvy_depthwise_get() describes. */
bool cvy_depthwise_fits(const cvy_op *op);

/** Describe a pass of an op that fits, and cut it into tiles by its shape alone. Cannot fail. */
cvy_depthwise cvy_depthwise_get(const cvy_op *op);

/** Tiles of each strip. */
int64_t cvy_depthwise_tiles(const cvy_depthwise *depthwise);

/** Tile @p index of a strip. */
cvy_depthwise_tile cvy_depthwise_tile_get(const cvy_depthwise *depthwise, int64_t strip, int64_t index);

/** Where the weights of a channel begin. */
int64_t cvy_depthwise_weight(const cvy_depthwise *depthwise, int64_t channel);

/** Go to the next band of an axis; start with {0, 0, 0}. False after the last. */
bool cvy_depthwise_next_band(const cvy_depthwise_axis *axis, cvy_depthwise_band *band);

/** The part of a band whose targets are in [first, last); false where there is none. */
bool cvy_depthwise_clip(const cvy_depthwise_axis *axis, int64_t first, int64_t last, cvy_depthwise_band *band);

/** Source of a position of a phase at tap @p k; -1 where it is padding, or there is none. */
static inline int64_t cvy_depthwise_source(const cvy_depthwise_axis *axis, int64_t phase, int64_t position, int64_t k)
{
    const cvy_depthwise_range *range = &axis->range[phase * axis->taps + k];
    return position >= range->first && position < range->last ? range->base + position * axis->from_step : -1;
}

/** Sources and weights of a target's taps: offsets from those of the first. */
typedef struct cvy_depthwise_tap_list {
    int64_t count;
    int64_t source[CVY_DEPTHWISE_TAPS];
    int64_t weight[CVY_DEPTHWISE_TAPS];
} cvy_depthwise_tap_list;

/** Loops over samples, rows and positions, in any order, the last one innermost; steps in elements. */
typedef struct cvy_depthwise_nest {
    int64_t count[3], from[3], to[3];
} cvy_depthwise_nest;

/** The loops over some rows of a tile and some positions of each, the longest one innermost. */
cvy_depthwise_nest cvy_depthwise_nest_get(const cvy_depthwise *depthwise, int64_t samples, int64_t rows,
                                          int64_t positions);

/** Targets with the same taps. */
typedef struct cvy_depthwise_targets {
    const float *source, *weight, *bias;
    float *target;
    cvy_depthwise_nest nest;
    int64_t lanes;
    bool relu;
} cvy_depthwise_targets;

/** Make each target: its bias and the sum over its taps of source times weight. */
void cvy_depthwise_gather(const cvy_depthwise_targets *targets, const cvy_depthwise_tap_list *taps);

/** Outputs that taps next to each other along kw all meet. */
typedef struct cvy_depthwise_products {
    const float *x, *dy;
    cvy_depthwise_nest nest;
    int64_t taps, x_tap;
    float *sum;      /**< of the first tap */
    int64_t sum_tap; /**< from a tap's sums to the next one's */
    int64_t lanes;   /**< at most CVY_DEPTHWISE_LANES */
} cvy_depthwise_products;

/** Add x times dy over all outputs to the sums of each tap. */
void cvy_depthwise_correlate(const cvy_depthwise_products *products);

/** The hot path of the gradient of weights. */
cvy_status cvy_depthwise_run_weights(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch,
                                     const cvy_run *run);

/** Bytes of scratch memory that it needs. */
size_t cvy_depthwise_weights_bytes(const cvy_op *op);

#endif
