/*
 * What a rank holds is said in words of 64 bits. Their hashes go to all ranks: eight bytes a tensor and rank; the
 * words themselves go from owners to rank 0 alone.
 */
#include "runtime/sharing_internal.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"

/* What is said of a part, in this order: both shapes; type, format, whether grouped; intervals; stretches; piece. */
enum { WORDS = 3 + 2 * (1 + CVY_MAX_DIMS) + 2 * CVY_MAX_DIMS + 2 + 2 * CVY_MAX_INTERVALS + 2 };

static int64_t *put_shape(int64_t *word, const cvy_shape *shape)
{
    *word++ = shape->dims;
    for (int i = 0; i < CVY_MAX_DIMS; i++) {
        *word++ = i < shape->dims ? shape->extent[i] : 0;
    }
    return word;
}

static int64_t *put_interval(int64_t *word, cvy_interval interval)
{
    *word++ = interval.begin;
    *word++ = interval.end;
    return word;
}

static void put_words(const cvy_state_tensor *tensor, int64_t *word)
{
    cvy_holding held = cvy_state_holding(tensor);
    word = put_shape(word, &tensor->tensor.shape);
    word = put_shape(word, &held.global);
    *word++ = (int64_t)tensor->tensor.dtype;
    *word++ = (int64_t)tensor->tensor.format;
    *word++ = tensor->tensor.grouped;
    for (int i = 0; i < CVY_MAX_DIMS; i++) {
        word = put_interval(word, i < held.global.dims ? held.local[i] : (cvy_interval){0, 0});
    }
    *word++ = held.stretches.count ? held.stretched : 0;
    *word++ = held.stretches.count;
    for (int i = 0; i < CVY_MAX_INTERVALS; i++) {
        word = put_interval(word, i < held.stretches.count ? held.stretches.at[i] : (cvy_interval){0, 0});
    }
    (void)put_interval(word, held.piece);
}

static const int64_t *take_shape(const int64_t *word, cvy_shape *shape)
{
    shape->dims = (int)*word++;
    memcpy(shape->extent, word, sizeof shape->extent);
    return word + CVY_MAX_DIMS;
}

static const int64_t *take_interval(const int64_t *word, cvy_interval *interval)
{
    interval->begin = *word++;
    interval->end = *word++;
    return word;
}

static void take_words(const int64_t *word, cvy_state_tensor *tensor)
{
    cvy_holding *held = &tensor->holding;
    word = take_shape(word, &tensor->tensor.shape);
    word = take_shape(word, &held->global);
    tensor->tensor.dtype = (cvy_dtype)*word++;
    tensor->tensor.format = (cvy_format)*word++;
    tensor->tensor.grouped = *word++ != 0;
    for (int i = 0; i < CVY_MAX_DIMS; i++) {
        word = take_interval(word, &held->local[i]);
    }
    held->stretched = (int)*word++;
    held->stretches.count = (int)*word++;
    for (int i = 0; i < CVY_MAX_INTERVALS; i++) {
        word = take_interval(word, &held->stretches.at[i]);
    }
    (void)take_interval(word, &held->piece);
}

int cvy_sharing_find_owner(const cvy_sharing *sharing, int rank, int tensor)
{
    uint64_t key = sharing->key[(int64_t)rank * sharing->tensors + tensor];
    int owner = 0;
    while (key && sharing->key[(int64_t)owner * sharing->tensors + tensor] != key) {
        owner++;
    }
    return key ? owner : -1;
}

/* ---- set-up ---- */

static cvy_status check_count(cvy_comm *comm, const cvy_state *state)
{
    int32_t range[2] = {state->count, -state->count};
    CVY_TRY(cvy_comm_all_reduce(comm, range, 2, CVY_I32, CVY_REDUCE_MIN));
    CVY_REQUIRE(range[0] == -range[1], CVY_ERR_RANK, "ranks list between %d and %d tensors: they have other models",
                (int)range[0], (int)-range[1]);
    return CVY_OK;
}

