/* Seconds of a monotonic clock. */
#ifndef CVY_BASE_CLOCK_H
#define CVY_BASE_CLOCK_H

#include <time.h>

/** Seconds since some fixed moment; never goes back. */
static inline double cvy_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
