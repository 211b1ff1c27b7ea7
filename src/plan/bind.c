/*
 * One pass of a layer becomes one step: the op of the layer kind says which operands it has, by role, and each role
 * names the buffer that it is bound to. Here is the only place where roles and buffers meet.
 */
#include "plan/builder.h"

/* Input @p i of a layer, if it has so many. */
static cvy_status bind_input(cvy_builder *b, int layer, int i, cvy_phase phase, int *out)
{
    return i < b->model->layer[layer].inputs ? cvy_build_input(b, layer, i, phase, out) : CVY_OK;
}

/* A new buffer for a part of the gradient of input @p i of a layer. */
static cvy_status bind_input_gradient(cvy_builder *b, int layer, int i, int *out)
{
    cvy_buffer gradient = cvy_builder_describe(b, CVY_SPREAD_INPUT_GRADIENT, layer, i, b->formats[layer].input);
    return cvy_builder_add_buffer(b, &gradient, out);
}

typedef struct binding {
    int layer;
    cvy_op_pass pass;
    cvy_phase phase;
    cvy_op op;
    cvy_tensor x;    /* the first input, as the layer takes it */
    int64_t filters; /* channels of the output */
    int raw;         /* the output, where it is made; -1 */
} binding;

/* A pass with weights as this rank runs it, its weights in a format. */
static void make_local_op(const cvy_builder *b, const binding *at, cvy_format weight, cvy_op *op)
{
    const cvy_signature *signature = cvy_op_signature(at->op.kind, at->pass);
    cvy_tensor y = cvy_builder_describe(b, CVY_SPREAD_RAW, at->layer, 0, b->formats[at->layer].output).tensor;
    *op = at->op;
    op->operands = 0;
    for (int i = 0; i < signature->places; i++) {
        cvy_role role = signature->place[i].role;
        bool input = role == CVY_ROLE_X || role == CVY_ROLE_DX, output = role == CVY_ROLE_Y || role == CVY_ROLE_DY;
        bool weights = role == CVY_ROLE_W || role == CVY_ROLE_DW;
        int parameter = cvy_model_find_role(b->model, at->layer, weights ? CVY_ROLE_W : CVY_ROLE_B);
        cvy_buffer own = {.tensor = {.dtype = b->plan->options.dtype, .format = weights ? weight : CVY_FORMAT_PLAIN}};
        if (input || output) {
            (void)cvy_op_add(op, role, input ? &at->x : &y);
        } else if (parameter >= 0 && b->parameter[parameter] >= 0) {
            cvy_seat_describe_parameter(&b->seat, b->model, parameter, &own);
            (void)cvy_op_add(op, role, &own.tensor);
        }
    }
}

/*
 * The format in which a pass takes its weights, or leaves their gradient: that of the layer, which was chosen for whole
 * tensors and is one for all ranks, or where this rank's share is not run well in it, what the backends wish for that.
 */
static cvy_format find_weight_format(const cvy_builder *b, const binding *at, cvy_role role, cvy_format of_layer)
{
    const cvy_backend_chain *backends = &b->plan->options.backends;
    cvy_op op;
    if (b->seat.axes == 0 || backends->count == 0 || !cvy_op_has_weights(at->op.kind) || cvy_op_by_winograd(&at->op)) {
        return of_layer;
    }
    make_local_op(b, at, of_layer, &op);
    cvy_quality as_it_is = cvy_backend_quality(backends, &op, NULL);
    if (as_it_is >= CVY_QUALITY_GEMM) {
        return of_layer;
    }
    cvy_format wish = cvy_backend_choose_format(backends, &op, role);
    make_local_op(b, at, wish, &op);
    return cvy_backend_quality(backends, &op, NULL) > as_it_is ? wish : of_layer;
}

/*
 * Whether a pass goes by Winograd's algorithm: the layer's formats say so, and a backend can for this batch and share
 * of the layer. What is won on the whole layer, which was measured, is won of each filter and each row.
 */
static bool goes_by_winograd(const cvy_builder *b, const binding *at)
{
    const cvy_layer_formats *formats = &b->formats[at->layer];
    cvy_op op;
    if (!(formats->winograd >> at->pass & 1u)) {
        return false;
    }
    make_local_op(b, at, at->pass == CVY_PASS_BACKWARD_WEIGHTS ? formats->gradient : formats->weight, &op);
    op.params.window.winograd = true;
    return cvy_backend_quality(&b->plan->options.backends, &op, NULL) != CVY_QUALITY_NONE;
}

