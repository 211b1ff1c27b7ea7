/* What the files of the network share. */
#ifndef CVY_ORACLE_NETWORK_INTERNAL_H
#define CVY_ORACLE_NETWORK_INTERNAL_H

#include "oracle/network.h"

/** A level of links as traffic sees it that comes one way or the other. */
typedef struct cvy_network_link {
    double latency_s;
    double Bps;     /**< of one link */
    double rails;   /**< links that one flow is spread over */
    double passing; /**< links of an endpoint that carry at once what all endpoints send */
} cvy_network_link;

/** Look at a level; without figures of the host's memory, its way is the device's. Cannot fail. */
cvy_network_link cvy_network_see_link(const cvy_level *level, cvy_via via);

/** The way of a traffic. */
static inline cvy_via cvy_network_choose_via(const cvy_network *network, cvy_traffic traffic)
{
    return network->machine->execution.host_halos && traffic == CVY_TRAFFIC_SPACE ? CVY_VIA_HOST : CVY_VIA_DEVICE;
}

/** The first rule of a machine that applies; NULL where none does. */
const cvy_collective_rule *cvy_network_find_rule(const cvy_machine *machine, cvy_collective kind, cvy_traffic traffic,
                                                 int level, double bytes, int ranks);

/** Whether a rule's figures are of this way: through the host, those for space alone. */
static inline bool cvy_network_is_measured(const cvy_collective_rule *rule, cvy_via via)
{
    return rule && (via == CVY_VIA_DEVICE || rule->traffic == CVY_TRAFFIC_SPACE);
}

#endif
