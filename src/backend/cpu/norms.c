/*
 * Sums of squares, in double over chunks that the shape alone decides, added up in their order: the same for any number
 * of threads. And the rules that follow norms, LARS and LAMB: the factor of a parameter is worked out once, the rest is
 * a walk over it (formulas and sources in op.h and backend/ref/norms.c). Clipping's few numbers are left to `ref`.
 */
#include <math.h>

#include "backend/cpu/optimizer.h"
#include "base/checked.h"

CVY_VECTOR static double sum_chunk(const float *x, int64_t count)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sum;
}

static cvy_status run_square_sum(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const float *x = operand[0];
    double *part = scratch;
    double sum = 0.0;
    int64_t chunks = cvy_ceil_div(kernel->elements, CVY_CPU_CHUNK);
    (void)run;
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < chunks; i++) {
        part[i] = sum_chunk(x + i * CVY_CPU_CHUNK, cvy_min_i64(CVY_CPU_CHUNK, kernel->elements - i * CVY_CPU_CHUNK));
    }
    for (int64_t i = 0; i < chunks; i++) {
        sum += part[i];
    }
    CVY_REQUIRE(isfinite(sum), CVY_ERR_DIVERGED, "a gradient is not finite");
    ((double *)operand[1])[kernel->base.op.params.squares.slot] = sum;
    return CVY_OK;
}

/* Norms of what moves a parameter and of the parameter; false where it is not adapted, or one of them is 0. */
static bool load_norms(const cvy_op *op, void *const *operand, double norm_out[2])
{
    int squares = cvy_op_index(op, CVY_ROLE_SQUARES);
    for (int i = 0; squares >= 0 && i < 2; i++) {
        norm_out[i] = sqrt(((const double *)operand[squares])[op->params.optimizer.slot + i]);
    }
    return squares >= 0 && norm_out[0] > 0.0 && norm_out[1] > 0.0;
}

CVY_VECTOR static void lars_range(const cvy_cpu_update *with, int64_t first, int64_t last)
{
    const float *dw = with->dw;
    float *w = with->w, *v = with->momentum;
    float scale = with->scale, limit = with->limit, rate = with->rate, decay = with->decay, mu = with->mu;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float velocity = mu * v[i] + rate * (cvy_cpu_clip(dw[i], scale, limit) + decay * w[i]);
        v[i] = velocity;
        w[i] -= velocity;
    }
}

static cvy_status run_lars(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_op_params_optimizer *params = &kernel->base.op.params.optimizer;
    cvy_cpu_update with = cvy_cpu_start_update(kernel, operand);
    double norm[2];
    double rate = run->learning_rate;
    (void)scratch;
    if (load_norms(&kernel->base.op, operand, norm)) {
        rate *= params->trust * norm[1] / ((double)with.scale * norm[0] + params->weight_decay * norm[1]);
    }
    with.rate = (float)rate;
    return cvy_cpu_update_ranges(lars_range, &with, kernel->elements);
}

CVY_VECTOR static void direction_range(const cvy_cpu_update *with, int64_t first, int64_t last)
{
    const float *w = with->w;
    float *dw = with->dw, *m = with->momentum, *s = with->moment2;
    float scale = with->scale, limit = with->limit, decay = with->decay, beta1 = with->beta1, beta2 = with->beta2;
    float new1 = with->new1, new2 = with->new2, correct1 = with->correct1, correct2 = with->correct2;
    float epsilon = with->epsilon;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float g = cvy_cpu_clip(dw[i], scale, limit);
        float mean = beta1 * m[i] + new1 * g;
        float square = beta2 * s[i] + new2 * (g * g);
        m[i] = mean;
        s[i] = square;
        dw[i] = mean * correct1 / (sqrtf(square * correct2) + epsilon) + decay * w[i];
    }
}

static cvy_status run_direction(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    cvy_cpu_update with = cvy_cpu_start_moments(kernel, operand, run);
    return cvy_cpu_update_ranges(direction_range, &with, kernel->elements);
}

static cvy_status run_lamb(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    double norm[2];
    double ratio = load_norms(&kernel->base.op, operand, norm) ? norm[1] / norm[0] : 1.0;
    cvy_cpu_update with = {.dw = operand[0], .w = operand[1], .scale = 1.0f, .limit = INFINITY,
                           .rate = (float)(run->learning_rate * ratio)};
    (void)scratch;
    return cvy_cpu_update_ranges(cvy_cpu_descend, &with, kernel->elements);
}

static cvy_cpu_run find(const cvy_op *op)
{
    if (!cvy_cpu_lies_as_parameter(op)) {
        return NULL;
    }
    switch (op->kind) {
    case CVY_OP_SQUARE_SUM: return run_square_sum;
    case CVY_OP_LARS: return run_lars;
    case CVY_OP_LAMB_DIRECTION: return run_direction;
    default: return run_lamb;
    }
}

static void setup(cvy_cpu_kernel *kernel)
{
    if (kernel->base.op.kind == CVY_OP_SQUARE_SUM) {
        kernel->scratch_bytes = sizeof(double) * (size_t)cvy_ceil_div(kernel->elements, CVY_CPU_CHUNK);
    }
}

const cvy_cpu_family cvy_cpu_norms = {.find = find, .setup = setup};
