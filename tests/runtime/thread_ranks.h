/*
 * Ranks as threads of one process: a communicator of what set-up, saving and loading need, for tests that run in a
 * moment on any machine. Whoever comes to a collective shows where its memory is and waits for the others; a message
 * waits until it is fetched.
 */
#ifndef CVY_TESTS_RUNTIME_THREAD_RANKS_H
#define CVY_TESTS_RUNTIME_THREAD_RANKS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm_internal.h"

enum { MAX_THREAD_RANKS = 16 };

/* A message on its way. */
typedef struct letter {
    const void *data;
    size_t bytes;
} letter;

typedef struct thread_world {
    int ranks;
    pthread_barrier_t barrier;
    const void *shown[MAX_THREAD_RANKS];
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    letter box[MAX_THREAD_RANKS][MAX_THREAD_RANKS]; /* by sender and receiver */
} thread_world;

typedef struct thread_rank {
    thread_world *world;
    int rank;
    cvy_comm comm;
    void *context;
    void (*act)(struct thread_rank *rank);
} thread_rank;

typedef struct thread_transfer {
    thread_rank *of;
    cvy_transfer_spec spec;
    int64_t count[MAX_THREAD_RANKS];
} thread_transfer;

static inline int thread_rank_get(const void *state) { return ((const thread_rank *)state)->rank; }
static inline int thread_ranks_get(const void *state) { return ((const thread_rank *)state)->world->ranks; }

static inline cvy_status thread_transfer_create(void *state, const cvy_transfer_spec *spec, void **transfer_out)
{
    thread_transfer *t = calloc(1, sizeof *t);
    *t = (thread_transfer){.of = state, .spec = *spec};
    int counts = spec->kind == CVY_TRANSFER_ALL_GATHER ? t->of->world->ranks : 1;
    memcpy(t->count, spec->count, (size_t)counts * sizeof *t->count);
    *transfer_out = t;
    return CVY_OK;
}

static inline void show_and_wait(thread_rank *r, const void *memory)
{
    r->world->shown[r->rank] = memory;
    pthread_barrier_wait(&r->world->barrier);
}

/* a becomes a and b together; of three doubles by Chan's formulas. */
static inline void reduce(const cvy_transfer_spec *spec, void *a, const void *b, int64_t i)
{
    if (spec->dtype == CVY_I32) {
        int32_t *x = (int32_t *)a + i, y = ((const int32_t *)b)[i];
        *x = spec->reduction == CVY_REDUCE_MIN ? (y < *x ? y : *x) : *x + y;
        return;
    }
    double *x = (double *)a + i;
    const double *y = (const double *)b + i;
    if (spec->reduction == CVY_REDUCE_MOMENTS && i % 3 == 0 && y[0] > 0) {
        double all = x[0] + y[0], difference = y[1] - x[1];
        bool empty = x[0] == 0;
        x[1] = empty ? y[1] : x[1] + difference * y[0] / all;
        x[2] = empty ? y[2] : x[2] + y[2] + difference * difference * x[0] * y[0] / all;
        x[0] = all;
    }
}

static inline void reduce_all(thread_transfer *t)
{
    size_t bytes = (size_t)(t->count[0] * cvy_dtype_bytes(t->spec.dtype));
    void *sum = malloc(bytes + 1);
    show_and_wait(t->of, t->spec.target);
    memcpy(sum, t->of->world->shown[0], bytes);
    for (int rank = 1; rank < t->of->world->ranks; rank++) {
        for (int64_t i = 0; i < t->count[0]; i++) {
            reduce(&t->spec, sum, t->of->world->shown[rank], i);
        }
    }
    pthread_barrier_wait(&t->of->world->barrier);
    memcpy(t->spec.target, sum, bytes);
    free(sum);
}

