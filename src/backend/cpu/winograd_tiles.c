/*
 * Into points and back, a block of channels at a time: first along the columns of a tile, then along its rows. With
 * p_i the finite points and s_i what the products of their differences leave to the weights' side,
 *     an input tile     B^T d          rows of B^T divide out all points but one
 *     taps, gradients   s_i sum of p_i^j g_j, and the last g at infinity
 *     outputs           sum over i of p_i^k m_i, and the point at infinity in the last
 * Points that differ in sign share the sums over even and over odd powers.
 */
#include <string.h>

#include "backend/cpu/vector.h"
#include "backend/cpu/winograd.h"
#include "base/checked.h"

enum { SIDE = CVY_WINOGRAD_SIDE, STEP = CVY_WINOGRAD_STEP, TAPS = CVY_WINOGRAD_TAPS, LANES = CVY_WINOGRAD_LANES };

/* 1 / product of differences of p = 1, 2, 1/2 to the other finite points, up to what B^T has. */
#define SCALE_1 (-2.0f / 9.0f)
#define SCALE_2 (1.0f / 90.0f)
#define SCALE_HALF (32.0f / 45.0f)

/* B^T of 8 vectors that lie `step` apart. */
CVY_INLINE void divide(const float *in, int64_t step, float *out, int64_t apart, const int lanes)
{
#pragma omp simd
    for (int i = 0; i < lanes; i++) {
        float d0 = in[i], d1 = in[step + i], d2 = in[2 * step + i], d3 = in[3 * step + i];
        float d4 = in[4 * step + i], d5 = in[5 * step + i], d6 = in[6 * step + i], d7 = in[7 * step + i];
        float even1 = d2 + d6 - 4.25f * d4, odd1 = d1 + d5 - 4.25f * d3;
        float even2 = d6 + 0.25f * d2 - 1.25f * d4, odd2 = 0.5f * d1 - 2.5f * d3 + 2.0f * d5;
        float even3 = d6 + 4.0f * d2 - 5.0f * d4, odd3 = 2.0f * d1 - 2.5f * d3 + 0.5f * d5;
        out[i] = d0 - d6 + 5.25f * (d4 - d2);
        out[apart + i] = even1 + odd1;
        out[2 * apart + i] = even1 - odd1;
        out[3 * apart + i] = even2 + odd2;
        out[4 * apart + i] = even2 - odd2;
        out[5 * apart + i] = even3 + odd3;
        out[6 * apart + i] = even3 - odd3;
        out[7 * apart + i] = d7 - d1 + 5.25f * (d3 - d5);
    }
}

/* A polynomial of 4 or 5 coefficients at the points, scaled. */
CVY_INLINE void evaluate(const float *in, int64_t step, const int count, float *out, int64_t apart, const int lanes)
{
#pragma omp simd
    for (int i = 0; i < lanes; i++) {
        float g0 = in[i], g1 = in[step + i], g2 = in[2 * step + i], g3 = in[3 * step + i];
        float g4 = count == 5 ? in[(count - 1) * step + i] : 0.0f;
        float even1 = SCALE_1 * (g0 + g2 + g4), odd1 = SCALE_1 * (g1 + g3);
        float even2 = SCALE_2 * (g0 + 4.0f * g2 + 16.0f * g4), odd2 = SCALE_2 * (2.0f * g1 + 8.0f * g3);
        float even3 = SCALE_HALF * (g0 + 0.25f * g2 + 0.0625f * g4), odd3 = SCALE_HALF * (0.5f * g1 + 0.125f * g3);
        out[i] = g0;
        out[apart + i] = even1 + odd1;
        out[2 * apart + i] = even1 - odd1;
        out[3 * apart + i] = even2 + odd2;
        out[4 * apart + i] = even2 - odd2;
        out[5 * apart + i] = even3 + odd3;
        out[6 * apart + i] = even3 - odd3;
        out[7 * apart + i] = count == 5 ? g4 : g3;
    }
}

/* 4 or 5 outputs of the points. */
CVY_INLINE void collect(const float *in, int64_t step, const int count, float *out, int64_t apart, const int lanes)
{
#pragma omp simd
    for (int i = 0; i < lanes; i++) {
        float m1 = in[step + i], m2 = in[2 * step + i], m3 = in[3 * step + i], m4 = in[4 * step + i];
        float m5 = in[5 * step + i], m6 = in[6 * step + i], last = in[7 * step + i];
        float sum1 = m1 + m2, sum2 = m3 + m4, sum3 = m5 + m6;
        float difference1 = m1 - m2, difference2 = m3 - m4, difference3 = m5 - m6;
        float cube = difference1 + 8.0f * difference2 + 0.125f * difference3;
        out[i] = in[i] + sum1 + sum2 + sum3;
        out[apart + i] = difference1 + 2.0f * difference2 + 0.5f * difference3;
        out[2 * apart + i] = sum1 + 4.0f * sum2 + 0.25f * sum3;
        out[3 * apart + i] = count == 5 ? cube : cube + last;
        if (count == 5) {
            out[(count - 1) * apart + i] = sum1 + 16.0f * sum2 + 0.0625f * sum3 + last;
        }
    }
}

