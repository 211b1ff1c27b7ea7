/* What the files of the estimate share: an oracle, and one rank's schedule while it is priced. */
#ifndef CVY_ORACLE_ESTIMATE_INTERNAL_H
#define CVY_ORACLE_ESTIMATE_INTERNAL_H

#include "oracle/estimate.h"
#include "oracle/simulate.h"

struct cvy_oracle {
    const cvy_model *model;
    const cvy_machine *machine;
    cvy_oracle_options options;
    cvy_compute *compute;
    bool shares_compute;        /* it is another oracle's, on the same device */
    cvy_simulator *simulator;
    double *layer_s;        /* of one sample, forward and backward, on one rank; one for each layer */
    double sample_flop;     /* of an iteration on one rank, for each sample */
    double fixed_flop;      /* and for none */
    int64_t label_bytes;    /* of one sample, as a loader keeps it */
    /* Room that grows with the largest schedule, or exchange, so far. */
    cvy_sim_step *sim_step;
    int sim_steps;
    cvy_message *message;
    int messages;
    int *tensors;           /* of each buffer: parameters whose gradients lie on its memory */
    int tensor_buffers;
    double *burst_s;        /* of each step: seconds of its bytes over links that save up while nothing is sent */
    int burst_steps;
    double *distance;       /* of each step; see cvy_schedule_distances() */
    int distances;
    cvy_compute_source *source; /* of each step that is a kernel */
    int source_steps;
    double *off_s;          /* of each source of errors: by how much what it says may be off; see estimate_error.c */
    int off_places;
};

/**
 * The plans of a strategy, kept for other oracles: what a machine's rates do not change is planned once. Start from
 * {0}; cvy_kept_plans_clear().
 */
typedef struct cvy_kept_plans {
    cvy_oracle_options options;     /**< for which they were made; ... */
    cvy_execution execution;
    cvy_distribution *distribution; /**< ... NULL: none is there */
    int *stages;                    /**< those that it was asked for; NULL where there is one */
    struct {
        int64_t rank;
        cvy_plan *plan;
    } *plan;
    int plans, capacity;
} cvy_kept_plans;

/**
 * A strategy while it is priced. Where there are stages each is planned for two micro-batches: the first, of as many
 * samples as any has, and the last, which may have one fewer, and behind which gradients are exchanged.
 */
typedef struct cvy_pricing {
    cvy_oracle *oracle;
    const cvy_estimate_question *question;
    cvy_kept_plans *kept;           /**< who owns the distribution and the plans; NULL: nobody else */
    cvy_distribution *distribution; /**< of those two micro-batches where there are stages */
    cvy_network network;
    cvy_recompute recompute;        /**< the question's, or the framework's */
    int family;                     /**< cvy_strategy_name; -1: a product that has none */
    int stages;
    int64_t micro_batches;          /**< that the stages take one after the other; 1: no stages */
    int64_t larger;                 /**< of these: as large as the first */
    cvy_trace *trace;               /**< takes the slices of a pipeline; NULL: nobody wants them */
} cvy_pricing;

/** Seconds that the fullest link of a machine saves up while nothing is sent; 0: none does. Cannot fail. */
double cvy_machine_bucket(const cvy_machine *machine);

/** Bytes of a rank's memory. */
typedef struct cvy_rank_memory {
    int64_t part[CVY_MEMORY_PARTS];
    int64_t total_bytes, transient_bytes, live_bytes, redundant_bytes;
} cvy_rank_memory;

/** One rank's schedule, priced. Sums are of an iteration, in which a step of it may run several times. */
typedef struct cvy_priced_rank {
    cvy_plan *plan;
    bool borrowed;              /**< the plan is one that is kept */
    int64_t rank;
    double *times;              /**< of each step: how often it runs in an iteration */
    bool *forward;              /**< of each step: before backward of its micro-batch */
    double *start_s;            /**< of each step, in one run of the schedule */
    double iteration_s;         /**< sum of the parts; of a stage, what it does by itself */
    double part_s[CVY_TIME_PARTS];
    double compute_s;           /**< of kernels and local steps */
    double hidden_s;            /**< communication beside computation */
    double error_s;             /**< half of the bar of what sticks out of all steps */
    double flop;
    cvy_communication communication[CVY_PHASE_COUNT]; /**< but that between stages */
    cvy_communication transfer; /**< to other stages */
    cvy_rank_memory memory;
    /* Of a stage: the first micro-batch, and the last. Backward is until the gradient goes on, and then. */
    double forward_s[2], backward_s[2][2];
    double send_s[2];           /**< to the next stage */
    double return_s[2];         /**< of the gradient to the stage before */
    double send_burst_s[2];     /**< of these, what links that save up while nothing is sent may spare */
    double return_burst_s[2];
    double sum_s[2];            /**< of gradients with those of the micro-batches before: in each backward but one */
    double last_s;              /**< of updates in the last backward, until its gradient goes on */
    double update_s;            /**< behind all of them */
} cvy_priced_rank;

/**
 * As cvy_oracle_create(), for another machine or other options than @p like has: what depends on the device alone is
 * taken over where the device is the same.
 *
 * @param[in] like  of the same model, precision and optimizer, on a machine that fuses as much; borrowed, must outlive
 *                  the oracle; NULL: none
 */
cvy_status cvy_oracle_create_like(const cvy_oracle *like, const cvy_model *model, const cvy_machine *machine,
                                  const cvy_oracle_options *options, cvy_oracle **oracle_out);

