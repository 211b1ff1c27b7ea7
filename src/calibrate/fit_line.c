/*
 * A line in logarithms by least squares: normal equations of the standardised features, solved by Cholesky's
 * factorisation. Features depend on each other (flop are a product of sizes), so a little of the identity is added,
 * which keeps weights small where the data do not tell them apart (Hoerl and Kennard, "Ridge regression", 1970).
 */
#include "calibrate/fit.h"

#include <math.h>
#include <string.h>

#include "base/cholesky.h"

enum { N = CVY_KERNEL_FEATURES };

static const double ridge = 1e-3; /* by the samples, whose features have a variance of 1 */

cvy_status cvy_fit_line_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device,
                             cvy_fit_line *line_out)
{
    cvy_fit_line line = {0};
    double matrix[N * N] = {0}, right[N] = {0}, x[N];
    cvy_fit_inputs_find(sample, count, &line.inputs);
    CVY_REQUIRE(count >= line.inputs.count && count > 0, CVY_ERR_INFEASIBLE, "%d samples for a line of %d inputs",
                count, line.inputs.count);
    for (int i = 0; i < count; i++) {
        line.bias += cvy_fit_target(device, &sample[i]) / count;
    }
    const int n = line.inputs.count;
    for (int i = 0; i < count; i++) {
        double rest = cvy_fit_target(device, &sample[i]) - line.bias;
        cvy_fit_inputs_get(&line.inputs, &sample[i], x);
        for (int r = 0; r < n; r++) {
            right[r] += rest * x[r];
            for (int c = 0; c < n; c++) {
                matrix[r * n + c] += x[r] * x[c];
            }
        }
    }
    for (int r = 0; r < n; r++) {
        matrix[r * n + r] += ridge * count;
    }
    bool solved = cvy_cholesky_factor(matrix, n);
    CVY_REQUIRE(solved, CVY_ERR_INFEASIBLE, "%d samples that no line fits", count);
    cvy_cholesky_solve(matrix, n, right);
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
