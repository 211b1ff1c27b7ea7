/* Communicators: found by name or by launcher, split into groups, and what set-up needs in one call. */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/pulse.h"
#include "comm/comm_internal.h"

static const cvy_comm_kind *find_kind(const char *name)
{
    const cvy_comm_kind *kind;
    for (int i = 0; (kind = cvy_comm_kind_get(i)); i++) {
        bool found = name ? strcmp(kind->name, name) == 0 : !kind->is_started || kind->is_started();
        if (found) {
            return kind;
        }
    }
    return NULL;
}

static void list_kinds(char *text, size_t size)
{
    const cvy_comm_kind *kind;
    *text = '\0';
    for (int i = 0; (kind = cvy_comm_kind_get(i)); i++) {
        strncat(text, i > 0 ? ", " : "", size - strlen(text) - 1);
        strncat(text, kind->name, size - strlen(text) - 1);
    }
}

/* Take over a state that a kind has made; it is closed where there is no memory. */
static cvy_status wrap(const cvy_comm_kind *kind, void *state, cvy_comm **comm_out)
{
    cvy_comm *comm = cvy_calloc(1, sizeof *comm);
    if (!comm) {
        kind->close(state);
        return CVY_ERR_MEMORY;
    }
    *comm = (cvy_comm){.kind = kind, .state = state};
    *comm_out = comm;
    return CVY_OK;
}

cvy_status cvy_comm_open(const char *name, cvy_comm **comm_out)
{
    const cvy_comm_kind *kind = find_kind(name);
    if (!kind) {
        char kinds[128];
        list_kinds(kinds, sizeof kinds);
        return cvy_fail(CVY_ERR_INPUT, "no communicator '%s' in this build; there are: %s", name, kinds);
    }
    void *state;
    CVY_TRY(kind->open(&state));
    return wrap(kind, state, comm_out);
}

void cvy_comm_close(cvy_comm **comm)
{
    if (comm && *comm) {
        (*comm)->kind->close((*comm)->state);
        cvy_free(*comm);
        *comm = NULL;
    }
}

int cvy_comm_rank(const cvy_comm *comm) { return comm ? comm->kind->rank(comm->state) : 0; }
int cvy_comm_ranks(const cvy_comm *comm) { return comm ? comm->kind->ranks(comm->state) : 1; }

int64_t cvy_comm_moved_bytes(const cvy_comm *comm) { return comm->moved_bytes; }

/* Wrap what a split gave, or failed to. */
static cvy_status wrap_group(const cvy_comm *comm, cvy_status status, void *state, cvy_comm **group_out)
{
    status = status == CVY_OK ? wrap(comm->kind, state, group_out) : status;
    if (status != CVY_OK) {
        return cvy_comm_lose(comm, status);
    }
    (*group_out)->lose = comm->lose;
    (*group_out)->lose_context = comm->lose_context;
    return CVY_OK;
}

cvy_status cvy_comm_split(cvy_comm *comm, int color, int key, cvy_comm **group_out)
{
    CVY_REQUIRE(color >= 0, CVY_ERR_ARG, "a group's color must be at least 0, got %d", color);
    void *state = NULL;
    cvy_status status = comm->kind->split(comm->state, color, key, &state);
    return wrap_group(comm, status, state, group_out);
}

cvy_status cvy_comm_split_node(cvy_comm *comm, cvy_comm **group_out)
{
    void *state = NULL;
    cvy_status status = comm->kind->split_node(comm->state, &state);
    return wrap_group(comm, status, state, group_out);
}

void cvy_comm_on_loss(cvy_comm *comm, void (*handle)(void *context, cvy_status status, const char *words),
                      void *context)
{
    comm->lose = handle;
    comm->lose_context = context;
}

cvy_status cvy_comm_lose(const cvy_comm *comm, cvy_status status)
{
    if (comm->lose) {
        comm->lose(comm->lose_context, status, cvy_error_message());
    }
    return status;
}

void cvy_comm_abandon(cvy_comm *comm, int exit_code)
{
    comm->kind->abandon(comm->state, exit_code);
}

/* ---- in one call ---- */

