/*
 * What an op makes of its input: shapes, types and formats of every other operand follow from kind, parameters and x.
 * cvy_op_check() compares with the same words, so that there is one law.
 *
 * A window of kernel k and dilation e spans e (k - 1) + 1 elements; over an input of extent a, padded by p and q, it
 * has floor((a + p + q - span) / stride) + 1 positions (Dumoulin and Visin, "A guide to convolution arithmetic for deep
 * learning", relationship 15, with uneven padding).
 */
#include "op/op.h"

#include <inttypes.h>

#include "base/checked.h"

int64_t cvy_window_output(const cvy_window *window, int axis, int64_t extent)
{
    int64_t span = window->kernel[axis] - 1;
    int64_t room = extent;
    bool fits = cvy_mul_i64(span, window->dilation[axis], &span) && cvy_add_i64(span, 1, &span) &&
                cvy_add_i64(room, window->before[axis], &room) && cvy_add_i64(room, window->after[axis], &room);
    return fits && room >= span ? (room - span) / window->stride[axis] + 1 : 0;
}

int64_t cvy_window_input(const cvy_window *window, int axis, int64_t positions)
{
    int64_t span = window->kernel[axis] - 1;
    int64_t extent = positions - 1;
    bool fits = cvy_mul_i64(span, window->dilation[axis], &span) &&
                cvy_mul_i64(extent, window->stride[axis], &extent) && cvy_add_i64(extent, span, &extent) &&
                cvy_add_i64(extent, 1, &extent) && cvy_add_i64(extent, -window->before[axis], &extent) &&
                cvy_add_i64(extent, -window->after[axis], &extent);
    return fits ? extent : 0;
}

void cvy_space_get(const cvy_shape *shape, int64_t space_out[3])
{
    for (int axis = 0; axis < 3; axis++) {
        int dim = shape->dims - 3 + axis;
        space_out[axis] = dim >= 2 ? shape->extent[dim] : 1;
    }
}

void cvy_sample_get(const cvy_shape *shape, int64_t sample_out[4])
{
    sample_out[0] = shape->dims >= 2 ? shape->extent[1] : 1;
    cvy_space_get(shape, sample_out + 1);
}

/*
 * Whether every position of a pooling window sees an element: there is no maximum of padding alone, and no mean of
 * nothing. The first and the last position are the worst, unless taps lie so far apart that they can step over the
 * input.
 */
static bool sees_elements(const cvy_window *window, int axis, int64_t extent, int64_t positions)
{
    int64_t step = window->dilation[axis] <= extent ? cvy_max_i64(positions - 1, 1) : 1;
    for (int64_t o = 0; o < positions; o += step) {
        int64_t first = o * window->stride[axis] - window->before[axis];
        int64_t skipped = first < 0 ? cvy_ceil_div(-first, window->dilation[axis]) : 0; /* taps before the input */
        if (skipped >= window->kernel[axis] || first + skipped * window->dilation[axis] >= extent) {
            return false;
        }
    }
    return true;
}

/* Put the output's extents in place of the input's; d is neutral in 2-D. */
static cvy_status slide_window(const cvy_op *op, cvy_shape *shape)
{
    const cvy_window *window = &op->params.window.window;
    bool transposed = op->kind == CVY_OP_TRANSPOSED_CONVOLUTION;
    char text[CVY_SHAPE_TEXT];
    int64_t space[3];
    cvy_space_get(shape, space);
    for (int axis = 0; axis < 3; axis++) {
        int64_t positions = transposed ? cvy_window_input(window, axis, space[axis])
                                       : cvy_window_output(window, axis, space[axis]);
        bool sees = positions < 1 || cvy_op_convolves(op->kind) ||
                    sees_elements(window, axis, space[axis], positions);
        CVY_REQUIRE(positions >= 1 && sees, CVY_ERR_INPUT,
                    "a window of %" PRId64 " along %c (stride %" PRId64 ", dilation %" PRId64 ", padding %" PRId64
                    " and %" PRId64 ") %s an input of %s",
                    window->kernel[axis], "dhw"[axis], window->stride[axis], window->dilation[axis],
                    window->before[axis], window->after[axis],
                    sees ? "does not fit into" : "would lie in the padding alone, of", cvy_shape_print(shape, text));
        space[axis] = positions;
    }
    for (int axis = 5 - shape->dims; axis < 3; axis++) {
        shape->extent[shape->dims - 3 + axis] = space[axis];
    }
    return CVY_OK;
}

