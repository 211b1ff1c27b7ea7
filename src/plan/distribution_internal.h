/* What the files that divide a model share: a layer while its distribution is found. */
#ifndef CVY_PLAN_DISTRIBUTION_INTERNAL_H
#define CVY_PLAN_DISTRIBUTION_INTERNAL_H

#include "plan/distribution.h"

/** A layer while its distribution is found. */
typedef struct cvy_dividing {
    cvy_distribution *d;
    const cvy_layer *layer;
    const cvy_shape *x; /**< of its first input */
    cvy_layer_distribution *own;
    cvy_op op; /**< of its forward pass; kind CVY_OP_KIND_COUNT where it has none */
    const cvy_layer_choice *choice;
} cvy_dividing;

/* Why a layer is whole: reasons that more than one file has. */
#define CVY_FEW_ROWS "fewer rows than ranks"
#define CVY_WANTS_SAMPLES "it needs whole samples"
#define CVY_WHOLE_INPUT "its input is whole"
#define CVY_NOT_CUT "it is not to be cut"

static inline int64_t cvy_dividing_parts(const cvy_distribution *d, cvy_axis axis)
{
    return d->strategy.mesh.size[axis];
}

/** Extent of a shape along an axis; 1 where it has no such dimension. */
static inline int64_t cvy_dividing_extent(const cvy_shape *shape, cvy_axis axis)
{
    int dim = cvy_distribution_dim(axis, shape->dims);
    return dim >= 0 ? shape->extent[dim] : 1;
}

static inline bool cvy_axes_have(unsigned axes, cvy_axis axis) { return (axes & CVY_AXIS_BIT(axis)) != 0; }

/** How the layer that makes input @p i leaves it. */
static inline const cvy_layer_distribution *cvy_dividing_producer(const cvy_dividing *v, int i)
{
    return &v->d->layer[v->layer->input[i]];
}

static inline const cvy_shape *cvy_dividing_input(const cvy_dividing *v, int i)
{
    return &v->d->model->layer[v->layer->input[i]].output;
}

/** Divide a layer along an axis of space. */
void cvy_divide_space(cvy_dividing *v, cvy_axis axis);

/** Divide a layer along the channel axis. */
void cvy_divide_channels(cvy_dividing *v);

#endif
