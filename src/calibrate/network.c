/*
 * Transfers as a training makes them, each as often as its time allows; how often is the first rank's word, so that all
 * do the same. A collective has taken what its slowest rank took.
 */
#include "calibrate/network.h"

#include <math.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/pulse.h"

enum { LEAST_RUNS = 5, MOST_RUNS = 64, FIRST_BYTES = 64, STEP = 4 };

static const double enough_s = 0.03;    /* of a size */
static const double nearly_best = 0.95; /* of the best rate: no larger bucket is needed */

/* What is measured: the ranks of a group, of which a rank may be none. */
typedef struct bench {
    cvy_comm *comm;       /* all ranks */
    cvy_collective collective;
    int level, peer[2];   /* of messages: the two ranks */
    unsigned char *source, *target;
    int64_t *count;       /* one a rank */
} bench;

/* ---- one transfer ---- */

static cvy_status make_transfer(const bench *b, int64_t bytes, cvy_transfer **transfer_out)
{
    int ranks = cvy_comm_ranks(b->comm);
    int64_t elements = bytes / (int64_t)sizeof(float);
    cvy_transfer_spec spec = {.dtype = CVY_F32, .reduction = CVY_REDUCE_SUM, .target = b->target, .count = b->count};
    for (int i = 0; i < ranks; i++) { /* parts as even as can be */
        b->count[i] = elements / ranks + (i < elements % ranks);
    }
    switch (b->collective) {
    case CVY_COLLECTIVE_ALL_GATHER:
        spec.kind = CVY_TRANSFER_ALL_GATHER;
        break;
    case CVY_COLLECTIVE_REDUCE_SCATTER:
        spec.kind = CVY_TRANSFER_REDUCE_SCATTER;
        spec.source = b->source;
        break;
    case CVY_COLLECTIVE_BROADCAST:
        spec.kind = CVY_TRANSFER_BROADCAST;
        b->count[0] = elements;
        break;
    default:
        spec.kind = CVY_TRANSFER_ALL_REDUCE;
        b->count[0] = elements;
        break;
    }
    return cvy_transfer_create(b->comm, &spec, transfer_out);
}

/* Wait for all ranks. */
static cvy_status meet(const bench *b)
{
    double nothing = 0.0;
    return cvy_comm_all_reduce(b->comm, &nothing, 1, CVY_F64, CVY_REDUCE_MAX);
}

/* There and back between two ranks; half of it is a message. The others pass by. */
static cvy_status run_messages(const bench *b, cvy_transfer *const *way, double *seconds)
{
    int rank = cvy_comm_rank(b->comm);
    double start_s = cvy_clock_s();
    *seconds = 0.0;
    if (rank == b->peer[0] || rank == b->peer[1]) {
        CVY_TRY(cvy_transfer_run(way[rank == b->peer[1]])); /* one sends first, the other receives first */
        CVY_TRY(cvy_transfer_run(way[rank == b->peer[0]]));
        *seconds = (cvy_clock_s() - start_s) / 2.0;
    }
    return CVY_OK;
}

static cvy_status run_collective(cvy_transfer *const *way, double *seconds)
{
    double start_s = cvy_clock_s();
    CVY_TRY(cvy_transfer_run(way[0]));
    *seconds = cvy_clock_s() - start_s;
    return CVY_OK;
}

static cvy_status run_once(const bench *b, cvy_transfer *const *way, double *seconds)
{
    CVY_TRY(meet(b));
    cvy_pulse_beat();
    return b->collective == CVY_COLLECTIVE_POINT_TO_POINT ? run_messages(b, way, seconds)
                                                          : run_collective(way, seconds);
}

/* Of a message: way 0 sends, way 1 receives; of a collective there is one. */
static cvy_status make_ways(const bench *b, int64_t bytes, cvy_transfer *way[2])
{
    int rank = cvy_comm_rank(b->comm);
    int64_t elements = bytes / (int64_t)sizeof(float);
    way[0] = way[1] = NULL;
    if (b->collective != CVY_COLLECTIVE_POINT_TO_POINT) {
        return make_transfer(b, bytes, &way[0]);
    }
    if (rank != b->peer[0] && rank != b->peer[1]) {
        return CVY_OK;
    }
    cvy_transfer_spec spec = {.kind = CVY_TRANSFER_SEND, .dtype = CVY_F32, .source = b->source, .count = &elements,
                              .peer = b->peer[rank == b->peer[0]]};
    CVY_TRY(cvy_transfer_create(b->comm, &spec, &way[0]));
    spec.kind = CVY_TRANSFER_RECEIVE;
    spec.source = NULL;
    spec.target = b->target;
    return cvy_transfer_create(b->comm, &spec, &way[1]);
}

/* ---- a curve ---- */

static cvy_network_point summarise(int64_t bytes, double *seconds, int runs)
{
    cvy_sort_doubles(seconds, runs);
    double middle = seconds[runs / 2], apart = seconds[3 * (runs - 1) / 4] - seconds[(runs - 1) / 4];
    return (cvy_network_point){.bytes = (double)bytes, .seconds = middle, .error = apart / 2.0 / middle};
}

