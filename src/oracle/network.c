/*
 * Seconds of collectives and of messages from where their ranks lie and from the machine's rules. Figures that a rule
 * gives were measured of one ring or message that had its level for itself; who shares it has that share of them.
 */
#include <math.h>
#include <string.h>

#include "oracle/network_internal.h"

/* A rule of `tensorflow` holds for tensorflow-20.06, too. */
static bool is_of_release(const cvy_collective_rule *rule, const char *release)
{
    size_t length = rule->release ? strlen(rule->release) : 0;
    return length == 0 || (release && strncmp(release, rule->release, length) == 0 &&
                           (release[length] == '\0' || release[length] == '-'));
}

const cvy_collective_rule *cvy_network_find_rule(const cvy_machine *machine, cvy_collective kind, cvy_traffic traffic,
                                                 int level, double bytes, int ranks)
{
    for (int i = 0; i < machine->collectives; i++) {
        const cvy_collective_rule *rule = &machine->collective[i];
        if (rule->collective == (int)kind && is_of_release(rule, machine->execution.release) &&
            (rule->level == CVY_ANY || rule->level == level) &&
            (rule->traffic == CVY_ANY || rule->traffic == (int)traffic) &&
            (rule->up_to_bytes == 0 || bytes <= (double)rule->up_to_bytes) &&
            (rule->up_to_ranks == 0 || ranks <= rule->up_to_ranks)) {
            return rule;
        }
    }
    return NULL;
}

cvy_traffic cvy_network_traffic(cvy_phase phase, unsigned axes)
{
    bool space = axes && !(axes & ~(unsigned)CVY_AXIS_SPACE);
    if (phase == CVY_PHASE_GRADIENT_EXCHANGE) {
        return CVY_TRAFFIC_GRADIENTS;
    }
    return phase == CVY_PHASE_HALO || (phase == CVY_PHASE_REDISTRIBUTE && space) ? CVY_TRAFFIC_SPACE
                                                                                 : CVY_TRAFFIC_LAYERS;
}

/* The line of a span, by a rule's figures where it has any. */
static cvy_line draw_line(const cvy_network_span *span, const cvy_collective_rule *rule, cvy_via via, double *all_Bps)
{
    cvy_line line = {.latency_s = span->latency_s[via], .bandwidth_Bps = span->Bps[via]};
    bool measured = cvy_network_is_measured(rule, via);
    *all_Bps = span->all_Bps[via];
    if (measured && rule->latency_s > 0.0) {
        line.latency_s = rule->latency_s;
    }
    if (measured && rule->bandwidth_Bps > 0.0) {
        line.bandwidth_Bps = rule->bandwidth_Bps * span->share[via];
        *all_Bps = rule->bandwidth_Bps * span->all_share[via];
    }
    return line;
}

/* A collective, or a part of one that is a collective of its own. */
static void add_part(const cvy_wiring *wiring, const cvy_collective_rule *rule, cvy_via via,
                     const cvy_network_request *request, cvy_network_cost *cost)
{
    const cvy_collective_algorithm *row =
        rule && rule->algorithm != CVY_ANY ? cvy_collective_find(request->collective, (cvy_algorithm)rule->algorithm)
                                           : cvy_collective_fastest(request->collective, wiring, request->bytes);
    double start_s = cvy_collective_estimate_s(row, wiring, 0.0);
    cost->latency_s += start_s + (cvy_network_is_measured(rule, via) ? rule->call_s : 0.0);
    cost->bytes_s += fmax(cvy_collective_estimate_s(row, wiring, request->bytes) - start_s, 0.0);
    cost->algorithm = row->algorithm;
    cost->rule = rule;
}

/* Ranks on one line: the members of a domain, or one of each domain. */
static void add_flat(const cvy_network *network, const cvy_network_span *span, int level, int ranks,
                     const cvy_network_request *request, cvy_network_cost *cost)
{
    cvy_via via = cvy_network_choose_via(network, request->traffic);
    const cvy_collective_rule *rule = cvy_network_find_rule(network->machine, request->collective, request->traffic,
                                                            level, request->bytes, ranks);
    double all_Bps;
    cvy_wiring wiring = {.ranks = ranks, .nccl = network->machine->nccl,
                         .inner = draw_line(span, rule, via, &all_Bps)};
    if (level >= network->border) { /* each on a node of its own */
        wiring.nodes = ranks;
        wiring.outer = wiring.inner;
    }
    add_part(&wiring, rule, via, request, cost);
}

/* Inside each node, then among one rank of each; where leaders do not keep it to themselves, they broadcast. */
static void add_leaders(const cvy_network *network, const cvy_network_group *group, const cvy_network_request *request,
                        cvy_network_cost *cost)
{
    cvy_network_request back = *request;
    back.collective = CVY_COLLECTIVE_BROADCAST;
    add_flat(network, &group->inner, group->inner_level, group->domain_ranks, request, cost);
    if (network->machine->execution.leader_broadcast) {
        add_flat(network, &group->inner, group->inner_level, group->domain_ranks, &back, cost);
    }
    add_flat(network, &group->outer, group->level, group->domains, request, cost);
    cost->algorithm = CVY_ALGORITHM_LEADER;
}

/* Ranks of which several share a domain. */
static void add_nested(const cvy_network *network, const cvy_network_group *group, const cvy_network_request *request,
                       cvy_network_cost *cost)
{
    const cvy_machine *machine = network->machine;
    cvy_via via = cvy_network_choose_via(network, request->traffic);
    const cvy_collective_rule *rule = cvy_network_find_rule(machine, request->collective, request->traffic,
                                                            group->level, request->bytes, group->ranks);
    const cvy_collective_rule *inner = cvy_network_find_rule(machine, request->collective, request->traffic,
                                                             group->inner_level, request->bytes, group->domain_ranks);
    cvy_wiring wiring = {.ranks = group->ranks, .nodes = group->domains, .node_ranks = group->domain_ranks,
                         .nccl = machine->nccl};
    double inner_all_Bps;
    wiring.inner = draw_line(&group->inner, inner, via, &inner_all_Bps);
    wiring.outer = draw_line(&group->outer, rule, via, &wiring.outer_all_Bps);
    if (group->level < network->border && rule && rule->algorithm >= CVY_ALGORITHM_NCCL) { /* it counts real nodes */
        wiring = (cvy_wiring){.ranks = group->ranks, .inner = cvy_wiring_slowest(&wiring), .nccl = machine->nccl};
    }
    add_part(&wiring, rule, via, request, cost);
}

void cvy_network_estimate_collective(cvy_network *network, const cvy_network_request *request,
                                     cvy_network_cost *cost_out)
{
    const cvy_network_group *group = cvy_network_find_group(network, request->axes);
    cvy_network_cost cost = {.level = group->level};
    if (group->ranks > 1) {
        cost.flows = group->outer.flows;
        if (request->leaders && group->domain_ranks > 1 && group->level >= network->border) {
            add_leaders(network, group, request, &cost);
        } else if (group->domain_ranks > 1) {
            add_nested(network, group, request, &cost);
        } else {
            add_flat(network, &group->outer, group->level, group->ranks, request, &cost);
        }
        cost.latency_s += 2.0 * request->tensors * network->machine->execution.pack_s; /* in and out */
    }
    cost.seconds = cost.latency_s + cost.bytes_s;
    *cost_out = cost;
}
