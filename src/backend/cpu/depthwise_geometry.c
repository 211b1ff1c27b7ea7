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
    return &cvy_op_find_either(op, value, gradient)->tensor;
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
    if (!cvy_op_is_depthwise(op) || cvy_op_by_winograd(op)) {
        return false;
    }
    const int64_t *kernel = op->params.window.window.kernel, *stride = op->params.window.window.stride;
    for (int axis = 0; axis < 3; axis++) {
        if (kernel[axis] * stride[axis] > CVY_DEPTHWISE_RANGES) {
            return false;
        }
    }
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
    int64_t height = depthwise->axis[1].to, row = depthwise->axis[2].to * columns->lanes, plane = row * height;
    int64_t all = columns->samples * columns->area * columns->lanes * columns->strips;
    int64_t wanted = cvy_max_i64(TILE_LEAST, cvy_min_i64(TILE_ELEMENTS, all / TILES));
    depthwise->rows = cvy_min_i64(height, cvy_max_i64(1, wanted / row));
    depthwise->samples = cvy_min_i64(columns->samples, cvy_max_i64(1, wanted / plane));
    depthwise->row_groups = cvy_ceil_div(height, depthwise->rows);
    depthwise->sample_groups = cvy_ceil_div(columns->samples, depthwise->samples);
}

/* Forward source s of target t at tap k: s = t stride - before + k dilation; backward it is t of s. */
static cvy_depthwise_range find_range(const cvy_depthwise_axis *axis, const cvy_window *window, int a, bool backward,
                                      int64_t index)
{
    int64_t phase = index / axis->taps, k = index % axis->taps;
    int64_t base = k * window->dilation[a] - window->before[a];
    if (backward) {
        base = phase - base;
        if (base % axis->phases != 0) {
            return (cvy_depthwise_range){0, 0, 0};
        }
        base /= axis->phases;
    }
    int64_t positions = cvy_ceil_div(cvy_max_i64(0, axis->to - phase), axis->phases);
    int64_t first = base < 0 ? cvy_ceil_div(-base, axis->from_step) : 0;
    int64_t last = base < axis->from ? cvy_min_i64(positions, cvy_ceil_div(axis->from - base, axis->from_step)) : 0;
    return (cvy_depthwise_range){first, cvy_max_i64(first, last), base};
}

static void describe_axes(const cvy_op *op, const cvy_tensor *source, const cvy_tensor *target,
                          cvy_depthwise *depthwise)
{
    const cvy_window *window = &op->params.window.window;
    bool backward = op->pass == CVY_PASS_BACKWARD_DATA;
    int64_t from[3], to[3];
    cvy_space_get(&source->shape, from);
    cvy_space_get(&target->shape, to);
    for (int a = 0; a < 3; a++) {
        int dimension = depthwise->weight.dims - 3 + a; /* g,o,i come first: in 2-D there is no kd */
        cvy_depthwise_axis *axis = &depthwise->axis[a];
        axis->from = from[a];
        axis->to = to[a];
        axis->from_step = backward ? 1 : window->stride[a];
        axis->phases = backward ? window->stride[a] : 1;
        axis->taps = window->kernel[a];
        axis->dilation = window->dilation[a];
        axis->weight_step = dimension > 2 ? depthwise->weight.stride[dimension] : 0;
        for (int64_t i = 0; i < axis->phases * axis->taps; i++) {
            axis->range[i] = find_range(axis, window, a, backward, i);
        }
    }
    depthwise->taps = window->kernel[0] * window->kernel[1] * window->kernel[2];
}

cvy_depthwise cvy_depthwise_get(const cvy_op *op)
{
    const cvy_tensor *x = find_either(op, CVY_ROLE_X, CVY_ROLE_DX), *y = find_either(op, CVY_ROLE_Y, CVY_ROLE_DY);
    bool backward = op->pass == CVY_PASS_BACKWARD_DATA;
    const cvy_tensor *source = backward ? y : x, *target = backward ? x : y;
    cvy_depthwise depthwise = {.source = cut_strips(source), .target = cut_strips(target),
                               .weight = cvy_tensor_layout(find_either(op, CVY_ROLE_W, CVY_ROLE_DW))};
    describe_axes(op, source, target, &depthwise);
    cut_tiles(&depthwise);
    return depthwise;
}

