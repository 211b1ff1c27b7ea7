/*
 * Backward: layers in reverse order. A tensor with several consumers gets a part of its gradient from each; the parts
 * are summed when the layer that made the tensor is reached, so by then all of them are there. A layer whose pass takes
 * two parts (a relu) adds the last one itself.
 */
#include "plan/builder.h"

/* Whether a layer's backward pass takes its gradient in two parts. */
static bool takes_parts(const cvy_builder *b, int layer)
{
    const cvy_layer *l = &b->model->layer[layer];
    cvy_op op = {0};
    if (l->kind->flow != CVY_FLOW_OPS || cvy_fuse_leaves_gradient(b, layer)) {
        return false;
    }
    l->kind->make_op(l, &b->model->layer[l->input[0]].output, CVY_PASS_BACKWARD_DATA, &op);
    return op.kind == CVY_OP_RELU;
}

/* Add a part of the gradient of a layer's output to another that lies as it does. */
static cvy_status add_part(cvy_builder *b, int layer, int *sum, int part)
{
    cvy_buffer total = b->schedule->buffer[*sum];
    total.content = CVY_CONTENT_OUTPUT_GRADIENT;
    total.layer = layer;
    total.part = -1;
    return cvy_builder_add_sum(b, layer, (int[]){*sum, part}, &total, sum);
}

static cvy_status reorder_part(cvy_builder *b, int layer, int *part)
{
    cvy_format format = b->formats[layer].output;
    cvy_step_spec spec = {CVY_STEP_LOCAL, CVY_PHASE_BACKWARD, layer};
    return b->schedule->buffer[*part].tensor.format == format
               ? CVY_OK
               : cvy_builder_add_reorder(b, &spec, *part, format, part);
}

static cvy_spread_name name_part(const cvy_contribution *part)
{
    return (cvy_spread_name){CVY_SPREAD_INPUT_GRADIENT, part->consumer, part->input};
}

/* Parts behind @p first that lie as it does join it: one exchange brings them all. */
static cvy_status join_parts(cvy_builder *b, int layer, int first)
{
    for (int i = first, next = b->contribution[i].next; next >= 0; next = b->contribution[i].next) {
        if (!cvy_spread_same(&b->seat, name_part(&b->contribution[first]), name_part(&b->contribution[next]))) {
            i = next;
            continue;
        }
        int part = b->contribution[next].buffer;
        CVY_TRY(reorder_part(b, layer, &b->contribution[first].buffer));
        CVY_TRY(reorder_part(b, layer, &part));
        CVY_TRY(add_part(b, layer, &b->contribution[first].buffer, part));
        b->contribution[i].next = b->contribution[next].next;
    }
    return CVY_OK;
}

/* Bring the parts to where the output lies. */
static cvy_status bring_parts(cvy_builder *b, int layer)
{
    cvy_spread spread[2];
    for (int i = b->layer[layer].contribution; b->seat.axes > 0 && i >= 0; i = b->contribution[i].next) {
        cvy_spread_name from = name_part(&b->contribution[i]);
        if (!cvy_spread_same(&b->seat, from, (cvy_spread_name){CVY_SPREAD_OUTPUT, layer, 0})) {
            CVY_TRY(join_parts(b, layer, i));
            cvy_spread_find(&b->seat, from.of, from.layer, from.i, &spread[0]);
            cvy_spread_find(&b->seat, CVY_SPREAD_OUTPUT, layer, 0, &spread[1]);
            CVY_TRY(cvy_build_redistribution(b, layer, &b->model->layer[layer].output, b->formats[layer].output,
                                             spread, &b->contribution[i].buffer));
        }
    }
    return CVY_OK;
}

/* dy of a layer in its output's format: the sum of the parts; -1 where nobody made one. */
static cvy_status sum_contributions(cvy_builder *b, int layer)
{
    bool in_parts = layer >= b->first_layer && takes_parts(b, layer);
    int sum = -1;
    CVY_TRY(bring_parts(b, layer));
    for (int i = b->layer[layer].contribution; i >= 0; i = b->contribution[i].next) {
        int part = b->contribution[i].buffer;
        CVY_TRY(reorder_part(b, layer, &part));
        if (sum < 0) {
            sum = part;
        } else if (in_parts && b->contribution[i].next < 0) {
            b->layer[layer].gradient1 = part;
        } else {
            CVY_TRY(add_part(b, layer, &sum, part));
        }
    }
    b->layer[layer].gradient = sum;
    return CVY_OK;
}

/* dy as the op of the layer takes it: where it left its output, but whole where that was a sum. */
static cvy_status return_gradient(cvy_builder *b, int layer)
{
    cvy_spread spread[2];
    int *part[2] = {&b->layer[layer].gradient, &b->layer[layer].gradient1};
    for (int i = 0; b->seat.axes > 0 && i < 2; i++) {
        cvy_spread_find(&b->seat, CVY_SPREAD_OUTPUT, layer, 0, &spread[0]);
        cvy_spread_find(&b->seat, CVY_SPREAD_RAW_GRADIENT, layer, 0, &spread[1]);
        CVY_TRY(*part[i] < 0 ? CVY_OK
                             : cvy_build_redistribution(b, layer, &b->model->layer[layer].output,
                                                        b->formats[layer].output, spread, part[i]));
    }
    return CVY_OK;
}

