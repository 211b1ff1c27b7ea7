/*
 * What an op is on one rank, and batch norms over several. A layer kind makes the op of whole samples; where the rank
 * has a part, windows lose the padding of inner borders, groups are those that it has, means are divided by what all
 * ranks have together, and masks are told where in a sample the part lies. A batch norm that shares its statistics goes
 * in parts: STATS, which the ranks merge, then NORMALISE; GRAD_STATS, which they sum, then GRAD_APPLY (synchronised
 * batch norm, as in PyTorch's SyncBatchNorm).
 */
#include "plan/builder.h"

#include <string.h>

static cvy_op_kind find_kind(const cvy_builder *b, int layer)
{
    const cvy_layer *l = &b->model->layer[layer];
    cvy_op op = {.kind = CVY_OP_KIND_COUNT};
    if (l->kind->make_op && l->inputs > 0) {
        l->kind->make_op(l, &b->model->layer[l->input[0]].output, CVY_PASS_FORWARD, &op);
    }
    return op.kind;
}

/* Axes of space that cut a layer's input. */
static unsigned find_space(const cvy_builder *b, int layer)
{
    const cvy_distribution *d = b->seat.distribution;
    return d ? d->layer[layer].input_split & CVY_AXIS_SPACE : 0;
}

unsigned cvy_norm_axes(const cvy_builder *b, int layer)
{
    unsigned asked = b->plan->options.parallel.norm_axes;
    unsigned cut = find_space(b, layer) | (b->seat.size[CVY_AXIS_SAMPLE] > 1 ? CVY_AXIS_BIT(CVY_AXIS_SAMPLE) : 0);
    return asked & cut && find_kind(b, layer) == CVY_OP_BATCH_NORM ? asked & cut : 0;
}

/* Positions of a layer's input: of whole samples along some axes, of this rank's share along the others. */
static int64_t count_positions(const cvy_builder *b, int layer, unsigned whole)
{
    const cvy_shape *shape = &b->model->layer[b->model->layer[layer].input[0]].output;
    cvy_buffer x = cvy_builder_describe(b, CVY_SPREAD_INPUT, layer, 0, CVY_FORMAT_PLAIN);
    int64_t positions = 1;
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        int dim = cvy_distribution_dim((cvy_axis)axis, shape->dims);
        if (dim >= 0) {
            positions *= whole & CVY_AXIS_BIT(axis) ? shape->extent[dim] : x.tensor.shape.extent[dim];
        }
    }
    return positions;
}

int64_t cvy_norm_count(const cvy_builder *b, int layer, int micro_batch)
{
    unsigned axes = cvy_norm_axes(b, layer);
    const cvy_schedule *s = b->schedule;
    cvy_interval own = cvy_schedule_micro_batch(s, micro_batch);
    int64_t samples = axes & CVY_AXIS_BIT(CVY_AXIS_SAMPLE)
                          ? cvy_seat_count_samples(&b->seat, s->micro_batches, micro_batch)
                          : own.end - own.begin;
    return samples * count_positions(b, layer, axes);
}

static int64_t count_norm(const cvy_builder *b, int layer, cvy_op_pass pass)
{
    int64_t count = 0;
    if (pass != CVY_PASS_COMMIT) {
        return cvy_norm_count(b, layer, b->micro_batch);
    }
    for (int i = 0; i < b->schedule->micro_batches; i++) {
        count += cvy_norm_count(b, layer, i);
    }
    return count;
}

static void fit_window(const cvy_builder *b, int layer, cvy_op *op)
{
    cvy_reach reach;
    cvy_reach_find(&b->seat, b->model, layer, op, &reach);
    for (int at = 0; at < 3; at++) {
        op->params.window.window.before[at] = reach.before[at];
        op->params.window.window.after[at] = reach.after[at];
    }
}

/* Groups of so many channels each that the rank's share has. */
static int64_t count_groups(const cvy_builder *b, int layer, int64_t groups)
{
    int64_t channels = b->model->layer[b->model->layer[layer].input[0]].output.extent[1];
    cvy_buffer x = cvy_builder_describe(b, CVY_SPREAD_INPUT, layer, 0, CVY_FORMAT_PLAIN);
    return x.tensor.shape.extent[1] / (channels / groups);
}

