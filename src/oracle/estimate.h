/*
 * What an iteration costs: a strategy becomes the schedules that would run, their steps get seconds from the device and
 * the links of a machine, a simulation lays them out in time, and the plan's lifetimes give the memory.
 */
#ifndef CVY_ORACLE_ESTIMATE_H
#define CVY_ORACLE_ESTIMATE_H

#include "machine/machine.h"
#include "oracle/compute.h"
#include "oracle/network.h"
#include "plan/distribution.h"
#include "plan/plan.h"

/** What stays the same over all strategies that are compared. */
typedef struct cvy_oracle_options {
    int64_t batch;            /**< samples of an iteration over all ranks */
    cvy_precision precision;
    cvy_optimizer optimizer;
    cvy_recompute recompute;
    bool shard_optimizer;     /**< over the sample axis */
    bool norms_given;         /**< `norm_axes` holds; else batch norms take statistics over what shares a sample */
    unsigned norm_axes;       /**< as in cvy_plan_parallel */
    int64_t bucket_bytes;     /**< as in cvy_plan_parallel; below 0: the machine's */
    cvy_scratch_book *scratch; /**< as in cvy_plan_options; borrowed, must outlive the oracle; may be NULL */
} cvy_oracle_options;

/** One strategy, with what it leaves open. */
typedef struct cvy_estimate_question {
    cvy_strategy strategy;
    cvy_recompute recompute;
    const cvy_layer_choice *choices; /**< one for each layer; NULL: as the strategy says */
    const int *stages;               /**< as in cvy_distribution_options; NULL: balanced by estimated seconds */
} cvy_estimate_question;

/** Parts of a rank's memory: the roles of buffers, then what is not in a plan. */
enum {
    CVY_MEMORY_CHECKPOINT = CVY_BUFFER_ROLE_COUNT,
    CVY_MEMORY_RUNTIME, /**< of libraries and of the framework */
    CVY_MEMORY_PARTS
};

/**
 * Of a process that computes on CPUs, for each step of its schedule: the code that is made for its kernel, and what
 * describes it. The slope of what trainings of eight nets, of 31 to 679 steps, took beside their tensors.
 */
enum { CVY_STEP_MEMORY_BYTES = 20000 };

/** Parts of an iteration: the phases, then what is no step. */
enum {
    CVY_TIME_BUBBLE = CVY_PHASE_COUNT, /**< of a pipeline: no micro-batch is there */
    CVY_TIME_WAIT,                     /**< for the slowest rank */
    CVY_TIME_PARTS
};

/** Room for a reason. */
enum { CVY_WHY_TEXT = 256 };

/** Communication of one phase in an iteration, whether it sticks out or runs beside computation. */
typedef struct cvy_communication {
    double seconds;
    double latency_s; /**< of these, what does not depend on bytes */
    double bytes;     /**< that one rank sends in messages; of collectives, as cvy_exchange counts them */
} cvy_communication;

/** What comes out, of the slowest rank. Seconds of an iteration are the sum of `part_s`. */
typedef struct cvy_estimate {
    cvy_strategy strategy;         /**< micro-batches as they were run: at least 1 */
    cvy_recompute recompute;
    bool feasible;                 /**< a schedule exists; else only `why_not` holds */
    bool over_memory;              /**< it does not fit the device; it is priced all the same */
    char why_not[CVY_WHY_TEXT];    /**< why it is not feasible, or what does not fit; empty else */
    double iteration_s;
    double images_per_s;
    double error_relative;         /**< half of the bar in which nine of ten measurements lie, by `iteration_s`: from
                                        what sources say of their errors, and the device's spread */
    double part_s[CVY_TIME_PARTS]; /**< of a communication that runs beside a computation: what sticks out */
    double exposed_communication_s; /**< of halos, redistributions and gradients: sum of those parts */
    double hidden_communication_s;  /**< what runs beside computation */
    double latency_s;              /**< of all communication, what does not depend on bytes */
    cvy_communication communication[CVY_PHASE_COUNT]; /**< of halos, redistributions, gradients, input */
    cvy_communication transfer;    /**< of that of redistributions: messages between stages; ... */
    double transfer_s;             /**< ... and of part_s[CVY_PHASE_REDISTRIBUTE] */
    double sent_bytes;             /**< by one rank in an iteration: sum of `bytes` over all communication */
    double flop;                   /**< of one rank, an iteration; of a pipeline, of the mean one */
    double serial_flop;            /**< of the same batch on one rank, by the number of ranks */
    double balance;                /**< slowest stage by the mean of them, minus 1; 0 where there is one */
    int64_t memory_bytes[CVY_MEMORY_PARTS];
    int64_t total_bytes;
    int64_t transient_bytes;       /**< the plan's arena of one iteration */
    int64_t live_bytes;            /**< most of these that live at once: no placement takes less */
    int64_t capacity_bytes;        /**< of the device; 0: unknown */
    int64_t redundant_bytes;       /**< of weights, gradients and state: what other ranks hold, too */
    int steps;                     /**< of the slowest rank's schedule; a stage's is of two micro-batches */
    bool managed_memory;           /**< tensors would be paged: low confidence */
} cvy_estimate;

