/*
 * Transfers as a training makes them, each as often as its time allows; how often is the first rank's word, so that all
 * do the same. A collective has taken what its slowest rank took.
 */
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "base/order.h"
#include "base/pulse.h"
#include "calibrate/network_internal.h"

enum { LEAST_RUNS = 5, PAUSED_RUNS = 3, LEAST_DRAIN = 4096 };

static const double enough_s = 0.03; /* of a size */

/* ---- one transfer ---- */

static cvy_transfer_kind find_kind(cvy_collective collective)
{
    switch (collective) {
    case CVY_COLLECTIVE_ALL_GATHER:
        return CVY_TRANSFER_ALL_GATHER;
    case CVY_COLLECTIVE_REDUCE_SCATTER:
        return CVY_TRANSFER_REDUCE_SCATTER;
    case CVY_COLLECTIVE_ALL_TO_ALL:
        return CVY_TRANSFER_ALL_TO_ALL;
    case CVY_COLLECTIVE_BROADCAST:
        return CVY_TRANSFER_BROADCAST;
    default:
        return CVY_TRANSFER_ALL_REDUCE;
    }
}

static cvy_status make_collective(const cvy_network_bench *b, int64_t bytes, cvy_transfer **transfer_out)
{
    int ranks = cvy_comm_ranks(b->group);
    int64_t elements = bytes / (int64_t)sizeof(float);
    cvy_transfer_kind kind = find_kind(b->collective);
    bool parts = kind != CVY_TRANSFER_ALL_REDUCE && kind != CVY_TRANSFER_BROADCAST;
    bool from = kind == CVY_TRANSFER_REDUCE_SCATTER || kind == CVY_TRANSFER_ALL_TO_ALL;
    cvy_transfer_spec spec = {.kind = kind, .dtype = CVY_F32, .reduction = CVY_REDUCE_SUM, .target = b->target,
                              .source = from ? b->source : NULL, .count = b->count, .taken = b->count};
    for (int i = 0; i < ranks; i++) { /* parts as even as can be, of an all-to-all as large as each other */
        bool more = kind != CVY_TRANSFER_ALL_TO_ALL && i < elements % ranks;
        b->count[i] = parts ? elements / ranks + more : elements;
    }
    return cvy_transfer_create(b->group, &spec, transfer_out);
}

/* Of a message: way 0 sends, way 1 receives; of a collective there is one. */
cvy_status cvy_network_make_ways(const cvy_network_bench *b, int64_t bytes, cvy_transfer *way[2])
{
    int rank = cvy_comm_rank(b->group);
    int64_t elements = bytes / (int64_t)sizeof(float);
    way[0] = way[1] = NULL;
    if (b->collective != CVY_COLLECTIVE_POINT_TO_POINT) {
        return make_collective(b, bytes, &way[0]);
    }
    if (!b->both && rank != b->peer[0] && rank != b->peer[1]) {
        return CVY_OK;
    }
    int other = b->peer[rank == b->peer[0]];
    cvy_transfer_spec spec = {.kind = CVY_TRANSFER_SEND, .dtype = CVY_F32, .source = b->source, .count = &elements,
                              .peer = b->both ? b->next : other};
    CVY_TRY(cvy_transfer_create(b->group, &spec, &way[0]));
    spec.kind = CVY_TRANSFER_RECEIVE;
    spec.source = NULL;
    spec.target = b->target;
    spec.peer = b->both ? b->previous : other;
    return cvy_transfer_create(b->group, &spec, &way[1]);
}

/* Wait for all ranks. */
static cvy_status meet(const cvy_network_bench *b)
{
    double nothing = 0.0;
    return cvy_comm_all_reduce(b->all, &nothing, 1, CVY_F64, CVY_REDUCE_MAX);
}

/* There and back between two ranks; half of it is a message. The others pass by. */
static cvy_status go_and_return(const cvy_network_bench *b, cvy_transfer *const *way)
{
    int rank = cvy_comm_rank(b->group);
    if (rank == b->peer[0] || rank == b->peer[1]) {
        CVY_TRY(cvy_transfer_run(way[rank == b->peer[1]])); /* one sends first, the other receives first */
        CVY_TRY(cvy_transfer_run(way[rank == b->peer[0]]));
    }
    return CVY_OK;
}