/** Ask for another batch from now on. */
void cvy_oracle_set_batch(cvy_oracle *oracle, int64_t batch);

/**
 * As cvy_oracle_estimate(), with the plans that were made for the same question before; they are made, and kept, where
 * there are none that hold.
 *
 * @param[in,out] kept  of the same strategy, recomputation and choices, and of machines that differ in rates alone
 */
cvy_status cvy_oracle_estimate_kept(cvy_oracle *oracle, const cvy_estimate_question *question, cvy_kept_plans *kept,
                                    cvy_estimate *estimate_out);

/** Release what it owns and empty it. */
void cvy_kept_plans_clear(cvy_kept_plans *kept);

/** The plan of a rank that is kept; NULL: none. */
cvy_plan *cvy_kept_plans_find(const cvy_kept_plans *kept, int64_t rank);

/** Keep a rank's plan, which is taken over. @retval CVY_ERR_MEMORY the plan stays the caller's */
cvy_status cvy_kept_plans_add(cvy_kept_plans *kept, int64_t rank, cvy_plan *plan);

/**
 * Whether what is kept holds for an oracle; what does not is released.
 *
 * @param[in] stages  where they begin, and one more; NULL where there is one
 */
bool cvy_kept_plans_hold(cvy_kept_plans *kept, const cvy_oracle *oracle, const int *stages, int count);

/** Keep a distribution, which is taken over. @retval CVY_ERR_MEMORY it stays the caller's */
cvy_status cvy_kept_plans_begin(cvy_kept_plans *kept, const cvy_oracle *oracle, const int *stages, int count,
                                cvy_distribution *distribution);

/** Whether a step is a message between stages. */
bool cvy_step_passes_stage(const cvy_schedule *schedule, const cvy_step *step);

/** Which way it goes: to a later stage, or a gradient to an earlier one; of a message between stages. */
bool cvy_step_passes_forward(const cvy_schedule *schedule, const cvy_step *step);

/** Whether a step runs once an iteration, behind all micro-batches. */
static inline bool cvy_step_ends_iteration(const cvy_step *step)
{
    return step->phase == CVY_PHASE_GRADIENT_EXCHANGE || step->phase == CVY_PHASE_UPDATE;
}

/** Whether a step adds a micro-batch's gradient of a parameter to those before. */
bool cvy_step_sums_gradient(const cvy_schedule *schedule, const cvy_step *step);

/** Note of each step of a rank's plan how often it runs, and whether in forward. @retval CVY_ERR_MEMORY */
cvy_status cvy_price_count(const cvy_pricing *pricing, cvy_priced_rank *rank);

/** Price the steps of a plan's training schedule: writes estimate_s and estimate_error into them, sums the rest. */
cvy_status cvy_price_steps(cvy_pricing *pricing, cvy_priced_rank *rank);

/** Half of the bar in which nine of ten measurements of a kernel lie, relative, by what its source says of errors. */
double cvy_error_bar(const cvy_compute_estimate *estimate);

/** Begin to add up errors of a schedule whose steps are priced; estimate_error.c has the formula. */
cvy_status cvy_error_begin(cvy_oracle *oracle, const cvy_schedule *schedule);

/** Add what a step shows in an iteration. */
void cvy_error_add(cvy_oracle *oracle, const cvy_schedule *schedule, int step, double seconds);

/** Half of the bar of what was added, in seconds. @param[in] compute_s of kernels among it */
double cvy_error_end(const cvy_oracle *oracle, const cvy_schedule *schedule, double compute_s);

/** Make a rank's plan, price it, lay it out in time. @param[out] rank_out cvy_priced_rank_clear() */
cvy_status cvy_price_rank(cvy_pricing *pricing, int64_t rank, cvy_priced_rank *rank_out);

/** Release what it owns and empty it. */
void cvy_priced_rank_clear(cvy_priced_rank *rank);

/** Add what the framework's habits cost: host time, paging, ranks that wait for each other. */
void cvy_price_framework(const cvy_pricing *pricing, cvy_priced_rank *rank, cvy_estimate *estimate);

/** Seconds of input that is loaded between iterations. */
double cvy_price_input(cvy_pricing *pricing);

/** Lay the micro-batches of all stages out in time. @param[in] stages one rank of each */
cvy_status cvy_price_pipeline(const cvy_pricing *pricing, const cvy_priced_rank *stages, cvy_estimate *estimate);

/** Bytes of a rank's memory by part, with all micro-batches that its stage holds at once. */
void cvy_price_memory(const cvy_pricing *pricing, int64_t stage, cvy_priced_rank *rank);

/** Micro-batches that a stage holds at once. */
int64_t cvy_pipeline_in_flight(const cvy_strategy *strategy, int64_t micro_batches, int64_t stage);

/** Move what was looked at into a trace; what is taken is NULL then. */
cvy_status cvy_trace_take(cvy_trace *trace, cvy_pricing *pricing, cvy_priced_rank *rank, int count);

/** The name that a strategy has in machine files: cvy_strategy_name; -1 where it has none. */
int cvy_strategy_find_name(const cvy_strategy *strategy);

/** Whether a set of names, of a machine file, has a name; -1 is in none. */
static inline bool cvy_strategy_is_among(unsigned set, int name) { return name >= 0 && (set >> name & 1u) != 0; }

#endif
