/* Sums over the steps that belong to a layer, in the schedule of the stage that has it. */
#include "oracle/trace_layers.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static void add_step(const cvy_schedule *schedule, const cvy_step *step, double times, cvy_layer_cost *row)
{
    double seconds = step->estimate_s * times;
    switch (step->phase) {
    case CVY_PHASE_FORWARD: row->forward_s += seconds; break;
    case CVY_PHASE_RECOMPUTE:
    case CVY_PHASE_BACKWARD: row->backward_s += seconds; break;
    case CVY_PHASE_UPDATE: row->update_s += seconds; break;
    default: row->communication_s += seconds; break;
    }
    if (step->kind == CVY_STEP_KERNEL && step->op >= 0 && step->phase != CVY_PHASE_UPDATE) {
        const cvy_op *op = &schedule->op[step->op];
        row->kernel_s += seconds;
        row->flop += times * cvy_op_flop(op);
        row->bytes += times * cvy_op_bytes(op);
    }
    if (step->exchange >= 0) {
        row->sent_bytes += (double)schedule->exchange[step->exchange].bytes * times;
    }
}

/* What a rank holds of a layer's output, of the samples that go through at once. */
static cvy_shape find_local(const cvy_distribution *d, const cvy_trace_rank *rank, int layer)
{
    const cvy_schedule *schedule = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    cvy_shape local = d->model->layer[layer].output;
    for (int axis = CVY_AXIS_DEPTH; axis < CVY_AXES; axis++) {
        int dim = cvy_distribution_dim((cvy_axis)axis, local.dims);
        if (d->layer[layer].output_split & CVY_AXIS_BIT(axis) && dim > 0) {
            cvy_placement placement = cvy_distribution_output(d, layer, (cvy_axis)axis);
            int64_t coordinate = cvy_mesh_coordinate(&d->strategy.mesh, rank->rank, (cvy_axis)axis);
            cvy_intervals share =
                cvy_distribution_share(&placement, (cvy_axis)axis, &d->model->layer[layer].output, coordinate);
            local.extent[dim] = cvy_intervals_length(&share);
        }
    }
    cvy_interval samples = cvy_schedule_micro_batch(schedule, 0);
    local.extent[0] = samples.end - samples.begin;
    return local;
}

/* Rows of the layers of a rank's stage; the row behind all layers takes what belongs to none. */
static void sum_rank(const cvy_trace *trace, int stage, cvy_layer_cost *row)
{
    const cvy_trace_rank *rank = &trace->rank[stage];
    const cvy_distribution *d = trace->distribution;
    const cvy_schedule *schedule = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const int layers = rank->plan->model->layers;
    for (int i = 0; i < schedule->steps; i++) {
        const cvy_step *step = &schedule->step[i];
        add_step(schedule, step, rank->times[i], &row[step->layer >= 0 ? step->layer : layers]);
    }
    for (int i = d->stages[stage]; i < d->stages[stage + 1]; i++) {
        row[i].local = find_local(d, rank, i);
    }
}

cvy_status cvy_trace_sum_layers(const cvy_trace *trace, cvy_layer_cost **costs_out)
{
    cvy_layer_cost *rows = cvy_calloc((size_t)trace->rank[0].plan->model->layers + 1, sizeof *rows);
    if (!rows) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < trace->ranks; i++) {
        sum_rank(trace, i, rows);
    }
    *costs_out = rows;
    return CVY_OK;
}

const char *cvy_layer_print_cut(const cvy_layer_distribution *layer, char *text)
{
    text[0] = '\0';
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        if ((layer->input_split | layer->raw_split) & CVY_AXIS_BIT(axis)) {
            size_t length = strlen(text);
            snprintf(text + length, CVY_CUT_TEXT - length, "%s%s", length ? "," : "", cvy_axis_name((cvy_axis)axis));
        }
    }
    if (layer->cut != CVY_CUT_WHOLE) {
        size_t length = strlen(text);
        snprintf(text + length, CVY_CUT_TEXT - length, "%s%s", length ? "," : "", cvy_cut_names[layer->cut]);
    }
    return text[0] ? text : "-";
}
