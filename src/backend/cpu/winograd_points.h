/*
 * Along one axis of a tile, into points and back. With p_i the finite points and s_i what the products of their
 * differences leave to the side of taps and gradients,
 *     an input tile     B^T d          rows of B^T divide out all points but one
 *     taps, gradients   s_i sum of p_i^j g_j, and the last g at infinity
 *     outputs           sum over i of p_i^k m_i, and the point at infinity in the last
 * Points that differ in sign share the sums over even and over odd powers. Six points are 0, 1, -1, 2, -2 and infinity;
 * eight have 1/2 and -1/2 before the last.
 */
#ifndef CVY_BACKEND_CPU_WINOGRAD_POINTS_H
#define CVY_BACKEND_CPU_WINOGRAD_POINTS_H

#include "backend/cpu/vector.h"

/* 1 / product of differences of p = 0, 1, 2, 1/2 to the other finite points, up to what B^T has. */
#define CVY_WINOGRAD_SCALE_0(side) ((side) == 6 ? 0.25f : 1.0f)
#define CVY_WINOGRAD_SCALE_1(side) ((side) == 6 ? -1.0f / 6.0f : -2.0f / 9.0f)
#define CVY_WINOGRAD_SCALE_2(side) ((side) == 6 ? 1.0f / 24.0f : 1.0f / 90.0f)
#define CVY_WINOGRAD_SCALE_HALF (32.0f / 45.0f)

/** B^T of 6 vectors that lie `step` apart. */
CVY_INLINE void cvy_winograd_divide_6(const float *in, int64_t step, float *out, int64_t apart, const int lanes)
{
#pragma omp simd
    for (int i = 0; i < lanes; i++) {
        float d0 = in[i], d1 = in[step + i], d2 = in[2 * step + i], d3 = in[3 * step + i];
        float d4 = in[4 * step + i], d5 = in[5 * step + i];
        float even1 = d4 - 4.0f * d2, odd1 = d3 - 4.0f * d1;
        float even2 = d4 - d2, odd2 = 2.0f * (d3 - d1);
        out[i] = 4.0f * d0 + (d4 - 5.0f * d2);
        out[apart + i] = even1 + odd1;
        out[2 * apart + i] = even1 - odd1;
        out[3 * apart + i] = even2 + odd2;
        out[4 * apart + i] = even2 - odd2;
        out[5 * apart + i] = 4.0f * d1 + (d5 - 5.0f * d3);
    }
}

/** B^T of 8 vectors that lie `step` apart. */
CVY_INLINE void cvy_winograd_divide_8(const float *in, int64_t step, float *out, int64_t apart, const int lanes)
{
#pragma omp simd
    for (int i = 0; i < lanes; i++) {
        float d0 = in[i], d1 = in[step + i], d2 = in[2 * step + i], d3 = in[3 * step + i];
        float d4 = in[4 * step + i], d5 = in[5 * step + i], d6 = in[6 * step + i], d7 = in[7 * step + i];
        float even1 = d2 + d6 - 4.25f * d4, odd1 = d1 + d5 - 4.25f * d3;
        float even2 = d6 + 0.25f * d2 - 1.25f * d4, odd2 = 0.5f * d1 - 2.5f * d3 + 2.0f * d5;
        float even3 = d6 + 4.0f * d2 - 5.0f * d4, odd3 = 2.0f * d1 - 2.5f * d3 + 0.5f * d5;
        out[i] = d0 - d6 + 5.25f * (d4 - d2);
        out[apart + i] = even1 + odd1;
        out[2 * apart + i] = even1 - odd1;
        out[3 * apart + i] = even2 + odd2;
        out[4 * apart + i] = even2 - odd2;
        out[5 * apart + i] = even3 + odd3;
        out[6 * apart + i] = even3 - odd3;
        out[7 * apart + i] = d7 - d1 + 5.25f * (d3 - d5);
    }
}

CVY_INLINE void cvy_winograd_divide(const float *in, int64_t step, float *out, int64_t apart, const int side,
                                    const int lanes)
{
    if (side == 6) {
        cvy_winograd_divide_6(in, step, out, apart, lanes);
    } else {
        cvy_winograd_divide_8(in, step, out, apart, lanes);
    }
}

/** A polynomial of `count` (3 to 5) coefficients at the points, scaled. */
CVY_INLINE void cvy_winograd_evaluate(const float *in, int64_t step, const int count, float *out, int64_t apart,
                                      const int side, const int lanes)
{
    const float scale0 = CVY_WINOGRAD_SCALE_0(side), scale1 = CVY_WINOGRAD_SCALE_1(side);
    const float scale2 = CVY_WINOGRAD_SCALE_2(side), scale3 = CVY_WINOGRAD_SCALE_HALF;
#pragma omp simd
    for (int i = 0; i < lanes; i++) {
        float g0 = in[i], g1 = in[step + i], g2 = in[2 * step + i];
        float g3 = count > 3 ? in[3 * step + i] : 0.0f, g4 = count > 4 ? in[4 * step + i] : 0.0f;
        float even1 = g0 + g2, odd1 = g1, even2 = g0 + 4.0f * g2, odd2 = 2.0f * g1;
        float even3 = g0 + 0.25f * g2, odd3 = 0.5f * g1;
        if (count > 3) {
            odd1 += g3;
            odd2 += 8.0f * g3;
            odd3 += 0.125f * g3;
        }
        if (count > 4) {
            even1 += g4;
            even2 += 16.0f * g4;
            even3 += 0.0625f * g4;
        }
        out[i] = scale0 * g0;
        out[apart + i] = scale1 * (even1 + odd1);
        out[2 * apart + i] = scale1 * (even1 - odd1);
        out[3 * apart + i] = scale2 * (even2 + odd2);
        out[4 * apart + i] = scale2 * (even2 - odd2);
        if (side == 8) {
            out[5 * apart + i] = scale3 * (even3 + odd3);
            out[6 * apart + i] = scale3 * (even3 - odd3);
        }
        out[(side - 1) * apart + i] = count == 5 ? g4 : count == 4 ? g3 : g2;
    }
}

/** 3 to 5 outputs of the points. */
CVY_INLINE void cvy_winograd_collect(const float *in, int64_t step, const int count, float *out, int64_t apart,
                                     const int side, const int lanes)
{
#pragma omp simd
    for (int i = 0; i < lanes; i++) {
        float m1 = in[step + i], m2 = in[2 * step + i], m3 = in[3 * step + i], m4 = in[4 * step + i];
        float last = in[(side - 1) * step + i], sum1 = m1 + m2, sum2 = m3 + m4;
        float difference1 = m1 - m2, difference2 = m3 - m4;
        float value = in[i] + sum1 + sum2, slope = difference1 + 2.0f * difference2;
        float square = sum1 + 4.0f * sum2, cube = difference1 + 8.0f * difference2, fourth = sum1 + 16.0f * sum2;
        if (side == 8) {
            float m5 = in[5 * step + i], m6 = in[6 * step + i], sum3 = m5 + m6, difference3 = m5 - m6;
            value += sum3;
            slope += 0.5f * difference3;
            square += 0.25f * sum3;
            cube += 0.125f * difference3;
            fourth += 0.0625f * sum3;
        }
        out[i] = value;
        out[apart + i] = slope;
        out[2 * apart + i] = count == 3 ? square + last : square;
        if (count > 3) {
            out[3 * apart + i] = count == 4 ? cube + last : cube;
        }
        if (count > 4) {
            out[4 * apart + i] = fourth + last;
        }
    }
}

#endif
