/*
 * Soft Dice, block by block of positions: the two sums of each class over a block lie in scratch memory and are added
 * in order, in double, so any number of threads gives the same bits. Backward needs the sums of whole samples, which
 * forward keeps.
 */
#include <string.h>

#include "backend/cpu/map.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* Scratch memory of a block: its correct predictions, then the two sums of each class. */
static int64_t count_sums(const cvy_cpu_map *map) { return 1 + 2 * map->classes; }

/* Sums over a block of 2 p q and of p + q, for the class @p class. */
CVY_VECTOR static void sum_class(const float *p, const int32_t *label, int32_t class, int64_t count, double sums[2])
{
    double both = 0, all = 0;
#pragma omp simd reduction(+ : both, all)
    for (int64_t i = 0; i < count; i++) {
        float q = label[i] == class ? 1.0f : 0.0f;
        both += p[i] * q;
        all += p[i] + q;
    }
    sums[0] = 2 * both;
    sums[1] = all;
}

/* One block forward; @p p, where its probabilities go, may be NULL. */
static void run_block(const cvy_cpu_map *map, const cvy_cpu_map_block *block, const float *x, const int32_t *label,
                      float *p, double *sums)
{
    cvy_cpu_softmax softmax;
    float own[CVY_CPU_MAP_BLOCK];
    const float *scores = x + block->scores;
    cvy_cpu_softmax_open(map, scores, block->count, &softmax);
    sums[0] = (double)cvy_cpu_softmax_count(&softmax, label + block->labels, block->count);
    for (int64_t c = 0; c < map->classes; c++) {
        float *share = p ? p + block->scores + c * map->positions : own;
        cvy_cpu_softmax_share(&softmax, scores + c * map->positions, block->count, share);
        sum_class(share, label + block->labels, (int32_t)c, block->count, sums + 1 + 2 * c);
    }
}

/* Add up one class of a sample. */
static void add_blocks(const cvy_cpu_map *map, const double *sums, int64_t sample, int64_t c, double total_out[2])
{
    total_out[0] = total_out[1] = 0;
    for (int64_t i = sample * map->blocks; i < (sample + 1) * map->blocks; i++) {
        total_out[0] += sums[i * count_sums(map) + 1 + 2 * c];
        total_out[1] += sums[i * count_sums(map) + 2 + 2 * c];
    }
}

static cvy_status run_forward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_op *op = &kernel->base.op;
    const int32_t *label = operand[1];
    bool forward = op->pass == CVY_PASS_FORWARD;
    float *p = forward ? operand[2] : NULL;
    double *overlap = forward ? operand[3] : NULL, *loss = operand[forward ? 4 : 2], *sums = scratch;
    double epsilon = op->params.loss.epsilon, sum = 0, correct = 0, total[2];
    cvy_cpu_map map = cvy_cpu_map_get(op);
    CVY_TRY(cvy_cpu_map_check(&map, label, run->samples));
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < map.samples * map.blocks; i++) {
        cvy_cpu_map_block block = cvy_cpu_map_find(&map, i);
        run_block(&map, &block, operand[0], label, p, sums + i * count_sums(&map));
    }
    for (int64_t i = 0; i < map.samples * map.classes; i++) {
        add_blocks(&map, sums, i / map.classes, i % map.classes, total);
        if (i / map.classes < run->samples) {
            sum += (1 - (total[0] + epsilon) / (total[1] + epsilon)) / (double)map.classes;
        }
        if (overlap) {
            memcpy(overlap + 2 * i, total, sizeof total);
        }
    }
    for (int64_t i = 0; i < cvy_min_i64(map.samples, run->samples) * map.blocks; i++) {
        correct += sums[i * count_sums(&map)];
    }
    loss[0] = run->loss_scale * sum;
    loss[1] = correct;
    return CVY_OK;
}

/* r of a class is `other`, at its labels less `own`. */
typedef struct slope {
    float other, own;
} slope;

static slope find_slope(const double *overlap, int64_t classes, int64_t c, double epsilon)
{
    double a = overlap[2 * c] + epsilon, b = overlap[2 * c + 1] + epsilon, each = 1 / (b * (double)classes);
    return (slope){(float)(a / b * each), (float)(2 * each)};
}

/* Add p r of one class to the sum over classes. */
CVY_VECTOR static void add_slopes(const float *p, const int32_t *label, int32_t class, slope r, int64_t count,
                                  float *mean)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        mean[i] += p[i] * (label[i] == class ? r.other - r.own : r.other);
    }
}

/* dx of one class: factor p (r - mean). */
CVY_VECTOR static void spread_slopes(const float *p, const int32_t *label, int32_t class, slope r, const float *mean,
                                     float factor, int64_t count, float *dx)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = factor * p[i] * ((label[i] == class ? r.other - r.own : r.other) - mean[i]);
    }
}

static cvy_status run_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    const float *p = operand[0];
    const int32_t *label = operand[1];
    const double *overlap = operand[2];
    float *dx = operand[3], factor = (float)run->loss_scale;
    double epsilon = kernel->base.op.params.loss.epsilon;
    cvy_cpu_map map = cvy_cpu_map_get(&kernel->base.op);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < map.samples * map.blocks; i++) {
        cvy_cpu_map_block block = cvy_cpu_map_find(&map, i);
        const double *sums = overlap + 2 * block.sample * map.classes;
        const int32_t *labels = label + block.labels;
        float mean[CVY_CPU_MAP_BLOCK] = {0};
        for (int64_t c = 0; c < map.classes; c++) {
            add_slopes(p + block.scores + c * map.positions, labels, (int32_t)c,
                       find_slope(sums, map.classes, c, epsilon), block.count, mean);
        }
        for (int64_t c = 0; c < map.classes; c++) {
            int64_t at = block.scores + c * map.positions;
            if (block.sample < run->samples) {
                spread_slopes(p + at, labels, (int32_t)c, find_slope(sums, map.classes, c, epsilon), mean, factor,
                              block.count, dx + at);
            } else {
                memset(dx + at, 0, (size_t)block.count * sizeof *dx);
            }
        }
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    if (!cvy_cpu_map_fits(op)) {
        return NULL;
    }
    return op->pass == CVY_PASS_BACKWARD_DATA ? run_backward : run_forward;
}

static void setup(cvy_cpu_kernel *kernel)
{
    cvy_cpu_map map = cvy_cpu_map_get(&kernel->base.op);
    int64_t sums = kernel->base.op.pass == CVY_PASS_BACKWARD_DATA ? 0 : map.samples * map.blocks * count_sums(&map);
    kernel->scratch_bytes = (size_t)sums * sizeof(double);
}

const cvy_cpu_family cvy_cpu_dice = {.find = find, .setup = setup};
