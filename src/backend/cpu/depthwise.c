/*
 * Convolutions with one filter for each channel, forward and gradient of data: every target is a sum over its taps,
 * each a vector of channels times a vector of weights. Taps are clipped to the sources once for all targets of a row
 * that have the same ones, and of all samples of a tile: a plane of one position has one tap.
 */
#include "backend/cpu/depthwise.h"
#include "base/checked.h"

/* What a run reads and writes. */
typedef struct gathering {
    const cvy_depthwise *depthwise;
    const float *source, *weight, *bias; /* bias: NULL where there is none */
    float *target;
    bool relu;
} gathering;

/* The taps of a segment of row (d, h): sources as offsets within a sample's strip, of the segment's first target. */
static void list_taps(const cvy_depthwise *depthwise, const int64_t row[2], const cvy_depthwise_segment *segment,
                      cvy_depthwise_tap_list *taps)
{
    const int64_t *kernel = depthwise->window->kernel, *step = depthwise->tap_step;
    taps->count = 0;
    for (int64_t kd = 0; kd < kernel[0]; kd++) {
        int64_t d = cvy_depthwise_source(depthwise, 0, row[0], kd);
        for (int64_t kh = 0; d >= 0 && kh < kernel[1]; kh++) {
            int64_t h = cvy_depthwise_source(depthwise, 1, row[1], kh);
            for (int64_t kw = 0; h >= 0 && kw < kernel[2]; kw++) {
                cvy_depthwise_range range = cvy_depthwise_range_get(depthwise, 2, segment->phase, kw);
                if (segment->first >= range.first && segment->first < range.last) {
                    int64_t w = range.base + segment->first * depthwise->from_step[2];
                    int64_t position = (d * depthwise->from[1] + h) * depthwise->from[2] + w;
                    taps->source[taps->count] = position * depthwise->source.position_stride;
                    taps->weight[taps->count++] = kd * step[0] + kh * step[1] + kw * step[2];
                }
            }
        }
    }
}

/* Where there are more samples than positions, samples go side by side. */
static void turn(cvy_depthwise_targets *targets)
{
    if (targets->count[0] > targets->count[1]) {
        const cvy_depthwise_targets old = *targets;
        for (int i = 0; i < 2; i++) {
            targets->count[i] = old.count[1 - i];
            targets->source_step[i] = old.source_step[1 - i];
            targets->target_step[i] = old.target_step[1 - i];
        }
    }
}

static void gather_row(const gathering *all, const cvy_depthwise_tile *tile, int64_t h, const float *bias)
{
    const cvy_depthwise *depthwise = all->depthwise;
    const cvy_columns *from = &depthwise->source, *to = &depthwise->target;
    const int64_t row[2] = {tile->d, h};
    cvy_depthwise_tap_list taps;
    for (cvy_depthwise_segment segment = {0, 0, 0}; cvy_depthwise_next_segment(depthwise, &segment);) {
        int64_t w = segment.phase + segment.first * depthwise->to_step[2];
        int64_t position = (tile->d * depthwise->to[1] + h) * depthwise->to[2] + w;
        cvy_depthwise_targets targets = {
            .source = all->source + tile->sample * from->sample_stride + tile->from.offset,
            .weight = all->weight + cvy_depthwise_weight(depthwise, tile->to.channel),
            .bias = bias,
            .target = all->target + tile->sample * to->sample_stride + tile->to.offset + position * to->position_stride,
            .count = {tile->samples, segment.last - segment.first},
            .source_step = {from->sample_stride, depthwise->from_step[2] * from->position_stride},
            .target_step = {to->sample_stride, depthwise->to_step[2] * to->position_stride},
            .lanes = tile->to.lanes,
            .relu = all->relu,
        };
        list_taps(depthwise, row, &segment, &taps);
        turn(&targets);
        cvy_depthwise_gather(&targets, &taps);
    }
}

static void gather_tile(const gathering *all, int64_t index)
{
    const cvy_depthwise *depthwise = all->depthwise;
    int64_t tiles = cvy_depthwise_tiles(depthwise);
    cvy_depthwise_tile tile = cvy_depthwise_tile_get(depthwise, index / tiles, index % tiles);
    float bias[CVY_COLUMNS_WIDTH] = {0}; /* 0 in the padding, too */
    for (int64_t i = 0; all->bias && i < tile.to.valid; i++) {
        bias[i] = all->bias[tile.to.channel + i];
    }
    for (int64_t h = tile.h; h < tile.h + tile.rows; h++) {
        gather_row(all, &tile, h, bias);
    }
}

/* Operands are x, w, (b), y forward, and dy, w, dx backward. */
static cvy_status run_gather(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const cvy_op *op = &kernel->base.op;
    const cvy_depthwise depthwise = cvy_depthwise_get(op);
    int bias = cvy_op_index(op, CVY_ROLE_B);
    const gathering all = {.depthwise = &depthwise, .source = operand[0],
                           .weight = operand[cvy_op_index(op, CVY_ROLE_W)], .bias = bias < 0 ? NULL : operand[bias],
                           .target = operand[op->operands - 1], .relu = op->relu};
    int64_t tiles = depthwise.target.strips * cvy_depthwise_tiles(&depthwise);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < tiles; i++) {
        gather_tile(&all, i);
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    if (!cvy_depthwise_fits(op)) {
        return NULL;
    }
    return op->pass == CVY_PASS_BACKWARD_WEIGHTS ? cvy_depthwise_run_weights : run_gather;
}

static void setup(cvy_cpu_kernel *kernel)
{
    if (kernel->base.op.pass == CVY_PASS_BACKWARD_WEIGHTS) {
        kernel->scratch_bytes = cvy_depthwise_weights_bytes(&kernel->base.op);
    }
}

/* Weights whose channels lie side by side, as those of the activations do. */
static bool choose_format(const cvy_op *op, cvy_role role, cvy_format *format_out)
{
    static const cvy_format wish[CVY_FORMAT_COUNT] = {[CVY_FORMAT_CHANNELS_LAST] = CVY_FORMAT_W_HWIO,
                                                      [CVY_FORMAT_C8] = CVY_FORMAT_W_G8,
                                                      [CVY_FORMAT_C16] = CVY_FORMAT_W_G16};
    int weights = cvy_op_index(op, role);
    if (weights < 0 || (role != CVY_ROLE_W && role != CVY_ROLE_DW)) {
        return false;
    }
    cvy_op granted = *op;
    *format_out = granted.operand[weights].tensor.format = wish[op->operand[0].tensor.format];
    return cvy_depthwise_fits(&granted);
}

const cvy_cpu_family cvy_cpu_depthwise = {.find = find, .setup = setup, .choose_format = choose_format};
