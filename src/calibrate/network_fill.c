/*
 * A profile becomes levels and rules. Rules speak of steps of an algorithm: a line A + C n of a collective is that of
 * one whose steps have the latency A / steps and whose bytes go at their share / C, so that the oracle's formula gives
 * the line back for as many ranks, and the algorithm's growth for others.
 */
#include "calibrate/network.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "calibrate/peaks.h"

enum { SOURCE = 160 };

/* How a collective over p ranks is written down: steps, and the share of a message that a rank sends. */
typedef struct form {
    cvy_collective collective;
    cvy_algorithm algorithm;
    double (*steps)(double ranks);
    double (*share)(double ranks);
} form;

static double once_round(double p) { return p - 1.0; }
static double twice_round(double p) { return 2.0 * (p - 1.0); }
static double all_but_own(double p) { return (p - 1.0) / p; }
static double twice_but_own(double p) { return 2.0 * (p - 1.0) / p; }
static double count_doublings(double p) { return ceil(log2(p)); }

static const form forms[] = {
    {CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RING, twice_round, twice_but_own},
    {CVY_COLLECTIVE_ALL_GATHER, CVY_ALGORITHM_RING, once_round, all_but_own},
    {CVY_COLLECTIVE_REDUCE_SCATTER, CVY_ALGORITHM_RING, once_round, all_but_own},
    {CVY_COLLECTIVE_ALL_TO_ALL, CVY_ALGORITHM_PAIRWISE, once_round, all_but_own},
    {CVY_COLLECTIVE_BROADCAST, CVY_ALGORITHM_TREE, count_doublings, count_doublings}};

/* NULL: of messages. */
static const form *find_form(cvy_collective collective)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (forms[i].collective == collective) {
            return &forms[i];
        }
    }
    return NULL;
}

/* What machine files hold: a latency above 0, which would mean the level's, and a bandwidth that is finite. */
static double bound_latency(double seconds) { return cvy_round_figure(fmax(seconds, 1e-9)); }
static double bound_Bps(double s_per_byte) { return cvy_round_figure(1.0 / fmax(s_per_byte, 1e-13)); }

/* A level has the latency of the least message from rank to rank, and the slope of the last piece of a curve. */
static cvy_status fill_level(const cvy_network_curve *one, const cvy_network_curve *curve, const char *name,
                             int endpoints, const char *date, cvy_machine *m)
{
    char source[SOURCE];
    const cvy_network_piece *last = &curve->piece[curve->pieces - 1];
    cvy_level *level = &m->level[m->levels++];
    *level = (cvy_level){.endpoints = endpoints, .ports = 1, .rails = 1, .oversubscription = 1.0,
                         .latency_s = bound_latency(one->point[0].seconds),
                         .bandwidth_Bps = bound_Bps(last->s_per_byte / curve->flows)};
    snprintf(source, sizeof source, "measured from rank to rank, %.0f to %.0f bytes, %s", curve->point[0].bytes,
             curve->point[curve->points - 1].bytes, date);
    CVY_TRY(cvy_machine_keep(m, name, &level->name));
    CVY_TRY(cvy_machine_set_source(m, &level->latency_s, source));
    return cvy_machine_set_source(m, &level->bandwidth_Bps, source);
}

static cvy_status fill_burst(const cvy_network_profile *profile, const char *date, cvy_machine *m)
{
    char source[SOURCE];
    if (profile->burst_bytes == 0) {
        return CVY_OK;
    }
    cvy_level *level = &m->level[m->levels - 1];
    level->burst_bytes = profile->burst_bytes;
    snprintf(source, sizeof source, "messages behind a pause, against those of a stream, %s", date);
    return cvy_machine_set_source(m, &level->burst_bytes, source);
}

/* Of messages those both ways are halos; where links save up, one way at a time looks faster than any stream is. */
static int find_traffic(const cvy_network_profile *profile, const cvy_network_curve *curve)
{
    return curve->both && profile->burst_bytes == 0 ? (int)CVY_TRAFFIC_SPACE : CVY_ANY;
}

