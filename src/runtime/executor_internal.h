/* What the files of the executor share. */
#ifndef CVY_RUNTIME_EXECUTOR_INTERNAL_H
#define CVY_RUNTIME_EXECUTOR_INTERNAL_H

#include "base/memory.h"
#include "runtime/executor.h"

/* A step with all that it needs at hand. */
typedef struct bound_step {
    cvy_kernel *kernel; /* NULL for control steps */
    void *operand[CVY_MAX_OPERANDS];
    void *scratch;
} bound_step;

typedef struct program {
    bound_step *step;
    cvy_step_profile *profile;
} program;

struct cvy_executor {
    const cvy_plan *plan;
    cvy_arena persistent, transient;
    program program[CVY_SCHEDULE_COUNT];
    cvy_state state;
    char **state_names; /* those that the executor made: "momentum.…" */
    cvy_timeline *timeline;
    double phase_start_s; /* of the phase under way, for the timeline */
    cvy_phase phase;
};

/* Name the persistent tensors. */
cvy_status cvy_executor_list_state(cvy_executor *e);
void cvy_executor_release_state(cvy_executor *e);

/* Note a step, and at its end an iteration, in the timeline. */
void cvy_executor_note_step(cvy_executor *e, const cvy_schedule *s, const cvy_step *step, double start_s, double end_s);
void cvy_executor_note_iteration(cvy_executor *e, double start_s, double end_s);

#endif