static inline void gather_all(thread_transfer *t)
{
    size_t item = (size_t)cvy_dtype_bytes(t->spec.dtype);
    unsigned char *to = t->spec.target;
    show_and_wait(t->of, t->spec.source);
    for (int rank = 0; rank < t->of->world->ranks; rank++) {
        memcpy(to, t->of->world->shown[rank], (size_t)t->count[rank] * item);
        to += (size_t)t->count[rank] * item;
    }
}

static inline void send_letter(thread_transfer *t, size_t bytes)
{
    thread_world *w = t->of->world;
    letter *box = &w->box[t->of->rank][t->spec.peer];
    pthread_mutex_lock(&w->mutex);
    *box = (letter){t->spec.source, bytes};
    pthread_cond_broadcast(&w->changed);
    while (box->data) {
        pthread_cond_wait(&w->changed, &w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
}

/* Whatever a program gets wrong in the length of a message, it is seen here. */
static inline cvy_status receive_letter(thread_transfer *t, size_t bytes)
{
    thread_world *w = t->of->world;
    letter *box = &w->box[t->spec.peer][t->of->rank];
    pthread_mutex_lock(&w->mutex);
    while (!box->data) {
        pthread_cond_wait(&w->changed, &w->mutex);
    }
    bool fits = box->bytes == bytes;
    memcpy(t->spec.target, box->data, fits ? bytes : 0);
    box->data = NULL;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    return fits ? CVY_OK : cvy_fail(CVY_ERR_RANK, "a message of %zu bytes, expected %zu", box->bytes, bytes);
}

static inline cvy_status thread_transfer_run(void *transfer)
{
    thread_transfer *t = transfer;
    size_t bytes = (size_t)(t->count[0] * cvy_dtype_bytes(t->spec.dtype));
    switch (t->spec.kind) {
    case CVY_TRANSFER_SEND: send_letter(t, bytes); return CVY_OK;
    case CVY_TRANSFER_RECEIVE: return receive_letter(t, bytes);
    case CVY_TRANSFER_ALL_REDUCE: reduce_all(t); break;
    case CVY_TRANSFER_ALL_GATHER: gather_all(t); break;
    case CVY_TRANSFER_BROADCAST:
        show_and_wait(t->of, t->spec.target);
        if (t->of->rank != t->spec.peer) {
            memcpy(t->spec.target, t->of->world->shown[t->spec.peer], bytes);
        }
        break;
    default: abort();
    }
    pthread_barrier_wait(&t->of->world->barrier); /* nobody's memory changes while others read it */
    return CVY_OK;
}

static const cvy_comm_kind thread_comm_kind = {
    .name = "threads",
    .rank = thread_rank_get,
    .ranks = thread_ranks_get,
    .create = thread_transfer_create,
    .destroy = free,
    .run = thread_transfer_run,
};

static inline void *run_thread_rank(void *argument)
{
    thread_rank *r = argument;
    r->act(r);
    return NULL;
}

/* Let ranks act, each in a thread of its own, until all have returned. */
static inline void run_thread_ranks(int ranks, void (*act)(thread_rank *rank), void *context)
{
    thread_world world = {.ranks = ranks};
    thread_rank rank[MAX_THREAD_RANKS];
    pthread_t thread[MAX_THREAD_RANKS];
    pthread_barrier_init(&world.barrier, NULL, (unsigned)ranks);
    pthread_mutex_init(&world.mutex, NULL);
    pthread_cond_init(&world.changed, NULL);
    for (int i = 0; i < ranks; i++) {
        rank[i] = (thread_rank){.world = &world, .rank = i, .context = context, .act = act};
        rank[i].comm = (cvy_comm){.kind = &thread_comm_kind, .state = &rank[i]};
        if (pthread_create(&thread[i], NULL, run_thread_rank, &rank[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < ranks; i++) {
        pthread_join(thread[i], NULL);
    }
    pthread_barrier_destroy(&world.barrier);
    pthread_mutex_destroy(&world.mutex);
    pthread_cond_destroy(&world.changed);
}

#endif
