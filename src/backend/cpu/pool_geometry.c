/* The geometry of pooling: the only place that knows padding and strides. */
#include "backend/cpu/pool_geometry.h"

#include <string.h>

#include "base/checked.h"

bool cvy_pool_fits(const cvy_tensor *x, const cvy_tensor *y)
{
    if (!cvy_columns_fit(x) || !cvy_columns_fit(y) || x->format != y->format || x->shape.dims < 3) {
        return false;
    }
    return cvy_columns_get(x).area > 1 || cvy_columns_get(y).area == 1;
}

cvy_pool cvy_pool_get(const cvy_op *op, const cvy_tensor *x, const cvy_tensor *y)
{
    cvy_pool pool = {.window = &op->params.window.window, .x = cvy_columns_get(x)};
    cvy_space_get(&x->shape, pool.in);
    cvy_space_get(&y->shape, pool.out);
    const cvy_columns *from = &pool.x;
    pool.y = *from; /* strips as in x, even where y is a single position */
    pool.y.area = pool.out[0] * pool.out[1] * pool.out[2];
    pool.y.sample_stride = from->sample_stride / from->area * pool.y.area;
    if (from->strip_stride == from->area * from->lanes && from->position_stride == from->lanes) {
        pool.y.strip_stride = pool.y.area * from->lanes;
    }
    return pool;
}

int64_t cvy_pool_segment_positions(const cvy_pool *pool) { return CVY_POOL_SEGMENT / pool->y.lanes; }

int64_t cvy_pool_output_offset(const cvy_pool *pool, const cvy_pool_segment *segment)
{
    int64_t position = (segment->d * pool->out[1] + segment->h) * pool->out[2] + segment->first;
    return segment->sample * pool->y.sample_stride + segment->to.offset + position * pool->y.position_stride;
}

static cvy_pool_rows find_rows(int64_t offset, int64_t stride, int64_t positions, int64_t lanes)
{
    bool dense = stride == lanes;
    return (cvy_pool_rows){.offset = offset,
                           .stride = stride,
                           .count = dense ? 1 : positions,
                           .width = dense ? positions * lanes : lanes};
}

cvy_pool_rows cvy_pool_output_rows(const cvy_pool *pool, const cvy_pool_segment *segment)
{
    return find_rows(cvy_pool_output_offset(pool, segment), pool->y.position_stride, segment->last - segment->first,
                     segment->to.lanes);
}

cvy_pool_rows cvy_pool_strip_rows(const cvy_pool *pool, const cvy_pool_segment *segment)
{
    return find_rows(segment->sample * pool->x.sample_stride + segment->from.offset, pool->x.position_stride,
                     pool->x.area, segment->from.lanes);
}

/* Input index along an axis; outside [0, extent) it is padding. */
static int64_t input_index(const cvy_window *window, int axis, int64_t output, int64_t k)
{
    return output * window->stride[axis] - window->before[axis] + k * window->dilation[axis];
}

static bool is_inside(const cvy_pool *pool, int axis, int64_t output, int64_t k)
{
    int64_t index = input_index(pool->window, axis, output, k);
    return index >= 0 && index < pool->in[axis];
}

/* The outputs of a segment whose input along w is inside: with i = first input, 0 <= i + s * stride < extent. */
static void clip_tap(const cvy_pool *pool, const cvy_pool_segment *segment, cvy_pool_tap *tap)
{
    int64_t stride = pool->window->stride[2], start = input_index(pool->window, 2, 0, tap->k[2]);
    int64_t low = start < 0 ? cvy_ceil_div(-start, stride) : 0;
    int64_t high = start < pool->in[2] ? cvy_ceil_div(pool->in[2] - start, stride) : 0;
    tap->first = cvy_max_i64(low, segment->first);
    tap->last = cvy_max_i64(tap->first, cvy_min_i64(high, segment->last));
}

bool cvy_pool_next_tap(const cvy_pool *pool, const cvy_pool_segment *segment, cvy_pool_tap *tap)
{
    const cvy_window *window = pool->window;
    if (++tap->index >= window->kernel[0] * window->kernel[1] * window->kernel[2]) {
        return false;
    }
    for (int axis = 2; axis >= 0 && tap->index > 0; axis--) { /* on, the last axis fastest */
        if (++tap->k[axis] < window->kernel[axis]) {
            break;
        }
        tap->k[axis] = 0;
    }
    tap->first = tap->last = segment->first;
    if (is_inside(pool, 0, segment->d, tap->k[0]) && is_inside(pool, 1, segment->h, tap->k[1])) {
        clip_tap(pool, segment, tap);
    }
    int64_t d = input_index(window, 0, segment->d, tap->k[0]);
    int64_t h = input_index(window, 1, segment->h, tap->k[1]);
    int64_t w = input_index(window, 2, tap->first, tap->k[2]);
    int64_t position = (d * pool->in[1] + h) * pool->in[2] + w;
    tap->offset = segment->sample * pool->x.sample_stride + segment->from.offset + position * pool->x.position_stride;
    int64_t outputs = tap->last - tap->first, step = window->stride[2] * pool->x.position_stride;
    bool row = segment->from.lanes == 1;
    tap->rows = row ? 1 : outputs;
    tap->columns = row ? outputs : segment->from.lanes;
    tap->row_step = row ? 0 : step;
    tap->column_step = row ? step : 1;
    return true;
}

/* Positions of the input, counted in d,h,w order, up to the end of the last row that windows at (d, h) see. */
static int64_t find_reach(const cvy_pool *pool, int64_t d, int64_t h)
{
    int64_t id = cvy_min_i64(input_index(pool->window, 0, d, pool->window->kernel[0] - 1), pool->in[0] - 1);
    int64_t ih = cvy_min_i64(input_index(pool->window, 1, h, pool->window->kernel[1] - 1), pool->in[1] - 1);
    return (id * pool->in[1] + ih + 1) * pool->in[2];
}

void cvy_pool_clear(const cvy_pool *pool, int64_t unit, int64_t row, int64_t *cleared, float *dx)
{
    const cvy_columns *columns = &pool->x;
    const cvy_strip strip = cvy_columns_strip(columns, unit % columns->strips);
    bool last = row == pool->out[0] * pool->out[1] - 1;
    int64_t reach = find_reach(pool, row / pool->out[1], row % pool->out[1]);
    int64_t end = last ? columns->area : cvy_min_i64(columns->area, reach);
    int64_t count = end - *cleared, lanes = strip.lanes;
    if (count <= 0) {
        return;
    }
    bool dense = columns->position_stride == lanes;
    float *to =
        dx + unit / columns->strips * columns->sample_stride + strip.offset + *cleared * columns->position_stride;
    for (int64_t i = 0; i < (dense ? 1 : count); i++) {
        memset(to + i * columns->position_stride, 0, (size_t)(dense ? count * lanes : lanes) * sizeof *to);
    }
    *cleared = end;
}

/* Positions of the window that are inside the input along an axis. */
static int64_t count_inside(const cvy_pool *pool, int axis, int64_t output)
{
    int64_t inside = 0;
    for (int64_t k = 0; k < pool->window->kernel[axis]; k++) {
        inside += is_inside(pool, axis, output, k);
    }
    return inside;
}

int64_t cvy_pool_count_inside(const cvy_pool *pool, const cvy_pool_segment *segment, int64_t w)
{
    return count_inside(pool, 0, segment->d) * count_inside(pool, 1, segment->h) * count_inside(pool, 2, w);
}
