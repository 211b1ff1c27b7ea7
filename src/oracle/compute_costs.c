/*
 * What kernels spend time on, in units that their features tell: products of whole blocks on the map, those of
 * Winograd's algorithm, what goes to its points, bytes from memory or from a cache, and what each call takes. A base of
 * predictors is a sum of these, each with seconds a unit that were fitted; the nearer it comes, the less is left to a
 * process.
 */
#include <math.h>

#include "oracle/compute_internal.h"

typedef struct subject {
    const double *feature;
    double flop, bytes;
} subject;

typedef double (*counter)(const subject *s);

/* Of operands that many bytes were touched since: 0 in the nearest cache, 1 beyond all of them. */
static double get_far(const subject *s)
{
    static const double near = 18.0, farthest = 27.0; /* by log2: 256 KiB, CVY_FARTHEST_BYTES */
    return fmax(0.0, fmin(1.0, (s->feature[CVY_FEATURE_DISTANCE] - near) / (farthest - near)));
}

/* Whole blocks; an image in no blocks has no channels that fill one. */
static double count_direct(const subject *s)
{
    const double *f = s->feature;
    double c_waste = f[CVY_FEATURE_IS_PLAIN] > 0.0 ? 0.0 : f[CVY_FEATURE_C_WASTE];
    return f[CVY_FEATURE_IS_TILED] > 0.0
               ? 0.0
               : s->flop * exp2(c_waste + f[CVY_FEATURE_F_WASTE] + f[CVY_FEATURE_INSIDE]);
}

static double count_products(const subject *s)
{
    return s->feature[CVY_FEATURE_IS_TILED] > 0.0 ? s->flop * exp2(s->feature[CVY_FEATURE_PRODUCTS]) : 0.0;
}

static double count_points(const subject *s)
{
    return s->feature[CVY_FEATURE_IS_TILED] > 0.0 ? s->flop * exp2(s->feature[CVY_FEATURE_POINTS]) : 0.0;
}

static double count_flop(const subject *s) { return s->flop; }
static double count_bytes(const subject *s) { return s->bytes; }
static double count_input(const subject *s) { return exp2(s->feature[CVY_FEATURE_INPUT_BYTES]); }
static double count_output(const subject *s) { return exp2(s->feature[CVY_FEATURE_OUTPUT_BYTES]); }
static double count_weights(const subject *s) { return exp2(s->feature[CVY_FEATURE_WEIGHT_BYTES]); }
static double count_far_bytes(const subject *s) { return get_far(s) * count_bytes(s); }
static double count_far_input(const subject *s) { return get_far(s) * count_input(s); }
static double count_far_output(const subject *s) { return get_far(s) * count_output(s); }
static double count_far_weights(const subject *s) { return get_far(s) * count_weights(s); }

static double count_call(const subject *s)
{
    (void)s;
    return 1.0;
}


static const struct {
    const char *name;
    counter count;
} costs[] = {
    {"flop", count_flop},
    {"direct-flop", count_direct},
    {"products", count_products},
    {"points", count_points},
    {"bytes", count_bytes},
    {"input-bytes", count_input},
    {"output-bytes", count_output},
    {"weight-bytes", count_weights},
    {"far-bytes", count_far_bytes},
    {"far-input-bytes", count_far_input},
    {"far-output-bytes", count_far_output},
    {"far-weight-bytes", count_far_weights},
    {"call", count_call},
    {"far-call", get_far},
};
_Static_assert(sizeof costs / sizeof costs[0] == CVY_KERNEL_COSTS, "each cost has a name");

const char *cvy_kernel_cost_name(int cost) { return costs[cost].name; }

double cvy_kernel_count_cost(int cost, const double *feature, double flop, double bytes)
{
    const subject s = {feature, flop, bytes};
    return costs[cost].count(&s);
}

double cvy_cost_sum_get(const cvy_cost_sum *sum, const double *feature, double flop, double bytes)
{
    static const double least_s = 1e-9;
    double seconds = 0.0;
    for (int i = 0; i < sum->costs; i++) {
        seconds += sum->seconds[i] * cvy_kernel_count_cost(sum->cost[i], feature, flop, bytes);
    }
    return fmax(seconds, least_s);
}
