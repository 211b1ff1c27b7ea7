/*
 * Where space is cut, an op takes the rows that its own outputs reach: its own and a halo, in a dense tensor, with
 * padding left only where they end with the sample. Own rows are copied in, then the halo comes. Backward runs the same
 * way back: the op makes the gradients of all rows that it took, out of its own dy; those of the halo are sent to the
 * owners of the rows, and added there. So every product of dy with a tap is made once, on the rank that has the output,
 * whatever the strides, and a max pooling's gradient finds its winners, which are known within its own windows only.
 * The other way, to gather dy and make dx whole, makes products of the halo twice and would have to send the winners.
 *
 * A transposed convolution slides its window over its output: there it is the output's own rows that ask for rows of x.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "plan/builder.h"
#include "plan/halo.h"

static bool has_window(const cvy_op *op)
{
    return cvy_op_convolves(op->kind) || op->kind == CVY_OP_POOL_MAX || op->kind == CVY_OP_POOL_AVERAGE;
}

/* A layer's windows along one axis of space, and the shares of what they slide over and make. */
typedef struct sliding {
    cvy_placement input, output;
    cvy_halo_axis axis;
    cvy_halo_need need;
} sliding;

static bool is_cut(const cvy_seat *seat, int layer, int at)
{
    const cvy_distribution *d = seat->distribution;
    unsigned bit = CVY_AXIS_BIT(CVY_AXIS_DEPTH + at);
    return seat->size[CVY_AXIS_DEPTH + at] > 1 && (d->layer[layer].input_split & d->layer[layer].raw_split & bit);
}

static void slide(const cvy_seat *seat, const cvy_model *model, int layer, const cvy_op *op, int at, sliding *s)
{
    bool transposed = op->kind == CVY_OP_TRANSPOSED_CONVOLUTION;
    cvy_axis axis = (cvy_axis)(CVY_AXIS_DEPTH + at);
    int64_t x[3], y[3];
    cvy_space_get(&model->layer[model->layer[layer].input[0]].output, x);
    cvy_space_get(&model->layer[layer].output, y);
    s->input = cvy_distribution_input(seat->distribution, layer, 0, axis);
    s->output = cvy_distribution_raw(seat->distribution, layer, axis);
    s->need = transposed ? CVY_HALO_DY : CVY_HALO_X;
    s->axis = (cvy_halo_axis){.window = &op->params.window.window, .axis = at, .extent = transposed ? y[at] : x[at],
                              .x = transposed ? &s->output : &s->input, .y = transposed ? &s->input : &s->output};
}

/* The output's rows on a rank: one stretch. */
static cvy_interval find_outputs(const sliding *s, int64_t extent, int64_t coordinate)
{
    return cvy_placement_share(&s->output, s->output.dim, extent, coordinate).at[0];
}

/*
 * Own rows behind the last tap that is not padding are taken too, where no further output comes of them: of a stride
 * beyond its kernel whole shares stay as they are, without a copy, and so do the library's kernels for them.
 */
static int64_t take_rest(const sliding *s, cvy_halo_window reached, int64_t coordinate)
{
    cvy_intervals own = cvy_placement_share(&s->input, s->input.dim, s->axis.extent, coordinate);
    int64_t end = reached.rows.end, spare = s->axis.window->stride[s->axis.axis] - 1;
    bool rest = s->need == CVY_HALO_X && reached.after == 0 && own.count > 0;
    return rest ? cvy_max_i64(end, cvy_min_i64(end + spare, own.at[own.count - 1].end)) : end;
}

