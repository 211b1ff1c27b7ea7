/*
 * The closed forms of the oracle paper: an iteration by one formula a strategy, apart from the simulation of schedules,
 * as a second opinion on it.
 *
 * A. Kahira et al., "An oracle for guiding large-scale model/hybrid parallel training of convolutional neural networks"
 * (HPDC 2021, arXiv:2104.09075), and their technical report of October 2020, here [TR]. As there: steps are
 * synchronous, nothing overlaps, collectives are rings, shares are equal, input takes no time, memory is a
 * sum over layers.
 */
#ifndef CVY_ORACLE_CLOSED_FORM_H
#define CVY_ORACLE_CLOSED_FORM_H

#include "oracle/collective.h"
#include "plan/schedule.h"

/** A layer; of one sample where samples matter. */
typedef struct cvy_closed_layer {
    double x_items, y_items;      /**< elements of input and output, of a sample */
    double w_items;               /**< weights; 0 for none */
    double forward_s, backward_s; /**< of a sample, the whole layer on one rank */
    double update_s;              /**< of an iteration, all its weights on one rank */
    double halo_items;            /**< of x that a rank sends to a neighbour, of a sample; of dy as many; 0: none */
    bool cut_channels;            /**< filter and channel divide it; else each rank of a group runs all of it */
    bool cut_space;               /**< spatial divides it; so the first layers, up to the last one that can be */
    int channels, filters;        /**< bounds of such cuts; read of the layers that are cut */
    int64_t positions;            /**< along what spatial divides */
    int stage;                    /**< of a pipeline: from 0, by one or by none more than the layer before */
} cvy_closed_layer;

/** What is asked. */
typedef struct cvy_closed_case {
    const cvy_closed_layer *layer; /**< borrowed, in forward order */
    int layers;
    double batch;         /**< samples of an iteration over all ranks */
    int ranks;
    int group_ranks;      /**< of data+filter and data+spatial: how many share a sample; divides ranks */
    int micro_batches;    /**< of a pipeline */
    double item_bytes;    /**< of an element */
    int layerwise_rounds; /**< of filter, channel: 3 for all-gather and all-reduce; 2 with reduce-scatter */
    bool whole_gradients; /**< data+filter exchanges all of them, not the rank's shard: the authors' programs */
    cvy_line inner;       /**< inside a group; of spatial, filter, channel, pipeline: between all ranks */
    cvy_line outer;       /**< between groups; of data: between all ranks */
    cvy_line halo;        /**< of halos */
    cvy_line gather;      /**< of what lies between divided and whole layers of spatial */
} cvy_closed_case;

/** What comes out, of an iteration of one rank. */
typedef struct cvy_closed_form {
    double phase_s[CVY_PHASE_COUNT]; /**< transfers of a pipeline are under CVY_PHASE_REDISTRIBUTE */
    double bubble_s;                 /**< of a pipeline: waiting for the first and after the last micro-batch */
    double memory_bytes;             /**< values and gradients of activations and weights; no state, no workspace */
    double most_ranks;               /**< that the strategy can use, by [TR] table III */
} cvy_closed_form;

/** A strategy with a closed form. */
typedef struct cvy_closed_strategy {
    const char *name; /**< data, spatial, filter, channel, pipeline, data+filter, data+spatial */
    bool grouped;     /**< group_ranks is read */
    bool staged;      /**< layers' stages and micro_batches are read */
    void (*estimate)(const cvy_closed_case *what, cvy_closed_form *form);
} cvy_closed_strategy;

/** The strategy of a name; NULL if absent. */
const cvy_closed_strategy *cvy_closed_form_find(const char *name);

/**
 * Seconds and bytes of an iteration.
 *
 * @param[out] form_out untouched on failure
 *
 * @retval CVY_ERR_ARG a count below 1; groups that do not divide ranks; stages that are not 0 to ranks - 1
 */
cvy_status cvy_closed_form_estimate(const cvy_closed_strategy *strategy, const cvy_closed_case *what,
                                    cvy_closed_form *form_out);

/** Forward, backward, update and bubble. */
double cvy_closed_form_compute_s(const cvy_closed_form *form);

/** Halos, redistributions and the exchange of gradients. */
double cvy_closed_form_communication_s(const cvy_closed_form *form);

/**
 * Elements of a sample that a rank sends to a neighbour where one axis is divided, stride 1: floor((k-1)/2) slices.
 *
 * @param[in] kernel      of the layer along that axis
 * @param[in] slice_items channels times the extents of the other axes
 */
static inline double cvy_closed_halo_items(int kernel, double slice_items) { return (kernel - 1) / 2 * slice_items; }

#endif
