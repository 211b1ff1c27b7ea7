/* The tensors that outlive an iteration, seen by name: what checkpoints and tests read and write. */
#ifndef CVY_RUNTIME_STATE_H
#define CVY_RUNTIME_STATE_H

#include "tensor/tensor.h"

/** One persistent tensor of a run. */
typedef struct cvy_state_tensor {
    const char *name;    /**< state_dict key; of the optimizer's file "momentum.<key>", "moment2.<key>",
                              "ema.<key>"; borrowed */
    bool optimizer;      /**< belongs to the optimizer's file */
    cvy_shape shape;     /**< as in a state_dict */
    cvy_tensor tensor;   /**< as it lies in memory (format, type, leading g) */
    void *data;          /**< borrowed */
} cvy_state_tensor;

typedef struct cvy_state {
    int count;
    cvy_state_tensor *tensor;
} cvy_state;

/** Find a tensor by name; NULL if absent. */
cvy_state_tensor *cvy_state_find(const cvy_state *state, const char *name);

#endif
