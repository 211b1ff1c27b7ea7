/*
 * Sums over the batch and space, the one hard part of batch norm.
 *
 * Statistics: one pass over memory. A chunk gives sums of deviations and of squared deviations about the mean so far
 * (the first chunk: about the mean of its first positions), in float; chunks, then groups, are merged in double: Chan,
 * Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979). A mean large
 * against the deviation costs no digits: where a chunk of n elements lies at a distance d from the mean so far, its sum
 * of squares is larger by n d^2 than it need be, but at least n d^2 / 2 of that is the variance's own.
 *
 * Gradients: sum dy and sum dy (x - mean), in float within a chunk, in double over chunks.
 *
 * Chunks and groups follow from the shape alone and are merged in order: any number of threads gives the same bits.
 */
#include "backend/cpu/batch_norm_sums.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "backend/cpu/batch_norm_rows.h"
#include "base/checked.h"

/* Pieces of work in all, at least: enough for any number of threads to share evenly. Part of the result's rounding. */
enum { UNITS = 64 };

/* Positions of a piece, at least: what begins and ends a lane's sums is to be small beside what is summed. */
enum { LEAST_POSITIONS = 128 };

/* Bytes a thread that one pass leaves in the cache for the next: half of a common second level. */
enum { WARM_BYTES = 512 * 1024 };

void cvy_norm_setup(cvy_cpu_kernel *kernel)
{
    kernel->columns = cvy_columns_join_samples(&kernel->columns);
    const cvy_columns *columns = &kernel->columns;
    int64_t positions = columns->samples * columns->area;
    int64_t most = cvy_min_i64(positions * columns->lanes / CVY_CPU_CHUNK, positions / LEAST_POSITIONS);
    kernel->groups = cvy_min_i64(cvy_ceil_div(UNITS, columns->strips), cvy_max_i64(1, most));
    kernel->scratch_bytes = (size_t)(columns->strips * kernel->groups * columns->lanes * 2) * sizeof(double);
}

cvy_norm_strips cvy_norm_all_strips(const cvy_cpu_kernel *kernel)
{
    return (cvy_norm_strips){0, kernel->columns.strips};
}

bool cvy_norm_next_strips(const cvy_cpu_kernel *kernel, int tensors, cvy_norm_strips *strips)
{
    const cvy_columns *columns = &kernel->columns;
    int64_t threads = omp_get_max_threads();
    int64_t strip_bytes = columns->samples * columns->area * columns->lanes * tensors * (int64_t)sizeof(float);
    int64_t warm = threads * WARM_BYTES / strip_bytes, busy = cvy_ceil_div(2 * threads, kernel->groups);
    strips->first = strips->last;
    strips->last = cvy_min_i64(strips->first + cvy_max_i64(warm, busy), columns->strips);
    return strips->first < strips->last;
}

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

