/*
 * Collectives, bound. Every member learns once what each other one brings and ends with; from that follow the boxes and
 * the counts of all, so no two ranks can think differently of what travels.
 */
#include "base/memory.h"
#include "runtime/exchange_internal.h"

/* What a region has in common with another, box by box, from or to stretches of packed memory. */
static cvy_status add_boxes(cvy_binding *b, int buffer, const cvy_region *mine, const cvy_region *other, char *packed,
                            bool back)
{
    cvy_region_walk walk;
    cvy_box box;
    int64_t item = cvy_dtype_bytes(cvy_binding_buffer(b, buffer)->tensor.dtype);
    cvy_region_walk_start(mine, other, &walk);
    while (cvy_region_walk_next(&walk, &box)) {
        CVY_TRY(cvy_binding_add_pack(b, buffer, &box, packed, back));
        packed += cvy_box_elements(&box, mine->dims) * item;
    }
    return CVY_OK;
}

/* *met_out: whether all members could; one that could not tells all ranks, when everything is bound. */
static cvy_status gather_members(cvy_binding *b, bool *met_out)
{
    cvy_member mine = {cvy_region_of(cvy_binding_buffer(b, 0)), cvy_region_of(cvy_binding_buffer(b, 1))};
    b->member = cvy_calloc((size_t)b->ranks, sizeof *b->member);
    b->count = cvy_calloc((size_t)b->ranks, sizeof *b->count);
    b->taken = cvy_calloc((size_t)b->ranks, sizeof *b->taken);
    int32_t met = b->member && b->count && b->taken;
    cvy_status status = met ? CVY_OK : CVY_ERR_MEMORY;
    CVY_TRY(cvy_comm_all_reduce(b->comm, &met, 1, CVY_I32, CVY_REDUCE_MIN));
    *met_out = met;
    if (!met) {
        return status;
    }
    CVY_TRY(cvy_comm_gather_bytes(b->comm, &mine, sizeof mine, b->member));
    for (int i = 0; i < b->ranks; i++) {
        b->count[i] = cvy_region_overlap(&mine.source, &b->member[i].target);
        b->taken[i] = cvy_region_overlap(&mine.target, &b->member[i].source);
    }
    return CVY_OK;
}

static int64_t sum_counts(const cvy_binding *b, const int64_t *count, int ranks)
{
    int64_t elements = 0;
    for (int i = 0; i < ranks; i++) {
        elements += count[i];
    }
    return elements * cvy_dtype_bytes(cvy_binding_buffer(b, 0)->tensor.dtype);
}

static cvy_transfer_spec start_transfer(const cvy_binding *b, cvy_transfer_kind kind)
{
    return (cvy_transfer_spec){.kind = kind, .dtype = cvy_binding_buffer(b, 0)->tensor.dtype, .count = b->count,
                               .taken = b->taken};
}

/* Buffers that are summed in place; packed together, or each as it lies. */
static cvy_status bind_sum(cvy_binding *b)
{
    int64_t total = 0;
    for (int i = 0; i < b->buffers; i++) {
        const cvy_buffer *buffer = cvy_binding_buffer(b, i);
        cvy_box box = cvy_box_whole(&buffer->tensor);
        int64_t item = cvy_dtype_bytes(buffer->tensor.dtype);
        int64_t bytes = b->packed ? cvy_box_elements(&box, buffer->tensor.shape.dims) * item : buffer->bytes;
        int64_t elements = bytes / item;
        void *packed = b->site->memory[i];
        if (b->packed) {
            CVY_TRY(cvy_binding_take_packed(b, bytes, &packed));
            CVY_TRY(cvy_binding_add_pack(b, i, &box, packed, false));
            CVY_TRY(cvy_binding_add_pack(b, i, &box, packed, true));
        } else {
            cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_ALL_REDUCE);
            spec.target = packed;
            spec.count = &elements;
            CVY_TRY(cvy_binding_add_transfer(b, b->comm, &spec));
        }
        total += bytes;
    }
    CVY_TRY(cvy_binding_expect("the buffers that are summed have", total, b->exchange->bytes));
    if (b->packed) {
        cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_ALL_REDUCE);
        int64_t elements = total / cvy_dtype_bytes(cvy_binding_buffer(b, 0)->tensor.dtype);
        spec.target = b->packed;
        spec.count = &elements;
        CVY_TRY(cvy_binding_add_transfer(b, b->comm, &spec));
    }
    return CVY_OK;
}

/* A sum into another buffer. */
static cvy_status bind_sum_into(cvy_binding *b)
{
    const cvy_buffer *source = cvy_binding_buffer(b, 0);
    cvy_box box = cvy_box_whole(&source->tensor);
    cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_ALL_REDUCE);
    int64_t elements = cvy_box_elements(&box, source->tensor.shape.dims);
    spec.target = b->site->memory[1];
    spec.count = &elements;
    CVY_TRY(cvy_binding_expect("the source has", elements * cvy_dtype_bytes(spec.dtype), b->exchange->bytes));
    CVY_TRY(cvy_binding_add_pack(b, 0, &box, spec.target, false));
    return cvy_binding_add_transfer(b, b->comm, &spec);
}

