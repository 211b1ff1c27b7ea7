/*
 * Copies: whether they are equal, and running statistics that are not. Hashes of all copies go to all ranks, each of
 * which finds the same first difference. Statistics go into one vector over all norms of the model, three numbers a
 * channel: ranks that do not hold a channel say so by a count of 0, and one reduction serves all norms.
 */
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "runtime/sharing_internal.h"
#include "runtime/state_copy.h"

/* ---- equal copies ---- */

static cvy_status compare(const cvy_sharing *sharing, const cvy_state *state, const uint64_t *hash,
                          int64_t *compared)
{
    for (int i = 0; i < sharing->tensors; i++) {
        for (int rank = 1; rank < sharing->ranks; rank++) {
            int owner = cvy_sharing_find_owner(sharing, rank, i);
            if (state->tensor[i].apart || owner < 0 || owner == rank) {
                continue;
            }
            CVY_REQUIRE(hash[(int64_t)rank * sharing->tensors + i] == hash[(int64_t)owner * sharing->tensors + i],
                        CVY_ERR_RANK, "%s: ranks %d and %d have other bits in what should be copies",
                        state->tensor[i].name, owner, rank);
            (*compared)++;
        }
    }
    return CVY_OK;
}

cvy_status cvy_state_check_replicas(const cvy_state *state, int64_t *compared_out)
{
    const cvy_sharing *sharing = state->sharing;
    int64_t compared = 0;
    uint64_t *mine = NULL, *all = NULL;
    cvy_status status = CVY_OK;
    if (sharing) {
        mine = cvy_calloc((size_t)sharing->tensors + 1, sizeof *mine);
        all = cvy_calloc((size_t)sharing->ranks * (size_t)sharing->tensors + 1, sizeof *all);
        CVY_TRY_GOTO(status, done, cvy_comm_agree(sharing->comm, mine && all ? CVY_OK : CVY_ERR_MEMORY));
        for (int i = 0; i < sharing->tensors; i++) {
            const cvy_state_tensor *tensor = &state->tensor[i];
            mine[i] = tensor->data ? XXH3_64bits(tensor->data, (size_t)cvy_state_bytes(tensor)) : 0;
        }
        CVY_TRY_GOTO(status, done,
                     cvy_comm_gather_bytes(sharing->comm, mine, sharing->tensors * (int64_t)sizeof *mine, all));
        CVY_TRY_GOTO(status, done, compare(sharing, state, all, &compared));
    }
    if (compared_out) {
        *compared_out = compared;
    }
done:
    cvy_free(mine);
    cvy_free(all);
    return status;
}

/* ---- statistics ---- */

/* A mean and its variance. */
typedef struct pair {
    cvy_state_tensor *mean, *variance;
} pair;

/* The next pair from tensor @p *at on: what is apart is a mean, behind which its variance is. False at the end. */
static bool find_pair(const cvy_state *state, int *at, pair *pair_out)
{
    while (*at + 1 < state->count && !state->tensor[*at].apart) {
        (*at)++;
    }
    bool found = *at + 1 < state->count;
    if (found) {
        *pair_out = (pair){&state->tensor[*at], &state->tensor[*at + 1]};
        *at += 2;
    }
    return found;
}

static double load(const cvy_state_tensor *tensor, int64_t i)
{
    return tensor->tensor.dtype == CVY_F64 ? ((const double *)tensor->data)[i]
                                           : (double)((const float *)tensor->data)[i];
}

static void store(const cvy_state_tensor *tensor, int64_t i, double value)
{
    if (tensor->tensor.dtype == CVY_F64) {
        ((double *)tensor->data)[i] = value;
    } else {
        ((float *)tensor->data)[i] = (float)value;
    }
}

/* Channels that a rank holds of a pair. */
static int64_t count_held(const pair *p)
{
    return p->mean->data ? cvy_shape_elements(&p->mean->tensor.shape) : 0;
}

static void say_statistics(const pair *p, double *moments)
{
    for (int64_t i = 0; i < count_held(p); i++) {
        double *of_channel = moments + 3 * cvy_state_find_number(p->mean, i);
        of_channel[0] = (double)p->mean->count;
        of_channel[1] = load(p->mean, i);
        of_channel[2] = load(p->variance, i) * (double)p->mean->count;
    }
}

static void take_statistics(const pair *p, double *moments)
{
    for (int64_t i = 0; i < count_held(p); i++) {
        const double *of_channel = moments + 3 * cvy_state_find_number(p->mean, i);
        store(p->mean, i, of_channel[1]);
        store(p->variance, i, of_channel[2] / of_channel[0]);
    }
}

/* Numbers of the vector; with one, what is held is said in it or taken from it. */
static int64_t walk_pairs(const cvy_state *state, void (*act)(const pair *, double *), double *moments)
{
    int64_t numbers = 0;
    int at = 0;
    pair p;
    while (find_pair(state, &at, &p)) {
        if (act) {
            act(&p, moments + numbers);
        }
        numbers += 3 * cvy_shape_elements(&p.mean->shape);
    }
    return numbers;
}

cvy_status cvy_state_merge_statistics(const cvy_state *state)
{
    int64_t numbers = state->sharing ? walk_pairs(state, NULL, NULL) : 0;
    if (numbers == 0) {
        return CVY_OK;
    }
    cvy_comm *comm = state->sharing->comm;
    double *moments = cvy_calloc((size_t)numbers, sizeof *moments);
    cvy_status status = cvy_comm_agree(comm, moments ? CVY_OK : CVY_ERR_MEMORY);
    if (status == CVY_OK) {
        (void)walk_pairs(state, say_statistics, moments);
        status = cvy_comm_all_reduce(comm, moments, numbers, CVY_F64, CVY_REDUCE_MOMENTS);
    }
    if (status == CVY_OK) {
        (void)walk_pairs(state, take_statistics, moments);
    }
    cvy_free(moments);
    return status;
}