/* ---- tiles of activations ---- */

/* Where a tile lies. */
typedef struct place {
    int64_t sample, h, w;
} place;

static place find_place(const cvy_winograd *all, int64_t tile)
{
    int64_t plane = all->rows * all->columns, at = tile % plane;
    return (place){tile / plane, at / all->columns * STEP, at % all->columns * STEP};
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

CVY_INLINE void take_source(const cvy_winograd *all, const float *source, const cvy_winograd_range *range, float *out,
                            const int lanes)
{
    for (int64_t t = 0; t < range->count; t++) {
        place at = find_place(all, range->first + t);
        for (int64_t block = 0; block * lanes < all->channels; block++) {
            float copy[SIDE * SIDE * LANES], half[SIDE * SIDE * LANES];
            const float *from = source + at.sample * all->source.sample_stride + block * all->source.block_stride;
            float *to = out + t * all->channels + block * lanes;
            int64_t row, position;
            from = fetch(&all->source, from, at.h - all->before[0], at.w - all->before[1], copy, &row, &position, SIDE,
                         lanes);
            for (int c = 0; c < SIDE; c++) {
                divide(from + c * position, row, half + c * lanes, SIDE * lanes, lanes);
            }
            for (int r = 0; r < SIDE; r++) {
                divide(half + r * SIDE * lanes, lanes, to + r * SIDE * all->source_point, all->source_point, lanes);
            }
        }
    }
}

CVY_WIDE_VECTOR void cvy_winograd_take_source(const cvy_winograd *all, const float *source,
                                              const cvy_winograd_range *range, float *out)
{
    if (all->lanes == 16) {
        take_source(all, source, range, out, 16);
    } else {
        take_source(all, source, range, out, 8);
    }
}

CVY_INLINE void take_target(const cvy_winograd *all, const float *target, const cvy_winograd_range *range, float *out,
                            float *sums, const int lanes)
{
    for (int64_t t = 0; t < range->count; t++) {
        place at = find_place(all, range->first + t);
        for (int64_t block = 0; block * lanes < all->filters; block++) {
            float copy[STEP * STEP * LANES], half[SIDE * STEP * LANES];
            const float *from = target + at.sample * all->target.sample_stride + block * all->target.block_stride;
            float *to = out + t * all->filters + block * lanes, *sum = sums + block * lanes;
            int64_t row, position;
            from = fetch(&all->target, from, at.h, at.w, copy, &row, &position, STEP, lanes);
            for (int c = 0; c < STEP; c++) {
                evaluate(from + c * position, row, STEP, half + c * lanes, STEP * lanes, lanes);
                for (int r = 0; r < STEP; r++) {
#pragma omp simd
                    for (int i = 0; i < lanes; i++) {
                        sum[i] += from[r * row + c * position + i];
                    }
                }
            }
            for (int r = 0; r < SIDE; r++) {
                evaluate(half + r * STEP * lanes, lanes, STEP, to + r * SIDE * all->target_point, all->target_point,
                         lanes);
            }
        }
    }
}

CVY_WIDE_VECTOR void cvy_winograd_take_target(const cvy_winograd *all, const float *target,
                                              const cvy_winograd_range *range, float *out, float *sums)
{
    if (all->lanes == 16) {
        take_target(all, target, range, out, sums, 16);
    } else {
        take_target(all, target, range, out, sums, 8);
    }
}

/* Write the part of a tile that the plane has. */
CVY_INLINE void store_tile(const cvy_winograd_plane *plane, const float *tile, const place *at, const float *bias,
                           bool relu, float *to, const int lanes)
{
    int64_t rows = cvy_min_i64(STEP, plane->height - at->h), columns = cvy_min_i64(STEP, plane->width - at->w);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            float *y = to + (at->h + r) * plane->row_stride + (at->w + c) * plane->position_stride;
#pragma omp simd
            for (int i = 0; i < lanes; i++) { /* NaN stays */
                float value = tile[(r * STEP + c) * lanes + i] + (bias ? bias[i] : 0.0f);
                y[i] = relu && value < 0.0f ? 0.0f : value;
            }
        }
    }
}

