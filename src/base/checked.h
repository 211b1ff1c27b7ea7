/* Arithmetic on sizes that come from outside: it never wraps. */
#ifndef CVY_BASE_CHECKED_H
#define CVY_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

/** Multiply into *product; false, and *product untouched, where the result does not fit into 64 bits. */
static inline bool cvy_mul_i64(int64_t a, int64_t b, int64_t *product)
{
    int64_t result;
    if (__builtin_mul_overflow(a, b, &result)) {
        return false;
    }
    *product = result;
    return true;
}

/** Add into *sum; false, and *sum untouched, where the result does not fit into 64 bits. */
static inline bool cvy_add_i64(int64_t a, int64_t b, int64_t *sum)
{
    int64_t result;
    if (__builtin_add_overflow(a, b, &result)) {
        return false;
    }
    *sum = result;
    return true;
}

/** ceil(a / b) for a >= 0, b >= 1. */
static inline int64_t cvy_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/** The least multiple of @p unit that is at least @p a; a >= 0, unit >= 1. */
static inline int64_t cvy_round_up(int64_t a, int64_t unit) { return cvy_ceil_div(a, unit) * unit; }

static inline int64_t cvy_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t cvy_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
