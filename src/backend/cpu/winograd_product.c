/*
 * The products of Winograd's algorithm: small matrices, one at each point, whose columns lie side by side. A block of
 * rows and two vectors of columns stay in registers over the depth: 16 of 32 in AVX-512, 8 of 16 in AVX2, enough for
 * the latency of a multiply-add (4 cycles, 2 begun in each).
 */
#include "backend/cpu/vector.h"
#include "backend/cpu/winograd.h"

CVY_INLINE void multiply_block(const cvy_winograd_product *p, const float *a, const float *b, float *result,
                               const int rows, const int vectors, const int lanes)
{
    float sum[8][2][CVY_WINOGRAD_LANES];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            const float *from = result + r * p->columns + v * lanes;
#pragma omp simd
            for (int i = 0; i < lanes; i++) {
                sum[r][v][i] = p->adds ? from[i] : 0.0f;
            }
        }
    }
    for (int64_t k = 0; k < p->depth; k++) {
        const float *left = a + k * p->a_depth, *right = b + k * p->columns;
        CVY_STAY;
        for (int r = 0; r < rows; r++) {
            for (int v = 0; v < vectors; v++) {
#pragma omp simd
                for (int i = 0; i < lanes; i++) {
                    sum[r][v][i] += left[r * p->a_row] * right[v * lanes + i];
                }
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            float *to = result + r * p->columns + v * lanes;
#pragma omp simd
            for (int i = 0; i < lanes; i++) {
                to[i] = sum[r][v][i];
            }
        }
    }
}

CVY_INLINE void multiply_point(const cvy_winograd_product *p, int64_t point, const int rows, const int lanes)
{
    const float *a = p->a + point * p->a_point, *b = p->b + point * p->b_point;
    float *result = p->result + point * p->result_point;
    int64_t column = 0;
    for (; column + 2 * lanes <= p->columns; column += 2 * lanes) {
        for (int64_t row = 0; row < p->rows; row += rows) {
            multiply_block(p, a + row * p->a_row, b + column, result + row * p->columns + column, rows, 2, lanes);
        }
    }
    if (column < p->columns) {
        for (int64_t row = 0; row < p->rows; row += rows) {
            multiply_block(p, a + row * p->a_row, b + column, result + row * p->columns + column, rows, 1, lanes);
        }
    }
}

CVY_WIDE_VECTOR void cvy_winograd_multiply(const cvy_winograd_product *p)
{
    for (int64_t point = 0; point < CVY_WINOGRAD_POINTS; point++) {
        if (p->lanes == 16) {
            multiply_point(p, point, 8, 16);
        } else {
            multiply_point(p, point, 4, 8);
        }
    }
}
