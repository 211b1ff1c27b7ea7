/*
 * Convolutions of 3x3 and 5x5 windows by Winograd's minimal filtering (winograd.h); oneDNN has 3x3 alone, with AVX-512
 * alone. Tiles are worked on in chunks whose points stay in the caches: a chunk's tiles are taken to their points, one
 * small product is made at each, and the outputs are made of the results before they leave the cache. The gradient of
 * weights sums its products over chunks, in parts that the shape alone decides and in their order, so that the result
 * does not depend on the number of threads.
 *
 * A chunk's tiles times (channels + filters) are what its points hold twice; see setup() for how many there are.
 */
#include "backend/cpu/winograd.h"

#include <omp.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/checked.h"

enum {
    PANEL = CVY_WINOGRAD_PANEL,
    LINE = 16,                 /* floats of a line of the cache */
    CHUNK_FLOATS = 128 * 1024, /* of the points of a chunk: a quarter of a second-level cache of 2 MB */
    LEAST_CHUNK = 24,          /* tiles: below, the weights are read too often for what is done with them */
    MOST_CHUNK = 96,
    PARTS = 8,                 /* sums of the gradient of weights */
};

static const cvy_tensor *find_tensor(const cvy_op *op, cvy_role role, cvy_role gradient)
{
    const cvy_operand *operand = cvy_op_find(op, role);
    operand = operand ? operand : cvy_op_find(op, gradient);
    return operand ? &operand->tensor : NULL;
}

static bool is_window(const cvy_window *window)
{
    bool fits = window->kernel[0] == 1 && window->before[0] == 0 && window->after[0] == 0;
    fits = fits && window->kernel[1] == window->kernel[2] && (window->kernel[1] == 3 || window->kernel[1] == 5);
    for (int axis = 0; axis < 3; axis++) {
        fits = fits && window->stride[axis] == 1 && window->dilation[axis] == 1;
    }
    for (int axis = 1; axis < 3; axis++) { /* the gradient of data has what is left of the window as its padding */
        fits = fits && window->before[axis] >= 0 && window->before[axis] < window->kernel[axis];
    }
    return fits;
}

static int64_t count_lanes(const cvy_tensor *tensor)
{
    return tensor->format == CVY_FORMAT_C16 ? 16 : tensor->format == CVY_FORMAT_C8 ? 8 : 0;
}

static bool fits(const cvy_op *op)
{
    const cvy_tensor *x = find_tensor(op, CVY_ROLE_X, CVY_ROLE_DX), *y = find_tensor(op, CVY_ROLE_Y, CVY_ROLE_DY);
    const cvy_tensor *w = find_tensor(op, CVY_ROLE_W, CVY_ROLE_DW);
    if (!cvy_op_by_winograd(op) || op->params.window.groups != 1 || !x || !y || !w || x->shape.dims != 4 ||
        w->shape.dims != 4 || w->grouped || !is_window(&op->params.window.window)) {
        return false;
    }
    int64_t lanes = count_lanes(x);
    return lanes > 0 && lanes == count_lanes(y) && x->shape.extent[1] % lanes == 0 && y->shape.extent[1] % lanes == 0;
}

static cvy_winograd_plane describe_plane(const cvy_tensor *tensor)
{
    cvy_layout layout = cvy_tensor_layout(tensor);
    return (cvy_winograd_plane){.channels = tensor->shape.extent[1],
                                .height = tensor->shape.extent[2],
                                .width = tensor->shape.extent[3],
                                .sample_stride = layout.stride[0],
                                .block_stride = layout.stride[1],
                                .row_stride = layout.stride[2],
                                .position_stride = layout.stride[3],
                                .panels = cvy_ceil_div(tensor->shape.extent[1], PANEL)};
}

static int64_t choose_chunk(const cvy_winograd *all)
{
    int64_t chunk = CHUNK_FLOATS / all->points / PANEL / (all->source.panels + all->target.panels) / 8 * 8;
    chunk = cvy_max_i64(LEAST_CHUNK, cvy_min_i64(chunk, MOST_CHUNK));
    return cvy_min_i64(chunk, cvy_round_up(all->tiles, 8));
}

