/*
 * Set-up of a communication step. What travels between two ranks is what the source of the one and the target of the
 * other have both; both walk over it in the order of the whole tensor's indices, so neither tells the other where an
 * element goes. The sums of what is packed must be the bytes that the step says: what was priced is what runs.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "runtime/exchange_internal.h"

const cvy_buffer *cvy_binding_buffer(const cvy_binding *b, int i)
{
    const cvy_schedule *s = b->site->schedule;
    return &s->buffer[s->use[b->site->step->first_use + i].buffer];
}

cvy_access cvy_binding_access(const cvy_binding *b, int i)
{
    return b->site->schedule->use[b->site->step->first_use + i].access;
}

cvy_status cvy_binding_expect(const char *what, int64_t found, int64_t expected)
{
    CVY_REQUIRE(found == expected, CVY_ERR_INFEASIBLE, "a communication step is to move %lld bytes, %s %lld",
                (long long)expected, what, (long long)found);
    return CVY_OK;
}

/* ---- what is appended ---- */

cvy_status cvy_binding_add_pack(cvy_binding *b, int buffer, const cvy_box *box, void *packed, bool back)
{
    cvy_exchange_run *run = b->run;
    const cvy_tensor *tensor = &cvy_binding_buffer(b, buffer)->tensor;
    void *memory = b->site->memory[buffer];
    cvy_format order = cvy_binding_buffer(b, 0)->tensor.format; /* a target may be of another one than its source */
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
cvy_status cvy_binding_take_packed(cvy_binding *b, int64_t bytes, void **packed_out)
{
    CVY_REQUIRE(b->used_bytes + bytes <= b->packed_bytes, CVY_ERR_INFEASIBLE,
                "a communication step packs %lld bytes, planned were %lld", (long long)(b->used_bytes + bytes),
                (long long)b->packed_bytes);
    *packed_out = b->packed + b->used_bytes;
    b->used_bytes += bytes;
    return CVY_OK;
}

cvy_status cvy_binding_add_transfer(cvy_binding *b, cvy_comm *comm, const cvy_transfer_spec *spec)
{
    cvy_exchange_run *run = b->run;
    CVY_TRY(cvy_array_reserve(&run->transfer, run->transfers, &run->transfer_capacity, sizeof *run->transfer));
    CVY_TRY(cvy_transfer_create(comm, spec, &run->transfer[run->transfers]));
    run->transfers++;
    return CVY_OK;
}

/* A target that is written as a whole, but for the padding of its format. */
void cvy_binding_clear_padding(cvy_binding *b, int buffer)
{
    const cvy_buffer *target = cvy_binding_buffer(b, buffer);
    if (cvy_binding_access(b, buffer) == CVY_ACCESS_WRITE && cvy_shape_elements(&target->tensor.shape) *
                                                             cvy_dtype_bytes(target->tensor.dtype) < target->bytes) {
        b->run->clear = b->site->memory[buffer];
        b->run->clear_bytes = (size_t)target->bytes;
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

static cvy_status add_message(cvy_binding *b, const cvy_message *message)
{
    int used = message->receive && b->buffers > 1;
    const cvy_buffer *buffer = cvy_binding_buffer(b, used);
    cvy_box box = find_rows(buffer, message);
    int64_t elements = cvy_box_elements(&box, buffer->tensor.shape.dims);
    const cvy_groups *groups = b->site->groups;
    cvy_transfer_spec spec = {.kind = message->receive ? CVY_TRANSFER_RECEIVE : CVY_TRANSFER_SEND,
                              .dtype = buffer->tensor.dtype,
                              .count = &elements,
                              .peer = (int)cvy_mesh_peer(&groups->mesh, groups->rank, message->peer_offset),
                              .tag = find_tag(b->site->step->stream)};
    void *packed = b->site->memory[used];
    CVY_TRY(cvy_binding_expect("the rows of a message have", elements * cvy_dtype_bytes(spec.dtype), message->bytes));
    if (b->packed) {
        CVY_TRY(cvy_binding_take_packed(b, message->bytes, &packed));
        CVY_TRY(cvy_binding_add_pack(b, used, &box, packed, message->receive));
        if (message->receive) {
            cvy_binding_clear_padding(b, used);
        }
    }
    spec.source = packed;
    spec.target = packed;
    return cvy_binding_add_transfer(b, groups->messages, &spec);
}

/* What comes is asked for before anything is sent. */
static cvy_status bind_messages(cvy_binding *b)
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
    return cvy_binding_expect("its messages have", sent_bytes, e->bytes);
}

cvy_status cvy_exchange_bind(const cvy_exchange_site *site, cvy_exchange_run *run)
{
    const cvy_schedule *s = site->schedule;
    const cvy_step *step = site->step;
    *run = (cvy_exchange_run){0};
    CVY_REQUIRE(step->uses >= 1 && step->uses <= CVY_EXCHANGE_BUFFERS, CVY_ERR_INFEASIBLE,
                "a communication step uses %d buffers, expected 1 to %d", step->uses, CVY_EXCHANGE_BUFFERS);
    cvy_binding b = {.site = site, .exchange = &s->exchange[step->exchange], .run = run, .buffers = step->uses};
    const cvy_buffer *last = cvy_binding_buffer(&b, step->uses - 1);
    if (last->role == CVY_BUFFER_COMMUNICATION) {
        b.buffers--;
        b.packed = site->memory[step->uses - 1];
        b.packed_bytes = last->bytes;
    }
    cvy_status status = step->kind == CVY_STEP_COLLECTIVE ? cvy_binding_bind_collective(&b) : bind_messages(&b);
    cvy_free(b.member);
    cvy_free(b.count);
    cvy_free(b.taken);
    return status;
}
