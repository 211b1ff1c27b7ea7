/*
 * Sums of taps, divided by what their windows hold. Forward all taps are of one window; backward those of an edge may
 * be of windows that hold different numbers of inputs: each is then divided by itself, with one more multiplication.
 */
#include "backend/cpu/pool_average.h"

#include "backend/cpu/vector.h"

CVY_INLINE void find_means(const cvy_pool_taps *of, int taps, int64_t count, int64_t lanes, float divisor,
                           const float *x, float *y)
{
    const cvy_pool_taps r = *of;
    for (int64_t output = 0; output < count; output++) {
        const float *from = x + output * r.from_step;
        float *to = y + r.to + output * r.step;
#pragma omp simd
        for (int64_t i = 0; i < lanes; i++) {
            float sum = 0;
#pragma GCC unroll 9
            for (int t = 0; t < taps; t++) {
                sum += from[r.from[t] + i];
            }
            to[i] = sum / divisor;
        }
    }
}

/* Blocks of channels are short: their length is a constant, too. */
#define DEFINE_MEANS(taps)                                                                                  \
    CVY_WIDE_VECTOR static void means_of_##taps(const cvy_pool_taps *of, cvy_pool_loop loop, float divisor, \
                                                const float *x, float *y)                                   \
    {                                                                                                       \
        if (loop.lanes == 16) {                                                                             \
            find_means(of, taps, loop.count, 16, divisor, x, y);                                            \
        } else {                                                                                            \
            find_means(of, taps, loop.count, loop.lanes, divisor, x, y);                                    \
        }                                                                                                   \
    }

DEFINE_MEANS(1)
DEFINE_MEANS(2)
DEFINE_MEANS(4)
DEFINE_MEANS(6)
DEFINE_MEANS(8)
DEFINE_MEANS(9)

/* The rest: edges of few taps, and those whose windows differ. Tap by tap, each with its factor. */
CVY_WIDE_VECTOR static void add_each(const cvy_pool_taps *of, cvy_pool_loop loop, const float *factor, const float *x,
                                     float *y)
{
    for (int64_t output = 0; output < loop.count; output++) {
        float *to = y + of->to + output * of->step;
        for (int64_t i = 0; i < loop.lanes; i++) {
            to[i] = 0;
        }
        for (int t = 0; t < of->taps; t++) {
            const float *from = x + of->from[t] + output * of->from_step;
            float share = factor[t];
#pragma omp simd
            for (int64_t i = 0; i < loop.lanes; i++) {
                to[i] += from[i] * share;
            }
        }
    }
}

typedef void (*means_function)(const cvy_pool_taps *of, cvy_pool_loop loop, float divisor, const float *x, float *y);

/* A run; @p window is what all are divided by, or 0: each by its own. */
static void take_means(const cvy_pool_taps *of, cvy_pool_loop loop, int64_t window, const float *x, float *y)
{
    static const means_function means[CVY_POOL_TAPS + 1] = {
        [1] = means_of_1, [2] = means_of_2, [4] = means_of_4, [6] = means_of_6, [8] = means_of_8, [9] = means_of_9,
    };
    float factor[CVY_POOL_TAPS];
    bool alike = true;
    for (int t = 0; t < of->taps; t++) {
        alike = alike && of->inside[t] == of->inside[0];
        factor[t] = 1 / (float)(window ? window : of->inside[t]);
    }
    if ((window || alike) && means[of->taps]) {
        means[of->taps](of, loop, (float)(window ? window : of->inside[0]), x, y);
    } else {
        add_each(of, loop, factor, x, y);
    }
}

void cvy_pool_average_row(const cvy_pool_runs *runs, const cvy_pool_row *row, bool whole, const float *from, float *to)
{
    const int64_t *kernel = runs->pool->window->kernel;
    int64_t window = whole ? kernel[0] * kernel[1] * kernel[2] : 0;
    for (int i = 0; i < row->runs; i++) {
        const cvy_pool_taps *of = &row->taps[i];
        take_means(of, cvy_pool_loop_get(row, of), window, from + row->from, to + row->to);
    }
}
