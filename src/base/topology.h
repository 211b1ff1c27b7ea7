/* The cores that this process may use. */
#ifndef CVY_BASE_TOPOLOGY_H
#define CVY_BASE_TOPOLOGY_H

#include <sched.h>
#include <stdint.h>

/** What hwloc (or, in a plan-only build, the system) says of this machine. */
typedef struct cvy_topology {
    int cores;             /**< physical cores that this process is bound to, at least 1 */
    int cores_machine;     /**< of the machine */
    cpu_set_t bound;       /**< `cores`, each by its lowest hardware thread; empty where unknown */
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

/**
 * Take @p count of some cores, from the @p first (0 is the lowest) on, in the order in which the machine has them
 * beside each other (those of one NUMA domain in a row), which is not always that of their numbers. Cannot fail: behind
 * the last core there are none.
 *
 * @param[in]  cores     each by its lowest hardware thread, as in cvy_topology
 * @param[out] slice_out likewise; may be @p cores
 */
void cvy_topology_slice(const cpu_set_t *cores, int first, int count, cpu_set_t *slice_out);

#endif