void cvy_reach_find(const cvy_seat *seat, const cvy_model *model, int layer, const cvy_op *op, cvy_reach *reach)
{
    const cvy_layer *l = &model->layer[layer];
    int64_t x[3], y[3];
    cvy_space_get(&model->layer[l->input[0]].output, x);
    cvy_space_get(&l->output, y);
    for (int at = 0; at < 3; at++) {
        const cvy_window *window = &op->params.window.window;
        reach->rows[at] = (cvy_interval){0, x[at]};
        reach->before[at] = window->before[at];
        reach->after[at] = window->after[at];
        if (is_cut(seat, layer, at)) {
            sliding s;
            slide(seat, model, layer, op, at, &s);
            cvy_interval outputs = find_outputs(&s, y[at], seat->coordinate[CVY_AXIS_DEPTH + at]);
            cvy_halo_window reached = s.need == CVY_HALO_X ? cvy_halo_window_x(&s.axis, outputs)
                                                           : cvy_halo_window_dy(&s.axis, outputs);
            int64_t end = take_rest(&s, reached, seat->coordinate[CVY_AXIS_DEPTH + at]);
            reach->rows[at] = (cvy_interval){reached.rows.begin, end};
            reach->before[at] = reached.before;
            reach->after[at] = reached.after;
        }
    }
}

static bool makes_window_op(const cvy_model *model, int layer, cvy_op *op)
{
    const cvy_layer *l = &model->layer[layer];
    if (!l->kind->make_op || l->inputs == 0) {
        return false;
    }
    l->kind->make_op(l, &model->layer[l->input[0]].output, CVY_PASS_FORWARD, op);
    return has_window(op);
}

static bool cuts_space(const cvy_seat *seat, int layer)
{
    return is_cut(seat, layer, 0) || is_cut(seat, layer, 1) || is_cut(seat, layer, 2);
}

/* Bring what is described as a share to the rows that the layer's op reaches. */
static void extend(const cvy_seat *seat, const cvy_model *model, int layer, cvy_buffer *buffer)
{
    cvy_op op;
    cvy_reach reach;
    if (seat->axes == 0 || !cuts_space(seat, layer) || !makes_window_op(model, layer, &op)) {
        return;
    }
    cvy_reach_find(seat, model, layer, &op, &reach);
    for (int at = 0; at < 3; at++) {
        int dim = buffer->tensor.shape.dims - 3 + at;
        if (is_cut(seat, layer, at)) {
            buffer->local[dim] = reach.rows[at];
            buffer->tensor.shape.extent[dim] = reach.rows[at].end - reach.rows[at].begin;
        }
    }
}

cvy_buffer cvy_builder_describe(const cvy_builder *b, cvy_spread_of of, int layer, int i, cvy_format format)
{
    bool input = of == CVY_SPREAD_INPUT || of == CVY_SPREAD_INPUT_GRADIENT;
    bool gradient = of == CVY_SPREAD_INPUT_GRADIENT || of == CVY_SPREAD_RAW_GRADIENT;
    const cvy_layer *l = &b->model->layer[layer];
    int owner = input ? l->input[i] : layer;
    cvy_spread spread;
    cvy_buffer buffer = {.role = CVY_BUFFER_ACTIVATIONS,
                         .content = gradient ? CVY_CONTENT_OUTPUT_GRADIENT : CVY_CONTENT_OUTPUT,
                         .layer = owner,
                         .parameter = -1,
                         .part = gradient && input ? layer : -1,
                         .tensor = {.dtype = b->plan->options.dtype, .format = format},
                         .alias_of = -1};
    cvy_spread_find(&b->seat, of, layer, i, &spread);
    cvy_spread_describe(&b->seat, &b->model->layer[owner].output, &spread, &buffer);
    if (input && i == 0) {
        extend(&b->seat, b->model, layer, &buffer);
    }
    return buffer;
}

/* ---- messages ---- */

/* Rows along each axis that come from, or go to, others; along an axis that is not cut, all rows are the rank's own. */
static cvy_status find_boxes(const cvy_builder *b, int layer, const cvy_op *op, bool receive, cvy_halo_box **boxes,
                             int *count)
{
    cvy_halo halo[3] = {0};
    cvy_status status = CVY_OK;
    int64_t extent[3];
    cvy_halo_piece whole[3];
    cvy_space_get(&b->model->layer[b->model->layer[layer].input[0]].output, extent);
    const int64_t *self = &b->seat.coordinate[CVY_AXIS_DEPTH];
    for (int at = 0; at < 3; at++) {
        if (is_cut(&b->seat, layer, at)) {
            sliding s;
            slide(&b->seat, b->model, layer, op, at, &s);
            status = receive ? cvy_halo_receive(&s.axis, s.need, self[at], &halo[at])
                             : cvy_halo_send(&s.axis, s.need, self[at], &halo[at]);
            CVY_TRY_GOTO(status, done, status);
        } else {
            whole[at] = (cvy_halo_piece){self[at], {0, extent[at]}};
            halo[at] = (cvy_halo){.pieces = 1, .piece = &whole[at]};
        }
    }
    status = cvy_halo_cross(halo, self, boxes, count);
done:
    for (int at = 0; at < 3; at++) {
        if (halo[at].capacity > 0) {
            cvy_halo_clear(&halo[at]);
        }
    }
    return status;
}

