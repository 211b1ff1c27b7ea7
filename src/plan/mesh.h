/* The mesh: the ranks as a grid with named axes. Ranks that differ along some axes only are a group along them. */
#ifndef CVY_PLAN_MESH_H
#define CVY_PLAN_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/** The axes, in canonical order: the first is the slowest, so consecutive ranks differ in channel. */
typedef enum cvy_axis {
    CVY_AXIS_STAGE,   /**< pipeline stages */
    CVY_AXIS_SAMPLE,  /**< samples of the batch */
    CVY_AXIS_DEPTH,   /**< d of an image */
    CVY_AXIS_HEIGHT,  /**< h */
    CVY_AXIS_WIDTH,   /**< w */
    CVY_AXIS_CHANNEL, /**< input or output channels */
    CVY_AXES
} cvy_axis;

/** A set of axes: the bits of its members. */
#define CVY_AXIS_BIT(axis) (1u << (axis))
enum { CVY_AXIS_SPACE = 1 << CVY_AXIS_DEPTH | 1 << CVY_AXIS_HEIGHT | 1 << CVY_AXIS_WIDTH };

/** Ranks are numbered by 32-bit integers, as in MPI. */
#define CVY_MAX_RANKS INT32_MAX

/** A grid of ranks; made by cvy_mesh_setup(). */
typedef struct cvy_mesh {
    int64_t ranks;            /**< product of the sizes */
    int64_t size[CVY_AXES];   /**< of each axis, 1 where it is not used */
    int64_t stride[CVY_AXES]; /**< ranks from one coordinate to the next */
    cvy_axis order[CVY_AXES]; /**< slowest first; axes of size 1 come last, in canonical order */
} cvy_mesh;

/** "stage", "sample", "depth", "height", "width", "channel". Cannot fail. */
const char *cvy_axis_name(cvy_axis axis);

/** Find an axis by its name; false where there is none. */
bool cvy_axis_find(const char *name, cvy_axis *axis_out);

/**
 * Read the axes over which batch norms share their statistics: "height,width", of sample, depth, height and width;
 * "none" is no axis.
 *
 * @param[out] axes_out  untouched on failure
 * @retval CVY_ERR_INPUT another word; it is shown
 */
cvy_status cvy_norm_axes_parse(const char *text, unsigned *axes_out);

/**
 * Make a mesh. Not collective.
 *
 * @param[in]  size      of each axis
 * @param[in]  order     all axes, slowest first; NULL is the canonical order
 * @param[out] mesh_out  untouched on failure
 * @retval CVY_ERR_INPUT a size below 1, or more than CVY_MAX_RANKS ranks; the axis is named
 */
cvy_status cvy_mesh_setup(const int64_t size[CVY_AXES], const cvy_axis order[CVY_AXES], cvy_mesh *mesh_out);

/** The coordinates of a rank, by axis. */
void cvy_mesh_coordinates(const cvy_mesh *mesh, int64_t rank, int64_t coordinates_out[CVY_AXES]);

/** The coordinate of a rank along one axis. */
int64_t cvy_mesh_coordinate(const cvy_mesh *mesh, int64_t rank, cvy_axis axis);

/** The rank at coordinates. */
int64_t cvy_mesh_rank(const cvy_mesh *mesh, const int64_t coordinates[CVY_AXES]);

/** Ranks in a group along a set of axes: the product of their sizes. */
int64_t cvy_mesh_group_size(const cvy_mesh *mesh, unsigned axes);

/** The place of a rank in its group along a set of axes: members are in ascending order of rank. */
int64_t cvy_mesh_group_place(const cvy_mesh *mesh, unsigned axes, int64_t rank);

/** The member at a place of the group, along a set of axes, that a rank belongs to. */
int64_t cvy_mesh_group_member(const cvy_mesh *mesh, unsigned axes, int64_t rank, int64_t place);

/** The rank at an offset (by axis) from a rank; -1 beyond the border: the grid does not wrap. */
int64_t cvy_mesh_peer(const cvy_mesh *mesh, int64_t rank, const int offset[CVY_AXES]);

/** The offset (by axis) from one rank to another. */
void cvy_mesh_offset(const cvy_mesh *mesh, int64_t from, int64_t to, int offset_out[CVY_AXES]);

/** Room for a printed mesh. */
enum { CVY_MESH_TEXT = 128 };

/** "sample=4,height=2": the axes that are used, in their order; "serial" for one rank. Returns @p text. */
const char *cvy_mesh_print(const cvy_mesh *mesh, char *text);

#endif
