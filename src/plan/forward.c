/*
 * Forward: layers in the model's order, each with its passes; views, layers that do nothing and relus that are part of
 * the op before them share their input's buffer.
 */
#include "plan/builder.h"

/* Output and input are the same elements: under another shape (flatten), or altogether (dropout in evaluation). */
static cvy_status build_view(cvy_builder *b, int layer, cvy_phase phase)
{
    int source = b->model->layer[layer].input[0];
    int plain = b->layer[source].output;
    bool stays = cvy_spread_same(&b->seat, (cvy_spread_name){CVY_SPREAD_INPUT, layer, 0},
                                 (cvy_spread_name){CVY_SPREAD_OUTPUT, source, 0});
    if (!stays) {
        CVY_TRY(cvy_build_input(b, layer, 0, phase, &plain));
    }
    if (b->model->layer[layer].kind->flow != CVY_FLOW_VIEW) {
        return cvy_build_output(b, layer, plain);
    }
    if (b->schedule->buffer[plain].tensor.format != CVY_FORMAT_PLAIN) {
        cvy_step_spec spec = {CVY_STEP_LOCAL, phase, layer};
        CVY_TRY(cvy_builder_add_reorder(b, &spec, plain, CVY_FORMAT_PLAIN, &plain));
    }
    cvy_buffer y = cvy_builder_describe(b, CVY_SPREAD_RAW, layer, 0, CVY_FORMAT_PLAIN);
    CVY_TRY(cvy_builder_add_view(b, plain, &y, &plain));
    return cvy_build_output(b, layer, plain);
}

/* The batch: filled by the runtime before anything else. */
static cvy_status build_source(cvy_builder *b, int layer)
{
    cvy_buffer x = cvy_builder_activation(b, layer, CVY_CONTENT_OUTPUT, b->formats[layer].output);
    CVY_TRY(cvy_builder_add_buffer(b, &x, &b->layer[layer].output));
    b->schedule->input_buffer = b->layer[layer].output;
    return CVY_OK;
}

/* Labels lie where the scores do; classes have no dimension of channels. */
static void locate_label(const cvy_buffer *x, cvy_buffer *label)
{
    int dims = label->tensor.shape.dims, skipped = x->tensor.shape.dims - dims;
    label->global.dims = dims;
    for (int dim = 0; dim < dims; dim++) {
        int from = dim == 0 ? 0 : dim + skipped;
        label->global.extent[dim] = x->global.extent[from];
        label->local[dim] = x->local[from];
    }
}

cvy_status cvy_builder_describe_label(const cvy_builder *b, cvy_buffer *label_out)
{
    int loss = b->model->layers - 1;
    cvy_op op = {0};
    cvy_buffer label = {.role = CVY_BUFFER_ACTIVATIONS,
                        .content = CVY_CONTENT_LABEL,
                        .layer = loss,
                        .parameter = -1,
                        .part = CVY_ROLE_LABEL,
                        .alias_of = -1};
    cvy_buffer x = cvy_builder_describe(b, CVY_SPREAD_INPUT, loss, 0, CVY_FORMAT_PLAIN);
    cvy_build_local_op(b, loss, CVY_PASS_FORWARD, &op);
    CVY_TRY(cvy_op_describe(&op, &x.tensor, 0, CVY_ROLE_LABEL, &label.tensor));
    locate_label(&x, &label);
    *label_out = label;
    return CVY_OK;
}

/* Labels come with the batch, so their buffer stands before the first step. */
static cvy_status build_label(cvy_builder *b)
{
    int loss = b->model->layers - 1;
    cvy_buffer label;
    CVY_TRY(cvy_builder_describe_label(b, &label));
    CVY_TRY(cvy_builder_add_buffer(b, &label, &b->layer[loss].saved[CVY_ROLE_LABEL]));
    b->schedule->label_buffer = b->layer[loss].saved[CVY_ROLE_LABEL];
    return CVY_OK;
}

