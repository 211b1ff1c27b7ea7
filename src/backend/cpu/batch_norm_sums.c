/*
 * Sums over the batch and space, the one hard part of batch norm.
 *
 * Statistics: two passes over a chunk that stays in the first-level cache, so memory is read once. The second pass sums
 * deviations from the chunk's mean and their squares; what the rounding of that mean left over is put right by the
 * first of these sums. Chunks, then groups, are merged in double: Chan, Golub, LeVeque, "Updating formulae and a
 * pairwise algorithm for computing sample variances" (1979). A mean large against the deviation costs no digits.
 *
 * Gradients: sum dy and sum dy (x - mean), in float within a chunk, in double over chunks.
 *
 * Chunks and groups follow from the shape alone and are merged in order: any number of threads gives the same bits.
 */
#include "backend/cpu/batch_norm_sums.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/batch_norm_rows.h"
#include "base/checked.h"

/* Pieces of work in all, at least: enough for any number of threads to share evenly. Part of the result's rounding. */
enum { UNITS = 64 };

void cvy_norm_setup(cvy_cpu_kernel *kernel)
{
    kernel->columns = cvy_columns_join_samples(&kernel->columns);
    const cvy_columns *columns = &kernel->columns;
    int64_t elements = columns->samples * columns->area * columns->lanes; /* of a strip */
    kernel->groups = cvy_min_i64(cvy_ceil_div(UNITS, columns->strips), cvy_max_i64(1, elements / CVY_CPU_CHUNK));
    kernel->scratch_bytes = (size_t)(cvy_norm_units(kernel) * columns->lanes * 2) * sizeof(double);
}

int64_t cvy_norm_units(const cvy_cpu_kernel *kernel) { return kernel->columns.strips * kernel->groups; }

cvy_norm_unit cvy_norm_unit_get(const cvy_cpu_kernel *kernel, int64_t index)
{
    const cvy_columns *columns = &kernel->columns;
    int64_t group = index % kernel->groups, positions = columns->samples * columns->area;
    return (cvy_norm_unit){.strip = cvy_columns_strip(columns, index / kernel->groups),
                           .first = positions * group / kernel->groups,
                           .last = positions * (group + 1) / kernel->groups};
}

cvy_walk cvy_norm_unit_walk(const cvy_cpu_kernel *kernel, const cvy_norm_unit *unit)
{
    return (cvy_walk){.columns = &kernel->columns, .strip = &unit->strip, .next = unit->first, .last = unit->last};
}

/* Count, mean and sum of squared deviations; or two plain sums (count not used). */
typedef struct moments {
    int64_t count;
    double first[CVY_COLUMNS_WIDTH];
    double second[CVY_COLUMNS_WIDTH];
} moments;

/* A piece of a unit that stays in the cache; at least 16 positions, so that merging stays cheap. */
static bool next_chunk(const cvy_norm_unit *whole, cvy_norm_unit *chunk)
{
    int64_t positions = cvy_max_i64(16, CVY_CPU_CHUNK / whole->strip.lanes);
    chunk->first = chunk->last;
    chunk->last = cvy_min_i64(chunk->first + positions, whole->last);
    return chunk->first < chunk->last;
}

/* Where a unit's two partial sums of each lane lie in scratch memory: groups of a strip follow each other. */
static double *partial_sums(const cvy_cpu_kernel *kernel, void *scratch, int64_t index)
{
    return (double *)scratch + index * kernel->columns.lanes * 2;
}

static void clear_sums(const cvy_strip *strip, cvy_sums *sums)
{
    memset(sums->first, 0, (size_t)strip->width * sizeof sums->first[0]);
    memset(sums->second, 0, (size_t)strip->width * sizeof sums->second[0]);
}

static void clear_moments(const cvy_strip *strip, moments *all)
{
    all->count = 0;
    memset(all->first, 0, (size_t)strip->lanes * sizeof all->first[0]);
    memset(all->second, 0, (size_t)strip->lanes * sizeof all->second[0]);
}

static void measure_chunk(const cvy_cpu_kernel *kernel, const float *x, const cvy_norm_unit *chunk, moments *out)
{
    const cvy_strip *strip = &chunk->strip;
    float centre[CVY_COLUMNS_WIDTH];
    cvy_sums sums;
    clear_sums(strip, &sums);
    out->count = chunk->last - chunk->first;
    for (cvy_walk walk = cvy_norm_unit_walk(kernel, chunk); cvy_walk_next(&walk);) {
        cvy_columns_sum(x + walk.offset, &walk.matrix, sums.first);
    }
    cvy_columns_fold(strip, sums.first, out->first);
    for (int64_t i = 0; i < strip->lanes; i++) {
        centre[i] = (float)(out->first[i] / (double)out->count);
    }
    cvy_columns_repeat(strip, centre);
    clear_sums(strip, &sums);
    for (cvy_walk walk = cvy_norm_unit_walk(kernel, chunk); cvy_walk_next(&walk);) {
        cvy_rows_deviations(x + walk.offset, &walk.matrix, centre, &sums);
    }
    cvy_columns_fold(strip, sums.first, out->first);
    cvy_columns_fold(strip, sums.second, out->second);
    for (int64_t i = 0; i < strip->lanes; i++) {
        double rest = out->first[i] / (double)out->count;
        out->second[i] -= rest * out->first[i];
        out->first[i] = centre[i] + rest;
    }
}

