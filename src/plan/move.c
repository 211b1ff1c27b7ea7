/*
 * Redistributions. Between two spreads of a tensor each axis asks for what leads from its one placement to the other
 * (tensor/redistribution); axes split different dimensions, so their order is free: slices come first, as they cost
 * nothing to send and leave less to the others; then sums that end split, exchanges of shares, sums that end whole, and
 * last what makes a tensor whole. Axes that ask for the same sum, or the same gathering, make one group of ranks.
 */
#include "plan/builder.h"

/* A tensor on its way. */
typedef struct journey {
    cvy_builder *b;
    int layer;
    const cvy_shape *shape;
    cvy_format format;
    cvy_spread now;
    int buffer;
} journey;

static const cvy_tensor *get_tensor(const journey *j) { return &j->b->schedule->buffer[j->buffer].tensor; }

/* The same tensor as it lies after one more step. */
static cvy_status add_target(journey *j, int *index_out)
{
    cvy_buffer target = j->b->schedule->buffer[j->buffer];
    target.tensor.format = j->format;
    target.alias_of = -1;
    target.alias_offset = 0;
    cvy_spread_describe(&j->b->seat, j->shape, &j->now, &target);
    return cvy_builder_add_buffer(j->b, &target, index_out);
}

static cvy_exchange_spec start_exchange(const journey *j, cvy_collective collective, unsigned axes, int64_t bytes)
{
    return (cvy_exchange_spec){
        .step = {CVY_STEP_COLLECTIVE, CVY_PHASE_REDISTRIBUTE, j->layer},
        .exchange = {.collective = collective, .axes = axes, .bytes = bytes, .bucket = -1,
                     .first_message = j->b->schedule->messages},
    };
}

/* A collective from the buffer there is to another one. */
static cvy_status add_collective(journey *j, cvy_exchange_spec *spec, int target)
{
    spec->uses = 2;
    spec->use[0] = (cvy_use){.buffer = j->buffer, .access = CVY_ACCESS_READ};
    spec->use[1] = (cvy_use){.buffer = target, .access = CVY_ACCESS_WRITE};
    j->buffer = target;
    return cvy_builder_add_exchange(j->b, spec);
}

/* Each rank takes its part of what it has all of. */
static cvy_status slice(journey *j, cvy_axis axis, const cvy_spread *to)
{
    const cvy_placement *placement = &to->along[axis];
    int dim = placement->dim;
    int operand[2] = {j->buffer, -1};
    cvy_op op = {.kind = CVY_OP_PICK, .pass = CVY_PASS_FORWARD};
    op.params.pick.dim = dim;
    op.params.pick.intervals =
        cvy_placement_share(placement, dim, j->shape->extent[dim], j->b->seat.coordinate[axis]);
    j->now.along[axis] = *placement;
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, get_tensor(j)));
    CVY_TRY(add_target(j, &operand[1]));
    j->buffer = operand[1];
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_Y, get_tensor(j)));
    return cvy_builder_add_step(j->b, &(cvy_step_spec){CVY_STEP_LOCAL, CVY_PHASE_REDISTRIBUTE, j->layer}, &op, operand);
}

static cvy_status scatter_sum(journey *j, cvy_axis axis, const cvy_spread *to)
{
    int target;
    int64_t bytes = cvy_share_bytes(get_tensor(j));
    cvy_exchange_spec spec = start_exchange(j, CVY_COLLECTIVE_REDUCE_SCATTER, CVY_AXIS_BIT(axis), bytes);
    j->now.along[axis] = to->along[axis];
    CVY_TRY(add_target(j, &target));
    spec.exchange.sum = true;
    spec.packed_bytes = bytes + cvy_share_bytes(&j->b->schedule->buffer[target].tensor);
    return add_collective(j, &spec, target);
}

/* What this rank has for each other, and they for it. */
static cvy_status add_messages(journey *j, cvy_axis axis, const cvy_placement *to)
{
    const cvy_placement *from = &j->now.along[axis];
    int64_t self = j->b->seat.coordinate[axis];
    cvy_shape shape = get_tensor(j)->shape;
    shape.extent[from->dim] = j->shape->extent[from->dim];
    shape.extent[to->dim] = j->shape->extent[to->dim];
    for (int64_t k = 0; k < 2 * from->parts; k++) {
        int64_t peer = k % from->parts;
        bool receive = k >= from->parts;
        int64_t elements = cvy_redistribution_elements(from, to, &shape, receive ? peer : self, receive ? self : peer);
        cvy_message message = {.bytes = elements * cvy_dtype_bytes(get_tensor(j)->dtype), .receive = receive};
        message.peer_offset[axis] = (int)(peer - self);
        if (peer != self && elements > 0) {
            CVY_TRY(cvy_builder_add_message(j->b, &message));
        }
    }
    return CVY_OK;
}

