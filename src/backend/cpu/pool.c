/*
 * Max and average pooling, both passes, over every activation format. An output row is worked on in segments that stay
 * in the first-level cache; for each position of the window (a tap), in kd,kh,kw order, all outputs of the segment
 * whose input is inside take it in one loop: along channels where they lie innermost, along w in plain format.
 *
 * Backward, a thread owns a strip of a sample, since windows overlap: no two threads add to one element, and the order
 * of additions is that of the outputs. A relu's gradient is taken on the way: of max pooling where y, which is small,
 * says so; of averages over each strip while it is in the cache.
 */
#include <string.h>

#include "backend/cpu/pool_geometry.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* A segment of outputs: channels innermost, without gaps. */
typedef struct segment_values {
    float value[CVY_POOL_SEGMENT];
    int32_t index[CVY_POOL_SEGMENT];
} segment_values;

/* The larger wins, the first of equals, and the first NaN over all (it is not equal to itself). */
static inline bool wins(float candidate, float held)
{
    return candidate > held || (candidate != candidate && held == held);
}

CVY_VECTOR static void take_larger(const float *x, const cvy_pool_tap *tap, float *value, int32_t *index)
{
    int64_t columns = tap->columns, step = tap->column_step;
    int32_t here = (int32_t)tap->index;
    for (int64_t row = 0; row < tap->rows; row++) {
        const float *from = x + row * tap->row_step;
        float *held = value + row * columns;
        int32_t *at = index + row * columns;
#pragma omp simd
        for (int64_t i = 0; i < columns; i++) {
            float candidate = from[i * step];
            bool better = wins(candidate, held[i]) || at[i] < 0;
            held[i] = better ? candidate : held[i];
            at[i] = better ? here : at[i];
        }
    }
}

CVY_VECTOR static void take_sum(const float *x, const cvy_pool_tap *tap, float *value)
{
    int64_t columns = tap->columns, step = tap->column_step;
    for (int64_t row = 0; row < tap->rows; row++) {
        const float *from = x + row * tap->row_step;
        float *sum = value + row * columns;
#pragma omp simd
        for (int64_t i = 0; i < columns; i++) {
            sum[i] += from[i * step];
        }
    }
}

CVY_VECTOR static void give_to_all(const float *value, const cvy_pool_tap *tap, float *dx)
{
    int64_t columns = tap->columns, step = tap->column_step;
    for (int64_t row = 0; row < tap->rows; row++) {
        const float *from = value + row * columns;
        float *to = dx + row * tap->row_step;
#pragma omp simd
        for (int64_t i = 0; i < columns; i++) {
            to[i * step] += from[i];
        }
    }
}

/* The gradient goes where the window says that the largest value was. */
CVY_VECTOR static void give_to_winners(const float *value, const int32_t *index, const cvy_pool_tap *tap, float *dx)
{
    int64_t columns = tap->columns, step = tap->column_step;
    int32_t here = (int32_t)tap->index;
    for (int64_t row = 0; row < tap->rows; row++) {
        const float *from = value + row * columns;
        const int32_t *at = index + row * columns;
        float *to = dx + row * tap->row_step;
#pragma omp simd
        for (int64_t i = 0; i < columns; i++) {
            to[i * step] += at[i] == here ? from[i] : 0;
        }
    }
}

/* Segment @p index of a strip of a sample: rows of outputs in d,h order, each cut alike. */
static cvy_pool_segment cut_segment(const cvy_pool *pool, int64_t unit, int64_t index)
{
    int64_t positions = cvy_pool_segment_positions(pool), pieces = cvy_ceil_div(pool->out[2], positions);
    int64_t strip = unit % pool->x.strips, row = index / pieces, first = index % pieces * positions;
    return (cvy_pool_segment){
        .sample = unit / pool->x.strips,
        .from = cvy_columns_strip(&pool->x, strip),
        .to = cvy_columns_strip(&pool->y, strip),
        .d = row / pool->out[1],
        .h = row % pool->out[1],
        .first = first,
        .last = cvy_min_i64(first + positions, pool->out[2]),
    };
}

static int64_t count_segments(const cvy_pool *pool)
{
    return pool->out[0] * pool->out[1] * cvy_ceil_div(pool->out[2], cvy_pool_segment_positions(pool));
}

/* Divide each output by the window, or by its part inside the input. */
static void divide(const cvy_pool *pool, const cvy_pool_segment *segment, bool whole, float *value)
{
    const int64_t *kernel = pool->window->kernel;
    int64_t lanes = segment->to.lanes;
    for (int64_t w = segment->first; w < segment->last; w++) {
        int64_t count = whole ? kernel[0] * kernel[1] * kernel[2] : cvy_pool_count_inside(pool, segment, w);
        for (int64_t i = 0; i < lanes; i++) {
            value[(w - segment->first) * lanes + i] /= (float)count;
        }
    }
}

