/*
 * Activations and add, alone or a relu with a sum: one flat pass over memory, padding included, since 0 stays 0 under
 * all of them but the sigmoid, which clears it afterwards. They never care about formats, so all operands must lie
 * alike. In place or not: an element is read before it is written, and no other is touched.
 */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/sigmoid.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* out[i] of a[i] and b[i]; the slope is leaky relu's. */
typedef void (*range_function)(const float *a, const float *b, float *out, int64_t count, float slope);

/* Comparisons that NaN fails keep NaN. */
CVY_VECTOR static void relu_range(const float *x, const float *unused, float *y, int64_t count, float slope)
{
    (void)unused;
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] < 0 ? 0 : x[i];
    }
}

CVY_VECTOR static void relu_backward_range(const float *y, const float *dy, float *dx, int64_t count, float slope)
{
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = y[i] > 0 ? dy[i] : 0;
    }
}

CVY_VECTOR static void relu6_range(const float *x, const float *unused, float *y, int64_t count, float slope)
{
    (void)unused;
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float above = x[i] < 0 ? 0 : x[i];
        y[i] = above > 6 ? 6 : above;
    }
}

CVY_VECTOR static void relu6_backward_range(const float *y, const float *dy, float *dx, int64_t count, float slope)
{
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = (y[i] > 0) & (y[i] < 6) ? dy[i] : 0;
    }
}

CVY_VECTOR static void leaky_relu_range(const float *x, const float *unused, float *y, int64_t count, float slope)
{
    (void)unused;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] > 0 ? x[i] : slope * x[i];
    }
}

CVY_VECTOR static void leaky_relu_backward_range(const float *y, const float *dy, float *dx, int64_t count, float slope)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
    }
}

CVY_VECTOR static void hard_swish_range(const float *x, const float *unused, float *y, int64_t count, float slope)
{
    (void)unused;
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float above = x[i] < -3 ? 0 : x[i] + 3;
        y[i] = x[i] * (above > 6 ? 6 : above) * (1.0f / 6);
    }
}

CVY_VECTOR static void hard_swish_backward_range(const float *x, const float *dy, float *dx, int64_t count, float slope)
{
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float factor = x[i] >= 3 ? 1 : x[i] * (1.0f / 3) + 0.5f;
        dx[i] = x[i] < -3 ? 0 : dy[i] * factor;
    }
}

CVY_VECTOR static void add_range(const float *x, const float *x1, float *y, int64_t count, float slope)
{
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] + x1[i];
    }
}

CVY_VECTOR static void add_relu_range(const float *x, const float *x1, float *y, int64_t count, float slope)
{
    (void)slope;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float sum = x[i] + x1[i];
        y[i] = sum < 0 ? 0 : sum;
    }
}

CVY_VECTOR static void relu_backward_sum_range(const float *y, const float *dy, const float *dy1, float *dx,
                                               int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float sum = dy[i] + dy1[i];
        dx[i] = y[i] > 0 ? sum : 0;
    }
}

static const struct {
    range_function forward, backward;
} ranges[CVY_OP_KIND_COUNT] = {
    [CVY_OP_RELU] = {relu_range, relu_backward_range},
    [CVY_OP_ADD] = {add_range, NULL},
    [CVY_OP_RELU6] = {relu6_range, relu6_backward_range},
    [CVY_OP_LEAKY_RELU] = {leaky_relu_range, leaky_relu_backward_range},
    [CVY_OP_SIGMOID] = {cvy_cpu_sigmoid, cvy_cpu_sigmoid_backward},
    [CVY_OP_TANH] = {cvy_cpu_tanh, cvy_cpu_tanh_backward},
    [CVY_OP_SILU] = {cvy_cpu_silu, cvy_cpu_silu_backward},
    [CVY_OP_HARD_SWISH] = {hard_swish_range, hard_swish_backward_range},
};

/* The first operand and the last but one are read (one and the same where there is one input), the last is written. */
static void run_ranges(const cvy_cpu_kernel *kernel, range_function range, void *const *operand)
{
    const cvy_op *op = &kernel->base.op;
    const float *a = operand[0], *b = operand[op->operands - 2];
    float *out = operand[op->operands - 1];
    float slope = op->kind == CVY_OP_LEAKY_RELU ? (float)op->params.activation.slope : 0;
    int64_t count = kernel->elements, chunks = cvy_ceil_div(count, CVY_CPU_CHUNK);
#pragma omp parallel for schedule(static) if (count > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t first = i * CVY_CPU_CHUNK;
        range(a + first, b + first, out + first, cvy_min_i64(CVY_CPU_CHUNK, count - first), slope);
    }
}

static cvy_status run_forward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    run_ranges(kernel, ranges[kernel->base.op.kind].forward, operand);
    return CVY_OK;
}

static cvy_status run_add_relu(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    run_ranges(kernel, add_relu_range, operand);
    return CVY_OK;
}

/* y, dy, dy1, dx. */
static cvy_status run_backward_sum(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch,
                                   const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const float *y = operand[0], *dy = operand[1], *dy1 = operand[2];
    float *dx = operand[3];
    int64_t count = kernel->elements, chunks = cvy_ceil_div(count, CVY_CPU_CHUNK);
#pragma omp parallel for schedule(static) if (count > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t first = i * CVY_CPU_CHUNK;
        relu_backward_sum_range(y + first, dy + first, dy1 + first, dx + first,
                                cvy_min_i64(CVY_CPU_CHUNK, count - first));
    }
    return CVY_OK;
}

static cvy_status run_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    run_ranges(kernel, ranges[kernel->base.op.kind].backward, operand);
    return CVY_OK;
}

/* The sigmoid of 0 is 1/2: the lanes beyond the last channel are made 0 again. */
static cvy_status run_sigmoid(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    CVY_TRY(run_forward(kernel, operand, scratch, run));
    const cvy_columns *columns = &kernel->columns;
    cvy_strip strip = cvy_columns_strip(columns, columns->strips - 1);
    size_t bytes = (size_t)(strip.lanes - strip.valid) * sizeof(float);
    for (int64_t i = 0; bytes > 0 && i < columns->samples * columns->area; i++) {
        int64_t at = i / columns->area * columns->sample_stride + i % columns->area * columns->position_stride;
        memset((float *)operand[1] + at + strip.offset + strip.valid, 0, bytes);
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    if (!cvy_cpu_same_layout(op)) {
        return NULL;
    }
    if (op->kind == CVY_OP_SIGMOID && op->pass == CVY_PASS_FORWARD) {
        return cvy_columns_fit(&op->operand[0].tensor) ? run_sigmoid : NULL;
    }
    if (cvy_op_find(op, CVY_ROLE_DY1)) {
        return run_backward_sum;
    }
    if (op->relu) {
        return run_add_relu;
    }
    return op->pass == CVY_PASS_BACKWARD_DATA ? run_backward : run_forward;
}

const cvy_cpu_family cvy_cpu_elementwise = {.find = find};