static cvy_status fill_rule(const cvy_network_profile *profile, const cvy_network_curve *curve, int piece,
                            const char *date, cvy_machine *m)
{
    char source[SOURCE];
    const cvy_network_piece *p = &curve->piece[piece];
    const form *way = find_form(curve->collective);
    double ranks = curve->ranks;
    bool part = curve->groups > 1 && way;
    if (m->collectives == CVY_MAX_COLLECTIVES) {
        return CVY_OK;
    }
    cvy_collective_rule *rule = &m->collective[m->collectives++];
    *rule = (cvy_collective_rule){.collective = curve->collective,
                                  .algorithm = way ? (int)way->algorithm : CVY_ANY,
                                  .traffic = find_traffic(profile, curve), .level = curve->level,
                                  .up_to_bytes = piece + 1 < curve->pieces ? (int64_t)p->up_to_bytes : 0,
                                  .up_to_ranks = part ? curve->ranks : 0};
    rule->latency_s = bound_latency(p->constant_s / (way ? way->steps(ranks) : 1.0));
    rule->bandwidth_Bps = bound_Bps(p->s_per_byte / (way ? way->share(ranks) : 1.0) / curve->flows);
    snprintf(source, sizeof source, "measured over %d ranks%s, off by %.0f %% at most, %s", curve->ranks,
             part ? ", groups at once" : curve->both ? ", both ways" : "", 100 * p->residual, date);
    CVY_TRY(cvy_machine_set_source(m, &rule->latency_s, source));
    return cvy_machine_set_source(m, &rule->bandwidth_Bps, source);
}

static cvy_status fill_curve(const cvy_network_profile *profile, const cvy_network_curve *curve, const char *date,
                             cvy_machine *m)
{
    for (int i = 0; i < curve->pieces; i++) {
        CVY_TRY(fill_rule(profile, curve, i, date, m));
    }
    return CVY_OK;
}

/* The first that applies holds: groups before all ranks, messages both ways before those one way. */
static cvy_status fill_rules(const cvy_network_profile *profile, const char *date, cvy_machine *m)
{
    for (int second = 0; second < 2; second++) {
        for (int i = 0; i < profile->curves; i++) {
            const cvy_network_curve *curve = &profile->curve[i];
            bool message = curve->collective == CVY_COLLECTIVE_POINT_TO_POINT;
            bool first = message ? curve->both : curve->groups > 1;
            if (first == !second && !(message && second && profile->burst_bytes > 0)) {
                CVY_TRY(fill_curve(profile, curve, date, m));
            }
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

/* What was said of levels and rules is said no more. */
static void forget_sources(cvy_machine *m)
{
    int left = 0;
    for (int i = 0; i < m->sources; i++) {
        size_t offset = m->source[i].offset;
        if (offset < offsetof(cvy_machine, level) || offset >= offsetof(cvy_machine, nccl)) {
            m->source[left++] = m->source[i];
        }
    }
    m->sources = left;
}

/* Curves of messages come first: one way, and both, inside a node and between nodes. */
cvy_status cvy_network_fill(const cvy_network_profile *profile, const char *date, cvy_machine *machine)
{
    static const char *const name[] = {"node", "network"};
    const int endpoints[] = {profile->node_ranks, profile->nodes};
    int curve = 0;
    machine->nodes = profile->nodes;
    machine->devices_per_node = profile->node_ranks;
    machine->levels = machine->collectives = 0;
    forget_sources(machine);
    for (int i = 0; i < 2; i++) {
        if (endpoints[i] > 1) {
            bool saves = profile->burst_bytes > 0;
            CVY_TRY(fill_level(&profile->curve[curve], &profile->curve[curve + saves], name[i], endpoints[i], date,
                               machine));
            curve += 2;
        }
    }
    CVY_TRY(fill_burst(profile, date, machine));
    CVY_TRY(fill_rules(profile, date, machine));
    return profile->curves > 0 ? fill_execution(profile, date, machine) : CVY_OK;
}
