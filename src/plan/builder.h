/* What the files that make a schedule share: a schedule under construction and what is known of each layer so far. */
#ifndef CVY_PLAN_BUILDER_H
#define CVY_PLAN_BUILDER_H

#include "plan/layout.h"
#include "plan/share.h"

/** A part of a gradient that one consumer of a tensor made; parts of a layer form a list. */
typedef struct cvy_contribution {
    int buffer;
    int consumer, input; /**< it lies as the gradient of this input of that layer does */
    int next;            /**< -1 ends the list */
} cvy_contribution;

/** A layer's output as a consumer asked for it: in another format, or elsewhere. Those of a layer form a list. */
typedef struct cvy_variant {
    int buffer;
    int consumer, input; /**< that asked first */
    bool halo;           /**< with the rows that its op reaches */
    int next;            /**< -1 ends the list */
} cvy_variant;

/** Gradients that are exchanged together. */
typedef struct cvy_bucket {
    int buffer;    /**< -1: none is open */
    int64_t bytes; /**< so far */
    int opened;    /**< buckets were opened before */
    int first, last; /**< parameters, linked; -1 */
} cvy_bucket;

/** Gradients that are exchanged together, and whose parameters are updated by shares. */
typedef struct cvy_shard {
    unsigned axes;       /**< of the ranks that sum them */
    unsigned key;        /**< cvy_bucket_key() of its parameters */
    bool open;           /**< while buckets are laid out: there is room */
    bool scattered;      /**< this rank has its share of the sum, and has not updated yet */
    int64_t bytes;       /**< of the parameters, and the gaps between them */
    int64_t share_bytes; /**< of each rank */
    int64_t ranks, place; /**< of the group, and this rank's in it */
    int last_layer;      /**< the first of the model's: its gradients come last */
    int weights;         /**< buffer */
    int gradients;       /**< buffer; -1 while backward has not come to it, and from the reduction on */
    int bucket;          /**< its number */
} cvy_shard;

/** Sums of squares of whole tensors. */
typedef enum cvy_totals {
    CVY_TOTALS_CLIP,  /**< of all gradients, to clip them */
    CVY_TOTALS_NORMS, /**< of what a rule adapts to: two places a parameter */
    CVY_TOTALS_COUNT
} cvy_totals;

/** What is known of a layer while its schedule is made: indices of buffers, -1 where there is none. */
typedef struct cvy_layer_buffers {
    int output;
    int gradient;          /**< of the output, complete but for gradient1 */
    int gradient1;         /**< its last part, where the layer's own backward pass adds it */
    int contribution;      /**< head of the list of its parts */
    int variant;           /**< head of the list of others that its output was made into */
    int relu;              /**< the relu layer that this layer's op makes, too */
    int carrier;           /**< of such a relu: the layer whose op makes it */
    int masker;            /**< of a relu: the layer whose gradient kernel takes the relu's gradient, too */
    int saved[CVY_ROLE_COUNT];
    bool needs_gradient;   /**< something trainable lies at or before it */
    bool dropped;          /**< the output is gone after forward: whoever reads it in backward makes it again first */
    bool wanted;           /**< while outputs are made again: this one is among them */
} cvy_layer_buffers;

/** A schedule under construction. */
typedef struct cvy_builder {
    cvy_plan *plan;
    const cvy_model *model;
    const cvy_layer_formats *formats;
    cvy_schedule *schedule;
    cvy_seat seat;           /**< its samples are those of the micro-batch under way */
    int micro_batch;
    bool training;
    int stages, first_layer, end_layer; /**< of the rank's stage; all layers where there is one */
    cvy_layer_buffers *layer;  /**< of the micro-batch under way */
    cvy_layer_buffers *layers; /**< of all micro-batches of a pipeline; else of one at a time */
    int *statistics;         /**< mean and variance that each layer saved, a pair a layer, micro-batch by micro-batch */
    int *parameter;          /**< buffer of each parameter */
    int *parameter_gradient; /**< of the micro-batch under way, where its backward has come by */
    int *gradient_sum;       /**< over the micro-batches that have come by */
    int *updated;            /**< what this rank updates of each parameter: it, or a piece of it; -1: nothing */
    int *moment[2];
    int own_squares[CVY_TOTALS_COUNT]; /**< this rank's, where the sums of all ranks are added up; -1 */
    int *average;            /**< of each parameter over updates */
    cvy_contribution *contribution;
    int contributions, contribution_capacity;
    cvy_variant *variant;
    int variants, variant_capacity;
    cvy_bucket bucket[1 << CVY_AXES]; /**< open ones, by cvy_bucket_key() */
    int *bucket_next;        /**< of each parameter: the next in its bucket */
    int buckets_opened, buckets_closed;
    cvy_shard *shard;
    int shards, shard_capacity;
    int *shard_of;           /**< of each parameter; -1: each rank updates all of it */
    int64_t *shard_offset;   /**< of each parameter, in bytes */
    int waiting, last_waiting; /**< parameters whose update waits for the end of backward, linked as in buckets */
} cvy_builder;

