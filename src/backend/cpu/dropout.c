/*
 * Dropout, forward and backward alike: the mask is a function of the seed, the layer, the step, the sample and the
 * logical element (n,c,d,h,w order), so it is drawn anew each time and is the same for every format and thread count. A
 * Philox block gives four elements.
 *
 * Masks are drawn along the logical order, for a stretch or a tile that stays in the first-level cache, then laid over
 * memory: straight where memory follows the logical order, transposed where channels lie innermost. Of a share of a
 * sample they are drawn run by run: elements whose numbers in the whole sample follow each other.
 */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"
#include "base/random.h"

enum {
    STRETCH = 1024,    /* elements drawn at once in logical order */
    TILE_LANES = 16,   /* channels and positions of a tile */
    TILE_POSITIONS = 64,
    DRAWN_MORE = 8,    /* a stretch may begin and end within a block */
};

/* What the masks of a sample have in common. */
typedef struct mask_source {
    uint64_t seed;
    uint32_t layer, step, sample;
    uint32_t dropped_below; /* of the word's upper 24 bits */
    float scale;            /* of survivors */
    const cvy_share_map *map; /* in the whole sample; NULL: it is whole */
} mask_source;

/* word / 2^24 < probability, in whole numbers: the words that are dropped are those below the bound, rounded up. */
static mask_source make_source(const cvy_cpu_kernel *kernel, const cvy_run *run, int64_t sample)
{
    const cvy_op_params_dropout *dropout = &kernel->base.op.params.dropout;
    return (mask_source){
        .seed = run->seed,
        .layer = (uint32_t)dropout->layer,
        .step = (uint32_t)run->step,
        .sample = (uint32_t)(run->sample_first + sample),
        .dropped_below = (uint32_t)ceil(dropout->probability * 0x1p24),
        .scale = (float)(1 / (1 - dropout->probability)),
        .map = dropout->whole[0] ? &kernel->map : NULL,
    };
}

CVY_VECTOR static void draw_blocks(const mask_source *source, uint32_t first, int64_t blocks, float *mask)
{
    mask_source with = *source;
#pragma omp simd
    for (int64_t i = 0; i < blocks; i++) {
        cvy_words words = cvy_random_words(with.seed, CVY_PURPOSE_DROPOUT, with.layer, with.step, with.sample,
                                           first + (uint32_t)i);
        mask[4 * i] = words.v[0] >> 8 < with.dropped_below ? 0 : with.scale;
        mask[4 * i + 1] = words.v[1] >> 8 < with.dropped_below ? 0 : with.scale;
        mask[4 * i + 2] = words.v[2] >> 8 < with.dropped_below ? 0 : with.scale;
        mask[4 * i + 3] = words.v[3] >> 8 < with.dropped_below ? 0 : with.scale;
    }
}

/* Draw elements [first, first + count) into a buffer of count + DRAWN_MORE; returns where the first one lies. */
static float *draw_run(const mask_source *source, int64_t first, int64_t count, float *buffer)
{
    int64_t begin = first / 4, end = cvy_ceil_div(first + count, 4);
    draw_blocks(source, (uint32_t)begin, end - begin, buffer);
    return buffer + first % 4;
}

/* The same of at most STRETCH elements of x, which may lie in several runs. */
static float *draw(const mask_source *source, int64_t first, int64_t count, float *buffer)
{
    float drawn[STRETCH + DRAWN_MORE];
    if (!source->map) {
        return draw_run(source, first, count, buffer);
    }
    for (int64_t done = 0; done < count;) {
        cvy_share_run run = cvy_share_map_find(source->map, first + done);
        int64_t length = cvy_min_i64(run.count, count - done);
        memcpy(buffer + done, draw_run(source, run.at, length, drawn), (size_t)length * sizeof *buffer);
        done += length;
    }
    return buffer;
}

/* A dropped element is 0 even where x is not finite. */
CVY_VECTOR static void apply_stretch(const float *x, const float *mask, float *y, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float kept = mask[i] > 0 ? x[i] : 0;
        y[i] = kept * mask[i];
    }
}

static cvy_status run_straight(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    const float *x = operand[0];
    float *y = operand[1];
    int64_t samples = kernel->base.op.operand[0].tensor.shape.extent[0];
    int64_t values = kernel->elements / samples, stretches = cvy_ceil_div(values, STRETCH);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS / 4)
    for (int64_t i = 0; i < samples * stretches; i++) {
        float buffer[STRETCH + DRAWN_MORE];
        int64_t sample = i / stretches, first = i % stretches * STRETCH;
        int64_t count = cvy_min_i64(STRETCH, values - first), offset = sample * values + first;
        mask_source source = make_source(kernel, run, sample);
        const float *mask = draw(&source, first, count, buffer);
        apply_stretch(x + offset, mask, y + offset, count);
    }
    return CVY_OK;
}

