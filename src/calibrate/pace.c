/* Over time: a spell counts by how long it is, not by how many kernels were measured in it. */
#include "calibrate/pace.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

static const double between_interruptions_s = 5e-3;

cvy_status cvy_pace_add(cvy_pace *pace, const cvy_metered *metered)
{
    if (metered->probe.seconds > 0.0) {
        CVY_TRY(cvy_array_reserve(&pace->spell, pace->spells, &pace->capacity, sizeof *pace->spell));
        pace->spell[pace->spells++] = (cvy_pace_spell){metered->probe.seconds, metered->took_s};
        pace->probe_time_s2 += metered->took_s * metered->probe.seconds;
        pace->mean_time_s2 += metered->took_s * metered->probe.mean_s;
    }
    return CVY_OK;
}

static int compare_spells(const void *a, const void *b)
{
    double one = ((const cvy_pace_spell *)a)->probe_s, other = ((const cvy_pace_spell *)b)->probe_s;
    return (one > other) - (one < other);
}

void cvy_pace_settle(cvy_pace *pace)
{
    double all_s = 0.0, so_far_s = 0.0;
    for (int i = 0; i < pace->spells; i++) {
        all_s += pace->spell[i].took_s;
    }
    if (pace->spells > 0) {
        qsort(pace->spell, (size_t)pace->spells, sizeof *pace->spell, compare_spells);
    }
    for (int i = 0; i < pace->spells && so_far_s < all_s / 2.0; i++) {
        so_far_s += pace->spell[i].took_s;
        pace->usual_s = pace->spell[i].probe_s;
    }
}

void cvy_pace_clear(cvy_pace *pace)
{
    cvy_free(pace->spell);
    *pace = (cvy_pace){.spell = NULL};
}

double cvy_pace_probe_s(const cvy_pace *pace) { return pace->usual_s; }

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
