/*
 * The inner loops of depthwise convolutions: over channels that lie side by side, a vector of them at a time, with what
 * they sum in registers, which takes constant widths and arrays whose address goes nowhere. Where there is no whole
 * vector of 16 or 8 channels left, they go one by one.
 */
#include <math.h>

#include "backend/cpu/depthwise.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* Targets side by side that take a weight together, and taps that take a gradient together: 8 vectors of AVX2. */
enum { TARGETS = 4, TAPS = 5 };

CVY_INLINE void gather(const cvy_depthwise_targets *all, const cvy_depthwise_tap_list *taps, const float *source,
                       float *target, int64_t lane, const int places, const int lanes)
{
    float sum[TARGETS][CVY_DEPTHWISE_LANES];
    int64_t source_step = all->nest.from[2], target_step = all->nest.to[2];
    float least = all->relu ? 0.0f : -INFINITY;
    for (int place = 0; place < places; place++) {
#pragma omp simd
        for (int i = 0; i < lanes; i++) {
            sum[place][i] = all->bias[lane + i];
        }
    }
    for (int64_t tap = 0; tap < taps->count; tap++) {
        const float *x = source + lane + taps->source[tap], *w = all->weight + lane + taps->weight[tap];
        CVY_STAY;
        for (int place = 0; place < places; place++) {
#pragma omp simd
            for (int i = 0; i < lanes; i++) {
                sum[place][i] += w[i] * x[place * source_step + i];
            }
        }
    }
    for (int place = 0; place < places; place++) {
#pragma omp simd
        for (int i = 0; i < lanes; i++) { /* NaN stays */
            target[place * target_step + lane + i] = sum[place][i] < least ? least : sum[place][i];
        }
    }
}

CVY_INLINE void gather_strip(const cvy_depthwise_targets *all, const cvy_depthwise_tap_list *taps, const float *source,
                             float *target, const int places)
{
    int64_t lane = 0;
    for (; lane + CVY_DEPTHWISE_LANES <= all->lanes; lane += CVY_DEPTHWISE_LANES) {
        gather(all, taps, source, target, lane, places, CVY_DEPTHWISE_LANES);
    }
    for (; lane + 8 <= all->lanes; lane += 8) {
        gather(all, taps, source, target, lane, places, 8);
    }
    for (; lane < all->lanes; lane++) {
        gather(all, taps, source, target, lane, places, 1);
    }
}

CVY_INLINE void gather_line(const cvy_depthwise_targets *all, const cvy_depthwise_tap_list *taps, const float *source,
                            float *target)
{
    int64_t i = 0, count = all->nest.count[2], from = all->nest.from[2], to = all->nest.to[2];
    for (; i + TARGETS <= count; i += TARGETS) {
        gather_strip(all, taps, source + i * from, target + i * to, TARGETS);
    }
    for (; i < count; i++) {
        gather_strip(all, taps, source + i * from, target + i * to, 1);
    }
}

CVY_WIDE_VECTOR void cvy_depthwise_gather(const cvy_depthwise_targets *targets, const cvy_depthwise_tap_list *taps)
{
    const cvy_depthwise_nest *nest = &targets->nest;
    for (int64_t a = 0; a < nest->count[0]; a++) {
        for (int64_t b = 0; b < nest->count[1]; b++) {
            gather_line(targets, taps, targets->source + a * nest->from[0] + b * nest->from[1],
                        targets->target + a * nest->to[0] + b * nest->to[1]);
        }
    }
}

CVY_INLINE void correlate(const cvy_depthwise_products *all, int64_t tap, int64_t lane, const int taps,
                          const int lanes)
{
    float held[TAPS][CVY_DEPTHWISE_LANES] = {{0}};
    const float *x = all->x + tap * all->x_tap + lane, *dy = all->dy + lane;
    const cvy_depthwise_nest nest = all->nest;
    for (int64_t a = 0; a < nest.count[0]; a++) {
        for (int64_t b = 0; b < nest.count[1]; b++) {
            const float *from = x + a * nest.from[0] + b * nest.from[1];
            const float *by = dy + a * nest.to[0] + b * nest.to[1];
            for (int64_t c = 0; c < nest.count[2]; c++) {
                for (int t = 0; t < taps; t++) {
#pragma omp simd
                    for (int i = 0; i < lanes; i++) {
                        held[t][i] += by[c * nest.to[2] + i] * from[c * nest.from[2] + t * all->x_tap + i];
                    }
                }
            }
        }
    }
    for (int t = 0; t < taps; t++) {
        float *sum = all->sum + (tap + t) * all->sum_tap + lane;
#pragma omp simd
        for (int i = 0; i < lanes; i++) {
            sum[i] += held[t][i];
        }
    }
}

CVY_INLINE void correlate_taps(const cvy_depthwise_products *all, int64_t lane, const int lanes)
{
    int64_t tap = 0;
    for (; tap + TAPS <= all->taps; tap += TAPS) {
        correlate(all, tap, lane, TAPS, lanes);
    }
    switch (all->taps - tap) {
    case 4: correlate(all, tap, lane, 4, lanes); break;
    case 3: correlate(all, tap, lane, 3, lanes); break;
    case 2: correlate(all, tap, lane, 2, lanes); break;
    case 1: correlate(all, tap, lane, 1, lanes); break;
    default: break;
    }
}

CVY_WIDE_VECTOR void cvy_depthwise_correlate(const cvy_depthwise_products *products)
{
    int64_t lane = 0;
    for (; lane + CVY_DEPTHWISE_LANES <= products->lanes; lane += CVY_DEPTHWISE_LANES) {
        correlate_taps(products, lane, CVY_DEPTHWISE_LANES);
    }
    for (; lane + 8 <= products->lanes; lane += 8) {
        correlate_taps(products, lane, 8);
    }
    for (; lane < products->lanes; lane++) {
        correlate_taps(products, lane, 1);
    }
}