/** Everything that a step is made from, besides its op. */
typedef struct cvy_step_spec {
    cvy_step_kind kind;
    cvy_phase phase;
    int layer;
} cvy_step_spec;

/** Append a buffer; `first_step`, `last_step` and `offset` come later. Its bytes follow from the tensor. */
cvy_status cvy_builder_add_buffer(cvy_builder *b, const cvy_buffer *buffer, int *index_out);

/**
 * Append a step that runs @p op on @p buffer, one for each operand. The backends are asked who runs it, and the scratch
 * memory that it wants becomes one more buffer.
 *
 * @retval CVY_ERR_INFEASIBLE no backend runs it; the layer is named
 */
cvy_status cvy_builder_add_step(cvy_builder *b, const cvy_step_spec *spec, const cvy_op *op, const int *buffer);

/**
 * Find the scratch memory of a step of a plan without backends: 0, but for convolutions where the plan has a book of
 * what kernels by Winograd's algorithm want. @retval CVY_ERR_MEMORY
 */
cvy_status cvy_builder_find_scratch(const cvy_builder *b, int layer, const cvy_op *op, int64_t *bytes_out);

/** Before forward: decide which relus are part of the op before them. */
void cvy_fuse_relus(cvy_builder *b);

/** Whether the op of a layer's pass is a relu's too: of the one that it carries, or masks. */
bool cvy_fuse_makes_relu(const cvy_builder *b, int layer, cvy_op_kind kind, cvy_op_pass pass);

/** Whether a layer is a relu whose gradient is part of that of the op before it, or behind it. */
bool cvy_fuse_leaves_gradient(const cvy_builder *b, int layer);

/** Append a control step that touches one or two buffers; @p second -1: one. */
cvy_status cvy_builder_add_control(cvy_builder *b, cvy_phase phase, cvy_access access, int first, int second);

/**
 * Append a reorder of @p source into a new buffer of @p format, of the source's layer. Where both lie alike there is no
 * step, and the new buffer is a view.
 */
cvy_status cvy_builder_add_reorder(cvy_builder *b, const cvy_step_spec *spec, int source, cvy_format format,
                                   int *index_out);

/** A communication step to be. */
typedef struct cvy_exchange_spec {
    cvy_step_spec step;
    int stream;
    cvy_exchange exchange;
    int uses;
    cvy_use use[3];
    int64_t packed_bytes; /**< of the buffer in which elements travel; 0: none */
} cvy_exchange_spec;

/** Append a communication step; its messages are there already. */
cvy_status cvy_builder_add_exchange(cvy_builder *b, const cvy_exchange_spec *spec);

/** Append a message, of the exchange to come. */
cvy_status cvy_builder_add_message(cvy_builder *b, const cvy_message *message);

/**
 * Append the sum of two buffers that lie alike, as a step of a layer's backward pass.
 *
 * @param[in]  total      the sum's buffer but for its memory, which is its own
 * @param[out] index_out  may be where an operand's index stands
 */
cvy_status cvy_builder_add_sum(cvy_builder *b, int layer, const int part[2], const cvy_buffer *total, int *index_out);

/** Append a buffer that is @p source under another shape, in plain order. */
cvy_status cvy_builder_add_view(cvy_builder *b, int source, const cvy_buffer *like, int *index_out);

/** Describe a buffer as large as a layer's output, or its gradient, on this rank; it is not appended. */
cvy_buffer cvy_builder_activation(const cvy_builder *b, int layer, cvy_content content, cvy_format format);

/** The same of another tensor of a layer: of an input (or its gradient) with the rows that windows reach. */
cvy_buffer cvy_builder_describe(const cvy_builder *b, cvy_spread_of of, int layer, int i, cvy_format format);

/** Describe this rank's labels of the micro-batch under way; they are not appended. */
cvy_status cvy_builder_describe_label(const cvy_builder *b, cvy_buffer *label_out);

