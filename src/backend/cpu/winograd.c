/*
 * Convolutions of 3x3 and 5x5 windows by Winograd's minimal filtering (winograd.h); oneDNN has 3x3 alone, with AVX-512
 * alone. Tiles are worked on in chunks whose points stay in the caches: a chunk's tiles are taken to their points, one
 * small product is made at each, and the outputs are made of the results before they leave the cache.
 *
 * Where the weights at all points are small, each thread has a chunk of its own, and the gradient of weights sums its
 * products over chunks in parts. Else all threads work on one chunk, larger and in the third-level cache, since the
 * weights are read from memory for each: they share out the tiles, the points, and the tiles again. The shape alone
 * decides this, the chunks and the parts, so the result does not depend on the number of threads.
 *
 * Scratch is bounded: 2 MB of weights at most (in 8 parts, their gradient) and about 1 MB of points a thread (more
 * where channels are many in one of the two), or the weights once and about 24 MB of points.
 */
#include "backend/cpu/winograd.h"

#include <omp.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/checked.h"

enum {
    PANEL = CVY_WINOGRAD_PANEL,
    LINE = 16,                 /* floats of a line of the cache */
    ROWS = 24,                 /* chunks hold a multiple: so do blocks of 6 and of 8 rows */
    CHUNK_FLOATS = 256 * 1024, /* of the points of a chunk: half of a second-level cache of 2 MB */
    LEAST_CHUNK = 48,          /* tiles: below, the weights are read too often for what is done with them */
    MOST_CHUNK = 96,
    OWN_WEIGHTS = 512 * 1024,  /* floats of weights at all points, beyond which threads work together */
    TOGETHER_FLOATS = 6 << 20, /* of the points of a chunk then: beyond the caches they cost what the weights do */
    MOST_TOGETHER = 240,
    PARTS = 8,                 /* sums of the gradient of weights */
    ITEM_TILES = 12,           /* what threads share out of a chunk: so many tiles of a panel, */
    ITEM_PANELS = 8,           /* so many panels of a product */
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

/* As few chunks as their size allows, about equal; even numbers of tiles. */
static int64_t choose_chunk(const cvy_winograd *all)
{
    int64_t tile = all->points * PANEL * (all->source.panels + all->target.panels);
    int64_t most = (all->together ? TOGETHER_FLOATS : CHUNK_FLOATS) / tile / ROWS * ROWS;
    most = cvy_max_i64(LEAST_CHUNK, cvy_min_i64(most, all->together ? MOST_TOGETHER : MOST_CHUNK));
    int64_t chunks = cvy_ceil_div(all->tiles, most);
    return cvy_min_i64(most, cvy_round_up(cvy_ceil_div(all->tiles, chunks), chunks > 1 ? ROWS : 2));
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
    all.together = all.points * all.source.panels * all.target.panels * PANEL * PANEL > OWN_WEIGHTS;
    all.chunk = choose_chunk(&all);
    all.chunks = cvy_ceil_div(all.tiles, all.chunk);
    all.source.point = all.chunk * all.source.panels * PANEL + LINE;
    all.target.point = all.chunk * all.target.panels * PANEL + LINE;
    all.weights.point = all.source.channels * all.target.panels * PANEL + LINE;
    return all;
}

/* ---- work: by one thread on a chunk of its own, or by all threads on one chunk ---- */

/* A thread of those that work on a chunk. */
typedef struct worker {
    int64_t thread, threads;
} worker;

static worker get_worker(const cvy_winograd *all)
{
    return all->together ? (worker){omp_get_thread_num(), omp_get_num_threads()} : (worker){0, 1};
}

/* Items [first, end) of some are a worker's. */
static int64_t find_first(const worker *w, int64_t items) { return items * w->thread / w->threads; }

static int64_t find_end(const worker *w, int64_t items) { return items * (w->thread + 1) / w->threads; }

/* Wait for the others at the same chunk. All come here equally often. */
static void meet(const worker *w)
{
    if (w->threads > 1) {
#pragma omp barrier
    }
}

/* A few tiles of one panel, as items of a chunk are numbered; those of a panel follow each other. */
static int64_t count_items(int64_t count, int64_t panels) { return panels * cvy_ceil_div(count, ITEM_TILES); }

static cvy_winograd_range get_item(const cvy_winograd_range *chunk, int64_t item, int64_t *panel_out)
{
    int64_t items = cvy_ceil_div(chunk->count, ITEM_TILES), at = item % items * ITEM_TILES;
    *panel_out = item / items;
    return (cvy_winograd_range){chunk->first + at, cvy_min_i64(ITEM_TILES, chunk->count - at), at};
}

/* Of the source or of the target: cvy_winograd_take_source() or cvy_winograd_take_target(). */
typedef void (*take_tiles)(const cvy_winograd *all, const float *from, const cvy_winograd_range *range, int64_t panel,
                           float *points);

static void take(const cvy_winograd *all, const cvy_winograd_plane *plane, take_tiles take_some, const float *from,
                 const cvy_winograd_range *chunk, float *points, const worker *w)
{
    int64_t items = count_items(chunk->count, plane->panels), panel;
    for (int64_t i = find_first(w, items); i < find_end(w, items); i++) {
        cvy_winograd_range range = get_item(chunk, i, &panel);
        take_some(all, from, &range, panel, points);
    }
}

static void multiply(const cvy_winograd *all, const cvy_winograd_product *product, const worker *w)
{
    int64_t groups = cvy_ceil_div(product->panels, ITEM_PANELS), items = all->points * groups;
    for (int64_t i = find_first(w, items); i < find_end(w, items); i++) {
        int64_t first = i % groups * ITEM_PANELS;
        cvy_winograd_multiply(product, i / groups, first, cvy_min_i64(first + ITEM_PANELS, product->panels));
    }
}

/* ---- scratch: what all threads share, then the points of a chunk, for each thread that works on its own ---- */

static int64_t count_parts(const cvy_winograd *all) { return all->together ? 1 : cvy_min_i64(all->chunks, PARTS); }

/* Floats of weights at all points. */
static int64_t count_weights(const cvy_winograd *all) { return all->points * all->weights.point; }

/* Floats of a part of the gradient of weights, and of the bias's behind it. */
static int64_t count_part(const cvy_winograd *all) { return count_weights(all) + all->target.panels * PANEL; }

static int64_t count_points(const cvy_winograd *all) { return all->points * (all->source.point + all->target.point); }

/* Where a thread's chunk is. */
static float *find_points(const cvy_winograd *all, float *points)
{
    return points + (all->together ? 0 : omp_get_thread_num() * count_points(all));
}

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

static void give_target(const filtering *f, const float *points, const cvy_winograd_range *chunk, const worker *w)
{
    int64_t items = count_items(chunk->count, f->all->target.panels), panel;
    for (int64_t i = find_first(w, items); i < find_end(w, items); i++) {
        cvy_winograd_range range = get_item(chunk, i, &panel);
        cvy_winograd_give_target(f->all, points, &range, panel, f->bias, f->relu, f->target);
    }
}

/* The next chunk's source may be taken while others still give this one's target: they lie apart. */
static void filter_chunk(const filtering *f, int64_t chunk, float *points, const worker *w)
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
    take(all, &all->source, cvy_winograd_take_source, f->source, &range, points, w);
    meet(w);
    multiply(all, &product, w);
    meet(w);
    give_target(f, result, &range, w);
}