static cvy_status share_keys(cvy_sharing *sharing, const cvy_state *state)
{
    int64_t words[WORDS];
    int64_t bytes = sharing->tensors * (int64_t)sizeof *sharing->key;
    uint64_t *mine = cvy_calloc((size_t)sharing->tensors + 1, sizeof *mine);
    sharing->key = cvy_calloc((size_t)sharing->ranks * (size_t)sharing->tensors + 1, sizeof *sharing->key);
    cvy_status status = cvy_comm_agree(sharing->comm, mine && sharing->key ? CVY_OK : CVY_ERR_MEMORY);
    for (int i = 0; i < sharing->tensors && status == CVY_OK; i++) {
        if (state->tensor[i].data) {
            put_words(&state->tensor[i], words);
            mine[i] = XXH3_64bits(words, sizeof words) | 1; /* 0 says that there is nothing */
        }
    }
    if (status == CVY_OK) {
        status = cvy_comm_gather_bytes(sharing->comm, mine, bytes, sharing->key);
    }
    cvy_free(mine);
    return status;
}

static int count_owned(const cvy_sharing *sharing, int rank)
{
    int count = 0;
    for (int i = 0; i < sharing->tensors; i++) {
        count += cvy_sharing_find_owner(sharing, rank, i) == rank;
    }
    return count;
}

/* Rank 0: take down what each owner said, rank after rank; owners of a tensor end up in the order of their ranks. */
static void note_owners(cvy_sharing *sharing, const cvy_state *state, int rank, const int64_t *words)
{
    for (int i = 0; i < sharing->tensors; i++) {
        if (cvy_sharing_find_owner(sharing, rank, i) == rank) {
            int at = sharing->first_owner[i];
            while (sharing->owner[at].held.name) {
                at++;
            }
            sharing->owner[at] = (cvy_owner){.rank = rank, .held = {.name = state->tensor[i].name}};
            take_words(words, &sharing->owner[at].held);
            words += WORDS;
        }
    }
}

/* Say, in the order of the list, what this rank owns. */
static void say_owned(const cvy_sharing *sharing, const cvy_state *state, int64_t *words)
{
    int rank = cvy_comm_rank(sharing->comm);
    for (int i = 0; i < sharing->tensors; i++) {
        if (cvy_sharing_find_owner(sharing, rank, i) == rank) {
            put_words(&state->tensor[i], words);
            words += WORDS;
        }
    }
}

static cvy_status share_words(cvy_sharing *sharing, const cvy_state *state, int64_t *words)
{
    int rank = cvy_comm_rank(sharing->comm), owned = count_owned(sharing, rank);
    say_owned(sharing, state, words);
    if (rank > 0) {
        return owned ? cvy_comm_send(sharing->comm, words, owned * (int64_t)sizeof(int64_t[WORDS]), 0) : CVY_OK;
    }
    note_owners(sharing, state, 0, words);
    for (int i = 1; i < sharing->ranks; i++) {
        int64_t bytes = count_owned(sharing, i) * (int64_t)sizeof(int64_t[WORDS]);
        CVY_TRY(bytes ? cvy_comm_receive(sharing->comm, words, bytes, i) : CVY_OK);
        note_owners(sharing, state, i, words);
    }
    return CVY_OK;
}

/* Rank 0: places for the owners of each tensor. */
static cvy_status make_room_for_owners(cvy_sharing *sharing)
{
    sharing->first_owner = cvy_calloc((size_t)sharing->tensors + 1, sizeof *sharing->first_owner);
    if (!sharing->first_owner) {
        return CVY_ERR_MEMORY;
    }
    int owners = 0;
    for (int i = 0; i < sharing->tensors; i++) {
        sharing->first_owner[i] = owners;
        for (int rank = 0; rank < sharing->ranks; rank++) {
            owners += cvy_sharing_find_owner(sharing, rank, i) == rank;
        }
    }
    sharing->first_owner[sharing->tensors] = owners;
    sharing->owner = cvy_calloc((size_t)owners + 1, sizeof *sharing->owner);
    return sharing->owner ? CVY_OK : CVY_ERR_MEMORY;
}

/* Whether two owners hold the same part, or pieces of it. */
static bool is_same_part(const cvy_owner *a, const cvy_owner *b)
{
    const cvy_holding *x = &a->held.holding, *y = &b->held.holding;
    size_t stretches_bytes = (size_t)x->stretches.count * sizeof x->stretches.at[0];
    bool same = x->stretches.count == y->stretches.count &&
                memcmp(x->stretches.at, y->stretches.at, stretches_bytes) == 0;
    for (int i = 0; i < x->global.dims && same; i++) {
        same = x->local[i].begin == y->local[i].begin && x->local[i].end == y->local[i].end;
    }
    return same;
}