static void average_segment(const cvy_pool *pool, const cvy_pool_segment *segment, bool whole, const float *x, float *y)
{
    float value[CVY_POOL_SEGMENT];
    int64_t lanes = segment->to.lanes, outputs = segment->last - segment->first;
    memset(value, 0, (size_t)(outputs * lanes) * sizeof value[0]);
    for (cvy_pool_tap tap = {.index = -1}; cvy_pool_next_tap(pool, segment, &tap);) {
        take_sum(x + tap.offset, &tap, value + (tap.first - segment->first) * lanes);
    }
    divide(pool, segment, whole, value);
    float *to = y + cvy_pool_output_offset(pool, segment);
    for (int64_t i = 0; i < outputs; i++) {
        memcpy(to + i * pool->y.position_stride, value + i * lanes, (size_t)lanes * sizeof *to);
    }
}

/* NaN stays. */
CVY_VECTOR static void rectify(float *value, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        value[i] = value[i] < 0 ? 0 : value[i];
    }
}

/* The outputs of a segment; @p window is NULL in inference. */
static void largest_segment(const cvy_pool *pool, const cvy_pool_segment *segment, bool relu, const float *x, float *y,
                            uint8_t *window)
{
    segment_values all;
    int64_t lanes = segment->to.lanes, outputs = segment->last - segment->first;
    int64_t offset = cvy_pool_output_offset(pool, segment), stride = pool->y.position_stride;
    for (int64_t i = 0; i < outputs * lanes; i++) {
        all.value[i] = 0;
        all.index[i] = -1;
    }
    for (cvy_pool_tap tap = {.index = -1}; cvy_pool_next_tap(pool, segment, &tap);) {
        int64_t at = (tap.first - segment->first) * lanes;
        take_larger(x + tap.offset, &tap, all.value + at, all.index + at);
    }
    if (relu) {
        rectify(all.value, outputs * lanes);
    }
    for (int64_t i = 0; i < outputs; i++) {
        memcpy(y + offset + i * stride, all.value + i * lanes, (size_t)lanes * sizeof *y);
        for (int64_t lane = 0; window && lane < lanes; lane++) { /* zero in the padding */
            window[offset + i * stride + lane] = lane < segment->to.valid ? (uint8_t)all.index[i * lanes + lane] : 0;
        }
    }
}

static cvy_status run_forward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const cvy_op *op = &kernel->base.op;
    const cvy_pool pool = cvy_pool_get(op, &op->operand[0].tensor, &op->operand[1].tensor);
    uint8_t *window = op->operands > 2 ? operand[2] : NULL;
    int64_t units = pool.x.samples * pool.x.strips, segments = count_segments(&pool);
#pragma omp parallel for collapse(2) schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t unit = 0; unit < units; unit++) {
        for (int64_t i = 0; i < segments; i++) {
            cvy_pool_segment segment = cut_segment(&pool, unit, i);
            if (op->kind == CVY_OP_POOL_MAX) {
                largest_segment(&pool, &segment, op->relu, operand[0], operand[1], window);
            } else {
                average_segment(&pool, &segment, op->params.window.count_padding, operand[0], operand[1]);
            }
        }
    }
    return CVY_OK;
}

/* A strip of a sample of x, in rows without gaps. */
typedef struct unit_rows {
    int64_t offset, count, stride, width;
} unit_rows;

static unit_rows find_rows(const cvy_pool *pool, const cvy_pool_segment *segment)
{
    const cvy_columns *columns = &pool->x;
    bool dense = columns->position_stride == segment->from.lanes;
    return (unit_rows){.offset = segment->sample * columns->sample_stride + segment->from.offset,
                       .count = dense ? 1 : columns->area,
                       .stride = columns->position_stride,
                       .width = segment->from.lanes * (dense ? columns->area : 1)};
}

static void clear_unit(const cvy_pool *pool, const cvy_pool_segment *segment, float *dx)
{
    unit_rows rows = find_rows(pool, segment);
    for (int64_t i = 0; i < rows.count; i++) {
        memset(dx + rows.offset + i * rows.stride, 0, (size_t)rows.width * sizeof *dx);
    }
}

/* Rows of what a relu made, and of the gradient that comes to it: none where that is not above 0. */
CVY_VECTOR static void mask_rows(const float *made, int64_t made_stride, float *gradient, int64_t stride, int64_t rows,
                                 int64_t width)
{
    for (int64_t row = 0; row < rows; row++) {
        const float *by = made + row * made_stride;
        float *masked = gradient + row * stride;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            masked[i] = by[i] > 0 ? masked[i] : 0;
        }
    }
}

