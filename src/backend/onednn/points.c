/*
 * Convolutions over few positions. The end of a net of small images has planes of 1x1 or 2x2 positions and hundreds of
 * channels; there most of a window lies in the padding, and the library's direct kernels, made for rows of positions,
 * take up to 100 times as long as the arithmetic: 20 ms for a window of 3x3 over 512 channels at 1x1, batch 64, where
 * the one tap that meets the input is a product of 0.2 ms (2.6, AVX-512, one thread).
 *
 * Here each output position is a sum of products over the taps that meet the input. With channels last the samples'
 * channels at a position are a matrix whose rows lie a sample apart, and with weights hwio a tap is a matrix of
 * channels by filters; taps that are neighbours along w meet positions that are neighbours too, so that such a run is
 * one product. The gradients are the same products transposed.
 *
 * Runs are listed when the kernel is made, in an order in which each result, a position or a tap, is either begun or
 * continued by a run as a whole; results that no run reaches are zero.
 */
#include "backend/onednn/points.h"

#include <dnnl.h>
#include <omp.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

/*
 * Where it pays: over 16 and 64 samples and 32 to 512 channels the three passes of a 3x3 window took together 12 to 90
 * times less at 1x1; from 128 channels on 2 to 6 times less at 2x2 with one thread, 0.7 to 3.3 with two. At 3x3 and 4x4
 * one thread still gains, two lose as often. A window of one tap gains 3 to 50 times at 1x1 and nothing beyond, where
 * the samples' positions are one long matrix already.
 */
enum { MAX_POSITIONS = 16, WORTH_POSITIONS = 4, WORTH_CHANNELS = 128, MIN_SAMPLES = 4 };

/* Neighbouring taps at one output position, with the input positions that they meet. */
typedef struct run {
    int64_t y, x, tap; /* the first of each */
    int64_t taps;
    bool first;        /* the results that it adds to hold nothing yet */
} run;

typedef struct points_kernel {
    cvy_kernel base;
    int64_t samples, channels, filters;
    int64_t positions_x, positions_y, taps;
    int w, b, x, y;    /* operands; b is -1 without bias */
    run *runs;
    int count;
    int64_t *idle;     /* results that no run reaches */
    int idle_count;
} points_kernel;

/* ---- which ops ---- */

static int64_t count_positions(const cvy_shape *shape)
{
    int64_t count = 1;
    for (int i = 2; i < shape->dims; i++) {
        if (!cvy_mul_i64(count, shape->extent[i], &count) || count > MAX_POSITIONS) {
            return INT64_MAX;
        }
    }
    return count;
}

static int64_t count_taps(const cvy_op *op)
{
    const int64_t *kernel = op->params.window.window.kernel;
    return kernel[0] * kernel[1] * kernel[2];
}

static bool is_channels_last(const cvy_tensor *tensor)
{
    cvy_tensor other = *tensor;
    other.format = CVY_FORMAT_CHANNELS_LAST;
    return cvy_tensor_format_fits(&other) && cvy_tensor_same_layout(tensor, &other);
}

static bool is_convolution(const cvy_op *op)
{
    bool pass = op->pass == CVY_PASS_FORWARD || op->pass == CVY_PASS_BACKWARD_DATA ||
                op->pass == CVY_PASS_BACKWARD_WEIGHTS;
    return op->kind == CVY_OP_CONVOLUTION && pass && op->params.window.groups == 1;
}

/* Whether an op runs here once its weights are hwio. */
static bool fits(const cvy_op *op, int64_t most_positions)
{
    const cvy_operand *input = cvy_op_find_either(op, CVY_ROLE_X, CVY_ROLE_DX);
    const cvy_operand *output = cvy_op_find_either(op, CVY_ROLE_Y, CVY_ROLE_DY);
    if (!is_convolution(op) || !input || !output) {
        return false;
    }
    const cvy_tensor *x = &input->tensor, *y = &output->tensor;
    return x->dtype == CVY_F32 && x->shape.dims >= 4 && count_positions(&x->shape) <= most_positions &&
           count_positions(&y->shape) <= most_positions && is_channels_last(x) && is_channels_last(y);
}

bool cvy_onednn_points_want(const cvy_op *op)
{
    if (!fits(op, WORTH_POSITIONS)) {
        return false;
    }
    const cvy_shape *x = &cvy_op_find_either(op, CVY_ROLE_X, CVY_ROLE_DX)->tensor.shape;
    const cvy_shape *y = &cvy_op_find_either(op, CVY_ROLE_Y, CVY_ROLE_DY)->tensor.shape;
    bool single = count_positions(x) == 1 && count_positions(y) == 1;
    bool deep = x->extent[1] >= WORTH_CHANNELS && y->extent[1] >= WORTH_CHANNELS && count_taps(op) > 1;
    return x->extent[0] >= MIN_SAMPLES && (single || deep);
}

