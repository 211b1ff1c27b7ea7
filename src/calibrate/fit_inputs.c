/* What lines and nets see of a kernel, and what they are to say: its time beside the roofline of all of the peaks. */
#include "calibrate/fit.h"

#include <math.h>

#include "base/order.h"

double cvy_fit_roof_s(const cvy_fit_device *device, const cvy_fit_sample *sample)
{
    return fmax(sample->flop / device->peak_flop_per_s, sample->bytes / device->memory_Bps);
}

double cvy_fit_target(const cvy_fit_device *device, const cvy_fit_sample *sample)
{
    return log(sample->seconds / cvy_fit_roof_s(device, sample));
}

void cvy_fit_inputs_find(const cvy_fit_sample *sample, int count, cvy_fit_inputs *inputs_out)
{
    cvy_fit_inputs *inputs = inputs_out;
    inputs->count = 0;
    for (int k = 0; k < CVY_KERNEL_FEATURES; k++) {
        double sum = 0.0, squares = 0.0, low = INFINITY, high = -INFINITY;
        for (int i = 0; i < count; i++) {
            double value = sample[i].feature[k];
            sum += value;
            low = fmin(low, value);
            high = fmax(high, value);
        }
        for (int i = 0; i < count; i++) {
            squares += (sample[i].feature[k] - sum / count) * (sample[i].feature[k] - sum / count);
        }
        bool matters = sample[0].kernel == CVY_ANY || cvy_kernel_feature_matters(sample[0].kernel, k);
        if (matters && high > low) {
            int at = inputs->count++;
            inputs->feature[at] = k;
            inputs->mean[at] = sum / count;
            inputs->deviation[at] = sqrt(squares / count);
            inputs->low[at] = low;
            inputs->high[at] = high;
        }
    }
}

void cvy_fit_inputs_get(const cvy_fit_inputs *inputs, const cvy_fit_sample *sample, double *value_out)
{
    for (int i = 0; i < inputs->count; i++) {
        double value = sample->feature[inputs->feature[i]], near = fmax(inputs->low[i], fmin(inputs->high[i], value));
        value_out[i] = (near - inputs->mean[i]) / inputs->deviation[i];
    }
}

void cvy_fit_find_whiskers(double *number, int count, double *low_out, double *high_out)
{
    static const double whiskers = 3.0; /* by the distance of the quartiles */
    cvy_sort_doubles(number, count);
    double quarter = number[(count - 1) / 4], third = number[3 * (count - 1) / 4], reach = whiskers * (third - quarter);
    *low_out = quarter - reach;
    *high_out = third + reach;
}
