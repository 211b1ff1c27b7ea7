/*
 * The first number that is none. One rank runs forward of the micro-batch again, looking at every output; many ranks
 * walk over the whole iteration again together, without updates, as none can go forward without the others. Gradients
 * of an update that failed, and of those right behind it, are all there still.
 */
#include <math.h>

#include "runtime/executor_internal.h"

static bool all_finite(const cvy_tensor *tensor, const void *data)
{
    int64_t elements = cvy_tensor_elements(tensor);
    for (int64_t i = 0; i < elements; i++) {
        if (tensor->dtype == CVY_F32 ? !isfinite(((const float *)data)[i])
                                     : tensor->dtype == CVY_F64 && !isfinite(((const double *)data)[i])) {
            return false;
        }
    }
    return true;
}

/* The operand of a step that it wrote and that is not finite; -1. */
static int find_bad_operand(const iteration *it, int index)
{
    const cvy_step *step = &it->schedule->step[index];
    const cvy_op *op = step->op >= 0 ? &it->schedule->op[step->op] : NULL;
    for (int k = 0; op && k < op->operands; k++) {
        const cvy_operand *operand = &op->operand[k];
        if (operand->access != CVY_ACCESS_READ &&
            !all_finite(&operand->tensor, it->program->step[index].operand[k])) {
            return k;
        }
    }
    return -1;
}

/* Whether a control step took in data that are not finite. */
static bool took_bad_data(const cvy_executor *e, const iteration *it, int index)
{
    const cvy_step *step = &it->schedule->step[index];
    bool takes = step->kind == CVY_STEP_CONTROL && step->phase == CVY_PHASE_IO;
    int input = it->schedule->use[step->first_use].buffer;
    return takes && !all_finite(&it->schedule->buffer[input].tensor, cvy_executor_locate(e, it->schedule, input));
}

void cvy_executor_look_at(const cvy_executor *e, iteration *it, int index)
{
    if (it->found < 0 && (took_bad_data(e, it, index) || find_bad_operand(it, index) >= 0)) {
        it->found = index;
    }
}

cvy_status cvy_executor_name_output(const cvy_executor *e, const iteration *it, int index)
{
    const cvy_step *step = &it->schedule->step[index];
    long long number = (long long)it->whole.step;
    if (step->op < 0) {
        return cvy_fail(CVY_ERR_DIVERGED, "layer input: the data of step %lld hold NaN or infinity", number);
    }
    const cvy_op *op = &it->schedule->op[step->op];
    int bad = find_bad_operand(it, index);
    bool loss = bad >= 0 && op->operand[bad].role == CVY_ROLE_LOSS;
    return cvy_fail(CVY_ERR_DIVERGED, "layer %s: its %s is NaN or infinite in step %lld",
                    e->plan->model->layer[step->layer].name, loss ? "loss" : "output", number);
}

/* Run forward of a micro-batch again. Nothing has been updated. */
static cvy_status name_diverged_layer(cvy_executor *e, iteration *it, int micro_batch)
{
    const cvy_schedule *s = it->schedule;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        bool control = step->op < 0 && step->phase != CVY_PHASE_IO;
        if (step->phase > CVY_PHASE_FORWARD || step->micro_batch != micro_batch || control) {
            continue;
        }
        CVY_TRY(cvy_executor_run_step(e, it, i));
        cvy_executor_look_at(e, it, i);
        if (it->found >= 0) {
            return cvy_executor_name_output(e, it, i);
        }
    }
    return cvy_fail(CVY_ERR_DIVERGED, "the loss is NaN or infinite in step %lld, yet every layer's output is finite",
                    (long long)it->run.step);
}

/* From the loss back, the first gradient that is not finite. Updates before it have been made; its own has not. */
static cvy_status name_diverged_gradient(const cvy_executor *e, const iteration *it, int failed)
{
    const cvy_schedule *s = it->schedule;
    int last = failed;
    while (last + 1 < s->steps && s->step[last + 1].phase == CVY_PHASE_UPDATE) {
        last++;
    }
    for (int i = last; i >= failed; i--) {
        const cvy_step *step = &s->step[i];
        const cvy_op *op = step->op >= 0 ? &s->op[step->op] : NULL;
        const cvy_buffer *gradient = &s->buffer[s->use[step->first_use].buffer];
        bool is_gradient = gradient->role == CVY_BUFFER_GRADIENTS && gradient->parameter >= 0;
        if (op && op->pass == CVY_PASS_UPDATE && is_gradient &&
            !all_finite(&op->operand[0].tensor, it->program->step[i].operand[0])) {
            int parameter = gradient->parameter;
            return cvy_fail(CVY_ERR_DIVERGED, "layer %s: the gradient of %s is NaN or infinite in step %lld",
                            e->plan->model->layer[step->layer].name, e->plan->model->parameter[parameter].name,
                            (long long)it->run.step);
        }
    }
    return cvy_fail_within(CVY_ERR_DIVERGED, "step %lld", (long long)it->run.step);
}

cvy_status cvy_executor_explain(cvy_executor *e, iteration *it, int failed, cvy_status status)
{
    const cvy_step *step = &it->schedule->step[failed];
    if (status != CVY_ERR_DIVERGED) {
        return step->layer >= 0 ? cvy_fail_within(status, "layer %s", e->plan->model->layer[step->layer].name) : status;
    }
    return step->op < 0 && !e->comm ? name_diverged_layer(e, it, step->micro_batch)
           : step->op < 0           ? status
                                    : name_diverged_gradient(e, it, failed);
}
