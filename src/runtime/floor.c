/*
 * Rates by measurement, so that a share of the floor means the same on every machine. The product is of 512 x 512
 * matrices (1 MB each: they stay in the second and third level cache); the triad a = b + s c counts 3 arrays' bytes.
 */
#include "runtime/floor.h"

#include <math.h>

#include "base/clock.h"
#include "base/memory.h"

enum { PRODUCT_SIZE = 512, PRODUCT_RUNS = 12, TRIAD_ELEMENTS = 16 << 20, TRIAD_RUNS = 5 };

static cvy_status make_product(const cvy_backend_chain *backends, cvy_kernel **kernel_out)
{
    cvy_op op = {.kind = CVY_OP_DENSE, .pass = CVY_PASS_FORWARD};
    cvy_tensor square = {.shape = CVY_SHAPE(PRODUCT_SIZE, PRODUCT_SIZE), .dtype = CVY_F32};
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &square));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_W, &square));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_Y, &square));
    return cvy_kernel_create(backends, &op, kernel_out);
}

static cvy_status measure_product(const cvy_backend_chain *backends, double *flops_out)
{
    enum { BYTES = PRODUCT_SIZE * PRODUCT_SIZE * 4 };
    cvy_kernel *kernel = NULL;
    cvy_arena arena = {0};
    cvy_status status = make_product(backends, &kernel);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_arena_create(3 * BYTES + cvy_kernel_scratch_bytes(kernel), &arena));
    void *operand[3] = {arena.base, arena.base + BYTES, arena.base + 2 * BYTES};
    double best_s = INFINITY;
    for (int i = 0; i < PRODUCT_RUNS; i++) {
        double start_s = cvy_clock_s();
        CVY_TRY_GOTO(status, done, cvy_kernel_run(kernel, operand, arena.base + 3 * BYTES, &(cvy_run){0}));
        best_s = fmin(best_s, cvy_clock_s() - start_s);
    }
    *flops_out = 2.0 * PRODUCT_SIZE * PRODUCT_SIZE * PRODUCT_SIZE / best_s;
done:
    cvy_kernel_destroy(&kernel);
    cvy_arena_destroy(&arena);
    return status;
}

static void run_triad(float *restrict a, const float *restrict b, const float *restrict c)
{
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < TRIAD_ELEMENTS; i++) {
        a[i] = b[i] + 3.0f * c[i];
    }
}

static cvy_status measure_triad(double *bandwidth_out)
{
    cvy_arena arena = {0};
    CVY_TRY(cvy_arena_create(3 * (size_t)TRIAD_ELEMENTS * sizeof(float), &arena));
    float *array = (float *)(void *)arena.base;
    double best_s = INFINITY;
    for (int i = 0; i < TRIAD_RUNS; i++) {
        double start_s = cvy_clock_s();
        run_triad(array, array + TRIAD_ELEMENTS, array + 2 * TRIAD_ELEMENTS);
        best_s = fmin(best_s, cvy_clock_s() - start_s);
    }
    *bandwidth_out = 3.0 * TRIAD_ELEMENTS * sizeof(float) / best_s;
    cvy_arena_destroy(&arena);
    return CVY_OK;
}

cvy_status cvy_rates_measure(const cvy_backend_chain *backends, cvy_rates *rates_out)
{
    CVY_TRY(measure_product(backends, &rates_out->flops));
    return measure_triad(&rates_out->bandwidth_Bps);
}

double cvy_floor_s(const cvy_schedule *schedule, const cvy_rates *rates)
{
    double sum_s = 0.0;
    for (int i = 0; i < schedule->ops; i++) {
        double arithmetic_s = cvy_op_flop(&schedule->op[i]) / rates->flops;
        double traffic_s = cvy_op_bytes(&schedule->op[i]) / rates->bandwidth_Bps;
        sum_s += fmax(arithmetic_s, traffic_s);
    }
    return sum_s;
}
