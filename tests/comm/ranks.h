/*
 * For tests under mpiexec: the ranks of the run, groups of them, and checks. A check that fails ends all ranks at once:
 * one that went on alone would leave the others waiting.
 */
#ifndef CVY_TESTS_COMM_RANKS_H
#define CVY_TESTS_COMM_RANKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm/comm.h"

enum { MAX_RANKS = 8 };

/* A group, and the rank in the world of each of its members. */
typedef struct ranks {
    cvy_comm *comm;
    int rank, count;
    int member[MAX_RANKS];
} ranks;

static ranks world;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "rank %d: %s:%d: not so: %s (last failure: %s)\n", world.rank, __FILE__, __LINE__, \
                    #condition, cvy_error_message());                                                        \
            cvy_comm_abandon(world.comm, 1);                                                                 \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

static inline int join_ranks(void **state)
{
    (void)state;
    if (cvy_comm_open("mpi", &world.comm) != CVY_OK) {
        fprintf(stderr, "%s\n", cvy_error_message());
        return -1;
    }
    world.rank = cvy_comm_rank(world.comm);
    world.count = cvy_comm_ranks(world.comm);
    for (int i = 0; i < world.count; i++) {
        world.member[i] = i;
    }
    return 0;
}

static inline int leave_ranks(void **state)
{
    (void)state;
    cvy_comm_close(&world.comm);
    return 0;
}

/* Ranks of one parity, the last of them first. */
static inline ranks split_by_parity(void)
{
    ranks group = {.count = 0};
    for (int i = world.count - 1; i >= 0; i--) {
        if (i % 2 == world.rank % 2) {
            group.rank = i == world.rank ? group.count : group.rank;
            group.member[group.count++] = i;
        }
    }
    CHECK(cvy_comm_split(world.comm, world.rank % 2, world.count - world.rank, &group.comm) == CVY_OK);
    CHECK(cvy_comm_rank(group.comm) == group.rank && cvy_comm_ranks(group.comm) == group.count);
    return group;
}

/* ---- elements of any type, as double: the values of these tests are small integers ---- */

static inline void put(cvy_dtype dtype, void *memory, int64_t i, double value)
{
    switch (dtype) {
    case CVY_F32: ((float *)memory)[i] = (float)value; break;
    case CVY_F64: ((double *)memory)[i] = value; break;
    case CVY_I32: ((int32_t *)memory)[i] = (int32_t)value; break;
    default: ((uint8_t *)memory)[i] = (uint8_t)((int)value % 251); break;
    }
}

static inline bool holds(cvy_dtype dtype, const void *memory, int64_t i, double value)
{
    switch (dtype) {
    case CVY_F32: return ((const float *)memory)[i] == (float)value;
    case CVY_F64: return ((const double *)memory)[i] == value;
    case CVY_I32: return ((const int32_t *)memory)[i] == (int32_t)value;
    default: return ((const uint8_t *)memory)[i] == (uint8_t)((int)value % 251);
    }
}

/* ---- how a transfer is made ---- */

typedef enum manner { BY_RUN, BY_WAIT, BY_TEST, MANNERS } manner;

static inline void make(cvy_transfer *transfer, manner how)
{
    bool done = false;
    if (how == BY_RUN) {
        CHECK(cvy_transfer_run(transfer) == CVY_OK);
        return;
    }
    CHECK(cvy_transfer_begin(transfer) == CVY_OK);
    while (how == BY_TEST && !done) {
        CHECK(cvy_transfer_test(transfer, &done) == CVY_OK);
    }
    CHECK(cvy_transfer_wait(transfer) == CVY_OK);
}

static inline void move(cvy_comm *comm, const cvy_transfer_spec *spec, manner how)
{
    cvy_transfer *transfer = NULL;
    CHECK(cvy_transfer_create(comm, spec, &transfer) == CVY_OK);
    make(transfer, how);
    cvy_transfer_destroy(&transfer);
}

#endif
