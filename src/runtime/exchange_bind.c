/*
 * Set-up of a communication step. What travels between two ranks is what the source of the one and the target of the
 * other have both; both walk over it in the order of the whole tensor's indices, so neither tells the other where an
 * element goes. The sums of what is packed must be the bytes that the step says: what was priced is what runs.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "runtime/exchange.h"
#include "runtime/region.h"

/* What a member of the group brings, and ends with. */
typedef struct member {
    cvy_region source, target;
} member;

/* A step while it is bound. */
typedef struct binding {
    const cvy_exchange_site *site;
    const cvy_exchange *exchange;
    cvy_exchange_run *run;
    cvy_comm *comm;
    int ranks, place;
    int buffers;     /* that it moves; behind them may come the one to travel in */
    char *packed;    /* NULL: elements travel as they lie */
    int64_t packed_bytes, used_bytes;
    member *member;  /* of each rank of the group */
    int64_t *count, *taken;
} binding;

static const cvy_buffer *get_buffer(const binding *b, int i)
{
    const cvy_schedule *s = b->site->schedule;
    return &s->buffer[s->use[b->site->step->first_use + i].buffer];
}

static cvy_access get_access(const binding *b, int i)
{
    return b->site->schedule->use[b->site->step->first_use + i].access;
}

static cvy_status expect(const binding *b, const char *what, int64_t found, int64_t expected)
{
    CVY_REQUIRE(found == expected, CVY_ERR_INFEASIBLE, "a communication step is to move %lld bytes, %s %lld",
                (long long)expected, what, (long long)found);
    (void)b;
    return CVY_OK;
}

/* ---- what is appended ---- */

static cvy_status add_pack(binding *b, int buffer, const cvy_box *box, void *packed, bool back)
{
    cvy_exchange_run *run = b->run;
    const cvy_tensor *tensor = &get_buffer(b, buffer)->tensor;
    void *memory = b->site->memory[buffer];
    cvy_format order = get_buffer(b, 0)->tensor.format; /* a target may be of another one than its source */
    if (back) {
        CVY_TRY(cvy_array_reserve(&run->unpack, run->unpacks, &run->unpack_capacity, sizeof *run->unpack));
        cvy_pack_setup(tensor, memory, box, order, packed, &run->unpack[run->unpacks++]);
    } else {
        CVY_TRY(cvy_array_reserve(&run->pack, run->packs, &run->pack_capacity, sizeof *run->pack));
        cvy_pack_setup(tensor, memory, box, order, packed, &run->pack[run->packs++]);
    }
    return CVY_OK;
}

/* The next stretch of the memory in which elements travel. */
static cvy_status take_packed(binding *b, int64_t bytes, void **packed_out)
{
    CVY_REQUIRE(b->used_bytes + bytes <= b->packed_bytes, CVY_ERR_INFEASIBLE,
                "a communication step packs %lld bytes, planned were %lld", (long long)(b->used_bytes + bytes),
                (long long)b->packed_bytes);
    *packed_out = b->packed + b->used_bytes;
    b->used_bytes += bytes;
    return CVY_OK;
}

static cvy_status add_transfer(binding *b, cvy_comm *comm, const cvy_transfer_spec *spec)
{
    cvy_exchange_run *run = b->run;
    CVY_TRY(cvy_array_reserve(&run->transfer, run->transfers, &run->transfer_capacity, sizeof *run->transfer));
    CVY_TRY(cvy_transfer_create(comm, spec, &run->transfer[run->transfers]));
    run->transfers++;
    return CVY_OK;
}

/* What a region has in common with another, box by box, from or to stretches of packed memory. */
static cvy_status add_boxes(binding *b, int buffer, const cvy_region *mine, const cvy_region *other, char *packed,
                            bool back)
{
    cvy_region_walk walk;
    cvy_box box;
    int64_t item = cvy_dtype_bytes(get_buffer(b, buffer)->tensor.dtype);
    cvy_region_walk_start(mine, other, &walk);
    while (cvy_region_walk_next(&walk, &box)) {
        CVY_TRY(add_pack(b, buffer, &box, packed, back));
        packed += cvy_box_elements(&box, mine->dims) * item;
    }
    return CVY_OK;
}

/* A target that is written as a whole, but for the padding of its format. */
static void clear_padding(binding *b, int buffer)
{
    const cvy_buffer *target = get_buffer(b, buffer);
    if (get_access(b, buffer) == CVY_ACCESS_WRITE && cvy_shape_elements(&target->tensor.shape) *
                                                             cvy_dtype_bytes(target->tensor.dtype) < target->bytes) {
        b->run->clear = b->site->memory[buffer];
        b->run->clear_bytes = (size_t)target->bytes;
    }
}

