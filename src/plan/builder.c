/* Appending to a schedule under construction. Arrays grow by doubling; an index, once given, stays. */
#include "plan/builder.h"

#include <stdio.h>

#include "base/memory.h"

cvy_status cvy_builder_add_buffer(cvy_builder *b, const cvy_buffer *buffer, int *index_out)
{
    cvy_schedule *s = b->schedule;
    CVY_TRY(cvy_shape_check(&buffer->tensor.shape, buffer->layer >= 0 ? b->model->layer[buffer->layer].name : "plan"));
    CVY_TRY(cvy_array_reserve(&s->buffer, s->buffers, &s->buffer_capacity, sizeof *s->buffer));
    cvy_buffer *added = &s->buffer[s->buffers];
    *added = *buffer;
    if (added->global.dims == 0) { /* what nobody else has a part of */
        added->global = buffer->tensor.shape;
        for (int i = 0; i < buffer->tensor.shape.dims; i++) {
            added->local[i] = (cvy_interval){0, buffer->tensor.shape.extent[i]};
        }
    }
    added->bytes = cvy_tensor_bytes(&buffer->tensor);
    *index_out = s->buffers++;
    return CVY_OK;
}

static cvy_status add_use(cvy_builder *b, int buffer, cvy_access access)
{
    cvy_schedule *s = b->schedule;
    CVY_TRY(cvy_array_reserve(&s->use, s->uses, &s->use_capacity, sizeof *s->use));
    s->use[s->uses++] = (cvy_use){.buffer = buffer, .access = access};
    return CVY_OK;
}

static cvy_status append_step(cvy_builder *b, const cvy_step_spec *spec, int op, int uses)
{
    cvy_schedule *s = b->schedule;
    CVY_TRY(cvy_array_reserve(&s->step, s->steps, &s->step_capacity, sizeof *s->step));
    s->step[s->steps] = (cvy_step){.kind = spec->kind,
                                   .phase = spec->phase,
                                   .layer = spec->layer,
                                   .micro_batch = b->micro_batch,
                                   .op = op,
                                   .first_use = s->uses - uses,
                                   .uses = uses,
                                   .issue = s->steps,
                                   .every = 1,
                                   .exchange = -1};
    s->steps++;
    return CVY_OK;
}

/* Who runs an op, and with how much scratch memory: a kernel is made for the answer and released. */
static cvy_status ask_backends(const cvy_backend_chain *backends, const cvy_op *op, cvy_choice *choice)
{
    cvy_kernel *kernel = NULL;
    *choice = (cvy_choice){0};
    if (backends->count == 0) {
        return cvy_op_check(op);
    }
    cvy_status status = cvy_kernel_create(backends, op, &kernel);
    if (status == CVY_ERR_UNSUPPORTED) {
        return cvy_fail(CVY_ERR_INFEASIBLE, "%s", cvy_error_message());
    }
    CVY_TRY(status);
    snprintf(choice->backend, sizeof choice->backend, "%s", kernel->backend->name);
    snprintf(choice->algorithm, sizeof choice->algorithm, "%s", kernel->backend->algorithm(kernel));
    choice->scratch_bytes = (int64_t)cvy_kernel_scratch_bytes(kernel);
    cvy_kernel_destroy(&kernel);
    return CVY_OK;
}

/* Memory of one step alone. */
static cvy_status add_scratch(cvy_builder *b, int layer, cvy_buffer_role role, int64_t bytes)
{
    int index;
    cvy_buffer scratch = {.role = role,
                          .content = CVY_CONTENT_SCRATCH,
                          .layer = layer,
                          .parameter = -1,
                          .part = -1,
                          .tensor = {.shape = CVY_SHAPE(bytes), .dtype = CVY_U8},
                          .alias_of = -1};
    CVY_TRY(cvy_builder_add_buffer(b, &scratch, &index));
    return add_use(b, index, CVY_ACCESS_WRITE);
}

cvy_status cvy_builder_add_step(cvy_builder *b, const cvy_step_spec *spec, const cvy_op *op, const int *buffer)
{
    cvy_schedule *s = b->schedule;
    int choices = s->op_capacity;
    CVY_TRY(cvy_array_reserve(&s->choice, s->ops, &choices, sizeof *s->choice));
    CVY_TRY(cvy_array_reserve(&s->op, s->ops, &s->op_capacity, sizeof *s->op));
    s->op[s->ops] = *op;
    for (int i = 0; i < op->operands; i++) {
        CVY_TRY(add_use(b, buffer[i], op->operand[i].access));
    }
    const char *owner = spec->layer >= 0 ? b->model->layer[spec->layer].name : "plan";
    cvy_choice *choice = &s->choice[s->ops];
    cvy_status status = ask_backends(&b->plan->options.backends, op, choice);
    if (status == CVY_OK && b->plan->options.backends.count == 0) {
        status = cvy_builder_find_scratch(b, spec->layer, op, &choice->scratch_bytes);
    }
    if (status != CVY_OK) {
        return cvy_fail_within(status, "layer %s", owner);
    }
    int uses = op->operands;
    if (choice->scratch_bytes > 0) {
        CVY_TRY(add_scratch(b, spec->layer, CVY_BUFFER_WORKSPACE, choice->scratch_bytes));
        uses++;
    }
    return append_step(b, spec, s->ops++, uses);
}