/* One position is left of space. */
static void pool_space(cvy_shape *shape)
{
    for (int i = 2; i < shape->dims; i++) {
        shape->extent[i] = 1;
    }
}

static cvy_status describe_output(const cvy_op *op, const cvy_tensor *x, int64_t filters, cvy_tensor *y)
{
    *y = *x;
    switch (op->kind) {
    case CVY_OP_DENSE:
    case CVY_OP_CONCAT:
    case CVY_OP_SLICE: y->shape.extent[1] = filters; return CVY_OK;
    case CVY_OP_CONVOLUTION:
    case CVY_OP_TRANSPOSED_CONVOLUTION:
        y->shape.extent[1] = filters;
        return slide_window(op, &y->shape);
    case CVY_OP_POOL_MAX:
    case CVY_OP_POOL_AVERAGE: return slide_window(op, &y->shape);
    case CVY_OP_POOL_GLOBAL: pool_space(&y->shape); return CVY_OK;
    case CVY_OP_POOL_ADAPTIVE:
        for (int i = 2; i < y->shape.dims; i++) {
            y->shape.extent[i] = op->params.adaptive.output[i + 3 - y->shape.dims];
        }
        return CVY_OK;
    case CVY_OP_PICK:
        y->shape.extent[op->params.pick.dim] = cvy_intervals_length(&op->params.pick.intervals);
        return CVY_OK;
    case CVY_OP_FRAME:
        for (int i = 2; i < y->shape.dims; i++) {
            y->shape.extent[i] = op->params.frame.output[i + 3 - y->shape.dims];
        }
        return CVY_OK;
    default: return CVY_OK;
    }
}

/* Weights of a convolution or dense layer, in plain order; g leads where there are groups. Transposed they are c,f. */
static cvy_tensor describe_weights(const cvy_op *op, const cvy_tensor *x, int64_t filters)
{
    bool transposed = op->kind == CVY_OP_TRANSPOSED_CONVOLUTION;
    int64_t groups = cvy_op_convolves(op->kind) ? op->params.window.groups : 1;
    int64_t channels = x->shape.extent[1] / groups;
    cvy_tensor w = {.dtype = x->dtype, .format = CVY_FORMAT_PLAIN, .grouped = groups > 1};
    if (w.grouped) {
        w.shape.extent[w.shape.dims++] = groups;
    }
    w.shape.extent[w.shape.dims++] = transposed ? channels : filters / groups;
    w.shape.extent[w.shape.dims++] = transposed ? filters / groups : channels;
    for (int axis = 5 - x->shape.dims; cvy_op_convolves(op->kind) && axis < 3; axis++) {
        w.shape.extent[w.shape.dims++] = op->params.window.window.kernel[axis];
    }
    return w;
}

/* Index of the winner within its window: a byte where that is enough. */
static cvy_dtype window_dtype(const cvy_window *window)
{
    int64_t positions = 1;
    for (int axis = 0; axis < 3; axis++) {
        if (!cvy_mul_i64(positions, window->kernel[axis], &positions)) {
            return CVY_I32;
        }
    }
    return positions <= 256 ? CVY_U8 : CVY_I32;
}

