/*
 * Messages from point to point. A rank r sends to r + delta, the same for all ranks; of D ranks in a row min(D, delta)
 * have a peer outside. Blocks that fit a domain never send out of it.
 */
#include <math.h>
#include <stdlib.h>

#include "oracle/network_internal.h"

/* One message as the links see it. */
typedef struct route {
    int64_t distance;                /* in ranks; 0: to itself */
    bool down;                       /* to a lower rank */
    int first, last;                 /* levels that it passes */
    int hops;                        /* pairs one behind the other along the axis, where each waits for the last */
    double bytes, latency_s, call_s;
    double measured_Bps;             /* of the last level, alone; 0: the level's */
    const cvy_collective_rule *rule;
} route;

static route find_route(const cvy_network *network, const cvy_message *message, cvy_traffic traffic, cvy_via via)
{
    const cvy_machine *machine = network->machine;
    route r = {.bytes = (double)message->bytes, .hops = 1};
    for (int i = 0; i < CVY_AXES; i++) {
        int64_t offset = message->peer_offset[i];
        if (offset != 0) {
            int64_t pairs = network->mesh.size[i] - llabs(offset);
            r.distance += offset * network->mesh.stride[i];
            r.last = network->axis_level[i] > r.last ? network->axis_level[i] : r.last;
            r.hops = pairs > r.hops ? (int)pairs : r.hops;
        }
    }
    r.down = r.distance < 0;
    r.distance = llabs(r.distance);
    r.first = r.last >= network->border ? network->border : 0;
    r.rule = cvy_network_find_rule(machine, CVY_COLLECTIVE_POINT_TO_POINT, traffic, r.last, r.bytes, 2);
    if (r.distance > 0) {
        r.latency_s = cvy_network_see_link(&machine->level[r.last], via).latency_s;
    }
    if (cvy_network_is_measured(r.rule, via)) {
        r.latency_s = r.rule->latency_s > 0.0 ? r.rule->latency_s : r.latency_s;
        r.measured_Bps = r.rule->bandwidth_Bps;
        r.call_s = r.rule->call_s;
    }
    return r;
}

/* Seconds that a message's bytes take of a rank's rails at a level, and that all ranks' take of an endpoint's ports. */
static void load_level(const cvy_network *network, const route *r, int level, cvy_via via, double *own_s,
                       double *ports_s)
{
    const cvy_machine *machine = network->machine;
    cvy_network_link link = cvy_network_see_link(&machine->level[level], via);
    int64_t devices = level > 0 ? machine->level[level - 1].devices : 1;
    double crossing = (double)(devices < r->distance ? devices : r->distance);
    if (level == r->last && cvy_network_is_measured(r->rule, via) && r->rule->rails > 0) {
        link.rails = fmin(r->rule->rails, machine->level[level].ports);
    }
    double link_Bps = level == r->last && r->measured_Bps > 0.0 ? r->measured_Bps / link.rails : link.Bps;
    *own_s = r->bytes / (link.rails * link_Bps);
    *ports_s = crossing * r->bytes / (link.passing * link_Bps);
}

/* What sending, or receiving, loads links with. */
typedef struct load {
    double own_s[CVY_MAX_LEVELS][2]; /* up and down */
    double ports_s[CVY_MAX_LEVELS];
    int64_t distance[2];             /* the furthest */
    double call_s;
} load;

static void add_route(const cvy_network *network, const route *r, cvy_via via, load *way)
{
    way->call_s += r->call_s;
    way->distance[r->down] = way->distance[r->down] > r->distance ? way->distance[r->down] : r->distance;
    for (int i = r->first; i <= r->last; i++) {
        double own_s, ports_s, *sum_s = &way->own_s[i][r->down];
        load_level(network, r, i, via, &own_s, &ports_s);
        *sum_s = i == 0 ? fmax(*sum_s, own_s) : *sum_s + own_s; /* a device's peers may be at other ports */
        way->ports_s[i] += ports_s;
    }
}

/* A rank has peers outside both above and below where its domain is smaller than their distance from each other. */
static double find_bytes_s(const cvy_network *network, const load *way)
{
    double bytes_s = 0.0;
    for (int i = 0; i < network->machine->levels; i++) {
        bool both = i > 0 && network->machine->level[i - 1].devices < way->distance[0] + way->distance[1];
        double up_s = way->own_s[i][0], down_s = way->own_s[i][1];
        bytes_s = fmax(bytes_s, fmax(both ? up_s + down_s : fmax(up_s, down_s), way->ports_s[i]));
    }
    return bytes_s;
}

static void note_level(const route *r, const cvy_network *network, cvy_network_cost *cost)
{
    int64_t devices = r->first > 0 ? network->machine->level[r->first - 1].devices : 1;
    if (r->last >= cost->level) {
        cost->level = r->last;
        cost->rule = r->rule;
        cost->flows = fmax(cost->flows, (double)(devices < r->distance ? devices : r->distance));
    }
}

/* All posted at once. */
static void estimate_parallel(const cvy_network *network, const cvy_message *message, int messages,
                              cvy_traffic traffic, cvy_network_cost *cost)
{
    cvy_via via = cvy_network_choose_via(network, traffic);
    load out = {.call_s = 0.0}, in = {.call_s = 0.0};
    double latency_s = 0.0;
    for (int i = 0; i < messages; i++) {
        route r = find_route(network, &message[i], traffic, via);
        if (r.distance > 0) {
            add_route(network, &r, via, message[i].receive ? &in : &out);
            latency_s = fmax(latency_s, r.latency_s);
            note_level(&r, network, cost);
        }
    }
    cost->latency_s = latency_s + fmax(out.call_s, in.call_s);
    cost->bytes_s = fmax(find_bytes_s(network, &out), find_bytes_s(network, &in));
}

/* Whether a receive is the other end of the shift that one of the sends is: rank r to r + 1, and r - 1 to r. */
static bool is_sent_too(const cvy_message *message, int messages, const cvy_message *received)
{
    for (int i = 0; i < messages; i++) {
        bool same = !message[i].receive;
        for (int axis = 0; same && axis < CVY_AXES; axis++) {
            same = message[i].peer_offset[axis] == -received->peer_offset[axis];
        }
        if (same) {
            return true;
        }
    }
    return false;
}

/* Hop by hop; a rank at an end sends in one shift and receives in the other, and waits for both. */
static void estimate_serial(const cvy_network *network, const cvy_message *message, int messages, cvy_traffic traffic,
                            cvy_network_cost *cost)
{
    cvy_via via = cvy_network_choose_via(network, traffic);
    for (int i = 0; i < messages; i++) {
        route r = find_route(network, &message[i], traffic, via);
        if (r.distance == 0 || (message[i].receive && is_sent_too(message, messages, &message[i]))) {
            continue;
        }
        load hop = {.call_s = 0.0};
        add_route(network, &r, via, &hop);
        cost->latency_s += r.hops * (r.latency_s + r.call_s);
        cost->bytes_s += r.hops * find_bytes_s(network, &hop);
        note_level(&r, network, cost);
    }
}

void cvy_network_estimate_messages(cvy_network *network, const cvy_message *message, int messages, cvy_traffic traffic,
                                   cvy_network_cost *cost_out)
{
    cvy_network_cost cost = {.level = -1};
    if (network->machine->execution.serial_halos && traffic == CVY_TRAFFIC_SPACE) {
        estimate_serial(network, message, messages, traffic, &cost);
    } else {
        estimate_parallel(network, message, messages, traffic, &cost);
    }
    cost.seconds = cost.latency_s + cost.bytes_s;
    *cost_out = cost;
}
