/*
 * The gradient of weights of convolutions with one filter for each channel: at each tap the sum of x times dy over all
 * outputs that meet it. Outputs of a tile are gone over for each row of the window: along w, those with the same taps
 * are a segment, whose taps take each dy together.
 *
 * The tiles of a strip are cut into pieces, which threads sum apart: in float within a tile and over tiles, in double
 * and in order over pieces. There are as many as bring parallelism but never so many that their sums outweigh x.
 */
#include <string.h>

#include "backend/cpu/depthwise.h"
#include "base/checked.h"

enum { UNITS = 32 }; /* strips times pieces wanted: several for each thread */

/* What a run reads, and how the sums of its pieces lie: strip, piece, tap (that of db comes last), lane. */
typedef struct summing {
    const cvy_depthwise *depthwise;
    const float *x, *dy;
    float *sums;
    int64_t pieces, taps, lanes;
    bool bias;
} summing;

static int64_t count_pieces(const cvy_depthwise *depthwise)
{
    const cvy_columns *columns = &depthwise->target;
    int64_t most = columns->samples * columns->area / (2 * cvy_depthwise_taps(depthwise));
    int64_t wanted = cvy_ceil_div(UNITS, columns->strips);
    return cvy_max_i64(1, cvy_min_i64(cvy_min_i64(wanted, most), cvy_depthwise_tiles(depthwise)));
}

static int64_t piece_elements(const cvy_depthwise *depthwise)
{
    return (cvy_depthwise_taps(depthwise) + 1) * depthwise->target.lanes;
}

size_t cvy_depthwise_weights_bytes(const cvy_op *op)
{
    cvy_depthwise depthwise = cvy_depthwise_get(op);
    int64_t units = depthwise.target.strips * count_pieces(&depthwise);
    return (size_t)(units * piece_elements(&depthwise)) * sizeof(float);
}

/* The longest of the counts goes innermost. */
static void turn(cvy_depthwise_products *products)
{
    for (int i = 0; i < 2; i++) {
        if (products->count[i] > products->count[2]) {
            const cvy_depthwise_products old = *products;
            products->count[i] = old.count[2];
            products->count[2] = old.count[i];
            products->x_step[i] = old.x_step[2];
            products->x_step[2] = old.x_step[i];
            products->dy_step[i] = old.dy_step[2];
            products->dy_step[2] = old.dy_step[i];
        }
    }
}

/* What the outputs of a segment of a tile's rows have in common: taps [first, last) along kw, and where they begin. */
typedef struct summed_segment {
    const cvy_depthwise_tile *tile;
    int64_t first, last;
    int64_t x, dy;     /* offset of the first source at (d, h) = (0, 0), of the output at (0, 0) */
    int64_t positions;
} summed_segment;

static summed_segment find_segment(const summing *all, const cvy_depthwise_tile *tile,
                                   const cvy_depthwise_segment *segment)
{
    const cvy_depthwise *depthwise = all->depthwise;
    const cvy_columns *from = &depthwise->source, *to = &depthwise->target;
    summed_segment found = {.tile = tile, .positions = segment->last - segment->first};
    int64_t source = 0;
    for (int64_t kw = depthwise->window->kernel[2] - 1; kw >= 0; kw--) {
        cvy_depthwise_range range = cvy_depthwise_range_get(depthwise, 2, 0, kw);
        if (segment->first >= range.first && segment->first < range.last) {
            found.last = found.last > 0 ? found.last : kw + 1;
            found.first = kw;
            source = range.base + segment->first * depthwise->from_step[2];
        }
    }
    found.x = tile->sample * from->sample_stride + tile->from.offset + source * from->position_stride;
    found.dy = tile->sample * to->sample_stride + tile->to.offset + segment->first * to->position_stride;
    return found;
}

/* Some lanes at tap (kd, kh); false where the tile has no such rows. */
static bool find_products(const summing *all, const summed_segment *segment, int64_t kd, int64_t kh,
                          cvy_depthwise_products *products)
{
    const cvy_depthwise *depthwise = all->depthwise;
    const cvy_columns *from = &depthwise->source, *to = &depthwise->target;
    const cvy_depthwise_tile *tile = segment->tile;
    int64_t d = cvy_depthwise_source(depthwise, 0, tile->d, kd);
    cvy_depthwise_range rows = cvy_depthwise_range_get(depthwise, 1, 0, kh);
    int64_t first = cvy_max_i64(rows.first, tile->h), last = cvy_min_i64(rows.last, tile->h + tile->rows);
    if (d < 0 || first >= last) {
        return false;
    }
    int64_t h = rows.base + first * depthwise->from_step[1];
    int64_t x_row = depthwise->from[2] * from->position_stride, dy_row = depthwise->to[2] * to->position_stride;
    *products = (cvy_depthwise_products){
        .x = all->x + segment->x + (d * depthwise->from[1] + h) * x_row,
        .dy = all->dy + segment->dy + (tile->d * depthwise->to[1] + first) * dy_row,
        .count = {tile->samples, last - first, segment->positions},
        .x_step = {from->sample_stride, depthwise->from_step[1] * x_row,
                   depthwise->from_step[2] * from->position_stride},
        .dy_step = {to->sample_stride, dy_row, to->position_stride},
        .taps = segment->last - segment->first,
        .x_tap = depthwise->window->dilation[2] * from->position_stride,
        .sum_tap = all->lanes,
    };
    turn(products);
    return true;
}