static cvy_winograd describe(const cvy_op *op)
{
    bool backward = op->pass == CVY_PASS_BACKWARD_DATA;
    const cvy_tensor *x = find_tensor(op, CVY_ROLE_X, CVY_ROLE_DX), *y = find_tensor(op, CVY_ROLE_Y, CVY_ROLE_DY);
    const cvy_window *window = &op->params.window.window;
    cvy_winograd all = {.source = describe_plane(backward ? y : x), .target = describe_plane(backward ? x : y),
                        .lanes = count_lanes(x), .taps = window->kernel[1]};
    all.side = CVY_WINOGRAD_STEP + all.taps - 1;
    all.points = all.side * all.side;
    all.weights = (cvy_winograd_weights){.layout = cvy_tensor_layout(find_tensor(op, CVY_ROLE_W, CVY_ROLE_DW)),
                                         .row = backward ? 0 : 1, .column = backward ? 1 : 0, .turned = backward};
    for (int axis = 0; axis < 2; axis++) {
        int64_t before = window->before[1 + axis];
        all.before[axis] = backward ? all.taps - 1 - before : before;
    }
    all.rows = cvy_ceil_div(all.target.height, CVY_WINOGRAD_STEP);
    all.columns = cvy_ceil_div(all.target.width, CVY_WINOGRAD_STEP);
    all.tiles = x->shape.extent[0] * all.rows * all.columns;
    all.chunk = choose_chunk(&all);
    all.chunks = cvy_ceil_div(all.tiles, all.chunk);
    all.source.point = all.chunk * all.source.panels * PANEL + LINE;
    all.target.point = all.chunk * all.target.panels * PANEL + LINE;
    all.weights.point = all.source.channels * all.target.panels * PANEL + LINE;
    return all;
}

/* ---- scratch: what all threads share, then the points of a chunk for each thread ---- */

static int64_t count_parts(const cvy_winograd *all) { return cvy_min_i64(all->chunks, PARTS); }

/* Floats of weights at all points, or of a part of their gradient. */
static int64_t count_weights(const cvy_winograd *all) { return all->points * all->weights.point; }

/* Floats of a part of the gradient of weights, and of the bias's behind it. */
static int64_t count_part(const cvy_winograd *all) { return count_weights(all) + all->target.panels * PANEL; }

static int64_t count_points(const cvy_winograd *all) { return all->points * (all->source.point + all->target.point); }

static cvy_winograd_range get_chunk(const cvy_winograd *all, int64_t chunk)
{
    int64_t first = chunk * all->chunk;
    return (cvy_winograd_range){first, cvy_min_i64(all->chunk, all->tiles - first), 0};
}

static cvy_winograd_matrix get_activation(const cvy_winograd *all, const cvy_winograd_plane *plane, float *points)
{
    return (cvy_winograd_matrix){points, all->chunk * PANEL, plane->point};
}

static cvy_winograd_matrix get_weights(const cvy_winograd *all, float *points)
{
    return (cvy_winograd_matrix){points, all->source.channels * PANEL, all->weights.point};
}

/* ---- forward and the gradient of data ---- */

typedef struct filtering {
    const cvy_winograd *all;
    const float *source, *bias;
    float *target, *weights;
    bool relu;
} filtering;

static void filter_chunk(const filtering *f, int64_t chunk, float *points)
{
    const cvy_winograd *all = f->all;
    cvy_winograd_range range = get_chunk(all, chunk);
    float *result = points + all->points * all->source.point;
    const cvy_winograd_product product = {.left = get_activation(all, &all->source, points),
                                          .right = get_weights(all, f->weights),
                                          .result = get_activation(all, &all->target, result),
                                          .rows = range.count,
                                          .panels = all->target.panels,
                                          .depth = all->source.channels};
    for (int64_t panel = 0; panel < all->source.panels; panel++) {
        cvy_winograd_take_source(all, f->source, &range, panel, points);
    }
    for (int64_t point = 0; point < all->points; point++) {
        cvy_winograd_multiply(&product, point);
    }
    for (int64_t panel = 0; panel < all->target.panels; panel++) {
        cvy_winograd_give_target(all, result, &range, panel, f->bias, f->relu, f->target);
    }
}

/* Operands are x, w, (b), y forward, and dy, w, dx backward. */
static cvy_status run_filter(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)run;
    const cvy_op *op = &kernel->base.op;
    const cvy_winograd all = describe(op);
    const float *weights = operand[cvy_op_index(op, CVY_ROLE_W)];
    int bias = cvy_op_index(op, CVY_ROLE_B);
    float *points = (float *)scratch + count_weights(&all);
    const filtering f = {.all = &all, .source = operand[0], .bias = bias < 0 ? NULL : operand[bias],
                         .target = operand[op->operands - 1], .weights = scratch, .relu = op->relu};
#pragma omp parallel num_threads((int)kernel->groups)
    {
        float *own = points + omp_get_thread_num() * count_points(&all);
#pragma omp for schedule(static) collapse(2)
        for (int64_t panel = 0; panel < all.target.panels; panel++) {
            for (int64_t row = 0; row < all.source.channels; row += all.lanes) {
                cvy_winograd_take_weights(&all, weights, row, panel, f.weights);
            }
        }
#pragma omp for schedule(static)
        for (int64_t chunk = 0; chunk < all.chunks; chunk++) {
            filter_chunk(&f, chunk, own);
        }
    }
    return CVY_OK;
}