/* A batch norm made again takes the statistics that it saved: the same bits, and nothing is counted twice. */
static cvy_op_pass find_repeat(const cvy_builder *b, int layer, cvy_op_pass pass)
{
    const cvy_layer *l = &b->model->layer[layer];
    cvy_op op = {0};
    l->kind->make_op(l, &b->model->layer[l->input[0]].output, pass, &op);
    return op.kind == CVY_OP_BATCH_NORM ? CVY_PASS_NORMALISE : pass;
}

cvy_status cvy_build_layer_forward(cvy_builder *b, int layer, cvy_phase phase)
{
    const cvy_layer_kind *kind = b->model->layer[layer].kind;
    int passes = b->training ? kind->forward_passes : kind->inference_passes;
    passes = b->layer[layer].carrier >= 0 ? 0 : passes;
    const cvy_op_pass *pass = b->training ? kind->forward : kind->inference;
    for (int i = 0; i < passes; i++) {
        if (pass[i] != CVY_PASS_COMMIT) { /* running statistics wait until the loss is known to be finite */
            cvy_op_pass now = phase == CVY_PHASE_RECOMPUTE ? find_repeat(b, layer, pass[i]) : pass[i];
            if (now == CVY_PASS_FORWARD && cvy_norm_axes(b, layer)) {
                CVY_TRY(cvy_build_pass(b, layer, CVY_PASS_STATS, phase));
                CVY_TRY(cvy_build_norm_exchange(b, layer, CVY_PASS_STATS, CVY_PHASE_REDISTRIBUTE));
                now = CVY_PASS_NORMALISE;
            }
            CVY_TRY(cvy_build_pass(b, layer, now, phase));
        }
    }
    return passes == 0 ? build_view(b, layer, phase) : CVY_OK;
}

/* Layers at or behind something trainable: of all stages, as gradients pass between them. */
static void find_gradients(cvy_builder *b)
{
    for (int i = 1; i < b->model->layers; i++) {
        const cvy_layer *layer = &b->model->layer[i];
        b->layer[i].needs_gradient = layer->parameters > 0;
        for (int k = 0; k < layer->inputs; k++) {
            b->layer[i].needs_gradient |= b->layer[layer->input[k]].needs_gradient;
        }
    }
}

/* What a stage begins with: the batch, the labels, or what the stage before has made. */
static cvy_status build_start(cvy_builder *b)
{
    bool first = b->first_layer == 0, last = b->end_layer == b->model->layers;
    CVY_TRY(first ? build_source(b, 0) : CVY_OK);
    CVY_TRY(last ? build_label(b) : CVY_OK);
    if (first || last) {
        CVY_TRY(cvy_builder_add_control(b, CVY_PHASE_IO, CVY_ACCESS_WRITE, first ? b->layer[0].output : -1,
                                        b->schedule->label_buffer));
    }
    return first ? CVY_OK : cvy_pipeline_receive(b);
}

static cvy_status build_end(cvy_builder *b)
{
    int loss = b->model->layers - 1;
    if (b->end_layer <= loss) {
        return cvy_pipeline_send(b);
    }
    b->schedule->loss_buffer = b->layer[loss].saved[CVY_ROLE_LOSS];
    b->schedule->output_buffer = b->layer[b->model->layer[loss].input[0]].output;
    int kept = b->training ? -1 : b->schedule->output_buffer; /* evaluation may read the output at the end */
    return cvy_builder_add_control(b, CVY_PHASE_FORWARD, CVY_ACCESS_READ, b->schedule->loss_buffer, kept);
}

cvy_status cvy_build_forward(cvy_builder *b)
{
    for (int i = 0; i < b->model->parameters && !b->training; i++) { /* evaluation goes by averages, if there are any */
        b->parameter[i] = b->average[i] >= 0 ? b->average[i] : b->parameter[i];
    }
    find_gradients(b);
    cvy_fuse_relus(b);
    CVY_TRY(build_start(b));
    for (int i = b->first_layer > 0 ? b->first_layer : 1; i < b->end_layer; i++) {
        CVY_TRY(cvy_build_layer_forward(b, i, CVY_PHASE_FORWARD));
    }
    return build_end(b);
}