/* While it waits for others it is not to blame: the pulse says so to the watch. */
static cvy_status run_once(cvy_comm *comm, const cvy_transfer_spec *spec)
{
    static const char *const names[CVY_TRANSFER_KINDS] = {
        [CVY_TRANSFER_ALL_REDUCE] = "an all-reduce beside the steps",
        [CVY_TRANSFER_ALL_GATHER] = "an all-gather beside the steps",
        [CVY_TRANSFER_BROADCAST] = "a broadcast beside the steps",
        [CVY_TRANSFER_SEND] = "a message beside the steps",
        [CVY_TRANSFER_RECEIVE] = "a message beside the steps",
    };
    cvy_transfer *transfer = NULL;
    cvy_activity before = cvy_pulse_exchange(-1, names[spec->kind]);
    cvy_status status = cvy_transfer_create(comm, spec, &transfer);
    status = status == CVY_OK ? cvy_transfer_run(transfer) : cvy_comm_lose(comm, status);
    cvy_transfer_destroy(&transfer);
    cvy_pulse_set(before);
    return status;
}

cvy_status cvy_comm_all_reduce(cvy_comm *comm, void *data, int64_t count, cvy_dtype dtype, cvy_reduction reduction)
{
    return run_once(comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_ALL_REDUCE, .dtype = dtype,
                                               .reduction = reduction, .target = data, .count = &count});
}

cvy_status cvy_comm_broadcast(cvy_comm *comm, void *data, int64_t bytes, int root)
{
    return run_once(comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_BROADCAST, .dtype = CVY_U8, .target = data,
                                               .count = &bytes, .peer = root});
}

cvy_status cvy_comm_gather_bytes(cvy_comm *comm, const void *mine, int64_t bytes, void *all_out)
{
    int ranks = cvy_comm_ranks(comm);
    int64_t *count = cvy_calloc((size_t)ranks, sizeof *count);
    if (!count) {
        return cvy_comm_lose(comm, CVY_ERR_MEMORY);
    }
    for (int i = 0; i < ranks; i++) {
        count[i] = bytes;
    }
    cvy_status status = run_once(comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_ALL_GATHER, .dtype = CVY_U8,
                                                            .source = mine, .target = all_out, .count = count});
    cvy_free(count);
    return status;
}

cvy_status cvy_comm_send(cvy_comm *comm, const void *data, int64_t bytes, int peer)
{
    return run_once(comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_SEND, .dtype = CVY_U8, .source = data,
                                               .count = &bytes, .peer = peer});
}

cvy_status cvy_comm_receive(cvy_comm *comm, void *data, int64_t bytes, int peer)
{
    return run_once(comm, &(cvy_transfer_spec){.kind = CVY_TRANSFER_RECEIVE, .dtype = CVY_U8, .target = data,
                                               .count = &bytes, .peer = peer});
}

/* What the first rank that failed has to say. */
typedef struct verdict {
    int32_t status;
    char words[1020];
} verdict;

/* What has been agreed on before begins with its rank: "rank 3: ". */
static bool names_rank(const char *words)
{
    static const char rank[] = "rank ";
    const char *number = words + sizeof rank - 1;
    size_t digits = strncmp(words, rank, sizeof rank - 1) == 0 ? strspn(number, "0123456789") : 0;
    return digits > 0 && strncmp(number + digits, ": ", 2) == 0;
}

static cvy_status share_verdict(cvy_comm *comm, int root, cvy_status mine, bool alike)
{
    verdict v = {.status = (int32_t)mine};
    strncpy(v.words, cvy_error_message(), sizeof v.words - 1);
    CVY_TRY(cvy_comm_broadcast(comm, &v, sizeof v, root));
    return alike || names_rank(v.words) ? cvy_fail((cvy_status)v.status, "%s", v.words)
                                        : cvy_fail((cvy_status)v.status, "rank %d: %s", root, v.words);
}

/* Never 0, which is for a rank that has not failed. */
static int32_t hash_words(void)
{
    uint64_t hash = cvy_hash_text(CVY_HASH_INIT, cvy_error_message());
    return (int32_t)((hash ^ hash >> 32) & INT32_MAX) | 1;
}

cvy_status cvy_comm_agree(cvy_comm *comm, cvy_status mine)
{
    if (cvy_comm_ranks(comm) == 1) {
        return mine;
    }
    enum { FIRST, LEAST, MOST, ENTRIES }; /* the rank, and the hashes of the words: one minimum tells all */
    int32_t hash = mine == CVY_OK ? 0 : hash_words();
    int32_t all[ENTRIES] = {mine == CVY_OK ? INT32_MAX : cvy_comm_rank(comm), hash, -hash};
    CVY_TRY(cvy_comm_all_reduce(comm, all, ENTRIES, CVY_I32, CVY_REDUCE_MIN));
    bool alike = all[LEAST] == -all[MOST];
    return all[FIRST] == INT32_MAX ? CVY_OK : share_verdict(comm, all[FIRST], mine, alike);
}
