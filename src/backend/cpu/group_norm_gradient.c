/* The gradients of group norm: all sums of some samples, then their dx, which may lie on dy; dw and db at the end. */
#include "backend/cpu/batch_norm_rows.h"
#include "backend/cpu/group_norm.h"
#include "backend/cpu/vector.h"

/* The mean of each channel of a sample, as the sums want it. */
static void spread_mean(const cvy_cpu_kernel *kernel, const cvy_group_scratch *scratch, int64_t sample,
                        const float *mean)
{
    for (int64_t c = 0; c < kernel->columns.channels; c++) {
        scratch->mean[sample * kernel->columns.channels + c] = mean[cvy_group_statistic(kernel, sample, c)];
    }
}

static void sum_unit(const cvy_cpu_kernel *kernel, const cvy_group_scratch *scratch, int64_t index,
                     void *const *operand)
{
    cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
    const float *mean = scratch->mean + cvy_group_sample(kernel, index) * kernel->columns.channels;
    cvy_norm_gradients with = {.x = operand[0], .dy = operand[1], .mean = mean};
    cvy_norm_sum_unit(kernel, &with, &unit, cvy_group_sums(kernel, scratch, index));
}

/* What the groups of a sample take off dx: a constant, and a multiple of x - mean. */
static void settle_gradients(const cvy_cpu_kernel *kernel, const cvy_group_scratch *scratch, int64_t sample,
                             const float *w, const float *variance)
{
    int64_t channels = cvy_group_channels(kernel), pieces = cvy_group_pieces(kernel);
    double count = (double)(channels * kernel->columns.area);
    for (int64_t group = 0; group < kernel->base.op.params.group.groups; group++) {
        double first = 0, second = 0;
        for (int64_t i = 0; i < channels * pieces; i++) {
            int64_t channel = group * channels + i / pieces;
            cvy_channel_sums part = cvy_group_channel(kernel, scratch, sample, channel, i % pieces);
            first += w[channel] * part.first;
            second += w[channel] * part.second;
        }
        int64_t at = cvy_group_statistic(kernel, sample, group * channels);
        double inverse = cvy_group_inverse_deviation(kernel, variance[at]);
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

static void apply_unit(const cvy_cpu_kernel *kernel, const cvy_group_scratch *scratch, int64_t index,
                       void *const *operand)
{
    cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
    const cvy_strip *strip = &unit.strip;
    const float *x = operand[0], *dy = operand[1], *w = operand[2], *mean = operand[3], *variance = operand[4];
    float *dx = operand[5];
    cvy_gradient with;
    for (int64_t i = 0; i < strip->lanes; i++) {
        bool valid = i < strip->valid;
        int64_t channel = strip->channel + (valid ? i : 0);
        int64_t at = cvy_group_statistic(kernel, cvy_group_sample(kernel, index), channel);
        with.mean[i] = valid ? mean[at] : 0;
        with.scale[i] = valid ? (float)(w[channel] * cvy_group_inverse_deviation(kernel, variance[at])) : 0;
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

static void finish_channel(const cvy_cpu_kernel *kernel, const cvy_group_scratch *scratch, int64_t channel,
                           void *const *operand)
{
    const float *variance = operand[4];
    float *dw = operand[6], *db = operand[7];
    double first = 0, second = 0;
    for (int64_t sample = 0; sample < kernel->columns.samples; sample++) {
        double inverse = cvy_group_inverse_deviation(kernel, variance[cvy_group_statistic(kernel, sample, channel)]);
        for (int64_t piece = 0; piece < cvy_group_pieces(kernel); piece++) {
            cvy_channel_sums part = cvy_group_channel(kernel, scratch, sample, channel, piece);
            first += part.first;
            second += inverse * part.second;
        }
    }
    dw[channel] = (float)second;
    db[channel] = (float)first;
}

cvy_status cvy_group_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_group_scratch cut = cvy_group_scratch_cut(kernel, scratch);
    (void)run;
    for (cvy_group_samples some = {0, 0}; cvy_group_next_samples(kernel, 2, &some);) {
        int64_t units = cvy_group_units(kernel, some);
#pragma omp parallel if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
        {
#pragma omp for schedule(static)
            for (int64_t sample = some.first; sample < some.last; sample++) {
                spread_mean(kernel, &cut, sample, operand[3]);
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < units; i++) {
                sum_unit(kernel, &cut, cvy_group_unit(kernel, some, i), operand);
            }
#pragma omp for schedule(static)
            for (int64_t sample = some.first; sample < some.last; sample++) {
                settle_gradients(kernel, &cut, sample, operand[2], operand[4]);
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < units; i++) {
                apply_unit(kernel, &cut, cvy_group_unit(kernel, some, i), operand);
            }
        }
    }
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t channel = 0; channel < kernel->columns.channels; channel++) {
        finish_channel(kernel, &cut, channel, operand);
    }
    return CVY_OK;
}
