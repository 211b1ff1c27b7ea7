/*
 * Weight updates: one pass over gradients, weights and state, padding included (it is zero and stays zero). A chunk
 * whose gradients are not all finite is left as it was, so that NaN never reaches a weight; the rest is updated.
 *
 * A float is not finite where its exponent is all ones, so the largest magnitude, taken as an integer, tells for a
 * whole chunk; the chunk is then in the cache for the update.
 */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* One update of a parameter; coefficients are worked out in double once. */
typedef struct update {
    const float *dw;
    float *w, *momentum, *moment2;
    float rate;                       /* Adam: with the correction of the first moment */
    float decay, mu;                  /* decay within the gradient; momentum of SGD */
    float beta1, new1, beta2, new2;   /* Adam: shares of the old and the new in the moments */
    float shrink, correct2, epsilon;  /* Adam: factor of the weights (AdamW's decay), correction of the second moment */
} update;

typedef void (*range_function)(const update *with, int64_t first, int64_t last);

static inline uint32_t magnitude_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffffu;
}

CVY_VECTOR static bool all_finite(const float *values, int64_t count)
{
    uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = magnitude_bits(values[i]);
        largest = largest > bits ? largest : bits;
    }
    return largest < 0x7f800000u;
}

CVY_VECTOR static void sgd_range(const update *with, int64_t first, int64_t last)
{
    const float *dw = with->dw;
    float *w = with->w;
    float rate = with->rate, decay = with->decay;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        w[i] -= rate * (dw[i] + decay * w[i]);
    }
}

CVY_VECTOR static void momentum_range(const update *with, int64_t first, int64_t last)
{
    const float *dw = with->dw;
    float *w = with->w, *v = with->momentum;
    float rate = with->rate, decay = with->decay, mu = with->mu;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float velocity = mu * v[i] + (dw[i] + decay * w[i]);
        v[i] = velocity;
        w[i] -= rate * velocity;
    }
}

CVY_VECTOR static void nesterov_range(const update *with, int64_t first, int64_t last)
{
    const float *dw = with->dw;
    float *w = with->w, *v = with->momentum;
    float rate = with->rate, decay = with->decay, mu = with->mu;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float g = dw[i] + decay * w[i];
        float velocity = mu * v[i] + g;
        v[i] = velocity;
        w[i] -= rate * (g + mu * velocity);
    }
}

/* Adam has its decay in the gradient and shrinks by 1; AdamW the other way about. */
CVY_VECTOR static void adam_range(const update *with, int64_t first, int64_t last)
{
    const float *dw = with->dw;
    float *w = with->w, *m = with->momentum, *s = with->moment2;
    float rate = with->rate, shrink = with->shrink, beta1 = with->beta1, beta2 = with->beta2;
    float decay = with->decay, new1 = with->new1, new2 = with->new2, correct2 = with->correct2, epsilon = with->epsilon;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float g = dw[i] + decay * w[i];
        float mean = beta1 * m[i] + new1 * g;
        float square = beta2 * s[i] + new2 * (g * g);
        m[i] = mean;
        s[i] = square;
        w[i] = shrink * w[i] - rate * mean / (sqrtf(square * correct2) + epsilon);
    }
}

static cvy_status update_ranges(range_function function, const update *with, int64_t count)
{
    int64_t chunks = cvy_ceil_div(count, CVY_CPU_CHUNK);
    int bad = 0;
#pragma omp parallel for schedule(static) reduction(| : bad) if (count > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t first = i * CVY_CPU_CHUNK, last = cvy_min_i64(first + CVY_CPU_CHUNK, count);
        if (all_finite(with->dw + first, last - first)) {
            function(with, first, last);
        } else {
            bad = 1;
        }
    }
    CVY_REQUIRE(!bad, CVY_ERR_DIVERGED, "a gradient is not finite");
    return CVY_OK;
}

static cvy_status run_sgd(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    const cvy_op_params_optimizer *optimizer = &kernel->base.op.params.optimizer;
    bool velocity = kernel->base.op.operands > 2;
    update with = {.dw = operand[0], .w = operand[1], .momentum = velocity ? operand[2] : NULL,
                   .rate = (float)run->learning_rate, .decay = (float)optimizer->weight_decay,
                   .mu = (float)optimizer->momentum};
    range_function function = !velocity ? sgd_range : optimizer->nesterov ? nesterov_range : momentum_range;
    return update_ranges(function, &with, kernel->elements);
}

static cvy_status run_adam(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    const cvy_op_params_optimizer *optimizer = &kernel->base.op.params.optimizer;
    bool decoupled = kernel->base.op.kind == CVY_OP_ADAMW;
    double beta1 = optimizer->beta1, beta2 = optimizer->beta2, time = (double)run->update;
    update with = {.dw = operand[0], .w = operand[1], .momentum = operand[2], .moment2 = operand[3],
                   .rate = (float)(run->learning_rate / (1 - pow(beta1, time))),
                   .beta1 = (float)beta1, .new1 = (float)(1 - beta1),
                   .beta2 = (float)beta2, .new2 = (float)(1 - beta2),
                   .decay = decoupled ? 0.0f : (float)optimizer->weight_decay,
                   .shrink = decoupled ? (float)(1 - run->learning_rate * optimizer->weight_decay) : 1.0f,
                   .correct2 = (float)(1 / (1 - pow(beta2, time))), .epsilon = (float)optimizer->epsilon};
    return update_ranges(adam_range, &with, kernel->elements);
}

/* Nesterov's step without a velocity is no one's method: left to the reference. */
static cvy_cpu_run find(const cvy_op *op)
{
    bool known = op->kind != CVY_OP_SGD || op->operands > 2 || !op->params.optimizer.nesterov;
    if (!known || !cvy_cpu_same_layout(op)) {
        return NULL;
    }
    return op->kind == CVY_OP_SGD ? run_sgd : run_adam;
}

const cvy_cpu_family cvy_cpu_optimizer = {.find = find};
