/*
 * The products of Winograd's algorithm: small matrices, one at each point, in panels of 16 columns (winograd.h). Some
 * rows of a panel of the result stay in registers over the depth: with AVX2 6 rows, which are 12 of 16 registers, with
 * AVX-512 8 rows of two panels, 16 of 32; either is enough for the latency of a multiply-add (4 cycles, 2 begun in
 * each). Each sum is over the depth in order either way, so bits do not depend on it.
 */
#include "backend/cpu/vector.h"
#include "backend/cpu/winograd.h"
#include "base/checked.h"

enum { PANEL = CVY_WINOGRAD_PANEL };

/* A block of the product: what it sums over is `depth` for each of some taps. */
typedef struct block {
    const float *left;
    int64_t left_panel, left_tap, taps, depth;
    const float *right;
    int64_t right_panel;
    float *result;
    int64_t result_panel;
    bool adds;
} block;

CVY_INLINE void multiply_block(const block *m, const int rows, const int panels, const bool transposed)
{
    const int row = transposed ? 1 : PANEL, step = transposed ? PANEL : 1; /* of left */
    const float *right = m->right;
    float sum[8][2][PANEL];
    for (int r = 0; r < rows; r++) {
        for (int p = 0; p < panels; p++) {
            const float *from = m->result + r * PANEL + p * m->result_panel;
#pragma omp simd
            for (int i = 0; i < PANEL; i++) {
                sum[r][p][i] = m->adds ? from[i] : 0.0f;
            }
        }
    }
    int64_t pieces = transposed ? 1 : cvy_ceil_div(m->depth, PANEL);
    for (int64_t piece = 0; piece < m->taps * pieces; piece++) {
        int64_t tap = piece / pieces, panel = piece % pieces;
        const float *left = m->left + tap * m->left_tap + panel * m->left_panel;
        int64_t steps = transposed ? m->depth : cvy_min_i64(PANEL, m->depth - panel * PANEL);
        for (int64_t k = 0; k < steps; k++) {
            CVY_STAY;
            for (int r = 0; r < rows; r++) {
                for (int p = 0; p < panels; p++) {
#pragma omp simd
                    for (int i = 0; i < PANEL; i++) {
                        sum[r][p][i] += left[r * row] * right[p * m->right_panel + i];
                    }
                }
            }
            left += step;
            right += PANEL;
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int p = 0; p < panels; p++) {
            float *to = m->result + r * PANEL + p * m->result_panel;
#pragma omp simd
            for (int i = 0; i < PANEL; i++) {
                to[i] = sum[r][p][i];
            }
        }
    }
}

/* Rows that lie one behind the other, `most` of them at once while there are. */
CVY_INLINE void multiply_rows(block m, int64_t rows, const int most, const int panels, const bool transposed)
{
    while (rows > 0) {
        int taken = 2;
        if (rows >= most) {
            multiply_block(&m, most, panels, transposed);
            taken = most;
        } else if (rows > 2) {
            multiply_block(&m, 4, panels, transposed);
            taken = 4;
        } else {
            multiply_block(&m, 2, panels, transposed);
        }
        m.left += taken * (transposed ? 1 : PANEL);
        m.result += taken * PANEL;
        rows -= taken;
    }
}

/* The rows of one tap, a panel of left at a time. */
CVY_INLINE void multiply_tap(const cvy_winograd_product *p, block m, const int most, const int panels)
{
    for (int64_t row = 0; row < p->rows; row += PANEL) {
        multiply_rows(m, cvy_min_i64(PANEL, p->rows - row), most, panels, true);
        m.left += p->left.panel;
        m.result += PANEL * PANEL;
    }
}

/* All rows of one or two panels of the result. */
CVY_INLINE void multiply_panels(const cvy_winograd_product *p, block m, const int most, const int panels)
{
    if (!p->transposed) {
        m.taps = p->taps;
        multiply_rows(m, p->rows, most, panels, false);
        return;
    }
    for (int64_t tap = 0; tap < p->taps; tap++) {
        multiply_tap(p, m, most, panels);
        m.left += m.left_tap;
        m.result += p->rows * PANEL;
    }
}

CVY_INLINE void multiply_point(const cvy_winograd_product *p, int64_t point, int64_t first, int64_t end,
                               const int most, const int together)
{
    for (int64_t panel = first; panel < end; panel += together) {
        const block m = {.left = p->left.at + point * p->left.point,
                         .left_panel = p->left.panel,
                         .left_tap = p->shift * PANEL,
                         .taps = 1,
                         .depth = p->depth,
                         .right = p->right.at + point * p->right.point + panel * p->right.panel,
                         .right_panel = p->right.panel,
                         .result = p->result.at + point * p->result.point + panel * p->result.panel,
                         .result_panel = p->result.panel,
                         .adds = p->adds};
        if (panel + together <= end) {
            multiply_panels(p, m, most, together);
        } else {
            multiply_panels(p, m, most, 1);
        }
    }
}

/* Whether there are 32 registers of 16 floats. */
static bool is_wide(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

CVY_WIDE_VECTOR void cvy_winograd_multiply(const cvy_winograd_product *p, int64_t point, int64_t first, int64_t end)
{
    if (is_wide()) {
        multiply_point(p, point, first, end, 8, 2);
    } else {
        multiply_point(p, point, first, end, 6, 1);
    }
}