static cvy_status bind_weights(cvy_builder *b, const binding *at, int parameter, int *out)
{
    *out = b->parameter[parameter];
    if (*out < 0) {
        return CVY_OK; /* another rank has all of it */
    }
    cvy_format has = b->schedule->buffer[*out].tensor.format, wanted = has;
    if (at->pass == CVY_PASS_BACKWARD_DATA && !cvy_op_by_winograd(&at->op)) {
        wanted = b->formats[at->layer].weight_backward;
    }
    if (b->model->parameter[parameter].spec.role == CVY_ROLE_W) {
        wanted = find_weight_format(b, at, CVY_ROLE_W, wanted);
    }
    cvy_step_spec spec = {CVY_STEP_LOCAL, at->phase, at->layer};
    return wanted == has ? CVY_OK : cvy_builder_add_reorder(b, &spec, *out, wanted, out);
}

/* The gradient of a parameter: made by its backward pass, in the format that the pass writes. */
static cvy_status bind_parameter_gradient(cvy_builder *b, const binding *at, cvy_access access, int parameter, int *out)
{
    if (access == CVY_ACCESS_READ) {
        *out = b->parameter_gradient[parameter];
        return CVY_OK;
    }
    const cvy_parameter *p = &b->model->parameter[parameter];
    cvy_format format = CVY_FORMAT_PLAIN;
    if (p->spec.role == CVY_ROLE_W) {
        format = find_weight_format(b, at, CVY_ROLE_DW, b->formats[at->layer].gradient);
    }
    cvy_buffer gradient = {.role = CVY_BUFFER_GRADIENTS,
                           .content = CVY_CONTENT_GRADIENT,
                           .layer = at->layer,
                           .parameter = parameter,
                           .part = -1,
                           .tensor = {.dtype = b->plan->options.dtype, .format = format},
                           .alias_of = -1};
    if (b->parameter[parameter] < 0) {
        return CVY_OK;
    }
    cvy_seat_describe_parameter(&b->seat, b->model, parameter, &gradient);
    CVY_TRY(cvy_builder_add_buffer(b, &gradient, out));
    b->parameter_gradient[parameter] = *out;
    return CVY_OK;
}

/* What forward keeps for backward, the loss, the labels: described by the op itself. */
static cvy_status bind_saved(cvy_builder *b, const binding *at, cvy_role role, int *out)
{
    int layer = at->layer;
    int *saved = &b->layer[layer].saved[role];
    if (role == CVY_ROLE_WINDOW) { /* goes with the output, and comes with it again */
        CVY_TRY(cvy_recompute_restore(b, layer));
    }
    if (*saved < 0) {
        cvy_buffer buffer = {.role = CVY_BUFFER_ACTIVATIONS,
                             .content = role == CVY_ROLE_LABEL  ? CVY_CONTENT_LABEL
                                        : role == CVY_ROLE_LOSS ? CVY_CONTENT_LOSS
                                                                : CVY_CONTENT_SAVED,
                             .layer = layer,
                             .parameter = -1,
                             .part = (int)role,
                             .alias_of = -1};
        CVY_TRY(cvy_op_describe(&at->op, &at->x, at->filters, role, &buffer.tensor));
        CVY_TRY(cvy_builder_add_buffer(b, &buffer, saved));
    }
    *out = *saved;
    return CVY_OK;
}

/* The buffer of one place of the signature; *out = -1 leaves an optional one out. */
static cvy_status bind_role(cvy_builder *b, binding *at, const cvy_signature_place *place, int *out)
{
    cvy_layer_buffers *own = &b->layer[at->layer];
    int parameter;
    if (!at->op.relu && cvy_op_tells_relu(at->op.kind, at->pass, place->role)) {
        return CVY_OK;
    }
    switch (place->role) {
    case CVY_ROLE_X: return bind_input(b, at->layer, 0, at->phase, out);
    case CVY_ROLE_X1: return bind_input(b, at->layer, 1, at->phase, out);
    case CVY_ROLE_X2: return bind_input(b, at->layer, 2, at->phase, out);
    case CVY_ROLE_X3: return bind_input(b, at->layer, 3, at->phase, out);
    case CVY_ROLE_Y:
        CVY_TRY(cvy_recompute_restore(b, at->layer));
        if (own->output < 0) {
            cvy_buffer y = cvy_builder_describe(b, CVY_SPREAD_RAW, at->layer, 0, b->formats[at->layer].output);
            CVY_TRY(cvy_builder_add_buffer(b, &y, &at->raw));
        }
        *out = own->output < 0 ? at->raw : own->output;
        return CVY_OK;
    case CVY_ROLE_DY: *out = own->gradient; return CVY_OK;
    case CVY_ROLE_DY1: *out = own->gradient1; return CVY_OK;
    case CVY_ROLE_DX: return bind_input_gradient(b, at->layer, 0, out);
    case CVY_ROLE_DX1: return bind_input_gradient(b, at->layer, 1, out);
    case CVY_ROLE_W:
    case CVY_ROLE_B:
    case CVY_ROLE_RUNNING_MEAN:
    case CVY_ROLE_RUNNING_VARIANCE:
        parameter = cvy_model_find_role(b->model, at->layer, place->role);
        return parameter < 0 ? CVY_OK : bind_weights(b, at, parameter, out);
    case CVY_ROLE_DW:
    case CVY_ROLE_DB:
        parameter = cvy_model_find_role(b->model, at->layer, place->role == CVY_ROLE_DW ? CVY_ROLE_W : CVY_ROLE_B);
        return parameter < 0 ? CVY_OK : bind_parameter_gradient(b, at, place->access, parameter, out);
    default: return bind_saved(b, at, place->role, out);
    }
}

