/*
 * Group norm's units of work: never of two samples, otherwise batch norm's, with two sums of each lane. Which samples
 * are gone through together is for the cache alone; units follow from the shape, and any number of threads gives the
 * same bits.
 */
#include "backend/cpu/group_norm.h"

#include <math.h>
#include <omp.h>

#include "base/checked.h"

/* Pieces of work in all, at least; bytes a thread that one pass leaves in the cache for the next. As batch norm's. */
enum { UNITS = 64, WARM_BYTES = 512 * 1024 };

int64_t cvy_group_pieces(const cvy_cpu_kernel *kernel) { return kernel->groups / kernel->columns.samples; }

static int64_t count_sums(const cvy_cpu_kernel *kernel)
{
    return kernel->columns.strips * kernel->groups * kernel->columns.lanes * 2;
}

void cvy_group_setup(cvy_cpu_kernel *kernel)
{
    const cvy_columns *columns = &kernel->columns;
    int64_t units = columns->samples * columns->strips;
    int64_t pieces = cvy_min_i64(cvy_ceil_div(UNITS, units),
                                 cvy_max_i64(1, columns->area * columns->lanes / CVY_CPU_CHUNK));
    kernel->groups = columns->samples * pieces;
    int64_t floats = columns->samples * (columns->channels + 2 * kernel->base.op.params.group.groups);
    kernel->scratch_bytes = (size_t)count_sums(kernel) * sizeof(double) + (size_t)floats * sizeof(float);
}

cvy_group_scratch cvy_group_scratch_cut(const cvy_cpu_kernel *kernel, void *scratch)
{
    cvy_group_scratch cut = {.sums = scratch};
    const cvy_columns *columns = &kernel->columns;
    cut.mean = (float *)(cut.sums + count_sums(kernel));
    cut.shift = cut.mean + columns->samples * columns->channels;
    cut.slope = cut.shift + columns->samples * kernel->base.op.params.group.groups;
    return cut;
}

bool cvy_group_next_samples(const cvy_cpu_kernel *kernel, int tensors, cvy_group_samples *some)
{
    const cvy_columns *columns = &kernel->columns;
    int64_t threads = omp_get_max_threads();
    int64_t sample_bytes = columns->sample_stride * tensors * (int64_t)sizeof(float);
    int64_t warm = threads * WARM_BYTES / sample_bytes;
    int64_t busy = cvy_ceil_div(2 * threads, columns->strips * cvy_group_pieces(kernel));
    some->first = some->last;
    some->last = cvy_min_i64(some->first + cvy_max_i64(warm, busy), columns->samples);
    return some->first < some->last;
}

/* The units of some samples: how many, and the index of the i-th among all. */
int64_t cvy_group_units(const cvy_cpu_kernel *kernel, cvy_group_samples some)
{
    return kernel->columns.strips * (some.last - some.first) * cvy_group_pieces(kernel);
}

int64_t cvy_group_unit(const cvy_cpu_kernel *kernel, cvy_group_samples some, int64_t i)
{
    int64_t units = (some.last - some.first) * cvy_group_pieces(kernel); /* of a strip */
    return i / units * kernel->groups + some.first * cvy_group_pieces(kernel) + i % units;
}

int64_t cvy_group_sample(const cvy_cpu_kernel *kernel, int64_t index)
{
    return index % kernel->groups / cvy_group_pieces(kernel);
}

double *cvy_group_sums(const cvy_cpu_kernel *kernel, const cvy_group_scratch *scratch, int64_t index)
{
    return scratch->sums + index * kernel->columns.lanes * 2;
}

double cvy_group_inverse_deviation(const cvy_cpu_kernel *kernel, float variance)
{
    return 1.0 / sqrt((double)variance + kernel->base.op.params.group.epsilon);
}

int64_t cvy_group_channels(const cvy_cpu_kernel *kernel)
{
    return kernel->columns.channels / kernel->base.op.params.group.groups;
}

/* Where the statistics of a channel of a sample lie among [n, groups]. */
int64_t cvy_group_statistic(const cvy_cpu_kernel *kernel, int64_t sample, int64_t channel)
{
    return sample * kernel->base.op.params.group.groups + channel / cvy_group_channels(kernel);
}

cvy_channel_sums cvy_group_channel(const cvy_cpu_kernel *kernel, const cvy_group_scratch *scratch, int64_t sample,
                                   int64_t channel, int64_t piece)
{
    int64_t lanes = kernel->columns.lanes, pieces = cvy_group_pieces(kernel);
    int64_t index = channel / lanes * kernel->groups + sample * pieces + piece;
    cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
    const double *sums = cvy_group_sums(kernel, scratch, index) + channel % lanes;
    return (cvy_channel_sums){sums[0], sums[unit.strip.lanes], (double)(unit.last - unit.first)};
}
