/*
 * Relus that cost no pass over memory.
 *
 * Forward: where a relu is all that becomes of the output of a convolution, a dense layer, a norm, a sum or a max
 * pooling, the op of that layer, the carrier, is the relu's too: the carrier's buffer holds the relu's output, and the
 * relu is a view of it. Backward a batch norm and a max pooling take the gradient of the relu they carry as it comes.
 *
 * Backward: where one layer alone takes a relu's output, and its own gradient kernel makes dx, the masker, that kernel
 * writes the gradient before the relu. What the relu made need not be kept for that where it is a max pooling or a
 * dropout: their y tells. Before other layers (convolutions: the gradient comes out of a library) the relu keeps its
 * backward pass.
 *
 * Either way only where the backends run both together as well as the one alone.
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

static bool is_relu(const cvy_builder *b, int layer) { return make_forward_op(b, layer).kind == CVY_OP_RELU; }

static cvy_tensor describe_weights(const cvy_builder *b, int layer, cvy_role role)
{
    int parameter = cvy_model_find_role(b->model, layer, role);
    cvy_format format = role == CVY_ROLE_W ? b->formats[layer].weight : CVY_FORMAT_PLAIN;
    cvy_buffer weights = {.tensor = {.dtype = b->plan->options.dtype, .format = format}};
    if (parameter >= 0) {
        cvy_seat_describe_parameter(&b->seat, b->model, parameter, &weights);
    }
    return weights.tensor;
}

static bool runs_as_well_with_relu(const cvy_builder *b, int layer, cvy_op *op)
{
    const cvy_backend_chain *backends = &b->plan->options.backends;
    const struct {
        cvy_role role;
        cvy_tensor tensor;
    } operand[] = {
        {CVY_ROLE_X, cvy_builder_describe(b, CVY_SPREAD_INPUT, layer, 0, b->formats[layer].input).tensor},
        {CVY_ROLE_W, describe_weights(b, layer, CVY_ROLE_W)},
        {CVY_ROLE_B, describe_weights(b, layer, CVY_ROLE_B)},
        {CVY_ROLE_Y, cvy_builder_describe(b, CVY_SPREAD_RAW, layer, 0, b->formats[layer].output).tensor},
    };
    for (int i = 0; i < 4; i++) {
        if (cvy_shape_elements(&operand[i].tensor.shape) > 0) { /* a bias may be missing */
            (void)cvy_op_add(op, operand[i].role, &operand[i].tensor);
        }
    }
    cvy_quality alone = cvy_backend_quality(backends, op, NULL);
    op->relu = true;
    return cvy_backend_quality(backends, op, NULL) >= alone;
}

/* A relu of what is still to be summed, or to be brought elsewhere, is no part of the op. */
static bool stays_in_place(const cvy_builder *b, int layer, int relu)
{
    const cvy_spread_name raw = {CVY_SPREAD_RAW, layer, 0}, output = {CVY_SPREAD_OUTPUT, layer, 0};
    const cvy_spread_name taken = {CVY_SPREAD_INPUT, relu, 0}, left = {CVY_SPREAD_OUTPUT, relu, 0};
    return cvy_spread_same(&b->seat, raw, output) && cvy_spread_same(&b->seat, output, taken) &&
           cvy_spread_same(&b->seat, taken, left);
}

static bool may_carry(const cvy_builder *b, int layer, int relu)
{
    cvy_op op = make_forward_op(b, layer);
    bool takes = op.kind != CVY_OP_KIND_COUNT && cvy_op_takes_relu(op.kind, CVY_PASS_FORWARD);
    return takes && stays_in_place(b, layer, relu) &&
           (!cvy_op_has_weights(op.kind) || runs_as_well_with_relu(b, layer, &op));
}