/** What is prepared once for a model on a machine. */
typedef struct cvy_oracle cvy_oracle;

/**
 * Prepare. Not collective.
 *
 * @param[in]  model       finished; borrowed
 * @param[in]  machine     borrowed
 * @param[in]  options     copied
 * @param[out] oracle_out  released with cvy_oracle_destroy(); untouched on failure
 * @retval CVY_ERR_INPUT   the machine has no peak rate for the precision, or names a file that is wrong
 */
cvy_status cvy_oracle_create(const cvy_model *model, const cvy_machine *machine, const cvy_oracle_options *options,
                             cvy_oracle **oracle_out);

/** Release; NULL is fine. */
void cvy_oracle_destroy(cvy_oracle **oracle);

/**
 * Estimate one strategy. Its ranks may be more than the machine has devices: that is not feasible.
 *
 * @param[out] estimate_out a strategy that cannot be scheduled is an answer, not a failure
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_oracle_estimate(cvy_oracle *oracle, const cvy_estimate_question *question, cvy_estimate *estimate_out);

/** What an estimate looked at, kept for explanations and timelines: of the slowest rank of each stage. */
typedef struct cvy_trace_rank {
    cvy_plan *plan;  /**< its training schedule's steps carry estimate_s and estimate_error; a stage's is of two
                          micro-batches, the first and the last of the iteration */
    int64_t rank;
    double *times;   /**< of each step: how often it runs in an iteration; 1 where there are no stages */
    double *start_s; /**< of each step in the schedule: without what passes between stages */
} cvy_trace_rank;

/** What a stage does in a pipeline: parts of a micro-batch, then the update. */
typedef enum cvy_stage_work {
    CVY_STAGE_FORWARD,
    CVY_STAGE_BACKWARD, /**< until the gradient that goes back is made */
    CVY_STAGE_REST,     /**< gradients of weights that come behind it */
    CVY_STAGE_UPDATE,   /**< of no micro-batch; the exchange of gradients with it */
    CVY_STAGE_WORK_COUNT
} cvy_stage_work;

/** A stretch of a stage's time. */
typedef struct cvy_stage_slice {
    int stage, micro_batch;
    cvy_stage_work work;
    double start_s, end_s;
} cvy_stage_slice;

typedef struct cvy_trace {
    cvy_estimate estimate;
    cvy_distribution *distribution; /**< NULL where the strategy is not feasible */
    int ranks;                      /**< one for each stage */
    cvy_trace_rank *rank;
    int slices;                     /**< of a pipeline: all stages, all micro-batches; 0 where there are no stages */
    cvy_stage_slice *slice;
} cvy_trace;

/** As cvy_oracle_estimate(), and keep what was looked at. @param[out] trace_out released with cvy_trace_destroy() */
cvy_status cvy_oracle_trace(cvy_oracle *oracle, const cvy_estimate_question *question, cvy_trace **trace_out);

/** Release; NULL is fine. */
void cvy_trace_destroy(cvy_trace **trace);

/** The model, machine and options of an oracle. Cannot fail. */
const cvy_model *cvy_oracle_get_model(const cvy_oracle *oracle);
const cvy_machine *cvy_oracle_get_machine(const cvy_oracle *oracle);
const cvy_oracle_options *cvy_oracle_get_options(const cvy_oracle *oracle);

/** "io" … "update", "bubble", "wait": the words of a breakdown. Cannot fail. */
const char *cvy_time_part_name(int part);

/** "weights" … "runtime". Cannot fail. */
const char *cvy_memory_part_name(int part);

#endif
