/*
 * Tiles of activations into points and back (winograd_points.h), a panel of channels at a time: first along the columns
 * of a tile, then along its rows. Tiles follow each other along the rows of a plane, so all that is read and written
 * goes on where the tile before ended.
 */
#include <math.h>
#include <string.h>

#include "backend/cpu/winograd.h"
#include "backend/cpu/winograd_points.h"
#include "base/checked.h"

enum { STEP = CVY_WINOGRAD_STEP, PANEL = CVY_WINOGRAD_PANEL, SIDE = 8 /* at most */ };

/* Where a tile lies. */
typedef struct place {
    int64_t sample, h, w;
} place;

static place find_place(const cvy_winograd *all, int64_t tile)
{
    int64_t plane = all->rows * all->columns, at = tile % plane;
    return (place){tile / plane, at / all->columns * STEP, at % all->columns * STEP};
}

/* A block of channels of a panel: where it begins in its plane and in the points of the panel's first row. */
typedef struct piece {
    int64_t plane, column;
} piece;

/* The blocks of a panel: one of 16, two of 8, or one of 8 in a last panel that is half filled. */
static int find_pieces(const cvy_winograd *all, const cvy_winograd_plane *plane, int64_t panel, piece *pieces)
{
    int count = 0;
    for (int64_t column = 0; column < PANEL && panel * PANEL + column < plane->channels; column += all->lanes) {
        pieces[count++] = (piece){(panel * PANEL + column) / all->lanes * plane->block_stride, column};
    }
    return count;
}

/*
 * The side x side positions from h, w on, in place where the plane has them all, else copied with zeros around them;
 * answers where they are and how far rows and positions lie apart.
 */
