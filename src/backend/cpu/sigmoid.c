/*
 * Sigmoid, tanh and SiLU, written so that compilers turn the loops into vector code: no calls, and both arms of what a
 * comparison selects are cheap.
 *
 * Exponentials are taken of x <= 0 alone. With e = exp(-|x|) both sigmoid(|x|) = 1 / (1 + e) and what is left of 1,
 * e / (1 + e), keep all their digits; so does tanh(|x|) = (1 - e) / (1 + e), e = exp(-2 |x|), since 1 - e is taken from
 * q where n is 0.
 */
#include "backend/cpu/sigmoid.h"

#include <math.h>

#include "backend/cpu/exponential.h"

/* sigmoid(x) and 1 - sigmoid(x). */
typedef struct split {
    float part, rest;
} split;

CVY_INLINE split split_one(float x)
{
    float e = cvy_exponential_of(-fabsf(x)), large = 1.0f / (1.0f + e);
    return (split){large * (x < 0 ? e : 1.0f), large * (x < 0 ? 1.0f : e)};
}

CVY_WIDE_VECTOR void cvy_cpu_sigmoid(const float *x, const float *unused, float *y, int64_t count, float slope)
{
    (void)unused;
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = split_one(x[i]).part;
    }
}

CVY_VECTOR void cvy_cpu_sigmoid_backward(const float *y, const float *dy, float *dx, int64_t count, float slope)
{
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = dy[i] * y[i] * (1.0f - y[i]);
    }
}

/* 1 - e = (1 - power) - power q. */
CVY_INLINE float hyperbolic_tangent(float x)
{
    cvy_exponential of = cvy_take_exponential(-2.0f * fabsf(x));
    float less = (1.0f - of.power) - of.power * of.q;
    return copysignf(less / (2.0f - less), x);
}

CVY_WIDE_VECTOR void cvy_cpu_tanh(const float *x, const float *unused, float *y, int64_t count, float slope)
{
    (void)unused;
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = hyperbolic_tangent(x[i]);
    }
}

CVY_VECTOR void cvy_cpu_tanh_backward(const float *y, const float *dy, float *dx, int64_t count, float slope)
{
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = dy[i] * (1.0f - y[i] * y[i]);
    }
}

CVY_WIDE_VECTOR void cvy_cpu_silu(const float *x, const float *unused, float *y, int64_t count, float slope)
{
    (void)unused;
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] * split_one(x[i]).part;
    }
}

CVY_WIDE_VECTOR void cvy_cpu_silu_backward(const float *x, const float *dy, float *dx, int64_t count, float slope)
{
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        split s = split_one(x[i]);
        dx[i] = dy[i] * s.part * (1.0f + x[i] * s.rest);
    }
}
