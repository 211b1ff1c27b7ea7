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
    int64_t most = columns->samples * columns->area / (2 * depthwise->taps);
    int64_t wanted = cvy_ceil_div(UNITS, columns->strips);
    return cvy_max_i64(1, cvy_min_i64(cvy_min_i64(wanted, most), cvy_depthwise_tiles(depthwise)));
}

static int64_t piece_elements(const cvy_depthwise *depthwise)
{
    return (depthwise->taps + 1) * depthwise->target.lanes;
}

size_t cvy_depthwise_weights_bytes(const cvy_op *op)
{
    cvy_depthwise depthwise = cvy_depthwise_get(op);
    int64_t units = depthwise.target.strips * count_pieces(&depthwise);
    return (size_t)(units * piece_elements(&depthwise)) * sizeof(float);
}

/* Outputs of a tile in a band along w: what all rows of the window share. */
typedef struct summed_band {
    const cvy_depthwise_tile *tile;
    int64_t first, last; /* taps along kw */
    int64_t x, dy;       /* offsets at the first sample, d and h 0: of what the first tap finds, and of the output */
    int64_t positions;
} summed_band;

static summed_band find_band(const summing *all, const cvy_depthwise_tile *tile, const cvy_depthwise_band *band)
{
    const cvy_depthwise *depthwise = all->depthwise;
    const cvy_depthwise_axis *axis = &depthwise->axis[2];
    const cvy_columns *from = &depthwise->source, *to = &depthwise->target;
    summed_band found = {.tile = tile, .positions = band->last - band->first};
    int64_t source = 0;
    for (int64_t kw = axis->taps - 1; kw >= 0; kw--) {
        int64_t here = cvy_depthwise_source(axis, 0, band->first, kw);
        if (here >= 0) {
            found.last = found.last > 0 ? found.last : kw + 1;
            found.first = kw;
            source = here;
        }
    }
    found.x = tile->sample * from->sample_stride + tile->from.offset + source * from->position_stride;
    found.dy = tile->sample * to->sample_stride + tile->to.offset + band->first * to->position_stride;
    return found;
}

/* All lanes at tap (kd, kh); false where the tile has no such rows. */
static bool find_products(const summing *all, const summed_band *band, int64_t kd, int64_t kh,
                          cvy_depthwise_products *products)
{
    const cvy_depthwise *depthwise = all->depthwise;
    const cvy_depthwise_axis *axis = depthwise->axis;
    const cvy_depthwise_tile *tile = band->tile;
    const cvy_depthwise_range *rows = &axis[1].range[kh];
    int64_t d = cvy_depthwise_source(&axis[0], 0, tile->d, kd);
    int64_t first = cvy_max_i64(rows->first, tile->h), last = cvy_min_i64(rows->last, tile->h + tile->rows);
    if (d < 0 || first >= last) {
        return false;
    }
    int64_t from = depthwise->source.position_stride, h = rows->base + first * axis[1].from_step;
    *products = (cvy_depthwise_products){
        .x = all->x + band->x + (d * axis[1].from + h) * axis[2].from * from,
        .dy = all->dy + band->dy + (tile->d * axis[1].to + first) * axis[2].to * depthwise->target.position_stride,
        .nest = cvy_depthwise_nest_get(depthwise, tile->samples, last - first, band->positions),
        .taps = band->last - band->first,
        .x_tap = axis[2].dilation * from,
        .sum_tap = all->lanes,
    };
    return true;
}

/* Lanes from @p lane on, which stay in the first-level cache over all taps. */
static void sum_lanes(const summing *all, const summed_band *band, int64_t lane, float *sums)
{
    const cvy_depthwise_axis *axis = all->depthwise->axis;
    cvy_depthwise_products products;
    for (int64_t kd = 0; kd < axis[0].taps; kd++) {
        for (int64_t kh = 0; kh < axis[1].taps; kh++) {
            if (find_products(all, band, kd, kh, &products)) {
                products.x += lane;
                products.dy += lane;
                products.sum = sums + ((kd * axis[1].taps + kh) * axis[2].taps + band->first) * all->lanes + lane;
                products.lanes = cvy_min_i64(CVY_DEPTHWISE_LANES, band->tile->to.lanes - lane);
                cvy_depthwise_correlate(&products);
            }
        }
    }
}

static void sum_bias(const summing *all, const cvy_depthwise_tile *tile, float *sums)
{
    const cvy_depthwise *depthwise = all->depthwise;
    const cvy_columns *to = &depthwise->target;
    cvy_matrix matrix = {tile->rows * depthwise->axis[2].to, tile->to.lanes, to->position_stride, 0};
    int64_t position = (tile->d * depthwise->axis[1].to + tile->h) * depthwise->axis[2].to;
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
        for (cvy_depthwise_band band = {0, 0, 0}; cvy_depthwise_next_band(&depthwise->axis[2], &band);) {
            summed_band summed = find_band(all, &tile, &band);
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
    const cvy_depthwise_axis *axis = depthwise->axis;
    cvy_strip strip = cvy_columns_strip(&depthwise->target, index);
    float *out = dw + cvy_depthwise_weight(depthwise, strip.channel);
    for (int64_t tap = 0; tap < all->taps; tap++) {
        int64_t kw = tap % axis[2].taps, row = tap / axis[2].taps;
        int64_t kh = row % axis[1].taps, kd = row / axis[1].taps;
        merge(all, index, tap, strip.lanes,
              out + kd * axis[0].weight_step + kh * axis[1].weight_step + kw * axis[2].weight_step);
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
                         .pieces = count_pieces(&depthwise), .taps = depthwise.taps,
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
