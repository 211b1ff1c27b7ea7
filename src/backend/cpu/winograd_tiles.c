/*
 * Tiles of activations into points and back (winograd_points.h), a panel of channels at a time: first along the columns
 * of a tile, then along its rows. Tiles follow each other along the rows of a slice, so all that is read and written
 * goes on where the tile before ended.
 */
#include <math.h>
#include <string.h>

#include "backend/cpu/winograd.h"
#include "backend/cpu/winograd_points.h"
#include "base/checked.h"

enum { STEP = CVY_WINOGRAD_STEP, PANEL = CVY_WINOGRAD_PANEL, SIDE = 8 /* at most */ };

/* Where a tile lies, in the target. */
typedef struct place {
    int64_t sample, d, h, w;
} place;

static place find_place(const cvy_winograd *all, const cvy_winograd_chunk *chunk, int64_t row)
{
    int64_t tile = chunk->first + row % chunk->tiles, slice = all->rows * all->columns, at = tile % slice;
    return (place){tile / slice, chunk->slice + row / chunk->tiles, at / all->columns * STEP,
                   at % all->columns * STEP};
}

/* A block of channels of a panel: where it begins in its sample and in the points of the panel's first row. */
typedef struct piece {
    int64_t sample, column;
} piece;

/* The blocks of a panel: one of 16, two of 8, or one of 8 in a last panel that is half filled. */
static int find_pieces(const cvy_winograd *all, const cvy_winograd_volume *volume, int64_t panel, piece *pieces)
{
    int count = 0;
    for (int64_t column = 0; column < PANEL && panel * PANEL + column < volume->channels; column += all->lanes) {
        pieces[count++] = (piece){(panel * PANEL + column) / all->lanes * volume->block_stride, column};
    }
    return count;
}

/*
 * The side x side positions of a slice from h, w on, in place where it has them all, else copied with zeros around
 * them; answers where they are and how far rows and positions lie apart.
 */
CVY_INLINE const float *fetch(const cvy_winograd_volume *volume, const float *from, int64_t h, int64_t w, float *copy,
                              int64_t *row, int64_t *position, const int side, const int lanes)
{
    if (h >= 0 && w >= 0 && h + side <= volume->height && w + side <= volume->width) {
        *row = volume->row_stride;
        *position = volume->position_stride;
        return from + h * volume->row_stride + w * volume->position_stride;
    }
    for (int r = 0; r < side; r++) {
        for (int c = 0; c < side; c++) {
            bool inside = h + r >= 0 && h + r < volume->height && w + c >= 0 && w + c < volume->width;
            float *to = copy + (r * side + c) * lanes;
            if (inside) {
                memcpy(to, from + (h + r) * volume->row_stride + (w + c) * volume->position_stride,
                       (size_t)lanes * sizeof *to);
            } else {
                memset(to, 0, (size_t)lanes * sizeof *to);
            }
        }
    }
    *row = side * lanes;
    *position = lanes;
    return copy;
}

/* Some columns at all points. */
CVY_INLINE void clear(float *out, int64_t point, const int side, const int columns)
{
    for (int i = 0; i < side * side; i++) {
        memset(out + i * point, 0, (size_t)columns * sizeof *out);
    }
}

CVY_INLINE void take_source_tile(const cvy_winograd *all, const float *from, const place *at, float *to,
                                 const int side, const int lanes)
{
    float copy[SIDE * SIDE * PANEL], half[SIDE * SIDE * PANEL];
    int64_t row, position, point = all->source.point, slice = at->d - all->before[0];
    if (slice < 0 || slice >= all->source.depth) {
        clear(to, point, side, lanes);
        return;
    }
    from = fetch(&all->source, from + slice * all->source.slice_stride, at->h - all->before[1], at->w - all->before[2],
                 copy, &row, &position, side, lanes);
    for (int c = 0; c < side; c++) {
        cvy_winograd_divide(from + c * position, row, half + c * lanes, side * lanes, side, lanes);
    }
    for (int r = 0; r < side; r++) {
        cvy_winograd_divide(half + r * side * lanes, lanes, to + r * side * point, point, side, lanes);
    }
}

