/*
 * Global pooling: the mean over space of each sample and channel, over every activation format by way of columns. Sums
 * are in float within a chunk and in double over chunks. y has one position, so any format keeps channel c of sample n
 * at n times the padded channels plus c.
 */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

static int64_t padded_channels(const cvy_tensor *tensor) { return cvy_tensor_layout(tensor).padded[1]; }

/* Unit i is strip i % strips of sample i / strips. */
static cvy_walk start_walk(const cvy_columns *columns, const cvy_strip *strip, int64_t sample)
{
    return (cvy_walk){.columns = columns, .strip = strip, .next = sample * columns->area,
                      .last = (sample + 1) * columns->area};
}

/* Of a whole sample. */
static double count_positions(const cvy_op *op, const cvy_columns *columns)
{
    return (double)(op->params.global.positions ? op->params.global.positions : columns->area);
}

static void mean_of_unit(const cvy_columns *columns, double positions, const float *x, int64_t index, float *y)
{
    int64_t sample = index / columns->strips;
    cvy_strip strip = cvy_columns_strip(columns, index % columns->strips);
    int64_t chunk = cvy_max_i64(16, CVY_CPU_CHUNK / strip.lanes), last = (sample + 1) * columns->area;
    double all[CVY_COLUMNS_WIDTH], here[CVY_COLUMNS_WIDTH];
    float row[CVY_COLUMNS_WIDTH];
    memset(all, 0, (size_t)strip.lanes * sizeof all[0]);
    for (int64_t first = sample * columns->area; first < last; first += chunk) {
        cvy_walk walk = start_walk(columns, &strip, sample);
        memset(row, 0, (size_t)strip.width * sizeof row[0]);
        walk.next = first;
        walk.last = cvy_min_i64(first + chunk, last);
        cvy_walk_next(&walk);
        cvy_columns_sum(x + walk.offset, &walk.matrix, row);
        cvy_columns_fold(&strip, row, here);
        for (int64_t i = 0; i < strip.lanes; i++) {
            all[i] += here[i];
        }
    }
    for (int64_t i = 0; i < strip.valid; i++) {
        y[strip.channel + i] = (float)(all[i] / positions);
    }
}

static cvy_status run_forward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const cvy_columns *columns = &kernel->columns;
    const float *x = operand[0];
    float *y = operand[1];
    double positions = count_positions(&kernel->base.op, columns);
    int64_t pitch = padded_channels(&kernel->base.op.operand[1].tensor);
    if (pitch != columns->channels) {
        memset(y, 0, (size_t)(columns->samples * pitch) * sizeof *y);
    }
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t index = 0; index < columns->samples * columns->strips; index++) {
        mean_of_unit(columns, positions, x, index, y + index / columns->strips * pitch);
    }
    return CVY_OK;
}

CVY_VECTOR static void copy_masked(const float *x, const float *row, float *dx, int64_t width)
{
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        dx[i] = x[i] > 0 ? row[i] : 0;
    }
}

/* Each position of a sample gets its share of the gradient of the mean, but where @p x, if any, is a relu's 0. */
static void spread_unit(const cvy_columns *columns, double positions, const float *dy, int64_t index, const float *x,
                        float *dx)
{
    cvy_strip strip = cvy_columns_strip(columns, index % columns->strips);
    float row[CVY_COLUMNS_WIDTH];
    for (int64_t i = 0; i < strip.lanes; i++) {
        row[i] = i < strip.valid ? dy[strip.channel + i] / (float)positions : 0;
    }
    cvy_columns_repeat(&strip, row);
    cvy_walk walk = start_walk(columns, &strip, index / columns->strips);
    cvy_walk_next(&walk);
    for (int64_t i = 0; i <= walk.matrix.rows; i++) {
        int64_t width = i < walk.matrix.rows ? walk.matrix.width : walk.matrix.tail;
        int64_t at = walk.offset + i * walk.matrix.stride;
        if (x) {
            copy_masked(x + at, row, dx + at, width);
        } else {
            memcpy(dx + at, row, (size_t)width * sizeof row[0]);
        }
    }
}

static cvy_status run_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const cvy_op *op = &kernel->base.op;
    const cvy_columns columns = cvy_columns_get(&op->operand[op->operands - 1].tensor);
    const float *dy = operand[0], *x = op->relu ? operand[1] : NULL;
    float *dx = operand[op->operands - 1];
    double positions = count_positions(op, &columns);
    int64_t pitch = padded_channels(&op->operand[0].tensor);
    bool large = columns.samples * columns.sample_stride > CVY_CPU_SERIAL_ELEMENTS;
#pragma omp parallel for schedule(static) if (large)
    for (int64_t index = 0; index < columns.samples * columns.strips; index++) {
        spread_unit(&columns, positions, dy + index / columns.strips * pitch, index, x, dx);
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    const cvy_tensor *last = &op->operand[op->operands - 1].tensor;
    if (!cvy_columns_fit(&op->operand[0].tensor) || !cvy_columns_fit(last)) {
        return NULL;
    }
    if (op->relu && !cvy_tensor_same_layout(&op->operand[1].tensor, last)) {
        return NULL;
    }
    return op->pass == CVY_PASS_BACKWARD_DATA ? run_backward : run_forward;
}

const cvy_cpu_family cvy_cpu_pool_global = {.find = find};