/* ---- from one rank to another ---- */

/**
 * Bring a tensor from one spread to another, axis by axis: first what makes it smaller.
 *
 * @param[in]     layer   whose steps these are
 * @param[in]     shape   as the model has it
 * @param[in]     format  that it gets where anything moves but sums in place
 * @param[in,out] buffer  of the one, then of the other; unchanged where nothing moves
 */
cvy_status cvy_build_redistribution(cvy_builder *b, int layer, const cvy_shape *shape, cvy_format format,
                                    const cvy_spread spread[2], int *buffer);

/** Find, or make, input @p i of a layer as its op takes it: the right share, with a halo, in the layer's format. */
cvy_status cvy_build_input(cvy_builder *b, int layer, int i, cvy_phase phase, int *buffer_out);

/** After a layer's op: bring its output from where the op left it to where others find it. */
cvy_status cvy_build_output(cvy_builder *b, int layer, int raw);

/** Where the op of a layer reaches in space: rows of its input along d,h,w, and the padding that is left there. */
typedef struct cvy_reach {
    cvy_interval rows[3];
    int64_t before[3], after[3];
} cvy_reach;

/** Find a layer's reach. @param[in] op  of the layer, as made for whole samples */
void cvy_reach_find(const cvy_seat *seat, const cvy_model *model, int layer, const cvy_op *op, cvy_reach *reach_out);

/** Append what brings the halo of input @p i of a layer to a share of it: the rows that its op reaches. */
cvy_status cvy_build_halo(cvy_builder *b, int layer, int i, cvy_format format, int *buffer);

/** The other way: gradients of rows that are another rank's go there, and those that come are added. */
cvy_status cvy_build_halo_gradient(cvy_builder *b, int layer, int i, int *buffer);

/** Whether a layer takes input @p i with a halo. */
bool cvy_halo_is_needed(const cvy_builder *b, int layer, int i);

/** Whether one tensor with its halo serves two layers that need one, on every rank. */
bool cvy_halo_serves(const cvy_builder *b, int layer, int other);

/** Make an op of a layer's pass, for this rank's part: windows, groups, counts. */
void cvy_build_local_op(const cvy_builder *b, int layer, cvy_op_pass pass, cvy_op *op_out);

/** Elements of a channel that a batch norm takes its statistics over in a micro-batch: of all ranks that share them. */
int64_t cvy_norm_count(const cvy_builder *b, int layer, int micro_batch);

/** Axes along which a batch norm takes its statistics over all ranks; 0: over this rank's samples alone. */
unsigned cvy_norm_axes(const cvy_builder *b, int layer);

/** After STATS, or GRAD_STATS, of such a batch norm: bring those of all ranks together. */
cvy_status cvy_build_norm_exchange(cvy_builder *b, int layer, cvy_op_pass pass, cvy_phase phase);

/** Put the gradients of a layer's parameters into buckets, of the axes that they are to be summed over. */
cvy_status cvy_bucket_take(cvy_builder *b, int layer);

/** After backward: exchange what is in buckets still. */
cvy_status cvy_bucket_close_all(cvy_builder *b);

/** Update what has waited for the end of backward. */
cvy_status cvy_bucket_update(cvy_builder *b);

/** After the parameters: lay those whose update is shared out side by side. */
cvy_status cvy_shard_decide(cvy_builder *b);

/** Describe this rank's piece of such a parameter, as it lies in memory; it is not appended. False: it has none. */
bool cvy_shard_describe_piece(const cvy_builder *b, int parameter, cvy_buffer *piece_out);

/** Let the gradient of such a parameter lie in its bucket. */
cvy_status cvy_shard_put(cvy_builder *b, int parameter);

/** Sum the buckets that are complete once backward has come to a layer; update them where nothing else is needed. */
cvy_status cvy_shard_scatter(cvy_builder *b, int layer);

/** After backward: update by shares, and send each other the weights, what has waited. */
cvy_status cvy_shard_update(cvy_builder *b);

/** Send each other the weights of a bucket. */
cvy_status cvy_shard_gather(cvy_builder *b, int index);

/** Whether a parameter has a place among the sums of squares. */
bool cvy_totals_have(const cvy_builder *b, int parameter);

/** Whether it is this rank that counts what it has of a parameter. */
bool cvy_totals_count(const cvy_builder *b, int parameter);

/** Append numbers of the whole net, in double. */
cvy_status cvy_totals_add(cvy_builder *b, cvy_content content, int64_t count, bool persistent, int *index_out);