/* As many positions as float sums may run over: 128 additions a column. */
static bool next_chunk(const cvy_norm_unit *whole, cvy_norm_unit *chunk)
{
    int64_t positions = 128 * whole->strip.width / whole->strip.lanes;
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

/* The mean of a few positions, rounded to float: what deviations are taken from at first. */
static void guess_centre(const cvy_cpu_kernel *kernel, const float *x, const cvy_norm_unit *unit, double *mean)
{
    cvy_norm_unit few = *unit;
    cvy_sums sums;
    clear_sums(&unit->strip, &sums);
    few.last = cvy_min_i64(few.last, few.first + 16);
    for (cvy_walk walk = cvy_norm_unit_walk(kernel, &few); cvy_walk_next(&walk);) {
        cvy_columns_sum(x + walk.offset, &walk.matrix, sums.first);
    }
    cvy_columns_fold(&unit->strip, sums.first, mean);
    for (int64_t i = 0; i < unit->strip.lanes; i++) {
        mean[i] /= (double)(few.last - few.first);
    }
}

/* Count, mean and squared deviations of a chunk, from sums about a centre that is near: all the better the nearer. */
static void measure_chunk(const cvy_cpu_kernel *kernel, const float *x, const cvy_norm_unit *chunk, const double *near,
                          moments *out)
{
    const cvy_strip *strip = &chunk->strip;
    float centre[CVY_COLUMNS_WIDTH];
    cvy_sums sums;
    clear_sums(strip, &sums);
    out->count = chunk->last - chunk->first;
    for (int64_t i = 0; i < strip->lanes; i++) {
        centre[i] = (float)near[i];
    }
    cvy_columns_repeat(strip, centre);
    for (cvy_walk walk = cvy_norm_unit_walk(kernel, chunk); cvy_walk_next(&walk);) {
        cvy_rows_deviations(x + walk.offset, &walk.matrix, centre, &sums);
    }
    cvy_columns_fold(strip, sums.first, out->first);
    cvy_columns_fold(strip, sums.second, out->second);
    double share = 1 / (double)out->count;
    for (int64_t i = 0; i < strip->lanes; i++) {
        double distance = out->first[i] * share;
        out->second[i] -= distance * out->first[i];
        out->first[i] = centre[i] + distance;
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

void cvy_norm_measure_unit(const cvy_cpu_kernel *kernel, const float *x, const cvy_norm_unit *unit, double *sums_out)
{
    int64_t lanes = unit->strip.lanes;
    moments all, here;
    double guess[CVY_COLUMNS_WIDTH];
    clear_moments(&unit->strip, &all);
    guess_centre(kernel, x, unit, guess);
    cvy_norm_unit chunk = {.strip = unit->strip, .last = unit->first};
    while (next_chunk(unit, &chunk)) {
        measure_chunk(kernel, x, &chunk, all.count ? all.first : guess, &here);
        merge_moments(lanes, here.count, here.first, here.second, &all);
    }
    for (int64_t i = 0; i < lanes; i++) {
        sums_out[i] = all.first[i];
        sums_out[lanes + i] = all.second[i];
    }
}

static void finish_statistics(const cvy_cpu_kernel *kernel, void *scratch, int64_t strip, float *mean, float *variance)
{
    int64_t index = strip * kernel->groups;
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

void cvy_norm_measure(const cvy_cpu_kernel *kernel, const float *x, void *scratch, cvy_norm_strips strips, float *mean,
                      float *variance)
{
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t index = strips.first * kernel->groups; index < strips.last * kernel->groups; index++) {
        cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
        cvy_norm_measure_unit(kernel, x, &unit, partial_sums(kernel, scratch, index));
    }
    for (int64_t strip = strips.first; strip < strips.last; strip++) {
        finish_statistics(kernel, scratch, strip, mean, variance);
    }
}

double cvy_norm_inverse_deviation(const cvy_cpu_kernel *kernel, float variance)
{
    return 1.0 / sqrt((double)variance + kernel->base.op.params.norm.epsilon);
}

float cvy_norm_scale(const cvy_cpu_kernel *kernel, float w, float variance)
{
    return (float)(w * cvy_norm_inverse_deviation(kernel, variance));
}

/* What the sums go by: the mean, and with a relu what makes y. */
static void fill_normaliser(const cvy_cpu_kernel *kernel, const cvy_strip *strip, const cvy_norm_gradients *with,
                            cvy_normaliser *out)
{
    out->relu = with->b != NULL;
    for (int64_t i = 0; i < strip->lanes; i++) {
        int64_t channel = strip->channel + i;
        bool valid = i < strip->valid, made = valid && out->relu;
        out->mean[i] = valid ? with->mean[channel] : 0;
        out->scale[i] = made ? cvy_norm_scale(kernel, with->w[channel], with->variance[channel]) : 0;
        out->shift[i] = made ? with->b[channel] : 0;
    }
    cvy_columns_repeat(strip, out->mean);
    cvy_columns_repeat(strip, out->scale);
    cvy_columns_repeat(strip, out->shift);
}

void cvy_norm_sum_unit(const cvy_cpu_kernel *kernel, const cvy_norm_gradients *with, const cvy_norm_unit *unit,
                       double *sums_out)
{
    const cvy_strip *strip = &unit->strip;
    cvy_normaliser normaliser;
    moments here;
    cvy_sums sums;
    fill_normaliser(kernel, strip, with, &normaliser);
    memset(sums_out, 0, (size_t)strip->lanes * 2 * sizeof sums_out[0]);
    cvy_norm_unit chunk = {.strip = unit->strip, .last = unit->first};
    while (next_chunk(unit, &chunk)) {
        clear_sums(strip, &sums);
        for (cvy_walk walk = cvy_norm_unit_walk(kernel, &chunk); cvy_walk_next(&walk);) {
            cvy_rows_gradient_sums(with->x + walk.offset, with->dy + walk.offset, &walk.matrix, &normaliser,
                                   &sums);
        }
        cvy_columns_fold(strip, sums.first, here.first);
        cvy_columns_fold(strip, sums.second, here.second);
        for (int64_t i = 0; i < strip->lanes; i++) {
            sums_out[i] += here.first[i];
            sums_out[strip->lanes + i] += here.second[i];
        }
    }
}

static void finish_gradients(const cvy_cpu_kernel *kernel, void *scratch, int64_t index, const cvy_norm_gradients *with)
{
    int64_t first_unit = index * kernel->groups;
    cvy_strip strip = cvy_norm_unit_get(kernel, first_unit).strip;
    for (int64_t i = 0; i < strip.valid; i++) {
        double first = 0, second = 0;
        for (int64_t group = 0; group < kernel->groups; group++) {
            const double *partial = partial_sums(kernel, scratch, first_unit + group);
            first += partial[i];
            second += partial[strip.lanes + i];
        }
        double inverse = cvy_norm_inverse_deviation(kernel, with->variance[strip.channel + i]);
        with->db[strip.channel + i] = (float)first;
        with->dw[strip.channel + i] = (float)(second * inverse);
    }
}

void cvy_norm_sum_gradients(const cvy_cpu_kernel *kernel, void *scratch, cvy_norm_strips strips,
                            const cvy_norm_gradients *with)
{
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t index = strips.first * kernel->groups; index < strips.last * kernel->groups; index++) {
        cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
        cvy_norm_sum_unit(kernel, with, &unit, partial_sums(kernel, scratch, index));
    }
    for (int64_t index = strips.first; index < strips.last; index++) {
        finish_gradients(kernel, scratch, index, with);
    }
}
