/* Each figure is the best of its tries, but the launch, which is a median: what a kernel has to wait for, it waits. */
#include "calibrate/peaks.h"

#include <math.h>

#include "backend/measure.h"
#include "base/clock.h"
#include "base/memory.h"
#include "runtime/floor.h"

enum { TRIES = 4, FEW_ELEMENTS = 64, TOUCHED_BYTES = 64 << 20 };

static cvy_status measure_launch(const cvy_backend_chain *chain, double *launch_out)
{
    static const cvy_measure_effort effort = {.least_runs = CVY_MEASURE_MAX_RUNS, .most_runs = CVY_MEASURE_MAX_RUNS,
                                              .median = true};
    static const cvy_tensor few = {.shape = {2, {1, FEW_ELEMENTS}}, .dtype = CVY_F32};
    cvy_op op = {.kind = CVY_OP_RELU, .pass = CVY_PASS_FORWARD};
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &few));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_Y, &few));
    return cvy_kernel_measure(chain, &op, &effort, launch_out);
}

static cvy_status measure_first_touch(double *Bps_out)
{
    double start_s = cvy_clock_s();
    cvy_arena arena = {0};
    CVY_TRY(cvy_arena_create(TOUCHED_BYTES, &arena));
    *Bps_out = TOUCHED_BYTES / (cvy_clock_s() - start_s);
    cvy_arena_destroy(&arena);
    return CVY_OK;
}

cvy_status cvy_peaks_measure(const cvy_backend_chain *chain, cvy_peaks *peaks_out)
{
    cvy_peaks peaks = {.launch_s = INFINITY};
    for (int i = 0; i < TRIES; i++) {
        cvy_rates rates;
        double launch_s, touch_Bps;
        CVY_TRY(cvy_rates_measure(chain, &rates));
        CVY_TRY(measure_launch(chain, &launch_s));
        CVY_TRY(measure_first_touch(&touch_Bps));
        peaks.flop_per_s = fmax(peaks.flop_per_s, rates.flops);
        peaks.memory_Bps = fmax(peaks.memory_Bps, rates.bandwidth_Bps);
        peaks.launch_s = fmin(peaks.launch_s, launch_s);
        peaks.first_touch_Bps = fmax(peaks.first_touch_Bps, touch_Bps);
    }
    *peaks_out = (cvy_peaks){cvy_round_figure(peaks.flop_per_s), cvy_round_figure(peaks.memory_Bps),
                             cvy_round_figure(peaks.launch_s), cvy_round_figure(peaks.first_touch_Bps)};
    return CVY_OK;
}
