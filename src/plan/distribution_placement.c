/* Placements of a divided model's tensors, each found when it is asked for. */
#include "plan/distribution.h"

static int64_t count_parts(const cvy_distribution *d, cvy_axis axis) { return d->strategy.mesh.size[axis]; }

static bool has_axis(unsigned axes, cvy_axis axis) { return (axes & CVY_AXIS_BIT(axis)) != 0; }

/* Split along an axis of space: balanced, whatever the layer. */
static cvy_placement split_space(const cvy_distribution *d, const cvy_shape *shape, cvy_axis axis)
{
    int dim = cvy_distribution_dim(axis, shape->dims);
    cvy_placement placement = cvy_placement_replicate(count_parts(d, axis));
    if (dim >= 0 && shape->extent[dim] > 1) {
        (void)cvy_placement_split(dim, shape->extent[dim], 1, count_parts(d, axis), &placement); /* 1 divides all */
    }
    return placement;
}

static const cvy_shape *get_input(const cvy_distribution *d, int layer, int i)
{
    return &d->model->layer[d->model->layer[layer].input[i]].output;
}

/* An input of a concat has shares of its own: as they come, or balanced where it comes whole. */
static cvy_placement find_concat_input(const cvy_distribution *d, int layer, int i)
{
    const cvy_layer_distribution *from = &d->layer[d->model->layer[layer].input[i]];
    const cvy_shape *x = get_input(d, layer, i);
    cvy_placement placement = from->output_channels;
    if (!has_axis(from->output_split, CVY_AXIS_CHANNEL)) {
        (void)cvy_placement_split(1, x->extent[1], 1, count_parts(d, CVY_AXIS_CHANNEL), &placement);
    }
    return placement;
}

cvy_placement cvy_distribution_input(const cvy_distribution *d, int layer, int i, cvy_axis axis)
{
    const cvy_layer_distribution *own = &d->layer[layer];
    if (!has_axis(own->input_split, axis)) {
        return cvy_placement_replicate(count_parts(d, axis));
    }
    if (axis != CVY_AXIS_CHANNEL) {
        return split_space(d, get_input(d, layer, i), axis);
    }
    bool concat = d->model->layer[layer].kind->flow == CVY_FLOW_CONCAT;
    return concat ? find_concat_input(d, layer, i) : own->input_channels;
}

/* An output along an axis, by what is said of it. */
static cvy_placement place_output(const cvy_distribution *d, int layer, cvy_axis axis, unsigned split, unsigned partial)
{
    if (has_axis(partial, axis)) {
        return cvy_placement_sum(count_parts(d, axis));
    }
    if (!has_axis(split, axis)) {
        return cvy_placement_replicate(count_parts(d, axis));
    }
    return axis == CVY_AXIS_CHANNEL ? d->layer[layer].output_channels
                                    : split_space(d, &d->model->layer[layer].output, axis);
}

cvy_placement cvy_distribution_raw(const cvy_distribution *d, int layer, cvy_axis axis)
{
    return place_output(d, layer, axis, d->layer[layer].raw_split, d->layer[layer].raw_partial);
}

cvy_placement cvy_distribution_output(const cvy_distribution *d, int layer, cvy_axis axis)
{
    return place_output(d, layer, axis, d->layer[layer].output_split, 0);
}

cvy_placement cvy_distribution_input_gradient(const cvy_distribution *d, int layer, int i, cvy_axis axis)
{
    unsigned partial = i == 1 ? d->layer[layer].dx1_partial : d->layer[layer].dx_partial;
    if (has_axis(partial, axis)) {
        return cvy_placement_sum(count_parts(d, axis));
    }
    return cvy_distribution_input(d, layer, i, axis);
}

static cvy_op_kind find_op_kind(const cvy_distribution *d, int layer)
{
    const cvy_layer *l = &d->model->layer[layer];
    cvy_op op = {.kind = CVY_OP_KIND_COUNT};
    if (l->kind->make_op) {
        l->kind->make_op(l, get_input(d, layer, 0), CVY_PASS_FORWARD, &op);
    }
    return op.kind;
}

/* A split of the outputs' dimension as the parameter has it. */
static cvy_placement split_parameter(const cvy_placement *channels, int dim)
{
    cvy_placement placement = *channels;
    placement.dim = dim;
    return placement;
}

/* A bias that is added once: one unit, which the first rank gets. */
static cvy_placement give_first(const cvy_distribution *d, int64_t extent)
{
    cvy_placement placement = cvy_placement_replicate(1);
    (void)cvy_placement_split(0, extent, extent, count_parts(d, CVY_AXIS_CHANNEL), &placement);
    return placement;
}

cvy_placement cvy_distribution_parameter(const cvy_distribution *d, int parameter)
{
    const cvy_parameter *p = &d->model->parameter[parameter];
    const cvy_layer_distribution *own = &d->layer[p->layer];
    bool weights = p->spec.role == CVY_ROLE_W && p->spec.shape.dims >= 2;
    bool transposed = find_op_kind(d, p->layer) == CVY_OP_TRANSPOSED_CONVOLUTION;
    switch (own->cut) {
    case CVY_CUT_FILTER: return split_parameter(&own->output_channels, weights && transposed ? 1 : 0);
    case CVY_CUT_CHANNEL:
        return weights ? split_parameter(&own->input_channels, transposed ? 0 : 1)
                       : give_first(d, p->spec.shape.extent[0]);
    case CVY_CUT_GROUP:
        return split_parameter(weights && transposed ? &own->input_channels : &own->output_channels, 0);
    case CVY_CUT_FOLLOW: return split_parameter(&own->output_channels, 0);
    default: return cvy_placement_replicate(count_parts(d, CVY_AXIS_CHANNEL));
    }
}

cvy_intervals cvy_distribution_share(const cvy_placement *placement, cvy_axis axis, const cvy_shape *shape,
                                     int64_t coordinate)
{
    int dim = cvy_distribution_dim(axis, shape->dims);
    return dim < 0 ? cvy_intervals_whole(1) : cvy_placement_share(placement, dim, shape->extent[dim], coordinate);
}

bool cvy_distribution_has_halo(const cvy_distribution *d, int layer, cvy_axis axis)
{
    const cvy_layer *l = &d->model->layer[layer];
    cvy_op op = {.kind = CVY_OP_KIND_COUNT};
    if (axis == CVY_AXIS_CHANNEL || !has_axis(d->layer[layer].input_split & d->layer[layer].raw_split, axis)) {
        return false;
    }
    l->kind->make_op(l, get_input(d, layer, 0), CVY_PASS_FORWARD, &op);
    if (!cvy_op_convolves(op.kind) && op.kind != CVY_OP_POOL_MAX && op.kind != CVY_OP_POOL_AVERAGE) {
        return false;
    }
    const cvy_window *window = &op.params.window.window;
    int at = (int)axis - CVY_AXIS_DEPTH;
    return window->kernel[at] != 1 || window->stride[at] != 1 || window->before[at] != 0 || window->after[at] != 0;
}

int64_t cvy_distribution_slices(const cvy_distribution *d, int layer)
{
    cvy_cut cut = d->layer[layer].cut;
    return cut == CVY_CUT_WHOLE || cut == CVY_CUT_FOLLOW ? 1 : count_parts(d, CVY_AXIS_CHANNEL);
}
