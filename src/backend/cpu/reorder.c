/*
 * Reorders between activation formats in single precision, and of any tensor into a layout that is the same. A flatten,
 * n,c,(d),h,w to n,c*d*h*w or back, is a reorder from or to the plain format.
 *
 * Every activation format keeps 8 channels from a multiple of 8 on at one stride, and positions at another; so a tile
 * of 8 channels by some positions is a transpose with two strides a side. Padding of the target becomes zero.
 */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

enum { LANES = 8, POSITIONS = 256 };

/* How a side of the reorder lies: strides of a sample, of a block of channels, of a channel in it, of a position. */
typedef struct side {
    int64_t sample, block, lane, position;
    int64_t block_groups; /* groups of 8 channels in a block */
    int64_t channels;     /* with padding */
} side;

/* One tile: channels to copy, channels to zero, positions, and strides on both sides. */
typedef struct tile {
    int64_t lanes, zeros, positions;
    int64_t from_lane, from_position, to_lane, to_position;
} tile;

static side describe_side(const cvy_tensor *tensor, int64_t channels, int64_t area)
{
    bool flat = tensor->shape.dims == 2; /* the plain order of what was flattened */
    side out = {.channels = channels, .block = LANES * area, .block_groups = 1, .lane = 1};
    switch (flat ? CVY_FORMAT_PLAIN : tensor->format) {
    case CVY_FORMAT_CHANNELS_LAST:
        out.block = LANES;
        out.position = channels;
        break;
    case CVY_FORMAT_C8:
    case CVY_FORMAT_C16:
        out.block_groups = tensor->format == CVY_FORMAT_C16 ? 2 : 1;
        out.position = LANES * out.block_groups;
        out.block = out.position * area;
        out.channels = cvy_round_up(channels, out.position);
        break;
    default:
        out.lane = area;
        out.position = 1;
        break;
    }
    out.sample = out.channels * area;
    return out;
}

static int64_t group_offset(const side *of, int64_t sample, int64_t group)
{
    return sample * of->sample + group / of->block_groups * of->block + group % of->block_groups * LANES;
}

/* Channels innermost in the target, a whole group of them. */
CVY_VECTOR static void gather_full_tile(const tile *at, const float *from, float *to)
{
    int64_t lane = at->from_lane, from_position = at->from_position, to_position = at->to_position;
    for (int64_t i = 0; i < at->positions; i++) {
#pragma omp simd
        for (int k = 0; k < LANES; k++) {
            to[i * to_position + k] = from[i * from_position + k * lane];
        }
    }
}

/* Positions innermost in the target, a whole group of channels: side by side first, then pulled apart by registers. */
CVY_VECTOR static void scatter_full_tile(const tile *at, const float *from, float *to)
{
    float packed[POSITIONS * LANES];
    const float *source = from;
    if (at->from_position != LANES) {
        source = packed;
        for (int64_t i = 0; i < at->positions; i++) {
            memcpy(packed + i * LANES, from + i * at->from_position, LANES * sizeof *packed);
        }
    }
    float *a = to, *b = a + at->to_lane, *c = b + at->to_lane, *d = c + at->to_lane;
    float *e = d + at->to_lane, *f = e + at->to_lane, *g = f + at->to_lane, *h = g + at->to_lane;
#pragma omp simd
    for (int64_t i = 0; i < at->positions; i++) {
        a[i] = source[i * LANES];
        b[i] = source[i * LANES + 1];
        c[i] = source[i * LANES + 2];
        d[i] = source[i * LANES + 3];
        e[i] = source[i * LANES + 4];
        f[i] = source[i * LANES + 5];
        g[i] = source[i * LANES + 6];
        h[i] = source[i * LANES + 7];
    }
}

static void scatter_part_tile(const tile *at, const float *from, float *to)
{
    for (int64_t k = 0; k < at->lanes; k++) {
        for (int64_t i = 0; i < at->positions; i++) {
            to[k * at->to_lane + i] = from[k * at->from_lane + i * at->from_position];
        }
    }
}