bool cvy_onednn_points_take(const cvy_op *op)
{
    const cvy_operand *w = cvy_op_find_either(op, CVY_ROLE_W, CVY_ROLE_DW);
    return w && w->tensor.format == CVY_FORMAT_W_HWIO && fits(op, MAX_POSITIONS);
}

/* ---- runs ---- */

/* Extents d, h, w of a tensor's space. */
static void get_space(const cvy_shape *shape, int64_t space[3])
{
    int missing = 5 - shape->dims;
    for (int i = 0; i < 3; i++) {
        space[i] = i < missing ? 1 : shape->extent[i + 2 - missing];
    }
}

/* The input position along an axis that a tap meets; -1: padding. */
static int64_t meet(const cvy_window *window, int axis, int64_t output, int64_t tap, int64_t extent)
{
    int64_t at = output * window->stride[axis] - window->before[axis] + tap * window->dilation[axis];
    return at >= 0 && at < extent ? at : -1;
}

typedef struct lister {
    const cvy_window *window;
    int64_t in[3], out[3];
    run *runs;
    int count, capacity;
} lister;

static cvy_status add_run(lister *l, const run *added)
{
    CVY_TRY(cvy_array_reserve(&l->runs, l->count, &l->capacity, sizeof *l->runs));
    l->runs[l->count++] = *added;
    return CVY_OK;
}

/* The taps of one row of the window that meet the input, at one output position. */
static cvy_status list_row(lister *l, int64_t y, int64_t ow, int64_t first_tap, int64_t first_x)
{
    run row = {.y = y};
    for (int64_t k = 0; k < l->window->kernel[2]; k++) {
        int64_t x = meet(l->window, 2, ow, k, l->in[2]);
        if (x < 0) {
            continue;
        }
        if (row.taps > 0 && row.x + row.taps == first_x + x) {
            row.taps++;
            continue;
        }
        if (row.taps > 0) {
            CVY_TRY(add_run(l, &row));
        }
        row = (run){.y = y, .x = first_x + x, .tap = first_tap + k, .taps = 1};
    }
    return row.taps > 0 ? add_run(l, &row) : CVY_OK;
}

static cvy_status list_position(lister *l, int64_t y)
{
    const int64_t *kernel = l->window->kernel;
    int64_t at[3] = {y / (l->out[1] * l->out[2]), y / l->out[2] % l->out[1], y % l->out[2]};
    for (int64_t kd = 0; kd < kernel[0]; kd++) {
        int64_t d = meet(l->window, 0, at[0], kd, l->in[0]);
        for (int64_t kh = 0; d >= 0 && kh < kernel[1]; kh++) {
            int64_t h = meet(l->window, 1, at[1], kh, l->in[1]);
            if (h >= 0) {
                CVY_TRY(list_row(l, y, at[2], (kd * kernel[1] + kh) * kernel[2], (d * l->in[1] + h) * l->in[2]));
            }
        }
    }
    return CVY_OK;
}

/* ---- what is begun, what is continued ---- */

/* The results of a pass that a run adds to. */
static void find_results(cvy_op_pass pass, const run *r, int64_t *first, int64_t *count)
{
    *first = pass == CVY_PASS_FORWARD ? r->y : pass == CVY_PASS_BACKWARD_DATA ? r->x : r->tap;
    *count = pass == CVY_PASS_FORWARD ? 1 : r->taps;
}

/* Mark runs as first ones; those that begin some of their results and continue others are cut to single taps. */
static cvy_status order_runs(const lister *whole, cvy_op_pass pass, bool *begun, lister *ordered)
{
    for (int i = 0; i < whole->count; i++) {
        run r = whole->runs[i];
        int64_t first, count, known = 0;
        find_results(pass, &r, &first, &count);
        for (int64_t k = 0; k < count; k++) {
            known += begun[first + k];
        }
        bool mixed = known > 0 && known < count;
        for (int64_t k = 0; k < (mixed ? r.taps : 1); k++) {
            run part = {.y = r.y, .x = r.x + k, .tap = r.tap + k, .taps = mixed ? 1 : r.taps};
            find_results(pass, &part, &first, &count);
            part.first = !begun[first];
            memset(begun + first, true, (size_t)count);
            CVY_TRY(add_run(ordered, &part));
        }
    }
    return CVY_OK;
}

static cvy_status list_idle(points_kernel *kernel, const bool *begun, int64_t results)
{
    kernel->idle = cvy_calloc((size_t)results, sizeof *kernel->idle);
    if (!kernel->idle) {
        return CVY_ERR_MEMORY;
    }
    for (int64_t i = 0; i < results; i++) {
        if (!begun[i]) {
            kernel->idle[kernel->idle_count++] = i;
        }
    }
    return CVY_OK;
}

