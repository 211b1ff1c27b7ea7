/*
 * Rates by measurement, so that a share of the floor means the same on every machine. The product is of 512 x 512
 * matrices (1 MB each: they stay in the second and third level cache); the triad a = b + s c counts 3 arrays' bytes.
 */
#include "runtime/floor.h"

#include <math.h>

#include "backend/stopwatch.h"
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

/*
 * Winograd's tiles of 4 x 4 outputs take 6 x 6 products where 3 x 3 taps summed directly take 144 (Lavin and Gray,
 * arXiv:1509.09308, 4.3), and 8 x 8 where 5 x 5 take 400; the transforms around them are not counted.
 */
static double find_winograd_share(const cvy_window *window)
{
    static const double step = 4.0;
    double share = 1.0;
    for (int axis = 1; axis < 3; axis++) {
        double taps = (double)window->kernel[axis];
        share *= (step + taps - 1.0) / (step * taps);
    }
    return share;
}

double cvy_floor_op_s(const cvy_op *op, const cvy_rates *rates)
{
    double flop = cvy_op_flop(op);
    if (cvy_op_by_winograd(op)) {
        flop *= find_winograd_share(&op->params.window.window);
    }
    return fmax(flop / rates->flops, cvy_op_bytes(op) / rates->bandwidth_Bps);
}

double cvy_floor_s(const cvy_schedule *schedule, const cvy_rates *rates, double *step_s_out)
{
    double sum_s = 0.0;
    for (int i = 0; i < schedule->steps; i++) {
        int op = schedule->step[i].op;
        double seconds = op >= 0 ? cvy_floor_op_s(&schedule->op[op], rates) : 0.0;
        sum_s += seconds;
        if (step_s_out) {
            step_s_out[i] = seconds;
        }
    }
    return sum_s;
}

/* ---- by the best primitives ---- */

/*
 * The fastest kernel of each pass of each layer, over the layouts seen so far; 0: none. By its median, since iterations
 * are by theirs: on a machine that others disturb the fastest moment of each kernel adds up to a time that none has.
 */
typedef struct best_passes {
    cvy_stopwatch stopwatch;
    double (*seconds)[CVY_PASS_COUNT];
} best_passes;

static bool is_product(const cvy_schedule *s, const cvy_step *step)
{
    return step->op >= 0 && step->layer >= 0 && step->micro_batch == 0 && cvy_op_has_weights(s->op[step->op].kind);
}

static cvy_status measure_product_op(best_passes *best, int layer, const cvy_op *op)
{
    double seconds;
    double *fastest = &best->seconds[layer][op->pass];
    CVY_TRY(cvy_stopwatch_measure(&best->stopwatch, op, *fastest, &seconds));
    *fastest = *fastest > 0.0 ? fmin(*fastest, seconds) : seconds;
    return CVY_OK;
}

/*
 * Each as it is in the plan, and by Winograd's algorithm where that may be: this first, since where it is much faster a
 * glance at the other one is enough.
 */
static cvy_status measure_products(best_passes *best, const cvy_plan *plan)
{
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        cvy_op other;
        if (!is_product(s, step)) {
            continue;
        }
        const cvy_op *op = &s->op[step->op];
        if (!plan->options.direct_only && cvy_plan_find_winograd(plan, step->layer, op, &other)) {
            CVY_TRY(measure_product_op(best, step->layer, &other));
        }
        CVY_TRY(measure_product_op(best, step->layer, op));
    }
    return CVY_OK;
}

/* The same training in another layout; one that no backend runs adds nothing. */
static cvy_status measure_layout(best_passes *best, const cvy_plan *plan, cvy_layout_choice layout)
{
    cvy_plan *other = NULL;
    cvy_plan_options options = plan->options;
    options.layout = layout;
    cvy_status status = cvy_plan_create(plan->model, &options, &other);
    if (status == CVY_OK) {
        status = measure_products(best, other);
    }
    cvy_plan_destroy(&other);
    return status == CVY_ERR_INFEASIBLE ? CVY_OK : status;
}

static double find_floor(const best_passes *best, const cvy_schedule *s, const cvy_step *step, const cvy_rates *rates)
{
    const cvy_op *op = step->op >= 0 ? &s->op[step->op] : NULL;
    if (op && cvy_op_has_weights(op->kind) && step->layer >= 0) {
        return best->seconds[step->layer][op->pass];
    }
    return op && op->kind != CVY_OP_REORDER ? cvy_floor_op_s(op, rates) : 0.0;
}

static double sum_floor(const best_passes *best, const cvy_schedule *s, const cvy_rates *rates, double *step_s_out)
{
    double sum_s = 0.0;
    for (int i = 0; i < s->steps; i++) {
        double seconds = find_floor(best, s, &s->step[i], rates);
        sum_s += seconds;
        if (step_s_out) {
            step_s_out[i] = seconds;
        }
    }
    return sum_s;
}

cvy_status cvy_floor_measure(const cvy_plan *plan, const cvy_rates *rates, double *step_s_out, double *floor_out)
{
    static const cvy_layout_choice layouts[] = {CVY_LAYOUT_BLOCKED, CVY_LAYOUT_CHANNELS_LAST, CVY_LAYOUT_PLAIN,
                                                CVY_LAYOUT_BLOCKED_INPUT};
    best_passes best = {.stopwatch = {.chain = &plan->options.backends, .effort = CVY_MEASURE_TYPICAL}};
    cvy_status status = CVY_ERR_MEMORY;
    best.seconds = cvy_calloc((size_t)plan->model->layers, sizeof *best.seconds);
    if (!best.seconds) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, measure_products(&best, plan));
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        CVY_TRY_GOTO(status, done, measure_layout(&best, plan, layouts[i]));
    }
    *floor_out = sum_floor(&best, &plan->schedule[CVY_SCHEDULE_TRAIN], rates, step_s_out);
done:
    cvy_free(best.seconds);
    cvy_stopwatch_clear(&best.stopwatch);
    return status;
}