/* Channels and positions of one tile, and where it lies. */
typedef struct tile {
    int64_t channel, lanes, valid;
    int64_t position, positions;
    int64_t offset, stride;
} tile;

CVY_VECTOR static void apply_tile(const tile *at, const float *x, float (*mask)[TILE_POSITIONS], float *y)
{
    for (int64_t i = 0; i < at->positions; i++) {
        const float *from = x + i * at->stride;
        float *to = y + i * at->stride;
#pragma omp simd
        for (int64_t lane = 0; lane < at->lanes; lane++) {
            float kept = mask[lane][i] > 0 ? from[lane] : 0;
            to[lane] = kept * mask[lane][i];
        }
    }
}

static void run_tile(const mask_source *source, const tile *at, int64_t area, const float *x, float *y)
{
    float mask[TILE_LANES][TILE_POSITIONS], buffer[TILE_POSITIONS + DRAWN_MORE];
    for (int64_t lane = 0; lane < at->lanes; lane++) {
        size_t bytes = (size_t)at->positions * sizeof(float);
        if (lane < at->valid) {
            int64_t first = (at->channel + lane) * area + at->position;
            memcpy(mask[lane], draw(source, first, at->positions, buffer), bytes);
        } else {
            memset(mask[lane], 0, bytes);
        }
    }
    apply_tile(at, x + at->offset, mask, y + at->offset);
}

static cvy_status run_transposed(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch,
                                 const cvy_run *run)
{
    (void)scratch;
    const float *x = operand[0];
    float *y = operand[1];
    const cvy_columns *columns = &kernel->columns;
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS / 4)
    for (int64_t i = 0; i < columns->samples * columns->strips; i++) {
        int64_t sample = i / columns->strips;
        mask_source source = make_source(kernel, run, sample);
        cvy_strip strip = cvy_columns_strip(columns, i % columns->strips);
        for (int64_t lane = 0; lane < strip.lanes; lane += TILE_LANES) {
            tile at = {.channel = strip.channel + lane, .stride = columns->position_stride};
            at.lanes = cvy_min_i64(TILE_LANES, strip.lanes - lane);
            at.valid = cvy_min_i64(TILE_LANES, strip.valid - lane);
            for (at.position = 0; at.position < columns->area; at.position += TILE_POSITIONS) {
                at.positions = cvy_min_i64(TILE_POSITIONS, columns->area - at.position);
                at.offset = sample * columns->sample_stride + strip.offset + lane + at.position * at.stride;
                run_tile(&source, &at, columns->area, x, y);
            }
        }
    }
    return CVY_OK;
}

CVY_VECTOR static void mask_range(const float *y, const float *dy, float *dx, int64_t count, float scale)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = y[i] > 0 ? scale * dy[i] : 0;
    }
}

/* With a relu, y tells what came through both: nothing is drawn. */
static cvy_status run_masked(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const float *dy = operand[0], *y = operand[1];
    float *dx = operand[2], scale = (float)(1 / (1 - kernel->base.op.params.dropout.probability));
    int64_t count = kernel->elements, chunks = cvy_ceil_div(count, CVY_CPU_CHUNK);
#pragma omp parallel for schedule(static) if (count > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < chunks; i++) {
        int64_t at = i * CVY_CPU_CHUNK;
        mask_range(y + at, dy + at, dx + at, cvy_min_i64(CVY_CPU_CHUNK, count - at), scale);
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    if (!cvy_cpu_same_layout(op)) {
        return NULL;
    }
    if (op->relu) {
        return run_masked;
    }
    cvy_tensor plain = op->operand[0].tensor;
    plain.format = CVY_FORMAT_PLAIN;
    if (cvy_tensor_same_layout(&plain, &op->operand[0].tensor)) {
        return run_straight;
    }
    return cvy_columns_fit(&op->operand[0].tensor) ? run_transposed : NULL;
}

static void setup(cvy_cpu_kernel *kernel)
{
    const cvy_op_params_dropout *dropout = &kernel->base.op.params.dropout;
    kernel->map.stretched = dropout->stretched;
    kernel->map.stretches = dropout->stretches;
    memcpy(kernel->map.other, dropout->whole, sizeof dropout->whole);
    memcpy(kernel->map.first, dropout->first, sizeof dropout->first);
    cvy_sample_get(&kernel->base.op.operand[0].tensor.shape, kernel->map.extent);
}

const cvy_cpu_family cvy_cpu_dropout = {.find = find, .setup = setup};
