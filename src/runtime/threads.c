/* By masks of the system: a core is all of its hardware threads that this process may use. */
#include "runtime/threads.h"

#include <omp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/topology.h"

struct cvy_threads {
    int count;
    cpu_set_t all;    /* what the calling thread had */
    cpu_set_t core[]; /* of each thread of a team */
};

static bool is_up_to_user(void)
{
    return getenv("OMP_PROC_BIND") || getenv("OMP_PLACES") || getenv("GOMP_CPU_AFFINITY");
}

/* Share the hardware threads of some cores out over these, in order of the lowest one of each; answers how many cores
 * there are. NULL: of all cores. */
static int find_cores(const cpu_set_t *all, const cpu_set_t *wanted, cpu_set_t *core, int room)
{
    int place[CPU_SETSIZE]; /* of the core that a lowest hardware thread stands for, plus 1 */
    int cores = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        place[cpu] = 0;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, all)) {
            continue;
        }
        int leader = cvy_topology_core(cpu);
        if (wanted && !CPU_ISSET(leader, wanted)) {
            continue;
        }
        if (place[leader] == 0) {
            place[leader] = ++cores;
        }
        if (place[leader] <= room) {
            CPU_SET(cpu, &core[place[leader] - 1]);
        }
    }
    return cores;
}

/* A mask that the system refuses leaves a thread where it was: slower perhaps, never wrong. */
static void set_mask(const cpu_set_t *mask) { (void)sched_setaffinity(0, sizeof *mask, mask); }

void cvy_threads_set(int threads)
{
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
}

cvy_threads *cvy_threads_bind(int threads, const cpu_set_t *cores)
{
    cvy_threads *t = NULL;
    if (threads < (cores ? 1 : 2) || is_up_to_user()) {
        return NULL;
    }
    t = cvy_calloc(1, sizeof *t + (size_t)threads * sizeof t->core[0]);
    if (!t || sched_getaffinity(0, sizeof t->all, &t->all) != 0 ||
        find_cores(&t->all, cores, t->core, threads) != threads) {
        cvy_free(t);
        return NULL;
    }
    t->count = threads;
#pragma omp parallel num_threads(threads)
    set_mask(&t->core[omp_get_thread_num()]);
    return t;
}

void cvy_threads_pause(const cvy_threads *t)
{
    if (t) {
        set_mask(&t->all);
    }
}

void cvy_threads_resume(const cvy_threads *t)
{
    if (t) {
        set_mask(&t->core[0]);
    }
}

void cvy_threads_release(cvy_threads **threads)
{
    const cvy_threads *t = *threads;
    if (t) {
#pragma omp parallel num_threads(t->count)
        set_mask(&t->all);
        cvy_free(*threads);
        *threads = NULL;
    }
}