static int64_t count_results(const points_kernel *kernel)
{
    switch (kernel->base.op.pass) {
    case CVY_PASS_FORWARD: return kernel->positions_y;
    case CVY_PASS_BACKWARD_DATA: return kernel->positions_x;
    default: return kernel->taps;
    }
}

static cvy_status list_runs(points_kernel *kernel, const cvy_shape *x, const cvy_shape *y)
{
    const cvy_op *op = &kernel->base.op;
    lister whole = {.window = &op->params.window.window};
    lister ordered = {.window = whole.window};
    bool *begun = cvy_calloc((size_t)count_results(kernel), sizeof *begun);
    cvy_status status = begun ? CVY_OK : CVY_ERR_MEMORY;
    get_space(x, whole.in);
    get_space(y, whole.out);
    for (int64_t i = 0; i < kernel->positions_y; i++) {
        CVY_TRY_GOTO(status, done, list_position(&whole, i));
    }
    CVY_TRY_GOTO(status, done, order_runs(&whole, op->pass, begun, &ordered));
    CVY_TRY_GOTO(status, done, list_idle(kernel, begun, count_results(kernel)));
done:
    kernel->runs = ordered.runs; /* the kernel's to release, whatever happened */
    kernel->count = ordered.count;
    cvy_free(whole.runs);
    cvy_free(begun);
    return status;
}

/* ---- passes ---- */

static void zero_columns(float *first, int64_t rows, int64_t width, int64_t apart)
{
#pragma omp parallel for schedule(static) if (rows * width > 65536)
    for (int64_t i = 0; i < rows; i++) {
        memset(first + i * apart, 0, (size_t)width * sizeof *first);
    }
}

static void zero_idle(const points_kernel *kernel, float *result)
{
    for (int i = 0; i < kernel->idle_count; i++) {
        int64_t at = kernel->idle[i];
        switch (kernel->base.op.pass) {
        case CVY_PASS_FORWARD:
            zero_columns(result + at * kernel->filters, kernel->samples, kernel->filters,
                         kernel->positions_y * kernel->filters);
            break;
        case CVY_PASS_BACKWARD_DATA:
            zero_columns(result + at * kernel->channels, kernel->samples, kernel->channels,
                         kernel->positions_x * kernel->channels);
            break;
        default:
            zero_columns(result + at * kernel->channels * kernel->filters, kernel->channels, kernel->filters,
                         kernel->filters);
        }
    }
}

/* Add the bias to every row, and cut below 0 where the op is a relu's too; NaN stays. */
static void finish_rows(const points_kernel *kernel, const float *bias, float *y)
{
    int64_t rows = kernel->samples * kernel->positions_y, width = kernel->filters;
    bool relu = kernel->base.op.relu;
    if (!bias && !relu) {
        return;
    }
#pragma omp parallel for schedule(static) if (rows * width > 65536)
    for (int64_t i = 0; i < rows; i++) {
        float *row = y + i * width;
        for (int64_t k = 0; k < width; k++) {
            float value = row[k] + (bias ? bias[k] : 0.0f);
            row[k] = relu && value < 0.0f ? 0.0f : value;
        }
    }
}

static void sum_rows(const points_kernel *kernel, const float *dy, float *db)
{
    int64_t rows = kernel->samples * kernel->positions_y, width = kernel->filters;
    memset(db, 0, (size_t)width * sizeof *db);
    for (int64_t i = 0; i < rows; i++) {
#pragma omp simd
        for (int64_t k = 0; k < width; k++) {
            db[k] += dy[i * width + k];
        }
    }
}

/* The part of the results that a thread makes: filters, or samples where the results are rows of channels. */
typedef struct part {
    int64_t first, count;
} part;

static part take_part(const points_kernel *kernel, int thread, int threads)
{
    bool samples = kernel->base.op.pass == CVY_PASS_BACKWARD_DATA;
    int64_t all = samples ? kernel->samples : kernel->filters, grain = samples ? 1 : 16;
    int64_t grains = cvy_ceil_div(all, grain);
    int64_t first = cvy_min_i64(grains * thread / threads * grain, all);
    return (part){first, cvy_min_i64(grains * (thread + 1) / threads * grain, all) - first};
}

