/*
 * What names the bottleneck: an elasticity of 1 is a parameter of which twice as much gives twice the images; 0, one
 * that does nothing. Of the device, on the fewest ranks; of the whole cluster, on the most.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "oracle/sweep_internal.h"

/* Less is told as none. */
static const double least_elasticity = 0.1;

double cvy_sweep_divide(double less, double more, double ratio)
{
    return less > 0.0 && more > 0.0 && ratio > 1.0 ? log(more / less) / log(ratio) : NAN;
}

/* The machine's parameter of the largest elasticity; CVY_VARIED_COUNT where none is known. */
static cvy_varied find_largest(const double *elasticity, cvy_varied last)
{
    cvy_varied largest = CVY_VARIED_COUNT;
    for (cvy_varied i = CVY_VARIED_ARITHMETIC; i <= last; i++) {
        if (isfinite(elasticity[i]) &&
            (largest == CVY_VARIED_COUNT || fabs(elasticity[i]) > fabs(elasticity[largest]))) {
            largest = i;
        }
    }
    return largest;
}

/* The fewest, or most, ranks of which elasticities are known; -1: none. */
static int find_known(const cvy_sweep *sweep, bool most)
{
    int found = -1;
    for (int i = 0; i < sweep->options.rank_counts && (most || found < 0); i++) {
        found = isfinite(sweep->elasticity[i][CVY_VARIED_ARITHMETIC]) ? i : found;
    }
    return found;
}

/* The first number of ranks from which on a parameter is the largest. */
static int find_first(const cvy_sweep *sweep, int last, cvy_varied parameter)
{
    int first = last;
    while (first > 0 && find_largest(sweep->elasticity[first - 1], CVY_VARIED_LINK_LATENCY) == parameter) {
        first--;
    }
    return first;
}

static void say(const char *level, const cvy_sweep *sweep, int at, cvy_varied last, cvy_sweep_bottleneck *b)
{
    char count[2][CVY_UNIT_TEXT], from[80] = "";
    const double *elasticity = sweep->elasticity[at];
    cvy_varied largest = find_largest(elasticity, last);
    int first = last == CVY_VARIED_LINK_LATENCY ? find_first(sweep, at, largest) : at;
    b->ranks = sweep->options.ranks[at];
    b->elasticity = elasticity[largest];
    b->parameter = fabs(b->elasticity) >= least_elasticity ? largest : CVY_VARIED_COUNT;
    cvy_print_count(b->ranks, count[0]);
    if (b->parameter == CVY_VARIED_COUNT) {
        snprintf(b->sentence, sizeof b->sentence, "%s: on %s rank%s no parameter limits by much; %s most, by an "
                 "elasticity of %.2f", level, count[0], b->ranks == 1 ? "" : "s", cvy_varied_words(largest),
                 b->elasticity);
        return;
    }
    if (first < at) {
        snprintf(from, sizeof from, ", as from %s ranks on", cvy_print_count(sweep->options.ranks[first], count[1]));
    }
    snprintf(b->sentence, sizeof b->sentence, "%s: on %s rank%s %s limits%s: 1 %% %s of it gives %.2f %% more images/s",
             level, count[0], b->ranks == 1 ? "" : "s", cvy_varied_words(largest), from,
             b->elasticity < 0.0 ? "less" : "more", fabs(b->elasticity));
}

void cvy_sweep_name_bottlenecks(cvy_sweep *sweep)
{
    int fewest = find_known(sweep, false), most = find_known(sweep, true);
    sweep->device.parameter = sweep->cluster.parameter = CVY_VARIED_COUNT;
    if (fewest < 0) {
        static const char nothing[] = "the strategy is possible on no number of ranks";
        memcpy(sweep->device.sentence, nothing, sizeof nothing);
        memcpy(sweep->cluster.sentence, nothing, sizeof nothing);
        return;
    }
    say("device", sweep, fewest, CVY_VARIED_MEMORY_BANDWIDTH, &sweep->device);
    say("cluster", sweep, most, CVY_VARIED_LINK_LATENCY, &sweep->cluster);
}