/* ---- collectives ---- */

static cvy_status gather_members(binding *b)
{
    member mine = {cvy_region_of(get_buffer(b, 0)), cvy_region_of(get_buffer(b, 1))};
    b->member = cvy_calloc((size_t)b->ranks, sizeof *b->member);
    b->count = cvy_calloc((size_t)b->ranks, sizeof *b->count);
    b->taken = cvy_calloc((size_t)b->ranks, sizeof *b->taken);
    if (!b->member || !b->count || !b->taken) {
        return CVY_ERR_MEMORY;
    }
    CVY_TRY(cvy_comm_gather_bytes(b->comm, &mine, sizeof mine, b->member));
    for (int i = 0; i < b->ranks; i++) {
        b->count[i] = cvy_region_overlap(&mine.source, &b->member[i].target);
        b->taken[i] = cvy_region_overlap(&mine.target, &b->member[i].source);
    }
    return CVY_OK;
}

static int64_t sum_counts(const binding *b, const int64_t *count, int ranks)
{
    int64_t elements = 0;
    for (int i = 0; i < ranks; i++) {
        elements += count[i];
    }
    return elements * cvy_dtype_bytes(get_buffer(b, 0)->tensor.dtype);
}

static cvy_transfer_spec start_transfer(const binding *b, cvy_transfer_kind kind)
{
    return (cvy_transfer_spec){.kind = kind, .dtype = get_buffer(b, 0)->tensor.dtype, .count = b->count,
                               .taken = b->taken};
}

/* Buffers that are summed in place; packed together, or each as it lies. */
static cvy_status bind_sum(binding *b)
{
    int64_t total = 0;
    for (int i = 0; i < b->buffers; i++) {
        const cvy_buffer *buffer = get_buffer(b, i);
        cvy_box box = cvy_box_whole(&buffer->tensor);
        int64_t item = cvy_dtype_bytes(buffer->tensor.dtype);
        int64_t bytes = b->packed ? cvy_box_elements(&box, buffer->tensor.shape.dims) * item : buffer->bytes;
        int64_t elements = bytes / item;
        void *packed = b->site->memory[i];
        if (b->packed) {
            CVY_TRY(take_packed(b, bytes, &packed));
            CVY_TRY(add_pack(b, i, &box, packed, false));
            CVY_TRY(add_pack(b, i, &box, packed, true));
        } else {
            cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_ALL_REDUCE);
            spec.target = packed;
            spec.count = &elements;
            CVY_TRY(add_transfer(b, b->comm, &spec));
        }
        total += bytes;
    }
    CVY_TRY(expect(b, "the buffers that are summed have", total, b->exchange->bytes));
    if (b->packed) {
        cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_ALL_REDUCE);
        int64_t elements = total / cvy_dtype_bytes(get_buffer(b, 0)->tensor.dtype);
        spec.target = b->packed;
        spec.count = &elements;
        CVY_TRY(add_transfer(b, b->comm, &spec));
    }
    return CVY_OK;
}

/* A sum into another buffer. */
static cvy_status bind_sum_into(binding *b)
{
    const cvy_buffer *source = get_buffer(b, 0);
    cvy_box box = cvy_box_whole(&source->tensor);
    cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_ALL_REDUCE);
    int64_t elements = cvy_box_elements(&box, source->tensor.shape.dims);
    spec.target = b->site->memory[1];
    spec.count = &elements;
    CVY_TRY(expect(b, "the source has", elements * cvy_dtype_bytes(spec.dtype), b->exchange->bytes));
    CVY_TRY(add_pack(b, 0, &box, spec.target, false));
    return add_transfer(b, b->comm, &spec);
}

static cvy_status bind_moments(binding *b)
{
    const cvy_buffer *mean = get_buffer(b, 0);
    int64_t channels = cvy_shape_elements(&mean->tensor.shape), numbers = 3 * channels;
    cvy_transfer_spec spec = {.kind = CVY_TRANSFER_ALL_REDUCE, .dtype = CVY_F64, .reduction = CVY_REDUCE_MOMENTS,
                              .count = &numbers};
    CVY_TRY(expect(b, "the moments of the channels have", numbers * cvy_dtype_bytes(CVY_F64), b->exchange->bytes));
    CVY_TRY(take_packed(b, b->exchange->bytes, &spec.target));
    b->run->moments = (cvy_moments){.dtype = mean->tensor.dtype,
                                    .channels = channels,
                                    .count = b->exchange->count,
                                    .mean = b->site->memory[0],
                                    .variance = b->site->memory[1],
                                    .packed = spec.target};
    return add_transfer(b, b->comm, &spec);
}

