/* As cvy_columns_sum(): sums take four rows at a time, then single rows, then the shorter last one. */
#include "backend/cpu/batch_norm_rows.h"

#include "backend/cpu/vector.h"

CVY_VECTOR void cvy_rows_deviations(const float *x, const cvy_matrix *matrix, const float *centre, cvy_sums *sums)
{
    float *first = sums->first, *second = sums->second;
    int64_t width = matrix->width, stride = matrix->stride, row = 0;
    for (; row + 4 <= matrix->rows; row += 4) {
        const float *at = x + row * stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float a = at[i] - centre[i], b = at[i + stride] - centre[i];
            float c = at[i + 2 * stride] - centre[i], d = at[i + 3 * stride] - centre[i];
            first[i] += (a + b) + (c + d);
            second[i] += (a * a + b * b) + (c * c + d * d);
        }
    }
    for (; row <= matrix->rows; row++) {
        const float *at = x + row * stride;
        int64_t here = row < matrix->rows ? width : matrix->tail;
#pragma omp simd
        for (int64_t i = 0; i < here; i++) {
            float a = at[i] - centre[i];
            first[i] += a;
            second[i] += a * a;
        }
    }
}

CVY_VECTOR void cvy_rows_gradient_sums(const float *x, const float *dy, const cvy_matrix *matrix, const float *mean,
                                       cvy_sums *sums)
{
    float *first = sums->first, *second = sums->second;
    int64_t width = matrix->width, stride = matrix->stride, row = 0;
    for (; row + 4 <= matrix->rows; row += 4) {
        const float *at = x + row * stride, *by = dy + row * stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            int64_t j = i + stride, k = i + 2 * stride, l = i + 3 * stride;
            float a = at[i] - mean[i], b = at[j] - mean[i], c = at[k] - mean[i], d = at[l] - mean[i];
            first[i] += (by[i] + by[j]) + (by[k] + by[l]);
            second[i] += (a * by[i] + b * by[j]) + (c * by[k] + d * by[l]);
        }
    }
    for (; row <= matrix->rows; row++) {
        const float *at = x + row * stride, *by = dy + row * stride;
        int64_t here = row < matrix->rows ? width : matrix->tail;
#pragma omp simd
        for (int64_t i = 0; i < here; i++) {
            first[i] += by[i];
            second[i] += (at[i] - mean[i]) * by[i];
        }
    }
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
