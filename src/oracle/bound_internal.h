/* What the files behind oracle/bound.h share: private to the oracle. */
#ifndef CVY_ORACLE_BOUND_INTERNAL_H
#define CVY_ORACLE_BOUND_INTERNAL_H

#include "oracle/bound.h"

/** When a step runs; the two recomputations are those of CVY_RECOMPUTE_CHEAP and CVY_RECOMPUTE_ALL. */
typedef enum cvy_bound_set {
    CVY_BOUND_FORWARD,
    CVY_BOUND_BACKWARD,
    CVY_BOUND_CHEAP,
    CVY_BOUND_ALL,
    CVY_BOUND_UPDATE, /**< once an iteration; the others once a micro-batch */
    CVY_BOUND_SETS
} cvy_bound_set;

enum {
    CVY_RECOMPUTE_COUNT = CVY_RECOMPUTE_ALL + 1,
    CVY_BOUND_SIZES = 64,
    CVY_BOUND_AXES_SETS = 8,
    CVY_BOUND_SLOTS = 4096 /**< of kernels by hash; a power of two */
};

/** Which extents an operand has on a rank. */
typedef enum cvy_bound_like {
    CVY_LIKE_WHOLE,   /**< those of the model */
    CVY_LIKE_SAMPLES, /**< the first alone is cut */
    CVY_LIKE_OUTPUT,
    CVY_LIKE_WEIGHTS, /**< of several dimensions */
    CVY_LIKE_VECTOR,  /**< of a bias, of scales, of statistics */
    CVY_LIKE_INPUT    /**< and so on: one more for each input */
} cvy_bound_like;

/** An op of the plan on one rank; equal ones are one. */
typedef struct cvy_bound_op {
    cvy_op op;
    uint64_t hash;
    unsigned char like[CVY_MAX_OPERANDS];
} cvy_bound_op;

/** A step: its op runs in a set, for a layer. */
typedef struct cvy_bound_piece {
    int op, layer;
    cvy_bound_set set;
} cvy_bound_piece;

/** Memory that lives at the peak of the plan on one rank. */
typedef struct cvy_bound_held {
    cvy_content content;
    int layer, consumer, parameter;
    double elements; /**< of one sample; of a parameter all */
} cvy_bound_held;

/** The model on one rank. */
typedef struct cvy_bound_table {
    int ops, pieces, held[CVY_RECOMPUTE_COUNT];
    int op_capacity, piece_capacity, held_capacity[CVY_RECOMPUTE_COUNT];
    cvy_bound_op *op;
    cvy_bound_piece *piece;
    cvy_bound_held *held_buffer[CVY_RECOMPUTE_COUNT];
    cvy_op_kind *kind; /**< of each layer's op; CVY_OP_KIND_COUNT: none */
} cvy_bound_table;

/** A layer on the first rank of a block: extents without n, as in tensors (c is number 1). */
typedef struct cvy_bound_share {
    int64_t input[CVY_MAX_INPUTS][CVY_MAX_DIMS];
    int64_t raw[CVY_MAX_DIMS];    /**< of the output as the op leaves it */
    int64_t output[CVY_MAX_DIMS]; /**< as others find it */
    int weights_dim;              /**< that is cut; -1 */
    int64_t weights_extent;       /**< of that one */
    int64_t vector_extent;        /**< of vectors; 0: none */
    int64_t slices, groups;
    unsigned halos;               /**< axes along which the input has one */
    uint64_t hash;
} cvy_bound_share;

/** What lies between a layer and those that take its output. */
typedef struct cvy_bound_edge {
    int first;                 /**< of them; 0: none */
    unsigned gathered, sliced; /**< axes along which some take it whole; take parts of it */
    unsigned summed;           /**< axes along which they leave sums of its gradient */
} cvy_bound_edge;

/** An op on the first rank, and how often it runs. */
typedef struct cvy_bound_kernel {
    cvy_op op;
    const cvy_bound_op *of;
    uint64_t hash;
    double slices;
    double times[CVY_BOUND_SETS];
    double seconds; /**< of one, at the size that was priced last */
} cvy_bound_kernel;

/** Something that is sent for each micro-batch, and how often in forward and in backward. */
typedef struct cvy_bound_sending {
    cvy_collective collective; /**< point-to-point: a halo, in both directions along `axes` */
    unsigned axes;
    double sample_bytes, fixed_bytes;
    double times[2];
    double seconds; /**< of one, at the size that was priced last */
} cvy_bound_sending;

