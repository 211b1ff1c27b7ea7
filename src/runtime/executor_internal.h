/* What the files of the executor share: executor.c is set-up, executor_run.c the loop, executor_diverged.c finds who
 * made the first number that is none, executor_ranks.c what ranks have to do with each other. */
#ifndef CVY_RUNTIME_EXECUTOR_INTERNAL_H
#define CVY_RUNTIME_EXECUTOR_INTERNAL_H

#include "base/memory.h"
#include "runtime/exchange.h"
#include "runtime/executor.h"

/* A step with all that it needs at hand. */
typedef struct bound_step {
    cvy_kernel *kernel;         /* NULL for control steps */
    cvy_exchange_run *exchange; /* of a communication step; else NULL */
    void *operand[CVY_MAX_OPERANDS];
    void *scratch;
} bound_step;

typedef struct program {
    bound_step *step;
    cvy_step_profile *profile;
    int *under_way;     /* steps that were begun and may not be done, in their order */
    int under_ways;
    int exchanges;      /* of the rank that has most of them: all ranks count alike */
    bool counts_loss;   /* of ranks that all have the same loss it is this one that tells */
} program;

/* What a rank found wrong in an iteration: it goes on to where all ranks hear of it. */
typedef struct failure {
    cvy_status status;  /* CVY_OK: nothing */
    int loss_step;      /* of a loss that is not finite; -1 */
    char words[1020];
} failure;

/* What the ranks tell each other at the end of an iteration: sums. */
typedef enum verdict { VERDICT_LOSS, VERDICT_CORRECT, VERDICT_STOP, VERDICT_FAILED, VERDICT_LOSSES, VERDICTS } verdict;

struct cvy_executor {
    const cvy_plan *plan;
    cvy_comm *comm;     /* NULL: one rank alone */
    cvy_groups groups;
    bool one_node;      /* all ranks are on one */
    cvy_transfer *tell; /* of `verdict` */
    double verdict[VERDICTS];
    int64_t exchanged;  /* exchanges before the iteration under way, for the pulse */
    failure failure;
    cvy_arena persistent, transient;
    program program[CVY_SCHEDULE_COUNT];
    cvy_state state;
    char **state_names; /* those that the executor made: "momentum.…" */
    cvy_timeline *timeline;
    double phase_start_s; /* of the phase under way, for the timeline */
    cvy_phase phase;
};

/* An iteration under way. */
typedef struct iteration {
    const cvy_schedule *schedule;
    program *program;
    const cvy_executor_batch *batch;
    cvy_run run; /* as kernels of the micro-batch under way see it */
    cvy_run whole;
    cvy_executor_result *result;
    bool looking;  /* for the first output that is not finite: nothing is updated */
    int found;     /* the step that made it; -1 */
} iteration;

/* Where a buffer of a schedule lies. */
void *cvy_executor_locate(const cvy_executor *e, const cvy_schedule *s, int buffer);

/* Name the persistent tensors. */
cvy_status cvy_executor_list_state(cvy_executor *e);
void cvy_executor_release_state(cvy_executor *e);

/* Take in what a control step asks for of the batch: the samples of its micro-batch that there are. */
cvy_status cvy_executor_take_batch(const cvy_executor *e, const cvy_schedule *s, const cvy_step *step,
                                   const cvy_executor_batch *batch);

/* Run one step that has an op, or is control. */
cvy_status cvy_executor_run_step(cvy_executor *e, iteration *it, int index);

/* Walk over all steps. */
cvy_status cvy_executor_walk(cvy_executor *e, iteration *it);

/* ---- numbers that are none ---- */

/* Look at what a step of the forward pass wrote; note it where it is the first that is not finite. */
void cvy_executor_look_at(const cvy_executor *e, iteration *it, int index);

/* On one rank: put the layer into the words of a failure; of a loss that is not finite, the layer that began it. */
cvy_status cvy_executor_explain(cvy_executor *e, iteration *it, int failed, cvy_status status);

/* The words for a step of the forward pass whose output is not finite. */
cvy_status cvy_executor_name_output(const cvy_executor *e, const iteration *it, int index);

/* ---- ranks ---- */

/* Join the groups, and bind the communication steps of a schedule. Collective. */
cvy_status cvy_executor_join(cvy_executor *e);
cvy_status cvy_executor_bind_exchange(cvy_executor *e, cvy_schedule_kind kind, int index);
void cvy_executor_leave(cvy_executor *e);

/* Run, or begin, a communication step. */
cvy_status cvy_executor_communicate(cvy_executor *e, iteration *it, int index);

/* Before a step: wait for what it needs of those under way, and let the others make progress. */
cvy_status cvy_executor_wait_for(cvy_executor *e, iteration *it, int index);

/* At the end: wait for all that is under way. */
cvy_status cvy_executor_wait_for_all(const cvy_executor *e, iteration *it);

/* A step failed on this rank of many: note why; the walk goes on. */
void cvy_executor_note_failure(cvy_executor *e, iteration *it, int index, cvy_status status);

/* The end of an iteration of many ranks: sums of what they found, and one answer for all. Collective. */
cvy_status cvy_executor_tell(cvy_executor *e, iteration *it);

/* Note a step, and at its end an iteration, in the timeline. */
void cvy_executor_note_step(cvy_executor *e, const cvy_schedule *s, const cvy_step *step, double start_s, double end_s);
void cvy_executor_note_iteration(cvy_executor *e, double start_s, double end_s);

#endif
