/* What the kernels that update weights share: one update, worked out in double, and a walk over a parameter. */
#ifndef CVY_BACKEND_CPU_OPTIMIZER_H
#define CVY_BACKEND_CPU_OPTIMIZER_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"

/** One update of a parameter. */
typedef struct cvy_cpu_update {
    float *dw; /**< written by LAMB's direction alone */
    float *w, *momentum, *moment2;
    float scale, limit;               /**< clipping: factor of the gradient, 1 for none; its bound, infinite for none */
    float rate;                       /**< Adam: with the correction of the first moment */
    float decay, mu;                  /**< decay within the gradient; momentum of SGD */
    float beta1, new1, beta2, new2;   /**< Adam: shares of the old and the new in the moments */
    float shrink, correct2, epsilon;  /**< Adam: factor of the weights (AdamW's decay), correction of moment 2 */
    float correct1;                   /**< LAMB: correction of the first moment */
} cvy_cpu_update;

/** Updates the elements first to last - 1. */
typedef void (*cvy_cpu_range)(const cvy_cpu_update *with, int64_t first, int64_t last);

/** A gradient as a rule is to see it: clipped. */
static inline float cvy_cpu_clip(float dw, float scale, float limit)
{
    float g = scale * dw;
    g = g > limit ? limit : g;
    return g < -limit ? -limit : g;
}

/** What an op's parameters and operands say of an update; the rest is the rule's. */
cvy_cpu_update cvy_cpu_start_update(const cvy_cpu_kernel *kernel, void *const *operand);

/** As cvy_cpu_start_update(), with what the moments of Adam and LAMB need; the rate is as it is. */
cvy_cpu_update cvy_cpu_start_moments(const cvy_cpu_kernel *kernel, void *const *operand, const cvy_run *run);

/** Walk over a parameter in chunks. @retval CVY_ERR_DIVERGED some gradients are not finite: their chunks stay */
cvy_status cvy_cpu_update_ranges(cvy_cpu_range function, const cvy_cpu_update *with, int64_t count);

/** Whether the operands that are shaped as the parameter lie alike. */
bool cvy_cpu_lies_as_parameter(const cvy_op *op);

/** w -= rate (g + decay w). */
void cvy_cpu_descend(const cvy_cpu_update *with, int64_t first, int64_t last);

/** Whether all of @p count numbers are finite. */
bool cvy_cpu_all_finite(const float *values, int64_t count);

#endif
