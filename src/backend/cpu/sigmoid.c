/*
 * Sigmoid, tanh and SiLU, written so that compilers turn the loops into vector code: no calls, no branches.
 *
 * exp(x) = 2^n exp(r) with n the whole number nearest to x / ln 2, |r| <= ln 2 / 2; exp(r) is the polynomial of degree
 * 7 and tanh near 0 the odd one of degree 11 of Moshier's Cephes library (expf, tanhf), each within about one unit in
 * the last place. Only e = exp(-|x|) is taken: it cannot overflow, and both sigmoid(|x|) = 1 / (1 + e) and what is left
 * of 1, e / (1 + e), keep all their digits.
 */
#include "backend/cpu/sigmoid.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/vector.h"

/* exp(x) for x <= 0; 0 where the result would not be a normal number. */
CVY_INLINE float exponential(float x)
{
    const float least = -87.33f, log2_e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float rounder = 0x1.8p23f; /* whole numbers lie one apart there: adding it rounds to nearest */
    float shifted = (x < least ? least : x) * log2_e + rounder;
    float n = shifted - rounder;
    float r = ((x < least ? least : x) - n * ln2_high) - n * ln2_low;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    uint32_t bits;
    float power;
    memcpy(&bits, &shifted, sizeof bits); /* its low bits are n: into the exponent with them */
    bits = (bits << 23) + 0x3F800000u;
    memcpy(&power, &bits, sizeof power);
    return x < least ? 0.0f : p * power;
}

/* sigmoid(x) and 1 - sigmoid(x). */
typedef struct split {
    float part, rest;
} split;

CVY_INLINE split split_one(float x)
{
    float e = exponential(-fabsf(x));
    float large = 1.0f / (1.0f + e), small = e * large;
    return (split){x < 0 ? small : large, x < 0 ? large : small};
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

/* Away from 0, (1 - e) / (1 + e) with e = exp(-2 |x|). */
CVY_INLINE float hyperbolic_tangent(float x)
{
    float e = exponential(-2.0f * fabsf(x)), square = x * x;
    float far = copysignf((1.0f - e) / (1.0f + e), x);
    float p = -5.70498872745e-3f;
    p = p * square + 2.06390887954e-2f;
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    float near = p * square * x + x;
    return fabsf(x) < 0.625f ? near : far;
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
