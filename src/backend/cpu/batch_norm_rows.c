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

/* y before its relu: forward and backward see one sign. */
CVY_INLINE float normal_of(float x, float mean, float scale, float shift) { return scale * (x - mean) + shift; }

CVY_INLINE void add_gradients(const float *x, const float *dy, cvy_matrix matrix, const cvy_normaliser *normaliser,
                              bool relu, float *first, float *second)
{
    const float *mean = normaliser->mean, *scale = normaliser->scale, *shift = normaliser->shift;
    for (int64_t row = 0; row < matrix.rows; row++) {
        const float *at = x + row * matrix.stride, *by = dy + row * matrix.stride;
#pragma omp simd
        for (int64_t i = 0; i < matrix.width; i++) {
            bool through = !relu || normal_of(at[i], mean[i], scale[i], shift[i]) > 0;
            float gradient = through ? by[i] : 0;
            first[i] += gradient;
            second[i] += (at[i] - mean[i]) * gradient;
        }
    }
}

CVY_INLINE void sum_gradients(const float *x, const float *dy, const cvy_matrix *matrix,
                              const cvy_normaliser *normaliser, bool relu, cvy_sums *sums)
{
    int64_t end = matrix->rows * matrix->stride;
    if (matrix->width == CVY_COLUMNS_ROW) {
        held_sums held;
        hold(sums, &held);
        add_gradients(x, dy, narrow(matrix), normaliser, relu, held.first, held.second);
        release(&held, sums);
    } else {
        add_gradients(x, dy, *matrix, normaliser, relu, sums->first, sums->second);
    }
    add_gradients(x + end, dy + end, last_row(matrix), normaliser, relu, sums->first, sums->second);
}

CVY_VECTOR void cvy_rows_gradient_sums(const float *x, const float *dy, const cvy_matrix *matrix,
                                       const cvy_normaliser *normaliser, cvy_sums *sums)
{
    if (normaliser->relu) {
        sum_gradients(x, dy, matrix, normaliser, true, sums);
    } else {
        sum_gradients(x, dy, matrix, normaliser, false, sums);
    }
}

CVY_INLINE void normalise(const float *x, const cvy_matrix *matrix, const cvy_normaliser *normaliser, bool relu,
                          float *y)
{
    const float *mean = normaliser->mean, *scale = normaliser->scale, *shift = normaliser->shift;
    for (int64_t row = 0; row <= matrix->rows; row++) {
        const float *at = x + row * matrix->stride;
        float *to = y + row * matrix->stride;
        int64_t here = row < matrix->rows ? matrix->width : matrix->tail;
#pragma omp simd
        for (int64_t i = 0; i < here; i++) {
            float value = normal_of(at[i], mean[i], scale[i], shift[i]);
            to[i] = relu && value < 0 ? 0 : value; /* NaN stays */
        }
    }
}

CVY_VECTOR void cvy_rows_normalise(const float *x, const cvy_matrix *matrix, const cvy_normaliser *normaliser, float *y)
{
    if (normaliser->relu) {
        normalise(x, matrix, normaliser, true, y);
    } else {
        normalise(x, matrix, normaliser, false, y);
    }
}

CVY_INLINE void differentiate(const float *x, const float *dy, const cvy_matrix *matrix, const cvy_gradient *gradient,
                              bool relu, float *dx)
{
    const float *mean = gradient->mean, *scale = gradient->scale, *beta = gradient->beta;
    const float *shift = gradient->shift, *slope = gradient->slope;
    for (int64_t row = 0; row <= matrix->rows; row++) {
        const float *at = x + row * matrix->stride, *by = dy + row * matrix->stride;
        float *to = dx + row * matrix->stride;
        int64_t here = row < matrix->rows ? matrix->width : matrix->tail;
#pragma omp simd
        for (int64_t i = 0; i < here; i++) {
            bool through = !relu || normal_of(at[i], mean[i], scale[i], beta[i]) > 0;
            float counted = through ? by[i] : 0;
            to[i] = scale[i] * (counted - shift[i] - slope[i] * (at[i] - mean[i]));
        }
    }
}

CVY_VECTOR void cvy_rows_gradient(const float *x, const float *dy, const cvy_matrix *matrix,
                                  const cvy_gradient *gradient, float *dx)
{
    if (gradient->relu) {
        differentiate(x, dy, matrix, gradient, true, dx);
    } else {
        differentiate(x, dy, matrix, gradient, false, dx);
    }
}
