/* Element-wise functions with an exponential, over a stretch of memory; as elementwise.c calls them. */
#ifndef CVY_BACKEND_CPU_SIGMOID_H
#define CVY_BACKEND_CPU_SIGMOID_H

#include <stdint.h>

/** out[i] of a[i] (x, or y in gradients) and b[i] (dy); the slope is not looked at. */
void cvy_cpu_sigmoid(const float *x, const float *unused, float *y, int64_t count, float slope);
void cvy_cpu_sigmoid_backward(const float *y, const float *dy, float *dx, int64_t count, float slope);
void cvy_cpu_tanh(const float *x, const float *unused, float *y, int64_t count, float slope);
void cvy_cpu_tanh_backward(const float *y, const float *dy, float *dx, int64_t count, float slope);
void cvy_cpu_silu(const float *x, const float *unused, float *y, int64_t count, float slope);
void cvy_cpu_silu_backward(const float *x, const float *dy, float *dx, int64_t count, float slope);

#endif