/* Lanes from @p lane on, which stay in the first-level cache over all taps. */
static void sum_lanes(const summing *all, const summed_segment *segment, int64_t lane, float *sums)
{
    const int64_t *kernel = all->depthwise->window->kernel;
    cvy_depthwise_products products;
    for (int64_t kd = 0; kd < kernel[0]; kd++) {
        for (int64_t kh = 0; kh < kernel[1]; kh++) {
            if (find_products(all, segment, kd, kh, &products)) {
                products.x += lane;
                products.dy += lane;
                products.sum = sums + ((kd * kernel[1] + kh) * kernel[2] + segment->first) * all->lanes + lane;
                products.lanes = cvy_min_i64(CVY_DEPTHWISE_LANES, segment->tile->to.lanes - lane);
                cvy_depthwise_correlate(&products);
            }
        }
    }
}

static void sum_bias(const summing *all, const cvy_depthwise_tile *tile, float *sums)
{
    const cvy_depthwise *depthwise = all->depthwise;
    const cvy_columns *to = &depthwise->target;
    cvy_matrix matrix = {tile->rows * depthwise->to[2], tile->to.lanes, to->position_stride, 0};
    int64_t position = (tile->d * depthwise->to[1] + tile->h) * depthwise->to[2];
    for (int64_t n = tile->sample; n < tile->sample + tile->samples; n++) {
        const float *dy = all->dy + n * to->sample_stride + tile->to.offset + position * to->position_stride;
        cvy_columns_sum(dy, &matrix, sums + all->taps * all->lanes);
    }
}

static void sum_piece(const summing *all, int64_t unit)
{
    const cvy_depthwise *depthwise = all->depthwise;
    int64_t elements = piece_elements(depthwise), tiles = cvy_depthwise_tiles(depthwise);
    int64_t strip = unit / all->pieces, piece = unit % all->pieces;
    float *sums = all->sums + unit * elements;
    memset(sums, 0, (size_t)elements * sizeof *sums);
    for (int64_t i = piece * tiles / all->pieces; i < (piece + 1) * tiles / all->pieces; i++) {
        cvy_depthwise_tile tile = cvy_depthwise_tile_get(depthwise, strip, i);
        for (cvy_depthwise_segment segment = {0, 0, 0}; cvy_depthwise_next_segment(depthwise, &segment);) {
            summed_segment summed = find_segment(all, &tile, &segment);
            for (int64_t lane = 0; lane < tile.to.lanes; lane += CVY_DEPTHWISE_LANES) {
                sum_lanes(all, &summed, lane, sums);
            }
        }
        if (all->bias) {
            sum_bias(all, &tile, sums);
        }
    }
}

/* Add up the pieces of a strip at one tap. */
static void merge(const summing *all, int64_t strip, int64_t tap, int64_t lanes, float *out)
{
    int64_t elements = piece_elements(all->depthwise);
    const float *sums = all->sums + strip * all->pieces * elements + tap * all->lanes;
    for (int64_t lane = 0; lane < lanes; lane++) {
        double total = 0.0;
        for (int64_t piece = 0; piece < all->pieces; piece++) {
            total += sums[piece * elements + lane];
        }
        out[lane] = (float)total;
    }
}

static void merge_strip(const summing *all, int64_t index, float *dw, float *db)
{
    const cvy_depthwise *depthwise = all->depthwise;
    const int64_t *kernel = depthwise->window->kernel, *step = depthwise->tap_step;
    cvy_strip strip = cvy_columns_strip(&depthwise->target, index);
    float *out = dw + cvy_depthwise_weight(depthwise, strip.channel);
    for (int64_t tap = 0; tap < all->taps; tap++) {
        int64_t kw = tap % kernel[2], kh = tap / kernel[2] % kernel[1], kd = tap / kernel[2] / kernel[1];
        merge(all, index, tap, strip.lanes, out + kd * step[0] + kh * step[1] + kw * step[2]);
    }
    if (db) {
        merge(all, index, all->taps, strip.valid, db + strip.channel);
    }
}

/* Operands are x, dy, dw and, where there is a bias, db. */
cvy_status cvy_depthwise_run_weights(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch,
                                     const cvy_run *run)
{
    (void)run;
    const cvy_op *op = &kernel->base.op;
    const cvy_depthwise depthwise = cvy_depthwise_get(op);
    int weights = cvy_op_index(op, CVY_ROLE_DW), bias = cvy_op_index(op, CVY_ROLE_DB);
    const summing all = {.depthwise = &depthwise, .x = operand[cvy_op_index(op, CVY_ROLE_X)],
                         .dy = operand[cvy_op_index(op, CVY_ROLE_DY)], .sums = scratch,
                         .pieces = count_pieces(&depthwise), .taps = cvy_depthwise_taps(&depthwise),
                         .lanes = depthwise.target.lanes, .bias = bias >= 0};
    int64_t strips = depthwise.target.strips;
    bool small = kernel->elements <= CVY_CPU_SERIAL_ELEMENTS;
    if (depthwise.weight.padded[0] != op->operand[weights].tensor.shape.extent[0]) {
        memset(operand[weights], 0, (size_t)depthwise.weight.elements * sizeof(float)); /* the padding */
    }
#pragma omp parallel for schedule(static) if (!small)
    for (int64_t unit = 0; unit < strips * all.pieces; unit++) {
        sum_piece(&all, unit);
    }
#pragma omp parallel for schedule(static) if (!small)
    for (int64_t strip = 0; strip < strips; strip++) {
        merge_strip(&all, strip, operand[weights], bias < 0 ? NULL : operand[bias]);
    }
    return CVY_OK;
}
