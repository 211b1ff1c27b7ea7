/* A plan: all schedules of a training, over one set of persistent buffers. */
#ifndef CVY_PLAN_PLAN_H
#define CVY_PLAN_PLAN_H

#include "backend/backend.h"
#include "model/model.h"
#include "plan/schedule.h"
#include "plan/scratch.h"

/** Schedules of a plan. All share the persistent buffers, which come first, with equal indices and formats. */
typedef enum cvy_schedule_kind {
    CVY_SCHEDULE_TRAIN,
    CVY_SCHEDULE_TRAIN_TAIL, /**< the last, incomplete batch of an epoch; no steps where there is none */
    CVY_SCHEDULE_EVALUATE,
    CVY_SCHEDULE_COUNT
} cvy_schedule_kind;

typedef enum cvy_optimizer_kind {
    CVY_OPTIMIZER_SGD,
    CVY_OPTIMIZER_ADAMW,
    CVY_OPTIMIZER_ADAM,
    CVY_OPTIMIZER_LARS,
    CVY_OPTIMIZER_LAMB,
    CVY_OPTIMIZER_COUNT
} cvy_optimizer_kind;

/** Which rule updates the weights. */
typedef struct cvy_optimizer {
    cvy_optimizer_kind kind;
    cvy_op_params_optimizer params; /**< momentum 0 keeps no velocity */
    double clip_norm;               /**< largest norm of all gradients together; 0: any */
    bool no_decay_norms;            /**< parameters of one dimension (norms, biases) do not decay */
} cvy_optimizer;

/** What the plan knows of a rule: one row of the table in plan/optimizer.c each. */
typedef struct cvy_optimizer_rule {
    cvy_op_kind op;     /**< of the step that changes a parameter */
    int moments;        /**< buffers of state that a parameter has: its velocity, or its moments */
    bool stateless_without_momentum;
    bool adapts;        /**< takes norms, but of norms and biases */
    bool directs;       /**< a step before the norms makes a direction of the gradient: op `direction` */
    cvy_op_kind direction;
} cvy_optimizer_rule;

/** The row of a rule. Cannot fail. */
const cvy_optimizer_rule *cvy_optimizer_get_rule(cvy_optimizer_kind kind);

/** Names of optimizers as users write them: sgd, momentum, nesterov, adamw, adam, lars, lamb; then NULL. */
extern const char *const cvy_optimizer_names[];

/**
 * The rule that a name stands for, for plans: of its parameters those are set that change a schedule.
 *
 * @param[in]  momentum      of momentum, nesterov and lars
 * @param[out] optimizer_out untouched where there is no such name
 */
bool cvy_optimizer_find(const char *name, double momentum, cvy_optimizer *optimizer_out);

/** The name that stands for a rule: what cvy_optimizer_find() finds. Cannot fail. */
const char *cvy_optimizer_find_name(const cvy_optimizer *optimizer);

/** Buffers of state that each parameter has under an optimizer, 0 to 2. */
int cvy_optimizer_moments(const cvy_optimizer *optimizer);

/** Whether a rule takes the norms of a parameter of @p dims dimensions. */
bool cvy_optimizer_adapts(const cvy_optimizer *optimizer, int dims);

/** Whether a parameter can be updated as soon as its own gradient is there: no norm over more than it is needed. */
bool cvy_optimizer_is_local(const cvy_optimizer *optimizer);

/** The op's parameters for a parameter of @p dims dimensions, which may be kept out of decay. */
cvy_op_params_optimizer cvy_optimizer_params(const cvy_optimizer *optimizer, int dims);

/** Formats that a plan may give to activations of convolutions. */
typedef enum cvy_layout_choice {
    CVY_LAYOUT_AUTO, /**< by what the backend runs fast */
    CVY_LAYOUT_PLAIN,
    CVY_LAYOUT_CHANNELS_LAST,
    CVY_LAYOUT_BLOCKED,
    CVY_LAYOUT_BLOCKED_INPUT, /**< and the batch goes into blocks, however few channels it has: for clocks to judge */
} cvy_layout_choice;

