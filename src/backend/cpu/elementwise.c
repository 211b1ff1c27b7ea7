/*
 * ReLU and add: one flat pass over memory, padding included, since 0 stays 0 under both. They never care about formats,
 * so all operands must lie alike. In place or not: an element is read before it is written, and no other is touched.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

typedef void (*range_function)(const float *a, const float *b, float *out, int64_t count);

/* A comparison that NaN fails keeps NaN. */
CVY_VECTOR static void relu_range(const float *x, const float *unused, float *y, int64_t count)
{
    (void)unused;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] < 0 ? 0 : x[i];
    }
}

CVY_VECTOR static void relu_backward_range(const float *y, const float *dy, float *dx, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = y[i] > 0 ? dy[i] : 0;
    }
}

CVY_VECTOR static void add_range(const float *x, const float *x1, float *y, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i] + x1[i];
    }
}

static void run_ranges(range_function function, const float *a, const float *b, float *out, int64_t count)
{
    int64_t chunks = cvy_ceil_div(count, CVY_CPU_CHUNK);
#pragma omp parallel for schedule(static) if (count > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t first = i * CVY_CPU_CHUNK;
        function(a + first, b + first, out + first, cvy_min_i64(CVY_CPU_CHUNK, count - first));
    }
}

static cvy_status run_relu(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    run_ranges(relu_range, operand[0], operand[0], operand[1], kernel->elements);
    return CVY_OK;
}

static cvy_status run_relu_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch,
                                    const cvy_run *run)
{
    (void)scratch;
    (void)run;
    run_ranges(relu_backward_range, operand[0], operand[1], operand[2], kernel->elements);
    return CVY_OK;
}

static cvy_status run_add(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    run_ranges(add_range, operand[0], operand[1], operand[2], kernel->elements);
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    if (!cvy_cpu_same_layout(op)) {
        return NULL;
    }
    if (op->kind == CVY_OP_ADD) {
        return run_add;
    }
    return op->pass == CVY_PASS_BACKWARD_DATA ? run_relu_backward : run_relu;
}

const cvy_cpu_family cvy_cpu_elementwise = {.find = find};