/* How well a layer's gradient with respect to input @p source runs, with that one's relu or without. */
static cvy_quality judge_gradient(const cvy_builder *b, const cvy_op *like, int layer, int source, bool relu)
{
    const cvy_signature *signature = cvy_op_signature(like->kind, like->pass);
    const cvy_layer *l = &b->model->layer[layer];
    int input = 0;
    while (l->input[input] != source) {
        input++;
    }
    cvy_tensor x = cvy_builder_describe(b, CVY_SPREAD_INPUT, layer, input, b->formats[layer].input).tensor;
    cvy_tensor y = cvy_builder_describe(b, CVY_SPREAD_RAW, layer, 0, b->formats[layer].output).tensor;
    cvy_op op = *like;
    op.relu = relu;
    for (int i = 0; i < signature->places; i++) {
        cvy_role role = signature->place[i].role;
        cvy_tensor tensor;
        if (relu || !cvy_op_tells_relu(op.kind, op.pass, role)) {
            (void)cvy_op_describe(&op, &x, y.shape.extent[1], role, &tensor);
            (void)cvy_op_add(&op, role, &tensor);
        }
    }
    return cvy_backend_quality(&b->plan->options.backends, &op, NULL);
}

/* Whether a layer's data gradient can be that of the relu before it, too. */
static bool may_mask(const cvy_builder *b, int layer, int source)
{
    const cvy_layer *l = &b->model->layer[layer];
    cvy_op op = {.kind = CVY_OP_SLICE, .pass = CVY_PASS_BACKWARD_DATA}; /* of a concat, for each input */
    if (l->kind->flow == CVY_FLOW_OPS && l->kind->backward_passes == 1) {
        l->kind->make_op(l, &b->model->layer[l->input[0]].output, CVY_PASS_BACKWARD_DATA, &op);
    } else if (l->kind->flow != CVY_FLOW_CONCAT) {
        return false;
    }
    return cvy_op_takes_relu(op.kind, op.pass) && b->formats[source].output == b->formats[layer].input &&
           judge_gradient(b, &op, layer, source, true) >= judge_gradient(b, &op, layer, source, false);
}

void cvy_fuse_relus(cvy_builder *b)
{
    const cvy_model *model = b->model;
    for (int i = 0; i < model->layers; i++) { /* until the end `relu` is the consumer, -2 where there are several */
        b->layer[i].relu = b->layer[i].carrier = b->layer[i].masker = -1;
        for (int k = 0; k < model->layer[i].inputs; k++) {
            int *consumer = &b->layer[model->layer[i].input[k]].relu;
            *consumer = *consumer == -1 ? i : -2;
        }
    }
    for (int i = 0; i < model->layers; i++) {
        int consumer = b->plan->options.unfused ? -1 : b->layer[i].relu;
        consumer = i >= b->first_layer && consumer < b->end_layer ? consumer : -1; /* of another stage */
        bool carries = consumer >= 0 && is_relu(b, consumer) && may_carry(b, i, consumer);
        b->layer[i].relu = carries ? consumer : -1;
        if (carries) {
            b->layer[consumer].carrier = i;
        }
        if (consumer >= 0 && b->training && is_relu(b, i) && !cvy_fuse_leaves_gradient(b, i) &&
            may_mask(b, consumer, i)) {
            b->layer[i].masker = consumer;
        }
    }
}

bool cvy_fuse_makes_relu(const cvy_builder *b, int layer, cvy_op_kind kind, cvy_op_pass pass)
{
    const cvy_layer *l = &b->model->layer[layer];
    bool masks = pass == CVY_PASS_BACKWARD_DATA && b->layer[l->input[0]].masker == layer;
    return cvy_op_takes_relu(kind, pass) && (b->layer[layer].relu >= 0 || masks);
}

bool cvy_fuse_leaves_gradient(const cvy_builder *b, int layer)
{
    int carrier = b->layer[layer].carrier;
    if (carrier < 0 || b->layer[layer].masker >= 0) {
        return b->layer[layer].masker >= 0;
    }
    const cvy_layer_kind *kind = b->model->layer[carrier].kind;
    cvy_op_kind op = make_forward_op(b, carrier).kind;
    bool leaves = false;
    for (int i = 0; i < kind->backward_passes; i++) {
        leaves = leaves || cvy_op_takes_relu(op, kind->backward[i]);
    }
    return leaves;
}