static void filter_chunks(const filtering *f, float *points)
{
    const worker w = get_worker(f->all);
    if (f->all->together) {
        for (int64_t chunk = 0; chunk < f->all->chunks; chunk++) {
            filter_chunk(f, chunk, points, &w);
        }
    } else {
#pragma omp for schedule(static)
        for (int64_t chunk = 0; chunk < f->all->chunks; chunk++) {
            filter_chunk(f, chunk, points, &w);
        }
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
#pragma omp for schedule(static) collapse(2)
        for (int64_t panel = 0; panel < all.target.panels; panel++) {
            for (int64_t row = 0; row < all.source.channels; row += all.lanes) {
                cvy_winograd_take_weights(&all, weights, row, panel, f.weights);
            }
        }
        filter_chunks(&f, find_points(&all, points));
    }
    return CVY_OK;
}

/* ---- the gradient of weights ---- */

typedef struct summing {
    const cvy_winograd *all;
    const float *x, *dy;
    float *sums; /* parts, one behind the other */
} summing;

static void sum_bias(const cvy_winograd *all, const float *points, int64_t count, float *bias, const worker *w)
{
    for (int64_t panel = find_first(w, all->target.panels); panel < find_end(w, all->target.panels); panel++) {
        cvy_winograd_sum_target(all, points, count, panel, bias);
    }
}

