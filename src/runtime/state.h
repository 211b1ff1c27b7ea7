/*
 * The tensors that outlive an iteration, seen by name: what checkpoints and tests read and write. A rank of many lists
 * all of the model, in one order with the others, and has of each a part or nothing.
 */
#ifndef CVY_RUNTIME_STATE_H
#define CVY_RUNTIME_STATE_H

#include "comm/comm.h"
#include "tensor/interval.h"
#include "tensor/tensor.h"

/** Which elements of a tensor a rank holds. All zero: all of them. */
typedef struct cvy_holding {
    cvy_shape global;                 /**< of the whole tensor, in the dimensions in which the part lies in memory */
    cvy_interval local[CVY_MAX_DIMS]; /**< what is held of each dimension, from first to last */
    int stretched;                    /**< the dimension of which several stretches are held, ... */
    cvy_intervals stretches;          /**< ... and these; none where each dimension is held in one */
    cvy_interval piece;               /**< where an update is shared out: the elements that are here of the memory of
                                           that part, padding included; empty: all */
} cvy_holding;

/** One persistent tensor of a run. */
typedef struct cvy_state_tensor {
    const char *name;    /**< state_dict key; of the optimizer's file "momentum.<key>", "moment2.<key>",
                              "ema.<key>"; borrowed */
    bool optimizer;      /**< belongs to the optimizer's file */
    cvy_shape shape;     /**< as in a state_dict: of all ranks together */
    cvy_tensor tensor;   /**< the part that is held here, as it lies in memory (format, type, leading g) */
    void *data;          /**< borrowed; NULL: nothing of it is here */
    cvy_holding holding; /**< which part that is */
    int parameter;       /**< of the model, whose value, state or average it is */
    bool apart;          /**< a running statistic that ranks which hold the same part of it take from their own samples
                              or places: until they are merged, they differ */
    int64_t count;       /**< elements a channel that it is taken from in an iteration, here; 0 of all others */
} cvy_state_tensor;

typedef struct cvy_state {
    int count;
    cvy_state_tensor *tensor;
    struct cvy_sharing *sharing; /**< how ranks share it (runtime/sharing.h); NULL: one has it all */
} cvy_state;

/** Find a tensor by name; NULL if absent. */
cvy_state_tensor *cvy_state_find(const cvy_state *state, const char *name);

/** Which elements a rank holds, all said. Cannot fail. */
cvy_holding cvy_state_holding(const cvy_state_tensor *tensor);

/** Bytes of what is here, with padding; 0 where nothing is. Cannot fail. */
int64_t cvy_state_bytes(const cvy_state_tensor *tensor);

#endif