static void gather_part_tile(const tile *at, const float *from, float *to)
{
    for (int64_t i = 0; i < at->positions; i++) {
        for (int64_t k = 0; k < at->lanes; k++) {
            to[i * at->to_position + k] = from[i * at->from_position + k * at->from_lane];
        }
        for (int64_t k = at->lanes; k < at->lanes + at->zeros; k++) {
            to[i * at->to_position + k] = 0;
        }
    }
}

static void copy_tile(const tile *at, const float *from, float *to)
{
    if (at->to_position == 1 && at->to_lane != 1) {
        (at->lanes == LANES && at->from_lane == 1 ? scatter_full_tile : scatter_part_tile)(at, from, to);
    } else if (at->lanes == LANES) {
        gather_full_tile(at, from, to);
    } else {
        gather_part_tile(at, from, to);
    }
}

/* The side that is not flat tells channels and positions. */
static const cvy_tensor *unflattened(const cvy_op *op)
{
    const cvy_tensor *x = &op->operand[0].tensor, *y = &op->operand[1].tensor;
    return x->shape.dims > 2 ? x : y;
}

static cvy_status run_transpose(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const cvy_op *op = &kernel->base.op;
    const cvy_columns shape = cvy_columns_get(unflattened(op));
    const side x = describe_side(&op->operand[0].tensor, shape.channels, shape.area);
    const side y = describe_side(&op->operand[1].tensor, shape.channels, shape.area);
    const float *from = operand[0];
    float *to = operand[1];
    int64_t groups = cvy_ceil_div(y.channels, LANES), pieces = cvy_ceil_div(shape.area, POSITIONS);
#pragma omp parallel for collapse(3) schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t sample = 0; sample < shape.samples; sample++) {
        for (int64_t group = 0; group < groups; group++) {
            for (int64_t piece = 0; piece < pieces; piece++) {
                int64_t first = piece * POSITIONS, channel = group * LANES;
                tile at = {.from_lane = x.lane, .from_position = x.position, .to_lane = y.lane,
                           .to_position = y.position};
                at.lanes = cvy_max_i64(0, cvy_min_i64(LANES, shape.channels - channel));
                at.zeros = cvy_min_i64(LANES, y.channels - channel) - at.lanes;
                at.positions = cvy_min_i64(POSITIONS, shape.area - first);
                copy_tile(&at, from + (at.lanes ? group_offset(&x, sample, group) + first * x.position : 0),
                          to + group_offset(&y, sample, group) + first * y.position);
            }
        }
    }
    return CVY_OK;
}

static cvy_status run_copy(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const float *from = operand[0];
    float *to = operand[1];
    int64_t chunks = cvy_ceil_div(kernel->elements, CVY_CPU_CHUNK);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t first = i * CVY_CPU_CHUNK, count = cvy_min_i64(CVY_CPU_CHUNK, kernel->elements - first);
        memcpy(to + first, from + first, (size_t)count * sizeof *to);
    }
    return CVY_OK;
}

/* n,c,(d),h,w and n,c*d*h*w, either way round. */
static bool is_flatten(const cvy_tensor *a, const cvy_tensor *flat)
{
    return flat->shape.dims == 2 && a->shape.dims > 2 && a->shape.extent[0] == flat->shape.extent[0] &&
           cvy_shape_elements(&a->shape) == cvy_shape_elements(&flat->shape) &&
           cvy_tensor_elements(flat) == cvy_shape_elements(&flat->shape);
}

static cvy_cpu_run find(const cvy_op *op)
{
    const cvy_tensor *x = &op->operand[0].tensor, *y = &op->operand[1].tensor;
    bool flattens = is_flatten(x, y) || is_flatten(y, x);
    if (cvy_cpu_same_layout(op) || (flattens && unflattened(op)->format == CVY_FORMAT_PLAIN)) {
        return run_copy;
    }
    if (!cvy_columns_fit(x) || !cvy_columns_fit(y)) {
        return NULL;
    }
    bool same = cvy_shape_equal(&x->shape, &y->shape) && x->shape.dims > 2;
    return same || flattens ? run_transpose : NULL;
}

const cvy_cpu_family cvy_cpu_reorder = {.find = find};
