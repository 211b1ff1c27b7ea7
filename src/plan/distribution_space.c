/* Space: which layers can take their rows apart, and what that leaves: rows, or a sum over them. */
#include "plan/distribution_internal.h"
#include "plan/halo.h"

static const char only_padding[] = "windows of one rank would lie in the padding alone";

/* What a kind of op makes of space that is split. */
typedef enum space_habit {
    SPACE_WHOLE,   /* positions of y depend on all of x */
    SPACE_FOLLOWS, /* on the same position */
    SPACE_WINDOW,  /* on positions around it */
    SPACE_SUMS     /* y is a sum over all of x, so of each rank's share */
} space_habit;

/* Whether a transposed convolution leaves positions that no tap reaches: a rank's rows could begin with them. */
static bool leaves_gaps(const cvy_window *window)
{
    bool gaps = false;
    for (int at = 0; at < 3; at++) {
        gaps = gaps || window->dilation[at] * (window->kernel[at] - 1) < window->stride[at] - 1;
    }
    return gaps;
}

static space_habit find_space_habit(const cvy_dividing *v)
{
    switch (v->op.kind) {
    case CVY_OP_CONVOLUTION:
    case CVY_OP_POOL_MAX:
    case CVY_OP_POOL_AVERAGE: return SPACE_WINDOW;
    case CVY_OP_POOL_GLOBAL: return SPACE_SUMS;
    case CVY_OP_DENSE:
    case CVY_OP_POOL_ADAPTIVE:
    case CVY_OP_GROUP_NORM:
    case CVY_OP_SOFT_DICE:
    case CVY_OP_MEAN_SQUARED_ERROR:
    case CVY_OP_KIND_COUNT: return SPACE_WHOLE;
    case CVY_OP_TRANSPOSED_CONVOLUTION: return leaves_gaps(&v->op.params.window.window) ? SPACE_WHOLE : SPACE_WINDOW;
    default: return SPACE_FOLLOWS;
    }
}

/* Whether every input that has this axis comes split along it; the factors of a multiply have none. */
static bool all_inputs_split(const cvy_dividing *v, cvy_axis axis)
{
    for (int i = 0; i < v->layer->inputs; i++) {
        bool has_axis = cvy_dividing_extent(cvy_dividing_input(v, i), axis) > 1;
        if (has_axis && !cvy_axes_have(cvy_dividing_producer(v, i)->output_split, axis)) {
            return false;
        }
    }
    return cvy_axes_have(cvy_dividing_producer(v, 0)->output_split, axis);
}

/* Whether the first and the last rank reach rows of x: between them lies nothing but rows. */
static bool reaches_rows(const cvy_dividing *v, cvy_axis axis)
{
    bool transposed = v->op.kind == CVY_OP_TRANSPOSED_CONVOLUTION, reaches = true;
    int64_t parts = cvy_dividing_parts(v->d, axis), x = cvy_dividing_extent(v->x, axis);
    int64_t y = cvy_dividing_extent(&v->layer->output, axis);
    const cvy_halo_axis sliding = {.window = &v->op.params.window.window, .axis = (int)axis - CVY_AXIS_DEPTH,
                                   .extent = transposed ? y : x};
    for (int end = 0; end < 2; end++) {
        cvy_interval outputs = cvy_intervals_share(y, parts, end ? parts - 1 : 0).at[0];
        cvy_interval rows = (transposed ? cvy_halo_window_dy : cvy_halo_window_x)(&sliding, outputs).rows;
        reaches = reaches && rows.end > rows.begin;
    }
    return reaches;
}

static const char *why_space_whole(const cvy_dividing *v, cvy_axis axis, space_habit habit)
{
    int64_t parts = cvy_dividing_parts(v->d, axis);
    if (habit == SPACE_WHOLE) {
        return CVY_WANTS_SAMPLES;
    }
    if (!cvy_axes_have(v->choice->space, axis)) {
        return CVY_NOT_CUT;
    }
    if (!all_inputs_split(v, axis)) {
        return CVY_WHOLE_INPUT;
    }
    bool few = cvy_dividing_extent(v->x, axis) < parts ||
               (habit == SPACE_WINDOW && cvy_dividing_extent(&v->layer->output, axis) < parts);
    if (!few && habit == SPACE_WINDOW && !reaches_rows(v, axis)) {
        return only_padding;
    }
    return few ? CVY_FEW_ROWS : NULL;
}

void cvy_divide_space(cvy_dividing *v, cvy_axis axis)
{
    space_habit habit = find_space_habit(v);
    unsigned bit = CVY_AXIS_BIT(axis);
    v->own->why_whole[axis] = why_space_whole(v, axis, habit);
    if (v->own->why_whole[axis]) {
        return;
    }
    v->own->input_split |= bit;
    v->own->gradient_axes |= bit;
    if (habit == SPACE_SUMS) {
        v->own->raw_partial |= bit;
        return;
    }
    v->own->raw_split |= bit;
    v->own->output_split |= bit;
    if (v->op.kind == CVY_OP_MULTIPLY) {
        v->own->dx1_partial |= bit; /* a factor's gradient sums over space */
    }
}