/* A gradient that was written in another format than its parameter's is reordered at once. */
static cvy_status settle_gradients(cvy_builder *b, int layer)
{
    const cvy_layer *l = &b->model->layer[layer];
    for (int i = l->first_parameter; i < l->first_parameter + l->parameters; i++) {
        int gradient = b->parameter_gradient[i];
        if (gradient < 0) {
            continue;
        }
        cvy_format wanted = b->schedule->buffer[b->parameter[i]].tensor.format;
        if (b->schedule->buffer[gradient].tensor.format != wanted) {
            cvy_step_spec spec = {CVY_STEP_LOCAL, CVY_PHASE_BACKWARD, layer};
            b->schedule->buffer[gradient].role = CVY_BUFFER_WORKSPACE;
            CVY_TRY(cvy_builder_add_reorder(b, &spec, gradient, wanted, &b->parameter_gradient[i]));
            b->schedule->buffer[b->parameter_gradient[i]].role = CVY_BUFFER_GRADIENTS;
        }
    }
    return CVY_OK;
}

/* What the pass made of the gradients of its layer's inputs; one layer that is both inputs gets both parts. */
static cvy_status contribute_gradients(cvy_builder *b, const cvy_layer *layer, const cvy_op *op, const int *operand)
{
    static const cvy_role roles[] = {CVY_ROLE_DX, CVY_ROLE_DX1};
    for (int i = 0; i < 2 && i < layer->inputs; i++) {
        int at = cvy_op_index(op, roles[i]);
        int part = at >= 0 ? operand[at] : -1;
        if (part >= 0) {
            CVY_TRY(cvy_build_halo_gradient(b, layer->index, i, &part));
            CVY_TRY(cvy_builder_contribute(b, layer->index, i, part));
        }
    }
    return CVY_OK;
}

cvy_status cvy_build_pass(cvy_builder *b, int layer, cvy_op_pass pass, cvy_phase phase)
{
    const cvy_layer *l = &b->model->layer[layer];
    binding at = {.layer = layer, .pass = pass, .phase = phase, .raw = -1};
    at.x = cvy_builder_describe(b, CVY_SPREAD_INPUT, layer, 0, b->formats[layer].input).tensor;
    at.filters = cvy_builder_describe(b, CVY_SPREAD_RAW, layer, 0, CVY_FORMAT_PLAIN).tensor.shape.extent[1];
    cvy_build_local_op(b, layer, pass, &at.op);
    at.op.relu = cvy_fuse_makes_relu(b, layer, at.op.kind, pass);
    if (at.op.kind == CVY_OP_CONVOLUTION) {
        at.op.params.window.winograd = goes_by_winograd(b, &at);
    }
    const cvy_signature *signature = cvy_op_signature(at.op.kind, pass);
    CVY_REQUIRE(signature, CVY_ERR_INFEASIBLE, "layer %s: %s has no pass %s", l->name, l->kind->name,
                cvy_op_pass_name(pass));
    int operand[CVY_MAX_OPERANDS];
    for (int i = 0; i < signature->places; i++) {
        int buffer = -1;
        CVY_TRY(bind_role(b, &at, &signature->place[i], &buffer));
        if (buffer >= 0) {
            operand[at.op.operands] = buffer;
            CVY_TRY(cvy_op_add(&at.op, signature->place[i].role, &b->schedule->buffer[buffer].tensor));
        }
    }
    cvy_step_kind kind = pass == CVY_PASS_COMMIT ? CVY_STEP_UPDATE : CVY_STEP_KERNEL;
    CVY_TRY(cvy_builder_add_step(b, &(cvy_step_spec){kind, phase, layer}, &at.op, operand));
    CVY_TRY(at.raw >= 0 ? cvy_build_output(b, layer, at.raw) : CVY_OK);
    CVY_TRY(contribute_gradients(b, l, &at.op, operand));
    return cvy_op_find(&at.op, CVY_ROLE_DW) && pass != CVY_PASS_GRAD_APPLY ? settle_gradients(b, layer) : CVY_OK;
}