/* One message a box; @p slab_bytes of each position. Adds up the bytes. */
static cvy_status add_messages(cvy_builder *b, int layer, const cvy_op *op, bool needed, bool receive,
                               int64_t slab_bytes, int64_t *bytes)
{
    cvy_halo_box *boxes = NULL;
    int count = 0;
    cvy_status status = find_boxes(b, layer, op, needed, &boxes, &count);
    for (int i = 0; status == CVY_OK && i < count; i++) {
        cvy_message message = {.bytes = slab_bytes, .receive = receive};
        for (int at = 0; at < 3; at++) {
            int axis = CVY_AXIS_DEPTH + at;
            message.peer_offset[axis] = (int)(boxes[i].peer[at] - b->seat.coordinate[axis]);
            message.rows[at] = boxes[i].rows[at];
            message.bytes *= boxes[i].rows[at].end - boxes[i].rows[at].begin;
        }
        *bytes += message.bytes;
        status = cvy_builder_add_message(b, &message);
    }
    cvy_free(boxes);
    return status;
}

static unsigned find_axes(const cvy_builder *b, int layer)
{
    unsigned axes = 0;
    for (int at = 0; at < 3; at++) {
        axes |= is_cut(&b->seat, layer, at) ? CVY_AXIS_BIT(CVY_AXIS_DEPTH + at) : 0;
    }
    return axes;
}

/* What is sent and what comes; forward what is needed comes, backward it goes. */
static cvy_status start_exchange(cvy_builder *b, int layer, const cvy_op *op, bool backward, const cvy_tensor *like,
                                 cvy_exchange_spec *spec)
{
    int64_t slab = like->shape.extent[0] * like->shape.extent[1] * cvy_dtype_bytes(like->dtype), received = 0;
    *spec = (cvy_exchange_spec){
        .step = {CVY_STEP_EXCHANGE, CVY_PHASE_HALO, layer},
        .exchange = {.axes = find_axes(b, layer), .first_message = b->schedule->messages, .bucket = -1,
                     .sum = backward},
    };
    CVY_TRY(add_messages(b, layer, op, backward, false, slab, &spec->exchange.bytes));
    CVY_TRY(add_messages(b, layer, op, !backward, true, slab, &received));
    spec->exchange.messages = b->schedule->messages - spec->exchange.first_message;
    spec->packed_bytes = spec->exchange.bytes + received;
    return CVY_OK;
}

/* ---- steps ---- */

/* Copy rows of one tensor into another of more, or fewer, rows. */
static cvy_status add_frame(cvy_builder *b, int layer, int source, const cvy_buffer *target, int *index_out)
{
    const cvy_buffer *from = &b->schedule->buffer[source];
    cvy_op op = {.kind = CVY_OP_FRAME, .pass = CVY_PASS_FORWARD};
    int operand[2] = {source, -1};
    cvy_space_get(&target->tensor.shape, op.params.frame.output);
    for (int at = 5 - target->tensor.shape.dims; at < 3; at++) {
        int dim = target->tensor.shape.dims - 3 + at;
        op.params.frame.first[at] = target->local[dim].begin - from->local[dim].begin;
    }
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &from->tensor));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_Y, &target->tensor));
    CVY_TRY(cvy_builder_add_buffer(b, target, &operand[1]));
    *index_out = operand[1];
    return cvy_builder_add_step(b, &(cvy_step_spec){CVY_STEP_LOCAL, CVY_PHASE_HALO, layer}, &op, operand);
}

