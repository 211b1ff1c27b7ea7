/*
 * Convolutions of 3x3 and 5x5 windows, and of deeper ones of volumes, by Winograd's minimal filtering (winograd.h);
 * oneDNN has 3x3 alone, with AVX-512 alone. Tiles are worked on in chunks whose points stay in the caches: a chunk's
 * tiles are taken to their points, one small product is made at each, and the outputs are made of the results before
 * they leave the cache.
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
    MOST_SLICES = 16,          /* of a chunk */
    MOST_DEEP = 7,             /* taps along the depth */
    PARTS = 8,                 /* sums of the gradient of weights */
    ITEM_ROWS = 12,            /* what threads share out of a chunk: so many rows of a panel, */
    ITEM_PANELS = 8,           /* so many panels of a product */
};

static const cvy_tensor *find_tensor(const cvy_op *op, cvy_role role, cvy_role gradient)
{
    const cvy_operand *operand = cvy_op_find_either(op, role, gradient);
    return operand ? &operand->tensor : NULL;
}

static bool is_window(const cvy_window *window)
{
    bool fits = window->kernel[1] == window->kernel[2] && (window->kernel[1] == 3 || window->kernel[1] == 5);
    fits = fits && window->kernel[0] <= MOST_DEEP;
    for (int axis = 0; axis < 3; axis++) { /* the gradient of data has what is left of the window as its padding */
        fits = fits && window->stride[axis] == 1 && window->dilation[axis] == 1;
        fits = fits && window->before[axis] >= 0 && window->before[axis] < window->kernel[axis];
    }
    return fits;
}

static int64_t count_lanes(const cvy_tensor *tensor)
{
    return tensor->format == CVY_FORMAT_C16 ? 16 : tensor->format == CVY_FORMAT_C8 ? 8 : 0;
}

/* Whether weights have all channels of whole blocks of y and x, those of padding too. */
static bool has_blocks(const cvy_tensor *w, const cvy_tensor *y, const cvy_tensor *x, int64_t lanes)
{
    cvy_layout layout = cvy_tensor_layout(w);
    return layout.padded[0] % lanes == 0 && layout.padded[1] % lanes == 0 &&
           layout.padded[0] >= y->shape.extent[1] && layout.padded[1] >= x->shape.extent[1];
}

static bool fits(const cvy_op *op)
{
    const cvy_tensor *x = find_tensor(op, CVY_ROLE_X, CVY_ROLE_DX), *y = find_tensor(op, CVY_ROLE_Y, CVY_ROLE_DY);
    const cvy_tensor *w = find_tensor(op, CVY_ROLE_W, CVY_ROLE_DW);
    if (!cvy_op_by_winograd(op) || op->params.window.groups != 1 || !x || !y || !w || x->shape.dims < 4 ||
        w->shape.dims != x->shape.dims || w->grouped || !is_window(&op->params.window.window)) {
        return false;
    }
    int64_t lanes = count_lanes(x);
    return lanes > 0 && lanes == count_lanes(y) && has_blocks(w, y, x, lanes);
}

static cvy_winograd_volume describe_volume(const cvy_tensor *tensor)
{
    cvy_layout layout = cvy_tensor_layout(tensor);
    bool deep = tensor->shape.dims == 5;
    const int64_t *extent = &tensor->shape.extent[deep ? 3 : 2], *stride = &layout.stride[deep ? 3 : 2];
    return (cvy_winograd_volume){.channels = layout.padded[1],
                                 .depth = deep ? tensor->shape.extent[2] : 1,
                                 .height = extent[0],
                                 .width = extent[1],
                                 .sample_stride = layout.stride[0],
                                 .block_stride = layout.stride[1],
                                 .slice_stride = deep ? layout.stride[2] : 0,
                                 .row_stride = stride[0],
                                 .position_stride = stride[1],
                                 .panels = cvy_ceil_div(layout.padded[1], PANEL)};
}

/* As few chunks as their size allows, about equal along each axis; rows that fill blocks, about. */
static void choose_chunk(cvy_winograd *all)
{
    all->runs = cvy_ceil_div(all->target.depth, MOST_SLICES);
    all->slices = cvy_ceil_div(all->target.depth, all->runs);
    int64_t panels = all->source.panels * (all->slices + all->deep - 1) + all->target.panels * all->slices;
    int64_t whole = cvy_max_i64(1, ROWS / all->slices);
    int64_t most = (all->together ? TOGETHER_FLOATS : CHUNK_FLOATS) / (all->points * PANEL * panels) / whole * whole;
    int64_t rows = all->together ? MOST_TOGETHER : MOST_CHUNK;
    most = cvy_max_i64(cvy_ceil_div(LEAST_CHUNK, all->slices), cvy_min_i64(most, rows / all->slices));
    int64_t pieces = cvy_ceil_div(all->tiles, most);
    all->chunk = cvy_min_i64(most, cvy_round_up(cvy_ceil_div(all->tiles, pieces), pieces > 1 ? whole : 1));
    all->chunks = all->runs * cvy_ceil_div(all->tiles, all->chunk);
}

