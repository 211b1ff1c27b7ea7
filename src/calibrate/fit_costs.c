/*
 * The base of a process: a sum of costs, none of them below 0 (Lawson and Hanson, "Solving least squares problems",
 * 1974, chapter 23), by least squares of logarithms. In each round the logarithm of the sum is taken as straight about
 * what the sum was (Gauss and Newton), which leaves least squares with weights; these are minimised along one cost
 * after the other, none of which may fall below 0. What is far off pulls no more than what is off by a factor of e.
 */
#include "calibrate/fit.h"

#include <math.h>

#include "base/memory.h"

enum { N = CVY_KERNEL_COSTS, ROUNDS = 7, SWEEPS = 2000 };

static const double most_off = 1.0, ridge = 1e-6;

typedef struct normal_equations {
    double matrix[N][N], right[N];
} normal_equations;

/* Along one unknown after the other. */
static void descend(const normal_equations *s, double x[N])
{
    for (int j = 0; j < N; j++) {
        x[j] = 0.0;
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (int j = 0; j < N; j++) {
            double rest = s->right[j];
            for (int k = 0; k < N; k++) {
                rest -= s->matrix[j][k] * x[k];
            }
            x[j] = s->matrix[j][j] > 0.0 ? fmax(0.0, x[j] + rest / s->matrix[j][j]) : 0.0;
        }
    }
}

/* Costs by their own size, so that they are alike and the ridge pulls at all of them. */
static void solve(const double *unit, const double *wanted, int count, double x[N])
{
    normal_equations s = {{{0}}, {0}};
    double size[N];
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < N; j++) {
            s.right[j] += unit[i * N + j] * wanted[i];
            for (int k = 0; k < N; k++) {
                s.matrix[j][k] += unit[i * N + j] * unit[i * N + k];
            }
        }
    }
    for (int j = 0; j < N; j++) {
        size[j] = s.matrix[j][j] > 0.0 ? sqrt(s.matrix[j][j]) : 1.0;
    }
    for (int j = 0; j < N; j++) {
        s.right[j] /= size[j];
        for (int k = 0; k < N; k++) {
            s.matrix[j][k] /= size[j] * size[k];
        }
        s.matrix[j][j] *= 1.0 + ridge;
    }
    descend(&s, x);
    for (int j = 0; j < N; j++) {
        x[j] /= size[j];
    }
}

static double sum_up(const double *units, const double x[N])
{
    double sum = 0.0;
    for (int j = 0; j < N; j++) {
        sum += units[j] * x[j];
    }
    return sum;
}

/* First by relative errors; then by logarithms. */
static void find_seconds(const double *units, const cvy_fit_sample *sample, int count, double *unit, double *wanted,
                         double x[N])
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < count; i++) {
            double now = round == 0 ? sample[i].seconds : fmax(sum_up(units + i * N, x), 1e-12);
            wanted[i] = 1.0 + fmax(-most_off, fmin(most_off, log(sample[i].seconds / now)));
            for (int j = 0; j < N; j++) {
                unit[i * N + j] = units[i * N + j] / now;
            }
        }
        solve(unit, wanted, count, x);
    }
}

cvy_status cvy_fit_costs_find(const cvy_fit_sample *sample, int count, cvy_cost_sum *sum_out)
{
    double x[N] = {0}, *room = cvy_calloc((size_t)count * (2 * N + 1), sizeof *room);
    if (!room) {
        return CVY_ERR_MEMORY;
    }
    double *units = room, *unit = room + count * N, *wanted = unit + count * N;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < N; j++) {
            units[i * N + j] = cvy_kernel_count_cost(j, sample[i].feature, sample[i].flop, sample[i].bytes);
        }
    }
    find_seconds(units, sample, count, unit, wanted, x);
    sum_out->costs = 0;
    for (int j = 0; j < N; j++) {
        if (x[j] > 0.0) {
            sum_out->cost[sum_out->costs] = j;
            sum_out->seconds[sum_out->costs++] = x[j];
        }
    }
    cvy_free(room);
    return CVY_OK;
}