static dnnl_status_t multiply(const points_kernel *kernel, const run *r, part own, float *x, float *w, float *y)
{
    int64_t n = kernel->samples, c = r->taps * kernel->channels, f = kernel->filters;
    int64_t x_apart = kernel->positions_x * kernel->channels, y_apart = kernel->positions_y * f;
    float beta = r->first ? 0.0f : 1.0f;
    x += r->x * kernel->channels;
    w += r->tap * kernel->channels * f;
    y += r->y * f;
    switch (kernel->base.op.pass) {
    case CVY_PASS_FORWARD:
        return dnnl_sgemm('N', 'N', n, own.count, c, 1.0f, x, x_apart, w + own.first, f, beta, y + own.first, y_apart);
    case CVY_PASS_BACKWARD_DATA:
        return dnnl_sgemm('N', 'T', own.count, c, f, 1.0f, y + own.first * y_apart, y_apart, w, f, beta,
                          x + own.first * x_apart, x_apart);
    default:
        return dnnl_sgemm('T', 'N', c, own.count, n, 1.0f, x, x_apart, y + own.first, y_apart, beta, w + own.first, f);
    }
}

/*
 * One team for all runs: products of this size are too small to be shared out one by one. Within a team the library
 * runs each product in the thread that asks.
 */
static int multiply_all(const points_kernel *kernel, float *x, float *w, float *y)
{
    int failed = dnnl_success;
#pragma omp parallel reduction(max : failed)
    {
        part own = take_part(kernel, omp_get_thread_num(), omp_get_num_threads());
        dnnl_status_t status = dnnl_success;
        for (int i = 0; i < kernel->count && own.count > 0 && status == dnnl_success; i++) {
            status = multiply(kernel, &kernel->runs[i], own, x, w, y);
        }
        failed = (int)status;
    }
    return failed;
}

static cvy_status run_points(cvy_kernel *base, void *const *operand, void *scratch, const cvy_run *settings)
{
    (void)scratch;
    (void)settings;
    const points_kernel *kernel = (const points_kernel *)base;
    float *x = operand[kernel->x], *w = operand[kernel->w], *y = operand[kernel->y];
    float *b = kernel->b >= 0 ? operand[kernel->b] : NULL;
    cvy_op_pass pass = base->op.pass;
    int failed = multiply_all(kernel, x, w, y);
    CVY_REQUIRE(failed == dnnl_success, failed == dnnl_out_of_memory ? CVY_ERR_MEMORY : CVY_ERR_UNSUPPORTED,
                "onednn: a product of %s failed (status %d)", cvy_op_kind_name(base->op.kind), failed);
    zero_idle(kernel, pass == CVY_PASS_FORWARD ? y : pass == CVY_PASS_BACKWARD_DATA ? x : w);
    if (pass == CVY_PASS_FORWARD) {
        finish_rows(kernel, b, y);
    } else if (b) {
        sum_rows(kernel, y, b);
    }
    return CVY_OK;
}

/* ---- the kernel ---- */

static int find_place(const cvy_op *op, cvy_role role, cvy_role gradient)
{
    int place = cvy_op_index(op, role);
    return place >= 0 ? place : cvy_op_index(op, gradient);
}

static size_t get_scratch_bytes(const cvy_kernel *kernel)
{
    (void)kernel;
    return 0;
}

static const char *get_algorithm(const cvy_kernel *kernel)
{
    (void)kernel;
    return "products";
}

static void destroy(cvy_kernel *base)
{
    points_kernel *kernel = (points_kernel *)base;
    cvy_free(kernel->runs);
    cvy_free(kernel->idle);
    cvy_free(kernel);
}

/* No slots to judge or make an op by: those are the backend's own. */
static const cvy_backend points = {
    .name = "onednn",
    .scratch_bytes = get_scratch_bytes,
    .algorithm = get_algorithm,
    .run = run_points,
    .destroy = destroy,
};

cvy_status cvy_onednn_points_create(const cvy_op *op, cvy_kernel **kernel_out)
{
    points_kernel *kernel = cvy_calloc(1, sizeof *kernel);
    if (!kernel) {
        return CVY_ERR_MEMORY;
    }
    kernel->base = (cvy_kernel){.backend = &points, .op = *op};
    kernel->x = find_place(op, CVY_ROLE_X, CVY_ROLE_DX);
    kernel->w = find_place(op, CVY_ROLE_W, CVY_ROLE_DW);
    kernel->b = find_place(op, CVY_ROLE_B, CVY_ROLE_DB);
    kernel->y = find_place(op, CVY_ROLE_Y, CVY_ROLE_DY);
    const cvy_shape *x = &op->operand[kernel->x].tensor.shape;
    const cvy_shape *y = &op->operand[kernel->y].tensor.shape;
    kernel->samples = x->extent[0];
    kernel->channels = x->extent[1];
    kernel->filters = y->extent[1];
    kernel->positions_x = count_positions(x);
    kernel->positions_y = count_positions(y);
    kernel->taps = count_taps(op);
    cvy_status status = list_runs(kernel, x, y);
    if (status != CVY_OK) {
        destroy(&kernel->base);
        return status;
    }
    *kernel_out = &kernel->base;
    return CVY_OK;
}
