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
#include "backend/cpu/group_norm.h"

#include <math.h>

#include "backend/cpu/batch_norm_rows.h"

/* Chan's update of count, mean and sum of squared deviations. */
static void merge(const cvy_channel_sums *part, cvy_channel_sums *all)
{
    double total = all->count + part->count, share = part->count / total;
    double delta = part->first - all->first;
    all->first += delta * share;
    all->second += part->second + delta * delta * all->count * share;
    all->count = total;
}

static void settle_statistics(const cvy_cpu_kernel *kernel, const cvy_group_scratch *scratch, int64_t sample,
                              float *mean, float *variance)
{
    int64_t channels = cvy_group_channels(kernel), pieces = cvy_group_pieces(kernel);
    for (int64_t group = 0; group < kernel->base.op.params.group.groups; group++) {
        cvy_channel_sums all = {0};
        for (int64_t i = 0; i < channels * pieces; i++) {
            cvy_channel_sums part =
                cvy_group_channel(kernel, scratch, sample, group * channels + i / pieces, i % pieces);
            merge(&part, &all);
        }
        int64_t at = cvy_group_statistic(kernel, sample, group * channels);
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
    with.relu = false;
    for (int64_t i = 0; i < strip->lanes; i++) {
        bool valid = i < strip->valid;
        int64_t channel = strip->channel + (valid ? i : 0);
        int64_t at = cvy_group_statistic(kernel, cvy_group_sample(kernel, index), channel);
        with.mean[i] = valid ? mean[at] : 0;
        with.scale[i] = valid ? (float)(w[channel] * cvy_group_inverse_deviation(kernel, variance[at])) : 0;
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
    const cvy_group_scratch cut = cvy_group_scratch_cut(kernel, scratch);
    (void)run;
    for (cvy_group_samples some = {0, 0}; cvy_group_next_samples(kernel, 1, &some);) {
        int64_t units = cvy_group_units(kernel, some);
#pragma omp parallel if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
        {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < units; i++) {
                int64_t index = cvy_group_unit(kernel, some, i);
                cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
                cvy_norm_measure_unit(kernel, operand[0], &unit, cvy_group_sums(kernel, &cut, index));
            }
#pragma omp for schedule(static)
            for (int64_t sample = some.first; sample < some.last; sample++) {
                settle_statistics(kernel, &cut, sample, operand[4], operand[5]);
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < units; i++) {
                normalise_unit(kernel, cvy_group_unit(kernel, some, i), operand);
            }
        }
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
    return op->pass == CVY_PASS_FORWARD ? run_forward : cvy_group_backward;
}

const cvy_cpu_family cvy_cpu_group_norm = {.find = find, .setup = cvy_group_setup};