/* The gradient of every input is dy itself; seen in the input's shape, and format, where those differ. */
static cvy_status share_gradient(cvy_builder *b, int layer)
{
    const cvy_layer *l = &b->model->layer[layer];
    int dy = b->layer[layer].gradient;
    for (int i = 0; i < l->inputs; i++) {
        if (!b->layer[l->input[i]].needs_gradient) {
            continue;
        }
        int part = dy;
        if (l->kind->flow == CVY_FLOW_VIEW) {
            cvy_buffer view = cvy_builder_describe(b, CVY_SPREAD_INPUT_GRADIENT, layer, i, CVY_FORMAT_PLAIN);
            CVY_TRY(cvy_builder_add_view(b, dy, &view, &part));
        }
        CVY_TRY(cvy_builder_contribute(b, layer, i, part));
    }
    return CVY_OK;
}

/* The gradient of every input is its channels of dy: a step for each that somebody wants. */
static cvy_status slice_gradient(cvy_builder *b, int layer)
{
    const cvy_layer *l = &b->model->layer[layer];
    cvy_op op = {.kind = CVY_OP_SLICE, .pass = CVY_PASS_BACKWARD_DATA};
    int operand[3] = {b->layer[layer].gradient, -1, -1};
    for (int i = 0; i < l->inputs; i++) {
        int source = l->input[i];
        cvy_buffer dx = cvy_builder_describe(b, CVY_SPREAD_INPUT_GRADIENT, layer, i, b->formats[layer].input);
        if (b->layer[source].needs_gradient) {
            op.operands = 0;
            op.relu = b->layer[source].masker == layer;
            CVY_TRY(cvy_op_add(&op, CVY_ROLE_DY, &b->schedule->buffer[operand[0]].tensor));
            if (op.relu) {
                CVY_TRY(cvy_build_input(b, layer, i, CVY_PHASE_BACKWARD, &operand[1]));
                CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &b->schedule->buffer[operand[1]].tensor));
            }
            int *part = &operand[op.operands];
            CVY_TRY(cvy_builder_add_buffer(b, &dx, part));
            CVY_TRY(cvy_op_add(&op, CVY_ROLE_DX, &dx.tensor));
            cvy_step_spec spec = {CVY_STEP_KERNEL, CVY_PHASE_BACKWARD, layer};
            CVY_TRY(cvy_builder_add_step(b, &spec, &op, operand));
            CVY_TRY(cvy_builder_contribute(b, layer, i, *part));
        }
        op.params.slice.first += dx.tensor.shape.extent[1];
    }
    return CVY_OK;
}

static cvy_status build_passes(cvy_builder *b, int layer)
{
    const cvy_layer *l = &b->model->layer[layer];
    bool wanted = b->layer[l->input[0]].needs_gradient;
    for (int i = 0; i < l->kind->backward_passes; i++) {
        cvy_op_pass pass = l->kind->backward[i];
        if (pass == CVY_PASS_BACKWARD && cvy_norm_axes(b, layer)) {
            CVY_TRY(cvy_build_pass(b, layer, CVY_PASS_GRAD_STATS, CVY_PHASE_BACKWARD));
            CVY_TRY(cvy_build_norm_exchange(b, layer, CVY_PASS_GRAD_STATS, CVY_PHASE_REDISTRIBUTE));
            CVY_TRY(cvy_build_pass(b, layer, CVY_PASS_GRAD_APPLY, CVY_PHASE_BACKWARD));
        } else if (pass != CVY_PASS_BACKWARD_DATA || wanted) {
            CVY_TRY(cvy_build_pass(b, layer, pass, CVY_PHASE_BACKWARD));
        }
    }
    CVY_TRY(cvy_micro_batch_sum_gradients(b, layer));
    CVY_TRY(cvy_bucket_take(b, layer));
    return cvy_build_layer_update(b, layer);
}

static cvy_status build_layer(cvy_builder *b, int layer)
{
    cvy_flow flow = b->model->layer[layer].kind->flow;
    bool received = layer == b->end_layer - 1 && layer < b->model->layers - 1;
    if (!b->layer[layer].needs_gradient) {
        return CVY_OK;
    }
    CVY_TRY(received ? cvy_pipeline_receive_gradient(b) : sum_contributions(b, layer));
    if (flow != CVY_FLOW_LOSS && b->layer[layer].gradient < 0) {
        return CVY_OK; /* nothing that leads to the loss uses it */
    }
    CVY_TRY(return_gradient(b, layer));
    if (flow == CVY_FLOW_SUM || flow == CVY_FLOW_VIEW || cvy_fuse_leaves_gradient(b, layer)) {
        return share_gradient(b, layer);
    }
    return flow == CVY_FLOW_CONCAT ? slice_gradient(b, layer) : build_passes(b, layer);
}

cvy_status cvy_build_backward(cvy_builder *b)
{
    int before = b->first_layer - 1;
    for (int i = b->end_layer - 1; i > before && i > 0; i--) {
        CVY_TRY(build_layer(b, i));
    }
    if (before < 0 || !b->layer[before].needs_gradient) {
        return CVY_OK;
    }
    CVY_TRY(sum_contributions(b, before));
    return cvy_pipeline_send_gradient(b);
}
