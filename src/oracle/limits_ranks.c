/*
 * How many ranks a strategy could have: for each axis that it uses, the largest size at which the model can still be
 * divided, the others as they are. Divisions are asked, not rules written a second time; where a size can be divided,
 * smaller ones can.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "oracle/limits_internal.h"

/* Whether the model can be divided over the strategy's mesh with another size of one axis. */
static cvy_status can_divide(const cvy_limits_case *now, cvy_axis axis, int64_t size, bool *can_out)
{
    const cvy_execution *execution = &now->machine->execution;
    cvy_strategy strategy = now->question->strategy;
    cvy_distribution_options options = {.batch = now->options->batch, .whole_channels = execution->whole_channels,
                                        .whole_dense = execution->whole_dense, .choices = now->question->choices};
    cvy_distribution *distribution = NULL;
    int64_t sizes[CVY_AXES];
    for (int i = 0; i < CVY_AXES; i++) {
        sizes[i] = i == (int)axis ? size : strategy.mesh.size[i];
    }
    cvy_status status = cvy_mesh_setup(sizes, strategy.mesh.order, &strategy.mesh);
    if (status == CVY_OK) {
        status = cvy_distribution_create(now->model, &strategy, &options, &distribution);
    }
    cvy_distribution_destroy(&distribution);
    *can_out = status == CVY_OK;
    if (status == CVY_ERR_INFEASIBLE || status == CVY_ERR_INPUT) {
        cvy_error_clear();
        return CVY_OK;
    }
    return status;
}

/* The largest extent that the axis could divide; what divides it may be less. */
static int64_t find_bound(const cvy_limits_case *now, cvy_axis axis)
{
    int64_t bound = 1;
    if (axis == CVY_AXIS_SAMPLE) {
        return now->options->batch;
    }
    if (axis == CVY_AXIS_STAGE) {
        return now->model->layers;
    }
    for (int i = 0; i < now->model->layers; i++) {
        const cvy_shape *shape = &now->model->layer[i].output;
        int dim = cvy_distribution_dim(axis, shape->dims);
        if (dim >= 0 && shape->extent[dim] > bound) {
            bound = shape->extent[dim];
        }
    }
    return bound;
}

static cvy_status find_most(const cvy_limits_case *now, cvy_axis axis, int64_t *most_out)
{
    int64_t can = now->question->strategy.mesh.size[axis], cannot = find_bound(now, axis) + 1;
    while (cannot - can > 1) {
        int64_t size = can + (cannot - can) / 2;
        bool possible = false;
        CVY_TRY(can_divide(now, axis, size, &possible));
        if (possible) {
            can = size;
        } else {
            cannot = size;
        }
    }
    *most_out = can;
    return CVY_OK;
}

cvy_status cvy_limits_most_ranks(const cvy_limits_case *now, double *most_out, char *text)
{
    const cvy_mesh *mesh = &now->question->strategy.mesh;
    double most = 1.0, devices = (double)cvy_machine_devices(now->machine);
    const char *separator = ": ";
    snprintf(text, CVY_LIMIT_TEXT, "%" PRId64 " rank%s", mesh->ranks, mesh->ranks == 1 ? "" : "s");
    for (int i = 0; i < CVY_AXES; i++) {
        cvy_axis axis = mesh->order[i];
        int64_t most_of_axis = 0;
        if (mesh->size[axis] == 1) {
            continue;
        }
        CVY_TRY(find_most(now, axis, &most_of_axis));
        most *= (double)most_of_axis;
        cvy_limits_append(text, CVY_LIMIT_TEXT, "%s%s %" PRId64 " of at most %" PRId64, separator, cvy_axis_name(axis),
                          mesh->size[axis], most_of_axis);
        separator = ", ";
    }
    if (devices < most) {
        most = devices;
        cvy_limits_append(text, CVY_LIMIT_TEXT, "; the machine has %.0f", devices);
    }
    *most_out = fmax(most, (double)mesh->ranks);
    return CVY_OK;
}
