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
    cvy_simulator *simulator;
    double *layer_s;        /* of one sample, forward and backward, on one rank; one for each layer */
    double sample_flop;     /* of an iteration on one rank, for each sample */
    double fixed_flop;      /* and for none */
    cvy_sim_step *sim_step; /* room for the longest schedule so far */
    int sim_steps;
};

/** A strategy while it is priced. */
typedef struct cvy_pricing {
    cvy_oracle *oracle;
    const cvy_estimate_question *question;
    cvy_distribution *distribution; /**< of one micro-batch where there are stages */
    cvy_network network;
    cvy_recompute recompute;        /**< the question's, or the framework's */
    int family;                     /**< cvy_strategy_name; -1: a product that has none */
    int64_t in_flight_parts;        /**< micro-batches that the stages take one after the other; 1: no stages */
} cvy_pricing;

/** One rank's schedule, priced. Seconds are of one iteration; of one micro-batch where there are stages. */
typedef struct cvy_priced_rank {
    cvy_plan *plan;
    int64_t rank;
    int backward;               /**< the first step that is not of forward */
    double *start_s;            /**< of each step */
    double iteration_s;
    double forward_s;           /**< when backward begins */
    double part_s[CVY_TIME_PARTS];
    double compute_s;           /**< of kernels and local steps */
    double hidden_s;            /**< communication beside computation */
    double error_s;             /**< sum over the steps of how many seconds each may be off */
    double flop;
    cvy_communication communication[CVY_PHASE_COUNT];
    cvy_communication transfer; /**< between stages */
    double send_s, return_s;    /**< to the next stage, and the gradient back; 0 for the last */
} cvy_priced_rank;

/**
 * As cvy_oracle_create(), for another machine or other options than @p like has: what depends on the device alone is
 * taken over where the device is the same.
 *
 * @param[in] like  of the same model, precision and optimizer, on a machine that fuses as much; borrowed for the call;
 *                  NULL: none
 */
cvy_status cvy_oracle_create_like(const cvy_oracle *like, const cvy_model *model, const cvy_machine *machine,
                                  const cvy_oracle_options *options, cvy_oracle **oracle_out);

/** Whether a step is what passes between stages. */
bool cvy_step_passes_stages(const cvy_schedule *schedule, const cvy_step *step);

/** Price the steps of a plan's training schedule: writes estimate_s and estimate_error into them, sums the rest. */
void cvy_price_steps(cvy_pricing *pricing, cvy_priced_rank *rank);

/** Make a rank's plan, price it, lay it out in time. @param[out] rank_out cvy_priced_rank_clear() */
cvy_status cvy_price_rank(cvy_pricing *pricing, int64_t rank, cvy_priced_rank *rank_out);

/** Release what it owns and empty it. */
void cvy_priced_rank_clear(cvy_priced_rank *rank);

/** Add what the framework's habits cost: host time, packing, input, paging, ranks that wait for each other. */
void cvy_price_framework(cvy_pricing *pricing, cvy_priced_rank *rank, cvy_estimate *estimate);

/** Lay the micro-batches of all stages out in time. @param[in] stages one rank of each */
cvy_status cvy_price_pipeline(const cvy_pricing *pricing, const cvy_priced_rank *stages, int count,
                              cvy_estimate *estimate);

/** Bytes of a rank's memory by part, with @p in_flight micro-batches alive at once. */
void cvy_price_memory(const cvy_pricing *pricing, const cvy_priced_rank *rank, int64_t in_flight,
                      cvy_estimate *estimate);

/** Micro-batches that a stage holds at once. */
int64_t cvy_pipeline_in_flight(const cvy_strategy *strategy, int64_t micro_batches, int64_t stage);

/** Move what was looked at into a trace; what is taken is NULL then. */
cvy_status cvy_trace_take(cvy_trace *trace, cvy_pricing *pricing, cvy_priced_rank *rank, int count);

/** The name that a strategy has in machine files: cvy_strategy_name; -1 where it has none. */
int cvy_strategy_find_name(const cvy_strategy *strategy);

/** Whether a set of names, of a machine file, has a name; -1 is in none. */
static inline bool cvy_strategy_is_among(unsigned set, int name) { return name >= 0 && (set >> name & 1u) != 0; }

#endif
