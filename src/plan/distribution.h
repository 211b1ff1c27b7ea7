/*
 * A strategy applied to a model: how every layer is divided over the ranks. Along the sample axis each rank has its own
 * samples, in every layer. Along the others a layer takes its inputs, and leaves its output, split or whole; between
 * two layers that differ stands a redistribution, between two that split space a halo.
 *
 * Along the channel axis a layer with weights is cut by its filters (it takes every channel and leaves its filters'
 * share) or by its channels (it takes a share and leaves a sum that is still to be made), a grouped one by its groups.
 * Layers without weights, and norms, follow what they are given. A layer that cannot be cut along an axis is computed
 * by each rank in full, and its distribution says why.
 */
#ifndef CVY_PLAN_DISTRIBUTION_H
#define CVY_PLAN_DISTRIBUTION_H

#include "model/model.h"
#include "plan/strategy.h"
#include "tensor/redistribution.h"

/** How the channel axis divides one layer. */
typedef enum cvy_cut {
    CVY_CUT_WHOLE,   /**< every rank of the axis computes all of it */
    CVY_CUT_FILTER,  /**< output channels */
    CVY_CUT_CHANNEL, /**< input channels */
    CVY_CUT_GROUP,   /**< groups of a grouped convolution: both */
    CVY_CUT_FOLLOW,  /**< channel by channel, as its input comes */
    CVY_CUT_COUNT
} cvy_cut;

/** "whole", "filter", "channel", "group", "follow"; then NULL. */
extern const char *const cvy_cut_names[CVY_CUT_COUNT + 1];

/** One layer. Bits of axes: CVY_AXIS_BIT(); the stage and the sample axis are in none of them. */
typedef struct cvy_layer_distribution {
    int stage;
    cvy_cut cut;
    unsigned input_split;   /**< along these axes its op takes its inputs split */
    unsigned raw_split;     /**< along these its op leaves its output split */
    unsigned raw_partial;   /**< along these its op leaves a sum that is still to be made */
    unsigned output_split;  /**< along these its consumers find its output split */
    unsigned taken_split;   /**< along these one of them takes it split */
    unsigned dx_partial;    /**< along these its op leaves a sum to be made of the gradient of its first input */
    unsigned dx1_partial;   /**< the same of its second input */
    unsigned gradient_axes; /**< over these and the sample axis the gradients of its weights are summed */
    cvy_placement input_channels, output_channels; /**< along the channel axis, where they are split there */
    const char *why_whole[CVY_AXES]; /**< why an axis that the mesh has does not cut it; NULL where it does */
} cvy_layer_distribution;

/** What a strategy leaves open, layer by layer: of a saved plan, or of a search. */
typedef struct cvy_layer_choice {
    int cut;        /**< CVY_CUT_WHOLE, FILTER or CHANNEL; -1: as the strategy says */
    unsigned space; /**< axes of space that may cut it */
} cvy_layer_choice;

/** What is divided, and by which habits of the framework. */
typedef struct cvy_distribution_options {
    int64_t batch;                   /**< samples of an iteration, all ranks */
    bool whole_channels;             /**< outputs are made whole at once: between cut layers all channels are on every
                                          rank; else shares are, until somebody needs the whole */
    bool whole_dense;                /**< dense layers are not cut */
    const cvy_layer_choice *choices; /**< one for each layer; borrowed for the call; NULL: all open */
    const int *stages;               /**< first layer of each stage, then all layers: one more than stages;
                                          borrowed for the call; NULL: balanced by floating point operations */
} cvy_distribution_options;

/** A model divided. */
typedef struct cvy_distribution {
    const cvy_model *model; /**< borrowed */
    cvy_strategy strategy;
    cvy_distribution_options options; /**< its borrowed arrays are gone */
    cvy_layer_distribution *layer;    /**< one for each layer of the model */
    int *stages;                      /**< first layer of each stage, then all layers */
    cvy_layer_choice *choices;        /**< as given, one for each layer; NULL: all was open */
} cvy_distribution;

/**
 * Divide a model. Not collective. Cost does not grow with the ranks.
 *
 * @param[in]  model            finished; borrowed, must outlive the distribution
 * @param[in]  strategy         not automatic
 * @param[out] distribution_out released with cvy_distribution_destroy(); untouched on failure
 * @retval CVY_ERR_INFEASIBLE   fewer samples than ranks or micro-batches share them, fewer places to cut than stages,
 *                              or an axis that cuts no layer; the message names the axis and, where there is one, the
 *                              layer
 */
cvy_status cvy_distribution_create(const cvy_model *model, const cvy_strategy *strategy,
                                   const cvy_distribution_options *options, cvy_distribution **distribution_out);

/** Release; NULL is fine. */
void cvy_distribution_destroy(cvy_distribution **distribution);

/**
 * Cut a model into stages of equal weight, at places where one tensor passes. Not collective.
 *
 * @param[in]  weight     of each layer, at least 0: seconds, or operations
 * @param[in]  stages     at least 1
 * @param[out] first_out  @p stages + 1: the first layer of each, then all layers; untouched on failure
 * @retval CVY_ERR_INFEASIBLE fewer places to cut than stages need
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_distribution_balance(const cvy_model *model, const double *weight, int stages, int *first_out);

/*
 * Placements along an axis of depth, height, width or channel. Shapes are those of the model, of one sample; the
 * dimension of an axis in a tensor n,c,(d),h,w is that of cvy_distribution_dim().
 */

/** The dimension that an axis splits in a tensor of so many dimensions: 1 for the channels; -1 where there is none. */
int cvy_distribution_dim(cvy_axis axis, int dims);

/** How the op of a layer takes input @p i. */
cvy_placement cvy_distribution_input(const cvy_distribution *distribution, int layer, int i, cvy_axis axis);

/** How the op of a layer leaves its output; perhaps a sum. */
cvy_placement cvy_distribution_raw(const cvy_distribution *distribution, int layer, cvy_axis axis);

/** How consumers find a layer's output, and how the gradient to it comes back. */
cvy_placement cvy_distribution_output(const cvy_distribution *distribution, int layer, cvy_axis axis);

/** How the op of a layer leaves the gradient of input @p i; perhaps a sum. */
cvy_placement cvy_distribution_input_gradient(const cvy_distribution *distribution, int layer, int i, cvy_axis axis);

/** How a parameter, in the model's shape, lies along the channel axis. A bias that is added to a sum of several ranks'
 * is the first one's alone: it is split so that the first has all of it. */
cvy_placement cvy_distribution_parameter(const cvy_distribution *distribution, int parameter);

/** What a rank at a coordinate of an axis holds of a shape's dimension of that axis, under a placement. */
cvy_intervals cvy_distribution_share(const cvy_placement *placement, cvy_axis axis, const cvy_shape *shape,
                                     int64_t coordinate);

/** Whether a layer's windows reach over borders along an axis of space: it needs a halo there. */
bool cvy_distribution_has_halo(const cvy_distribution *distribution, int layer, cvy_axis axis);

/** Into how many slices the channel axis cuts the layer's op; 1 where it is whole or follows. */
int64_t cvy_distribution_slices(const cvy_distribution *distribution, int layer);

#endif