static cvy_status bind_gather(binding *b)
{
    const cvy_region *mine = &b->member[b->place].source, *target = &b->member[b->place].target;
    int64_t item = cvy_dtype_bytes(get_buffer(b, 0)->tensor.dtype);
    int64_t before = sum_counts(b, b->taken, b->place);
    cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_ALL_GATHER);
    spec.count = b->taken;
    CVY_TRY(expect(b, "the members bring", sum_counts(b, b->taken, b->ranks), b->exchange->bytes));
    CVY_TRY(expect(b, "the target has", cvy_region_elements(target) * item, b->exchange->bytes));
    if (!b->packed) {
        char *place = (char *)b->site->memory[1] + before;
        spec.target = b->site->memory[1];
        spec.source = b->site->memory[0] == place ? NULL : b->site->memory[0];
        return add_transfer(b, b->comm, &spec);
    }
    CVY_TRY(take_packed(b, b->exchange->bytes, &spec.target));
    char *packed = spec.target;
    CVY_TRY(add_boxes(b, 0, mine, target, packed + before, false));
    for (int i = 0; i < b->ranks; i++) {
        CVY_TRY(add_boxes(b, 1, target, &b->member[i].source, packed, true));
        packed += b->taken[i] * item;
    }
    clear_padding(b, 1);
    return add_transfer(b, b->comm, &spec);
}

/* What this rank has for each member, packed one behind the other. */
static cvy_status pack_for_members(binding *b, void **packed_out)
{
    int64_t item = cvy_dtype_bytes(get_buffer(b, 0)->tensor.dtype), bytes = sum_counts(b, b->count, b->ranks);
    CVY_TRY(expect(b, "what it brings has", bytes, b->exchange->bytes));
    CVY_TRY(take_packed(b, bytes, packed_out));
    char *packed = *packed_out;
    for (int i = 0; i < b->ranks; i++) {
        CVY_TRY(add_boxes(b, 0, &b->member[b->place].source, &b->member[i].target, packed, false));
        packed += b->count[i] * item;
    }
    return CVY_OK;
}

static cvy_status bind_scatter(binding *b)
{
    const member *mine = &b->member[b->place];
    cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_REDUCE_SCATTER);
    int64_t item = cvy_dtype_bytes(spec.dtype);
    if (!b->packed) {
        CVY_TRY(expect(b, "what it brings has", sum_counts(b, b->count, b->ranks), b->exchange->bytes));
        spec.source = b->site->memory[0];
        spec.target = b->site->memory[1];
        return add_transfer(b, b->comm, &spec);
    }
    void *packed;
    CVY_TRY(pack_for_members(b, &packed));
    CVY_TRY(take_packed(b, b->count[b->place] * item, &spec.target));
    spec.source = packed;
    CVY_TRY(add_boxes(b, 1, &mine->target, &mine->source, spec.target, true));
    clear_padding(b, 1);
    return add_transfer(b, b->comm, &spec);
}

static cvy_status bind_shares(binding *b)
{
    cvy_transfer_spec spec = start_transfer(b, CVY_TRANSFER_ALL_TO_ALL);
    int64_t item = cvy_dtype_bytes(spec.dtype);
    void *packed;
    CVY_TRY(pack_for_members(b, &packed));
    CVY_TRY(take_packed(b, sum_counts(b, b->taken, b->ranks), &spec.target));
    spec.source = packed;
    char *from = spec.target;
    for (int i = 0; i < b->ranks; i++) {
        CVY_TRY(add_boxes(b, 1, &b->member[b->place].target, &b->member[i].source, from, true));
        from += b->taken[i] * item;
    }
    clear_padding(b, 1);
    return add_transfer(b, b->comm, &spec);
}