CVY_INLINE void give_target(const cvy_winograd *all, const float *points, const cvy_winograd_range *range,
                            const float *bias, bool relu, float *target, const int lanes)
{
    for (int64_t t = 0; t < range->count; t++) {
        place at = find_place(all, range->first + t);
        for (int64_t block = 0; block * lanes < all->filters; block++) {
            float half[STEP * SIDE * LANES], tile[STEP * STEP * LANES];
            const float *from = points + t * all->filters + block * lanes;
            float *to = target + at.sample * all->target.sample_stride + block * all->target.block_stride;
            for (int c = 0; c < SIDE; c++) {
                collect(from + c * all->target_point, SIDE * all->target_point, STEP, half + c * lanes, SIDE * lanes,
                        lanes);
            }
            for (int r = 0; r < STEP; r++) {
                collect(half + r * SIDE * lanes, lanes, STEP, tile + r * STEP * lanes, lanes, lanes);
            }
            store_tile(&all->target, tile, &at, bias ? bias + block * lanes : NULL, relu, to, lanes);
        }
    }
}

CVY_WIDE_VECTOR void cvy_winograd_give_target(const cvy_winograd *all, const float *points,
                                              const cvy_winograd_range *range, const float *bias, bool relu,
                                              float *target)
{
    if (all->lanes == 16) {
        give_target(all, points, range, bias, relu, target, 16);
    } else {
        give_target(all, points, range, bias, relu, target, 8);
    }
}

/* ---- weights: lanes are columns, which may lie anywhere ---- */

static int64_t find_offset(const cvy_layout *layout, int dim, int64_t index)
{
    return index / layout->block[dim] * layout->stride[dim] + index % layout->block[dim] * layout->inner_stride[dim];
}

/* Offsets of the columns of a block in a row. */
static void find_columns(const cvy_winograd *all, int64_t row, int64_t column, int64_t *offset)
{
    const cvy_winograd_weights *w = &all->weights;
    for (int64_t i = 0; i < all->lanes; i++) {
        offset[i] = find_offset(&w->layout, w->row, row) + find_offset(&w->layout, w->column, column + i);
    }
}

static int64_t find_tap(const cvy_winograd_weights *w, int64_t h, int64_t k)
{
    int64_t last = TAPS - 1;
    return (w->turned ? last - h : h) * w->layout.stride[2] + (w->turned ? last - k : k) * w->layout.stride[3];
}

CVY_INLINE void take_weights(const cvy_winograd *all, const float *weights, int64_t row, float *out, const int lanes)
{
    for (int64_t column = 0; column < all->filters; column += lanes) {
        float taps[TAPS * TAPS * LANES], half[SIDE * TAPS * LANES];
        int64_t offset[LANES], point = all->channels * all->filters;
        float *to = out + row * all->filters + column;
        find_columns(all, row, column, offset);
        for (int t = 0; t < TAPS * TAPS; t++) {
            const float *from = weights + find_tap(&all->weights, t / TAPS, t % TAPS);
            for (int i = 0; i < lanes; i++) {
                taps[t * lanes + i] = from[offset[i]];
            }
        }
        for (int c = 0; c < TAPS; c++) {
            evaluate(taps + c * lanes, TAPS * lanes, TAPS, half + c * lanes, TAPS * lanes, lanes);
        }
        for (int r = 0; r < SIDE; r++) {
            evaluate(half + r * TAPS * lanes, lanes, TAPS, to + r * SIDE * point, point, lanes);
        }
    }
}

CVY_WIDE_VECTOR void cvy_winograd_take_weights(const cvy_winograd *all, const float *weights, int64_t row, float *out)
{
    if (all->lanes == 16) {
        take_weights(all, weights, row, out, 16);
    } else {
        take_weights(all, weights, row, out, 8);
    }
}

CVY_INLINE void give_weights(const cvy_winograd *all, const float *points, int64_t row, float *weights,
                             const int lanes)
{
    for (int64_t column = 0; column < all->filters; column += lanes) {
        float half[TAPS * SIDE * LANES], taps[TAPS * TAPS * LANES];
        int64_t offset[LANES], point = all->channels * all->filters;
        const float *from = points + row * all->filters + column;
        find_columns(all, row, column, offset);
        for (int c = 0; c < SIDE; c++) {
            collect(from + c * point, SIDE * point, TAPS, half + c * lanes, SIDE * lanes, lanes);
        }
        for (int r = 0; r < TAPS; r++) {
            collect(half + r * SIDE * lanes, lanes, TAPS, taps + r * TAPS * lanes, lanes, lanes);
        }
        for (int t = 0; t < TAPS * TAPS; t++) {
            float *to = weights + find_tap(&all->weights, t / TAPS, t % TAPS);
            for (int i = 0; i < lanes; i++) {
                to[offset[i]] = taps[t * lanes + i];
            }
        }
    }
}

CVY_WIDE_VECTOR void cvy_winograd_give_weights(const cvy_winograd *all, const float *points, int64_t row,
                                               float *weights)
{
    if (all->lanes == 16) {
        give_weights(all, points, row, weights, 16);
    } else {
        give_weights(all, points, row, weights, 8);
    }
}
