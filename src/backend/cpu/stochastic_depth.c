/*
 * Stochastic depth, forward and backward alike: all of a sample is dropped or scaled. Whether it is, is a function of
 * the seed, the layer, the step and the sample's place in the global batch, so it is drawn anew each time.
 */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"
#include "base/random.h"

CVY_VECTOR static void scale_range(const float *x, float factor, float *y, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = factor * x[i];
    }
}

/* 0 or 1 / (1 - probability). */
static float draw_factor(const cvy_op_params_dropout *params, const cvy_run *run, int64_t sample)
{
    cvy_words words = cvy_random_words(run->seed, CVY_PURPOSE_STOCHASTIC_DEPTH, (uint32_t)params->layer,
                                       (uint32_t)run->step, (uint32_t)(run->sample_first + sample), 0);
    bool dropped = (double)cvy_random_unit(words.v[0]) < params->probability;
    return dropped ? 0 : (float)(1 / (1 - params->probability));
}

static cvy_status run_samples(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    const float *x = operand[0];
    float *y = operand[1];
    int64_t samples = kernel->columns.samples, values = kernel->columns.sample_stride;
    int64_t chunks = cvy_ceil_div(values, CVY_CPU_CHUNK);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < samples * chunks; i++) {
        int64_t first = i % chunks * CVY_CPU_CHUNK, at = i / chunks * values + first;
        int64_t count = cvy_min_i64(CVY_CPU_CHUNK, values - first);
        float factor = draw_factor(&kernel->base.op.params.dropout, run, i / chunks);
        if (factor == 0) { /* what is dropped is 0 even where x is not finite */
            memset(y + at, 0, (size_t)count * sizeof *y);
        } else {
            scale_range(x + at, factor, y + at, count);
        }
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    return cvy_cpu_same_layout(op) && cvy_columns_fit(&op->operand[0].tensor) ? run_samples : NULL;
}

const cvy_cpu_family cvy_cpu_stochastic_depth = {.find = find};