cvy_status cvy_builder_add_control(cvy_builder *b, cvy_phase phase, cvy_access access, int first, int second)
{
    int uses = 0;
    int buffer[2] = {first, second};
    for (int i = 0; i < 2; i++) {
        if (buffer[i] >= 0) {
            CVY_TRY(add_use(b, buffer[i], access));
            uses++;
        }
    }
    return append_step(b, &(cvy_step_spec){CVY_STEP_CONTROL, phase, -1}, -1, uses);
}

cvy_status cvy_builder_add_reorder(cvy_builder *b, const cvy_step_spec *spec, int source, cvy_format format,
                                   int *index_out)
{
    cvy_buffer copy = b->schedule->buffer[source];
    cvy_op op = {.kind = CVY_OP_REORDER, .pass = CVY_PASS_FORWARD};
    int operand[2] = {source, -1};
    cvy_tensor from = copy.tensor;
    copy.tensor.format = format;
    if (cvy_tensor_same_layout(&from, &copy.tensor)) {
        return cvy_builder_add_view(b, source, &copy, index_out);
    }
    copy.alias_of = -1;
    copy.alias_offset = 0;
    copy.persistent = false;
    if (copy.role == CVY_BUFFER_WEIGHTS) {
        copy.role = CVY_BUFFER_WORKSPACE;
    }
    copy.content = copy.content == CVY_CONTENT_GRADIENT ? CVY_CONTENT_GRADIENT : CVY_CONTENT_COPY;
    CVY_TRY(cvy_builder_add_buffer(b, &copy, &operand[1]));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &from));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_Y, &copy.tensor));
    CVY_TRY(cvy_builder_add_step(b, spec, &op, operand));
    *index_out = operand[1];
    return CVY_OK;
}

cvy_status cvy_builder_add_sum(cvy_builder *b, int layer, const int part[2], const cvy_buffer *total, int *index_out)
{
    cvy_op op = {.kind = CVY_OP_ADD, .pass = CVY_PASS_FORWARD};
    cvy_step_spec spec = {CVY_STEP_LOCAL, CVY_PHASE_BACKWARD, layer};
    cvy_buffer sum = *total;
    int operand[3] = {part[0], part[1], -1};
    sum.alias_of = -1;
    sum.alias_offset = 0;
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &sum.tensor));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X1, &sum.tensor));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_Y, &sum.tensor));
    CVY_TRY(cvy_builder_add_buffer(b, &sum, &operand[2]));
    CVY_TRY(cvy_builder_add_step(b, &spec, &op, operand));
    *index_out = operand[2];
    return CVY_OK;
}

cvy_status cvy_builder_add_view(cvy_builder *b, int source, const cvy_buffer *like, int *index_out)
{
    cvy_buffer view = *like;
    view.alias_of = source;
    view.alias_offset = 0;
    view.persistent = b->schedule->buffer[source].persistent;
    return cvy_builder_add_buffer(b, &view, index_out);
}

cvy_status cvy_builder_add_message(cvy_builder *b, const cvy_message *message)
{
    cvy_schedule *s = b->schedule;
    CVY_TRY(cvy_array_reserve(&s->message, s->messages, &s->message_capacity, sizeof *s->message));
    s->message[s->messages++] = *message;
    return CVY_OK;
}

cvy_status cvy_builder_add_exchange(cvy_builder *b, const cvy_exchange_spec *spec)
{
    cvy_schedule *s = b->schedule;
    int uses = spec->uses;
    CVY_TRY(cvy_array_reserve(&s->exchange, s->exchanges, &s->exchange_capacity, sizeof *s->exchange));
    for (int i = 0; i < spec->uses; i++) {
        CVY_TRY(add_use(b, spec->use[i].buffer, spec->use[i].access));
    }
    if (spec->packed_bytes > 0) {
        CVY_TRY(add_scratch(b, spec->step.layer, CVY_BUFFER_COMMUNICATION, spec->packed_bytes));
        uses++;
    }
    CVY_TRY(append_step(b, &spec->step, -1, uses));
    s->step[s->steps - 1].stream = spec->stream;
    s->step[s->steps - 1].exchange = s->exchanges;
    s->exchange[s->exchanges++] = spec->exchange;
    return CVY_OK;
}

cvy_buffer cvy_builder_activation(const cvy_builder *b, int layer, cvy_content content, cvy_format format)
{
    cvy_buffer buffer = cvy_builder_describe(b, CVY_SPREAD_OUTPUT, layer, 0, format);
    buffer.content = content;
    return buffer;
}

cvy_status cvy_builder_contribute(cvy_builder *b, int consumer, int i, int buffer)
{
    int layer = b->model->layer[consumer].input[i];
    CVY_TRY(cvy_array_reserve(&b->contribution, b->contributions, &b->contribution_capacity, sizeof *b->contribution));
    b->contribution[b->contributions] = (cvy_contribution){buffer, consumer, i, b->layer[layer].contribution};
    b->layer[layer].contribution = b->contributions++;
    return CVY_OK;
}