/* Runs of one size, each as long as on the rank where it was longest; the first two tell how many there are to be. */
static cvy_status measure_runs(const bench *b, cvy_transfer *const *way, double *seconds, int *runs_out)
{
    double warm_s[2];
    for (int i = 0; i < 2; i++) {
        CVY_TRY(run_once(b, way, &warm_s[i]));
    }
    CVY_TRY(cvy_comm_all_reduce(b->comm, warm_s, 2, CVY_F64, CVY_REDUCE_MAX));
    double runs = enough_s / fmax(warm_s[1], 1e-9);
    *runs_out = (int)fmax(LEAST_RUNS, fmin(MOST_RUNS, runs));
    for (int i = 0; i < *runs_out; i++) {
        CVY_TRY(run_once(b, way, &seconds[i]));
    }
    return cvy_comm_all_reduce(b->comm, seconds, *runs_out, CVY_F64, CVY_REDUCE_MAX);
}

static cvy_status measure_size(const bench *b, int64_t bytes, cvy_network_point *point_out)
{
    cvy_transfer *way[2];
    double seconds[MOST_RUNS];
    int runs = 0;
    cvy_status status = cvy_comm_agree(b->comm, make_ways(b, bytes, way));
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, measure_runs(b, way, seconds, &runs));
    *point_out = summarise(bytes, seconds, runs);
done:
    cvy_transfer_destroy(&way[0]);
    cvy_transfer_destroy(&way[1]);
    return status;
}

static cvy_status measure_curve(const bench *b, double most_bytes, cvy_network_profile *profile)
{
    cvy_network_curve *curve = &profile->curve[profile->curves];
    bool messages = b->collective == CVY_COLLECTIVE_POINT_TO_POINT;
    *curve = (cvy_network_curve){.collective = b->collective, .level = b->level,
                                 .ranks = messages ? 2 : cvy_comm_ranks(b->comm)};
    for (int64_t bytes = FIRST_BYTES; bytes <= (int64_t)most_bytes && curve->points < CVY_NETWORK_POINTS;
         bytes *= STEP) {
        CVY_TRY(measure_size(b, bytes, &curve->point[curve->points++]));
    }
    curve->pieces = cvy_network_fit(curve->point, curve->points, curve->piece);
    profile->curves++;
    return CVY_OK;
}

/* ---- all of them ---- */

/* Nodes are consecutive ranks, as many on each: what a machine file can say. */
static cvy_status count_nodes(const int *node, int ranks, cvy_network_profile *profile)
{
    int length = 1;
    while (length < ranks && node[length] == node[0]) {
        length++;
    }
    for (int i = 0; i < ranks; i++) {
        bool even = ranks % length == 0 && node[i] == node[i - i % length];
        bool fresh = i % length > 0 || i == 0 || node[i] != node[i - 1];
        CVY_REQUIRE(even && fresh, CVY_ERR_INPUT, "rank %d: a machine file has as many ranks on every node, one after "
                    "the other; %d are on the first", i, length);
    }
    profile->node_ranks = length;
    profile->nodes = ranks / length;
    return CVY_OK;
}

/* The least size of an all-reduce that goes at nearly the best rate. */
static int64_t find_bucket(const cvy_network_curve *curve)
{
    double best_Bps = 0.0;
    for (int i = 0; i < curve->points; i++) {
        best_Bps = fmax(best_Bps, curve->point[i].bytes / curve->point[i].seconds);
    }
    int i = 0;
    while (i < curve->points && curve->point[i].bytes / curve->point[i].seconds < nearly_best * best_Bps) {
        i++;
    }
    return i < curve->points ? (int64_t)curve->point[i].bytes : 0;
}

static cvy_status measure_all(bench *b, double most_bytes, cvy_network_profile *profile)
{
    static const cvy_collective collectives[] = {CVY_COLLECTIVE_ALL_REDUCE, CVY_COLLECTIVE_ALL_GATHER,
                                                 CVY_COLLECTIVE_REDUCE_SCATTER, CVY_COLLECTIVE_BROADCAST};
    int inside = profile->node_ranks > 1;
    b->collective = CVY_COLLECTIVE_POINT_TO_POINT;
    if (inside) {
        b->peer[1] = 1;
        CVY_TRY(measure_curve(b, most_bytes, profile));
    }
    if (profile->nodes > 1) {
        b->level = inside;
        b->peer[1] = profile->node_ranks;
        CVY_TRY(measure_curve(b, most_bytes, profile));
    }
    b->level = inside + (profile->nodes > 1) - 1;
    for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; i++) {
        b->collective = collectives[i];
        CVY_TRY(measure_curve(b, most_bytes, profile));
        if (b->collective == CVY_COLLECTIVE_ALL_REDUCE) {
            profile->bucket_bytes = find_bucket(&profile->curve[profile->curves - 1]);
        }
    }
    return CVY_OK;
}

cvy_status cvy_network_measure(cvy_comm *comm, const int *node, double most_bytes, cvy_network_profile *profile_out)
{
    int ranks = cvy_comm_ranks(comm);
    cvy_network_profile profile = {.nodes = 1, .node_ranks = 1};
    bench b = {.comm = comm};
    cvy_arena arena = {0};
    if (ranks == 1) {
        *profile_out = profile;
        return CVY_OK;
    }
    CVY_TRY(count_nodes(node, ranks, &profile));
    b.count = cvy_calloc((size_t)ranks, sizeof *b.count);
    cvy_status status = b.count ? cvy_arena_create(2 * (size_t)most_bytes + CVY_ARENA_ALIGNMENT, &arena)
                                : CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, cvy_comm_agree(comm, status));
    b.source = arena.base;
    b.target = arena.base + cvy_round_up((int64_t)most_bytes, CVY_ARENA_ALIGNMENT);
    CVY_TRY_GOTO(status, done, measure_all(&b, most_bytes, &profile));
    *profile_out = profile;
done:
    cvy_arena_destroy(&arena);
    cvy_free(b.count);
    return status;
}
