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

static double find_roof_s(const cvy_fit_device *device, const cvy_fit_sample *sample)
{
    return fmax(sample->flop / device->peak_flop_per_s, sample->bytes / device->memory_Bps);
}

static double find_target(const cvy_fit_device *device, const cvy_fit_sample *sample)
{
    return log(sample->seconds / find_roof_s(device, sample));
}

/* Keep the features that differ. */
static void find_inputs(const cvy_fit_sample *sample, int count, cvy_fit_line *line)
{
    for (int k = 0; k < N; k++) {
        double sum = 0.0, squares = 0.0, low = INFINITY, high = -INFINITY;
        for (int i = 0; i < count; i++) {
            double value = sample[i].feature[k];
            sum += value;
            low = fmin(low, value);
            high = fmax(high, value);
        }
        for (int i = 0; i < count; i++) {
            squares += (sample[i].feature[k] - sum / count) * (sample[i].feature[k] - sum / count);
        }
        if (high > low) {
            int at = line->inputs++;
            line->input[at] = k;
            line->mean[at] = sum / count;
            line->deviation[at] = sqrt(squares / count);
            line->low[at] = low;
            line->high[at] = high;
        }
    }
}

static void standardise(const cvy_fit_line *line, const cvy_fit_sample *sample, double *x)
{
    for (int i = 0; i < line->inputs; i++) {
        x[i] = (sample->feature[line->input[i]] - line->mean[i]) / line->deviation[i];
    }
}

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
    find_inputs(sample, count, &line);
    CVY_REQUIRE(count >= 2 * line.inputs && count > 0, CVY_ERR_INFEASIBLE, "%d samples for a line of %d inputs", count,
                line.inputs);
    for (int i = 0; i < count; i++) {
        line.bias += find_target(device, &sample[i]) / count;
    }
    for (int i = 0; i < count; i++) {
        double rest = find_target(device, &sample[i]) - line.bias;
        standardise(&line, &sample[i], x);
        for (int r = 0; r < line.inputs; r++) {
            right[r] += rest * x[r];
            for (int c = 0; c < line.inputs; c++) {
                matrix[r][c] += x[r] * x[c];
            }
        }
    }
    for (int r = 0; r < line.inputs; r++) {
        matrix[r][r] += ridge * count;
    }
    solve(matrix, right, line.inputs);
    memcpy(line.weight, right, sizeof right);
    *line_out = line;
    return CVY_OK;
}

double cvy_fit_line_estimate(const cvy_fit_line *line, const cvy_fit_device *device, const cvy_fit_sample *sample)
{
    double x[N], sum = line->bias;
    standardise(line, sample, x);
    for (int i = 0; i < line->inputs; i++) {
        sum += line->weight[i] * x[i];
    }
    return find_roof_s(device, sample) * exp(sum);
}