static cvy_status send_and_receive(cvy_transfer *const *way)
{
    CVY_TRY(cvy_transfer_begin(way[1]));
    CVY_TRY(cvy_transfer_begin(way[0]));
    CVY_TRY(cvy_transfer_wait(way[0]));
    return cvy_transfer_wait(way[1]);
}

cvy_status cvy_network_run_once(const cvy_network_bench *b, cvy_transfer *const *way, double *seconds)
{
    bool messages = b->collective == CVY_COLLECTIVE_POINT_TO_POINT;
    CVY_TRY(meet(b));
    cvy_pulse_beat();
    double start_s = cvy_clock_s();
    CVY_TRY(!messages ? cvy_transfer_run(way[0]) : b->both ? send_and_receive(way) : go_and_return(b, way));
    *seconds = (cvy_clock_s() - start_s) / (messages && !b->both ? 2.0 : 1.0);
    return CVY_OK;
}

/* ---- a series ---- */

static cvy_network_point summarise(int64_t bytes, double *seconds, int runs)
{
    cvy_sort_doubles(seconds, runs);
    double middle = seconds[runs / 2], apart = seconds[3 * (runs - 1) / 4] - seconds[(runs - 1) / 4];
    return (cvy_network_point){.bytes = (double)bytes, .seconds = middle, .error = apart / 2.0 / middle};
}

/* Send what links carry faster behind a pause, so that the series goes on as a long exchange does. */
static cvy_status drain(const cvy_network_bench *b, int64_t bytes, cvy_transfer *const *way)
{
    double ignored;
    for (int64_t sent = 0; bytes >= LEAST_DRAIN && sent < b->drain_bytes; sent += bytes) { /* fewer wait, not bytes */
        CVY_TRY(cvy_network_run_once(b, way, &ignored));
    }
    return CVY_OK;
}

/* Runs of one size, each as long as on the rank where it was longest; the first two tell how many there are to be. */
static cvy_status measure_runs(const cvy_network_bench *b, cvy_transfer *const *way, double *seconds, int *runs_out)
{
    double warm_s[2];
    for (int i = 0; i < 2; i++) {
        CVY_TRY(cvy_network_run_once(b, way, &warm_s[i]));
    }
    CVY_TRY(cvy_comm_all_reduce(b->all, warm_s, 2, CVY_F64, CVY_REDUCE_MAX));
    double runs = enough_s / fmax(warm_s[1], 1e-9);
    *runs_out = (int)fmax(LEAST_RUNS, fmin(CVY_NETWORK_MOST_RUNS, runs));
    for (int i = 0; i < *runs_out; i++) {
        CVY_TRY(cvy_network_run_once(b, way, &seconds[i]));
    }
    return cvy_comm_all_reduce(b->all, seconds, *runs_out, CVY_F64, CVY_REDUCE_MAX);
}

cvy_status cvy_network_measure_size(const cvy_network_bench *b, int64_t bytes, cvy_network_point *point_out)
{
    cvy_transfer *way[2];
    double seconds[CVY_NETWORK_MOST_RUNS];
    int runs = 0;
    cvy_status status = cvy_comm_agree(b->all, cvy_network_make_ways(b, bytes, way));
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, drain(b, bytes, way));
    CVY_TRY_GOTO(status, done, measure_runs(b, way, seconds, &runs));
    *point_out = summarise(bytes, seconds, runs);
done:
    cvy_transfer_destroy(&way[0]);
    cvy_transfer_destroy(&way[1]);
    return status;
}

static void rest(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    nanosleep(&pause, NULL);
}

cvy_status cvy_network_measure_paused(const cvy_network_bench *b, int64_t bytes, double pause_s, double *seconds_out)
{
    cvy_transfer *way[2];
    double seconds[PAUSED_RUNS];
    cvy_status status = cvy_comm_agree(b->all, cvy_network_make_ways(b, bytes, way));
    CVY_TRY_GOTO(status, done, status);
    for (int i = 0; i < PAUSED_RUNS; i++) {
        rest(pause_s);
        CVY_TRY_GOTO(status, done, cvy_network_run_once(b, way, &seconds[i]));
    }
    CVY_TRY_GOTO(status, done, cvy_comm_all_reduce(b->all, seconds, PAUSED_RUNS, CVY_F64, CVY_REDUCE_MAX));
    *seconds_out = summarise(bytes, seconds, PAUSED_RUNS).seconds;
done:
    cvy_transfer_destroy(&way[0]);
    cvy_transfer_destroy(&way[1]);
    return status;
}
