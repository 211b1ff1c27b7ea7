/*
 * Sigmoid, tanh and SiLU, written so that compilers turn the loops into vector code: no calls, and both arms of what a
 * comparison selects are cheap.
 *
 * exp(x) = 2^n (1 + q), with n the whole number nearest to x / ln 2 and q = exp(r) - 1 for |r| <= ln 2 / 2 by the
 * polynomial of expf in Moshier's Cephes library, within about one unit in the last place. Only x <= 0 is asked for, so
 * it cannot overflow. With e = exp(-|x|) both sigmoid(|x|) = 1 / (1 + e) and what is left of 1, e / (1 + e), keep all
 * their digits; so does tanh(|x|) = (1 - e) / (1 + e), e = exp(-2 |x|), since 1 - e is taken from q where n is 0.
 */
#include "backend/cpu/sigmoid.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/vector.h"

/* exp(x) = power + power q for x <= 0; power is 0 where it would not be a normal number. */
typedef struct exponential {
    float power, q;
} exponential;

CVY_INLINE exponential take_exponential(float x)
{
    const float least = -87.33f, log2_e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float rounder = 0x1.8p23f; /* whole numbers lie one apart there: adding it rounds to nearest */
    float bounded = x < least ? least : x;
    float shifted = bounded * log2_e + rounder, n = shifted - rounder;
    float r = (bounded - n * ln2_high) - n * ln2_low;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    uint32_t bits;
    float power;
    memcpy(&bits, &shifted, sizeof bits); /* its low bits are n: into the exponent with them */
    bits = x < least ? 0 : (bits << 23) + 0x3F800000u;
    memcpy(&power, &bits, sizeof power);
    return (exponential){power, p * r * r + r};
}

/* sigmoid(x) and 1 - sigmoid(x). */
typedef struct split {
    float part, rest;
} split;

CVY_INLINE split split_one(float x)
{
    exponential of = take_exponential(-fabsf(x));
    float e = of.power * of.q + of.power, large = 1.0f / (1.0f + e);
    return (split){large * (x < 0 ? e : 1.0f), large * (x < 0 ? 1.0f : e)};
}

CVY_VECTOR void cvy_cpu_sigmoid(const float *x, const float *unused, float *y, int64_t count, float slope)
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
    exponential of = take_exponential(-2.0f * fabsf(x));
    float less = (1.0f - of.power) - of.power * of.q;
    return copysignf(less / (2.0f - less), x);
}

CVY_VECTOR void cvy_cpu_tanh(const float *x, const float *unused, float *y, int64_t count, float slope)
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

CVY_VECTOR void cvy_cpu_silu(const float *x, const float *unused, float *y, int64_t count, float slope)
{
    (void)unused;
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] * split_one(x[i]).part;
    }
}

CVY_VECTOR void cvy_cpu_silu_backward(const float *x, const float *dy, float *dx, int64_t count, float slope)
{
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        split s = split_one(x[i]);
        dx[i] = dy[i] * s.part * (1.0f + x[i] * s.rest);
    }
}
