/*
 * Transfers are cut into calls of MPI. MPI 3.1 counts in int, sums of counts included, so what is larger goes in
 * pieces that every rank cuts alike: all know the counts of all, or, of messages, both sides know theirs.
 *
 * All-reduces are cut further. A library reduces by way of a buffer of its own; small, it stays in the cache, large,
 * its pages are mapped and touched anew each time. GB/s of an all-reduce of f32 by Open MPI 4.1.4, 2 ranks on 2 cores
 * of a Xeon, in pieces and whole; first with the C library as it is, then with one that keeps its memory:
 *
 *                 256 KiB  512 KiB  1 MiB  4 MiB  16 MiB  whole   256 KiB  512 KiB  1 MiB  4 MiB  16 MiB  whole
 *         16 MB       4.7      4.5    3.8    3.0       -    3.6       4.6      4.8    4.4    3.8       -    3.7
 *         25 MB       5.2      5.2    4.9    4.0     3.7    3.0       4.5      4.7    4.3    3.8     3.6    3.7
 *        100 MB       4.1      4.2    3.7    2.9     3.0    1.2       3.8      3.9    3.1    3.0     2.7    2.7
 *        256 MB       3.9      3.6    3.7    3.1     2.9    1.4       3.7      3.7    3.2    2.9     2.9    3.0
 *
 * So 512 KiB for two ranks. With more, a ring passes on one share for each rank; that, not the whole, is what is kept
 * at that size, or on a large machine all would be latency.
 */
#include <limits.h>

#include "base/checked.h"
#include "base/memory.h"
#include "comm/mpi/limits.h"
#include "comm/mpi/transfer.h"

#define ALL_REDUCE_BYTES_PER_RANK (256 << 10)

static const cvy_mpi_limits every_run = {INT_MAX, ALL_REDUCE_BYTES_PER_RANK};
static cvy_mpi_limits limits = {INT_MAX, ALL_REDUCE_BYTES_PER_RANK};

void cvy_mpi_set_limits(const cvy_mpi_limits *wanted) { limits = wanted ? *wanted : every_run; }

/* One transfer while it is cut. */
typedef struct cutting {
    const cvy_mpi_group *group;
    const cvy_transfer_spec *spec;
    int64_t item_bytes;
    cvy_mpi_transfer *t;
} cutting;

static cvy_status add_call(cvy_mpi_transfer *t, cvy_mpi_call call)
{
    CVY_TRY(cvy_array_reserve(&t->call, t->calls, &t->capacity, sizeof *t->call));
    t->call[t->calls++] = call;
    return CVY_OK;
}

static const unsigned char *step_in(const void *base, int64_t bytes)
{
    return base ? (const unsigned char *)base + bytes : NULL;
}

static unsigned char *step_out(void *base, int64_t bytes) { return base ? (unsigned char *)base + bytes : NULL; }

/* Cut @p whole into calls of at most @p most items. */
static cvy_status add_pieces(const cutting *c, const cvy_mpi_call *whole, int64_t most)
{
    for (int64_t done = 0; done < whole->count; done += most) {
        cvy_mpi_call piece = *whole;
        piece.count = cvy_min_i64(most, whole->count - done);
        piece.source = step_in(whole->source, done * c->item_bytes);
        piece.target = step_out(whole->target, done * c->item_bytes);
        CVY_TRY(add_call(c->t, piece));
    }
    return CVY_OK;
}

static cvy_status cut_all_reduce(const cutting *c)
{
    int64_t bytes = limits.all_reduce_bytes_per_rank * c->group->ranks;
    int64_t most = cvy_min_i64(limits.elements, cvy_max_i64(1, bytes / c->item_bytes));
    int64_t items = c->spec->count[0] * cvy_dtype_bytes(c->spec->dtype) / c->item_bytes;
    return add_pieces(c, &(cvy_mpi_call){.kind = CVY_MPI_ALL_REDUCE, .target = c->spec->target, .count = items}, most);
}

/* Whether one call can take each rank's count; then they are given in ints. */
static cvy_status count_in_ints(const cutting *c, bool *fits_out)
{
    int ranks = c->group->ranks;
    int64_t sum = 0;
    for (int i = 0; i < ranks; i++) {
        sum += c->spec->count[i];
    }
    *fits_out = sum <= limits.elements;
    if (!*fits_out) {
        return CVY_OK;
    }
    c->t->count = cvy_calloc((size_t)ranks, sizeof *c->t->count);
    c->t->offset = cvy_calloc((size_t)ranks, sizeof *c->t->offset);
    if (!c->t->count || !c->t->offset) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < ranks; i++) {
        c->t->count[i] = (int)c->spec->count[i];
        c->t->offset[i] = i > 0 ? c->t->offset[i - 1] + c->t->count[i - 1] : 0;
    }
    return CVY_OK;
}