/* What a backward pass reads; y and window of max pooling only, y and x of a relu only: else NULL. */
typedef struct gradient_sources {
    const float *dy, *y, *x;
    const uint8_t *window;
    bool whole; /* averages are of the whole window */
} gradient_sources;

/* Load the gradients of a segment, and who won them. */
static void load_segment(const cvy_pool *pool, const cvy_pool_segment *segment, const gradient_sources *from,
                         segment_values *all)
{
    int64_t lanes = segment->to.lanes, outputs = segment->last - segment->first;
    int64_t offset = cvy_pool_output_offset(pool, segment), stride = pool->y.position_stride;
    for (int64_t i = 0; i < outputs; i++) {
        memcpy(all->value + i * lanes, from->dy + offset + i * stride, (size_t)lanes * sizeof(float));
        for (int64_t lane = 0; from->window && lane < lanes; lane++) {
            all->index[i * lanes + lane] = from->window[offset + i * stride + lane];
        }
    }
    if (from->y) { /* in plain order outputs lie side by side */
        int64_t rows = lanes > 1 ? outputs : 1;
        mask_rows(from->y + offset, stride, all->value, lanes, rows, outputs * lanes / rows);
    }
}

static void spread_segment(const cvy_pool *pool, const cvy_pool_segment *segment, const gradient_sources *from,
                           float *dx)
{
    segment_values all;
    int64_t lanes = segment->to.lanes;
    load_segment(pool, segment, from, &all);
    if (!from->window) {
        divide(pool, segment, from->whole, all.value);
    }
    for (cvy_pool_tap tap = {.index = -1}; cvy_pool_next_tap(pool, segment, &tap);) {
        int64_t at = (tap.first - segment->first) * lanes;
        if (from->window) {
            give_to_winners(all.value + at, all.index + at, &tap, dx + tap.offset);
        } else {
            give_to_all(all.value + at, &tap, dx + tap.offset);
        }
    }
}

static const void *find_operand(const cvy_op *op, void *const *operand, cvy_role role)
{
    int i = cvy_op_index(op, role);
    return i < 0 ? NULL : operand[i];
}

static cvy_status run_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const cvy_op *op = &kernel->base.op;
    const cvy_pool pool = cvy_pool_get(op, &op->operand[op->operands - 1].tensor, &op->operand[0].tensor);
    const gradient_sources from = {
        .dy = operand[0],
        .y = find_operand(op, operand, CVY_ROLE_Y),
        .x = find_operand(op, operand, CVY_ROLE_X),
        .window = find_operand(op, operand, CVY_ROLE_WINDOW),
        .whole = op->kind == CVY_OP_POOL_AVERAGE && op->params.window.count_padding,
    };
    float *dx = operand[op->operands - 1];
    int64_t units = pool.x.samples * pool.x.strips, segments = count_segments(&pool);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t unit = 0; unit < units; unit++) {
        cvy_pool_segment segment = cut_segment(&pool, unit, 0);
        clear_unit(&pool, &segment, dx);
        for (int64_t i = 0; i < segments; i++) {
            cvy_pool_segment here = cut_segment(&pool, unit, i);
            spread_segment(&pool, &here, &from, dx);
        }
        if (from.x) {
            unit_rows rows = find_rows(&pool, &segment);
            mask_rows(from.x + rows.offset, rows.stride, dx + rows.offset, rows.stride, rows.count, rows.width);
        }
    }
    return CVY_OK;
}

/* A window of more than 256 positions, whose index is no byte, is left to the reference. */
static cvy_cpu_run find(const cvy_op *op)
{
    bool backward = op->pass == CVY_PASS_BACKWARD_DATA;
    const cvy_tensor *x = &op->operand[backward ? op->operands - 1 : 0].tensor;
    const cvy_tensor *y = &op->operand[backward ? 0 : 1].tensor;
    const cvy_operand *window = cvy_op_find(op, CVY_ROLE_WINDOW);
    if (window && (window->tensor.dtype != CVY_U8 || window->tensor.format != y->format)) {
        return NULL;
    }
    if (!cvy_pool_fits(x, y)) {
        return NULL;
    }
    const cvy_operand *made = backward ? cvy_op_find(op, CVY_ROLE_X) : NULL;
    if (made && !cvy_tensor_same_layout(&made->tensor, x)) {
        return NULL;
    }
    return backward ? run_backward : run_forward;
}

const cvy_cpu_family cvy_cpu_pool = {.find = find};
