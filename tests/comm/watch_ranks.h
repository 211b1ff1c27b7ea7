/*
 * Ranks of a watch on one machine, without MPI: processes that meet over memory that they share. Each says in it how it
 * ended: what its watch told it.
 */
#ifndef CVY_TEST_WATCH_RANKS_H
#define CVY_TEST_WATCH_RANKS_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/watch_internal.h"

enum { MOST_RANKS = 5, GATHER_BYTES = 4096, LIMIT_S = 60 };

/* What all processes of a test see. */
typedef struct world {
    pthread_barrier_t barrier;
    unsigned char gathered[MOST_RANKS][GATHER_BYTES];
    atomic_int ready;            /* how many are watched */
    atomic_int go;               /* what a process waits for where a test says so */
    int spoke[MOST_RANKS], blamed[MOST_RANKS], warned[MOST_RANKS];
    char text[MOST_RANKS][CVY_WATCH_TEXT];
} world;

/* What a rank does once it is watched; its return leads to an orderly end. */
typedef void (*rank_work)(world *w, int rank);

typedef struct world_rank {
    world *w;
    int rank, ranks;
    void (*before_meeting)(const cvy_watch_record *record, int rank); /* called while this rank listens; may be NULL */
} world_rank;

static cvy_status world_gather(void *context, const void *mine, int64_t bytes, void *all_out)
{
    world_rank *me = context;
    memcpy(me->w->gathered[me->rank], mine, (size_t)bytes);
    pthread_barrier_wait(&me->w->barrier);
    for (int i = 0; i < me->ranks; i++) {
        memcpy((unsigned char *)all_out + i * bytes, me->w->gathered[i], (size_t)bytes);
    }
    if (me->before_meeting && bytes == sizeof(cvy_watch_record)) {
        me->before_meeting(mine, me->rank);
    }
    pthread_barrier_wait(&me->w->barrier);
    return CVY_OK;
}

static cvy_status world_agree(void *context, cvy_status mine)
{
    cvy_status all[MOST_RANKS], first = CVY_OK;
    world_rank *me = context;
    world_gather(me, &mine, sizeof mine, all);
    for (int i = me->ranks - 1; i >= 0; i--) {
        first = all[i] == CVY_OK ? first : all[i];
    }
    return first;
}

static void world_abandon(void *context, int exit_code)
{
    (void)context;
    _exit(exit_code);
}

static void note_end(void *context, const cvy_watch_end *end)
{
    world_rank *me = context;
    me->w->spoke[me->rank] = end->speaks;
    me->w->blamed[me->rank] = end->rank;
    snprintf(me->w->text[me->rank], CVY_WATCH_TEXT, "%s", end->text);
    _exit(cvy_status_exit_code(end->status));
}

static void note_warning(void *context, const char *text)
{
    world_rank *me = context;
    me->w->warned[me->rank] = 1;
    snprintf(me->w->text[me->rank], CVY_WATCH_TEXT, "%s", text);
}

static cvy_watch *own_watch; /* of this process, for work that speaks to it */

/* A process: exits with 0 after an orderly end. */
static void live(world_rank *me, double timeout_s, int fan_out, rank_work work)
{
    cvy_watch *watch = NULL;
    cvy_watch_ranks ranks = {.rank = me->rank, .ranks = me->ranks, .context = me, .gather = world_gather,
                             .agree = world_agree, .abandon = world_abandon};
    cvy_watch_options options = {.timeout_s = timeout_s, .fan_out = fan_out, .abandon = note_end,
                                 .warn = note_warning, .context = me};
    alarm(LIMIT_S);
    if (cvy_watch_start_ranks(&ranks, &options, &watch) != CVY_OK) {
        _exit(1);
    }
    own_watch = watch;
    atomic_fetch_add(&me->w->ready, 1);
    work(me->w, me->rank);
    _exit(cvy_watch_stop(&watch) == CVY_OK ? 0 : 1);
}

static world *make_world(int ranks)
{
    pthread_barrierattr_t shared;
    world *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(w != MAP_FAILED);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&w->barrier, &shared, (unsigned)ranks);
    return w;
}

/* Start the processes, and wait until all are watched. */
static void start_ranks(world *w, const world_rank *like, double timeout_s, int fan_out, rank_work work, pid_t *pids)
{
    for (int rank = 0; rank < like->ranks; rank++) {
        pids[rank] = fork();
        assert_true(pids[rank] >= 0);
        if (pids[rank] == 0) {
            world_rank me = *like;
            me.w = w;
            me.rank = rank;
            live(&me, timeout_s, fan_out, work);
        }
    }
    double end_s = cvy_clock_s() + LIMIT_S;
    while (atomic_load(&w->ready) < like->ranks && cvy_clock_s() < end_s) {
        usleep(1000);
    }
    assert_int_equal(atomic_load(&w->ready), like->ranks);
}

/* How a process ended: its exit code, or 128 and the signal that ended it. */
static int end_of(pid_t pid)
{
    int how = 0;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* The one rank that spoke; -1: none, -2: several. */
static int speaker(const world *w, int ranks)
{
    int who = -1;
    for (int i = 0; i < ranks; i++) {
        who = !w->spoke[i] ? who : who == -1 ? i : -2;
    }
    return who;
}

#endif
