/* A predictor in memory: private to the oracle's compute_mlp*.c. */
#ifndef CVY_ORACLE_COMPUTE_MLP_H
#define CVY_ORACLE_COMPUTE_MLP_H

#include "oracle/compute_internal.h"

enum { CVY_MLP_MAX_WIDTH = 256, CVY_MLP_MAX_LAYERS = 8, CVY_MLP_MAX_NETS = 9 };

typedef struct cvy_mlp_layer {
    int inputs, outputs;
    float *weight; /**< owned: inputs x outputs, column by column of the file's */
    float *bias;   /**< behind the weights */
} cvy_mlp_layer;

typedef struct cvy_mlp_net {
    int layers;
    cvy_mlp_layer layer[CVY_MLP_MAX_LAYERS];
} cvy_mlp_net;

struct cvy_predictor {
    int kernel;
    cvy_op_pass pass;
    cvy_precision precision;
    double error;
    cvy_roof roof;
    int inputs;
    int input[CVY_PREDICTOR_MAX_INPUTS]; /**< features */
    double mean[CVY_PREDICTOR_MAX_INPUTS], deviation[CVY_PREDICTOR_MAX_INPUTS]; /**< of the features */
    double low[CVY_PREDICTOR_MAX_INPUTS], high[CVY_PREDICTOR_MAX_INPUTS];       /**< that it was fitted to */
    int nets;
    cvy_mlp_net net[CVY_MLP_MAX_NETS];
};

/** Take a layer's numbers, turned as they are summed. @param[out] layer owns memory @retval CVY_ERR_MEMORY */
cvy_status cvy_mlp_layer_set(const cvy_predictor_layer *numbers, cvy_mlp_layer *layer);

#endif
