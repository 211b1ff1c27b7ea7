/*
 * Seconds of what a schedule's communication steps say, on a machine's links. Ranks are devices, and consecutive ranks
 * fill a node, so the sizes and strides of a mesh tell where a group of ranks lies: on which levels of links, how many
 * of its members share a domain, and how many other groups, which do the same at the same time, share its ports. Cost
 * does not grow with the ranks. Contention is counted, never a factor:
 *
 *   what a flow has over a level = min(rails, ports / (oversubscription * flows of the endpoint)) * bandwidth
 *
 * A ring is one flow into, and one out of, each domain that it passes; where an algorithm sends all members of a domain
 * across at once (halving, pairs, the middle of a hierarchical one) each is a flow. Traffic between nodes passes every
 * level from the node's ports outwards, traffic inside a node those inside. Where blocks of ranks do not fit domains,
 * it is the worst placed group that counts.
 */
#ifndef CVY_ORACLE_NETWORK_H
#define CVY_ORACLE_NETWORK_H

#include "oracle/collective.h"
#include "plan/mesh.h"
#include "plan/schedule.h"

/** By way of the device's own links, or through the memory of the host. */
typedef enum cvy_via { CVY_VIA_DEVICE, CVY_VIA_HOST, CVY_VIA_COUNT } cvy_via;

/** Levels that a group's traffic passes, as one flow sees them. */
typedef struct cvy_network_span {
    double latency_s[CVY_VIA_COUNT];
    double Bps[CVY_VIA_COUNT];         /**< a member of each domain at a time */
    double all_Bps[CVY_VIA_COUNT];     /**< all members of a domain at once */
    double share[CVY_VIA_COUNT];       /**< of what one flow had alone: what measured bandwidths are cut by */
    double all_share[CVY_VIA_COUNT];
    double flows;                      /**< of an endpoint, where they are most by its ports; a member at a time */
} cvy_network_span;

/** How the groups along some axes lie. */
typedef struct cvy_network_group {
    int ranks;              /**< of one */
    int domains;            /**< that one lies on: nodes; in a node, domains of the level below the one that holds it */
    int domain_ranks;       /**< members in the fullest */
    int inner_level, level; /**< the innermost that holds the members of a domain (-1: one has none but itself); all */
    cvy_network_span inner, outer; /**< inside a domain; between domains */
} cvy_network_group;

/** A mesh on a machine; made by cvy_network_setup(). Of one thread: groups are worked out when first asked for. */
typedef struct cvy_network {
    const cvy_machine *machine; /**< borrowed */
    cvy_mesh mesh;
    int border;                 /**< the first level between nodes */
    int axis_level[CVY_AXES];   /**< the innermost that holds all ranks that differ in an axis or faster ones */
    uint64_t known;             /**< bits of the groups that were asked for */
    cvy_network_group group[1 << CVY_AXES]; /**< by set of axes */
} cvy_network;

/** What a group does. */
typedef struct cvy_network_request {
    cvy_collective collective; /**< not point-to-point */
    unsigned axes;             /**< of the group: bits of cvy_axis */
    cvy_traffic traffic;
    double bytes;              /**< as cvy_collective_estimate_s() counts them */
    int tensors;               /**< packed for it and unpacked behind it, each time that one is; 0: none */
    bool leaders;              /**< all-reduce inside each node, then by one leader of each */
} cvy_network_request;

/** Seconds, and what they come from. */
typedef struct cvy_network_cost {
    double seconds;                  /**< the sum of the next two */
    double latency_s;                /**< what does not depend on bytes: calls, start-ups, packing by the tensor */
    double bytes_s;
    cvy_algorithm algorithm;         /**< of a collective */
    int level;                       /**< of the machine, the innermost that holds all; -1: nothing is sent */
    double flows;                    /**< that share an endpoint's ports, this one counted, where they are most */
    const cvy_collective_rule *rule; /**< of the machine; NULL: none applies */
} cvy_network_cost;

/**
 * Lay a mesh on a machine. Takes no memory.
 *
 * @param[in]  machine     borrowed, must outlive the network
 * @param[in]  mesh        copied
 * @param[out] network_out untouched on failure
 * @retval CVY_ERR_INFEASIBLE more ranks than the machine has devices
 */
cvy_status cvy_network_setup(const cvy_machine *machine, const cvy_mesh *mesh, cvy_network *network_out);

/** How the groups along a set of axes lie. Cannot fail. */
const cvy_network_group *cvy_network_find_group(cvy_network *network, unsigned axes);

/** What a step of a phase over axes is for: gradients; space, where halos or axes of space alone are; else layers. */
cvy_traffic cvy_network_traffic(cvy_phase phase, unsigned axes);

/**
 * Estimate a collective that all groups along the same axes do at the same time. Cannot fail.
 *
 * The first rule of the machine that applies gives algorithm, call and measured figures; without one the fastest of the
 * candidates at the levels' figures. Over axes of space the host's figures hold where the machine stages halos.
 */
void cvy_network_estimate_collective(cvy_network *network, const cvy_network_request *request,
                                     cvy_network_cost *cost_out);

/**
 * Estimate the messages that a rank sends and receives in one step, while all ranks do the same. Cannot fail.
 *
 * Messages are posted at once: the longest latency counts once, a rule's call once for each, and sending beside
 * receiving costs nothing. Bytes of one direction follow one another: those of a device over its ports, those of a rank
 * that leave a domain over its rails, and those of all ranks that leave it over its ports. With serial halos (traffic
 * space) every hop along an axis waits for the one before, hop by hop one way, then back.
 *
 * @param[in] messages at least none; peers that the mesh does not have are not to be among them
 */
void cvy_network_estimate_messages(cvy_network *network, const cvy_message *message, int messages, cvy_traffic traffic,
                                   cvy_network_cost *cost_out);

#endif