CVY_INLINE void take_target_tile(const cvy_winograd *all, const float *from, const place *at, float *to,
                                 const int side, const int lanes)
{
    float copy[STEP * STEP * PANEL], half[SIDE * STEP * PANEL];
    int64_t row, position, point = all->target.point;
    from = fetch(&all->target, from + at->d * all->target.slice_stride, at->h, at->w, copy, &row, &position, STEP,
                 lanes);
    for (int c = 0; c < STEP; c++) {
        cvy_winograd_evaluate(from + c * position, row, STEP, half + c * lanes, STEP * lanes, side, lanes);
    }
    for (int r = 0; r < side; r++) {
        cvy_winograd_evaluate(half + r * STEP * lanes, lanes, STEP, to + r * side * point, point, side, lanes);
    }
}

/* Some positions of a tile; what is below `least` becomes it, NaN stays. */
CVY_INLINE void store_part(const cvy_winograd_volume *volume, const float *tile, const float *bias, float least,
                           float *to, int64_t rows, int64_t columns, const int lanes)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            float *y = to + r * volume->row_stride + c * volume->position_stride;
#pragma omp simd
            for (int i = 0; i < lanes; i++) {
                float value = tile[(r * STEP + c) * lanes + i] + bias[i];
                y[i] = value < least ? least : value;
            }
        }
    }
}

/* Write the part of a tile that its slice has. */
CVY_INLINE void store_tile(const cvy_winograd_volume *volume, const float *tile, const place *at, const float *bias,
                           bool relu, float *to, const int lanes)
{
    int64_t rows = cvy_min_i64(STEP, volume->height - at->h), columns = cvy_min_i64(STEP, volume->width - at->w);
    float least = relu ? 0.0f : -INFINITY;
    to += at->d * volume->slice_stride + at->h * volume->row_stride + at->w * volume->position_stride;
    if (rows == STEP && columns == STEP) {
        store_part(volume, tile, bias, least, to, STEP, STEP, lanes);
    } else {
        store_part(volume, tile, bias, least, to, rows, columns, lanes);
    }
}

CVY_INLINE void give_target_tile(const cvy_winograd *all, const float *from, const place *at, const float *bias,
                                 bool relu, float *to, const int side, const int lanes)
{
    float half[STEP * SIDE * PANEL], tile[STEP * STEP * PANEL];
    int64_t point = all->target.point;
    for (int c = 0; c < side; c++) {
        cvy_winograd_collect(from + c * point, side * point, STEP, half + c * lanes, side * lanes, side, lanes);
    }
    for (int r = 0; r < STEP; r++) {
        cvy_winograd_collect(half + r * side * lanes, lanes, STEP, tile + r * STEP * lanes, lanes, side, lanes);
    }
    store_tile(&all->target, tile, at, bias, relu, to, lanes);
}

/* Where the points of rows begin. */
static int64_t find_row(const cvy_winograd_volume *volume, const cvy_winograd_rows *rows)
{
    return (rows->panel * volume->rows + rows->first) * PANEL;
}

CVY_INLINE void take_source(const cvy_winograd *all, const float *source, const cvy_winograd_chunk *chunk,
                            const cvy_winograd_rows *rows, float *out, const int side, const int lanes)
{
    piece pieces[2] = {{0}};
    int count = find_pieces(all, &all->source, rows->panel, pieces);
    out += find_row(&all->source, rows);
    for (int64_t r = 0; r < rows->count; r++, out += PANEL) {
        place at = find_place(all, chunk, rows->first + r);
        const float *from = source + at.sample * all->source.sample_stride;
        for (int i = 0; i < count; i++) {
            take_source_tile(all, from + pieces[i].sample, &at, out + pieces[i].column, side, lanes);
        }
    }
}

