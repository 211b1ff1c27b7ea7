/* What goes along with updates, as a walk over a parameter in chunks: its average over them. */
#include "backend/cpu/optimizer.h"
#include "base/checked.h"

CVY_VECTOR static void average_range(const float *w, float *average, float decay, float rest, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        average[i] = decay * average[i] + rest * w[i];
    }
}

static cvy_status run_average(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const float *w = operand[0];
    float *average = operand[1];
    double decay = kernel->base.op.params.average.decay;
    (void)scratch;
    (void)run;
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t first = 0; first < kernel->elements; first += CVY_CPU_CHUNK) {
        average_range(w + first, average + first, (float)decay, (float)(1.0 - decay),
                      cvy_min_i64(CVY_CPU_CHUNK, kernel->elements - first));
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op) { return cvy_cpu_same_layout(op) ? run_average : NULL; }

const cvy_cpu_family cvy_cpu_average = {.find = find};
