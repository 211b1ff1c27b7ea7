/*
 * Adam (Kingma and Ba, arXiv:1412.6980) on the gradient of the likelihood. With the covariance K of the samples, its
 * inverse and a = K^-1 y, the derivative of 1/2 y.a + 1/2 ln det K by a parameter is 1/2 sum of (K^-1 - a a^T) dK
 * (equation 5.9). Of a length l it is, by ln l, dK = 3 spread^2 exp(-sqrt(3) d) (x - z)^2 / l^2.
 */
#include "calibrate/gaussian_trainer.h"

#include <math.h>
#include <string.h>

#include "base/cholesky.h"
#include "base/memory.h"

enum { STEPS = 60 };

/*
 * Pulls are those of normal distributions with deviations of 0.6 and 1.5. By cross-validation on 6000 kernels of two
 * calibrations: without them errors are a tenth larger, with 1 for 0.6 a fiftieth.
 */
static const double rate = 0.1, least_variance = 1e-6;
static const double pull_of_lengths = 1.0 / (0.6 * 0.6), pull_of_others = 1.0 / (1.5 * 1.5);

struct cvy_gaussian_trainer {
    cvy_gaussian_lesson lesson;
    double deviation;                   /* of y */
    double *columns;                    /* x, samples side by side */
    double *scaled;                     /* the same by the lengths */
    double *smooth, *decay, *product;   /* of each pair: (1 + sqrt(3) d) exp(-sqrt(3) d), its exponential, x.z */
    double *factor, *inverse;           /* of the covariance */
    double *weight, *row;               /* a; room for a row */
};

cvy_status cvy_gaussian_trainer_create(const cvy_gaussian_lesson *lesson, cvy_gaussian_trainer **trainer_out)
{
    const size_t n = (size_t)lesson->samples, inputs = (size_t)lesson->inputs;
    cvy_status status = CVY_ERR_MEMORY;
    cvy_gaussian_trainer *t = cvy_calloc(1, sizeof *t);
    CVY_TRY_GOTO(status, done, t ? CVY_OK : CVY_ERR_MEMORY);
    t->lesson = *lesson;
    double **const pairs[] = {&t->smooth, &t->decay, &t->product, &t->factor, &t->inverse};
    bool whole = true;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        *pairs[i] = cvy_calloc(n * n, sizeof(double));
        whole = whole && *pairs[i];
    }
    t->columns = cvy_calloc(n * inputs, sizeof(double));
    t->scaled = cvy_calloc(n * inputs, sizeof(double));
    t->weight = cvy_calloc(n, sizeof(double));
    t->row = cvy_calloc(n, sizeof(double));
    CVY_TRY_GOTO(status, done, whole && t->columns && t->scaled && t->weight && t->row ? CVY_OK : CVY_ERR_MEMORY);
    double squares = 0.0;
    for (int i = 0; i < lesson->samples; i++) {
        squares += lesson->y[i] * lesson->y[i];
        for (int k = 0; k < lesson->inputs; k++) {
            t->columns[k * lesson->samples + i] = lesson->x[i * lesson->inputs + k];
        }
    }
    t->deviation = fmax(sqrt(squares / lesson->samples), 1e-3);
    for (int i = 0; i < lesson->samples; i++) { /* pairs' products never change */
        for (int k = 0; k < lesson->inputs; k++) {
            double x = t->columns[k * lesson->samples + i];
            for (int j = 0; j < lesson->samples; j++) {
                t->product[i * lesson->samples + j] += x * t->columns[k * lesson->samples + j];
            }
        }
    }
    *trainer_out = t;
    t = NULL;
done:
    cvy_gaussian_trainer_destroy(&t);
    return status;
}

void cvy_gaussian_trainer_destroy(cvy_gaussian_trainer **trainer)
{
    cvy_gaussian_trainer *t = *trainer;
    if (t) {
        double *const owned[] = {t->smooth,  t->decay,  t->product, t->factor, t->inverse,
                                 t->columns, t->scaled, t->weight,  t->row};
        for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
            cvy_free(owned[i]);
        }
        cvy_free(t);
        *trainer = NULL;
    }
}

/* Lengths at which inputs of deviation 1 are one apart on average, a line that says a third, a clock off by a tenth. */
void cvy_gaussian_trainer_begin(const cvy_gaussian_trainer *t, double *logarithm)
{
    const int inputs = t->lesson.inputs;
    for (int k = 0; k < inputs; k++) {
        logarithm[k] = 0.5 * log(inputs);
    }
    logarithm[inputs + CVY_GAUSSIAN_SPREAD] = log(t->deviation);
    logarithm[inputs + CVY_GAUSSIAN_NOISE] = log(0.1);
    logarithm[inputs + CVY_GAUSSIAN_SLOPE] = log(0.3 * t->deviation) - 0.5 * log(inputs);
}

/* What pairs have in common by the lengths. */
static void compare(cvy_gaussian_trainer *t, const double *logarithm)
{
    const int n = t->lesson.samples, inputs = t->lesson.inputs;
    for (int k = 0; k < inputs; k++) {
        double scale = exp(-logarithm[k]);
        for (int i = 0; i < n; i++) {
            t->scaled[k * n + i] = t->columns[k * n + i] * scale;
        }
    }
    for (int i = 0; i < n; i++) {
        double *smooth = t->smooth + (long)i * n, *decay = t->decay + (long)i * n, *square = t->row;
        memset(square, 0, sizeof *square * (size_t)n);
        for (int k = 0; k < inputs; k++) {
            const double *column = t->scaled + (long)k * n, x = column[i];
            for (int j = 0; j < n; j++) {
                square[j] += (column[j] - x) * (column[j] - x);
            }
        }
        for (int j = 0; j <= i; j++) {
            double d = sqrt(3.0 * square[j]), fallen = exp(-d);
            decay[j] = t->decay[(long)j * n + i] = fallen;
            smooth[j] = t->smooth[(long)j * n + i] = (1.0 + d) * fallen;
        }
    }
}

