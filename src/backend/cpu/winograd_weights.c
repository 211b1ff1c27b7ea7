/*
 * Weights into points and back (winograd_points.h): a block of rows by a panel of columns at a time, which is a block
 * of the weights' format or two, so memory is read and written by whole lines, whichever of the two lies innermost.
 */
#include <string.h>

#include "backend/cpu/winograd.h"
#include "backend/cpu/winograd_points.h"
#include "base/checked.h"

enum { PANEL = CVY_WINOGRAD_PANEL, TAPS = 5, SIDE = 8 /* at most */ };

static int64_t find_offset(const cvy_layout *layout, int dim, int64_t index)
{
    return index / layout->block[dim] * layout->stride[dim] + index % layout->block[dim] * layout->inner_stride[dim];
}

/* A block: where its rows, its columns and its taps lie. */
typedef struct block {
    int64_t row[PANEL], column[PANEL], tap[TAPS * TAPS];
    int rows, columns, taps;
} block;

static void find_block(const cvy_winograd *all, int64_t tap, int64_t row, int64_t panel, block *block_out)
{
    const cvy_winograd_weights *w = &all->weights;
    const int64_t *stride = &w->layout.stride[w->spatial]; /* along h and w */
    int last = (int)all->taps - 1;
    int64_t first = all->deep > 1 ? (w->turned ? all->deep - 1 - tap : tap) * stride[-1] : 0;
    block_out->rows = (int)all->lanes;
    block_out->columns = (int)cvy_min_i64(PANEL, all->target.channels - panel * PANEL);
    block_out->taps = (int)(all->taps * all->taps);
    for (int i = 0; i < block_out->rows; i++) {
        block_out->row[i] = find_offset(&w->layout, w->row, row + i);
    }
    for (int i = 0; i < block_out->columns; i++) {
        block_out->column[i] = find_offset(&w->layout, w->column, panel * PANEL + i);
    }
    for (int t = 0; t < block_out->taps; t++) {
        int h = t / (last + 1), k = t % (last + 1);
        block_out->tap[t] = first + (w->turned ? last - h : h) * stride[0] + (w->turned ? last - k : k) * stride[1];
    }
}

/* Taps of a block: [tap][row][column]. */
static void load(const block *b, const float *weights, float *taps)
{
    memset(taps, 0, (size_t)(b->taps * b->rows * PANEL) * sizeof *taps);
    for (int t = 0; t < b->taps; t++) {
        for (int r = 0; r < b->rows; r++) {
            const float *from = weights + b->tap[t] + b->row[r];
            float *to = taps + (t * b->rows + r) * PANEL;
            for (int i = 0; i < b->columns; i++) {
                to[i] = from[b->column[i]];
            }
        }
    }
}

static void store(const block *b, const float *taps, float *weights)
{
    for (int t = 0; t < b->taps; t++) {
        for (int r = 0; r < b->rows; r++) {
            float *to = weights + b->tap[t] + b->row[r];
            const float *from = taps + (t * b->rows + r) * PANEL;
            for (int i = 0; i < b->columns; i++) {
                to[b->column[i]] = from[i];
            }
        }
    }
}

CVY_INLINE void evaluate_block(const float *taps, int64_t rows, float *out, int64_t point, const int count,
                               const int side)
{
    float half[SIDE * TAPS * PANEL];
    for (int64_t r = 0; r < rows; r++) {
        for (int c = 0; c < count; c++) {
            cvy_winograd_evaluate(taps + (c * rows + r) * PANEL, count * rows * PANEL, count, half + c * PANEL,
                                  count * PANEL, side, PANEL);
        }
        for (int i = 0; i < side; i++) {
            cvy_winograd_evaluate(half + i * count * PANEL, PANEL, count, out + r * PANEL + i * side * point, point,
                                  side, PANEL);
        }
    }
}

CVY_INLINE void collect_block(const float *points, int64_t point, int64_t rows, float *taps, const int count,
                              const int side)
{
    float half[TAPS * SIDE * PANEL];
    for (int64_t r = 0; r < rows; r++) {
        for (int c = 0; c < side; c++) {
            cvy_winograd_collect(points + r * PANEL + c * point, side * point, count, half + c * PANEL, side * PANEL,
                                 side, PANEL);
        }
        for (int i = 0; i < count; i++) {
            cvy_winograd_collect(half + i * side * PANEL, PANEL, count, taps + (i * count * rows + r) * PANEL,
                                 rows * PANEL, side, PANEL);
        }
    }
}

/* Where the points of a block begin. */
static int64_t find_points(const cvy_winograd *all, int64_t tap, int64_t row, int64_t panel)
{
    return ((panel * all->deep + tap) * all->source.channels + row) * PANEL;
}

CVY_WIDE_VECTOR void cvy_winograd_take_weights(const cvy_winograd *all, const float *weights, int64_t tap, int64_t row,
                                               int64_t panel, float *out)
{
    float taps[TAPS * TAPS * PANEL * PANEL];
    block at;
    find_block(all, tap, row, panel, &at);
    load(&at, weights, taps);
    out += find_points(all, tap, row, panel);
    if (all->taps == 3) {
        evaluate_block(taps, at.rows, out, all->weights.point, 3, 6);
    } else {
        evaluate_block(taps, at.rows, out, all->weights.point, 5, 8);
    }
}

CVY_WIDE_VECTOR void cvy_winograd_give_weights(const cvy_winograd *all, const float *points, int64_t tap, int64_t row,
                                               int64_t panel, float *weights)
{
    float taps[TAPS * TAPS * PANEL * PANEL];
    block at;
    find_block(all, tap, row, panel, &at);
    points += find_points(all, tap, row, panel);
    if (all->taps == 3) {
        collect_block(points, all->weights.point, at.rows, taps, 3, 6);
    } else {
        collect_block(points, all->weights.point, at.rows, taps, 5, 8);
    }
    store(&at, taps, weights);
}
