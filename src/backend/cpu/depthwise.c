/*
 * Convolutions with one filter for each channel, forward and gradient of data: every target is a sum over its taps,
 * each a vector of channels times a vector of weights. Taps are clipped to the sources once for all targets of a row
 * that have the same ones, and of all samples of a tile: a plane of one position has one tap.
 *
 * In a chain they follow oneDNN, which leaves them what it has no depthwise kernel for. Over the shapes of MobileNetV2
 * and EfficientNet (2.6, AVX-512, one thread, batch 16 and 64) these take 0.002 to 0.005 of the time of its product on
 * planes of one position, 0.02 to 0.3 of its gradient of weights by groups in blocks; beside its depthwise kernels 0.5
 * to 3.0, mostly 1.1 to 1.8, in the gradient of weights up to 3.5: those it keeps.
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

/* The taps of the first target of a tile at depth @p d, in bands of rows and positions; sources within the strip. */
static void list_taps(const cvy_depthwise *depthwise, int64_t d, const cvy_depthwise_band *rows,
                      const cvy_depthwise_band *positions, cvy_depthwise_tap_list *taps)
{
    const cvy_depthwise_axis *axis = depthwise->axis;
    int64_t phase = d % axis[0].phases, place = d / axis[0].phases, stride = depthwise->source.position_stride;
    taps->count = 0;
    for (int64_t kd = 0; kd < axis[0].taps; kd++) {
        int64_t from_d = cvy_depthwise_source(&axis[0], phase, place, kd);
        for (int64_t kh = 0; from_d >= 0 && kh < axis[1].taps; kh++) {
            int64_t from_h = cvy_depthwise_source(&axis[1], rows->phase, rows->first, kh);
            for (int64_t kw = 0; from_h >= 0 && kw < axis[2].taps; kw++) {
                int64_t from_w = cvy_depthwise_source(&axis[2], positions->phase, positions->first, kw);
                if (from_w >= 0) {
                    taps->source[taps->count] = ((from_d * axis[1].from + from_h) * axis[2].from + from_w) * stride;
                    taps->weight[taps->count++] =
                        kd * axis[0].weight_step + kh * axis[1].weight_step + kw * axis[2].weight_step;
                }
            }
        }
    }
}

static void gather_bands(const gathering *all, const cvy_depthwise_tile *tile, const cvy_depthwise_band *rows,
                         const cvy_depthwise_band *positions, cvy_depthwise_targets *targets)
{
    const cvy_depthwise *depthwise = all->depthwise;
    const cvy_depthwise_axis *axis = depthwise->axis;
    cvy_depthwise_tap_list taps;
    int64_t h = rows->phase + rows->first * axis[1].phases, w = positions->phase + positions->first * axis[2].phases;
    int64_t position = (tile->d * axis[1].to + h) * axis[2].to + w;
    targets->target = all->target + tile->sample * depthwise->target.sample_stride + tile->to.offset +
                      position * depthwise->target.position_stride;
    targets->nest = cvy_depthwise_nest_get(depthwise, tile->samples, rows->last - rows->first,
                                           positions->last - positions->first);
    list_taps(depthwise, tile->d, rows, positions, &taps);
    cvy_depthwise_gather(targets, &taps);
}

static void gather_tile(const gathering *all, int64_t index)
{
    const cvy_depthwise *depthwise = all->depthwise;
    const cvy_depthwise_axis *axis = depthwise->axis;
    int64_t tiles = cvy_depthwise_tiles(depthwise);
    cvy_depthwise_tile tile = cvy_depthwise_tile_get(depthwise, index / tiles, index % tiles);
    float bias[CVY_COLUMNS_WIDTH]; /* 0 in the padding, too */
    for (int64_t i = 0; i < tile.to.lanes; i++) {
        bias[i] = all->bias && i < tile.to.valid ? all->bias[tile.to.channel + i] : 0.0f;
    }
    cvy_depthwise_targets targets = {
        .source = all->source + tile.sample * depthwise->source.sample_stride + tile.from.offset,
        .weight = all->weight + cvy_depthwise_weight(depthwise, tile.to.channel),
        .bias = bias,
        .lanes = tile.to.lanes,
        .relu = all->relu,
    };
    for (cvy_depthwise_band rows = {0, 0, 0}; cvy_depthwise_next_band(&axis[1], &rows);) {
        cvy_depthwise_band here = rows, positions = {0, 0, 0};
        bool inside = cvy_depthwise_clip(&axis[1], tile.h, tile.h + tile.rows, &here);
        while (inside && cvy_depthwise_next_band(&axis[2], &positions)) {
            gather_bands(all, &tile, &here, &positions, &targets);
        }
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
