/*
 * Weight updates: one pass over gradients, weights and state, padding included (it is zero and stays zero). A chunk
 * whose gradients are not all finite is left as it was, so that NaN never reaches a weight; the rest is updated.
 *
 * A float is not finite where its exponent is all ones, so the largest magnitude, taken as an integer, tells for a
 * whole chunk; the chunk is then in the cache for the update.
 */
#include "backend/cpu/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

static inline uint32_t magnitude_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffffu;
}

CVY_VECTOR bool cvy_cpu_all_finite(const float *values, int64_t count)
{
    uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = magnitude_bits(values[i]);
        largest = largest > bits ? largest : bits;
    }
    return largest < 0x7f800000u;
}

CVY_VECTOR void cvy_cpu_descend(const cvy_cpu_update *with, int64_t first, int64_t last)
{
    const float *dw = with->dw;
    float *w = with->w;
    float scale = with->scale, limit = with->limit, rate = with->rate, decay = with->decay;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        w[i] -= rate * (cvy_cpu_clip(dw[i], scale, limit) + decay * w[i]);
    }
}

CVY_VECTOR static void momentum_range(const cvy_cpu_update *with, int64_t first, int64_t last)
{
    const float *dw = with->dw;
    float *w = with->w, *v = with->momentum;
    float scale = with->scale, limit = with->limit, rate = with->rate, decay = with->decay, mu = with->mu;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float velocity = mu * v[i] + (cvy_cpu_clip(dw[i], scale, limit) + decay * w[i]);
        v[i] = velocity;
        w[i] -= rate * velocity;
    }
}

CVY_VECTOR static void nesterov_range(const cvy_cpu_update *with, int64_t first, int64_t last)
{
    const float *dw = with->dw;
    float *w = with->w, *v = with->momentum;
    float scale = with->scale, limit = with->limit, rate = with->rate, decay = with->decay, mu = with->mu;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float g = cvy_cpu_clip(dw[i], scale, limit) + decay * w[i];
        float velocity = mu * v[i] + g;
        v[i] = velocity;
        w[i] -= rate * (g + mu * velocity);
    }
}

/* Adam has its decay in the gradient and shrinks by 1; AdamW the other way about. */
CVY_VECTOR static void adam_range(const cvy_cpu_update *with, int64_t first, int64_t last)
{
    const float *dw = with->dw;
    float *w = with->w, *m = with->momentum, *s = with->moment2;
    float scale = with->scale, limit = with->limit;
    float rate = with->rate, shrink = with->shrink, beta1 = with->beta1, beta2 = with->beta2;
    float decay = with->decay, new1 = with->new1, new2 = with->new2, correct2 = with->correct2, epsilon = with->epsilon;
#pragma omp simd
    for (int64_t i = first; i < last; i++) {
        float g = cvy_cpu_clip(dw[i], scale, limit) + decay * w[i];
        float mean = beta1 * m[i] + new1 * g;
        float square = beta2 * s[i] + new2 * (g * g);
        m[i] = mean;
        s[i] = square;
        w[i] = shrink * w[i] - rate * mean / (sqrtf(square * correct2) + epsilon);
    }
}

cvy_status cvy_cpu_update_ranges(cvy_cpu_range function, const cvy_cpu_update *with, int64_t count)
{
    int64_t chunks = cvy_ceil_div(count, CVY_CPU_CHUNK);
    int bad = 0;
#pragma omp parallel for schedule(static) reduction(| : bad) if (count > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t first = i * CVY_CPU_CHUNK, last = cvy_min_i64(first + CVY_CPU_CHUNK, count);
        if (cvy_cpu_all_finite(with->dw + first, last - first)) {
            function(with, first, last);
        } else {
            bad = 1;
        }
    }
    CVY_REQUIRE(!bad, CVY_ERR_DIVERGED, "a gradient is not finite");
    return CVY_OK;
}

static float *find_floats(const cvy_op *op, void *const *operand, cvy_role role)
{
    int i = cvy_op_index(op, role);
    return i < 0 ? NULL : operand[i];
}

cvy_cpu_update cvy_cpu_start_update(const cvy_cpu_kernel *kernel, void *const *operand)
{
    const cvy_op *op = &kernel->base.op;
    const cvy_op_params_optimizer *params = &op->params.optimizer;
    int scale = cvy_op_index(op, CVY_ROLE_SCALE);
    return (cvy_cpu_update){.dw = operand[0],
                            .w = operand[1],
                            .momentum = find_floats(op, operand, CVY_ROLE_MOMENTUM),
                            .moment2 = find_floats(op, operand, CVY_ROLE_MOMENT2),
                            .scale = scale < 0 ? 1.0f : (float)*(const double *)operand[scale],
                            .limit = params->clip_value > 0.0 ? (float)params->clip_value : INFINITY,
                            .decay = (float)params->weight_decay,
                            .mu = (float)params->momentum,
                            .shrink = 1.0f};
}

cvy_cpu_update cvy_cpu_start_moments(const cvy_cpu_kernel *kernel, void *const *operand, const cvy_run *run)
{
    const cvy_op_params_optimizer *params = &kernel->base.op.params.optimizer;
    cvy_cpu_update with = cvy_cpu_start_update(kernel, operand);
    with.rate = (float)run->learning_rate;
    with.beta1 = (float)params->beta1;
    with.new1 = (float)(1.0 - params->beta1);
    with.beta2 = (float)params->beta2;
    with.new2 = (float)(1.0 - params->beta2);
    with.correct1 = (float)(1.0 / (1.0 - pow(params->beta1, (double)run->update)));
    with.correct2 = (float)(1.0 / (1.0 - pow(params->beta2, (double)run->update)));
    with.epsilon = (float)params->epsilon;
    return with;
}

static cvy_status run_sgd(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    cvy_cpu_update with = cvy_cpu_start_update(kernel, operand);
    bool nesterov = kernel->base.op.params.optimizer.nesterov;
    with.rate = (float)run->learning_rate;
    return cvy_cpu_update_ranges(!with.momentum ? cvy_cpu_descend : nesterov ? nesterov_range : momentum_range, &with,
                                 kernel->elements);
}

static cvy_status run_adam(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    const cvy_op_params_optimizer *params = &kernel->base.op.params.optimizer;
    cvy_cpu_update with = cvy_cpu_start_moments(kernel, operand, run);
    with.rate = (float)(run->learning_rate / (1.0 - pow(params->beta1, (double)run->update)));
    if (kernel->base.op.kind == CVY_OP_ADAMW) {
        with.decay = 0.0f;
        with.shrink = (float)(1.0 - run->learning_rate * params->weight_decay);
    }
    return cvy_cpu_update_ranges(adam_range, &with, kernel->elements);
}

bool cvy_cpu_lies_as_parameter(const cvy_op *op)
{
    for (int i = 1; i < op->operands; i++) {
        if (!cvy_role_is_total(op->operand[i].role) &&
            !cvy_tensor_same_layout(&op->operand[0].tensor, &op->operand[i].tensor)) {
            return false;
        }
    }
    return true;
}

/* Nesterov's step without a velocity is no one's method: left to the reference. */
static cvy_cpu_run find(const cvy_op *op)
{
    bool known = op->kind != CVY_OP_SGD || cvy_op_find(op, CVY_ROLE_MOMENTUM) || !op->params.optimizer.nesterov;
    if (!known || !cvy_cpu_lies_as_parameter(op)) {
        return NULL;
    }
    return op->kind == CVY_OP_SGD ? run_sgd : run_adam;
}

const cvy_cpu_family cvy_cpu_optimizer = {.find = find};
