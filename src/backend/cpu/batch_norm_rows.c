/*
 * As cvy_columns_sum(): rows of CVY_COLUMNS_ROW keep their sums in registers, which takes a constant width and arrays
 * whose address goes nowhere; other rows keep them in the first-level cache.
 */
#include "backend/cpu/batch_norm_rows.h"

#include <string.h>

#include "backend/cpu/vector.h"

typedef struct held_sums {
    float first[CVY_COLUMNS_ROW];
    float second[CVY_COLUMNS_ROW];
} held_sums;

CVY_INLINE void hold(const cvy_sums *sums, held_sums *held)
{
    memcpy(held->first, sums->first, sizeof held->first);
    memcpy(held->second, sums->second, sizeof held->second);
}

CVY_INLINE void release(const held_sums *held, cvy_sums *sums)
{
    memcpy(sums->first, held->first, sizeof held->first);
    memcpy(sums->second, held->second, sizeof held->second);
}

CVY_INLINE void add_deviations(const float *x, cvy_matrix matrix, const float *centre, float *first, float *second)
{
    for (int64_t row = 0; row < matrix.rows; row++) {
        const float *at = x + row * matrix.stride;
#pragma omp simd
        for (int64_t i = 0; i < matrix.width; i++) {
            float deviation = at[i] - centre[i];
            first[i] += deviation;
            second[i] += deviation * deviation;
        }
    }
}

/* Full rows of the constant width; the shorter last row. */
CVY_INLINE cvy_matrix narrow(const cvy_matrix *matrix)
{
    return (cvy_matrix){matrix->rows, CVY_COLUMNS_ROW, CVY_COLUMNS_ROW, 0};
}

CVY_INLINE cvy_matrix last_row(const cvy_matrix *matrix) { return (cvy_matrix){1, matrix->tail, 0, 0}; }

CVY_VECTOR void cvy_rows_deviations(const float *x, const cvy_matrix *matrix, const float *centre, cvy_sums *sums)
{
    if (matrix->width == CVY_COLUMNS_ROW) {
        held_sums held;
        hold(sums, &held);
        add_deviations(x, narrow(matrix), centre, held.first, held.second);
        release(&held, sums);
    } else {
        add_deviations(x, *matrix, centre, sums->first, sums->second);
    }
    add_deviations(x + matrix->rows * matrix->stride, last_row(matrix), centre, sums->first, sums->second);
}

CVY_INLINE void add_gradients(const float *x, const float *dy, cvy_matrix matrix, const float *mean, float *first,
                              float *second)
{
    for (int64_t row = 0; row < matrix.rows; row++) {
        const float *at = x + row * matrix.stride, *by = dy + row * matrix.stride;
#pragma omp simd
        for (int64_t i = 0; i < matrix.width; i++) {
            first[i] += by[i];
            second[i] += (at[i] - mean[i]) * by[i];
        }
    }
}

CVY_VECTOR void cvy_rows_gradient_sums(const float *x, const float *dy, const cvy_matrix *matrix, const float *mean,
                                       cvy_sums *sums)
{
    int64_t end = matrix->rows * matrix->stride;
    if (matrix->width == CVY_COLUMNS_ROW) {
        held_sums held;
        hold(sums, &held);
        add_gradients(x, dy, narrow(matrix), mean, held.first, held.second);
        release(&held, sums);
    } else {
        add_gradients(x, dy, *matrix, mean, sums->first, sums->second);
    }
    add_gradients(x + end, dy + end, last_row(matrix), mean, sums->first, sums->second);
}

CVY_VECTOR void cvy_rows_normalise(const float *x, const cvy_matrix *matrix, const cvy_normaliser *normaliser, float *y)
{
    const float *mean = normaliser->mean, *scale = normaliser->scale, *shift = normaliser->shift;
    for (int64_t row = 0; row <= matrix->rows; row++) {
        const float *at = x + row * matrix->stride;
        float *to = y + row * matrix->stride;
        int64_t here = row < matrix->rows ? matrix->width : matrix->tail;
#pragma omp simd
        for (int64_t i = 0; i < here; i++) {
            to[i] = scale[i] * (at[i] - mean[i]) + shift[i];
        }
    }
}

CVY_VECTOR void cvy_rows_gradient(const float *x, const float *dy, const cvy_matrix *matrix,
                                  const cvy_gradient *gradient, float *dx)
{
    const float *mean = gradient->mean, *scale = gradient->scale;
    const float *shift = gradient->shift, *slope = gradient->slope;
    for (int64_t row = 0; row <= matrix->rows; row++) {
        const float *at = x + row * matrix->stride, *by = dy + row * matrix->stride;
        float *to = dx + row * matrix->stride;
        int64_t here = row < matrix->rows ? matrix->width : matrix->tail;
#pragma omp simd
        for (int64_t i = 0; i < here; i++) {
            to[i] = scale[i] * (by[i] - shift[i] - slope[i] * (at[i] - mean[i]));
        }
    }
}
