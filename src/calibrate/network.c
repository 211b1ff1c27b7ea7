/*
 * Which transfers are timed: messages inside a node and between nodes, one way and both; collectives of all ranks, and
 * of groups that do the same at the same time, as those of a mesh of two axes: consecutive ranks, or ranks a node
 * apart.
 */
#include "calibrate/network.h"

#include <math.h>

#include "base/checked.h"
#include "base/memory.h"
#include "calibrate/network_internal.h"

enum { FIRST_BYTES = 64, STEP = 4, FIRST_BURST = 256 << 10, LAST_BURST = 4 << 20 };

static const double nearly_best = 0.95; /* of the best rate: no larger bucket is needed */
static const double long_s = 0.15;      /* a size that takes so long is the last */
static const double pause_s = 0.1;      /* between the computing of two exchanges */
static const double saved = 0.25;       /* of a message came out of what was saved up: less is noise */
static const double nearly_all = 0.9;   /* of it did: the bucket may hold more */

/* ---- a curve ---- */

static cvy_status measure_curve(const cvy_network_bench *b, int level, double most_bytes, cvy_network_profile *profile)
{
    cvy_network_curve *curve = &profile->curve[profile->curves];
    bool two = b->collective == CVY_COLLECTIVE_POINT_TO_POINT && !b->both;
    int ranks = cvy_comm_ranks(b->group), all = cvy_comm_ranks(b->all);
    *curve = (cvy_network_curve){.collective = b->collective, .both = b->both, .level = level,
                                 .ranks = two ? 2 : ranks, .groups = all / ranks, .flows = 1};
    for (int64_t bytes = FIRST_BYTES; bytes <= (int64_t)most_bytes && curve->points < CVY_NETWORK_POINTS;
         bytes *= STEP) {
        cvy_network_point *point = &curve->point[curve->points++];
        CVY_TRY(cvy_network_measure_size(b, bytes, point));
        if (point->seconds > long_s) {
            break;
        }
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

/*
 * The least size of an all-reduce of which the start is a twentieth at most, and which goes, as all larger ones do, at
 * nearly the rate of the largest.
 */
static int64_t find_bucket(const cvy_network_curve *curve)
{
    const cvy_network_point *p = curve->point;
    int i = curve->points - 1;
    double best_Bps = p[i].bytes / p[i].seconds;
    while (i > 0 && p[i - 1].bytes / p[i - 1].seconds >= nearly_best * best_Bps &&
           p[0].seconds <= (1.0 - nearly_best) * p[i - 1].seconds) {
        i--;
    }
    return (int64_t)p[i].bytes;
}

/* The ranks before and behind this one, round its node or round the nodes. */
static void find_neighbours(const cvy_network_profile *profile, bool across, cvy_network_bench *b)
{
    int rank = cvy_comm_rank(b->all), own = rank % profile->node_ranks, node = rank / profile->node_ranks;
    int size = across ? profile->nodes : profile->node_ranks, place = across ? node : own;
    int next = (place + 1) % size, previous = (place + size - 1) % size;
    b->next = across ? next * profile->node_ranks + own : rank - own + next;
    b->previous = across ? previous * profile->node_ranks + own : rank - own + previous;
    b->peer[1] = across ? profile->node_ranks : 1;
}

/*
 * What links carry beyond their rate behind a pause: of a message of n bytes that takes t seconds, and T without a
 * pause, n (1 - t / T). A message that is larger than what was saved up tells all of it: the first such, since of
 * larger ones it is a small difference of large times (by messages of 4 MiB, 512 KiB were taken for 2 MB).
 */
static cvy_status measure_burst(cvy_network_bench *b, double most_bytes, cvy_network_profile *profile)
{
    int64_t most = cvy_min_i64(LAST_BURST, (int64_t)most_bytes);
    b->both = true;
    for (int64_t bytes = FIRST_BURST; bytes <= most; bytes *= STEP) {
        cvy_network_point steady;
        double seconds;
        CVY_TRY(cvy_network_measure_size(b, bytes, &steady));
        CVY_TRY(cvy_network_measure_paused(b, bytes, pause_s, &seconds));
        double share = 1.0 - seconds / steady.seconds;
        if (share > saved) {
            profile->burst_bytes = cvy_max_i64(profile->burst_bytes, (int64_t)(share * (double)bytes));
        }
        if (share > saved && share < nearly_all) {
            break;
        }
    }
    b->drain_bytes = 2 * profile->burst_bytes;
    return CVY_OK;
}

static cvy_status measure_messages(cvy_network_bench *b, double most_bytes, cvy_network_profile *profile)
{
    int level = 0;
    b->collective = CVY_COLLECTIVE_POINT_TO_POINT;
    find_neighbours(profile, profile->nodes > 1, b);
    CVY_TRY(measure_burst(b, most_bytes, profile));
    for (int across = 0; across < 2; across++) {
        if ((across ? profile->nodes : profile->node_ranks) == 1) {
            continue;
        }
        find_neighbours(profile, across, b);
        for (int both = 0; both < 2; both++) {
            b->both = both;
            CVY_TRY(measure_curve(b, level, most_bytes, profile));
        }
        profile->curve[profile->curves - 1].flows = across ? profile->node_ranks : 1;
        level++;
    }
    b->both = false;
    return CVY_OK;
}

static cvy_status measure_collectives(cvy_network_bench *b, int level, int collectives, double most_bytes,
                                      cvy_network_profile *profile)
{
    static const cvy_collective kinds[] = {CVY_COLLECTIVE_ALL_REDUCE, CVY_COLLECTIVE_ALL_GATHER,
                                           CVY_COLLECTIVE_REDUCE_SCATTER, CVY_COLLECTIVE_ALL_TO_ALL,
                                           CVY_COLLECTIVE_BROADCAST};
    for (int i = 0; i < collectives; i++) {
        b->collective = kinds[i];
        CVY_TRY(measure_curve(b, level, most_bytes, profile));
    }
    return CVY_OK;
}

/* Groups of a number of consecutive ranks, or of ranks a node apart. Those of two axes reduce, gather and scatter. */
static cvy_status measure_groups(cvy_network_bench *b, int size, bool across, double most_bytes,
                                 cvy_network_profile *profile)
{
    enum { OF_GROUPS = 3 };
    int rank = cvy_comm_rank(b->all), first = profile->curves;
    int inner = profile->node_ranks > 1 && size <= profile->node_ranks && !across;
    CVY_TRY(cvy_comm_split(b->all, across ? rank % profile->node_ranks : rank / size, rank, &b->group));
    cvy_status status = measure_collectives(b, inner ? 0 : (profile->node_ranks > 1) + (profile->nodes > 1) - 1,
                                            OF_GROUPS, most_bytes, profile);
    for (int i = first; i < profile->curves; i++) {
        profile->curve[i].flows = across ? profile->node_ranks : 1;
    }
    cvy_comm_close(&b->group);
    b->group = b->all;
    return status;
}

static cvy_status measure_all(cvy_network_bench *b, double most_bytes, cvy_network_profile *profile)
{
    enum { ALL_KINDS = 5, FEWEST = 4 };
    int ranks = cvy_comm_ranks(b->all), inside = profile->node_ranks > 1;
    CVY_TRY(measure_messages(b, most_bytes, profile));
    int first = profile->curves;
    CVY_TRY(measure_collectives(b, inside + (profile->nodes > 1) - 1, ALL_KINDS, most_bytes, profile));
    profile->bucket_bytes = find_bucket(&profile->curve[first]);
    if (inside && profile->nodes > 1) {
        CVY_TRY(measure_groups(b, profile->node_ranks, false, most_bytes, profile));
        return measure_groups(b, profile->nodes, true, most_bytes, profile);
    }
    return ranks >= FEWEST && ranks % 2 == 0 ? measure_groups(b, ranks / 2, false, most_bytes, profile) : CVY_OK;
}

cvy_status cvy_network_measure(cvy_comm *comm, const int *node, double most_bytes, cvy_network_profile *profile_out)
{
    int ranks = cvy_comm_ranks(comm);
    cvy_network_profile profile = {.nodes = 1, .node_ranks = 1};
    cvy_network_bench b = {.all = comm, .group = comm};
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
