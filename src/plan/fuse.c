/*
 * Relus that cost no pass over memory. Where a relu is all that becomes of the output of a convolution, a batch norm or
 * a sum, the op of that layer, the carrier, is the relu's too: the carrier's buffer holds the relu's output, and the
 * relu is a view of it. A batch norm's gradients then take the relu's gradient as it comes; before other carriers the
 * relu keeps its own backward pass.
 *
 * A convolution carries a relu only where the backends run both together as well as the convolution alone.
 */
#include "plan/builder.h"

static cvy_op make_forward_op(const cvy_builder *b, int layer)
{
    const cvy_layer *l = &b->model->layer[layer];
    cvy_op op = {.kind = CVY_OP_KIND_COUNT, .pass = CVY_PASS_FORWARD};
    if (l->kind->make_op && l->inputs > 0) {
        l->kind->make_op(l, &b->model->layer[l->input[0]].output, CVY_PASS_FORWARD, &op);
    }
    return op;
}

static cvy_tensor describe_weights(const cvy_builder *b, int layer, cvy_role role)
{
    int parameter = cvy_model_find_role(b->model, layer, role);
    cvy_format format = role == CVY_ROLE_W ? b->formats[layer].weight : CVY_FORMAT_PLAIN;
    return parameter < 0 ? (cvy_tensor){0}
                         : cvy_layout_parameter(&b->model->parameter[parameter], b->plan->options.dtype, format);
}

static bool runs_as_well_with_relu(const cvy_builder *b, int layer, cvy_op *op)
{
    const cvy_layer *l = &b->model->layer[layer];
    const cvy_backend_chain *backends = &b->plan->options.backends;
    cvy_dtype dtype = b->plan->options.dtype;
    const struct {
        cvy_role role;
        cvy_tensor tensor;
    } operand[] = {
        {CVY_ROLE_X, cvy_layout_output(&b->model->layer[l->input[0]], b->batch, dtype, b->formats[layer].input)},
        {CVY_ROLE_W, describe_weights(b, layer, CVY_ROLE_W)},
        {CVY_ROLE_B, describe_weights(b, layer, CVY_ROLE_B)},
        {CVY_ROLE_Y, cvy_layout_output(l, b->batch, dtype, b->formats[layer].output)},
    };
    for (int i = 0; i < 4; i++) {
        if (operand[i].tensor.shape.dims > 0) { /* a bias may be missing */
            (void)cvy_op_add(op, operand[i].role, &operand[i].tensor);
        }
    }
    cvy_quality alone = cvy_backend_quality(backends, op, NULL);
    op->relu = true;
    return cvy_backend_quality(backends, op, NULL) >= alone;
}

static bool may_carry(const cvy_builder *b, int layer)
{
    cvy_op op = make_forward_op(b, layer);
    bool takes = op.kind != CVY_OP_KIND_COUNT && cvy_op_takes_relu(op.kind, CVY_PASS_FORWARD);
    return takes && (op.kind != CVY_OP_CONVOLUTION || runs_as_well_with_relu(b, layer, &op));
}

void cvy_fuse_relus(cvy_builder *b)
{
    const cvy_model *model = b->model;
    for (int i = 0; i < model->layers; i++) { /* until the end `relu` is the consumer, -2 where there are several */
        b->layer[i].relu = b->layer[i].carrier = -1;
        for (int k = 0; k < model->layer[i].inputs; k++) {
            int *consumer = &b->layer[model->layer[i].input[k]].relu;
            *consumer = *consumer == -1 ? i : -2;
        }
    }
    for (int i = 0; i < model->layers; i++) {
        int consumer = b->layer[i].relu;
        bool carries = consumer >= 0 && make_forward_op(b, consumer).kind == CVY_OP_RELU && may_carry(b, i);
        b->layer[i].relu = carries ? consumer : -1;
        if (carries) {
            b->layer[consumer].carrier = i;
        }
    }
}

bool cvy_fuse_leaves_gradient(const cvy_builder *b, int layer)
{
    int carrier = b->layer[layer].carrier;
    return carrier >= 0 && cvy_op_takes_relu(make_forward_op(b, carrier).kind, CVY_PASS_BACKWARD);
}