static cvy_status bind_collective(binding *b)
{
    b->comm = b->site->groups->along[b->exchange->axes][b->site->step->stream];
    b->ranks = cvy_comm_ranks(b->comm);
    b->place = cvy_comm_rank(b->comm);
    if (b->exchange->merge) {
        return bind_moments(b);
    }
    if (b->exchange->collective == CVY_COLLECTIVE_ALL_REDUCE) {
        return get_access(b, 0) == CVY_ACCESS_UPDATE ? bind_sum(b) : bind_sum_into(b);
    }
    CVY_TRY(gather_members(b));
    switch (b->exchange->collective) {
    case CVY_COLLECTIVE_ALL_GATHER: return bind_gather(b);
    case CVY_COLLECTIVE_REDUCE_SCATTER: return bind_scatter(b);
    case CVY_COLLECTIVE_ALL_TO_ALL: return bind_shares(b);
    default:
        return cvy_fail(CVY_ERR_UNSUPPORTED, "a step cannot %s", cvy_collective_name(b->exchange->collective));
    }
}

/* ---- messages ---- */

/* Rows of a message, as a buffer counts them; all of those that it does not speak of. */
static cvy_box find_rows(const cvy_buffer *buffer, const cvy_message *message)
{
    cvy_box box = cvy_box_whole(&buffer->tensor);
    for (int at = 0; at < 3; at++) {
        int dim = buffer->tensor.shape.dims - 3 + at;
        if (dim >= 2 && message->rows[at].end > message->rows[at].begin) {
            box.begin[dim] = message->rows[at].begin - buffer->local[dim].begin;
            box.extent[dim] = message->rows[at].end - message->rows[at].begin;
        }
    }
    return box;
}

/* What one side sends on a stream the other receives on the stream that goes with it. */
static int find_tag(int stream)
{
    return stream == CVY_STREAM_FORWARD_OUT    ? CVY_STREAM_FORWARD_IN
           : stream == CVY_STREAM_GRADIENT_OUT ? CVY_STREAM_GRADIENT_IN
                                               : stream;
}

static cvy_status add_message(binding *b, const cvy_message *message)
{
    int used = message->receive && b->buffers > 1;
    const cvy_buffer *buffer = get_buffer(b, used);
    cvy_box box = find_rows(buffer, message);
    int64_t elements = cvy_box_elements(&box, buffer->tensor.shape.dims);
    const cvy_groups *groups = b->site->groups;
    cvy_transfer_spec spec = {.kind = message->receive ? CVY_TRANSFER_RECEIVE : CVY_TRANSFER_SEND,
                              .dtype = buffer->tensor.dtype,
                              .count = &elements,
                              .peer = (int)cvy_mesh_peer(&groups->mesh, groups->rank, message->peer_offset),
                              .tag = find_tag(b->site->step->stream)};
    void *packed = b->site->memory[used];
    CVY_TRY(expect(b, "the rows of a message have", elements * cvy_dtype_bytes(spec.dtype), message->bytes));
    if (b->packed) {
        CVY_TRY(take_packed(b, message->bytes, &packed));
        CVY_TRY(add_pack(b, used, &box, packed, message->receive));
        if (message->receive) {
            clear_padding(b, used);
        }
    }
    spec.source = packed;
    spec.target = packed;
    return add_transfer(b, groups->messages, &spec);
}

/* What comes is asked for before anything is sent. */
static cvy_status bind_messages(binding *b)
{
    const cvy_exchange *e = b->exchange;
    int64_t sent_bytes = 0;
    b->run->add = e->sum;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < e->messages; i++) {
            const cvy_message *message = &b->site->schedule->message[e->first_message + i];
            if (message->receive == (pass == 0)) {
                CVY_TRY(add_message(b, message));
                sent_bytes += message->receive ? 0 : message->bytes;
            }
        }
    }
    return expect(b, "its messages have", sent_bytes, e->bytes);
}

cvy_status cvy_exchange_bind(const cvy_exchange_site *site, cvy_exchange_run *run)
{
    const cvy_schedule *s = site->schedule;
    const cvy_step *step = site->step;
    *run = (cvy_exchange_run){0};
    CVY_REQUIRE(step->uses >= 1 && step->uses <= CVY_EXCHANGE_BUFFERS, CVY_ERR_INFEASIBLE,
                "a communication step uses %d buffers, expected 1 to %d", step->uses, CVY_EXCHANGE_BUFFERS);
    binding b = {.site = site, .exchange = &s->exchange[step->exchange], .run = run, .buffers = step->uses};
    const cvy_buffer *last = get_buffer(&b, step->uses - 1);
    if (last->role == CVY_BUFFER_COMMUNICATION) {
        b.buffers--;
        b.packed = site->memory[step->uses - 1];
        b.packed_bytes = last->bytes;
    }
    cvy_status status = step->kind == CVY_STEP_COLLECTIVE ? bind_collective(&b) : bind_messages(&b);
    cvy_free(b.member);
    cvy_free(b.count);
    cvy_free(b.taken);
    return status;
}
