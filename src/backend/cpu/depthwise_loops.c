/*
 * The inner loops of depthwise convolutions: over channels that lie side by side, a vector of them at a time, with what
 * they sum in registers, which takes constant widths and arrays whose address goes nowhere. Where there is no whole
 * vector of 16 or 8 channels left, they go one by one.
 */
#include "backend/cpu/depthwise.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* Targets side by side that take a weight together, and taps that take a gradient together: 8 vectors of AVX2. */
enum { TARGETS = 4, TAPS = 5 };

CVY_INLINE void gather(const cvy_depthwise_targets *all, const cvy_depthwise_tap_list *taps, const float *source,
                       float *target, int64_t lane, const int places, const int lanes)
{
    float sum[TARGETS][CVY_DEPTHWISE_LANES];
    int64_t source_step = all->source_step[1], target_step = all->target_step[1];
    for (int place = 0; place < places; place++) {
#pragma omp simd
        for (int i = 0; i < lanes; i++) {
            sum[place][i] = all->bias[lane + i];
        }
    }
    for (int64_t tap = 0; tap < taps->count; tap++) {
        const float *x = source + lane + taps->source[tap], *w = all->weight + lane + taps->weight[tap];
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
            target[place * target_step + lane + i] = all->relu && sum[place][i] < 0 ? 0 : sum[place][i];
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

CVY_WIDE_VECTOR void cvy_depthwise_gather(const cvy_depthwise_targets *targets, const cvy_depthwise_tap_list *taps)
{
    for (int64_t outer = 0; outer < targets->count[0]; outer++) {
        const float *source = targets->source + outer * targets->source_step[0];
        float *target = targets->target + outer * targets->target_step[0];
        int64_t i = 0;
        for (; i + TARGETS <= targets->count[1]; i += TARGETS) {
            gather_strip(targets, taps, source + i * targets->source_step[1], target + i * targets->target_step[1],
                         TARGETS);
        }
        for (; i < targets->count[1]; i++) {
            gather_strip(targets, taps, source + i * targets->source_step[1], target + i * targets->target_step[1], 1);
        }
    }
}

CVY_INLINE void correlate(const cvy_depthwise_products *all, int64_t tap, int64_t lane, const int taps,
                          const int lanes)
{
    float held[TAPS][CVY_DEPTHWISE_LANES] = {{0}};
    const float *x = all->x + tap * all->x_tap + lane, *dy = all->dy + lane;
    for (int64_t a = 0; a < all->count[0]; a++) {
        for (int64_t b = 0; b < all->count[1]; b++) {
            const float *from = x + a * all->x_step[0] + b * all->x_step[1];
            const float *by = dy + a * all->dy_step[0] + b * all->dy_step[1];
            for (int64_t c = 0; c < all->count[2]; c++) {
                for (int t = 0; t < taps; t++) {
#pragma omp simd
                    for (int i = 0; i < lanes; i++) {
                        held[t][i] += by[c * all->dy_step[2] + i] * from[c * all->x_step[2] + t * all->x_tap + i];
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