/* ---- the gradient of weights ---- */

/* The products of a part's chunks, one added to the other, and the sums of dy. */
static void sum_part(const cvy_winograd *all, const float *x, const float *dy, int64_t part, float *sums, float *points)
{
    int64_t parts = count_parts(all), first = all->chunks * part / parts;
    float *given = points + all->points * all->source.point, *bias = sums + count_weights(all);
    cvy_winograd_product product = {.left = get_activation(all, &all->source, points),
                                    .right = get_activation(all, &all->target, given),
                                    .result = get_weights(all, sums),
                                    .rows = all->source.channels,
                                    .panels = all->target.panels,
                                    .transposed = true};
    memset(bias, 0, (size_t)(all->target.panels * PANEL) * sizeof *bias);
    for (int64_t chunk = first; chunk < all->chunks * (part + 1) / parts; chunk++) {
        cvy_winograd_range range = get_chunk(all, chunk);
        product.depth = range.count;
        product.adds = chunk > first;
        for (int64_t panel = 0; panel < all->source.panels; panel++) {
            cvy_winograd_take_source(all, x, &range, panel, points);
        }
        for (int64_t panel = 0; panel < all->target.panels; panel++) {
            cvy_winograd_take_target(all, dy, &range, panel, given);
            cvy_winograd_sum_target(all, given, range.count, panel, bias);
        }
        for (int64_t point = 0; point < all->points; point++) {
            cvy_winograd_multiply(&product, point);
        }
    }
}

/* Add the other parts to the first: some of them, in order. */
static void add_parts(const cvy_winograd *all, float *sums, int64_t first, int64_t count)
{
    for (int64_t part = 1; part < count_parts(all); part++) {
        const float *other = sums + part * count_part(all);
#pragma omp simd
        for (int64_t i = first; i < first + count; i++) {
            sums[i] += other[i];
        }
    }
}

/* Operands are x, dy, dw, (db). */
static cvy_status run_weights(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)run;
    const cvy_op *op = &kernel->base.op;
    const cvy_winograd all = describe(op);
    const float *x = operand[cvy_op_index(op, CVY_ROLE_X)], *dy = operand[cvy_op_index(op, CVY_ROLE_DY)];
    float *dw = operand[cvy_op_index(op, CVY_ROLE_DW)], *sums = scratch;
    int bias = cvy_op_index(op, CVY_ROLE_DB);
    int64_t parts = count_parts(&all);
#pragma omp parallel num_threads((int)kernel->groups)
    {
        float *own = sums + parts * count_part(&all) + omp_get_thread_num() * count_points(&all);
#pragma omp for schedule(static)
        for (int64_t part = 0; part < parts; part++) {
            sum_part(&all, x, dy, part, sums + part * count_part(&all), own);
        }
#pragma omp for schedule(static)
        for (int64_t point = 0; point < all.points; point++) {
            add_parts(&all, sums, point * all.weights.point, all.weights.point - LINE);
        }
#pragma omp for schedule(static) collapse(2)
        for (int64_t panel = 0; panel < all.target.panels; panel++) {
            for (int64_t row = 0; row < all.source.channels; row += all.lanes) {
                cvy_winograd_give_weights(&all, sums, row, panel, dw);
            }
        }
    }
    if (bias >= 0) {
        add_parts(&all, sums, count_weights(&all), all.target.channels);
        memcpy(operand[bias], sums + count_weights(&all), (size_t)all.target.channels * sizeof *sums);
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    if (!fits(op)) {
        return NULL;
    }
    return op->pass == CVY_PASS_BACKWARD_WEIGHTS ? run_weights : run_filter;
}

static void setup(cvy_cpu_kernel *kernel)
{
    const cvy_winograd all = describe(&kernel->base.op);
    bool weights = kernel->base.op.pass == CVY_PASS_BACKWARD_WEIGHTS;
    int64_t pieces = weights ? count_parts(&all) : all.chunks;
    kernel->groups = cvy_min_i64(pieces, omp_get_max_threads());
    int64_t shared = weights ? count_parts(&all) * count_part(&all) : count_weights(&all);
    kernel->scratch_bytes = (size_t)(shared + kernel->groups * count_points(&all)) * sizeof(float);
    kernel->algorithm = "winograd:simd";
}

const cvy_cpu_family cvy_cpu_winograd = {.find = find, .setup = setup};