/** Which activations are made again in backward rather than kept. */
typedef enum cvy_recompute {
    CVY_RECOMPUTE_NONE,
    CVY_RECOMPUTE_CHEAP, /**< outputs of layers that only move bytes: norms, activations, sums, concats */
    CVY_RECOMPUTE_ALL,   /**< everything between layers that the plan chooses */
} cvy_recompute;

/** "none", "cheap", "all". Cannot fail. */
const char *cvy_recompute_name(cvy_recompute recompute);

/** One rank of many: whose schedules a plan has. */
typedef struct cvy_plan_parallel {
    const struct cvy_distribution *distribution; /**< borrowed, must outlive the plan; NULL: one rank does it all */
    int64_t rank;         /**< the schedules are this rank's, and those of all that hold as much at the same borders */
    int64_t bucket_bytes; /**< gradients that are exchanged at once, in the order backward makes them in; 0: all */
    bool overlap;         /**< gradients are exchanged on stream 1, while backward goes on; else all is on stream 0 */
    unsigned norm_axes;   /**< batch norms take their statistics over all ranks along these axes; else over a rank's */
    bool shard_optimizer; /**< ranks along the sample axis, and those of space with them, keep the state of, and update,
                               each its share of the weights whose gradients they sum; 1 along it: nothing changes */
} cvy_plan_parallel;

/** Batches that a training keeps: one that is used, and those that are read ahead. */
enum { CVY_DATA_SLOTS = 3 };

/** What a plan is made for. */
typedef struct cvy_plan_options {
    int64_t batch;              /**< samples an iteration, all ranks */
    int64_t tail_batch;         /**< samples of the last batch of an epoch; 0 where every batch is whole */
    cvy_dtype dtype;            /**< CVY_F32 or CVY_F64 */
    int micro_batches;          /**< parts that each batch goes through in, their gradients summed; 0: as many as the
                                     distribution's strategy says, or 1 */
    cvy_recompute recompute;
    bool training;              /**< false: the evaluation schedule alone */
    bool train_only;            /**< the schedule of a whole batch's training alone: for estimates */
    cvy_optimizer optimizer;
    double average;             /**< decay of the averages of all parameters, which evaluation goes by; 0: none */
    cvy_layout_choice layout;
    const cvy_layout_choice *layouts; /**< one for each layer, in place of `layout`; borrowed; NULL: none */
    const uint32_t *winograd;   /**< passes of each layer, as in its formats; borrowed; NULL: none */
    bool direct_only;           /**< the clock is not asked about Winograd's algorithm */
    const struct cvy_layer_formats *formats; /**< of an earlier plan: nothing is decided; borrowed; NULL: none */
    bool unfused;               /**< relus stay ops of their own, as frameworks run them */
    int block;                  /**< channels in a block: 8 or 16, from the machine file */
    int data_slots;             /**< batches read ahead; each takes memory */
    int64_t label_bytes;        /**< of one sample in a slot */
    cvy_backend_chain backends; /**< count 0: plan by rule, without kernels */
    cvy_scratch_book *scratch;  /**< of a plan by rule: convolutions have the scratch memory that kernels by Winograd's
                                     algorithm want, where there are any; borrowed; NULL: none has any */
    cvy_plan_parallel parallel;
} cvy_plan_options;

/** Formats of one layer's tensors. */
typedef struct cvy_layer_formats {
    cvy_format input;           /**< what it takes its inputs in */
    cvy_format output;
    cvy_format weight;          /**< of the parameter, its gradient and its optimizer state */
    cvy_format weight_backward; /**< what backward-data takes the weights in */
    cvy_format gradient;        /**< what backward-weights writes; reordered to `weight` where it differs */
    uint32_t winograd;          /**< 1 << CVY_PASS_… for each pass of a convolution that goes by Winograd's algorithm,
                                     with the weights as they are; a batch for which no backend can goes direct */
} cvy_layer_formats;

typedef struct cvy_plan {
    const cvy_model *model; /**< borrowed */
    cvy_plan_options options;
    cvy_layer_formats *formats; /**< one for each layer */
    int persistent_buffers;     /**< the first buffers of every schedule */
    cvy_schedule schedule[CVY_SCHEDULE_COUNT];
    int64_t persistent_bytes, transient_bytes; /**< of the two arenas, over all schedules */
    int format_changes; /**< reorders of activations in one training iteration */
} cvy_plan;

