/*
 * Group norm over every activation format, with the sums and the rows of batch norm: a unit of work never leaves its
 * sample, its lanes are summed as a batch norm's are, and lanes of a group are merged in double.
 *
 * With m elements a group and i = 1 / sqrt(variance + epsilon), S = sum dy and T = sum dy (x - mean) of a channel of a
 * sample:
 *     y = w i (x - mean) + b,  db = sum over n of S,  dw = sum over n of i T,
 *     dx = w i dy - i / m sum w S - i^3 / m (x - mean) sum w T, the sums over the channels of the group
 * (Wu and He, "Group normalization", 2018). The padding of blocked formats stays zero: its columns get zeros.
 *
 * Samples are taken a few at a time, so that the second pass finds them in the cache. Units follow from the shape alone
 * and are merged in order: any number of threads gives the same bits.
 */
#include <math.h>
#include <omp.h>

#include "backend/cpu/batch_norm_rows.h"
#include "backend/cpu/batch_norm_sums.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* Pieces of work in all, at least; bytes a thread that one pass leaves in the cache for the next. As batch norm's. */
enum { UNITS = 64, WARM_BYTES = 512 * 1024 };

/* Scratch memory: two sums a lane of every unit; then, in the backward pass, floats of each sample. */
typedef struct group_scratch {
    double *sums;
    float *mean;          /* by sample and channel */
    float *shift, *slope; /* by sample and group */
} group_scratch;

/* Samples [first, last), which all passes go over before the next ones follow. */
typedef struct samples {
    int64_t first, last;
} samples;

static int64_t count_pieces(const cvy_cpu_kernel *kernel) { return kernel->groups / kernel->columns.samples; }

static int64_t count_sums(const cvy_cpu_kernel *kernel)
{
    return kernel->columns.strips * kernel->groups * kernel->columns.lanes * 2;
}

static void setup(cvy_cpu_kernel *kernel)
{
    const cvy_columns *columns = &kernel->columns;
    int64_t units = columns->samples * columns->strips;
    int64_t pieces = cvy_min_i64(cvy_ceil_div(UNITS, units),
                                 cvy_max_i64(1, columns->area * columns->lanes / CVY_CPU_CHUNK));
    kernel->groups = columns->samples * pieces;
    int64_t floats = columns->samples * (columns->channels + 2 * kernel->base.op.params.group.groups);
    kernel->scratch_bytes = (size_t)count_sums(kernel) * sizeof(double) + (size_t)floats * sizeof(float);
}

static group_scratch cut_scratch(const cvy_cpu_kernel *kernel, void *scratch)
{
    group_scratch cut = {.sums = scratch};
    const cvy_columns *columns = &kernel->columns;
    cut.mean = (float *)(cut.sums + count_sums(kernel));
    cut.shift = cut.mean + columns->samples * columns->channels;
    cut.slope = cut.shift + columns->samples * kernel->base.op.params.group.groups;
    return cut;
}

static bool next_samples(const cvy_cpu_kernel *kernel, int tensors, samples *some)
{
    const cvy_columns *columns = &kernel->columns;
    int64_t threads = omp_get_max_threads();
    int64_t sample_bytes = columns->sample_stride * tensors * (int64_t)sizeof(float);
    int64_t warm = threads * WARM_BYTES / sample_bytes;
    int64_t busy = cvy_ceil_div(2 * threads, columns->strips * count_pieces(kernel));
    some->first = some->last;
    some->last = cvy_min_i64(some->first + cvy_max_i64(warm, busy), columns->samples);
    return some->first < some->last;
}

/* The units of some samples: how many, and the index of the i-th among all. */
static int64_t count_units(const cvy_cpu_kernel *kernel, samples some)
{
    return kernel->columns.strips * (some.last - some.first) * count_pieces(kernel);
}

