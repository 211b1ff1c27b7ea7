/* What lives from one iteration to the next, and the steps that change it. */
#include "plan/builder.h"

#include "base/checked.h"

static cvy_status add_moment(cvy_builder *b, int parameter, int part)
{
    cvy_buffer moment = b->schedule->buffer[b->parameter[parameter]];
    moment.role = CVY_BUFFER_OPTIMIZER;
    moment.content = CVY_CONTENT_MOMENT;
    moment.part = part;
    return cvy_builder_add_buffer(b, &moment, &b->moment[part][parameter]);
}

static cvy_status add_parameter(cvy_builder *b, int index)
{
    const cvy_parameter *p = &b->model->parameter[index];
    cvy_format format = p->spec.role == CVY_ROLE_W ? b->formats[p->layer].weight : CVY_FORMAT_PLAIN;
    cvy_buffer buffer = {.role = CVY_BUFFER_WEIGHTS,
                         .content = CVY_CONTENT_PARAMETER,
                         .layer = p->layer,
                         .parameter = index,
                         .part = -1,
                         .tensor = cvy_layout_parameter(p, b->plan->options.dtype, format),
                         .alias_of = -1,
                         .persistent = true};
    return cvy_builder_add_buffer(b, &buffer, &b->parameter[index]);
}

/* A slot of the loader: images, then labels, each rounded up to whole cache lines; always f32 and i32, raw. */
static cvy_status add_slot(cvy_builder *b, int slot)
{
    cvy_tensor x = cvy_layout_output(&b->model->layer[0], b->plan->options.batch, CVY_F32, CVY_FORMAT_PLAIN);
    int64_t bytes = cvy_round_up(cvy_tensor_bytes(&x), 64) +
                    cvy_round_up(b->plan->options.batch * b->plan->options.label_bytes, 64);
    cvy_buffer buffer = {.role = CVY_BUFFER_DATA,
                         .content = CVY_CONTENT_BATCH,
                         .layer = -1,
                         .parameter = -1,
                         .part = slot,
                         .tensor = {.shape = CVY_SHAPE(bytes), .dtype = CVY_U8},
                         .alias_of = -1,
                         .persistent = true};
    int index;
    return cvy_builder_add_buffer(b, &buffer, &index);
}

cvy_status cvy_build_persistent(cvy_builder *b)
{
    const cvy_plan_options *options = &b->plan->options;
    for (int i = 0; i < b->model->parameters; i++) {
        CVY_TRY(add_parameter(b, i));
    }
    int moments = options->training ? cvy_optimizer_moments(&options->optimizer) : 0;
    for (int part = 0; part < moments; part++) {
        for (int i = 0; i < b->model->parameters; i++) {
            if (b->model->parameter[i].spec.trainable) {
                CVY_TRY(add_moment(b, i, part));
            }
        }
    }
    for (int i = 0; i < options->data_slots; i++) {
        CVY_TRY(add_slot(b, i));
    }
    return CVY_OK;
}

static cvy_status build_commits(cvy_builder *b)
{
    for (int i = 1; i < b->model->layers; i++) {
        const cvy_layer_kind *kind = b->model->layer[i].kind;
        for (int k = 0; k < kind->forward_passes; k++) {
            if (kind->forward[k] == CVY_PASS_COMMIT) {
                CVY_TRY(cvy_build_pass(b, i, CVY_PASS_COMMIT, CVY_PHASE_UPDATE));
            }
        }
    }
    return CVY_OK;
}

static cvy_status build_parameter_update(cvy_builder *b, int parameter)
{
    const cvy_optimizer *optimizer = &b->plan->options.optimizer;
    cvy_op op = {.kind = cvy_optimizer_get_rule(optimizer->kind)->op, .pass = CVY_PASS_UPDATE};
    op.params.optimizer = cvy_optimizer_params(optimizer, b->model->parameter[parameter].spec.shape.dims);
    const cvy_tensor *tensor = &b->schedule->buffer[b->parameter[parameter]].tensor;
    int operand[4] = {b->parameter_gradient[parameter], b->parameter[parameter]};
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_DW, tensor));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_W, tensor));
    for (int part = 0; part < 2; part++) {
        if (b->moment[part][parameter] >= 0) {
            operand[op.operands] = b->moment[part][parameter];
            CVY_TRY(cvy_op_add(&op, part ? CVY_ROLE_MOMENT2 : CVY_ROLE_MOMENTUM, tensor));
        }
    }
    cvy_step_spec spec = {CVY_STEP_UPDATE, CVY_PHASE_UPDATE, b->model->parameter[parameter].layer};
    return cvy_builder_add_step(b, &spec, &op, operand);
}

cvy_status cvy_build_update(cvy_builder *b)
{
    CVY_TRY(build_commits(b));
    for (int i = 0; i < b->model->parameters; i++) {
        if (b->model->parameter[i].spec.trainable && b->parameter_gradient[i] >= 0) {
            CVY_TRY(build_parameter_update(b, i));
        }
    }
    return CVY_OK;
}
