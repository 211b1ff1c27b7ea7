/*
 * A schedule: the steps of one iteration for one class of ranks, the buffers they use, and what each waits for. The
 * oracle walks it and adds seconds and bytes; the runtime walks it and acts. Neither describes a step in its own words.
 */
#ifndef CVY_PLAN_SCHEDULE_H
#define CVY_PLAN_SCHEDULE_H

#include "op/collective.h"
#include "op/op.h"
#include "tensor/interval.h"

typedef enum cvy_step_kind {
    CVY_STEP_KERNEL,     /**< an op of a layer */
    CVY_STEP_COLLECTIVE, /**< a collective over the groups of mesh axes */
    CVY_STEP_EXCHANGE,   /**< a set of point-to-point messages */
    CVY_STEP_LOCAL,      /**< slice, pack, reorder, sum, zero, copy: an op that no layer asked for */
    CVY_STEP_UPDATE,     /**< weights, running statistics */
    CVY_STEP_CONTROL,    /**< the batch is taken in; the loss is looked at */
} cvy_step_kind;

/** Streams: on each, steps run in their order; between them as their dependencies say. */
typedef enum cvy_stream {
    CVY_STREAM_MAIN,         /**< what computes, and communication that others wait for at once */
    CVY_STREAM_GRADIENTS,    /**< exchange of gradients of weights, where it overlaps */
    CVY_STREAM_FORWARD_IN,   /**< from the stage before */
    CVY_STREAM_FORWARD_OUT,  /**< to the stage after */
    CVY_STREAM_GRADIENT_IN,  /**< from the stage after */
    CVY_STREAM_GRADIENT_OUT, /**< to the stage before */
    CVY_STREAM_COUNT
} cvy_stream;

/** Phases of an iteration: the words of a breakdown. */
typedef enum cvy_phase {
    CVY_PHASE_IO,
    CVY_PHASE_FORWARD,
    CVY_PHASE_RECOMPUTE,
    CVY_PHASE_BACKWARD,
    CVY_PHASE_HALO,
    CVY_PHASE_REDISTRIBUTE,
    CVY_PHASE_GRADIENT_EXCHANGE,
    CVY_PHASE_UPDATE,
    CVY_PHASE_COUNT
} cvy_phase;

/** What a buffer holds: the words of a memory breakdown. */
typedef enum cvy_buffer_role {
    CVY_BUFFER_WEIGHTS,     /**< parameters and running statistics */
    CVY_BUFFER_GRADIENTS,   /**< of parameters */
    CVY_BUFFER_OPTIMIZER,
    CVY_BUFFER_ACTIVATIONS, /**< outputs of layers, their gradients, what forward saves for backward */
    CVY_BUFFER_WORKSPACE,   /**< scratch memory of kernels, reordered copies */
    CVY_BUFFER_COMMUNICATION,
    CVY_BUFFER_DATA,        /**< batches read ahead */
    CVY_BUFFER_ROLE_COUNT
} cvy_buffer_role;

/** Which tensor of its layer or parameter a buffer is. */
typedef enum cvy_content {
    CVY_CONTENT_PARAMETER,       /**< the parameter itself (index in `parameter`) */
    CVY_CONTENT_GRADIENT,        /**< dw, db */
    CVY_CONTENT_MOMENT,          /**< optimizer state; `part` 0 or 1 */
    CVY_CONTENT_OUTPUT,          /**< y of a layer */
    CVY_CONTENT_OUTPUT_GRADIENT, /**< dy of a layer; `part`: which consumer's contribution */
    CVY_CONTENT_SAVED,           /**< statistics, window, probability: `part` is the cvy_role */
    CVY_CONTENT_COPY,            /**< the same elements in another format */
    CVY_CONTENT_LABEL,
    CVY_CONTENT_LOSS,
    CVY_CONTENT_SCRATCH,
    CVY_CONTENT_BATCH,           /**< a slot of the loader: images and labels, raw; `part` is the slot */
    CVY_CONTENT_SQUARES,         /**< sums of squares: of gradients for clipping, or of what a rule adapts to */
    CVY_CONTENT_AVERAGE,         /**< of a parameter over updates */
    CVY_CONTENT_SCALE,           /**< what clipping multiplies gradients with */
    CVY_CONTENT_BUCKET,          /**< parameters, or gradients, that lie side by side to be updated by shares; a rank's
                                      share of them, or its piece of one, in the order in which they lie */
} cvy_content;

/** A stretch of memory with a meaning. */
typedef struct cvy_buffer {
    cvy_buffer_role role;
    cvy_content content;
    int layer, parameter, part; /**< -1 where it has none */
    cvy_shape global;           /**< logical extents over all ranks */
    cvy_interval local[CVY_MAX_DIMS]; /**< what this class of ranks holds of each dimension, from first to last */
    int stretched;              /**< the dimension of which it holds several stretches, ... */
    cvy_intervals stretches;    /**< ... and these; none where each dimension is held in one */
    cvy_tensor tensor;          /**< local extents, type, format */
    int64_t bytes;              /**< exact, padding of the format included */
    int first_step, last_step;  /**< first writer, last user; whole run where persistent */
    int alias_of;               /**< lies on this buffer's memory; -1 */
    int64_t alias_offset;       /**< from this byte of it on; 0 but in a bucket */
    bool persistent;            /**< lives from one iteration to the next */
    int64_t offset;             /**< in the arena of its lifetime (persistent or transient), that of aliases too */
} cvy_buffer;

/** How a step touches a buffer. */
typedef struct cvy_use {
    int buffer;
    cvy_access access;
    bool in_place; /**< this write lies on an input of the same step */
} cvy_use;