/**
 * Cut one training of @p model into the schedules of one rank: of the only one, or of one of many.
 *
 * Not collective: nothing is sent and no tensor memory is taken.
 *
 * @param[in]  model    finished; borrowed, must outlive the plan
 * @param[in]  options  copied
 * @param[out] plan_out released with cvy_plan_destroy(); untouched on failure
 * @retval CVY_ERR_ARG         a batch below 1, a rank that the mesh has not, a distribution of another model or batch
 * @retval CVY_ERR_INFEASIBLE  no backend runs a layer, or sizes overflow; the message names the layer
 */
cvy_status cvy_plan_create(const cvy_model *model, const cvy_plan_options *options, cvy_plan **plan_out);

/** Samples of a batch of all ranks that the plan's rank has; 0 where the batch is smaller than the sample axis. */
int64_t cvy_plan_count_samples(const cvy_plan *plan, int64_t batch);

/**
 * What the loss of a model compares with.
 *
 * @param[out] label_out     of a sample, n = 1: its class, a map of classes, or values
 * @param[out] classes_out   the loss counts correct predictions
 * @retval CVY_ERR_ARG       the last layer is no loss
 */
cvy_status cvy_plan_describe_label(const cvy_model *model, cvy_shape *label_out, bool *classes_out);

/** Release a plan and set it to NULL; NULL is fine. */
void cvy_plan_destroy(cvy_plan **plan);

/** Bytes of tensors by role over the whole run, the largest of the schedules for transient ones. */
void cvy_plan_memory(const cvy_plan *plan, int64_t by_role_out[CVY_BUFFER_ROLE_COUNT]);

/**
 * Choose for each layer the layout in which a training iteration is fastest by the clock: kernels are measured on this
 * machine with the threads that are set, for a few samples of the batch. The net is cut into regions where all paths
 * meet in one tensor; each region has one layout, and reorders between regions are counted. A convolution's pass goes
 * by Winograd's algorithm where that is clearly faster than to sum directly, unless the options say direct only.
 *
 * Not collective. Takes about as long as ten iterations of those samples, and memory for one op at a time. What a
 * kernel takes that is far slower than another one for the same pass is known less well (backend/stopwatch.h).
 *
 * @param[in]  options      as for cvy_plan_create(), with backends; layout, layouts, winograd and formats do not count
 * @param[in]  threads      that are set
 * @param[out] layouts_out  one for each layer; the caller's array
 * @param[out] winograd_out passes of each layer, for the plan's options; the caller's array
 */
cvy_status cvy_layout_measure(const cvy_model *model, const cvy_plan_options *options, int threads,
                              cvy_layout_choice *layouts_out, uint32_t *winograd_out);

/**
 * The op of a layer's pass by Winograd's algorithm.
 *
 * @param[in]  op           of a step of @p plan, direct
 * @param[out] winograd_out the same op otherwise; backward-data takes the weights as they are, not reordered
 * @return false, and nothing is written, where no backend of the plan has a kernel for it
 */
bool cvy_plan_find_winograd(const cvy_plan *plan, int layer, const cvy_op *op, cvy_op *winograd_out);

/** "auto", "plain", "channels-last", "blocked", "blocked-input". Cannot fail. */
const char *cvy_layout_choice_name(cvy_layout_choice choice);

/**
 * Read the formats of a saved plan.
 *
 * @param[in]  block       channels in a block on this machine: a plan for another one is refused
 * @param[out] formats_out one for each layer of @p model; the caller's array
 * @retval CVY_ERR_INPUT the file is no plan of this model, or is damaged; file, line, what was found
 */
cvy_status cvy_plan_load_formats(const char *path, const cvy_model *model, int block, cvy_layer_formats *formats_out);

/**
 * Save a plan's decisions: mesh, batch, precision, formats, model hash. Not collective.
 *
 * @retval CVY_ERR_IO the file could not be written
 */
cvy_status cvy_plan_save(const cvy_plan *plan, const char *path);

#endif
