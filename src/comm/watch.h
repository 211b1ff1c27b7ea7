/*
 * The watch: no rank is left waiting. A thread in each process keeps TCP links to a few others, beside MPI, so that the
 * ranks form a tree; what each rank does (base/pulse.h) goes up it, and what was found goes everywhere. Found are
 *
 *   - a process that ended without having left in good order, at once;
 *   - a process of which nothing was heard for the time-out: it was stopped, or its node hangs;
 *   - a rank that others wait for and that has not beaten for the time-out, and what it is at;
 *   - ranks that all wait, and the one that is behind;
 *   - a rank that has left while others wait for it;
 *   - a rank that says that it has failed where it cannot be agreed on.
 *
 * Then all ranks are ended, and one of them says why. Time in which the watch itself did not run does not count: where
 * a laptop sleeps, or all processes are stopped in a debugger, nothing is found.
 */
#ifndef CVY_COMM_WATCH_H
#define CVY_COMM_WATCH_H

#include <stdbool.h>

#include "comm/comm.h"

/** Why the run ends. */
typedef struct cvy_watch_end {
    cvy_status status; /**< CVY_ERR_RANK, or what a rank has said of itself */
    int rank;          /**< the one that was lost or late, or has failed */
    bool speaks;       /**< whether this process is the one that says so; of all, one does */
    const char *text;  /**< "rank 2 did not come to exchange 183 (all-reduce over sample) within 5 min: it is …" */
} cvy_watch_end;

typedef struct cvy_watch_options {
    double timeout_s; /**< the same on all ranks; above 0 */
    int fan_out;      /**< links of a rank to those below it; the same on all ranks */
    /**
     * Called on the watch's thread when the run is to end. It has to end the process, at once and without asking MPI,
     * in which the main thread may hang: print the line where this process speaks, then leave
     * without handlers with cvy_status_exit_code(status); the launcher ends what is left. Where it returns, or is NULL,
     * cvy_comm_abandon() is called.
     */
    void (*abandon)(void *context, const cvy_watch_end *end);
    /** Called by cvy_watch_start(), on rank 0, where ranks cannot be watched since no link to them could be made. */
    void (*warn)(void *context, const char *text);
    void *context;
} cvy_watch_options;

#define CVY_WATCH_OPTIONS_INIT {.timeout_s = 300, .fan_out = 32}

typedef struct cvy_watch cvy_watch;

/**
 * Wait until all ranks are here, and watch them from then on. Collective. Takes up to 10 s where links cannot be made;
 * that is a warning and no failure.
 *
 * @param[in]  comm       borrowed until cvy_watch_stop(); NULL, or one rank: there is nothing to watch
 * @param[in]  options    copied
 * @param[out] watch_out  released with cvy_watch_stop()
 * @retval CVY_ERR_ARG    a time-out that is not above 0, a fan-out below 1
 * @retval CVY_ERR_MEMORY also: no thread can be started
 * @retval CVY_ERR_RANK   as cvy_comm_gather_within(), with the time-out of the options
 */
cvy_status cvy_watch_start(cvy_comm *comm, const cvy_watch_options *options, cvy_watch **watch_out);

/**
 * End the run, since this rank has failed in what the others wait for: one of all ranks says @p text, and all end with
 * the status. Not collective; from the thread that works. Returns only where cvy_watch_options.abandon does.
 *
 * @param[in] status any but CVY_OK
 * @param[in] text   "rank 2: no memory for 1 objects of 24 bytes"; what does not fit into CVY_WATCH_TEXT is cut off
 */
void cvy_watch_fail(cvy_watch *watch, cvy_status status, const char *text);

/**
 * Leave in good order, release, and set to NULL; NULL is fine. Collective: waits until all ranks leave. A rank that
 * leaves while the others wait for it in an exchange is found by the watch.
 *
 * @retval CVY_ERR_RANK the run was to end, and nobody ended this process; worded as in cvy_watch_end, or another status
 *                      that this has
 */
cvy_status cvy_watch_stop(cvy_watch **watch);

#endif
