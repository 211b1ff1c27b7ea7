/* The cores that this process may use. */
#ifndef CVY_BASE_TOPOLOGY_H
#define CVY_BASE_TOPOLOGY_H

#include <stdint.h>

/** What hwloc (or, in a plan-only build, the system) says of this machine. */
typedef struct cvy_topology {
    int cores;             /**< physical cores that this process is bound to, at least 1 */
    int cores_machine;     /**< of the machine */
    int numa_nodes;
    int64_t memory_bytes;  /**< of the machine; 0 where unknown */
    int64_t cache_bytes;   /**< last level; 0 where unknown */
    int vector_bits;       /**< 512, 256 or 128: what the widest float vector is */
    char processor[96];    /**< model name; empty where unknown */
} cvy_topology;

/** Look at the machine. Cannot fail: what is not known is 0 or empty. */
void cvy_topology_get(cvy_topology *topology_out);

/** The lowest hardware thread of the core that one belongs to; @p cpu itself where the system does not say. */
int cvy_topology_core(int cpu);

#endif