/** A layer for which something is sent. */
typedef struct cvy_bound_link {
    int sending, layer;
    double times; /**< forward and backward */
} cvy_bound_link;

/** Gradients that are summed over the same axes. */
typedef struct cvy_bound_gradients {
    unsigned axes;
    double items;
    double open_items; /**< in the last bucket, which is not full */
    int buckets;       /**< the last one counted */
    int tensors;
} cvy_bound_gradients;

/** Seconds of a micro-batch of so many samples a rank. */
typedef struct cvy_bound_seconds {
    int64_t samples;
    double set_s[CVY_BOUND_UPDATE];
    double sent_s;    /**< of forward and backward, what is sent */
    double slowest_s; /**< of what no stage can divide, forward and backward */
} cvy_bound_seconds;

struct cvy_bound {
    const cvy_model *model;
    const cvy_machine *machine;
    cvy_oracle_options options;
    cvy_compute *compute;
    double item_bytes, weight_bytes; /**< of an element of activations and gradients; of weights and state */
    cvy_bound_table table;
    /* of the block that was entered */
    cvy_block block;
    cvy_distribution *distribution;
    cvy_bound_share *share; /**< of each layer */
    cvy_bound_edge *edge;   /**< of each layer */
    int kernels, kernel_capacity, sendings, sending_capacity, gradients, sizes;
    cvy_bound_kernel *kernel;
    cvy_bound_sending *sending;
    int *piece_kernel;         /**< of each piece of the table */
    int slot[CVY_BOUND_SLOTS]; /**< kernels by hash: an index and one; 0: none */
    int *region;               /**< of each layer: what no stage can divide, numbered */
    double *region_s;
    int borders;
    double *border;            /**< elements of a sample that pass between stages, the fewest first, summed */
    int links, link_capacity;
    cvy_bound_link *link;
    cvy_bound_gradients gradient[CVY_BOUND_AXES_SETS];
    cvy_bound_seconds seconds[CVY_BOUND_SIZES];
    double update_s;
    double fixed_bytes[CVY_RECOMPUTE_COUNT]; /**< of weights and gradients that live at the peak */
    double state_bytes[CVY_RECOMPUTE_COUNT]; /**< of optimizers */
    double sample_bytes[CVY_RECOMPUTE_COUNT];
    cvy_network block_network; /**< of the block alone */
    cvy_network network;       /**< of the mesh at hand; no ranks: none */
    double exchange_s;         /**< of its gradients */
};

/** Fill the table from plans of the model on one rank. @retval CVY_ERR_MEMORY */
cvy_status cvy_bound_table_fill(const cvy_model *model, const cvy_machine *machine, const cvy_optimizer *optimizer,
                                cvy_bound_table *table);

/** Release what a table owns and empty it. */
void cvy_bound_table_clear(cvy_bound_table *table);

/** Of the block's distribution: what each layer has on the first rank, what that makes of every op, what is held. */
cvy_status cvy_bound_cut(cvy_bound *bound);

/** The part of a parameter that the first rank has, 0 to 1. */
double cvy_bound_find_part(const cvy_bound *bound, int parameter);

/** Of the block's distribution: what is sent between layers, and over which axes gradients are summed. */
cvy_status cvy_bound_find_sendings(cvy_bound *bound);

/** Seconds of what is sent in a micro-batch: forward, backward. */
void cvy_bound_price_sendings(cvy_bound *bound, int64_t samples, double seconds_out[2]);

/** Over which axes the gradients of a layer's parameters are summed behind backward. */
unsigned cvy_bound_find_gradient_axes(const cvy_bound *bound, int layer);

/** Price kernels and sendings at a size of micro-batch. */
void cvy_bound_price(cvy_bound *bound, int64_t samples, cvy_bound_seconds *seconds_out);

/**
 * Lay the mesh of a strategy on the machine, unless it lies there, and price its exchange of gradients; false where the
 * machine has fewer devices.
 */
bool cvy_bound_lay_out(cvy_bound *bound, const cvy_strategy *strategy);

/** Pieces that the gathers of a forward pass join along the channels. */
double cvy_bound_count_pieces(const cvy_bound *bound);

/** Seconds of what a micro-batch sends from stage to stage and back, where stages end at the narrowest places. */
double cvy_bound_price_transfers(cvy_bound *bound, const cvy_strategy *strategy, double samples);

/** Seconds of the exchange of gradients over a mesh. */
double cvy_bound_price_gradients(cvy_bound *bound, const cvy_strategy *strategy);

#endif
