/*
 * The executor acts out the schedules of a plan: it owns the two arenas that the plan asks for and one kernel for each
 * step, and walks the steps in their order.
 */
#ifndef CVY_RUNTIME_EXECUTOR_H
#define CVY_RUNTIME_EXECUTOR_H

#include "comm/comm.h"
#include "plan/plan.h"
#include "runtime/state.h"
#include "runtime/timeline.h"

typedef struct cvy_executor cvy_executor;

/** A batch as the loader gives it. */
typedef struct cvy_executor_batch {
    const float *x;      /**< samples in plain order; NULL: the input buffer is already filled */
    const void *label;   /**< i32 [samples] or [samples * positions], or f32 [samples * values]; NULL: filled already */
    int64_t samples;     /**< of this rank, at most the schedule's batch; the rest is zeroed and counts nothing */
    bool stop;           /**< this rank was asked to stop; with several ranks, all hear of it */
    cvy_status failed;   /**< this rank of many has no batch to give, for the reason in cvy_error_message(): it takes
                              part with zeros and `samples` 0, so that nobody waits, and all ranks return the failure */
} cvy_executor_batch;

/** What an iteration found. */
typedef struct cvy_executor_result {
    double loss;         /**< scaled as asked; of all ranks */
    int64_t correct;     /**< of all ranks */
    bool stop;           /**< some rank was asked to stop */
} cvy_executor_result;

/** What a step took, summed over its runs since the last reset. */
typedef struct cvy_step_profile {
    int64_t calls;
    double seconds;
} cvy_step_profile;

/**
 * Take the memory of a plan and make its kernels.
 *
 * Collective over @p comm. @p plan is borrowed and must outlive the executor.
 *
 * @param[in]  comm         of as many ranks as the plan's mesh has, rank by rank; borrowed; NULL: one rank alone
 * @param[out] executor_out released with cvy_executor_destroy()
 * @retval CVY_ERR_MEMORY     the arenas cannot be had
 * @retval CVY_ERR_INFEASIBLE a kernel cannot be made, or wants other scratch memory than planned; the layer is named
 */
cvy_status cvy_executor_create(const cvy_plan *plan, cvy_comm *comm, cvy_executor **executor_out);

/** Release and set to NULL; NULL is fine. */
void cvy_executor_destroy(cvy_executor **executor);

/**
 * Run one iteration of a schedule. Allocates nothing.
 *
 * Collective. Ranks that fail do so together, with the words of the first of them.
 *
 * @param[in]  run         what differs from one iteration to the next; samples and loss_scale are of all ranks
 * @retval CVY_ERR_RANK    communication failed
 * @retval CVY_ERR_DIVERGED the loss or a gradient is not finite; the message names the first layer whose output is not
 */
cvy_status cvy_executor_run(cvy_executor *executor, cvy_schedule_kind kind, const cvy_executor_batch *batch,
                            const cvy_run *run, cvy_executor_result *result_out);

/** Memory of a buffer of a schedule. Valid as long as the executor; transient ones only while they live. */
void *cvy_executor_memory(const cvy_executor *executor, cvy_schedule_kind kind, int buffer);

/** Index of the last buffer of a content that a schedule made, of a layer and parameter (-1: any); -1 if absent. */
int cvy_executor_find(const cvy_executor *executor, cvy_schedule_kind kind, cvy_content content, int layer,
                      int parameter);

/** Persistent tensors by name. Borrowed; valid as long as the executor. */
const cvy_state *cvy_executor_state(const cvy_executor *executor);

/**
 * Tell the ranks of a run what each has of the tensors, so that they can be saved, loaded and compared. Collective;
 * once, behind cvy_executor_create(); all ranks return the same. Nothing is to be told where there is one rank.
 *
 * @param[in] comm  borrowed, must outlive the executor; NULL: one rank
 * @retval CVY_ERR_RANK as cvy_sharing_create()
 */
cvy_status cvy_executor_share_state(cvy_executor *executor, cvy_comm *comm);

/** Memory of the loader's slots, one behind the other, as the plan placed them. */
void *cvy_executor_slots(const cvy_executor *executor);

/** Profile of the steps of a schedule, as many as it has. */
const cvy_step_profile *cvy_executor_profile(const cvy_executor *executor, cvy_schedule_kind kind);

/** Bytes that communication steps have moved since creation, counted where they were handed over. */
int64_t cvy_executor_moved_bytes(const cvy_executor *executor);

/** Start the profiles anew. */
void cvy_executor_reset_profile(cvy_executor *executor);

/**
 * Measure what the walk over a schedule takes a step: the clock, checks and calls, with kernels that do nothing.
 *
 * Of one rank alone: what communicates cannot be idle. Parameters stay; what lives for an iteration does not. No
 * timeline may be set.
 * @param[out] step_s_out seconds a step
 */
cvy_status cvy_executor_measure_overhead(cvy_executor *executor, cvy_schedule_kind kind, double *step_s_out);

/** Note every step in a timeline from now on; NULL stops that. Borrowed. */
void cvy_executor_set_timeline(cvy_executor *executor, cvy_timeline *timeline);

/**
 * Fill all parameters as their layers say: a function of (seed, parameter, element). Optimizer state becomes
 * zero, averages what they are of.
 */
cvy_status cvy_executor_initialise(cvy_executor *executor, uint64_t seed);

/** Start the averages of all parameters from their values: to be called after weights were put in from elsewhere. */
void cvy_executor_start_averages(cvy_executor *executor);

#endif
