/*
 * Halos: which rows a window needs from other ranks where space is cut. One axis at a time ("rows" are indices along
 * it); in two and three dimensions, halos with their corners are products of those of the axes.
 */
#ifndef CVY_PLAN_HALO_H
#define CVY_PLAN_HALO_H

#include "op/op.h"
#include "tensor/placement.h"

/**
 * A window along one axis, and who holds which rows of its input x and of its output y. Borrowed throughout. For a
 * transposed convolution x is what its window slides over: its output.
 */
typedef struct cvy_halo_axis {
    const cvy_window *window;
    int axis;                   /**< of the window: 0 d, 1 h, 2 w */
    int64_t extent;             /**< rows of x */
    const cvy_placement *x, *y; /**< over as many ranks; split, or one rank */
} cvy_halo_axis;

/** What a rank needs. */
typedef enum cvy_halo_need {
    CVY_HALO_X,  /**< forward: the rows of x that its y is made of. The same rows, sent the other way, are what its part
                      of backward adds to dx of others, where each rank goes through its own dy alone */
    CVY_HALO_DY, /**< backward: the rows of dy that reach its dx, where each rank makes its dx whole */
} cvy_halo_need;

/** Rows that come from, or go to, a peer: its place along the axis. */
typedef struct cvy_halo_piece {
    int64_t peer;
    cvy_interval rows;
} cvy_halo_piece;

/** Pieces in the order of peers, then rows; they do not overlap. Start from {0}. */
typedef struct cvy_halo {
    int pieces, capacity;
    cvy_halo_piece *piece;
} cvy_halo;

/** Release and empty. */
void cvy_halo_clear(cvy_halo *halo);

/**
 * Find every row that a rank needs, exact by output index, and who holds it: other ranks, near or far, or the rank
 * itself (a piece whose peer is @p rank is nothing to send).
 *
 * Not collective; every rank's answer follows from the arguments.
 *
 * @param[in]     rank  along the axis
 * @param[in,out] halo  emptied first; keeps its memory
 * @retval CVY_ERR_MEMORY
 * @retval CVY_ERR_UNSUPPORTED  shares of too many intervals
 */
cvy_status cvy_halo_receive(const cvy_halo_axis *axis, cvy_halo_need need, int64_t rank, cvy_halo *halo);

/** Find every row that a rank holds and others, or it itself, need: the other side of cvy_halo_receive(). */
cvy_status cvy_halo_send(const cvy_halo_axis *axis, cvy_halo_need need, int64_t rank, cvy_halo *halo);

/** Rows of all pieces of a peer; of all peers where @p peer is -1. */
int64_t cvy_halo_rows(const cvy_halo *halo, int64_t peer);

/**
 * A dense local problem: rows of the halo'd tensor, first to last (rows that no output touches lie in between where a
 * window leaves gaps), and the padding that is left to the window at the ends of x. 0 on inner borders in forward;
 * below 0 where rows at an end of x are reached by no tap of these outputs.
 */
typedef struct cvy_halo_window {
    cvy_interval rows;
    int64_t before, after;
} cvy_halo_window;

/** Forward over outputs [begin, end), at least one: the rows of x. Cannot fail. */
cvy_halo_window cvy_halo_window_x(const cvy_halo_axis *axis, cvy_interval outputs);

/** Backward to rows [begin, end) of x, at least one: the rows of dy, perhaps none (padding is 0 then). Cannot fail. */
cvy_halo_window cvy_halo_window_dy(const cvy_halo_axis *axis, cvy_interval rows);

/** A piece of space: where its peer sits in the grid of d,h,w, and its rows along each. */
typedef struct cvy_halo_box {
    int64_t peer[3];
    cvy_interval rows[3];
} cvy_halo_box;

/**
 * Cross the halos of three axes of one rank: the boxes that other ranks hold, faces, edges and corners alike. In 2-D
 * the halo along d is one piece of the rank itself.
 *
 * @param[in]  self       the rank's place along d,h,w
 * @param[out] boxes_out  cvy_free(); NULL where there are none
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_halo_cross(const cvy_halo halos[3], const int64_t self[3], cvy_halo_box **boxes_out, int *count_out);

#endif
