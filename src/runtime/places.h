/*
 * Where ranks run: on which nodes, on which of their cores, with how many threads. A launcher may bind each rank to
 * cores of its own, bind several to the same ones, or bind none; unless told otherwise a rank takes as many threads as
 * there are cores for it beside the others.
 */
#ifndef CVY_RUNTIME_PLACES_H
#define CVY_RUNTIME_PLACES_H

#include <sched.h>

#include "base/text.h"
#include "comm/comm.h"

enum { CVY_HOST_BYTES = 64, CVY_PLACES_WARNINGS = 3 };

/** Where one rank runs. */
typedef struct cvy_place {
    char host[CVY_HOST_BYTES];
    cpu_set_t cores;   /**< that it may use, each by its lowest hardware thread */
    int cores_machine; /**< of its node, whoever may use them */
    int node;          /**< the same number for all ranks of a node; any other for another node's */
    int asked;         /**< threads; 0: as many as there are cores for it */
    int threads;       /**< that it runs with */
    int group;         /**< lowest of the ranks of its node that share cores with it, itself among them */
    int sharers;       /**< how many these are; 1: its cores are its own */
    int share;         /**< which of them it is, from 0 */
    int group_cores;   /**< cores that they may use together */
} cvy_place;

/** Who started the ranks, as far as advice differs. */
typedef enum cvy_launcher {
    CVY_LAUNCHER_OTHER,
    CVY_LAUNCHER_OPEN_MPI,
    CVY_LAUNCHER_MPICH, /**< and what descends from it */
    CVY_LAUNCHER_SLURM,
} cvy_launcher;

/** Where all ranks run. Release with cvy_places_clear(). */
typedef struct cvy_places {
    int ranks, nodes;
    int rank;         /**< this one: place[rank] */
    cvy_place *place; /**< of each rank */
    cpu_set_t own;    /**< cores that this rank's threads are bound to, where they are as many: all that it may use, or
                           its part of them where every rank of its group may use the same; empty where there is none */
    int warnings;
    char *warning[CVY_PLACES_WARNINGS]; /**< a line each, the same on all ranks */
} cvy_places;

/**
 * Find out where all ranks run, and tell each how many threads it has. Collective.
 *
 * To be called before threads are bound: what the calling process may use then is what counts.
 *
 * @param[in]  comm          borrowed for the call
 * @param[in]  asked_threads 0: as many as there are cores for a rank
 * @param[out] places_out    released with cvy_places_clear(); empty on failure
 * @retval CVY_ERR_RANK      another rank tells of a place that cannot be
 * @retval CVY_ERR_MEMORY    on all ranks alike, as other failures
 */
cvy_status cvy_places_find(cvy_comm *comm, int asked_threads, cvy_places *places_out);

/** Release what places own, and empty them. */
void cvy_places_clear(cvy_places *places);

/**
 * Share out the cores of each node: ranks whose cores overlap, directly or through others, are a group and share all
 * cores of the group evenly. A rank gets floor(cores / ranks) threads, but no more than cores that it may use itself,
 * and at least 1; or those that it asked for.
 *
 * Pure. Fills threads, group, sharers, share and group_cores from node, cores and asked.
 */
void cvy_places_share(cvy_place *place, int ranks);

/** The part of its group's cores that is one rank's own; see cvy_places. */
void cvy_places_find_own(const cvy_places *places, int rank, cpu_set_t *own_out);

/** Who started this process, by what launchers leave in the environment. */
cvy_launcher cvy_launcher_find(void);

/**
 * Word what makes these places slow: more threads than the cores that a rank is bound to; ranks bound to one core each
 * beside idle ones, which is what Open MPI does with one or two ranks; more threads than cores that ranks share. At
 * most one line of each.
 *
 * @param[in,out] places warning and warnings are set
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_places_warn(cvy_places *places, cvy_launcher launcher);

/**
 * Word the places for people: "4 ranks on 2 nodes x 8 threads on 32 cores"; where nodes differ, a line of sums and a
 * row for each node. Lines end in newlines but the last.
 */
void cvy_places_print(const cvy_places *places, cvy_text *text);

#endif
