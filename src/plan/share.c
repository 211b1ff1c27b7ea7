/*
 * Placements along different axes split different dimensions, so a rank's share of a tensor is a product: in each
 * dimension the share that the one axis leaves it which splits it. Axes of one rank are left out throughout, so one
 * rank alone asks for nothing.
 */
#include "plan/share.h"

#include "plan/layout.h"

void cvy_seat_take(const cvy_distribution *distribution, int64_t rank, cvy_seat *seat)
{
    *seat = (cvy_seat){.distribution = distribution};
    for (int axis = 0; axis < CVY_AXES; axis++) {
        const cvy_mesh *mesh = distribution ? &distribution->strategy.mesh : NULL;
        seat->size[axis] = mesh ? mesh->size[axis] : 1;
        seat->coordinate[axis] = mesh ? cvy_mesh_coordinate(mesh, rank, (cvy_axis)axis) : 0;
        if (axis >= CVY_AXIS_DEPTH && seat->size[axis] > 1) {
            seat->axis[seat->axes++] = (cvy_axis)axis;
        }
    }
}

static cvy_placement find_along(const cvy_distribution *d, cvy_spread_of of, int layer, int i, cvy_axis axis)
{
    cvy_placement placement;
    switch (of) {
    case CVY_SPREAD_INPUT: return cvy_distribution_input(d, layer, i, axis);
    case CVY_SPREAD_INPUT_GRADIENT: return cvy_distribution_input_gradient(d, layer, i, axis);
    case CVY_SPREAD_RAW: return cvy_distribution_raw(d, layer, axis);
    case CVY_SPREAD_RAW_GRADIENT:
        placement = cvy_distribution_raw(d, layer, axis);
        return placement.placing == CVY_PLACING_PARTIAL ? cvy_placement_replicate(placement.parts) : placement;
    default: return cvy_distribution_output(d, layer, axis);
    }
}

void cvy_spread_find(const cvy_seat *seat, cvy_spread_of of, int layer, int i, cvy_spread *spread)
{
    for (int k = 0; k < seat->axes; k++) {
        spread->along[seat->axis[k]] = find_along(seat->distribution, of, layer, i, seat->axis[k]);
    }
}

bool cvy_spread_equal(const cvy_seat *seat, const cvy_spread *a, const cvy_spread *b)
{
    bool equal = true;
    for (int k = 0; equal && k < seat->axes; k++) {
        equal = cvy_placement_equal(&a->along[seat->axis[k]], &b->along[seat->axis[k]]);
    }
    return equal;
}

bool cvy_spread_same(const cvy_seat *seat, cvy_spread_name a, cvy_spread_name b)
{
    cvy_spread first, second;
    if (seat->axes == 0) {
        return true;
    }
    cvy_spread_find(seat, a.of, a.layer, a.i, &first);
    cvy_spread_find(seat, b.of, b.layer, b.i, &second);
    return cvy_spread_equal(seat, &first, &second);
}

/* Let a buffer hold a rank's share of a dimension. */
static void hold(cvy_buffer *buffer, const cvy_placement *placement, int64_t extent, int64_t coordinate)
{
    int dim = placement->dim;
    cvy_intervals share = cvy_placement_share(placement, dim, extent, coordinate);
    buffer->local[dim] = share.count ? (cvy_interval){share.at[0].begin, share.at[share.count - 1].end}
                                     : (cvy_interval){0, 0};
    buffer->tensor.shape.extent[dim] = cvy_intervals_length(&share);
    if (share.count > 1) {
        buffer->stretched = dim;
        buffer->stretches = share;
    }
}

void cvy_spread_describe(const cvy_seat *seat, const cvy_shape *shape, const cvy_spread *spread, cvy_buffer *buffer)
{
    buffer->tensor.shape = buffer->global = *shape;
    buffer->global.extent[0] = seat->batch;
    buffer->stretches.count = 0;
    for (int dim = 0; dim < shape->dims; dim++) {
        buffer->local[dim] = dim == 0 ? seat->samples : (cvy_interval){0, shape->extent[dim]};
        buffer->tensor.shape.extent[dim] = buffer->local[dim].end - buffer->local[dim].begin;
    }
    for (int k = 0; k < seat->axes; k++) {
        const cvy_placement *placement = &spread->along[seat->axis[k]];
        if (placement->placing == CVY_PLACING_SPLIT) {
            hold(buffer, placement, shape->extent[placement->dim], seat->coordinate[seat->axis[k]]);
        }
    }
}

/* A share of o as a share of g, in units of the filters of a group. */
static void describe_groups(cvy_buffer *buffer)
{
    int64_t filters = buffer->tensor.shape.extent[1];
    buffer->local[0] = (cvy_interval){buffer->local[0].begin / filters, buffer->local[0].end / filters};
    buffer->tensor.shape.extent[0] /= filters;
    for (int i = 0; i < buffer->stretches.count; i++) {
        cvy_interval *at = &buffer->stretches.at[i];
        *at = (cvy_interval){at->begin / filters, at->end / filters};
    }
}

void cvy_seat_describe_parameter(const cvy_seat *seat, const cvy_model *model, int parameter, cvy_buffer *buffer)
{
    const cvy_parameter *p = &model->parameter[parameter];
    buffer->tensor = cvy_layout_parameter(p, buffer->tensor.dtype, buffer->tensor.format);
    buffer->global = buffer->tensor.shape;
    buffer->stretches.count = 0;
    for (int dim = 0; dim < buffer->global.dims; dim++) {
        buffer->local[dim] = (cvy_interval){0, buffer->global.extent[dim]};
    }
    if (seat->size[CVY_AXIS_CHANNEL] > 1) {
        cvy_placement placement = cvy_distribution_parameter(seat->distribution, parameter);
        if (placement.placing == CVY_PLACING_SPLIT) {
            hold(buffer, &placement, p->spec.shape.extent[placement.dim], seat->coordinate[CVY_AXIS_CHANNEL]);
            if (buffer->tensor.grouped) {
                describe_groups(buffer);
            }
        }
    }
}

/* Balanced shares have two lengths: so do the micro-batches of each. */
int64_t cvy_seat_count_samples(const cvy_seat *seat, int micro_batches, int micro_batch)
{
    int64_t ranks = seat->size[CVY_AXIS_SAMPLE], base = seat->batch / ranks, longer = seat->batch % ranks;
    cvy_intervals more = cvy_intervals_share(base + 1, micro_batches, micro_batch);
    cvy_intervals less = cvy_intervals_share(base, micro_batches, micro_batch);
    return longer * cvy_intervals_length(&more) + (ranks - longer) * cvy_intervals_length(&less);
}

int64_t cvy_share_bytes(const cvy_tensor *tensor)
{
    return cvy_shape_elements(&tensor->shape) * (int64_t)cvy_dtype_bytes(tensor->dtype);
}
