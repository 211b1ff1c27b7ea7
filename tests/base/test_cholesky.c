/* Cholesky's factorisation of matrices whose factors are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cholesky.h"

enum { N = 40 };

static void assert_near(double found, double expected, double within)
{
    if (!(fabs(found - expected) <= within)) {
        fail_msg("found %.15g, expected %.15g", found, expected);
    }
}

/* l = 2 | 6 1 | -8 5 3: the determinant is (2 * 1 * 3)^2, and l l^T (1, 1, 1) = (0, 6, 39), the sums of rows. */
static void test_a_matrix_by_hand(void **state)
{
    (void)state;
    static const double l[9] = {2, 0, 0, 6, 1, 0, -8, 5, 3};
    double a[9] = {4, 12, -16, 12, 37, -43, -16, -43, 98}, b[3] = {0, 6, 39};
    assert_true(cvy_cholesky_factor(a, 3));
    assert_memory_equal(a, l, sizeof l);
    cvy_cholesky_solve(a, 3, b);
    for (int i = 0; i < 3; i++) {
        assert_near(b[i], 1.0, 1e-12);
    }
    assert_near(cvy_cholesky_log_determinant(a, 3), log(36.0), 1e-12);
}

/* An inverse times its matrix is 1, in both halves. */
static void test_an_inverse_undoes_its_matrix(void **state)
{
    (void)state;
    static double a[N * N], factor[N * N], inverse[N * N];
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++) {
            a[i * N + k] = exp(-abs(i - k) / 3.0) + (i == k ? 0.1 * i : 0.0);
        }
    }
    memcpy(factor, a, sizeof a);
    assert_true(cvy_cholesky_factor(factor, N));
    cvy_cholesky_invert(factor, N, inverse);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++) {
            double sum = 0.0;
            for (int j = 0; j < N; j++) {
                sum += inverse[i * N + j] * a[j * N + k];
            }
            assert_near(sum, i == k, 1e-12);
        }
    }
}

/* 1 2 | 2 1 has an eigenvalue of -1; what is no number is not positive either. */
static void test_what_is_not_positive_definite_is_told(void **state)
{
    (void)state;
    double wrong[3][4] = {{1, 2, 2, 1}, {NAN, 0, 0, 1}, {INFINITY, 0, 0, 1}};
    for (int i = 0; i < 3; i++) {
        assert_false(cvy_cholesky_factor(wrong[i], 2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_matrix_by_hand),
        cmocka_unit_test(test_an_inverse_undoes_its_matrix),
        cmocka_unit_test(test_what_is_not_positive_definite_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
