/* Means over time: of an iteration that takes long, each spell has its share. */
#include "calibrate/pace.h"

#include <math.h>

static const double between_interruptions_s = 5e-3;

void cvy_pace_add(cvy_pace *pace, const cvy_metered *metered)
{
    if (metered->probe.seconds > 0.0) {
        pace->took_s += metered->took_s;
        pace->probe_time_s2 += metered->took_s * metered->probe.seconds;
        pace->mean_time_s2 += metered->took_s * metered->probe.mean_s;
    }
}

double cvy_pace_probe_s(const cvy_pace *pace)
{
    return pace->took_s > 0.0 ? pace->probe_time_s2 / pace->took_s : 0.0;
}

double cvy_pace_interruptions(const cvy_pace *pace)
{
    return pace->probe_time_s2 > 0.0 ? fmax(0.0, pace->mean_time_s2 / pace->probe_time_s2 - 1.0) : 0.0;
}

cvy_kernel_time cvy_pace_correct(const cvy_pace *pace, const cvy_metered *metered)
{
    cvy_kernel_time time = metered->time;
    double usual_s = cvy_pace_probe_s(pace);
    if (usual_s > 0.0 && metered->probe.seconds > 0.0) {
        time.seconds *= usual_s / metered->probe.seconds;
        double caught = fmin(1.0, time.seconds / between_interruptions_s);
        time.seconds /= 1.0 + cvy_pace_interruptions(pace) * caught;
    }
    return time;
}