/* How far, from the begin of an owner's part, the pieces of all owners reach without a gap. */
static int64_t find_reach(const cvy_sharing *sharing, int tensor, const cvy_owner *of)
{
    int64_t reach = 0;
    for (bool grows = true; grows;) {
        grows = false;
        for (int i = sharing->first_owner[tensor]; i < sharing->first_owner[tensor + 1]; i++) {
            const cvy_interval *piece = &sharing->owner[i].held.holding.piece;
            if (piece->begin <= reach && piece->end > reach && is_same_part(&sharing->owner[i], of)) {
                reach = piece->end;
                grows = true;
            }
        }
    }
    return reach;
}

/* Whether an owner is the first of its part that has its begin: there the part is counted. */
static bool begins_part(const cvy_sharing *sharing, int tensor, const cvy_owner *owner)
{
    bool first = owner->held.holding.piece.begin == 0;
    for (const cvy_owner *at = &sharing->owner[sharing->first_owner[tensor]]; at < owner && first; at++) {
        first = at->held.holding.piece.begin > 0 || !is_same_part(at, owner);
    }
    return first;
}

/*
 * Parts make up the tensor, and pieces, which may overlap, their parts: ranks that have copies of a parameter may lay
 * it out in other buckets, and cut it elsewhere.
 */
static cvy_status check_owners(const cvy_sharing *sharing, const cvy_state *state)
{
    for (int i = 0; i < sharing->tensors; i++) {
        int64_t elements = 0, expected = cvy_shape_elements(&state->tensor[i].shape);
        for (int k = sharing->first_owner[i]; k < sharing->first_owner[i + 1]; k++) {
            const cvy_owner *owner = &sharing->owner[k];
            if (begins_part(sharing, i, owner)) {
                int64_t reach = find_reach(sharing, i, owner), memory = cvy_tensor_elements(&owner->held.tensor);
                CVY_REQUIRE(reach == memory, CVY_ERR_RANK,
                            "%s: the pieces that ranks hold reach to element %" PRId64 " of %" PRId64 " in memory",
                            state->tensor[i].name, reach, memory);
                elements += cvy_shape_elements(&owner->held.tensor.shape);
            }
        }
        CVY_REQUIRE(elements == expected, CVY_ERR_RANK, "%s: the ranks hold %" PRId64 " elements, expected %" PRId64,
                    state->tensor[i].name, elements, expected);
    }
    return CVY_OK;
}

static cvy_status find_owners(cvy_sharing *sharing, const cvy_state *state)
{
    bool first = cvy_comm_rank(sharing->comm) == 0;
    int64_t *words = cvy_calloc((size_t)sharing->tensors + 1, sizeof(int64_t[WORDS]));
    cvy_status status = words ? CVY_OK : CVY_ERR_MEMORY;
    if (first && status == CVY_OK) {
        status = make_room_for_owners(sharing);
    }
    CVY_TRY_GOTO(status, done, cvy_comm_agree(sharing->comm, status));
    CVY_TRY_GOTO(status, done, share_words(sharing, state, words));
    status = cvy_comm_agree(sharing->comm, first ? check_owners(sharing, state) : CVY_OK);
done:
    cvy_free(words);
    return status;
}

cvy_status cvy_sharing_create(cvy_comm *comm, const cvy_state *state, cvy_sharing **sharing_out)
{
    cvy_sharing *sharing = cvy_calloc(1, sizeof *sharing);
    cvy_status status = cvy_comm_agree(comm, sharing ? CVY_OK : CVY_ERR_MEMORY);
    CVY_TRY_GOTO(status, done, status);
    *sharing = (cvy_sharing){.comm = comm, .ranks = cvy_comm_ranks(comm), .tensors = state->count};
    CVY_TRY_GOTO(status, done, check_count(comm, state));
    CVY_TRY_GOTO(status, done, share_keys(sharing, state));
    CVY_TRY_GOTO(status, done, find_owners(sharing, state));
    *sharing_out = sharing;
    sharing = NULL;
done:
    cvy_sharing_destroy(&sharing);
    return status;
}

void cvy_sharing_destroy(cvy_sharing **sharing)
{
    if (sharing && *sharing) {
        cvy_free((*sharing)->key);
        cvy_free((*sharing)->owner);
        cvy_free((*sharing)->first_owner);
        cvy_free(*sharing);
        *sharing = NULL;
    }
}
