/*
 * Kernels by the clock of this machine. The probe is a product of matrices that stay in the cache: a few milliseconds,
 * of which the median counts, so that one interrupt does not show and a second process does.
 */
#include "calibrate/meter.h"

#include <math.h>

#include "base/clock.h"
#include "base/memory.h"

enum { PROBE_SIZE = 384 };

static const double hopeless = 1.5; /* a way that takes so many times what the best does is not measured out */

struct cvy_machine_meter {
    cvy_backend_chain chain;
    cvy_measure_effort effort;
    int block;
    cvy_op probe;
    cvy_arena between;
    double runs_s, medians_s; /* of all runs so far; if each had taken the median of its op */
};

/* The median, and half the distance of the quartiles by it. */
static cvy_kernel_time summarise(cvy_machine_meter *meter, const double *seconds, int runs)
{
    for (int i = 0; i < runs; i++) {
        meter->runs_s += seconds[i];
        meter->medians_s += seconds[runs / 2];
    }
    double middle = seconds[runs / 2];
    double apart = seconds[3 * (runs - 1) / 4] - seconds[(runs - 1) / 4];
    return (cvy_kernel_time){.seconds = middle, .error = apart / 2.0 / middle};
}

static cvy_status measure(void *context, const cvy_op *op, double between_bytes, cvy_kernel_time *time_out)
{
    cvy_machine_meter *meter = context;
    cvy_measure_effort effort = meter->effort;
    cvy_op way[CVY_MAX_WAYS];
    double seconds[CVY_MEASURE_MAX_RUNS];
    char text[CVY_OP_TEXT];
    int runs = 0, ways = cvy_op_find_ways(&meter->chain, op, meter->block, way);
    cvy_kernel_time best = {0};
    CVY_REQUIRE(ways > 0, CVY_ERR_UNSUPPORTED, "no backend runs %s", cvy_op_print(op, text));
    effort.between = meter->between.base;
    effort.between_bytes = (size_t)fmin(between_bytes, CVY_NEARER_BYTES);
    effort.evict = between_bytes >= CVY_FARTHEST_BYTES;
    for (int i = 0; i < ways; i++) {
        effort.hopeless_s = hopeless * best.seconds;
        CVY_TRY(cvy_kernel_measure_runs(&meter->chain, &way[i], &effort, seconds, &runs));
        cvy_kernel_time time = summarise(meter, seconds, runs);
        best = i == 0 || time.seconds < best.seconds ? time : best;
    }
    *time_out = best;
    return CVY_OK;
}

static cvy_status probe(void *context, double *seconds_out)
{
    static const cvy_measure_effort effort = {.least_runs = 5, .most_runs = 5, .median = true};
    const cvy_machine_meter *meter = context;
    return cvy_kernel_measure(&meter->chain, &meter->probe, &effort, seconds_out);
}

static double find_interruptions(void *context)
{
    const cvy_machine_meter *meter = context;
    return meter->medians_s > 0.0 ? fmax(0.0, meter->runs_s / meter->medians_s - 1.0) : 0.0;
}

static double read_clock(void *context)
{
    (void)context;
    return cvy_clock_s();
}

cvy_status cvy_machine_meter_create(const cvy_backend_chain *chain, const cvy_measure_effort *effort, int block,
                                    cvy_machine_meter **meter_out)
{
    static const cvy_tensor square = {.shape = {2, {PROBE_SIZE, PROBE_SIZE}}, .dtype = CVY_F32};
    cvy_op op = {.kind = CVY_OP_DENSE, .pass = CVY_PASS_FORWARD};
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &square));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_W, &square));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_Y, &square));
    CVY_REQUIRE(cvy_backend_quality(chain, &op, NULL) != CVY_QUALITY_NONE, CVY_ERR_UNSUPPORTED,
                "no backend multiplies matrices");
    cvy_machine_meter *meter = cvy_calloc(1, sizeof *meter);
    if (!meter) {
        return CVY_ERR_MEMORY;
    }
    *meter = (cvy_machine_meter){.chain = *chain, .effort = *effort, .block = block, .probe = op};
    cvy_status status = cvy_arena_create((size_t)CVY_NEARER_BYTES, &meter->between);
    if (status != CVY_OK) {
        cvy_machine_meter_destroy(&meter);
        return status;
    }
    *meter_out = meter;
    return CVY_OK;
}

void cvy_machine_meter_destroy(cvy_machine_meter **meter)
{
    if (*meter) {
        cvy_arena_destroy(&(*meter)->between);
    }
    cvy_free(*meter);
    *meter = NULL;
}

cvy_meter cvy_machine_meter_get(cvy_machine_meter *meter)
{
    return (cvy_meter){.context = meter, .measure = measure, .probe = probe, .interruptions = find_interruptions,
                       .now_s = read_clock};
}