/* The products of a part's chunks, one added to the other, and the sums of dy. */
static void sum_part(const summing *s, int64_t part, float *points, const worker *w)
{
    const cvy_winograd *all = s->all;
    int64_t parts = count_parts(all), first = all->chunks * part / parts;
    float *given = points + all->points * all->source.point, *sums = s->sums + part * count_part(all);
    cvy_winograd_product product = {.left = get_activation(all, &all->source, points),
                                    .right = get_activation(all, &all->target, given),
                                    .result = get_weights(all, sums),
                                    .rows = all->source.channels,
                                    .panels = all->target.panels,
                                    .transposed = true};
    for (int64_t chunk = first; chunk < all->chunks * (part + 1) / parts; chunk++) {
        cvy_winograd_range range = get_chunk(all, chunk);
        product.depth = range.count;
        product.adds = chunk > first;
        take(all, &all->source, cvy_winograd_take_source, s->x, &range, points, w);
        take(all, &all->target, cvy_winograd_take_target, s->dy, &range, given, w);
        meet(w);
        multiply(all, &product, w);
        sum_bias(all, given, range.count, sums + count_weights(all), w);
        meet(w);
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

static void sum_parts(const summing *s, float *points)
{
    const worker w = get_worker(s->all);
    if (s->all->together) {
        sum_part(s, 0, points, &w);
    } else {
#pragma omp for schedule(static)
        for (int64_t part = 0; part < count_parts(s->all); part++) {
            sum_part(s, part, points, &w);
        }
#pragma omp for schedule(static)
        for (int64_t point = 0; point < s->all->points; point++) {
            add_parts(s->all, s->sums, point * s->all->weights.point, s->all->weights.point - LINE);
        }
    }
}

/* Operands are x, dy, dw, (db). */
static cvy_status run_weights(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)run;
    const cvy_op *op = &kernel->base.op;
    const cvy_winograd all = describe(op);
    const summing s = {.all = &all, .x = operand[cvy_op_index(op, CVY_ROLE_X)],
                       .dy = operand[cvy_op_index(op, CVY_ROLE_DY)], .sums = scratch};
    float *dw = operand[cvy_op_index(op, CVY_ROLE_DW)], *bias = s.sums + count_weights(&all);
    int at = cvy_op_index(op, CVY_ROLE_DB);
    for (int64_t part = 0; part < count_parts(&all); part++) {
        memset(bias + part * count_part(&all), 0, (size_t)(all.target.panels * PANEL) * sizeof *bias);
    }
#pragma omp parallel num_threads((int)kernel->groups)
    {
        sum_parts(&s, find_points(&all, s.sums + count_parts(&all) * count_part(&all)));
#pragma omp for schedule(static) collapse(2)
        for (int64_t panel = 0; panel < all.target.panels; panel++) {
            for (int64_t row = 0; row < all.source.channels; row += all.lanes) {
                cvy_winograd_give_weights(&all, s.sums, row, panel, dw);
            }
        }
    }
    if (at >= 0) {
        add_parts(&all, s.sums, count_weights(&all), all.target.channels);
        memcpy(operand[at], bias, (size_t)all.target.channels * sizeof *bias);
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
    int64_t pieces = all.together ? all.points : weights ? count_parts(&all) : all.chunks;
    kernel->groups = cvy_min_i64(pieces, omp_get_max_threads());
    int64_t shared = weights ? count_parts(&all) * count_part(&all) : count_weights(&all);
    int64_t points = (all.together ? 1 : kernel->groups) * count_points(&all);
    kernel->scratch_bytes = (size_t)(shared + points) * sizeof(float);
    kernel->algorithm = "winograd:simd";
}

const cvy_cpu_family cvy_cpu_winograd = {.find = find, .setup = setup};
