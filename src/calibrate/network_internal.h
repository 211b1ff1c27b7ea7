/* What the files of the network share: a bench, on which transfers are timed. */
#ifndef CVY_CALIBRATE_NETWORK_INTERNAL_H
#define CVY_CALIBRATE_NETWORK_INTERNAL_H

#include "calibrate/network.h"

/** No series has more runs. */
enum { CVY_NETWORK_MOST_RUNS = 64 };

/** What is timed: a collective of groups, or messages. A rank that takes no part waits with the others. */
typedef struct cvy_network_bench {
    cvy_comm *all;      /**< who meets before each run, and whose slowest rank counts */
    cvy_comm *group;    /**< who communicates; ranks of messages are its ranks */
    cvy_collective collective;
    bool both;          /**< messages: all ranks send to `next` and receive from `previous` at once */
    int peer[2];        /**< else: the two between which one goes there and back */
    int next, previous;
    unsigned char *source, *target;
    int64_t *count;     /**< room for one a rank */
    int64_t drain_bytes; /**< are sent before a series: what links carry faster behind a pause; 0: nothing */
} cvy_network_bench;

/** Make the transfers of a size. Collective. @param[out] way two, of which one may be NULL; destroy them also after a
    failure */
cvy_status cvy_network_make_ways(const cvy_network_bench *bench, int64_t bytes, cvy_transfer *way[2]);

/** Wait for all ranks, then run once. @param[out] seconds of this rank; of a message there and back half of it */
cvy_status cvy_network_run_once(const cvy_network_bench *bench, cvy_transfer *const *way, double *seconds);

/** Time a size. Collective: all ranks get the same point. */
cvy_status cvy_network_measure_size(const cvy_network_bench *bench, int64_t bytes, cvy_network_point *point_out);

/**
 * Time a size behind pauses. Collective.
 *
 * @param[out] seconds_out  the median of few runs, each behind @p pause_s in which nothing is sent
 */
cvy_status cvy_network_measure_paused(const cvy_network_bench *bench, int64_t bytes, double pause_s,
                                      double *seconds_out);

#endif
