/*
 * Max and average pooling, both passes, over every activation format. Where channels lie innermost and windows are
 * small, as nearly all are, rows are gathered (pool_runs.h), but for the gradient of max pooling (pool_give.h).
 *
 * The rest: an output row is worked on in segments that stay in the first-level cache; for each position of the window
 * (a tap), in kd,kh,kw order, all outputs of the segment whose input is inside take it in one loop: along channels
 * where they lie innermost, along w in plain format. Backward, a thread owns a strip of a sample, since windows
 * overlap: no two threads add to one element.
 *
 * Either way the order of additions is that of the outputs. A relu's gradient is taken on the way: of max pooling where
 * y, which is small, says so; of averages over what is written while it is in the cache.
 */
#include <math.h>
#include <string.h>

#include "backend/cpu/pool_average.h"
#include "backend/cpu/pool_give.h"
#include "backend/cpu/pool_max.h"
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

static void find_largest(const cvy_pool *pool, const cvy_pool_segment *segment, const float *x, segment_values *all)
{
    int64_t lanes = segment->to.lanes;
    for (int64_t i = 0; i < (segment->last - segment->first) * lanes; i++) {
        all->value[i] = 0;
        all->index[i] = -1;
    }
    for (cvy_pool_tap tap = {.index = -1}; cvy_pool_next_tap(pool, segment, &tap);) {
        int64_t at = (tap.first - segment->first) * lanes;
        take_larger(x + tap.offset, &tap, all->value + at, all->index + at);
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

/* Winners are zero in the padding. */
static void store_winners(const cvy_pool_segment *segment, const cvy_pool_rows *rows, const int32_t *index,
                          uint8_t *window)
{
    int64_t lanes = segment->to.lanes, valid = segment->to.valid;
    for (int64_t row = 0; row < rows->count; row++) {
        for (int64_t i = 0; i < rows->width; i++) {
            window[rows->offset + row * rows->stride + i] = (uint8_t)index[row * lanes + i];
        }
    }
    for (int64_t i = 0; valid < lanes && i < segment->last - segment->first; i++) {
        memset(window + rows->offset + i * rows->stride + valid, 0, (size_t)(lanes - valid));
    }
}

/* The outputs of a segment; @p window is NULL in inference. */
static void largest_segment(const cvy_pool *pool, const cvy_pool_segment *segment, bool relu, const float *x, float *y,
                            uint8_t *window)
{
    segment_values all;
    const cvy_pool_rows rows = cvy_pool_output_rows(pool, segment);
    int64_t lanes = segment->to.lanes;
    find_largest(pool, segment, x, &all);
    if (relu) {
        rectify(all.value, (segment->last - segment->first) * lanes);
    }
    for (int64_t row = 0; row < rows.count; row++) {
        memcpy(y + rows.offset + row * rows.stride, all.value + row * lanes, (size_t)rows.width * sizeof *y);
    }
    if (window) {
        store_winners(segment, &rows, all.index, window);
    }
}

/* Forward by rows. */
static void run_rows(const cvy_op *op, const cvy_pool_runs *runs, void *const *operand, bool parallel)
{
    const cvy_pool *pool = runs->pool;
    const cvy_pool_max max = {.x = operand[0],
                              .y = operand[1],
                              .window = op->operands > 2 ? operand[2] : NULL,
                              .least = op->relu ? 0 : -INFINITY};
    int64_t units = pool->x.samples * pool->x.strips, rows = runs->axis[0].own * runs->axis[1].own;
#pragma omp parallel for collapse(2) schedule(static) if (parallel)
    for (int64_t unit = 0; unit < units; unit++) {
        for (int64_t i = 0; i < rows; i++) {
            const cvy_pool_row row = cvy_pool_row_get(runs, unit, i);
            if (op->kind == CVY_OP_POOL_MAX) {
                cvy_pool_max_row(&row, runs->axis[2].own, &max);
            } else {
                cvy_pool_average_row(runs, &row, op->params.window.count_padding, operand[0], operand[1]);
            }
        }
    }
}

static cvy_status run_forward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const cvy_op *op = &kernel->base.op;
    const cvy_pool pool = cvy_pool_get(op, &op->operand[0].tensor, &op->operand[1].tensor);
    bool parallel = kernel->elements > CVY_CPU_SERIAL_ELEMENTS;
    cvy_pool_runs runs;
    if (cvy_pool_runs_get(&pool, false, &runs)) {
        run_rows(op, &runs, operand, parallel);
        return CVY_OK;
    }
    uint8_t *window = op->operands > 2 ? operand[2] : NULL;
    int64_t units = pool.x.samples * pool.x.strips, segments = count_segments(&pool);
#pragma omp parallel for collapse(2) schedule(static) if (parallel)
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
    const cvy_pool_rows rows = cvy_pool_output_rows(pool, segment);
    int64_t lanes = segment->to.lanes;
    for (int64_t row = 0; row < rows.count; row++) {
        int64_t at = rows.offset + row * rows.stride;
        memcpy(all->value + row * lanes, from->dy + at, (size_t)rows.width * sizeof(float));
        for (int64_t i = 0; from->window && i < rows.width; i++) {
            all->index[row * lanes + i] = from->window[at + i];
        }
    }
    if (from->y) {
        mask_rows(from->y + rows.offset, rows.stride, all->value, lanes, rows.count, rows.width);
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

/* Backward of averages by rows. */
static void run_rows_backward(const cvy_pool_runs *runs, const gradient_sources *from, float *dx, bool parallel)
{
    const cvy_pool *pool = runs->pool;
    int64_t units = pool->x.samples * pool->x.strips, rows = runs->axis[0].own * runs->axis[1].own;
    int64_t stride = pool->x.position_stride;
#pragma omp parallel for collapse(2) schedule(static) if (parallel)
    for (int64_t unit = 0; unit < units; unit++) {
        for (int64_t i = 0; i < rows; i++) {
            const cvy_pool_row row = cvy_pool_row_get(runs, unit, i);
            cvy_pool_average_row(runs, &row, from->whole, from->dy, dx);
            if (from->x) {
                mask_rows(from->x + row.to, stride, dx + row.to, stride, runs->axis[2].own, row.strip.lanes);
            }
        }
    }
}

/* Backward of maxima by rows. */
static void give_rows(const cvy_pool_runs *runs, const gradient_sources *from, float *dx, bool parallel)
{
    const cvy_pool_given given = {from->dy, from->y, from->window};
    int64_t units = runs->pool->x.samples * runs->pool->x.strips;
#pragma omp parallel for schedule(static) if (parallel)
    for (int64_t unit = 0; unit < units; unit++) {
        cvy_pool_give(runs, unit, &given, dx);
    }
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
    bool parallel = kernel->elements > CVY_CPU_SERIAL_ELEMENTS;
    cvy_pool_runs runs;
    if (cvy_pool_runs_get(&pool, !from.window, &runs)) {
        (from.window ? give_rows : run_rows_backward)(&runs, &from, dx, parallel);
        return CVY_OK;
    }
    int64_t units = pool.x.samples * pool.x.strips, segments = count_segments(&pool);
#pragma omp parallel for schedule(static) if (parallel)
    for (int64_t unit = 0; unit < units; unit++) {
        cvy_pool_segment segment;
        int64_t cleared = 0;
        for (int64_t i = 0; i < segments; i++) {
            segment = cut_segment(&pool, unit, i);
            cvy_pool_clear(&pool, unit, segment.d * pool.out[1] + segment.h, &cleared, dx);
            spread_segment(&pool, &segment, &from, dx);
        }
        if (from.x) {
            cvy_pool_rows rows = cvy_pool_strip_rows(&pool, &segment);
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
