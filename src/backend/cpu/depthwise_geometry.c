/*
 * The geometry of depthwise convolutions: the only place that knows padding, strides and dilation. Forward, target t
 * finds at tap k the source t stride - before + k dilation; in the gradient of data the source s for which s stride is
 * t + before - k dilation, if there is one: targets whose remainders by the stride are equal have the same taps, and
 * are a phase.
 *
 * Work is cut into tiles of a strip of channels, whose sources and targets stay in the second-level cache, by the shape
 * alone: large planes by rows, small ones joined over samples.
 */
#include "backend/cpu/depthwise.h"
#include "base/checked.h"

enum {
    STRIP_LANES = 128,       /* of channels-last: 512 bytes of each position */
    TILE_ELEMENTS = 16384,   /* targets of a tile: 64 KiB */
    TILE_LEAST = 2048,       /* of a small tensor's */
    TILES = 64,              /* wanted before tiles reach their full size: several for each thread */
};

static const cvy_tensor *find_either(const cvy_op *op, cvy_role value, cvy_role gradient)
{
    const cvy_operand *operand = cvy_op_find(op, value);
    return &(operand ? operand : cvy_op_find(op, gradient))->tensor;
}

/* Channels of x, and of the weights of a tap, lie side by side: a vector of them times a vector of weights. */
static bool lie_alike(const cvy_tensor *x, const cvy_tensor *w)
{
    switch (x->format) {
    case CVY_FORMAT_CHANNELS_LAST: return w->format == CVY_FORMAT_W_HWIO || w->format == CVY_FORMAT_W_HWIO_G16;
    case CVY_FORMAT_C8: return w->format == CVY_FORMAT_W_G8;
    case CVY_FORMAT_C16: return w->format == CVY_FORMAT_W_G16;
    default: return false;
    }
}

bool cvy_depthwise_fits(const cvy_op *op)
{
    if (!cvy_op_is_depthwise(op)) {
        return false;
    }
    const int64_t *kernel = op->params.window.window.kernel;
    const cvy_tensor *x = find_either(op, CVY_ROLE_X, CVY_ROLE_DX), *y = find_either(op, CVY_ROLE_Y, CVY_ROLE_DY);
    const cvy_tensor *w = find_either(op, CVY_ROLE_W, CVY_ROLE_DW);
    return kernel[0] * kernel[1] * kernel[2] <= CVY_DEPTHWISE_TAPS && x->format == y->format && lie_alike(x, w);
}

/* Channels-last in narrower strips than a norm's: several rows of a tile's fit the first-level cache. */
static cvy_columns cut_strips(const cvy_tensor *tensor)
{
    cvy_columns columns = cvy_columns_get(tensor);
    if (tensor->format == CVY_FORMAT_CHANNELS_LAST) {
        int64_t strips = cvy_ceil_div(columns.channels, STRIP_LANES);
        int64_t lanes = cvy_round_up(cvy_ceil_div(columns.channels, strips), CVY_DEPTHWISE_LANES);
        columns.lanes = cvy_min_i64(lanes, columns.channels);
        columns.strips = cvy_ceil_div(columns.channels, columns.lanes);
        columns.strip_stride = columns.lanes;
    }
    return columns;
}

static void cut_tiles(cvy_depthwise *depthwise)
{
    const cvy_columns *columns = &depthwise->target;
    int64_t row = depthwise->to[2] * columns->lanes, plane = row * depthwise->to[1];
    int64_t all = columns->samples * columns->area * columns->lanes * columns->strips;
    int64_t wanted = cvy_max_i64(TILE_LEAST, cvy_min_i64(TILE_ELEMENTS, all / TILES));
    depthwise->rows = cvy_min_i64(depthwise->to[1], cvy_max_i64(1, wanted / row));
    depthwise->samples = cvy_min_i64(columns->samples, cvy_max_i64(1, wanted / plane));
    depthwise->row_groups = cvy_ceil_div(depthwise->to[1], depthwise->rows);
    depthwise->sample_groups = cvy_ceil_div(columns->samples, depthwise->samples);
}

