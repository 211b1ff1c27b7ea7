/* What the files that make a schedule share: a schedule under construction and what is known of each layer so far. */
#ifndef CVY_PLAN_BUILDER_H
#define CVY_PLAN_BUILDER_H

#include "plan/layout.h"

/** A part of a gradient that one consumer of a tensor made; parts of a layer form a list. */
typedef struct cvy_contribution {
    int buffer;
    int next; /**< -1 ends the list */
} cvy_contribution;

/** What is known of a layer while its schedule is made: indices of buffers, -1 where there is none. */
typedef struct cvy_layer_buffers {
    int output;
    int gradient;          /**< of the output, complete but for gradient1 */
    int gradient1;         /**< its last part, where the layer's own backward pass adds it */
    int contribution;      /**< head of the list of its parts */
    int copy;              /**< the output in the one other format that a consumer asked for */
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
    int64_t batch;           /**< samples of the micro-batch under way */
    int micro_batch;
    bool training;
    cvy_layer_buffers *layer;
    int *statistics;         /**< mean and variance that each layer saved, a pair a layer, micro-batch by micro-batch */
    int *parameter;          /**< buffer of each parameter */
    int *parameter_gradient; /**< of the micro-batch under way, where its backward has come by */
    int *gradient_sum;       /**< over the micro-batches that have come by */
    int *moment[2];
    int *average;            /**< of each parameter over updates */
    cvy_contribution *contribution;
    int contributions, contribution_capacity;
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

/** Append a buffer that is @p source under another shape, in plain order. */
cvy_status cvy_builder_add_view(cvy_builder *b, int source, const cvy_buffer *like, int *index_out);

/** Describe a buffer as large as a layer's output in this schedule; it is not appended. */
cvy_buffer cvy_builder_activation(const cvy_builder *b, int layer, cvy_content content, cvy_format format);

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

/** Start a micro-batch: nothing is known of any layer yet. */
void cvy_micro_batch_start(cvy_builder *b, int micro_batch);

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

/** After backward: running statistics, the weights that are still to be updated, averages. */
cvy_status cvy_build_update(cvy_builder *b);

/** One pass of a layer: makes the op, finds or makes a buffer for each operand, appends the step. */
cvy_status cvy_build_pass(cvy_builder *b, int layer, cvy_op_pass pass, cvy_phase phase);

/** Whether a pass of a layer goes by Winograd's algorithm: its formats say so, and a backend can for this batch. */
bool cvy_builder_goes_by_winograd(const cvy_builder *b, int layer, cvy_op_pass pass);

/** Note that @p buffer is a part of the gradient of @p layer's output. */
cvy_status cvy_builder_contribute(cvy_builder *b, int layer, int buffer);

/* ---- what happens to a schedule once its steps are there, in this order ---- */

/** Let outputs lie on inputs that nobody reads later, where the op allows it. */
cvy_status cvy_schedule_place_in_place(cvy_schedule *schedule);

/** Derive what each step waits for from what it reads and writes. */
cvy_status cvy_schedule_derive_dependencies(cvy_schedule *schedule);

/** Find lifetimes and give every buffer its place in the two arenas. */
cvy_status cvy_schedule_place(cvy_schedule *schedule);

#endif