CVY_INLINE const float *fetch(const cvy_winograd_plane *plane, const float *from, int64_t h, int64_t w, float *copy,
                              int64_t *row, int64_t *position, const int side, const int lanes)
{
    if (h >= 0 && w >= 0 && h + side <= plane->height && w + side <= plane->width) {
        *row = plane->row_stride;
        *position = plane->position_stride;
        return from + h * plane->row_stride + w * plane->position_stride;
    }
    for (int r = 0; r < side; r++) {
        for (int c = 0; c < side; c++) {
            bool inside = h + r >= 0 && h + r < plane->height && w + c >= 0 && w + c < plane->width;
            float *to = copy + (r * side + c) * lanes;
            if (inside) {
                memcpy(to, from + (h + r) * plane->row_stride + (w + c) * plane->position_stride,
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

/* The columns of a last panel that has no block for them. */
CVY_INLINE void clear(float *out, int64_t point, const int side)
{
    for (int i = 0; i < side * side; i++) {
        memset(out + i * point + PANEL / 2, 0, PANEL / 2 * sizeof *out);
    }
}

CVY_INLINE void take_source_tile(const cvy_winograd *all, const float *from, const place *at, float *to,
                                 const int side, const int lanes)
{
    float copy[SIDE * SIDE * PANEL], half[SIDE * SIDE * PANEL];
    int64_t row, position, point = all->source.point;
    from = fetch(&all->source, from, at->h - all->before[0], at->w - all->before[1], copy, &row, &position, side,
                 lanes);
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
    from = fetch(&all->target, from, at->h, at->w, copy, &row, &position, STEP, lanes);
    for (int c = 0; c < STEP; c++) {
        cvy_winograd_evaluate(from + c * position, row, STEP, half + c * lanes, STEP * lanes, side, lanes);
    }
    for (int r = 0; r < side; r++) {
        cvy_winograd_evaluate(half + r * STEP * lanes, lanes, STEP, to + r * side * point, point, side, lanes);
    }
}

/* Some positions of a tile; what is below `least` becomes it, NaN stays. */
CVY_INLINE void store_part(const cvy_winograd_plane *plane, const float *tile, const float *bias, float least,
                           float *to, int64_t rows, int64_t columns, const int lanes)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            float *y = to + r * plane->row_stride + c * plane->position_stride;
#pragma omp simd
            for (int i = 0; i < lanes; i++) {
                float value = tile[(r * STEP + c) * lanes + i] + bias[i];
                y[i] = value < least ? least : value;
            }
        }
    }
}

/* Write the part of a tile that the plane has. */
CVY_INLINE void store_tile(const cvy_winograd_plane *plane, const float *tile, const place *at, const float *bias,
                           bool relu, float *to, const int lanes)
{
    static const float none[PANEL];
    int64_t rows = cvy_min_i64(STEP, plane->height - at->h), columns = cvy_min_i64(STEP, plane->width - at->w);
    float least = relu ? 0.0f : -INFINITY;
    bias = bias ? bias : none;
    to += at->h * plane->row_stride + at->w * plane->position_stride;
    if (rows == STEP && columns == STEP) {
        store_part(plane, tile, bias, least, to, STEP, STEP, lanes);
    } else {
        store_part(plane, tile, bias, least, to, rows, columns, lanes);
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

/* Where the points of a panel's tiles begin. */
static int64_t find_rows(const cvy_winograd *all, const cvy_winograd_range *range, int64_t panel)
{
    return (panel * all->chunk + range->at) * PANEL;
}

CVY_INLINE void take_source(const cvy_winograd *all, const float *source, const cvy_winograd_range *range,
                            int64_t panel, float *out, const int side, const int lanes)
{
    piece pieces[2] = {{0}};
    int count = find_pieces(all, &all->source, panel, pieces);
    out += find_rows(all, range, panel);
    for (int64_t t = 0; t < range->count; t++, out += PANEL) {
        place at = find_place(all, range->first + t);
        const float *from = source + at.sample * all->source.sample_stride;
        for (int i = 0; i < count; i++) {
            take_source_tile(all, from + pieces[i].plane, &at, out + pieces[i].column, side, lanes);
        }
    }
}

CVY_INLINE void take_target(const cvy_winograd *all, const float *target, const cvy_winograd_range *range,
                            int64_t panel, float *out, const int side, const int lanes)
{
    piece pieces[2] = {{0}};
    int count = find_pieces(all, &all->target, panel, pieces);
    out += find_rows(all, range, panel);
    for (int64_t t = 0; t < range->count; t++, out += PANEL) {
        place at = find_place(all, range->first + t);
        const float *from = target + at.sample * all->target.sample_stride;
        for (int i = 0; i < count; i++) {
            take_target_tile(all, from + pieces[i].plane, &at, out + pieces[i].column, side, lanes);
        }
        if (count * lanes < PANEL) {
            clear(out, all->target.point, side);
        }
    }
}

CVY_INLINE void give_target(const cvy_winograd *all, const float *points, const cvy_winograd_range *range,
                            int64_t panel, const float *bias, bool relu, float *target, const int side,
                            const int lanes)
{
    piece pieces[2] = {{0}};
    int count = find_pieces(all, &all->target, panel, pieces);
    points += find_rows(all, range, panel);
    for (int64_t t = 0; t < range->count; t++, points += PANEL) {
        place at = find_place(all, range->first + t);
        float *to = target + at.sample * all->target.sample_stride;
        for (int i = 0; i < count; i++) {
            const float *own = bias ? bias + panel * PANEL + pieces[i].column : NULL;
            give_target_tile(all, points + pieces[i].column, &at, own, relu, to + pieces[i].plane, side, lanes);
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
                                              const cvy_winograd_range *range, int64_t panel, float *out)
{
    CALL(take_source, source, range, panel, out);
}

CVY_WIDE_VECTOR void cvy_winograd_take_target(const cvy_winograd *all, const float *target,
                                              const cvy_winograd_range *range, int64_t panel, float *out)
{
    CALL(take_target, target, range, panel, out);
}

CVY_WIDE_VECTOR void cvy_winograd_give_target(const cvy_winograd *all, const float *points,
                                              const cvy_winograd_range *range, int64_t panel, const float *bias,
                                              bool relu, float *target)
{
    CALL(give_target, points, range, panel, bias, relu, target);
}

void cvy_winograd_sum_target(const cvy_winograd *all, const float *points, int64_t count, int64_t panel, float *sums)
{
    const float *from = points + (all->side + 1) * all->target.point + panel * all->chunk * PANEL;
    const float scale = all->side == 6 ? CVY_WINOGRAD_SCALE_1(6) : CVY_WINOGRAD_SCALE_1(8);
    float sum[PANEL] = {0};
    for (int64_t t = 0; t < count; t++, from += PANEL) {
        for (int i = 0; i < PANEL; i++) {
            sum[i] += from[i];
        }
    }
    for (int i = 0; i < PANEL; i++) {
        sums[panel * PANEL + i] += sum[i] / (scale * scale);
    }
}
