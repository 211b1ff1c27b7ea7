/*
 * A profile becomes levels and rules. Rules speak of steps of an algorithm: a line A + C n of a collective is that of a
 * ring whose steps have the latency A / steps and whose bytes go at their share / C, so that the oracle's formula gives
 * the line back for as many ranks, and a ring's growth for others.
 */
#include "calibrate/network.h"

#include <math.h>
#include <stdio.h>

#include "calibrate/peaks.h"

enum { SOURCE = 160 };

/* Steps, and the share of a message that a rank sends, of a collective over p ranks. */
typedef struct ring {
    cvy_collective collective;
    double steps, share; /* by p - 1, and by (p - 1) / p */
} ring;

static const ring rings[] = {{CVY_COLLECTIVE_ALL_REDUCE, 2, 2},
                             {CVY_COLLECTIVE_ALL_GATHER, 1, 1},
                             {CVY_COLLECTIVE_REDUCE_SCATTER, 1, 1}};

static const ring *find_ring(cvy_collective collective)
{
    for (size_t i = 0; i < sizeof rings / sizeof rings[0]; i++) {
        if (rings[i].collective == collective) {
            return &rings[i];
        }
    }
    return NULL;
}

/* What machine files hold: a latency above 0, which would mean the level's, and a bandwidth that is finite. */
static double bound_latency(double seconds) { return cvy_round_figure(fmax(seconds, 1e-9)); }
static double bound_Bps(double s_per_byte) { return cvy_round_figure(1.0 / fmax(s_per_byte, 1e-13)); }

/* Latency and bandwidth of a level: of messages, the constant of the first piece, the slope of the last. */
static cvy_status fill_level(const cvy_network_curve *curve, const char *name, int endpoints, const char *date,
                             cvy_machine *m)
{
    char source[SOURCE];
    const cvy_network_piece *last = &curve->piece[curve->pieces - 1];
    cvy_level *level = &m->level[m->levels++];
    *level = (cvy_level){.endpoints = endpoints, .ports = 1, .rails = 1, .oversubscription = 1.0,
                         .latency_s = bound_latency(curve->point[0].seconds),
                         .bandwidth_Bps = bound_Bps(last->s_per_byte)};
    snprintf(source, sizeof source, "measured from rank to rank, %.0f to %.0f bytes, %s", curve->point[0].bytes,
             curve->point[curve->points - 1].bytes, date);
    CVY_TRY(cvy_machine_keep(m, name, &level->name));
    CVY_TRY(cvy_machine_set_source(m, &level->latency_s, source));
    return cvy_machine_set_source(m, &level->bandwidth_Bps, source);
}

static cvy_status fill_rule(const cvy_network_curve *curve, int piece, const char *date, cvy_machine *m)
{
    char source[SOURCE];
    const cvy_network_piece *p = &curve->piece[piece];
    const ring *round = find_ring(curve->collective);
    double others = curve->ranks - 1.0;
    if (m->collectives == CVY_MAX_COLLECTIVES) {
        return CVY_OK;
    }
    cvy_collective_rule *rule = &m->collective[m->collectives++];
    *rule = (cvy_collective_rule){.collective = curve->collective,
                                  .algorithm = round ? (int)CVY_ALGORITHM_RING : CVY_ANY,
                                  .traffic = CVY_ANY, .level = curve->level,
                                  .up_to_bytes = piece + 1 < curve->pieces ? (int64_t)p->up_to_bytes : 0};
    rule->latency_s = bound_latency(p->constant_s / (round ? round->steps * others : 1.0));
    rule->bandwidth_Bps = bound_Bps(p->s_per_byte / (round ? round->share * others / curve->ranks : 1.0));
    snprintf(source, sizeof source, "measured over %d ranks, off by %.0f %% at most, %s", curve->ranks,
             100 * p->residual, date);
    CVY_TRY(cvy_machine_set_source(m, &rule->latency_s, source));
    return cvy_machine_set_source(m, &rule->bandwidth_Bps, source);
}

static cvy_status fill_rules(const cvy_network_profile *profile, const char *date, cvy_machine *m)
{
    for (int i = 0; i < profile->curves; i++) {
        const cvy_network_curve *curve = &profile->curve[i];
        bool told = find_ring(curve->collective) || curve->collective == CVY_COLLECTIVE_POINT_TO_POINT;
        for (int k = 0; told && k < curve->pieces; k++) {
            CVY_TRY(fill_rule(curve, k, date, m));
        }
    }
    return CVY_OK;
}

static cvy_status fill_execution(const cvy_network_profile *profile, const char *date, cvy_machine *m)
{
    char source[SOURCE];
    if (profile->bucket_bytes == 0) {
        return CVY_OK;
    }
    m->execution.bucket_bytes = profile->bucket_bytes;
    snprintf(source, sizeof source, "the least all-reduce within 5 %% of the best rate, %s", date);
    return cvy_machine_set_source(m, &m->execution.bucket_bytes, source);
}

cvy_status cvy_network_fill(const cvy_network_profile *profile, const char *date, cvy_machine *machine)
{
    machine->nodes = profile->nodes;
    machine->devices_per_node = profile->node_ranks;
    int curve = 0;
    if (profile->node_ranks > 1) {
        CVY_TRY(fill_level(&profile->curve[curve++], "node", profile->node_ranks, date, machine));
    }
    if (profile->nodes > 1) {
        CVY_TRY(fill_level(&profile->curve[curve], "network", profile->nodes, date, machine));
    }
    CVY_TRY(fill_rules(profile, date, machine));
    return profile->curves > 0 ? fill_execution(profile, date, machine) : CVY_OK;
}