/* A class for each sample, or for each position of it. */
static cvy_tensor describe_classes(const cvy_shape *x)
{
    cvy_tensor label = {.shape = CVY_SHAPE(x->extent[0]), .dtype = CVY_I32, .format = CVY_FORMAT_PLAIN};
    for (int i = 2; i < x->dims; i++) {
        label.shape.extent[label.shape.dims++] = x->extent[i];
    }
    return label;
}

static cvy_tensor describe_vector(cvy_dtype dtype, int64_t extent)
{
    return (cvy_tensor){.shape = CVY_SHAPE(extent), .dtype = dtype, .format = CVY_FORMAT_PLAIN};
}

/* Operands whose extents are those of x (an optimizer's are those of its parameter). */
static bool is_shaped_as_input(const cvy_op *op, cvy_role role)
{
    switch (role) {
    case CVY_ROLE_X:
    case CVY_ROLE_X1:
    case CVY_ROLE_X2:
    case CVY_ROLE_X3:
    case CVY_ROLE_DX:
    case CVY_ROLE_DX1:
    case CVY_ROLE_PROBABILITY:
    case CVY_ROLE_MOMENTUM:
    case CVY_ROLE_MOMENT2:
    case CVY_ROLE_AVERAGE: return true;
    case CVY_ROLE_W:
    case CVY_ROLE_DW: return op->pass == CVY_PASS_UPDATE;
    case CVY_ROLE_LABEL: return op->kind == CVY_OP_MEAN_SQUARED_ERROR;
    default: return false;
    }
}

cvy_status cvy_op_describe(const cvy_op *op, const cvy_tensor *x, int64_t filters, cvy_role role,
                           cvy_tensor *tensor_out)
{
    bool filtered = cvy_op_has_weights(op->kind);
    int64_t channels = filtered ? filters : x->shape.extent[x->shape.dims > 1];
    cvy_tensor tensor = *x;
    if (role == CVY_ROLE_Y || role == CVY_ROLE_DY || role == CVY_ROLE_DY1 || role == CVY_ROLE_WINDOW) {
        CVY_TRY(describe_output(op, x, filters, &tensor));
    } else if (role == CVY_ROLE_LABEL && !is_shaped_as_input(op, role)) {
        tensor = describe_classes(&x->shape);
    } else if (role == CVY_ROLE_OVERLAP) {
        tensor = describe_vector(CVY_F64, x->shape.extent[0]);
        tensor.shape = CVY_SHAPE(x->shape.extent[0], channels, 2);
    } else if (role == CVY_ROLE_LOSS) {
        tensor = describe_vector(CVY_F64, 2);
    } else if (role == CVY_ROLE_SCALE) {
        tensor = describe_vector(CVY_F64, 1);
    } else if (role == CVY_ROLE_SQUARES) {
        bool alone = op->kind == CVY_OP_SQUARE_SUM || op->kind == CVY_OP_CLIP;
        tensor = describe_vector(CVY_F64, alone ? op->params.squares.slots : op->params.optimizer.slots);
    } else if (filtered && (role == CVY_ROLE_W || role == CVY_ROLE_DW)) {
        tensor = describe_weights(op, x, filters);
    } else if (op->kind == CVY_OP_GROUP_NORM && (role == CVY_ROLE_MEAN || role == CVY_ROLE_VARIANCE)) {
        tensor.shape = CVY_SHAPE(x->shape.extent[0], op->params.group.groups);
    } else if (!is_shaped_as_input(op, role)) { /* biases and statistics */
        tensor = describe_vector(x->dtype, channels);
    }
    if (op->kind == CVY_OP_MULTIPLY && (role == CVY_ROLE_X1 || role == CVY_ROLE_DX1)) {
        pool_space(&tensor.shape);
    }
    if (role == CVY_ROLE_WINDOW) {
        tensor.dtype = window_dtype(&op->params.window.window);
    }
    if (tensor.shape.dims <= 2 && op->pass != CVY_PASS_UPDATE) {
        tensor.format = CVY_FORMAT_PLAIN;
    }
    *tensor_out = tensor;
    return CVY_OK;
}
