/*
 * A mesh is a mixed-radix number system: a rank is a number, its coordinates are the digits, the order of the axes is
 * the order of the digits. A group along some axes is the numbers whose other digits are the same; its members in the
 * order of their digits along these axes, which is the order of the ranks.
 */
#include "plan/mesh.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

static const char *const axis_names[CVY_AXES] = {"stage", "sample", "depth", "height", "width", "channel"};

const char *cvy_axis_name(cvy_axis axis) { return axis_names[axis]; }

bool cvy_axis_find(const char *name, cvy_axis *axis_out)
{
    for (int axis = 0; axis < CVY_AXES; axis++) {
        if (strcmp(name, axis_names[axis]) == 0) {
            *axis_out = (cvy_axis)axis;
            return true;
        }
    }
    return false;
}

cvy_status cvy_norm_axes_parse(const char *text, unsigned *axes_out)
{
    unsigned axes = 0;
    for (const char *at = text; at && strcmp(text, "none") != 0;) {
        char word[32], shown[CVY_WORD_TEXT];
        cvy_axis axis;
        size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        CVY_REQUIRE(cvy_axis_find(word, &axis) && axis != CVY_AXIS_STAGE && axis != CVY_AXIS_CHANNEL, CVY_ERR_INPUT,
                    "--norm-axes: found '%s', expected none, or of sample,depth,height,width",
                    cvy_print_word(word, shown));
        axes |= CVY_AXIS_BIT(axis);
        at = at[length] ? at + length + 1 : NULL;
    }
    *axes_out = axes;
    return CVY_OK;
}

/* Axes that are used as @p order has them, then the others, whose places mean nothing, in canonical order. */
static void order_axes(const int64_t size[CVY_AXES], const cvy_axis *order, cvy_axis ordered_out[CVY_AXES])
{
    int count = 0;
    for (int i = 0; i < CVY_AXES; i++) {
        cvy_axis axis = order ? order[i] : (cvy_axis)i;
        if (size[axis] > 1) {
            ordered_out[count++] = axis;
        }
    }
    for (int axis = 0; axis < CVY_AXES; axis++) {
        if (size[axis] == 1) {
            ordered_out[count++] = (cvy_axis)axis;
        }
    }
}

cvy_status cvy_mesh_setup(const int64_t size[CVY_AXES], const cvy_axis order[CVY_AXES], cvy_mesh *mesh_out)
{
    cvy_mesh mesh = {.ranks = 1};
    for (int axis = 0; axis < CVY_AXES; axis++) {
        CVY_REQUIRE(size[axis] >= 1, CVY_ERR_INPUT, "%s=%" PRId64 " ranks, expected at least 1", axis_names[axis],
                    size[axis]);
        bool fits = cvy_mul_i64(mesh.ranks, size[axis], &mesh.ranks) && mesh.ranks <= CVY_MAX_RANKS;
        CVY_REQUIRE(fits, CVY_ERR_INPUT, "with %s=%" PRId64 " a mesh of more than %d ranks", axis_names[axis],
                    size[axis], CVY_MAX_RANKS);
        mesh.size[axis] = size[axis];
    }
    order_axes(size, order, mesh.order);
    int64_t stride = 1;
    for (int i = CVY_AXES - 1; i >= 0; i--) {
        mesh.stride[mesh.order[i]] = stride;
        stride *= mesh.size[mesh.order[i]];
    }
    *mesh_out = mesh;
    return CVY_OK;
}

int64_t cvy_mesh_coordinate(const cvy_mesh *mesh, int64_t rank, cvy_axis axis)
{
    return rank / mesh->stride[axis] % mesh->size[axis];
}

void cvy_mesh_coordinates(const cvy_mesh *mesh, int64_t rank, int64_t coordinates_out[CVY_AXES])
{
    for (int axis = 0; axis < CVY_AXES; axis++) {
        coordinates_out[axis] = cvy_mesh_coordinate(mesh, rank, (cvy_axis)axis);
    }
}

int64_t cvy_mesh_rank(const cvy_mesh *mesh, const int64_t coordinates[CVY_AXES])
{
    int64_t rank = 0;
    for (int axis = 0; axis < CVY_AXES; axis++) {
        rank += coordinates[axis] * mesh->stride[axis];
    }
    return rank;
}

int64_t cvy_mesh_group_size(const cvy_mesh *mesh, unsigned axes)
{
    int64_t size = 1;
    for (int axis = 0; axis < CVY_AXES; axis++) {
        size *= axes >> axis & 1 ? mesh->size[axis] : 1;
    }
    return size;
}

int64_t cvy_mesh_group_place(const cvy_mesh *mesh, unsigned axes, int64_t rank)
{
    int64_t place = 0;
    for (int i = 0; i < CVY_AXES; i++) {
        cvy_axis axis = mesh->order[i];
        if (axes >> axis & 1) {
            place = place * mesh->size[axis] + cvy_mesh_coordinate(mesh, rank, axis);
        }
    }
    return place;
}

int64_t cvy_mesh_group_member(const cvy_mesh *mesh, unsigned axes, int64_t rank, int64_t place)
{
    for (int i = CVY_AXES - 1; i >= 0; i--) {
        cvy_axis axis = mesh->order[i];
        if (axes >> axis & 1) {
            rank += (place % mesh->size[axis] - cvy_mesh_coordinate(mesh, rank, axis)) * mesh->stride[axis];
            place /= mesh->size[axis];
        }
    }
    return rank;
}

int64_t cvy_mesh_peer(const cvy_mesh *mesh, int64_t rank, const int offset[CVY_AXES])
{
    int64_t peer = rank;
    for (int axis = 0; axis < CVY_AXES; axis++) {
        int64_t coordinate = cvy_mesh_coordinate(mesh, rank, (cvy_axis)axis) + offset[axis];
        if (coordinate < 0 || coordinate >= mesh->size[axis]) {
            return -1;
        }
        peer += offset[axis] * mesh->stride[axis];
    }
    return peer;
}

void cvy_mesh_offset(const cvy_mesh *mesh, int64_t from, int64_t to, int offset_out[CVY_AXES])
{
    for (int axis = 0; axis < CVY_AXES; axis++) {
        offset_out[axis] =
            (int)(cvy_mesh_coordinate(mesh, to, (cvy_axis)axis) - cvy_mesh_coordinate(mesh, from, (cvy_axis)axis));
    }
}

const char *cvy_mesh_print(const cvy_mesh *mesh, char *text)
{
    size_t length = 0;
    for (int i = 0; i < CVY_AXES; i++) {
        cvy_axis axis = mesh->order[i];
        if (mesh->size[axis] > 1) {
            length += (size_t)snprintf(text + length, CVY_MESH_TEXT - length, "%s%s=%" PRId64, length ? "," : "",
                                       axis_names[axis], mesh->size[axis]);
        }
    }
    if (!length) {
        (void)snprintf(text, CVY_MESH_TEXT, "serial");
    }
    return text;
}
