/* One rank alone: reductions and broadcasts are done before they begin, the rest copies what it has for itself. */
#include <string.h>

#include "base/memory.h"
#include "comm/comm.h"

static cvy_status open_self(void **state_out)
{
    *state_out = NULL;
    return CVY_OK;
}

static void close_self(void *state) { (void)state; }

static int get_rank(const void *state)
{
    (void)state;
    return 0;
}

static int get_ranks(const void *state)
{
    (void)state;
    return 1;
}

static cvy_status split(void *state, int color, int key, void **group_out)
{
    (void)state;
    (void)color;
    (void)key;
    *group_out = NULL;
    return CVY_OK;
}

static cvy_status split_node(void *state, void **group_out)
{
    (void)state;
    *group_out = NULL;
    return CVY_OK;
}

/* What is left of a transfer: a copy. */
typedef struct copy {
    const void *source;
    void *target;
    size_t bytes;
} copy;

static cvy_status create(void *state, const cvy_transfer_spec *spec, void **transfer_out)
{
    (void)state;
    CVY_REQUIRE(spec->kind != CVY_TRANSFER_SEND && spec->kind != CVY_TRANSFER_RECEIVE, CVY_ERR_ARG,
                "one rank alone has nobody to send to");
    copy *c = cvy_calloc(1, sizeof *c);
    if (!c) {
        return CVY_ERR_MEMORY;
    }
    bool in_place = spec->kind == CVY_TRANSFER_ALL_REDUCE || spec->kind == CVY_TRANSFER_BROADCAST;
    *c = (copy){in_place ? NULL : spec->source, spec->target,
                (size_t)(spec->count[0] * cvy_dtype_bytes(spec->dtype))};
    *transfer_out = c;
    return CVY_OK;
}

static void destroy(void *transfer) { cvy_free(transfer); }

static cvy_status run(void *transfer)
{
    const copy *c = transfer;
    if (c->source && c->bytes > 0) {
        memcpy(c->target, c->source, c->bytes);
    }
    return CVY_OK;
}

static cvy_status test(void *transfer, bool *done_out)
{
    (void)transfer;
    *done_out = true;
    return CVY_OK;
}

static cvy_status wait_done(void *transfer)
{
    (void)transfer;
    return CVY_OK;
}

static void abandon(void *state, int exit_code)
{
    (void)state;
    (void)exit_code;
}

extern const cvy_comm_kind cvy_comm_self;
const cvy_comm_kind cvy_comm_self = {.name = "self",
                                     .help = "one rank alone",
                                     .open = open_self,
                                     .close = close_self,
                                     .rank = get_rank,
                                     .ranks = get_ranks,
                                     .split = split,
                                     .split_node = split_node,
                                     .create = create,
                                     .destroy = destroy,
                                     .run = run,
                                     .begin = run,
                                     .test = test,
                                     .wait = wait_done,
                                     .abandon = abandon};