static bool same_rows(const cvy_buffer *a, const cvy_buffer *b)
{
    bool same = true;
    for (int dim = 2; same && dim < a->tensor.shape.dims; dim++) {
        same = a->local[dim].begin == b->local[dim].begin &&
               a->local[dim].end == b->local[dim].end;
    }
    return same;
}

static cvy_status finish_exchange(cvy_builder *b, cvy_exchange_spec *spec, int source, int target)
{
    bool receives = false;
    for (int i = 0; i < spec->exchange.messages; i++) {
        receives = receives || b->schedule->message[spec->exchange.first_message + i].receive;
    }
    if (spec->exchange.messages == 0) {
        return CVY_OK;
    }
    spec->uses = 1 + (source != target && receives);
    spec->use[0] = (cvy_use){.buffer = source,
                             .access = source == target && receives ? CVY_ACCESS_UPDATE : CVY_ACCESS_READ};
    spec->use[1] = (cvy_use){.buffer = target, .access = CVY_ACCESS_UPDATE};
    return cvy_builder_add_exchange(b, spec);
}

cvy_status cvy_build_halo(cvy_builder *b, int layer, int i, cvy_format format, int *buffer)
{
    cvy_op op;
    cvy_exchange_spec spec;
    int source = *buffer;
    if (!cvy_halo_is_needed(b, layer, i) || !makes_window_op(b->model, layer, &op)) {
        return CVY_OK;
    }
    cvy_buffer framed = cvy_builder_describe(b, CVY_SPREAD_INPUT, layer, 0, format);
    framed.content = CVY_CONTENT_COPY;
    if (!same_rows(&framed, &b->schedule->buffer[source])) {
        CVY_TRY(add_frame(b, layer, source, &framed, buffer));
    }
    CVY_TRY(start_exchange(b, layer, &op, false, &framed.tensor, &spec));
    return finish_exchange(b, &spec, source, *buffer);
}

cvy_status cvy_build_halo_gradient(cvy_builder *b, int layer, int i, int *buffer)
{
    cvy_op op;
    cvy_exchange_spec spec;
    int source = *buffer;
    if (!cvy_halo_is_needed(b, layer, i) || !makes_window_op(b->model, layer, &op)) {
        return CVY_OK;
    }
    cvy_buffer own = b->schedule->buffer[source];
    cvy_spread spread;
    own.alias_of = -1;
    cvy_spread_find(&b->seat, CVY_SPREAD_INPUT_GRADIENT, layer, 0, &spread);
    cvy_spread_describe(&b->seat, &b->model->layer[own.layer].output, &spread, &own);
    if (!same_rows(&own, &b->schedule->buffer[source])) {
        CVY_TRY(add_frame(b, layer, source, &own, buffer));
    }
    CVY_TRY(start_exchange(b, layer, &op, true, &own.tensor, &spec));
    return finish_exchange(b, &spec, source, *buffer);
}

bool cvy_halo_is_needed(const cvy_builder *b, int layer, int i)
{
    cvy_op op;
    return i == 0 && b->seat.axes > 0 && cuts_space(&b->seat, layer) && makes_window_op(b->model, layer, &op);
}

bool cvy_halo_serves(const cvy_builder *b, int layer, int other)
{
    cvy_op mine, theirs;
    bool same = layer == other ||
                (makes_window_op(b->model, layer, &mine) && makes_window_op(b->model, other, &theirs));
    for (int at = 0; layer != other && same && at < 3; at++) {
        const cvy_window *x = &mine.params.window.window, *y = &theirs.params.window.window;
        same = is_cut(&b->seat, layer, at) == is_cut(&b->seat, other, at);
        if (same && is_cut(&b->seat, layer, at)) {
            same = (mine.kind == CVY_OP_TRANSPOSED_CONVOLUTION) == (theirs.kind == CVY_OP_TRANSPOSED_CONVOLUTION) &&
                   x->kernel[at] == y->kernel[at] && x->stride[at] == y->stride[at] &&
                   x->dilation[at] == y->dilation[at] && x->before[at] == y->before[at] && x->after[at] == y->after[at];
        }
    }
    return same;
}
