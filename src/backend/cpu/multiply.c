/*
 * Multiply: each channel of a sample times its one factor, over every activation format by way of columns. Sums over
 * space are in float within a chunk and in double over chunks. x1 has one position, so any format keeps channel c of
 * sample n at n times the padded channels plus c.
 *
 * In place: a factor is read before anything of its channel is written, and an element before its own place.
 */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* The factors of a strip, repeated until a row is full; 0 in the padding. */
static void load_row(const cvy_strip *strip, const float *x1, float *row)
{
    for (int64_t i = 0; i < strip->lanes; i++) {
        row[i] = i < strip->valid ? x1[strip->channel + i] : 0;
    }
    cvy_columns_repeat(strip, row);
}

CVY_VECTOR static void scale_row(const float *x, const float *row, float *y, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = row[i] * x[i];
    }
}

/* dx and, of a row, what it adds to the sums. */
CVY_VECTOR static void scale_row_backward(const float *x, const float *dy, const float *row, float *dx, float *sum,
                                          int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float gradient = dy[i];
        sum[i] += gradient * x[i];
        dx[i] = row[i] * gradient;
    }
}

static int64_t count_row(const cvy_matrix *matrix, int64_t row)
{
    return row < matrix->rows ? matrix->width : matrix->tail;
}

/* Channels of a strip in one sample. */
static void scale_unit(const cvy_columns *columns, int64_t index, const float *x, const float *x1, float *y)
{
    int64_t sample = index / columns->strips;
    cvy_strip strip = cvy_columns_strip(columns, index % columns->strips);
    cvy_walk walk = {.columns = columns, .strip = &strip, .next = sample * columns->area,
                     .last = (sample + 1) * columns->area};
    float row[CVY_COLUMNS_WIDTH];
    load_row(&strip, x1, row);
    cvy_walk_next(&walk);
    for (int64_t i = 0; i <= walk.matrix.rows; i++) {
        int64_t at = walk.offset + i * walk.matrix.stride;
        scale_row(x + at, row, y + at, count_row(&walk.matrix, i));
    }
}

static int64_t padded_channels(const cvy_tensor *tensor) { return cvy_tensor_layout(tensor).padded[1]; }

static cvy_status run_forward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const cvy_columns *columns = &kernel->columns;
    const float *x = operand[0], *x1 = operand[1];
    float *y = operand[2];
    int64_t pitch = padded_channels(&kernel->base.op.operand[1].tensor);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t index = 0; index < columns->samples * columns->strips; index++) {
        scale_unit(columns, index, x, x1 + index / columns->strips * pitch, y);
    }
    return CVY_OK;
}

/* Where the operands of the backward pass lie: x1 and dx1 at the unit's sample. */
typedef struct backward_unit {
    const float *x, *x1, *dy;
    float *dx, *dx1;
} backward_unit;

static void scale_unit_backward(const cvy_columns *columns, int64_t index, const backward_unit *unit)
{
    int64_t sample = index / columns->strips, last = (sample + 1) * columns->area;
    cvy_strip strip = cvy_columns_strip(columns, index % columns->strips);
    int64_t chunk = cvy_max_i64(16, CVY_CPU_CHUNK / strip.lanes);
    double all[CVY_COLUMNS_WIDTH], here[CVY_COLUMNS_WIDTH];
    float row[CVY_COLUMNS_WIDTH], sum[CVY_COLUMNS_WIDTH];
    memset(all, 0, (size_t)strip.lanes * sizeof all[0]);
    load_row(&strip, unit->x1, row);
    for (int64_t first = sample * columns->area; first < last; first += chunk) {
        cvy_walk walk = {.columns = columns, .strip = &strip, .next = first,
                         .last = cvy_min_i64(first + chunk, last)};
        memset(sum, 0, (size_t)strip.width * sizeof sum[0]);
        cvy_walk_next(&walk);
        for (int64_t i = 0; i <= walk.matrix.rows; i++) {
            int64_t at = walk.offset + i * walk.matrix.stride;
            scale_row_backward(unit->x + at, unit->dy + at, row, unit->dx + at, sum, count_row(&walk.matrix, i));
        }
        cvy_columns_fold(&strip, sum, here);
        for (int64_t i = 0; i < strip.lanes; i++) {
            all[i] += here[i];
        }
    }
    for (int64_t i = 0; i < strip.valid; i++) {
        unit->dx1[strip.channel + i] = (float)all[i];
    }
}

static cvy_status run_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const cvy_columns *columns = &kernel->columns;
    int64_t read = padded_channels(&kernel->base.op.operand[1].tensor);
    int64_t written = padded_channels(&kernel->base.op.operand[4].tensor);
    if (written != columns->channels) {
        memset(operand[4], 0, (size_t)(columns->samples * written) * sizeof(float));
    }
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t index = 0; index < columns->samples * columns->strips; index++) {
        int64_t sample = index / columns->strips;
        backward_unit unit = {.x = operand[0], .x1 = (const float *)operand[1] + sample * read, .dy = operand[2],
                              .dx = operand[3], .dx1 = (float *)operand[4] + sample * written};
        scale_unit_backward(columns, index, &unit);
    }
    return CVY_OK;
}

/* x, y, dx and dy lie alike; x1 and dx1 as they like. */
static cvy_cpu_run find(const cvy_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        const cvy_tensor *tensor = &op->operand[i].tensor;
        bool factors = op->operand[i].role == CVY_ROLE_X1 || op->operand[i].role == CVY_ROLE_DX1;
        if (!cvy_columns_fit(tensor) || (!factors && !cvy_tensor_same_layout(&op->operand[0].tensor, tensor))) {
            return NULL;
        }
    }
    return op->pass == CVY_PASS_BACKWARD ? run_backward : run_forward;
}

const cvy_cpu_family cvy_cpu_multiply = {.find = find};