int64_t cvy_depthwise_tiles(const cvy_depthwise *depthwise)
{
    return depthwise->sample_groups * depthwise->axis[0].to * depthwise->row_groups;
}

cvy_depthwise_tile cvy_depthwise_tile_get(const cvy_depthwise *depthwise, int64_t strip, int64_t index)
{
    int64_t group = index / depthwise->row_groups, depth = depthwise->axis[0].to;
    cvy_depthwise_tile tile = {
        .from = cvy_columns_strip(&depthwise->source, strip),
        .to = cvy_columns_strip(&depthwise->target, strip),
        .sample = group / depth * depthwise->samples,
        .d = group % depth,
        .h = index % depthwise->row_groups * depthwise->rows,
    };
    tile.samples = cvy_min_i64(depthwise->samples, depthwise->target.samples - tile.sample);
    tile.rows = cvy_min_i64(depthwise->rows, depthwise->axis[1].to - tile.h);
    return tile;
}

int64_t cvy_depthwise_weight(const cvy_depthwise *depthwise, int64_t channel)
{
    const cvy_layout *layout = &depthwise->weight;
    return channel / layout->block[0] * layout->stride[0] + channel % layout->block[0] * layout->inner_stride[0];
}

bool cvy_depthwise_next_band(const cvy_depthwise_axis *axis, cvy_depthwise_band *band)
{
    int64_t phase = band->phase, first = band->last;
    if (phase + first * axis->phases >= axis->to) {
        phase++;
        first = 0;
    }
    if (phase >= cvy_min_i64(axis->phases, axis->to)) {
        return false;
    }
    int64_t last = axis->phases == 1 ? axis->to : cvy_ceil_div(axis->to - phase, axis->phases);
    for (int64_t k = 0; k < axis->taps; k++) {
        const cvy_depthwise_range *range = &axis->range[phase * axis->taps + k];
        int64_t border = first < range->first ? range->first : range->last;
        last = border > first ? cvy_min_i64(last, border) : last;
    }
    *band = (cvy_depthwise_band){phase, first, last};
    return true;
}

bool cvy_depthwise_clip(const cvy_depthwise_axis *axis, int64_t first, int64_t last, cvy_depthwise_band *band)
{
    int64_t step = axis->phases, phase = band->phase;
    int64_t from = step == 1 ? first : cvy_ceil_div(cvy_max_i64(0, first - phase), step);
    int64_t to = step == 1 ? last : cvy_ceil_div(cvy_max_i64(0, last - phase), step);
    band->first = cvy_max_i64(band->first, from);
    band->last = cvy_min_i64(band->last, to);
    return band->first < band->last;
}

static void exchange(int64_t *a, int64_t *b)
{
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

cvy_depthwise_nest cvy_depthwise_nest_get(const cvy_depthwise *depthwise, int64_t samples, int64_t rows,
                                          int64_t positions)
{
    const cvy_depthwise_axis *h = &depthwise->axis[1], *w = &depthwise->axis[2];
    int64_t from = depthwise->source.position_stride, to = depthwise->target.position_stride;
    cvy_depthwise_nest nest = {
        .count = {samples, rows, positions},
        .from = {depthwise->source.sample_stride, h->from_step * w->from * from, w->from_step * from},
        .to = {depthwise->target.sample_stride, h->phases * w->to * to, w->phases * to},
    };
    for (int i = 0; i < 2; i++) {
        if (nest.count[i] > nest.count[2]) {
            exchange(&nest.count[i], &nest.count[2]);
            exchange(&nest.from[i], &nest.from[2]);
            exchange(&nest.to[i], &nest.to[2]);
        }
    }
    return nest;
}
