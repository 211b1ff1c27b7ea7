/*
 * Convolutions with windows of 5x5 at stride 1 by Winograd's minimal filtering, F(4x4, 5x5) and, for the gradient of
 * weights, F(5x5, 4x4): a tile of 8x8 of one activation at the points 0, 1, -1, 2, -2, 1/2, -1/2 and infinity of both
 * axes, times the other operand at the same 64 points, where 16 outputs of 25 taps take 400 products (Lavin and Gray,
 * arXiv:1509.09308; the points are theirs of F(6x6, 3x3)).
 */
#ifndef CVY_BACKEND_CPU_WINOGRAD_H
#define CVY_BACKEND_CPU_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/tensor.h"

enum {
    CVY_WINOGRAD_TAPS = 5,
    CVY_WINOGRAD_STEP = 4,    /**< outputs of a tile along an axis */
    CVY_WINOGRAD_SIDE = 8,    /**< inputs of a tile along an axis, and points */
    CVY_WINOGRAD_POINTS = 64,
    CVY_WINOGRAD_LANES = 16,  /**< most channels of a block */
};

/** An activation in blocks of channels. Strides in elements. */
typedef struct cvy_winograd_plane {
    int64_t height, width;
    int64_t sample_stride, block_stride, row_stride, position_stride;
} cvy_winograd_plane;

/** Where a weight lies: the index of its filter, its channel and its taps each add a term. */
typedef struct cvy_winograd_weights {
    cvy_layout layout;
    int row, column; /**< dimensions of the weights that are rows and columns of products: channel and filter or so */
    bool turned;     /**< taps from last to first, as the gradient of data takes them */
} cvy_winograd_weights;

/** A convolution's pass: `source` is cut into tiles of 8x8, `target` has their 4x4. */
typedef struct cvy_winograd {
    cvy_winograd_plane source, target;
    cvy_winograd_weights weights;
    int64_t channels, filters; /**< of the source and of the target */
    int64_t lanes;             /**< channels of a block: 8 or 16 */
    int64_t before[2];         /**< padding of the source along h, w */
    int64_t rows, columns;     /**< of tiles in a plane */
    int64_t tiles;             /**< of all samples */
    int64_t chunk, chunks;     /**< tiles that are worked on at once */
    int64_t source_point, target_point; /**< elements between two points of a chunk: a line of the cache more than
                                             they need, so that points do not fall together in the cache */
} cvy_winograd;

/** Tiles [first, first + count), count at most a chunk. */
typedef struct cvy_winograd_range {
    int64_t first, count;
} cvy_winograd_range;

/** A product at each point: result[row][column] = (or +=) sum over k of a[row, k] b[k][column]. */
typedef struct cvy_winograd_product {
    const float *a, *b;
    float *result;
    int64_t rows, columns, depth;      /**< rows: those up to the next multiple of 8 are read and written, too */
    int64_t a_row, a_depth;            /**< strides of a */
    int64_t a_point, b_point, result_point;
    int64_t lanes;
    bool adds;
} cvy_winograd_product;

/** Multiply at all points. */
void cvy_winograd_multiply(const cvy_winograd_product *product);

/** Tiles of the source at all points: out[point][tile][channel], points `source_point` apart. */
void cvy_winograd_take_source(const cvy_winograd *all, const float *source, const cvy_winograd_range *range,
                              float *out);

/** The 4x4 of the target at all points, points `target_point` apart, and their sums by channel added to @p sums. */
void cvy_winograd_take_target(const cvy_winograd *all, const float *target, const cvy_winograd_range *range,
                              float *out, float *sums);

/** The 4x4 of the target from points of it; @p bias may be NULL. */
void cvy_winograd_give_target(const cvy_winograd *all, const float *points, const cvy_winograd_range *range,
                              const float *bias, bool relu, float *target);

/** Weights at all points: out[point][row][column] of one row of products. */
void cvy_winograd_take_weights(const cvy_winograd *all, const float *weights, int64_t row, float *out);

/** The gradient of weights of one row from points of it. */
void cvy_winograd_give_weights(const cvy_winograd *all, const float *points, int64_t row, float *weights);

#endif
