/*
 * Convolutions with windows of 3x3 and 5x5 at stride 1 by Winograd's minimal filtering, F(4x4, 3x3) and F(4x4, 5x5),
 * and, for the gradient of weights, F(3x3, 4x4) and F(5x5, 4x4): a tile of 6x6 or 8x8 of one activation at the points
 * 0, 1, -1, 2, -2, (1/2, -1/2 for 5x5) and infinity of both axes, times the other operand at the same 36 or 64 points,
 * where 16 outputs of 9 or 25 taps take 144 or 400 products (Lavin and Gray, arXiv:1509.09308, whose points these are).
 * Taps along the depth of a volume are summed directly: a tile of one slice is taken to its points once, and meets the
 * weights of each of these taps there.
 *
 * What the points hold lies in panels of 16 columns, whatever the blocks of the tensors are: [point][panel][row][16],
 * where rows are tiles and columns channels or filters, or rows channels, those of each tap along the depth behind
 * those of the one before, and columns filters. So each product reads and writes memory in its order. A last panel that
 * a block of 8 fills by half has zeros in its other half.
 */
#ifndef CVY_BACKEND_CPU_WINOGRAD_H
#define CVY_BACKEND_CPU_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/tensor.h"

enum {
    CVY_WINOGRAD_STEP = 4,   /**< outputs of a tile along an axis */
    CVY_WINOGRAD_PANEL = 16, /**< columns of a panel, and most channels of a block */
};

/** An activation in blocks of channels. Strides in elements. */
typedef struct cvy_winograd_volume {
    int64_t channels, depth, height, width; /**< channels: with those that fill a block; depth: 1 of an image */
    int64_t sample_stride, block_stride, slice_stride, row_stride, position_stride;
    int64_t panels; /**< of its channels */
    int64_t rows;   /**< of a panel of a chunk, at most */
    int64_t point;  /**< elements between two points of a chunk: a line of the cache more than they need, so that
                         points do not fall together in the cache */
} cvy_winograd_volume;

/** Where a weight lies: the index of its filter, its channel and its taps each add a term. */
typedef struct cvy_winograd_weights {
    cvy_layout layout;
    int row, column; /**< dimensions of the weights that are rows and columns of products: channel and filter or so */
    int spatial;     /**< dimension of height; that of depth, where there is one, lies before it */
    bool turned;     /**< taps from last to first, as the gradient of data takes them */
    int64_t point;   /**< elements between two points */
} cvy_winograd_weights;

/** A convolution's pass: slices of `source` are cut into tiles of side x side, `target` has their 4x4. */
typedef struct cvy_winograd {
    cvy_winograd_volume source, target;
    cvy_winograd_weights weights;
    int64_t filters;       /**< channels of the target without those that fill a block */
    int64_t lanes;         /**< channels of a block: 8 or 16 */
    int64_t deep;          /**< taps of a window along the depth */
    int64_t taps, side;    /**< of a window along h and w, and inputs of a tile: 3 and 6, or 5 and 8 */
    int64_t points;        /**< side x side */
    int64_t before[3];     /**< padding of the source along d, h, w */
    int64_t rows, columns; /**< of tiles in a slice */
    int64_t tiles;         /**< in one slice of each sample */
    bool together;         /**< all threads work on the same chunk, else each on one of its own */
    int64_t chunk, slices; /**< tiles that are worked on at once, and in how many slices of the target each */
    int64_t runs, chunks;  /**< so many chunks one behind the other along the depth, and in all */
} cvy_winograd;

/**
 * Tiles [first, first + tiles) in slices [slice, slice + slices) of the target, and in those of the source that they
 * meet. Row r of its points is tile r % tiles of slice r / tiles.
 */
typedef struct cvy_winograd_chunk {
    int64_t first, tiles, slice, slices;
} cvy_winograd_chunk;

/** Rows [first, first + count) of a panel of a chunk. */
typedef struct cvy_winograd_rows {
    int64_t panel, first, count;
} cvy_winograd_rows;

/** Matrices in panels: how far panels lie apart, and points. */
typedef struct cvy_winograd_matrix {
    float *at;
    int64_t panel, point;
} cvy_winograd_matrix;

/**
 * A product at each point, for each tap along the depth: result[row][column] = sum over taps and k of
 * left[row + tap * shift][k] right[tap][k][column], or, transposed, result[tap][row][column] += sum over k of
 * left[k + tap * shift][row] right[k][column]. An odd last row brings the one behind it, which there must be room for.
 */
typedef struct cvy_winograd_product {
    cvy_winograd_matrix left, right, result;
    int64_t taps, shift;
    int64_t rows, panels, depth; /**< panels: of right and of result; rows and depth: of one tap */
    bool transposed, adds;       /**< adds: to what the result has; else it is set */
} cvy_winograd_product;

/** Multiply at a point: the panels [first, end). */
void cvy_winograd_multiply(const cvy_winograd_product *product, int64_t point, int64_t first, int64_t end);

/** Some tiles of the source at all points. */
void cvy_winograd_take_source(const cvy_winograd *all, const float *source, const cvy_winograd_chunk *chunk,
                              const cvy_winograd_rows *rows, float *out);

/** The 4x4 of some tiles of the target at all points. */
void cvy_winograd_take_target(const cvy_winograd *all, const float *target, const cvy_winograd_chunk *chunk,
                              const cvy_winograd_rows *rows, float *out);

/** The 4x4 of some tiles of the target from points of them; @p bias may be NULL. */
void cvy_winograd_give_target(const cvy_winograd *all, const float *points, const cvy_winograd_chunk *chunk,
                              const cvy_winograd_rows *rows, const float *bias, bool relu, float *target);

/** Add the sums over each channel of a panel of the target to @p sums: what the points have at 1, 1, unscaled. */
void cvy_winograd_sum_target(const cvy_winograd *all, const float *points, int64_t rows, int64_t panel, float *sums);

/** Weights at all points: of a tap along the depth, a panel's rows from @p row on, as many as a block has. */
void cvy_winograd_take_weights(const cvy_winograd *all, const float *weights, int64_t tap, int64_t row, int64_t panel,
                               float *out);

/** The gradient of weights from points of it: what cvy_winograd_take_weights() takes. */
void cvy_winograd_give_weights(const cvy_winograd *all, const float *points, int64_t tap, int64_t row, int64_t panel,
                               float *weights);

#endif
