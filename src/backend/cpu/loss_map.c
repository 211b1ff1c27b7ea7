/*
 * Cross-entropy of a class for each position. Blocks of positions are worked on in parallel; what each adds to the loss
 * is kept in scratch memory and summed in order, in double, so any number of threads gives the same bits.
 */
#include <math.h>
#include <string.h>

#include "backend/cpu/map.h"
#include "backend/cpu/vector.h"

/* What one block adds. */
typedef struct block_loss {
    double loss, correct;
} block_loss;

/*
 * The sum over positions of log(total) - (x[label] - largest). Totals are 1 to the count of classes, so that a product
 * of 16 stays within a double: one logarithm for all of them.
 */
static double sum_block(const cvy_cpu_map *map, const float *x, const int32_t *label, int64_t count,
                        const cvy_cpu_softmax *softmax)
{
    double sum = 0, product = 1;
    for (int64_t i = 0; i < count; i++) {
        sum -= (double)x[label[i] * map->positions + i] - softmax->largest[i];
        product *= softmax->total[i];
        if (i % 16 == 15) {
            sum += log(product);
            product = 1;
        }
    }
    return sum + log(product);
}

/* The sum over positions and classes of largest - x. */
static double sum_distances(const cvy_cpu_map *map, const float *x, int64_t count, const cvy_cpu_softmax *softmax)
{
    double sum = 0;
    for (int64_t c = 0; c < map->classes; c++) {
        for (int64_t i = 0; i < count; i++) {
            sum += (double)softmax->largest[i] - x[c * map->positions + i];
        }
    }
    return sum;
}

/* - sum of q log p = log(total) + (1 - smoothing) (largest - x[label]) + smoothing / classes sum of (largest - x). */
static block_loss judge_block(const cvy_cpu_map *map, const float *x, const int32_t *label, int64_t count,
                              const cvy_cpu_softmax *softmax, double smoothing)
{
    block_loss found = {sum_block(map, x, label, count, softmax),
                        (double)cvy_cpu_softmax_count(softmax, label, count)};
    if (smoothing != 0) { /* a score of -infinity elsewhere must not count without */
        found.loss += smoothing / (double)map->classes * sum_distances(map, x, count, softmax);
        for (int64_t i = 0; i < count; i++) {
            found.loss -= smoothing * ((double)softmax->largest[i] - x[label[i] * map->positions + i]);
        }
    }
    return found;
}

/* Positions of a whole sample. */
static double divide_by(const cvy_op *op, const cvy_cpu_map *map)
{
    return (double)(op->params.loss.positions ? op->params.loss.positions : map->positions);
}

static cvy_status run_forward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_op *op = &kernel->base.op;
    const float *x = operand[0];
    const int32_t *label = operand[1];
    float *p = op->pass == CVY_PASS_FORWARD ? operand[2] : NULL;
    double *loss = operand[p ? 3 : 2], sum = 0, correct = 0;
    block_loss *losses = scratch;
    cvy_cpu_map map = cvy_cpu_map_get(op);
    CVY_TRY(cvy_cpu_map_check(&map, label, run->samples));
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < map.samples * map.blocks; i++) {
        cvy_cpu_map_block block = cvy_cpu_map_find(&map, i);
        cvy_cpu_softmax softmax;
        const float *scores = x + block.scores;
        cvy_cpu_softmax_open(&map, scores, block.count, &softmax);
        for (int64_t c = 0; p && c < map.classes; c++) {
            cvy_cpu_softmax_share(&softmax, scores + c * map.positions, block.count,
                                  p + block.scores + c * map.positions);
        }
        losses[i] = block.sample < run->samples ? judge_block(&map, scores, label + block.labels, block.count, &softmax,
                                                              op->params.loss.smoothing)
                                                : (block_loss){0, 0};
    }
    for (int64_t i = 0; i < map.samples * map.blocks; i++) {
        sum += losses[i].loss;
        correct += losses[i].correct;
    }
    loss[0] = run->loss_scale * sum / divide_by(op, &map);
    loss[1] = correct;
    return CVY_OK;
}

/* dx of all classes but the label's: factor (p - q). */
CVY_VECTOR static void scale_range(const float *p, float q, float factor, float *dx, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = factor * (p[i] - q);
    }
}

static cvy_status run_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    const float *p = operand[0];
    const int32_t *label = operand[1];
    float *dx = operand[2];
    cvy_cpu_map map = cvy_cpu_map_get(&kernel->base.op);
    double smoothing = kernel->base.op.params.loss.smoothing, spread = smoothing / (double)map.classes;
    double scale = run->loss_scale / divide_by(&kernel->base.op, &map);
    CVY_TRY(cvy_cpu_map_check(&map, label, run->samples));
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < map.samples * map.blocks; i++) {
        cvy_cpu_map_block block = cvy_cpu_map_find(&map, i);
        bool valid = block.sample < run->samples;
        for (int64_t c = 0; c < map.classes; c++) {
            int64_t at = block.scores + c * map.positions;
            if (valid) {
                scale_range(p + at, (float)spread, (float)scale, dx + at, block.count);
            } else {
                memset(dx + at, 0, (size_t)block.count * sizeof *dx);
            }
        }
        for (int64_t k = 0; valid && k < block.count; k++) {
            int64_t at = block.scores + label[block.labels + k] * map.positions + k;
            dx[at] = (float)(scale * (p[at] - (1 - smoothing + spread)));
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
    bool sums = kernel->base.op.pass != CVY_PASS_BACKWARD_DATA;
    kernel->scratch_bytes = sums ? (size_t)(map.samples * map.blocks) * sizeof(block_loss) : 0;
}

const cvy_cpu_family cvy_cpu_loss_map = {.find = find, .setup = setup};