static int64_t find_unit(const cvy_cpu_kernel *kernel, samples some, int64_t i)
{
    int64_t units = (some.last - some.first) * count_pieces(kernel); /* of a strip */
    return i / units * kernel->groups + some.first * count_pieces(kernel) + i % units;
}

static int64_t sample_of(const cvy_cpu_kernel *kernel, int64_t index)
{
    return index % kernel->groups / count_pieces(kernel);
}

static double *sums_of(const cvy_cpu_kernel *kernel, const group_scratch *scratch, int64_t index)
{
    return scratch->sums + index * kernel->columns.lanes * 2;
}

static double inverse_deviation(const cvy_cpu_kernel *kernel, float variance)
{
    return 1.0 / sqrt((double)variance + kernel->base.op.params.group.epsilon);
}

static int64_t group_channels(const cvy_cpu_kernel *kernel)
{
    return kernel->columns.channels / kernel->base.op.params.group.groups;
}

/* Where the statistics of a channel of a sample lie among [n, groups]. */
static int64_t statistic_of(const cvy_cpu_kernel *kernel, int64_t sample, int64_t channel)
{
    return sample * kernel->base.op.params.group.groups + channel / group_channels(kernel);
}

/* The two sums of a channel in one piece of a sample, and of how many positions. */
typedef struct channel_sums {
    double first, second;
    double count;
} channel_sums;

static channel_sums find_sums(const cvy_cpu_kernel *kernel, const group_scratch *scratch, int64_t sample,
                              int64_t channel, int64_t piece)
{
    int64_t lanes = kernel->columns.lanes, pieces = count_pieces(kernel);
    int64_t index = channel / lanes * kernel->groups + sample * pieces + piece;
    cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
    const double *sums = sums_of(kernel, scratch, index) + channel % lanes;
    return (channel_sums){sums[0], sums[unit.strip.lanes], (double)(unit.last - unit.first)};
}

/* Chan's update of count, mean and sum of squared deviations. */
static void merge(const channel_sums *part, channel_sums *all)
{
    double total = all->count + part->count, share = part->count / total;
    double delta = part->first - all->first;
    all->first += delta * share;
    all->second += part->second + delta * delta * all->count * share;
    all->count = total;
}

static void settle_statistics(const cvy_cpu_kernel *kernel, const group_scratch *scratch, int64_t sample, float *mean,
                              float *variance)
{
    int64_t channels = group_channels(kernel);
    for (int64_t group = 0; group < kernel->base.op.params.group.groups; group++) {
        channel_sums all = {0};
        for (int64_t i = 0; i < channels * count_pieces(kernel); i++) {
            channel_sums part = find_sums(kernel, scratch, sample, group * channels + i / count_pieces(kernel),
                                          i % count_pieces(kernel));
            merge(&part, &all);
        }
        int64_t at = statistic_of(kernel, sample, group * channels);
        mean[at] = (float)all.first;
        variance[at] = (float)(fmax(all.second, 0) / all.count);
    }
}

static void normalise_unit(const cvy_cpu_kernel *kernel, int64_t index, void *const *operand)
{
    cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
    const cvy_strip *strip = &unit.strip;
    const float *x = operand[0], *w = operand[1], *b = operand[2], *mean = operand[4], *variance = operand[5];
    float *y = operand[3];
    cvy_normaliser with;
    for (int64_t i = 0; i < strip->lanes; i++) {
        bool valid = i < strip->valid;
        int64_t channel = strip->channel + (valid ? i : 0);
        int64_t at = statistic_of(kernel, sample_of(kernel, index), channel);
        with.mean[i] = valid ? mean[at] : 0;
        with.scale[i] = valid ? (float)(w[channel] * inverse_deviation(kernel, variance[at])) : 0;
        with.shift[i] = valid ? b[channel] : 0;
    }
    cvy_columns_repeat(strip, with.mean);
    cvy_columns_repeat(strip, with.scale);
    cvy_columns_repeat(strip, with.shift);
    for (cvy_walk walk = cvy_norm_unit_walk(kernel, &unit); cvy_walk_next(&walk);) {
        cvy_rows_normalise(x + walk.offset, &walk.matrix, &with, y + walk.offset);
    }
}