/* Rows of a panel, an even number of them for each tap along the depth, and what lies between points. */
static void choose_rows(cvy_winograd *all)
{
    all->target.rows = cvy_round_up(all->slices * all->chunk, 2);
    all->source.rows = all->target.rows + (all->deep - 1) * all->chunk;
    all->source.point = all->source.rows * all->source.panels * PANEL + LINE;
    all->target.point = all->target.rows * all->target.panels * PANEL + LINE;
    all->weights.point = all->deep * all->source.channels * all->target.panels * PANEL + LINE;
}

static cvy_winograd describe(const cvy_op *op)
{
    bool backward = op->pass == CVY_PASS_BACKWARD_DATA;
    const cvy_tensor *x = find_tensor(op, CVY_ROLE_X, CVY_ROLE_DX), *y = find_tensor(op, CVY_ROLE_Y, CVY_ROLE_DY);
    const cvy_window *window = &op->params.window.window;
    cvy_winograd all = {.source = describe_volume(backward ? y : x), .target = describe_volume(backward ? x : y),
                        .filters = (backward ? x : y)->shape.extent[1], .lanes = count_lanes(x),
                        .deep = window->kernel[0], .taps = window->kernel[1]};
    all.side = CVY_WINOGRAD_STEP + all.taps - 1;
    all.points = all.side * all.side;
    all.weights = (cvy_winograd_weights){.layout = cvy_tensor_layout(find_tensor(op, CVY_ROLE_W, CVY_ROLE_DW)),
                                         .row = backward ? 0 : 1, .column = backward ? 1 : 0,
                                         .spatial = x->shape.dims - 2, .turned = backward};
    for (int axis = 0; axis < 3; axis++) {
        int64_t before = window->before[axis];
        all.before[axis] = backward ? window->kernel[axis] - 1 - before : before;
    }
    all.rows = cvy_ceil_div(all.target.height, CVY_WINOGRAD_STEP);
    all.columns = cvy_ceil_div(all.target.width, CVY_WINOGRAD_STEP);
    all.tiles = x->shape.extent[0] * all.rows * all.columns;
    all.together = all.points * all.deep * all.source.panels * all.target.panels * PANEL * PANEL > OWN_WEIGHTS;
    choose_chunk(&all);
    choose_rows(&all);
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

/* A few rows of one panel, as items of a chunk are numbered; those of a panel follow each other. */
static int64_t count_items(int64_t rows, int64_t panels) { return panels * cvy_ceil_div(rows, ITEM_ROWS); }

static cvy_winograd_rows get_item(int64_t rows, int64_t item)
{
    int64_t items = cvy_ceil_div(rows, ITEM_ROWS), first = item % items * ITEM_ROWS;
    return (cvy_winograd_rows){.panel = item / items, .first = first, .count = cvy_min_i64(ITEM_ROWS, rows - first)};
}

static int64_t count_source_rows(const cvy_winograd *all, const cvy_winograd_chunk *chunk)
{
    return chunk->tiles * (chunk->slices + all->deep - 1);
}

static int64_t count_target_rows(const cvy_winograd_chunk *chunk) { return chunk->tiles * chunk->slices; }

/* Of the source or of the target: cvy_winograd_take_source() or cvy_winograd_take_target(). */
typedef void (*take_tiles)(const cvy_winograd *all, const float *from, const cvy_winograd_chunk *chunk,
                           const cvy_winograd_rows *rows, float *points);

/* An activation of a chunk, and the function that takes some rows of it. */
typedef struct taking {
    const cvy_winograd_volume *volume;
    const float *from;
    int64_t rows;
    take_tiles take;
} taking;

static void take(const cvy_winograd *all, const taking *t, const cvy_winograd_chunk *chunk, float *points,
                 const worker *w)
{
    int64_t items = count_items(t->rows, t->volume->panels);
    for (int64_t i = find_first(w, items); i < find_end(w, items); i++) {
        cvy_winograd_rows item = get_item(t->rows, i);
        t->take(all, t->from, chunk, &item, points);
    }
}

static void take_source(const cvy_winograd *all, const float *source, const cvy_winograd_chunk *chunk, float *points,
                        const worker *w)
{
    const taking t = {&all->source, source, count_source_rows(all, chunk), cvy_winograd_take_source};
    take(all, &t, chunk, points, w);
}

static void take_target(const cvy_winograd *all, const float *target, const cvy_winograd_chunk *chunk, float *points,
                        const worker *w)
{
    const taking t = {&all->target, target, count_target_rows(chunk), cvy_winograd_take_target};
    take(all, &t, chunk, points, w);
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

/* Chunks of the same tiles follow each other along the depth. */
static cvy_winograd_chunk get_chunk(const cvy_winograd *all, int64_t chunk)
{
    int64_t first = chunk / all->runs * all->chunk, slice = chunk % all->runs * all->slices;
    return (cvy_winograd_chunk){.first = first, .tiles = cvy_min_i64(all->chunk, all->tiles - first), .slice = slice,
                                .slices = cvy_min_i64(all->slices, all->target.depth - slice)};
}

static cvy_winograd_matrix get_activation(const cvy_winograd_volume *volume, float *points)
{
    return (cvy_winograd_matrix){points, volume->rows * PANEL, volume->point};
}

static cvy_winograd_matrix get_weights(const cvy_winograd *all, float *points)
{
    return (cvy_winograd_matrix){points, all->deep * all->source.channels * PANEL, all->weights.point};
}

/* ---- forward and the gradient of data ---- */

typedef struct filtering {
    const cvy_winograd *all;
    const float *source, *bias;
    float *target, *weights;
    bool relu;
} filtering;

static void give_target(const filtering *f, const float *points, const cvy_winograd_chunk *chunk, const worker *w)
{
    int64_t rows = count_target_rows(chunk), items = count_items(rows, f->all->target.panels);
    for (int64_t i = find_first(w, items); i < find_end(w, items); i++) {
        cvy_winograd_rows item = get_item(rows, i);
        cvy_winograd_give_target(f->all, points, chunk, &item, f->bias, f->relu, f->target);
    }
}

/* The next chunk's source may be taken while others still give this one's target: they lie apart. */
static void filter_chunk(const filtering *f, int64_t index, float *points, const worker *w)
{
    const cvy_winograd *all = f->all;
    const cvy_winograd_chunk chunk = get_chunk(all, index);
    float *result = points + all->points * all->source.point;
    const cvy_winograd_product product = {.left = get_activation(&all->source, points),
                                          .right = get_weights(all, f->weights),
                                          .result = get_activation(&all->target, result),
                                          .taps = all->deep,
                                          .shift = chunk.tiles,
                                          .rows = count_target_rows(&chunk),
                                          .panels = all->target.panels,
                                          .depth = all->source.channels};
    take_source(all, f->source, &chunk, points, w);
    meet(w);
    multiply(all, &product, w);
    meet(w);
    give_target(f, result, &chunk, w);
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
            for (int64_t row = 0; row < all.deep * all.source.channels; row += all.lanes) {
                int64_t tap = row / all.source.channels;
                cvy_winograd_take_weights(&all, weights, tap, row % all.source.channels, panel, f.weights);
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

static void sum_bias(const cvy_winograd *all, const float *points, int64_t rows, float *bias, const worker *w)
{
    for (int64_t panel = find_first(w, all->target.panels); panel < find_end(w, all->target.panels); panel++) {
        cvy_winograd_sum_target(all, points, rows, panel, bias);
    }
}

/* The products of a part's chunks, one added to the other, and the sums of dy. */
static void sum_part(const summing *s, int64_t part, float *points, const worker *w)
{
    const cvy_winograd *all = s->all;
    int64_t parts = count_parts(all), first = all->chunks * part / parts;
    float *given = points + all->points * all->source.point, *sums = s->sums + part * count_part(all);
    cvy_winograd_product product = {.left = get_activation(&all->source, points),
                                    .right = get_activation(&all->target, given),
                                    .result = get_weights(all, sums),
                                    .taps = all->deep,
                                    .rows = all->source.channels,
                                    .panels = all->target.panels,
                                    .transposed = true};
    for (int64_t i = first; i < all->chunks * (part + 1) / parts; i++) {
        const cvy_winograd_chunk chunk = get_chunk(all, i);
        product.shift = chunk.tiles;
        product.depth = count_target_rows(&chunk);
        product.adds = i > first;
        take_source(all, s->x, &chunk, points, w);
        take_target(all, s->dy, &chunk, given, w);
        meet(w);
        multiply(all, &product, w);
        sum_bias(all, given, product.depth, sums + count_weights(all), w);
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
            for (int64_t row = 0; row < all.deep * all.source.channels; row += all.lanes) {
                int64_t tap = row / all.source.channels;
                cvy_winograd_give_weights(&all, s.sums, tap, row % all.source.channels, panel, dw);
            }
        }
    }
    if (at >= 0) {
        add_parts(&all, s.sums, count_weights(&all), all.filters);
        memcpy(operand[at], bias, (size_t)all.filters * sizeof *bias);
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
