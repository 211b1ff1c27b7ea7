/* Kinds of steps by name: kernels by their ops, control by what it handles, communication by what goes where. */
#include "plan/step_kind.h"

#include <stdio.h>
#include <string.h>

#include "plan/mesh.h"

static void print_op(const cvy_op *op, char *text)
{
    snprintf(text, CVY_STEP_KIND_TEXT, "%s%s %s", cvy_op_kind_name(op->kind), op->relu ? "+relu" : "",
             cvy_op_pass_name(op->pass));
}

/* What a collective moves, by what its first buffer holds; nothing where that is a layer's output, or its gradient. */
static const char *find_subject(const cvy_schedule *s, const cvy_step *step)
{
    const cvy_buffer *buffer = &s->buffer[s->use[step->first_use].buffer];
    bool outputs = buffer->role == CVY_BUFFER_ACTIVATIONS && buffer->content != CVY_CONTENT_SAVED;
    if (buffer->content == CVY_CONTENT_SQUARES) {
        return " norms";
    }
    if (step->phase == CVY_PHASE_GRADIENT_EXCHANGE) {
        return buffer->role == CVY_BUFFER_WEIGHTS ? " weights" : " gradients";
    }
    return outputs ? "" : " statistics";
}

static const char *name_transfer(const cvy_step *step)
{
    static const char *const name[CVY_STREAM_COUNT] = {
        [CVY_STREAM_FORWARD_IN] = "receive from the stage before",
        [CVY_STREAM_FORWARD_OUT] = "send to the next stage",
        [CVY_STREAM_GRADIENT_IN] = "receive from the next stage",
        [CVY_STREAM_GRADIENT_OUT] = "send to the stage before",
    };
    return name[step->stream];
}

/* "sample,height" behind the words that are there. */
static void add_axes(unsigned axes, char *text)
{
    const char *before = " over ";
    for (int axis = 0; axis < CVY_AXES; axis++) {
        if (axes & CVY_AXIS_BIT(axis)) {
            size_t length = strlen(text);
            snprintf(text + length, CVY_STEP_KIND_TEXT - length, "%s%s", before, cvy_axis_name((cvy_axis)axis));
            before = ",";
        }
    }
}

static void print_exchange(const cvy_schedule *s, const cvy_step *step, char *text)
{
    const cvy_exchange *exchange = &s->exchange[step->exchange];
    if (step->kind == CVY_STEP_EXCHANGE && name_transfer(step)) {
        snprintf(text, CVY_STEP_KIND_TEXT, "%s", name_transfer(step));
        return;
    }
    if (step->kind == CVY_STEP_EXCHANGE) {
        snprintf(text, CVY_STEP_KIND_TEXT, "halo%s", exchange->sum ? " of gradients" : "");
    } else {
        snprintf(text, CVY_STEP_KIND_TEXT, "%s%s", cvy_collective_name(exchange->collective), find_subject(s, step));
    }
    add_axes(exchange->axes, text);
}

const char *cvy_step_print_kind(const cvy_schedule *schedule, const cvy_step *step, char *text)
{
    if (step->exchange >= 0) {
        print_exchange(schedule, step, text);
    } else if (step->op >= 0) {
        print_op(&schedule->op[step->op], text);
    } else {
        snprintf(text, CVY_STEP_KIND_TEXT, "%s", step->phase == CVY_PHASE_IO ? "batch" : "loss check");
    }
    return text;
}

bool cvy_step_communicates(const cvy_step *step)
{
    return step->phase == CVY_PHASE_HALO || step->phase == CVY_PHASE_REDISTRIBUTE ||
           step->phase == CVY_PHASE_GRADIENT_EXCHANGE;
}
