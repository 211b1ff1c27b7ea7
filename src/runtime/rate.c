/* One row a schedule: the factor on the base rate once warm-up is over. */
#include "runtime/rate.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"

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

/* Share of the training after warm-up that is done, 0 to 1. */
static double find_done(const cvy_rate *rate, double samples)
{
    double length = rate->total_samples - rate->warmup_samples;
    double done = length > 0.0 ? (samples - rate->warmup_samples) / length : 1.0;
    return fmin(fmax(done, 0.0), 1.0);
}

/* Loshchilov and Hutter, "SGDR", 2017, eq. 5 without restarts and with a lowest rate of 0. */
static double factor_cosine(const cvy_rate *rate, double samples)
{
    return 0.5 * (1.0 + cos(M_PI * find_done(rate, samples)));
}

static double factor_multistep(const cvy_rate *rate, double samples)
{
    int passed = 0;
    while (passed < rate->milestones && samples >= rate->milestone_samples[passed]) {
        passed++;
    }
    return pow(rate->gamma, passed);
}

static double factor_exponential(const cvy_rate *rate, double samples)
{
    return pow(rate->gamma, samples / rate->step_samples);
}

static double factor_polynomial(const cvy_rate *rate, double samples)
{
    return pow(1.0 - find_done(rate, samples), rate->power);
}

static double (*const factor[])(const cvy_rate *rate, double samples) = {
    [CVY_RATE_CONSTANT] = factor_constant,
    [CVY_RATE_STEP] = factor_step,
    [CVY_RATE_COSINE] = factor_cosine,
    [CVY_RATE_MULTISTEP] = factor_multistep,
    [CVY_RATE_EXPONENTIAL] = factor_exponential,
    [CVY_RATE_POLYNOMIAL] = factor_polynomial,
};

double cvy_rate_at(const cvy_rate *rate, double samples, double batch)
{
    if (samples + batch < rate->warmup_samples) {
        return rate->base * (samples + batch) / rate->warmup_samples;
    }
    return rate->base * factor[rate->kind](rate, samples);
}

cvy_status cvy_rate_read_milestones(const char *text, double epoch_samples, cvy_rate *rate)
{
    const char *at = text;
    double last = 0.0;
    rate->milestones = 0;
    while (at && *at) {
        char *end;
        double epoch = strtod(at, &end);
        bool fits = end != at && (*end == '\0' || (*end == ',' && end[1])) && isfinite(epoch) && epoch > last;
        CVY_REQUIRE(fits, CVY_ERR_INPUT, "milestones: expected epochs that rise, such as 30,60,80, found '%.100s'",
                    text);
        CVY_REQUIRE(rate->milestones < CVY_RATE_MILESTONES, CVY_ERR_INPUT, "milestones: expected at most %d",
                    CVY_RATE_MILESTONES);
        rate->milestone_samples[rate->milestones++] = epoch * epoch_samples;
        last = epoch;
        at = *end ? end + 1 : end;
    }
    return CVY_OK;
}

cvy_status cvy_rate_check(const cvy_train_options *o)
{
    bool stepped = o->rate == CVY_RATE_STEP || o->rate == CVY_RATE_EXPONENTIAL;
    CVY_REQUIRE((unsigned)o->rate <= CVY_RATE_POLYNOMIAL, CVY_ERR_INPUT, "no schedule of number %d", (int)o->rate);
    CVY_REQUIRE(!stepped || o->step_epochs > 0.0, CVY_ERR_INPUT, "step-epochs: expected more than 0, got %g",
                o->step_epochs);
    CVY_REQUIRE(o->rate != CVY_RATE_MULTISTEP || o->milestones, CVY_ERR_INPUT,
                "the multistep schedule needs milestones: epochs such as 30,60,80");
    CVY_REQUIRE(o->rate_base_size >= 0 && o->power >= 0.0, CVY_ERR_INPUT,
                "the base size of the learning rate and the power must not be negative, got %lld and %g",
                (long long)o->rate_base_size, o->power);
    CVY_REQUIRE(o->warmup_epochs >= 0.0, CVY_ERR_INPUT, "warmup-epochs: expected at least 0, got %g",
                o->warmup_epochs);
    cvy_rate read;
    return cvy_rate_read_milestones(o->milestones, 1.0, &read);
}

cvy_status cvy_rate_setup(const cvy_train_options *o, double epoch_samples, double total_samples, cvy_rate *rate_out)
{
    double growth = o->rate_base_size > 0 ? (double)o->batch / (double)o->rate_base_size : 1.0;
    *rate_out = (cvy_rate){.kind = o->rate,
                           .base = o->learning_rate * growth,
                           .warmup_samples = o->warmup_epochs * epoch_samples,
                           .total_samples = total_samples,
                           .step_samples = o->step_epochs * epoch_samples,
                           .gamma = o->gamma,
                           .power = o->power};
    return cvy_rate_read_milestones(o->milestones, epoch_samples, rate_out);
}