cvy_depthwise cvy_depthwise_get(const cvy_op *op)
{
    const cvy_tensor *x = find_either(op, CVY_ROLE_X, CVY_ROLE_DX), *y = find_either(op, CVY_ROLE_Y, CVY_ROLE_DY);
    const cvy_tensor *w = find_either(op, CVY_ROLE_W, CVY_ROLE_DW);
    bool backward = op->pass == CVY_PASS_BACKWARD_DATA;
    cvy_depthwise depthwise = {.window = &op->params.window.window, .backward = backward,
                               .weight = cvy_tensor_layout(w)};
    depthwise.source = cut_strips(backward ? y : x);
    depthwise.target = cut_strips(backward ? x : y);
    cvy_space_get(&(backward ? y : x)->shape, depthwise.from);
    cvy_space_get(&(backward ? x : y)->shape, depthwise.to);
    for (int axis = 0; axis < 3; axis++) {
        int dimension = w->shape.dims - 3 + axis; /* g,o,i come first: in 2-D there is no kd */
        int64_t stride = depthwise.window->stride[axis];
        depthwise.from_step[axis] = backward ? 1 : stride;
        depthwise.to_step[axis] = backward ? stride : 1;
        depthwise.tap_step[axis] = dimension > 2 ? depthwise.weight.stride[dimension] : 0;
    }
    cut_tiles(&depthwise);
    return depthwise;
}

int64_t cvy_depthwise_tiles(const cvy_depthwise *depthwise)
{
    return depthwise->sample_groups * depthwise->to[0] * depthwise->row_groups;
}

cvy_depthwise_tile cvy_depthwise_tile_get(const cvy_depthwise *depthwise, int64_t strip, int64_t index)
{
    int64_t group = index / depthwise->row_groups;
    cvy_depthwise_tile tile = {
        .from = cvy_columns_strip(&depthwise->source, strip),
        .to = cvy_columns_strip(&depthwise->target, strip),
        .sample = group / depthwise->to[0] * depthwise->samples,
        .d = group % depthwise->to[0],
        .h = index % depthwise->row_groups * depthwise->rows,
    };
    tile.samples = cvy_min_i64(depthwise->samples, depthwise->target.samples - tile.sample);
    tile.rows = cvy_min_i64(depthwise->rows, depthwise->to[1] - tile.h);
    return tile;
}

int64_t cvy_depthwise_taps(const cvy_depthwise *depthwise)
{
    const int64_t *kernel = depthwise->window->kernel;
    return kernel[0] * kernel[1] * kernel[2];
}

int64_t cvy_depthwise_weight(const cvy_depthwise *depthwise, int64_t channel)
{
    const cvy_layout *layout = &depthwise->weight;
    return channel / layout->block[0] * layout->stride[0] + channel % layout->block[0] * layout->inner_stride[0];
}

cvy_depthwise_range cvy_depthwise_range_get(const cvy_depthwise *depthwise, int axis, int64_t phase, int64_t k)
{
    const cvy_window *window = depthwise->window;
    int64_t from = depthwise->from[axis], from_step = depthwise->from_step[axis], to_step = depthwise->to_step[axis];
    int64_t base = k * window->dilation[axis] - window->before[axis];
    if (depthwise->backward) {
        base = phase - base;
        if (base % to_step != 0) {
            return (cvy_depthwise_range){0, 0, 0};
        }
        base /= to_step;
    }
    int64_t positions = cvy_ceil_div(cvy_max_i64(0, depthwise->to[axis] - phase), to_step);
    int64_t first = base < 0 ? cvy_ceil_div(-base, from_step) : 0;
    int64_t last = base < from ? cvy_min_i64(positions, cvy_ceil_div(from - base, from_step)) : 0;
    return (cvy_depthwise_range){first, cvy_max_i64(first, last), base};
}

int64_t cvy_depthwise_source(const cvy_depthwise *depthwise, int axis, int64_t target, int64_t k)
{
    int64_t step = depthwise->to_step[axis], position = target / step;
    cvy_depthwise_range range = cvy_depthwise_range_get(depthwise, axis, target % step, k);
    bool inside = position >= range.first && position < range.last;
    return inside ? range.base + position * depthwise->from_step[axis] : -1;
}

bool cvy_depthwise_next_segment(const cvy_depthwise *depthwise, cvy_depthwise_segment *segment)
{
    int64_t step = depthwise->to_step[2], to = depthwise->to[2];
    int64_t phase = segment->phase, first = segment->last;
    if (phase + first * step >= to) {
        phase++;
        first = 0;
    }
    if (phase >= cvy_min_i64(step, to)) {
        return false;
    }
    int64_t last = cvy_ceil_div(to - phase, step);
    for (int64_t k = 0; k < depthwise->window->kernel[2]; k++) {
        cvy_depthwise_range range = cvy_depthwise_range_get(depthwise, 2, phase, k);
        int64_t border = first < range.first ? range.first : range.last;
        last = border > first ? cvy_min_i64(last, border) : last;
    }
    *segment = (cvy_depthwise_segment){phase, first, last};
    return true;
}