/* Larger than a call takes: a reduction to each rank, one after the other. */
static cvy_status cut_reduce_scatter(const cutting *c)
{
    bool fits;
    cvy_mpi_call call = {.kind = CVY_MPI_REDUCE_SCATTER, .source = c->spec->source, .target = c->spec->target};
    CVY_TRY(count_in_ints(c, &fits));
    if (fits) {
        return add_call(c->t, call);
    }
    call.kind = CVY_MPI_REDUCE;
    for (int i = 0; i < c->group->ranks; i++) {
        call.peer = i;
        call.count = c->spec->count[i];
        call.target = i == c->group->rank ? c->spec->target : NULL;
        CVY_TRY(add_pieces(c, &call, limits.elements));
        call.source = step_in(call.source, call.count * c->item_bytes);
    }
    return CVY_OK;
}

/* Larger than a call takes: a broadcast of each rank's part. */
static cvy_status cut_all_gather(const cutting *c)
{
    bool fits;
    cvy_mpi_call call = {.kind = CVY_MPI_ALL_GATHER, .target = c->spec->target};
    int64_t before = 0;
    for (int i = 0; i < c->group->rank; i++) {
        before += c->spec->count[i];
    }
    c->t->own = (cvy_mpi_copy){c->spec->source, step_out(c->spec->target, before * c->item_bytes),
                               (size_t)(c->spec->count[c->group->rank] * c->item_bytes)};
    CVY_TRY(count_in_ints(c, &fits));
    if (fits) {
        return add_call(c->t, call);
    }
    call.kind = CVY_MPI_BROADCAST;
    for (int i = 0; i < c->group->ranks; i++) {
        call.peer = i;
        call.count = c->spec->count[i];
        CVY_TRY(add_pieces(c, &call, limits.elements));
        call.target = step_out(call.target, call.count * c->item_bytes);
    }
    return CVY_OK;
}

/* Messages: most redistributions concern few pairs of ranks, and only those are called for. */
static cvy_status cut_all_to_all(const cutting *c)
{
    const cvy_transfer_spec *spec = c->spec;
    cvy_mpi_call send = {.kind = CVY_MPI_SEND, .source = spec->source};
    cvy_mpi_call receive = {.kind = CVY_MPI_RECEIVE, .target = spec->target};
    c->t->comm = c->group->exchanges;
    c->t->tag = 0;
    for (int i = 0; i < c->group->ranks; i++) {
        send.peer = receive.peer = i;
        send.count = spec->count[i];
        receive.count = spec->taken[i];
        if (i == c->group->rank) {
            CVY_REQUIRE(send.count == receive.count, CVY_ERR_ARG,
                        "an all-to-all: %lld elements for itself, but %lld taken", (long long)send.count,
                        (long long)receive.count);
            c->t->own = (cvy_mpi_copy){send.source, receive.target, (size_t)(send.count * c->item_bytes)};
        } else {
            CVY_TRY(add_pieces(c, &receive, limits.elements));
            CVY_TRY(add_pieces(c, &send, limits.elements));
        }
        send.source = step_in(send.source, send.count * c->item_bytes);
        receive.target = step_out(receive.target, receive.count * c->item_bytes);
    }
    return CVY_OK;
}

static cvy_status cut_one(const cutting *c, cvy_mpi_call_kind kind)
{
    return add_pieces(c, &(cvy_mpi_call){.kind = kind, .source = c->spec->source, .target = c->spec->target,
                                         .count = c->spec->count[0], .peer = c->spec->peer}, limits.elements);
}

static cvy_status cut_broadcast(const cutting *c) { return cut_one(c, CVY_MPI_BROADCAST); }
static cvy_status cut_send(const cutting *c) { return cut_one(c, CVY_MPI_SEND); }
static cvy_status cut_receive(const cutting *c) { return cut_one(c, CVY_MPI_RECEIVE); }

typedef struct transfer_cut {
    const char *name;
    cvy_status (*cut)(const cutting *c);
} transfer_cut;

static const transfer_cut cuts[CVY_TRANSFER_KINDS] = {
    [CVY_TRANSFER_ALL_REDUCE] = {"all-reduce", cut_all_reduce},
    [CVY_TRANSFER_REDUCE_SCATTER] = {"reduce-scatter", cut_reduce_scatter},
    [CVY_TRANSFER_ALL_GATHER] = {"all-gather", cut_all_gather},
    [CVY_TRANSFER_ALL_TO_ALL] = {"all-to-all", cut_all_to_all},
    [CVY_TRANSFER_BROADCAST] = {"broadcast", cut_broadcast},
    [CVY_TRANSFER_SEND] = {"send", cut_send},
    [CVY_TRANSFER_RECEIVE] = {"receive", cut_receive},
};

cvy_status cvy_mpi_cut(const cvy_mpi_group *group, const cvy_transfer_spec *spec, cvy_mpi_transfer *t)
{
    bool moments = spec->kind == CVY_TRANSFER_ALL_REDUCE && spec->reduction == CVY_REDUCE_MOMENTS;
    cutting c = {group, spec, cvy_dtype_bytes(spec->dtype) * (moments ? 3 : 1), t};
    t->name = cuts[spec->kind].name;
    t->comm = group->comm;
    t->tag = spec->tag;
    return cuts[spec->kind].cut(&c);
}