static cvy_status run_forward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const group_scratch cut = cut_scratch(kernel, scratch);
    (void)run;
    for (samples some = {0, 0}; next_samples(kernel, 1, &some);) {
        int64_t units = count_units(kernel, some);
#pragma omp parallel if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
        {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < units; i++) {
                int64_t index = find_unit(kernel, some, i);
                cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
                cvy_norm_measure_unit(kernel, operand[0], &unit, sums_of(kernel, &cut, index));
            }
#pragma omp for schedule(static)
            for (int64_t sample = some.first; sample < some.last; sample++) {
                settle_statistics(kernel, &cut, sample, operand[4], operand[5]);
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < units; i++) {
                normalise_unit(kernel, find_unit(kernel, some, i), operand);
            }
        }
    }
    return CVY_OK;
}

/* The mean of each channel of a sample, as the sums want it. */
static void spread_mean(const cvy_cpu_kernel *kernel, const group_scratch *scratch, int64_t sample, const float *mean)
{
    for (int64_t c = 0; c < kernel->columns.channels; c++) {
        scratch->mean[sample * kernel->columns.channels + c] = mean[statistic_of(kernel, sample, c)];
    }
}

static void sum_unit(const cvy_cpu_kernel *kernel, const group_scratch *scratch, int64_t index, void *const *operand)
{
    cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
    const float *mean = scratch->mean + sample_of(kernel, index) * kernel->columns.channels;
    cvy_norm_gradients with = {.x = operand[0], .dy = operand[1], .mean = mean};
    cvy_norm_sum_unit(kernel, &with, &unit, sums_of(kernel, scratch, index));
}

/* What the groups of a sample take off dx: a constant, and a multiple of x - mean. */
static void settle_gradients(const cvy_cpu_kernel *kernel, const group_scratch *scratch, int64_t sample,
                             const float *w, const float *variance)
{
    int64_t channels = group_channels(kernel), pieces = count_pieces(kernel);
    double count = (double)(channels * kernel->columns.area);
    for (int64_t group = 0; group < kernel->base.op.params.group.groups; group++) {
        double first = 0, second = 0;
        for (int64_t i = 0; i < channels * pieces; i++) {
            int64_t channel = group * channels + i / pieces;
            channel_sums part = find_sums(kernel, scratch, sample, channel, i % pieces);
            first += w[channel] * part.first;
            second += w[channel] * part.second;
        }
        int64_t at = statistic_of(kernel, sample, group * channels);
        double inverse = inverse_deviation(kernel, variance[at]);
        scratch->shift[at] = (float)(-inverse * first / count);
        scratch->slope[at] = (float)(-inverse * inverse * inverse * second / count);
    }
}

/* dx = scale dy + slope (x - mean) + shift; dx may be dy. */
CVY_VECTOR static void apply_rows(const float *x, const float *dy, const cvy_matrix *matrix, const cvy_gradient *with,
                                  float *dx)
{
    const float *mean = with->mean, *scale = with->scale, *shift = with->shift, *slope = with->slope;
    for (int64_t row = 0; row <= matrix->rows; row++) {
        const float *at = x + row * matrix->stride, *by = dy + row * matrix->stride;
        float *to = dx + row * matrix->stride;
        int64_t here = row < matrix->rows ? matrix->width : matrix->tail;
#pragma omp simd
        for (int64_t i = 0; i < here; i++) {
            to[i] = scale[i] * by[i] + slope[i] * (at[i] - mean[i]) + shift[i];
        }
    }
}