CVY_INLINE void take_target(const cvy_winograd *all, const float *target, const cvy_winograd_chunk *chunk,
                            const cvy_winograd_rows *rows, float *out, const int side, const int lanes)
{
    piece pieces[2] = {{0}};
    int count = find_pieces(all, &all->target, rows->panel, pieces);
    out += find_row(&all->target, rows);
    for (int64_t r = 0; r < rows->count; r++, out += PANEL) {
        place at = find_place(all, chunk, rows->first + r);
        const float *from = target + at.sample * all->target.sample_stride;
        for (int i = 0; i < count; i++) {
            take_target_tile(all, from + pieces[i].sample, &at, out + pieces[i].column, side, lanes);
        }
        if (count * lanes < PANEL) { /* a last panel that has no block for its other half */
            clear(out + PANEL / 2, all->target.point, side, PANEL / 2);
        }
    }
}

CVY_INLINE void give_target(const cvy_winograd *all, const float *points, const cvy_winograd_chunk *chunk,
                            const cvy_winograd_rows *rows, const float *bias, bool relu, float *target,
                            const int side, const int lanes)
{
    piece pieces[2] = {{0}};
    int count = find_pieces(all, &all->target, rows->panel, pieces);
    float own[PANEL]; /* of the panel: 0 where there is none */
    for (int64_t i = 0, filter = rows->panel * PANEL; i < PANEL; i++, filter++) {
        own[i] = bias && filter < all->filters ? bias[filter] : 0.0f;
    }
    points += find_row(&all->target, rows);
    for (int64_t r = 0; r < rows->count; r++, points += PANEL) {
        place at = find_place(all, chunk, rows->first + r);
        float *to = target + at.sample * all->target.sample_stride;
        for (int i = 0; i < count; i++) {
            give_target_tile(all, points + pieces[i].column, &at, own + pieces[i].column, relu, to + pieces[i].sample,
                             side, lanes);
        }
    }
}

/* A call with the sides of tiles and the channels of blocks as constants. */
#define CALL(function_, ...)                                    \
    do {                                                        \
        if (all->side == 6) {                                   \
            if (all->lanes == 16) {                             \
                function_(all, __VA_ARGS__, 6, 16);             \
            } else {                                            \
                function_(all, __VA_ARGS__, 6, 8);              \
            }                                                   \
        } else if (all->lanes == 16) {                          \
            function_(all, __VA_ARGS__, 8, 16);                 \
        } else {                                                \
            function_(all, __VA_ARGS__, 8, 8);                  \
        }                                                       \
    } while (0)

CVY_WIDE_VECTOR void cvy_winograd_take_source(const cvy_winograd *all, const float *source,
                                              const cvy_winograd_chunk *chunk, const cvy_winograd_rows *rows,
                                              float *out)
{
    CALL(take_source, source, chunk, rows, out);
}

CVY_WIDE_VECTOR void cvy_winograd_take_target(const cvy_winograd *all, const float *target,
                                              const cvy_winograd_chunk *chunk, const cvy_winograd_rows *rows,
                                              float *out)
{
    CALL(take_target, target, chunk, rows, out);
}

CVY_WIDE_VECTOR void cvy_winograd_give_target(const cvy_winograd *all, const float *points,
                                              const cvy_winograd_chunk *chunk, const cvy_winograd_rows *rows,
                                              const float *bias, bool relu, float *target)
{
    CALL(give_target, points, chunk, rows, bias, relu, target);
}

void cvy_winograd_sum_target(const cvy_winograd *all, const float *points, int64_t rows, int64_t panel, float *sums)
{
    const float *from = points + (all->side + 1) * all->target.point + panel * all->target.rows * PANEL;
    const float scale = all->side == 6 ? CVY_WINOGRAD_SCALE_1(6) : CVY_WINOGRAD_SCALE_1(8);
    float sum[PANEL] = {0};
    for (int64_t r = 0; r < rows; r++, from += PANEL) {
        for (int i = 0; i < PANEL; i++) {
            sum[i] += from[i];
        }
    }
    for (int i = 0; i < PANEL; i++) {
        sums[panel * PANEL + i] += sum[i] / (scale * scale);
    }
}
