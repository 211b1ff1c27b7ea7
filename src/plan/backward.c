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

/* dy of a layer in its output's format: the sum of the parts; -1 where nobody made one. */
static cvy_status sum_contributions(cvy_builder *b, int layer)
{
    cvy_format format = b->formats[layer].output;
    bool in_parts = takes_parts(b, layer);
    int sum = -1;
    b->layer[layer].gradient1 = -1;
    for (int i = b->layer[layer].contribution; i >= 0; i = b->contribution[i].next) {
        int part = b->contribution[i].buffer;
        cvy_step_spec spec = {CVY_STEP_LOCAL, CVY_PHASE_BACKWARD, layer};
        if (b->schedule->buffer[part].tensor.format != format) {
            CVY_TRY(cvy_builder_add_reorder(b, &spec, part, format, &part));
        }
        if (sum < 0) {
            sum = part;
            continue;
        }
        if (in_parts && b->contribution[i].next < 0) {
            b->layer[layer].gradient1 = part;
            break;
        }
        cvy_buffer total = cvy_builder_activation(b, layer, CVY_CONTENT_OUTPUT_GRADIENT, format);
        cvy_op op = {.kind = CVY_OP_ADD, .pass = CVY_PASS_FORWARD};
        int operand[3] = {sum, part, -1};
        CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &total.tensor));
        CVY_TRY(cvy_op_add(&op, CVY_ROLE_X1, &total.tensor));
        CVY_TRY(cvy_op_add(&op, CVY_ROLE_Y, &total.tensor));
        CVY_TRY(cvy_builder_add_buffer(b, &total, &operand[2]));
        CVY_TRY(cvy_builder_add_step(b, &spec, &op, operand));
        sum = operand[2];
    }
    b->layer[layer].gradient = sum;
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
            cvy_buffer view = cvy_builder_activation(b, l->input[i], CVY_CONTENT_OUTPUT_GRADIENT, CVY_FORMAT_PLAIN);
            view.part = layer;
            CVY_TRY(cvy_builder_add_view(b, dy, &view, &part));
        }
        CVY_TRY(cvy_builder_contribute(b, l->input[i], part));
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
        cvy_buffer dx = cvy_builder_activation(b, source, CVY_CONTENT_OUTPUT_GRADIENT, b->formats[layer].input);
        if (b->layer[source].needs_gradient) {
            dx.part = layer;
            op.operands = 0;
            op.relu = b->layer[source].masker == layer;
            CVY_TRY(cvy_op_add(&op, CVY_ROLE_DY, &b->schedule->buffer[operand[0]].tensor));
            if (op.relu) {
                CVY_TRY(cvy_recompute_restore(b, source));
                operand[1] = b->layer[source].output;
                CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &b->schedule->buffer[operand[1]].tensor));
            }
            int *part = &operand[op.operands];
            CVY_TRY(cvy_builder_add_buffer(b, &dx, part));
            CVY_TRY(cvy_op_add(&op, CVY_ROLE_DX, &dx.tensor));
            cvy_step_spec spec = {CVY_STEP_KERNEL, CVY_PHASE_BACKWARD, layer};
            CVY_TRY(cvy_builder_add_step(b, &spec, &op, operand));
            CVY_TRY(cvy_builder_contribute(b, source, *part));
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
        if (pass != CVY_PASS_BACKWARD_DATA || wanted) {
            CVY_TRY(cvy_build_pass(b, layer, pass, CVY_PHASE_BACKWARD));
        }
    }
    CVY_TRY(cvy_micro_batch_sum_gradients(b, layer));
    return cvy_build_layer_update(b, layer);
}

cvy_status cvy_build_backward(cvy_builder *b)
{
    for (int i = b->model->layers - 1; i > 0; i--) {
        cvy_flow flow = b->model->layer[i].kind->flow;
        if (!b->layer[i].needs_gradient) {
            continue;
        }
        CVY_TRY(sum_contributions(b, i));
        if (flow != CVY_FLOW_LOSS && b->layer[i].gradient < 0) {
            continue; /* nothing that leads to the loss uses it */
        }
        if (flow == CVY_FLOW_SUM || flow == CVY_FLOW_VIEW || cvy_fuse_leaves_gradient(b, i)) {
            CVY_TRY(share_gradient(b, i));
        } else if (flow == CVY_FLOW_CONCAT) {
            CVY_TRY(slice_gradient(b, i));
        } else {
            CVY_TRY(build_passes(b, i));
        }
    }
    return CVY_OK;
}