static void apply_unit(const cvy_cpu_kernel *kernel, const group_scratch *scratch, int64_t index, void *const *operand)
{
    cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
    const cvy_strip *strip = &unit.strip;
    const float *x = operand[0], *dy = operand[1], *w = operand[2], *mean = operand[3], *variance = operand[4];
    float *dx = operand[5];
    cvy_gradient with;
    for (int64_t i = 0; i < strip->lanes; i++) {
        bool valid = i < strip->valid;
        int64_t channel = strip->channel + (valid ? i : 0);
        int64_t at = statistic_of(kernel, sample_of(kernel, index), channel);
        with.mean[i] = valid ? mean[at] : 0;
        with.scale[i] = valid ? (float)(w[channel] * inverse_deviation(kernel, variance[at])) : 0;
        with.shift[i] = valid ? scratch->shift[at] : 0;
        with.slope[i] = valid ? scratch->slope[at] : 0;
    }
    cvy_columns_repeat(strip, with.mean);
    cvy_columns_repeat(strip, with.scale);
    cvy_columns_repeat(strip, with.shift);
    cvy_columns_repeat(strip, with.slope);
    for (cvy_walk walk = cvy_norm_unit_walk(kernel, &unit); cvy_walk_next(&walk);) {
        apply_rows(x + walk.offset, dy + walk.offset, &walk.matrix, &with, dx + walk.offset);
    }
}

static void finish_channel(const cvy_cpu_kernel *kernel, const group_scratch *scratch, int64_t channel,
                           void *const *operand)
{
    const float *variance = operand[4];
    float *dw = operand[6], *db = operand[7];
    double first = 0, second = 0;
    for (int64_t sample = 0; sample < kernel->columns.samples; sample++) {
        double inverse = inverse_deviation(kernel, variance[statistic_of(kernel, sample, channel)]);
        for (int64_t piece = 0; piece < count_pieces(kernel); piece++) {
            channel_sums part = find_sums(kernel, scratch, sample, channel, piece);
            first += part.first;
            second += inverse * part.second;
        }
    }
    dw[channel] = (float)second;
    db[channel] = (float)first;
}

static cvy_status run_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const group_scratch cut = cut_scratch(kernel, scratch);
    (void)run;
    for (samples some = {0, 0}; next_samples(kernel, 2, &some);) {
        int64_t units = count_units(kernel, some);
#pragma omp parallel if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
        {
#pragma omp for schedule(static)
            for (int64_t sample = some.first; sample < some.last; sample++) {
                spread_mean(kernel, &cut, sample, operand[3]);
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < units; i++) {
                sum_unit(kernel, &cut, find_unit(kernel, some, i), operand);
            }
#pragma omp for schedule(static)
            for (int64_t sample = some.first; sample < some.last; sample++) {
                settle_gradients(kernel, &cut, sample, operand[2], operand[4]);
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < units; i++) {
                apply_unit(kernel, &cut, find_unit(kernel, some, i), operand);
            }
        }
    }
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t channel = 0; channel < kernel->columns.channels; channel++) {
        finish_channel(kernel, &cut, channel, operand);
    }
    return CVY_OK;
}

/* Activations lie alike; statistics are plain. */
static cvy_cpu_run find(const cvy_op *op)
{
    const cvy_tensor *x = &op->operand[0].tensor;
    for (int i = 1; i < op->operands; i++) {
        const cvy_tensor *tensor = &op->operand[i].tensor;
        cvy_role role = op->operand[i].role;
        bool activation = role == CVY_ROLE_Y || role == CVY_ROLE_DY || role == CVY_ROLE_DX;
        if (activation ? !cvy_tensor_same_layout(x, tensor) : tensor->format != CVY_FORMAT_PLAIN) {
            return NULL;
        }
    }
    if (!cvy_columns_fit(x)) {
        return NULL;
    }
    return op->pass == CVY_PASS_FORWARD ? run_forward : run_backward;
}

const cvy_cpu_family cvy_cpu_group_norm = {.find = find, .setup = setup};
