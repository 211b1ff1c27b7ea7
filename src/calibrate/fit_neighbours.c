/* The nearest neighbours (Cover and Hart, "Nearest neighbor pattern classification", 1967), by logarithms of sizes. */
#include "calibrate/fit.h"

#include <math.h>

enum { NEIGHBOURS = 3 };

double cvy_fit_neighbours_estimate(const cvy_fit_sample *known, int count, const cvy_fit_device *device,
                                   const cvy_fit_sample *sample)
{
    static const cvy_fit_shares all = {1.0, 1.0};
    double nearest[NEIGHBOURS], ratio[NEIGHBOURS], sum = 0.0;
    int found = 0;
    for (int i = 0; i < count; i++) {
        double distance = 0.0;
        for (int k = 0; k < CVY_KERNEL_FEATURES; k++) {
            distance += (known[i].feature[k] - sample->feature[k]) * (known[i].feature[k] - sample->feature[k]);
        }
        int at = found < NEIGHBOURS ? found++ : NEIGHBOURS;
        for (; at > 0 && nearest[at - 1] > distance; at--) {
            if (at < NEIGHBOURS) {
                nearest[at] = nearest[at - 1];
                ratio[at] = ratio[at - 1];
            }
        }
        if (at < NEIGHBOURS) {
            nearest[at] = distance;
            ratio[at] = log(known[i].seconds / cvy_fit_shares_estimate(&all, device, known[i].flop, known[i].bytes));
        }
    }
    for (int i = 0; i < found; i++) {
        sum += ratio[i] / found;
    }
    return cvy_fit_shares_estimate(&all, device, sample->flop, sample->bytes) * exp(sum);
}
