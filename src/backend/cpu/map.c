/*
 * Softmax of a block of positions, class after class: what is kept of a position is small and stays in the first-level
 * cache. The largest score is taken off before the exponential, so nothing overflows and no total is below 1.
 */
#include "backend/cpu/map.h"

#include <inttypes.h>

#include "backend/cpu/exponential.h"
#include "base/checked.h"

bool cvy_cpu_map_fits(const cvy_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        const cvy_tensor *tensor = &op->operand[i].tensor;
        if (tensor->format != CVY_FORMAT_PLAIN ||
            (op->operand[i].role == CVY_ROLE_LABEL && tensor->dtype != CVY_I32)) {
            return false;
        }
    }
    return true;
}

cvy_cpu_map cvy_cpu_map_get(const cvy_op *op)
{
    const cvy_shape *x = &op->operand[0].tensor.shape;
    cvy_cpu_map map = {.samples = x->extent[0], .classes = x->extent[1], .positions = 1};
    for (int i = 2; i < x->dims; i++) {
        map.positions *= x->extent[i];
    }
    map.blocks = cvy_ceil_div(map.positions, CVY_CPU_MAP_BLOCK);
    return map;
}

cvy_cpu_map_block cvy_cpu_map_find(const cvy_cpu_map *map, int64_t i)
{
    cvy_cpu_map_block block = {.sample = i / map->blocks, .first = i % map->blocks * CVY_CPU_MAP_BLOCK};
    block.count = cvy_min_i64(CVY_CPU_MAP_BLOCK, map->positions - block.first);
    block.scores = block.sample * map->classes * map->positions + block.first;
    block.labels = block.sample * map->positions + block.first;
    return block;
}

/* How many labels are no classes. */
CVY_VECTOR static int64_t count_strays(const int32_t *label, int64_t count, int64_t classes)
{
    int64_t strays = 0;
#pragma omp simd reduction(+ : strays)
    for (int64_t i = 0; i < count; i++) {
        strays += label[i] < 0 || label[i] >= classes;
    }
    return strays;
}

cvy_status cvy_cpu_map_check(const cvy_cpu_map *map, const int32_t *label, int64_t samples)
{
    int64_t count = cvy_min_i64(samples, map->samples) * map->positions, i = 0;
    if (count_strays(label, count, map->classes) == 0) {
        return CVY_OK;
    }
    while (label[i] >= 0 && label[i] < map->classes) {
        i++;
    }
    return cvy_fail(CVY_ERR_DATA, "label %" PRId32 " of sample %" PRId64 " is not within 0 to %" PRId64, label[i],
                    i / map->positions, map->classes - 1);
}

CVY_VECTOR static void raise_largest(const float *x, int32_t class, int64_t count, cvy_cpu_softmax *softmax)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        bool more = x[i] > softmax->largest[i];
        softmax->winner[i] = more ? class : softmax->winner[i];
        softmax->largest[i] = more ? x[i] : softmax->largest[i];
    }
}

CVY_VECTOR static void add_powers(const float *x, int64_t count, cvy_cpu_softmax *softmax)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        softmax->total[i] += cvy_exponential_of(x[i] - softmax->largest[i]);
    }
}

void cvy_cpu_softmax_open(const cvy_cpu_map *map, const float *x, int64_t count, cvy_cpu_softmax *softmax_out)
{
    for (int64_t i = 0; i < count; i++) {
        softmax_out->largest[i] = x[i];
        softmax_out->winner[i] = 0;
        softmax_out->total[i] = 0.0f;
    }
    for (int64_t c = 1; c < map->classes; c++) {
        raise_largest(x + c * map->positions, (int32_t)c, count, softmax_out);
    }
    for (int64_t c = 0; c < map->classes; c++) {
        add_powers(x + c * map->positions, count, softmax_out);
    }
}

CVY_VECTOR void cvy_cpu_softmax_share(const cvy_cpu_softmax *softmax, const float *x, int64_t count, float *p)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        p[i] = cvy_exponential_of(x[i] - softmax->largest[i]) / softmax->total[i];
    }
}

CVY_VECTOR int64_t cvy_cpu_softmax_count(const cvy_cpu_softmax *softmax, const int32_t *label, int64_t count)
{
    int64_t correct = 0;
#pragma omp simd reduction(+ : correct)
    for (int64_t i = 0; i < count; i++) {
        correct += softmax->winner[i] == label[i];
    }
    return correct;
}