static cvy_status exchange_shares(journey *j, cvy_axis axis, const cvy_spread *to)
{
    int target;
    int64_t bytes = cvy_share_bytes(get_tensor(j));
    cvy_exchange_spec spec = start_exchange(j, CVY_COLLECTIVE_ALL_TO_ALL, CVY_AXIS_BIT(axis), bytes);
    CVY_TRY(add_messages(j, axis, &to->along[axis]));
    spec.exchange.messages = j->b->schedule->messages - spec.exchange.first_message;
    j->now.along[axis] = to->along[axis];
    CVY_TRY(add_target(j, &target));
    spec.packed_bytes = bytes + cvy_share_bytes(&j->b->schedule->buffer[target].tensor);
    return add_collective(j, &spec, target);
}

/* In place; where a format has padding, what travels is packed. */
static cvy_status sum(journey *j, unsigned axes)
{
    int64_t bytes = cvy_share_bytes(get_tensor(j));
    cvy_exchange_spec spec = start_exchange(j, CVY_COLLECTIVE_ALL_REDUCE, axes, bytes);
    spec.exchange.sum = true;
    spec.packed_bytes = bytes == j->b->schedule->buffer[j->buffer].bytes ? 0 : bytes;
    spec.uses = 1;
    spec.use[0] = (cvy_use){.buffer = j->buffer, .access = CVY_ACCESS_UPDATE};
    return cvy_builder_add_exchange(j->b, &spec);
}

static cvy_status gather(journey *j, unsigned axes)
{
    int target;
    CVY_TRY(add_target(j, &target));
    int64_t bytes = cvy_share_bytes(&j->b->schedule->buffer[target].tensor);
    cvy_exchange_spec spec = start_exchange(j, CVY_COLLECTIVE_ALL_GATHER, axes, bytes);
    spec.packed_bytes = bytes;
    return add_collective(j, &spec, target);
}

static cvy_status move_along(journey *j, cvy_redistribution kind, cvy_axis axis, const cvy_spread *to)
{
    switch (kind) {
    case CVY_REDISTRIBUTION_LOCAL: return slice(j, axis, to);
    case CVY_REDISTRIBUTION_REDUCE_SCATTER: return scatter_sum(j, axis, to);
    case CVY_REDISTRIBUTION_ALL_TO_ALL: return exchange_shares(j, axis, to);
    default: j->now.along[axis] = to->along[axis]; return CVY_OK; /* together with others, below */
    }
}

cvy_status cvy_build_redistribution(cvy_builder *b, int layer, const cvy_shape *shape, cvy_format format,
                                    const cvy_spread spread[2], int *buffer)
{
    static const cvy_redistribution order[] = {CVY_REDISTRIBUTION_LOCAL, CVY_REDISTRIBUTION_REDUCE_SCATTER,
                                               CVY_REDISTRIBUTION_ALL_TO_ALL, CVY_REDISTRIBUTION_ALL_REDUCE,
                                               CVY_REDISTRIBUTION_ALL_GATHER};
    cvy_redistribution asked[CVY_AXES];
    bool moves = false;
    for (int k = 0; k < b->seat.axes; k++) {
        cvy_axis axis = b->seat.axis[k];
        asked[k] = cvy_redistribution_find(&spread[0].along[axis], &spread[1].along[axis]);
        moves = moves || asked[k] != CVY_REDISTRIBUTION_NONE;
    }
    if (!moves) {
        return CVY_OK;
    }
    journey j = {.b = b, .layer = layer, .shape = shape, .format = format, .now = spread[0], .buffer = *buffer};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        unsigned axes = 0;
        for (int k = 0; k < b->seat.axes; k++) {
            if (asked[k] == order[i]) {
                axes |= CVY_AXIS_BIT(b->seat.axis[k]);
                CVY_TRY(move_along(&j, order[i], b->seat.axis[k], &spread[1]));
            }
        }
        if (axes && order[i] == CVY_REDISTRIBUTION_ALL_REDUCE) {
            CVY_TRY(sum(&j, axes));
        } else if (axes && order[i] == CVY_REDISTRIBUTION_ALL_GATHER) {
            CVY_TRY(gather(&j, axes));
        }
    }
    *buffer = j.buffer;
    return CVY_OK;
}
