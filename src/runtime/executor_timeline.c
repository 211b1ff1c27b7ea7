/* Steps and iterations as slices of a timeline; a phase's slice spans its steps, so that slices nest. */
#include "runtime/executor_internal.h"

static const char *name_step(const cvy_executor *e, const cvy_step *step)
{
    if (step->layer >= 0) {
        return e->plan->model->layer[step->layer].name;
    }
    if (step->exchange >= 0) {
        return cvy_phase_name(step->phase);
    }
    return step->phase == CVY_PHASE_IO ? "batch" : "loss check";
}

/* Close the slice of the phase that ended at @p end_s. */
static void note_phase(cvy_executor *e, double end_s)
{
    if (e->phase_start_s > 0.0) {
        const char *name = cvy_phase_name(e->phase);
        cvy_timeline_add(e->timeline,
                         &(cvy_slice){.name = name, .category = name, .start_s = e->phase_start_s, .end_s = end_s});
    }
    e->phase_start_s = 0.0;
}

void cvy_executor_note_step(cvy_executor *e, const cvy_schedule *s, const cvy_step *step, double start_s, double end_s)
{
    if (e->phase_start_s > 0.0 && step->phase != e->phase) {
        note_phase(e, start_s);
    }
    if (e->phase_start_s == 0.0) {
        e->phase_start_s = start_s;
        e->phase = step->phase;
    }
    cvy_slice slice = {.name = name_step(e, step),
                       .category = cvy_phase_name(step->phase),
                       .start_s = start_s,
                       .end_s = end_s,
                       .stream = step->stream};
    if (step->op >= 0) {
        const cvy_op *op = &s->op[step->op];
        slice.suffix = op->kind == CVY_OP_REORDER ? cvy_op_kind_name(op->kind) : cvy_op_pass_name(op->pass);
        slice.flop = cvy_op_flop(op);
        slice.bytes = cvy_op_bytes(op);
    } else if (step->exchange >= 0) {
        slice.suffix = step->layer >= 0 ? cvy_phase_name(step->phase) : NULL;
        slice.bytes = (double)s->exchange[step->exchange].bytes;
    }
    cvy_timeline_add(e->timeline, &slice);
}

void cvy_executor_note_iteration(cvy_executor *e, double start_s, double end_s)
{
    note_phase(e, end_s);
    cvy_timeline_add(e->timeline,
                     &(cvy_slice){.name = "iteration", .category = "iteration", .start_s = start_s, .end_s = end_s});
}