/** With what persists: this rank's sums, where those of all are added up. */
cvy_status cvy_totals_persist(cvy_builder *b);

/** Find, or append, the buffer that this rank's sums go to. */
cvy_status cvy_totals_open(cvy_builder *b, cvy_totals which, int64_t slots, int *squares_out);

/** Add up the sums of all ranks. @param[in,out] squares  this rank's; then those of all */
cvy_status cvy_totals_close(cvy_builder *b, int *squares);

/** Axes over which the gradient of a parameter is summed. */
unsigned cvy_bucket_axes(const cvy_builder *b, int parameter);

/** What gradients of one bucket have in common: those axes, and whether channels are shared out; 0: no bucket. */
unsigned cvy_bucket_key(const cvy_builder *b, int parameter);

/** Persistent buffers: parameters, optimizer state, slots of the loader. The same for all schedules of a plan. */
cvy_status cvy_build_persistent(cvy_builder *b);

/** Steps of the forward pass; inference passes where the builder is not training. */
cvy_status cvy_build_forward(cvy_builder *b);

/**
 * Steps that make a layer's output once: its passes, or the view that it is.
 *
 * @param[in] phase FORWARD, or RECOMPUTE: then statistics that were saved are used, not taken again
 */
cvy_status cvy_build_layer_forward(cvy_builder *b, int layer, cvy_phase phase);

/** Steps of the backward pass. */
cvy_status cvy_build_backward(cvy_builder *b);

/** After forward: decide which outputs are dropped, as the plan's options say. */
cvy_status cvy_recompute_decide(cvy_builder *b);

/** Make a layer's output again where it was dropped, and what that needs before it. */
cvy_status cvy_recompute_restore(cvy_builder *b, int layer);

/** Forward, and in training backward, of all micro-batches, in the order of the pipeline. */
cvy_status cvy_build_micro_batches(cvy_builder *b);

/** The tensor that comes from the stage before. */
cvy_status cvy_pipeline_receive(cvy_builder *b);

/** The tensor that goes to the stage after. */
cvy_status cvy_pipeline_send(cvy_builder *b);

/** The gradient that comes from the stage after. */
cvy_status cvy_pipeline_receive_gradient(cvy_builder *b);

/** The gradient that goes to the stage before. */
cvy_status cvy_pipeline_send_gradient(cvy_builder *b);

/** Start a micro-batch: nothing is known of any layer yet. */
void cvy_micro_batch_start(cvy_builder *b, int micro_batch);

/** Go on with a micro-batch that was started. */
void cvy_micro_batch_resume(cvy_builder *b, int micro_batch);

/** Add the gradients of a layer's parameters to those of the micro-batches before. */
cvy_status cvy_micro_batch_sum_gradients(cvy_builder *b, int layer);

/** After backward: note the statistics that each norm saved. */
void cvy_micro_batch_keep_statistics(cvy_builder *b);

/** After the last micro-batch: bring the statistics of all of them together, in the first one's place. */
cvy_status cvy_micro_batch_merge_statistics(cvy_builder *b);

/**
 * After backward of a layer: update its parameters at once, where their gradients are complete and nothing else is
 * needed. No step behind it reads them in this iteration.
 */
cvy_status cvy_build_layer_update(cvy_builder *b, int layer);

/** Update one parameter, by a rule that needs nothing but its gradient. */
cvy_status cvy_build_parameter_update(cvy_builder *b, int parameter);

/** After backward: running statistics, the weights that are still to be updated, averages. */
cvy_status cvy_build_update(cvy_builder *b);

/** One pass of a layer: makes the op, finds or makes a buffer for each operand, appends the step. */
cvy_status cvy_build_pass(cvy_builder *b, int layer, cvy_op_pass pass, cvy_phase phase);

/** Note that @p buffer is a part of the gradient of input @p i of @p consumer. */
cvy_status cvy_builder_contribute(cvy_builder *b, int consumer, int i, int buffer);

/* ---- what happens to a schedule once its steps are there, in this order ---- */

/** Let outputs lie on inputs that nobody reads later, where the op allows it. */
cvy_status cvy_schedule_place_in_place(cvy_schedule *schedule);

/** Find lifetimes and give every buffer its place in the two arenas. */
cvy_status cvy_schedule_place(cvy_schedule *schedule);

/** Derive what each step waits for from what it reads and writes, and from where that lies. */
cvy_status cvy_schedule_derive_dependencies(cvy_schedule *schedule);

#endif
