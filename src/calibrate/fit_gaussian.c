/*
 * A Gaussian process on a sum of costs: the sum says what physics does, the process what it leaves. Its targets are cut
 * to the whiskers of a box plot, as those of nets. The likeness is learnt of a part of many samples, as each step takes
 * the cube of them; the process holds more, of which each prediction takes the square.
 */
#include "calibrate/fit.h"

#include <math.h>

#include "base/memory.h"
#include "base/order.h"
#include "calibrate/gaussian_trainer.h"

enum { MOST_LEARNT = 160, MOST_HELD = 256 };
_Static_assert((int)MOST_HELD <= (int)CVY_GAUSSIAN_MAX_SAMPLES, "a file may hold them");

static double find_target(const cvy_cost_sum *base, const cvy_fit_sample *sample)
{
    return log(sample->seconds / cvy_cost_sum_get(base, sample->feature, sample->flop, sample->bytes));
}

/* Targets within the whiskers, and their mean. */
static cvy_status set_targets(const cvy_fit_sample *sample, int count, cvy_gaussian_spec *spec, double *target)
{
    double low, high, *sorted = cvy_calloc((size_t)count, sizeof *sorted);
    if (!sorted) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < count; i++) {
        sorted[i] = target[i] = find_target(&spec->base, &sample[i]);
    }
    cvy_fit_find_whiskers(sorted, count, &low, &high);
    for (int i = 0; i < count; i++) {
        target[i] = fmax(low, fmin(high, target[i]));
        spec->middle += target[i] / count;
    }
    cvy_free(sorted);
    return CVY_OK;
}

static cvy_status learn(const cvy_gaussian_spec *spec, int inputs, cvy_likeness *likeness)
{
    int samples = spec->samples < MOST_LEARNT ? spec->samples : MOST_LEARNT;
    double *y = cvy_calloc((size_t)samples, sizeof *y);
    const cvy_gaussian_lesson lesson = {samples, inputs, spec->input, y};
    cvy_gaussian_trainer *trainer = NULL;
    cvy_status status = y ? CVY_OK : CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, status);
    for (int i = 0; i < samples; i++) {
        y[i] = spec->target[i] - spec->middle;
    }
    CVY_TRY_GOTO(status, done, cvy_gaussian_trainer_create(&lesson, &trainer));
    status = cvy_gaussian_trainer_run(trainer, likeness);
done:
    cvy_gaussian_trainer_destroy(&trainer);
    cvy_free(y);
    return status;
}

cvy_status cvy_fit_gaussian_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device,
                                 cvy_fit_gaussian *gaussian_out)
{
    cvy_fit_gaussian made = {0};
    cvy_status status;
    cvy_fit_inputs_find(sample, count, &made.inputs);
    const int inputs = made.inputs.count, held = count < MOST_HELD ? count : MOST_HELD;
    CVY_REQUIRE(inputs > 0 && count >= CVY_FIT_LEAST, CVY_ERR_INFEASIBLE, "%d samples for a process", count);
    double *input = made.input = cvy_calloc((size_t)held * (size_t)inputs, sizeof *input);
    double *target = made.target = cvy_calloc((size_t)count, sizeof *target);
    CVY_TRY_GOTO(status, done, input && target ? CVY_OK : CVY_ERR_MEMORY);
    CVY_TRY_GOTO(status, done, cvy_fit_costs_find(sample, count, &made.process.base));
    CVY_TRY_GOTO(status, done, set_targets(sample, count, &made.process, target));
    for (int i = 0; i < held; i++) {
        cvy_fit_inputs_get(&made.inputs, &sample[i], input + i * inputs);
    }
    made.process.samples = held;
    made.process.input = input;
    made.process.target = target;
    CVY_TRY_GOTO(status, done, learn(&made.process, inputs, &made.process.likeness));
    const cvy_predictor_spec spec = cvy_fit_gaussian_spec(&made, device);
    CVY_TRY_GOTO(status, done, cvy_predictor_create(&spec, &made.predictor));
    *gaussian_out = made;
    made = (cvy_fit_gaussian){0};
done:
    cvy_fit_gaussian_clear(&made);
    return status;
}

cvy_predictor_spec cvy_fit_gaussian_spec(const cvy_fit_gaussian *gaussian, const cvy_fit_device *device)
{
    const cvy_fit_inputs *inputs = &gaussian->inputs;
    return (cvy_predictor_spec){.precision = CVY_PRECISION_FP32, .peak_flop_per_s = device->peak_flop_per_s,
                                .memory_Bps = device->memory_Bps, .inputs = inputs->count, .input = inputs->feature,
                                .mean = inputs->mean, .deviation = inputs->deviation, .low = inputs->low,
                                .high = inputs->high, .gaussian = &gaussian->process};
}

cvy_prediction cvy_fit_gaussian_estimate(const cvy_fit_gaussian *gaussian, const cvy_fit_sample *sample)
{
    return cvy_predictor_run(gaussian->predictor, sample->feature, sample->flop, sample->bytes);
}

void cvy_fit_gaussian_clear(cvy_fit_gaussian *gaussian)
{
    cvy_predictor_destroy(&gaussian->predictor);
    cvy_free(gaussian->input);
    cvy_free(gaussian->target);
    *gaussian = (cvy_fit_gaussian){0};
}
