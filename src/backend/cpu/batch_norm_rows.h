/* The inner loops of batch norm: over the rows of a matrix, with one value for each column of a row. */
#ifndef CVY_BACKEND_CPU_BATCH_NORM_ROWS_H
#define CVY_BACKEND_CPU_BATCH_NORM_ROWS_H

#include "backend/cpu/columns.h"

/** Two sums a column. */
typedef struct cvy_sums {
    float first[CVY_COLUMNS_WIDTH];
    float second[CVY_COLUMNS_WIDTH];
} cvy_sums;

/** What makes y of x, a column: y = scale (x - mean) + shift, and with `relu` max(y, 0). */
typedef struct cvy_normaliser {
    bool relu;
    float mean[CVY_COLUMNS_WIDTH];
    float scale[CVY_COLUMNS_WIDTH];
    float shift[CVY_COLUMNS_WIDTH];
} cvy_normaliser;

/** What makes dx, a column: dx = scale (dy - shift - slope (x - mean)). With `relu` dy counts where y is above 0. */
typedef struct cvy_gradient {
    bool relu;
    float mean[CVY_COLUMNS_WIDTH];
    float scale[CVY_COLUMNS_WIDTH];
    float shift[CVY_COLUMNS_WIDTH];
    float slope[CVY_COLUMNS_WIDTH];
    float beta[CVY_COLUMNS_WIDTH]; /**< y = scale (x - mean) + beta */
} cvy_gradient;

/** Add x - centre to the first sums and its square to the second. */
void cvy_rows_deviations(const float *x, const cvy_matrix *matrix, const float *centre, cvy_sums *sums);

/** Add dy to the first sums and dy (x - mean) to the second; with `relu` dy counts where @p normaliser makes y > 0. */
void cvy_rows_gradient_sums(const float *x, const float *dy, const cvy_matrix *matrix,
                            const cvy_normaliser *normaliser, cvy_sums *sums);

/** Normalise; y may be x. */
void cvy_rows_normalise(const float *x, const cvy_matrix *matrix, const cvy_normaliser *normaliser, float *y);

/** The data gradient; dx may be dy. */
void cvy_rows_gradient(const float *x, const float *dy, const cvy_matrix *matrix, const cvy_gradient *gradient,
                       float *dx);

#endif