/* Chan's update of (count, mean, sum of squared deviations) by another set of elements. */
static void merge_moments(int64_t lanes, int64_t count, const double *mean, const double *squares, moments *into)
{
    int64_t total = into->count + count;
    double share = (double)count / (double)total;
    double weight = (double)into->count * share;
    for (int64_t i = 0; i < lanes; i++) {
        double delta = mean[i] - into->first[i];
        into->first[i] += delta * share;
        into->second[i] += squares[i] + delta * delta * weight;
    }
    into->count = total;
}

static void measure_unit(const cvy_cpu_kernel *kernel, const float *x, const cvy_norm_unit *unit, double *partial)
{
    int64_t lanes = unit->strip.lanes;
    moments all, here;
    clear_moments(&unit->strip, &all);
    cvy_norm_unit chunk = {.strip = unit->strip, .last = unit->first};
    while (next_chunk(unit, &chunk)) {
        measure_chunk(kernel, x, &chunk, &here);
        merge_moments(lanes, here.count, here.first, here.second, &all);
    }
    for (int64_t i = 0; i < lanes; i++) {
        partial[i] = all.first[i];
        partial[lanes + i] = all.second[i];
    }
}

static void finish_statistics(const cvy_cpu_kernel *kernel, void *scratch, float *mean, float *variance)
{
    for (int64_t index = 0; index < cvy_norm_units(kernel); index += kernel->groups) {
        moments all;
        cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
        clear_moments(&unit.strip, &all);
        for (int64_t group = 0; group < kernel->groups; group++) {
            unit = cvy_norm_unit_get(kernel, index + group);
            const double *partial = partial_sums(kernel, scratch, index + group);
            merge_moments(unit.strip.lanes, unit.last - unit.first, partial, partial + unit.strip.lanes, &all);
        }
        for (int64_t i = 0; i < unit.strip.valid; i++) {
            mean[unit.strip.channel + i] = (float)all.first[i];
            variance[unit.strip.channel + i] = (float)(fmax(all.second[i], 0) / (double)all.count);
        }
    }
}

void cvy_norm_measure(const cvy_cpu_kernel *kernel, const float *x, void *scratch, float *mean, float *variance)
{
    int64_t units = cvy_norm_units(kernel);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t index = 0; index < units; index++) {
        cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
        measure_unit(kernel, x, &unit, partial_sums(kernel, scratch, index));
    }
    finish_statistics(kernel, scratch, mean, variance);
}

double cvy_norm_inverse_deviation(const cvy_cpu_kernel *kernel, float variance)
{
    return 1.0 / sqrt((double)variance + kernel->base.op.params.norm.epsilon);
}

static void sum_gradient_unit(const cvy_cpu_kernel *kernel, const float *x, const float *dy, const float *mean,
                              int64_t index, double *partial)
{
    cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
    const cvy_strip *strip = &unit.strip;
    float centre[CVY_COLUMNS_WIDTH];
    moments here;
    cvy_sums sums;
    for (int64_t i = 0; i < strip->lanes; i++) {
        centre[i] = i < strip->valid ? mean[strip->channel + i] : 0;
    }
    cvy_columns_repeat(strip, centre);
    memset(partial, 0, (size_t)strip->lanes * 2 * sizeof partial[0]);
    cvy_norm_unit chunk = {.strip = unit.strip, .last = unit.first};
    while (next_chunk(&unit, &chunk)) {
        clear_sums(strip, &sums);
        for (cvy_walk walk = cvy_norm_unit_walk(kernel, &chunk); cvy_walk_next(&walk);) {
            cvy_rows_gradient_sums(x + walk.offset, dy + walk.offset, &walk.matrix, centre, &sums);
        }
        cvy_columns_fold(strip, sums.first, here.first);
        cvy_columns_fold(strip, sums.second, here.second);
        for (int64_t i = 0; i < strip->lanes; i++) {
            partial[i] += here.first[i];
            partial[strip->lanes + i] += here.second[i];
        }
    }
}

void cvy_norm_sum_gradients(const cvy_cpu_kernel *kernel, void *scratch, const cvy_norm_gradients *with)
{
    int64_t units = cvy_norm_units(kernel);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t index = 0; index < units; index++) {
        sum_gradient_unit(kernel, with->x, with->dy, with->mean, index, partial_sums(kernel, scratch, index));
    }
    for (int64_t index = 0; index < units; index += kernel->groups) {
        cvy_strip strip = cvy_norm_unit_get(kernel, index).strip;
        for (int64_t i = 0; i < strip.valid; i++) {
            double first = 0, second = 0;
            for (int64_t group = 0; group < kernel->groups; group++) {
                const double *partial = partial_sums(kernel, scratch, index + group);
                first += partial[i];
                second += partial[strip.lanes + i];
            }
            double inverse = cvy_norm_inverse_deviation(kernel, with->variance[strip.channel + i]);
            with->db[strip.channel + i] = (float)first;
            with->dw[strip.channel + i] = (float)(second * inverse);
        }
    }
}
