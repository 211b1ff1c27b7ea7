/* One row a schedule: the factor on the base rate once warm-up is over. */
#include "runtime/rate.h"

#include <math.h>

static double factor_constant(const cvy_rate *rate, double samples)
{
    (void)rate;
    (void)samples;
    return 1.0;
}

static double factor_step(const cvy_rate *rate, double samples)
{
    return pow(rate->gamma, floor(samples / rate->step_samples));
}

/* Loshchilov and Hutter, "SGDR", 2017, eq. 5 without restarts and with a lowest rate of 0. */
static double factor_cosine(const cvy_rate *rate, double samples)
{
    double length = rate->total_samples - rate->warmup_samples;
    double done = length > 0.0 ? (samples - rate->warmup_samples) / length : 1.0;
    return 0.5 * (1.0 + cos(M_PI * fmin(fmax(done, 0.0), 1.0)));
}

static double (*const factor[])(const cvy_rate *rate, double samples) = {
    [CVY_RATE_CONSTANT] = factor_constant,
    [CVY_RATE_STEP] = factor_step,
    [CVY_RATE_COSINE] = factor_cosine,
};

double cvy_rate_at(const cvy_rate *rate, double samples, double batch)
{
    if (samples + batch < rate->warmup_samples) {
        return rate->base * (samples + batch) / rate->warmup_samples;
    }
    return rate->base * factor[rate->kind](rate, samples);
}