static cvy_status bind_moments(cvy_binding *b)
{
    const cvy_buffer *mean = cvy_binding_buffer(b, 0);
    int64_t channels = cvy_shape_elements(&mean->tensor.shape), numbers = 3 * channels;
    cvy_transfer_spec spec = {.kind = CVY_TRANSFER_ALL_REDUCE, .dtype = CVY_F64, .reduction = CVY_REDUCE_MOMENTS,
                              .count = &numbers};
    CVY_TRY(cvy_binding_expect("the moments of the channels have", numbers * cvy_dtype_bytes(CVY_F64),
                               b->exchange->bytes));
    CVY_TRY(cvy_binding_take_packed(b, b->exchange->bytes, &spec.target));
    b->run->moments = (cvy_moments){.dtype = mean->tensor.dtype,
                                    .channels = channels,
                                    .count = b->exchange->count,
                                    .mean = b->site->memory[0],
                                    .variance = b->site->memory[1],
                                    .packed = spec.target};
    return cvy_binding_add_transfer(b, b->comm, &spec);
}

static cvy_status bind_gather(cvy_binding *b)
{
    const cvy_region *mine = &b->member[b->place].source, *target = &b->member[b->place].target;
    int64_t item = cvy_dtype_bytes(cvy_binding_buffer(b, 0)->tensor.dtype);
    int64_t before = sum_counts(b, b->taken, b->place);
    cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_ALL_GATHER);
    spec.count = b->taken;
    CVY_TRY(cvy_binding_expect("the members bring", sum_counts(b, b->taken, b->ranks), b->exchange->bytes));
    CVY_TRY(cvy_binding_expect("the target has", cvy_region_elements(target) * item, b->exchange->bytes));
    if (!b->packed) {
        char *place = (char *)b->site->memory[1] + before;
        spec.target = b->site->memory[1];
        spec.source = b->site->memory[0] == place ? NULL : b->site->memory[0];
        return cvy_binding_add_transfer(b, b->comm, &spec);
    }
    CVY_TRY(cvy_binding_take_packed(b, b->exchange->bytes, &spec.target));
    char *packed = spec.target;
    CVY_TRY(add_boxes(b, 0, mine, target, packed + before, false));
    for (int i = 0; i < b->ranks; i++) {
        CVY_TRY(add_boxes(b, 1, target, &b->member[i].source, packed, true));
        packed += b->taken[i] * item;
    }
    cvy_binding_clear_padding(b, 1);
    return cvy_binding_add_transfer(b, b->comm, &spec);
}

/* What this rank has for each member, packed one behind the other. */
static cvy_status pack_for_members(cvy_binding *b, void **packed_out)
{
    int64_t item = cvy_dtype_bytes(cvy_binding_buffer(b, 0)->tensor.dtype), bytes = sum_counts(b, b->count, b->ranks);
    CVY_TRY(cvy_binding_expect("what it brings has", bytes, b->exchange->bytes));
    CVY_TRY(cvy_binding_take_packed(b, bytes, packed_out));
    char *packed = *packed_out;
    for (int i = 0; i < b->ranks; i++) {
        CVY_TRY(add_boxes(b, 0, &b->member[b->place].source, &b->member[i].target, packed, false));
        packed += b->count[i] * item;
    }
    return CVY_OK;
}

static cvy_status bind_scatter(cvy_binding *b)
{
    const cvy_member *mine = &b->member[b->place];
    cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_REDUCE_SCATTER);
    int64_t item = cvy_dtype_bytes(spec.dtype);
    if (!b->packed) {
        CVY_TRY(cvy_binding_expect("what it brings has", sum_counts(b, b->count, b->ranks), b->exchange->bytes));
        spec.source = b->site->memory[0];
        spec.target = b->site->memory[1];
        return cvy_binding_add_transfer(b, b->comm, &spec);
    }
    void *packed;
    CVY_TRY(pack_for_members(b, &packed));
    CVY_TRY(cvy_binding_take_packed(b, b->count[b->place] * item, &spec.target));
    spec.source = packed;
    CVY_TRY(add_boxes(b, 1, &mine->target, &mine->source, spec.target, true));
    cvy_binding_clear_padding(b, 1);
    return cvy_binding_add_transfer(b, b->comm, &spec);
}

static cvy_status bind_shares(cvy_binding *b)
{
    cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_ALL_TO_ALL);
    int64_t item = cvy_dtype_bytes(spec.dtype);
    void *packed;
    CVY_TRY(pack_for_members(b, &packed));
    CVY_TRY(cvy_binding_take_packed(b, sum_counts(b, b->taken, b->ranks), &spec.target));
    spec.source = packed;
    char *from = spec.target;
    for (int i = 0; i < b->ranks; i++) {
        CVY_TRY(add_boxes(b, 1, &b->member[b->place].target, &b->member[i].source, from, true));
        from += b->taken[i] * item;
    }
    cvy_binding_clear_padding(b, 1);
    return cvy_binding_add_transfer(b, b->comm, &spec);
}

cvy_status cvy_binding_bind_collective(cvy_binding *b)
{
    b->comm = b->site->groups->along[b->exchange->axes][b->site->step->stream];
    b->ranks = cvy_comm_ranks(b->comm);
    b->place = cvy_comm_rank(b->comm);
    if (b->exchange->merge) {
        return bind_moments(b);
    }
    if (b->exchange->collective == CVY_COLLECTIVE_ALL_REDUCE) {
        return cvy_binding_access(b, 0) == CVY_ACCESS_UPDATE ? bind_sum(b) : bind_sum_into(b);
    }
    bool met;
    CVY_TRY(gather_members(b, &met));
    if (!met) {
        return CVY_OK;
    }
    switch (b->exchange->collective) {
    case CVY_COLLECTIVE_ALL_GATHER: return bind_gather(b);
    case CVY_COLLECTIVE_REDUCE_SCATTER: return bind_scatter(b);
    case CVY_COLLECTIVE_ALL_TO_ALL: return bind_shares(b);
    default:
        return cvy_fail(CVY_ERR_UNSUPPORTED, "a step cannot %s", cvy_collective_name(b->exchange->collective));
    }
}
