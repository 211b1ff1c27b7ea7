/* All inner loops run along rows, over numbers that lie side by side and do not wait for each other. */
#include "base/cholesky.h"

#include <math.h>
#include <string.h>

/* Column by column; what is left of the matrix is brought up to date behind each (right-looking). */
bool cvy_cholesky_factor(double *a, int n)
{
    for (int j = 0; j < n; j++) {
        double *row = a + (long)j * n; /* of the upper half, which holds the transpose until the end */
        if (!(row[j] > 0.0) || isinf(row[j])) {
            return false;
        }
        double scale = 1.0 / sqrt(row[j]);
        for (int i = j; i < n; i++) {
            row[i] *= scale;
        }
        for (int i = j + 1; i < n; i++) {
            double *left = a + (long)i * n, factor = row[i];
            for (int k = i; k < n; k++) {
                left[k] -= factor * row[k];
            }
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = i + 1; k < n; k++) {
            a[(long)k * n + i] = a[(long)i * n + k];
            a[(long)i * n + k] = 0.0;
        }
    }
    return true;
}

void cvy_cholesky_solve(const double *l, int n, double *b)
{
    for (int i = 0; i < n; i++) {
        const double *row = l + (long)i * n;
        for (int k = 0; k < i; k++) {
            b[i] -= row[k] * b[k];
        }
        b[i] /= row[i];
    }
    for (int i = n - 1; i >= 0; i--) {
        const double *row = l + (long)i * n;
        b[i] /= row[i];
        for (int k = 0; k < i; k++) {
            b[k] -= row[k] * b[i];
        }
    }
}

/* The inverse m of l, row by row; then m^T m, each row of which adds to the rows before it. */
void cvy_cholesky_invert(const double *l, int n, double *inverse)
{
    double *m = inverse;
    memset(m, 0, sizeof *m * (size_t)n * (size_t)n);
    for (int i = 0; i < n; i++) {
        const double *row = l + (long)i * n;
        double *out = m + (long)i * n;
        for (int k = 0; k < i; k++) {
            const double *known = m + (long)k * n;
            for (int c = 0; c <= k; c++) {
                out[c] -= row[k] * known[c];
            }
        }
        out[i] = 1.0;
        for (int c = 0; c <= i; c++) {
            out[c] /= row[i];
        }
    }
    for (int i = 0; i < n; i++) { /* row i of m is needed by rows up to i alone, and last by row i itself */
        double *own = m + (long)i * n, corner = own[i];
        for (int r = 0; r < i; r++) {
            double *out = m + (long)r * n, factor = own[r];
            for (int c = 0; c <= r; c++) {
                out[c] += factor * own[c];
            }
        }
        for (int c = 0; c <= i; c++) {
            own[c] *= corner;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = i + 1; k < n; k++) {
            inverse[(long)i * n + k] = inverse[(long)k * n + i];
        }
    }
}

double cvy_cholesky_log_determinant(const double *l, int n)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        sum += 2.0 * log(l[(long)i * n + i]);
    }
    return sum;
}
