/*
 * How far an iteration may be off: half of the bar within which nine of ten measurements lie. With t the seconds that a
 * step shows of an iteration of T seconds, and h half of its own bar, relative,
 *
 *     bar^2 = sum over sources (sum over their steps of t h / T)^2 + (Z spread C / T)^2.
 *
 * What steps have from one source is off the same way: of a predictor's fit all its kernels, of rules of efficiency all
 * that have no table or predictor (their error is of sums already), of lines of links all messages, of a measured
 * kernel each of its runs. Such errors add up. Sources were fitted or measured apart, so theirs add in quadrature: of a
 * hundred measured kernels some were measured too slow and some too fast. Slowness of the machine from one time to
 * another is common to all kernels (C seconds); its standard deviation is the device's spread.
 *
 * Rules and lines say half a bar. The others say what is usual, which normal deviates make a bar of: nine of ten lie
 * within Z = 1.645 deviations, half of them within 0.6745, and on the mean they are off by sqrt(2 / pi) deviations. A
 * table tells half of the distance of quartiles, a predictor the mean error.
 */
#include <math.h>

#include "base/memory.h"
#include "oracle/estimate_internal.h"

/* Places of the sums: rules, lines, each predictor, then each op of the schedule. */
enum { OF_RULES, OF_LINES, OF_PREDICTORS, OF_OPS = OF_PREDICTORS + CVY_KERNEL_COUNT * CVY_PASS_COUNT };

static const double NINE_OF_TEN = 1.6448536, HALF = 0.6744898, MEAN = 0.7978846;

double cvy_error_bar(const cvy_compute_estimate *estimate)
{
    switch (estimate->source) {
    case CVY_COMPUTE_TABLE: return estimate->error * NINE_OF_TEN / HALF;
    case CVY_COMPUTE_PREDICTOR: return estimate->error * NINE_OF_TEN / MEAN;
    default: return estimate->error;
    }
}

static int find_place(const cvy_oracle *o, const cvy_schedule *s, int index)
{
    const cvy_step *step = &s->step[index];
    if (step->exchange >= 0 || step->op < 0) {
        return OF_LINES;
    }
    switch (o->source[index]) {
    case CVY_COMPUTE_TABLE: return OF_OPS + step->op;
    case CVY_COMPUTE_PREDICTOR:
        return OF_PREDICTORS + cvy_op_kernel(&s->op[step->op]) * CVY_PASS_COUNT + (int)s->op[step->op].pass;
    default: return OF_RULES;
    }
}

cvy_status cvy_error_begin(cvy_oracle *o, const cvy_schedule *s)
{
    if (OF_OPS + s->ops > o->off_places) {
        cvy_free(o->off_s);
        o->off_places = 0;
        o->off_s = cvy_calloc((size_t)(OF_OPS + s->ops), sizeof *o->off_s);
        if (!o->off_s) {
            return CVY_ERR_MEMORY;
        }
        o->off_places = OF_OPS + s->ops;
    }
    for (int i = 0; i < OF_OPS + s->ops; i++) {
        o->off_s[i] = 0.0;
    }
    return CVY_OK;
}

void cvy_error_add(cvy_oracle *o, const cvy_schedule *s, int index, double seconds)
{
    o->off_s[find_place(o, s, index)] += seconds * s->step[index].estimate_error;
}

double cvy_error_end(const cvy_oracle *o, const cvy_schedule *s, double compute_s)
{
    double machine_s = NINE_OF_TEN * o->machine->device.spread * compute_s, sum = machine_s * machine_s;
    for (int i = 0; i < OF_OPS + s->ops; i++) {
        sum += o->off_s[i] * o->off_s[i];
    }
    return sqrt(sum);
}