/* Weights, the factor and the inverse. */
static bool solve(cvy_gaussian_trainer *t, double spread2, double noise2, double slope2)
{
    const int n = t->lesson.samples;
    for (long i = 0; i < (long)n * n; i++) {
        t->factor[i] = spread2 * t->smooth[i] + slope2 * t->product[i];
    }
    for (int i = 0; i < n; i++) {
        t->factor[(long)i * n + i] += noise2 + least_variance;
    }
    if (!cvy_cholesky_factor(t->factor, n)) {
        return false;
    }
    memcpy(t->weight, t->lesson.y, sizeof *t->weight * (size_t)n);
    cvy_cholesky_solve(t->factor, n, t->weight);
    cvy_cholesky_invert(t->factor, n, t->inverse);
    return true;
}

/* The sum over pairs of w (x - z)^2, of one input. */
static double sum_apart(const cvy_gaussian_trainer *t, int input, const double *w)
{
    const int n = t->lesson.samples;
    const double *x = t->scaled + (long)input * n;
    double sum = 0.0;
    memset(t->row, 0, sizeof *t->row * (size_t)n);
    for (int i = 0; i < n; i++) {
        const double *row = w + (long)i * n;
        for (int j = 0; j < n; j++) {
            t->row[j] += row[j] * (x[i] - x[j]) * (x[i] - x[j]);
        }
    }
    for (int j = 0; j < n; j++) {
        sum += t->row[j];
    }
    return sum;
}

cvy_status cvy_gaussian_trainer_judge(cvy_gaussian_trainer *t, const double *logarithm, double *unlikely_out,
                                      double *gradient_out)
{
    const int n = t->lesson.samples, inputs = t->lesson.inputs;
    const double *other = logarithm + inputs;
    const double spread2 = exp(2.0 * other[CVY_GAUSSIAN_SPREAD]), noise2 = exp(2.0 * other[CVY_GAUSSIAN_NOISE]);
    const double slope2 = exp(2.0 * other[CVY_GAUSSIAN_SLOPE]);
    double begin[CVY_GAUSSIAN_MAX_LOGARITHMS], *gradient = gradient_out, of_other[CVY_GAUSSIAN_OTHERS] = {0};
    compare(t, logarithm);
    bool solved = solve(t, spread2, noise2, slope2);
    CVY_REQUIRE(solved, CVY_ERR_INFEASIBLE, "samples of a process are too much alike");
    double unlikely = 0.5 * cvy_cholesky_log_determinant(t->factor, n);
    for (int i = 0; i < n; i++) {
        unlikely += 0.5 * t->weight[i] * t->lesson.y[i];
        for (int j = 0; j < n; j++) {
            long at = (long)i * n + j;
            double w = t->inverse[at] - t->weight[i] * t->weight[j];
            of_other[CVY_GAUSSIAN_SPREAD] += w * spread2 * t->smooth[at];
            of_other[CVY_GAUSSIAN_SLOPE] += w * slope2 * t->product[at];
            of_other[CVY_GAUSSIAN_NOISE] += i == j ? w * noise2 : 0.0;
            t->factor[at] = w * 1.5 * spread2 * t->decay[at];
        }
    }
    cvy_gaussian_trainer_begin(t, begin);
    for (int k = 0; k < inputs + CVY_GAUSSIAN_OTHERS; k++) {
        double pull = k < inputs ? pull_of_lengths : pull_of_others, off = logarithm[k] - begin[k];
        gradient[k] = (k < inputs ? sum_apart(t, k, t->factor) : of_other[k - inputs]) + pull * off;
        unlikely += 0.5 * pull * off * off;
    }
    *unlikely_out = unlikely;
    return CVY_OK;
}

cvy_status cvy_gaussian_trainer_run(cvy_gaussian_trainer *t, cvy_likeness *likeness_out)
{
    static const double fade = 0.9, fade_of_squares = 0.999, epsilon = 1e-8;
    const int inputs = t->lesson.inputs, count = inputs + CVY_GAUSSIAN_OTHERS;
    double at[CVY_GAUSSIAN_MAX_LOGARITHMS], gradient[CVY_GAUSSIAN_MAX_LOGARITHMS], unlikely;
    double mean[CVY_GAUSSIAN_MAX_LOGARITHMS] = {0}, square[CVY_GAUSSIAN_MAX_LOGARITHMS] = {0};
    cvy_gaussian_trainer_begin(t, at);
    for (int step = 1; step <= STEPS; step++) {
        CVY_TRY(cvy_gaussian_trainer_judge(t, at, &unlikely, gradient));
        for (int k = 0; k < count; k++) {
            mean[k] = fade * mean[k] + (1.0 - fade) * gradient[k];
            square[k] = fade_of_squares * square[k] + (1.0 - fade_of_squares) * gradient[k] * gradient[k];
            double towards = mean[k] / (1.0 - pow(fade, step));
            at[k] -= rate * towards / (sqrt(square[k] / (1.0 - pow(fade_of_squares, step))) + epsilon);
        }
    }
    *likeness_out = (cvy_likeness){.spread = exp(at[inputs + CVY_GAUSSIAN_SPREAD]),
                                   .slope = exp(at[inputs + CVY_GAUSSIAN_SLOPE]),
                                   .noise = sqrt(exp(2.0 * at[inputs + CVY_GAUSSIAN_NOISE]) + least_variance)};
    for (int k = 0; k < inputs; k++) {
        likeness_out->length[k] = exp(at[k]);
    }
    return CVY_OK;
}
