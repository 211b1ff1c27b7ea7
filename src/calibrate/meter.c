/* Kernels by the clock of this machine, each held against the probe. */
#include "calibrate/meter.h"

#include <math.h>

#include "base/clock.h"
#include "base/memory.h"

static const double hopeless = 1.5; /* a way that takes so many times what the best does is not measured out */

struct cvy_machine_meter {
    cvy_backend_chain chain;
    cvy_measure_effort effort;
    int block;
    cvy_probe *probe;
    cvy_arena between;
};

/* The median, and half the distance of the quartiles by it. */
static cvy_metered summarise(const cvy_measured_runs *measured)
{
    const double *seconds = measured->seconds;
    int runs = measured->runs;
    double middle = seconds[runs / 2];
    double apart = seconds[3 * (runs - 1) / 4] - seconds[(runs - 1) / 4];
    return (cvy_metered){.time = {.seconds = middle, .error = apart / 2.0 / middle}, .probe = measured->probe};
}

/* How slow it was when a way was measured counts: ways are compared by how often the probe goes into them. */
static bool is_faster(const cvy_metered *one, const cvy_metered *other)
{
    return one->time.seconds / one->probe.seconds < other->time.seconds / other->probe.seconds;
}

static cvy_status measure(void *context, const cvy_op *op, double between_bytes, cvy_metered *metered_out)
{
    cvy_machine_meter *meter = context;
    cvy_measure_effort effort = meter->effort;
    cvy_op way[CVY_MAX_WAYS];
    cvy_measured_runs runs;
    char text[CVY_OP_TEXT];
    int ways = cvy_op_find_ways(&meter->chain, op, meter->block, way);
    cvy_metered best = {0};
    CVY_REQUIRE(ways > 0, CVY_ERR_UNSUPPORTED, "no backend runs %s", cvy_op_print(op, text));
    effort.between = meter->between.base;
    effort.between_bytes = (size_t)fmin(between_bytes, CVY_NEARER_BYTES);
    effort.evict = between_bytes >= CVY_FARTHEST_BYTES;
    effort.probe = meter->probe;
    for (int i = 0; i < ways; i++) {
        effort.hopeless_s = hopeless * best.time.seconds;
        CVY_TRY(cvy_kernel_measure_runs(&meter->chain, &way[i], &effort, &runs));
        cvy_metered way_time = summarise(&runs);
        best = i == 0 || is_faster(&way_time, &best) ? way_time : best;
    }
    *metered_out = best;
    return CVY_OK;
}

static cvy_status probe(void *context, double *seconds_out)
{
    cvy_probe_time time;
    CVY_TRY(cvy_probe_run(((cvy_machine_meter *)context)->probe, &time));
    *seconds_out = time.seconds;
    return CVY_OK;
}

static double read_clock(void *context)
{
    (void)context;
    return cvy_clock_s();
}

cvy_status cvy_machine_meter_create(const cvy_backend_chain *chain, const cvy_measure_effort *effort, int block,
                                    cvy_machine_meter **meter_out)
{
    cvy_status status;
    cvy_machine_meter *meter = cvy_calloc(1, sizeof *meter);
    if (!meter) {
        return CVY_ERR_MEMORY;
    }
    *meter = (cvy_machine_meter){.chain = *chain, .effort = *effort, .block = block};
    CVY_TRY_GOTO(status, done, cvy_probe_create(chain, &meter->probe));
    CVY_TRY_GOTO(status, done, cvy_arena_create((size_t)CVY_NEARER_BYTES, &meter->between));
    *meter_out = meter;
    meter = NULL;
done:
    cvy_machine_meter_destroy(&meter);
    return status;
}

void cvy_machine_meter_destroy(cvy_machine_meter **meter)
{
    if (*meter) {
        cvy_arena_destroy(&(*meter)->between);
        cvy_probe_destroy(&(*meter)->probe);
    }
    cvy_free(*meter);
    *meter = NULL;
}

cvy_meter cvy_machine_meter_get(cvy_machine_meter *meter)
{
    return (cvy_meter){.context = meter, .measure = measure, .probe = probe, .now_s = read_clock};
}
