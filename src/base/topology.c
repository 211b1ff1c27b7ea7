/*
 * What this machine is. Cores are counted, not hardware threads: two threads of one core share its vector units, so a
 * second one gains a convolution nothing. Everything is first asked of the system; where hwloc is in the build its
 * answers, which know more machines, take their place. Not for memory: hwloc adds up the nodes, and a virtual machine
 * that got memory after its start has been seen to have 24 GB, of which its node told 6. A question without an answer
 * leaves 0.
 */
#include "base/topology.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if CVY_HAVE_HWLOC
#include <hwloc.h>
#endif

enum { MAX_CPUS = CPU_SETSIZE };

static int at_least_one(int count) { return count > 0 ? count : 1; }

int cvy_topology_core(int cpu)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "r");
    int leader = cpu;
    if (file) {
        if (fscanf(file, "%d", &leader) != 1 || leader < 0 || leader >= MAX_CPUS) {
            leader = cpu;
        }
        fclose(file);
    }
    return leader;
}

/* Cores that the hardware threads of a set belong to. */
static cpu_set_t find_cores(const cpu_set_t *cpus)
{
    cpu_set_t leaders;
    CPU_ZERO(&leaders);
    for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
        if (CPU_ISSET(cpu, cpus)) {
            CPU_SET(cvy_topology_core(cpu), &leaders);
        }
    }
    return leaders;
}

static int count_machine_cores(void)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (long cpu = 0; cpu < cpus && cpu < MAX_CPUS; cpu++) {
        CPU_SET((int)cpu, &all);
    }
    all = find_cores(&all);
    return CPU_COUNT(&all);
}

static int count_numa_nodes(void)
{
    char path[64];
    int nodes = 0;
    do {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d", nodes);
    } while (access(path, F_OK) == 0 && ++nodes < MAX_CPUS);
    return at_least_one(nodes);
}

static int64_t find_cache_bytes(void)
{
    static const int levels[] = {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        long bytes = sysconf(levels[i]);
        if (bytes > 0) {
            return bytes;
        }
    }
    return 0;
}

static void ask_system(cvy_topology *topology)
{
    cpu_set_t bound;
    CPU_ZERO(&bound);
    if (sched_getaffinity(0, sizeof bound, &bound) == 0) {
        topology->bound = find_cores(&bound);
    }
    topology->cores_machine = count_machine_cores();
    topology->numa_nodes = count_numa_nodes();
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0) {
        topology->memory_bytes = (int64_t)pages * page_bytes;
    }
    topology->cache_bytes = find_cache_bytes();
}

#if CVY_HAVE_HWLOC
static bool load_machine(hwloc_topology_t *machine_out)
{
    if (hwloc_topology_init(machine_out) != 0) {
        return false;
    }
    /* cores that a container hides still belong to the machine */
    if (hwloc_topology_set_flags(*machine_out, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(*machine_out) != 0) {
        hwloc_topology_destroy(*machine_out);
        return false;
    }
    return true;
}

/* The lowest hardware thread of the next core, in the order in which they lie beside each other; -1 behind the last. */
static int find_next_core(hwloc_topology_t machine, hwloc_obj_t *core)
{
    while ((*core = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_CORE, *core))) {
        int leader = hwloc_bitmap_first((*core)->cpuset);
        if (leader >= 0 && leader < MAX_CPUS) {
            return leader;
        }
    }
    return -1;
}

/* Cores of which this process may use at least one hardware thread. */
static cpu_set_t find_bound_cores(hwloc_topology_t machine)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (bound && hwloc_get_cpubind(machine, bound, HWLOC_CPUBIND_PROCESS) == 0) {
        hwloc_obj_t core = NULL;
        for (int leader; (leader = find_next_core(machine, &core)) >= 0;) {
            if (hwloc_bitmap_intersects(core->cpuset, bound)) {
                CPU_SET(leader, &cores);
            }
        }
    }
    hwloc_bitmap_free(bound);
    return cores;
}

static int64_t find_last_cache_bytes(hwloc_topology_t machine)
{
    static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        hwloc_obj_t cache = hwloc_get_obj_by_type(machine, levels[i], 0);
        if (cache) {
            return (int64_t)cache->attr->cache.size;
        }
    }
    return 0;
}

static void take(int *answer, int better)
{
    if (better > 0) {
        *answer = better;
    }
}

static void ask_library(cvy_topology *topology)
{
    hwloc_topology_t machine;
    if (!load_machine(&machine)) {
        return;
    }
    cpu_set_t bound = find_bound_cores(machine);
    topology->bound = CPU_COUNT(&bound) ? bound : topology->bound;
    take(&topology->cores_machine, hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_CORE));
    take(&topology->numa_nodes, hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE));
    int64_t cache_bytes = find_last_cache_bytes(machine);
    topology->cache_bytes = cache_bytes > 0 ? cache_bytes : topology->cache_bytes;
    hwloc_topology_destroy(machine);
}
#endif

static int find_vector_bits(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        return 512;
    }
    if (__builtin_cpu_supports("avx")) {
        return 256;
    }
#endif
    return 128;
}

/* "model name : AMD EPYC 7543 32-Core Processor" of /proc/cpuinfo. */
static void read_processor(char *name, size_t room)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) {
        return;
    }
    char line[256];
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", 10) == 0) {
            const char *words = colon + 1 + strspn(colon + 1, " \t");
            snprintf(name, room, "%.*s", (int)strcspn(words, "\n"), words);
            break;
        }
    }
    fclose(file);
}

void cvy_topology_get(cvy_topology *topology_out)
{
    cvy_topology topology = {0};
    ask_system(&topology);
#if CVY_HAVE_HWLOC
    ask_library(&topology);
#endif
    topology.cores = at_least_one(CPU_COUNT(&topology.bound));
    topology.cores_machine = at_least_one(topology.cores_machine);
    topology.vector_bits = find_vector_bits();
    read_processor(topology.processor, sizeof topology.processor);
    *topology_out = topology;
}

void cvy_topology_slice(const cpu_set_t *cores, int first, int count, cpu_set_t *slice_out)
{
    cpu_set_t slice;
    int place = 0;
    CPU_ZERO(&slice);
#if CVY_HAVE_HWLOC
    hwloc_topology_t machine;
    if (load_machine(&machine)) {
        hwloc_obj_t core = NULL;
        for (int leader; (leader = find_next_core(machine, &core)) >= 0;) {
            if (CPU_ISSET(leader, cores) && place++ >= first && place <= first + count) {
                CPU_SET(leader, &slice);
            }
        }
        hwloc_topology_destroy(machine);
    }
#endif
    if (place == 0) {
        for (int leader = 0; leader < MAX_CPUS; leader++) {
            if (CPU_ISSET(leader, cores) && place++ >= first && place <= first + count) {
                CPU_SET(leader, &slice);
            }
        }
    }
    *slice_out = slice;
}