/** What a step waits for. */
typedef struct cvy_dependency {
    int step;
    int distance; /**< 0: of this iteration; 1: of the one before */
} cvy_dependency;

/** A message to, or from, a peer. */
typedef struct cvy_message {
    int peer_offset[6]; /**< in mesh coordinates (stage, sample, depth, height, width, channel), relative */
    cvy_interval rows[3]; /**< of d,h,w of a whole sample, in a halo; else empty */
    int64_t bytes;      /**< uneven shares: each its own */
    bool receive;
} cvy_message;

/**
 * What a collective or an exchange moves; communication steps only. A step uses what it sends (READ) and where that
 * goes (WRITE), or buffers that it changes in place (UPDATE), and last, where elements do not lie as they travel, a
 * buffer of role COMMUNICATION for them. Logical elements travel, without the padding of formats, and the two formats
 * may differ; but a bucket of gradients, or of weights, travels as it lies. Who has which elements is in `local` of the
 * buffers.
 */
typedef struct cvy_exchange {
    cvy_collective collective;
    unsigned axes;       /**< bit i: mesh axis i takes part */
    int first_message, messages; /**< of an exchange; of an all-to-all, too */
    int64_t bytes;       /**< of the buffer that is reduced or broadcast; all-gather: that this rank ends with;
                              reduce-scatter, all-to-all: that it brings; exchange: that it sends */
    int bucket;          /**< of gradients; -1 */
    bool sum;            /**< a reduction; what an exchange brings is added to what is there */
    bool merge;          /**< mean and variance of the ranks become those of all together, by Chan's formulas: what
                              travels is, for each channel, the count, the mean and the sum of squares in double */
    int64_t count;       /**< elements that this rank's stand for */
} cvy_exchange;

/** One step. */
typedef struct cvy_step {
    cvy_step_kind kind;
    cvy_phase phase;
    int layer;                         /**< -1 where it belongs to none */
    int micro_batch, chunk;            /**< pipelines; 0 otherwise */
    int op;                            /**< index into the table of ops; -1 for control and communication */
    int first_use, uses;               /**< for ops: in the order of the op's operands */
    int first_dependency, dependencies;
    int stream;                        /**< a cvy_stream */
    int issue;                         /**< the order on a stream is total, and equal on all members of a group */
    int every, offset;                 /**< runs when iteration % every == offset */
    int exchange;                      /**< index; -1 */
    double estimate_s, estimate_error; /**< written by the oracle, read by reports; 0 until then */
} cvy_step;

/** Who runs an op, asked of the backends when the plan is made; empty words in a plan by rule. */
typedef struct cvy_choice {
    char backend[16];
    char algorithm[48];
    int64_t scratch_bytes;
} cvy_choice;

/** What a schedule takes. */
typedef struct cvy_memory_plan {
    int64_t persistent_bytes;               /**< of the arena that outlives iterations */
    int64_t transient_bytes;                /**< of the arena of one iteration: its high-water mark */
    int64_t live_bytes;                     /**< most bytes that live at once: no placement needs less */
    int peak_step;                          /**< where that is */
    int64_t by_role[CVY_BUFFER_ROLE_COUNT]; /**< persistent ones, and transient ones that live at the peak step */
} cvy_memory_plan;

/** The steps of an iteration. Arrays are indexed by the numbers above. */
typedef struct cvy_schedule {
    int64_t batch; /**< samples of this rank an iteration, at least 1 */
    cvy_interval samples; /**< these of the batch of all ranks. Empty on ranks beyond a last batch that is smaller than
                               the sample axis: they take one sample that counts for nothing, as all others must not
                               wait for them in vain */
    int micro_batches; /**< parts that the batch goes through in, balanced, one after the other; 1: whole */
    bool training;
    int steps, buffers, ops, uses, dependencies, exchanges, messages;
    cvy_step *step;
    cvy_buffer *buffer;
    cvy_op *op;
    cvy_choice *choice; /**< as many as ops */
    cvy_use *use;
    cvy_dependency *dependency;
    cvy_exchange *exchange;
    cvy_message *message;
    int input_buffer, label_buffer; /**< what the runtime fills, of the last micro-batch; -1 */
    int output_buffer, loss_buffer; /**< what it reads, of the last micro-batch; -1 */
    cvy_memory_plan memory;
    int step_capacity, buffer_capacity, op_capacity, use_capacity, dependency_capacity, exchange_capacity;
    int message_capacity;
} cvy_schedule;

/** Release what a schedule owns and empty it. */
void cvy_schedule_clear(cvy_schedule *schedule);

/** The buffer whose memory a buffer lies on: itself, or the end of its chain of aliases. */
int cvy_schedule_root(const cvy_schedule *schedule, int buffer);

/** Bytes from the begin of that memory to a buffer on it. */
int64_t cvy_schedule_alias_offset(const cvy_schedule *schedule, int buffer);

/** Samples [begin, end) of the batch that a micro-batch takes. Cannot fail. */
cvy_interval cvy_schedule_micro_batch(const cvy_schedule *schedule, int micro_batch);

/** A hash over steps, ops, uses and order: equal on all ranks of a class, compared at start. */
uint64_t cvy_schedule_hash(const cvy_schedule *schedule);

/** "compute", "gradients", "to the stage after", … Cannot fail. */
const char *cvy_stream_name(cvy_stream stream);

/** "forward", "gradient_exchange", … Cannot fail. */
const char *cvy_phase_name(cvy_phase phase);

/** "weights", "activations", … Cannot fail. */
const char *cvy_buffer_role_name(cvy_buffer_role role);

#endif
