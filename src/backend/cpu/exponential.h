/*
 * exp(x) = 2^n (1 + q), with n the whole number nearest to x / ln 2 and q = exp(r) - 1 for |r| <= ln 2 / 2 by the
 * polynomial of expf in Moshier's Cephes library, within about one unit in the last place. Only x <= 0 is asked for, so
 * it cannot overflow. There is no call and no branch, so that compilers turn loops with it into vector code.
 */
#ifndef CVY_BACKEND_CPU_EXPONENTIAL_H
#define CVY_BACKEND_CPU_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

#include "backend/cpu/vector.h"

/** exp(x) = power + power q for x <= 0; power is 0 where it would not be a normal number. */
typedef struct cvy_exponential {
    float power, q;
} cvy_exponential;

CVY_INLINE cvy_exponential cvy_take_exponential(float x)
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
    return (cvy_exponential){power, p * r * r + r};
}

/** The number itself. NaN stays NaN. */
CVY_INLINE float cvy_exponential_of(float x)
{
    cvy_exponential of = cvy_take_exponential(x);
    return of.power * of.q + of.power;
}

#endif
