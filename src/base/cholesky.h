/*
 * Cholesky's factorisation of a symmetric positive definite matrix, a = l l^T with l lower triangular, row by row of n
 * numbers each. By hand: no library that is linked has it, and what fits take is a few hundred rows at most.
 */
#ifndef CVY_BASE_CHOLESKY_H
#define CVY_BASE_CHOLESKY_H

#include <stdbool.h>

/** Factor in place: l in the lower half and on the diagonal, 0 above. False where @p a is not positive definite. */
bool cvy_cholesky_factor(double *a, int n);

/** Solve l l^T x = b in place. */
void cvy_cholesky_solve(const double *l, int n, double *b);

/** The inverse of l l^T, both halves. @param[out] inverse n x n, not l itself */
void cvy_cholesky_invert(const double *l, int n, double *inverse);

/** ln of the determinant of l l^T. */
double cvy_cholesky_log_determinant(const double *l, int n);

#endif