/* A dropout draws by an element's number in the whole sample. */
static void locate_share(const cvy_builder *b, int layer, cvy_op_params_dropout *params)
{
    cvy_buffer x = cvy_builder_describe(b, CVY_SPREAD_INPUT, layer, 0, CVY_FORMAT_PLAIN);
    int64_t whole[4], share[4];
    cvy_sample_get(&x.global, whole);
    cvy_sample_get(&x.tensor.shape, share);
    if (memcmp(whole, share, sizeof whole) == 0) {
        return;
    }
    memcpy(params->whole, whole, sizeof whole);
    for (int dim = 1; dim < x.global.dims; dim++) {
        params->first[dim == 1 ? 0 : dim + 4 - x.global.dims] = x.local[dim].begin;
    }
    if (x.stretches.count > 0) {
        params->stretches = x.stretches;
        params->stretched = x.stretched == 1 ? 0 : x.stretched + 4 - x.global.dims;
    }
}

void cvy_build_local_op(const cvy_builder *b, int layer, cvy_op_pass pass, cvy_op *op)
{
    const cvy_layer *l = &b->model->layer[layer];
    unsigned space = find_space(b, layer);
    cvy_shape x = b->model->layer[l->input[0]].output;
    x.extent[0] = b->seat.samples.end - b->seat.samples.begin;
    l->kind->make_op(l, &x, pass, op);
    if (op->kind == CVY_OP_BATCH_NORM) {
        op->params.norm.count = count_norm(b, layer, pass);
    }
    if (b->seat.axes == 0) {
        return;
    }
    bool convolves = cvy_op_convolves(op->kind);
    if (space && (convolves || op->kind == CVY_OP_POOL_MAX || op->kind == CVY_OP_POOL_AVERAGE)) {
        fit_window(b, layer, op);
    } else if (space && op->kind == CVY_OP_POOL_GLOBAL) {
        op->params.global.positions = count_positions(b, layer, CVY_AXIS_SPACE);
    } else if (space && op->kind == CVY_OP_SOFTMAX_CROSS_ENTROPY) {
        op->params.loss.positions = count_positions(b, layer, CVY_AXIS_SPACE);
    }
    if (convolves && op->params.window.groups > 1) {
        op->params.window.groups = count_groups(b, layer, op->params.window.groups);
    } else if (op->kind == CVY_OP_GROUP_NORM) {
        op->params.group.groups = count_groups(b, layer, op->params.group.groups);
    } else if (op->kind == CVY_OP_DROPOUT) {
        locate_share(b, layer, &op->params.dropout);
    }
}

/* The two buffers: statistics, or gradients, which are those of the parameters. */
static void find_pair(const cvy_builder *b, int layer, cvy_op_pass pass, int pair[2])
{
    const cvy_layer_buffers *own = &b->layer[layer];
    bool forward = pass == CVY_PASS_STATS;
    pair[0] = forward ? own->saved[CVY_ROLE_MEAN]
                      : b->parameter_gradient[cvy_model_find_role(b->model, layer, CVY_ROLE_W)];
    pair[1] = forward ? own->saved[CVY_ROLE_VARIANCE]
                      : b->parameter_gradient[cvy_model_find_role(b->model, layer, CVY_ROLE_B)];
}

cvy_status cvy_build_norm_exchange(cvy_builder *b, int layer, cvy_op_pass pass, cvy_phase phase)
{
    bool merge = pass == CVY_PASS_STATS;
    bool counts = b->schedule->samples.end > b->schedule->samples.begin;
    unsigned axes = cvy_norm_axes(b, layer);
    int pair[2];
    find_pair(b, layer, pass, pair);
    const cvy_tensor *of_one = &b->schedule->buffer[pair[0]].tensor;
    /* a count, a mean and a sum of squares in double for each channel; or both gradients as they are */
    int64_t bytes = merge ? 24 * cvy_shape_elements(&of_one->shape) : 2 * cvy_share_bytes(of_one);
    cvy_interval own = cvy_schedule_micro_batch(b->schedule, b->micro_batch);
    int64_t elements = (own.end - own.begin) * count_positions(b, layer, 0);
    cvy_exchange_spec spec = {
        .step = {CVY_STEP_COLLECTIVE, phase, layer},
        .exchange = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = axes, .bytes = bytes, .bucket = -1,
                     .sum = true, .merge = merge, .count = merge && counts ? elements : 0,
                     .first_message = b->schedule->messages},
        .uses = 2,
        .use = {{.buffer = pair[0], .access = CVY_ACCESS_UPDATE}, {.buffer = pair[1], .access = CVY_ACCESS_UPDATE}},
        .packed_bytes = bytes,
    };
    return cvy_builder_add_exchange(b, &spec);
}
