/*
 * OpenMP threads on cores of their own. A thread that the system moves finds cold caches, and two on one core leave
 * another idle; with as many threads as cores there is one right place for each, as long as nobody else is there: of a
 * thread that shares its core with a stranger all others wait, where the system might have moved it.
 */
#ifndef CVY_RUNTIME_THREADS_H
#define CVY_RUNTIME_THREADS_H

#include <sched.h>

/** What a process had before its threads were bound. */
typedef struct cvy_threads cvy_threads;

/** Have as many OpenMP threads in the teams of the calling thread. */
void cvy_threads_set(int threads);

/**
 * Bind each OpenMP thread of the calling thread's team to a core.
 *
 * Nothing is bound where the threads are not as many as the cores, or are one without @p cores, nor where
 * OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY say something of it. Threads made later by this one inherit its core:
 * see cvy_threads_pause().
 *
 * @param[in] threads of a team
 * @param[in] cores   of those that this thread may use the ones to bind to, each by its lowest hardware thread: a
 *                    rank's own, where ranks share a node; NULL: all that it may use
 * @return what cvy_threads_release() takes; NULL: nothing was bound
 */
cvy_threads *cvy_threads_bind(int threads, const cpu_set_t *cores);

/** Give the calling thread alone all its cores back, so that threads it makes meanwhile have them; NULL is fine. */
void cvy_threads_pause(const cvy_threads *threads);

/** Back to its core; NULL is fine. */
void cvy_threads_resume(const cvy_threads *threads);

/** Give every thread of the team all its cores back, release and set to NULL; NULL is fine. From the same thread. */
void cvy_threads_release(cvy_threads **threads);

#endif
