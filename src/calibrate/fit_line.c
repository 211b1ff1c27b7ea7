/*
 * A line in logarithms by least squares: normal equations of the standardised features, solved by Cholesky's
 * factorisation. Features depend on each other (flop are a product of sizes), so a little of the identity is added,
 * which keeps weights small where the data do not tell them apart (Hoerl and Kennard, "Ridge regression", 1970).
 */
#include "calibrate/fit.h"

#include <math.h>
#include <string.h>

enum { N = CVY_KERNEL_FEATURES };

static const double ridge = 1e-3; /* by the samples, whose features have a variance of 1 */

/* Solve a x = b of a positive definite matrix; both are overwritten, and b holds x then. */
static void solve(double a[N][N], double b[N], int n)
{
    for (int j = 0; j < n; j++) {
        for (int i = j; i < n; i++) {
            double sum = a[i][j];
            for (int k = 0; k < j; k++) {
                sum -= a[i][k] * a[j][k];
            }
            a[i][j] = i == j ? sqrt(sum) : sum / a[j][j];
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) {
            b[i] -= a[i][k] * b[k];
        }
        b[i] /= a[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) {
            b[i] -= a[k][i] * b[k];
        }
        b[i] /= a[i][i];
    }
}

cvy_status cvy_fit_line_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device,
                             cvy_fit_line *line_out)
{
    cvy_fit_line line = {0};
    double matrix[N][N] = {{0}}, right[N] = {0}, x[N];
    cvy_fit_inputs_find(sample, count, &line.inputs);
    CVY_REQUIRE(count >= line.inputs.count && count > 0, CVY_ERR_INFEASIBLE, "%d samples for a line of %d inputs",
                count, line.inputs.count);
    for (int i = 0; i < count; i++) {
        line.bias += cvy_fit_target(device, &sample[i]) / count;
    }
    for (int i = 0; i < count; i++) {
        double rest = cvy_fit_target(device, &sample[i]) - line.bias;
        cvy_fit_inputs_get(&line.inputs, &sample[i], x);
        for (int r = 0; r < line.inputs.count; r++) {
            right[r] += rest * x[r];
            for (int c = 0; c < line.inputs.count; c++) {
                matrix[r][c] += x[r] * x[c];
            }
        }
    }
    for (int r = 0; r < line.inputs.count; r++) {
        matrix[r][r] += ridge * count;
    }
    solve(matrix, right, line.inputs.count);
    memcpy(line.weight, right, sizeof right);
    *line_out = line;
    return CVY_OK;
}

double cvy_fit_line_estimate(const cvy_fit_line *line, const cvy_fit_device *device, const cvy_fit_sample *sample)
{
    double x[N], sum = line->bias;
    cvy_fit_inputs_get(&line->inputs, sample, x);
    for (int i = 0; i < line->inputs.count; i++) {
        sum += line->weight[i] * x[i];
    }
    return cvy_fit_roof_s(device, sample) * exp(sum);
}
