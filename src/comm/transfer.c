/* Transfers: what is asked for is checked, what is moved is counted; the kind does the rest. */
#include "base/checked.h"
#include "base/memory.h"
#include "comm/comm_internal.h"

struct cvy_transfer {
    cvy_comm *comm;
    void *state;
    int64_t bytes; /* that a run moves, as schedules count them */
    bool under_way;
};

static bool takes_each_rank(cvy_transfer_kind kind)
{
    return kind == CVY_TRANSFER_REDUCE_SCATTER || kind == CVY_TRANSFER_ALL_GATHER || kind == CVY_TRANSFER_ALL_TO_ALL;
}

static bool reduces(cvy_transfer_kind kind)
{
    return kind == CVY_TRANSFER_ALL_REDUCE || kind == CVY_TRANSFER_REDUCE_SCATTER;
}

static bool has_peer(cvy_transfer_kind kind)
{
    return kind == CVY_TRANSFER_BROADCAST || kind == CVY_TRANSFER_SEND || kind == CVY_TRANSFER_RECEIVE;
}

static cvy_status add_counts(const int64_t *count, int counts, int64_t item_bytes, int64_t *bytes_out)
{
    int64_t elements = 0;
    for (int i = 0; i < counts; i++) {
        CVY_REQUIRE(count[i] >= 0 && cvy_add_i64(elements, count[i], &elements), CVY_ERR_ARG,
                    "a transfer of %lld elements", (long long)count[i]);
    }
    CVY_REQUIRE(cvy_mul_i64(elements, item_bytes, bytes_out), CVY_ERR_ARG, "a transfer of %lld elements",
                (long long)elements);
    return CVY_OK;
}

static cvy_status check(const cvy_comm *comm, const cvy_transfer_spec *spec, int64_t *bytes_out)
{
    int ranks = cvy_comm_ranks(comm);
    int64_t taken_bytes;
    bool arithmetic = spec->dtype == CVY_F32 || spec->dtype == CVY_F64 || spec->dtype == CVY_I32;
    CVY_REQUIRE(arithmetic || !reduces(spec->kind), CVY_ERR_ARG, "a reduction of %s: expected f32, f64 or i32",
                cvy_dtype_name(spec->dtype));
    int counts = takes_each_rank(spec->kind) ? ranks : 1;
    CVY_TRY(add_counts(spec->count, counts, cvy_dtype_bytes(spec->dtype), bytes_out));
    if (spec->kind == CVY_TRANSFER_ALL_TO_ALL) {
        CVY_TRY(add_counts(spec->taken, counts, cvy_dtype_bytes(spec->dtype), &taken_bytes));
    }
    bool moments = reduces(spec->kind) && spec->reduction == CVY_REDUCE_MOMENTS;
    CVY_REQUIRE(!moments || (spec->kind == CVY_TRANSFER_ALL_REDUCE && spec->dtype == CVY_F64 && *bytes_out % 24 == 0),
                CVY_ERR_ARG, "moments are reduced in f64, in threes, for all ranks");
    CVY_REQUIRE(!has_peer(spec->kind) || (spec->peer >= 0 && spec->peer < ranks), CVY_ERR_ARG,
                "a message with rank %d of %d", spec->peer, ranks);
    CVY_REQUIRE(spec->tag >= 0 && spec->tag <= 32767, CVY_ERR_ARG, "a message's tag is 0 to 32767, got %d", spec->tag);
    return CVY_OK;
}

cvy_status cvy_transfer_create(cvy_comm *comm, const cvy_transfer_spec *spec, cvy_transfer **transfer_out)
{
    int64_t bytes;
    CVY_TRY(check(comm, spec, &bytes));
    cvy_transfer *transfer = cvy_calloc(1, sizeof *transfer);
    if (!transfer) {
        return CVY_ERR_MEMORY;
    }
    *transfer = (cvy_transfer){.comm = comm, .bytes = spec->kind == CVY_TRANSFER_RECEIVE ? 0 : bytes};
    cvy_status status = comm->kind->create(comm->state, spec, &transfer->state);
    if (status != CVY_OK) {
        cvy_free(transfer);
        return status;
    }
    *transfer_out = transfer;
    return CVY_OK;
}

void cvy_transfer_destroy(cvy_transfer **transfer)
{
    if (transfer && *transfer) {
        (*transfer)->comm->kind->destroy((*transfer)->state);
        cvy_free(*transfer);
        *transfer = NULL;
    }
}

/* What fails here fails for one rank, while the others wait: whoever watches the run hears of it at once. */
static cvy_status see(const cvy_transfer *transfer, cvy_status status)
{
    return status == CVY_ERR_RANK ? cvy_comm_lose(transfer->comm, status) : status;
}

cvy_status cvy_transfer_run(cvy_transfer *transfer)
{
    transfer->comm->moved_bytes += transfer->bytes;
    return see(transfer, transfer->comm->kind->run(transfer->state));
}

cvy_status cvy_transfer_begin(cvy_transfer *transfer)
{
    transfer->comm->moved_bytes += transfer->bytes;
    transfer->under_way = true;
    return see(transfer, transfer->comm->kind->begin(transfer->state));
}

cvy_status cvy_transfer_test(cvy_transfer *transfer, bool *done_out)
{
    *done_out = true;
    if (transfer->under_way) {
        CVY_TRY(see(transfer, transfer->comm->kind->test(transfer->state, done_out)));
        transfer->under_way = !*done_out;
    }
    return CVY_OK;
}

cvy_status cvy_transfer_wait(cvy_transfer *transfer)
{
    if (!transfer->under_way) {
        return CVY_OK;
    }
    transfer->under_way = false;
    return see(transfer, transfer->comm->kind->wait(transfer->state));
}
