/*
 * The roofline's two shares. A kernel tells of one of them alone: of the peak rate where its flop bind it, else of the
 * bandwidth; which of them does depends on the shares. So medians of ratios take turns, from several beginnings, until
 * nothing moves; of all that came by, the pair with the least median of |ln(predicted / measured)| holds. Medians,
 * because some kernels run by plain loops and would drag a mean anywhere.
 */
#include "calibrate/fit.h"

#include <math.h>

#include "base/memory.h"
#include "base/order.h"

enum { TURNS = 20 };

/* What a machine file may hold (machine/fields.c): Winograd's algorithm saves products, caches at most all bytes. */
static const double least = 1e-6, most_peak = 4.0, most_bandwidth = 1.0;

typedef struct problem {
    const cvy_fit_sample *sample;
    int count;
    const cvy_fit_device *device;
    double *ratio; /* room for as many as there are samples */
} problem;

/* Above the launch; what takes no longer than that tells nothing, and counts as a tenth of it. */
static double find_work_s(const problem *p, const cvy_fit_sample *sample)
{
    return fmax(sample->seconds - p->device->launch_s, 0.1 * sample->seconds);
}

static double clamp(double value, double most) { return fmax(least, fmin(most, value)); }

/* The median of the shares that the samples of one side tell; as it was where there are none. */
static double find_share(const problem *p, const cvy_fit_shares *now, bool of_peak)
{
    int told = 0;
    for (int i = 0; i < p->count; i++) {
        const cvy_fit_sample *s = &p->sample[i];
        double flop_s = s->flop / p->device->peak_flop_per_s, bytes_s = s->bytes / p->device->memory_Bps;
        bool bound_by_flop = flop_s / now->peak > bytes_s / now->bandwidth;
        if (bound_by_flop == of_peak) {
            p->ratio[told++] = (of_peak ? flop_s : bytes_s) / find_work_s(p, s);
        }
    }
    if (told == 0) {
        return of_peak ? now->peak : now->bandwidth;
    }
    cvy_sort_doubles(p->ratio, told);
    double middle = (p->ratio[(told - 1) / 2] + p->ratio[told / 2]) / 2.0;
    return clamp(middle, of_peak ? most_peak : most_bandwidth);
}

/* The median of what the logarithms are off. */
static double judge(const problem *p, const cvy_fit_shares *shares)
{
    for (int i = 0; i < p->count; i++) {
        const cvy_fit_sample *s = &p->sample[i];
        p->ratio[i] = fabs(log(cvy_fit_shares_estimate(shares, p->device, s->flop, s->bytes) / s->seconds));
    }
    cvy_sort_doubles(p->ratio, p->count);
    return (p->ratio[(p->count - 1) / 2] + p->ratio[p->count / 2]) / 2.0;
}

double cvy_fit_shares_estimate(const cvy_fit_shares *shares, const cvy_fit_device *device, double flop, double bytes)
{
    double flop_s = flop / (device->peak_flop_per_s * shares->peak);
    double bytes_s = bytes / (device->memory_Bps * shares->bandwidth);
    return fmax(flop_s, bytes_s) + device->launch_s;
}

static void improve(const problem *p, cvy_fit_shares now, cvy_fit_shares *best, double *best_error)
{
    for (int turn = 0; turn < TURNS; turn++) {
        double error = judge(p, &now);
        if (error < *best_error) {
            *best_error = error;
            *best = now;
        }
        cvy_fit_shares next = now;
        next.peak = find_share(p, &next, true);
        next.bandwidth = find_share(p, &next, false);
        if (next.peak == now.peak && next.bandwidth == now.bandwidth) {
            return;
        }
        now = next;
    }
}

cvy_status cvy_fit_shares_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device,
                               cvy_fit_shares *shares_out)
{
    static const double begin[] = {1.0, 0.5, 0.1, 0.01};
    enum { BEGINS = sizeof begin / sizeof begin[0] };
    problem p = {sample, count, device, cvy_calloc((size_t)count + 1, sizeof(double))};
    double best_error = INFINITY;
    if (!p.ratio) {
        return CVY_ERR_MEMORY;
    }
    *shares_out = (cvy_fit_shares){1.0, 1.0};
    for (int i = 0; i < BEGINS * BEGINS; i++) {
        improve(&p, (cvy_fit_shares){begin[i / BEGINS], begin[i % BEGINS]}, shares_out, &best_error);
    }
    cvy_free(p.ratio);
    return CVY_OK;
}
