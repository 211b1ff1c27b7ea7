/* Group norm: how the work is cut, and what both of its passes share. */
#ifndef CVY_BACKEND_CPU_GROUP_NORM_H
#define CVY_BACKEND_CPU_GROUP_NORM_H

#include "backend/cpu/batch_norm_sums.h"

/** Scratch memory: two sums a lane of every unit; then floats that the backward pass keeps of each sample. */
typedef struct cvy_group_scratch {
    double *sums;
    float *mean;          /**< by sample and channel */
    float *shift, *slope; /**< by sample and group */
} cvy_group_scratch;

/** Samples [first, last), which all steps of a pass go over before the next ones follow. */
typedef struct cvy_group_samples {
    int64_t first, last;
} cvy_group_samples;

/** The two sums of a channel in one piece of a sample, and of how many positions. */
typedef struct cvy_channel_sums {
    double first, second;
    double count;
} cvy_channel_sums;

/** Cut the work of a kernel whose op is a group norm. */
void cvy_group_setup(cvy_cpu_kernel *kernel);

/** The parts of a run's scratch memory. */
cvy_group_scratch cvy_group_scratch_cut(const cvy_cpu_kernel *kernel, void *scratch);

/**
 * Go to the next samples, as many as a second pass over @p tensors activations will still find in the cache; start with
 * {0, 0}. False after the last. Changes when work is done, not what comes out.
 */
bool cvy_group_next_samples(const cvy_cpu_kernel *kernel, int tensors, cvy_group_samples *some);

/** Pieces that the positions of a sample are cut into: the units of a strip and a sample. */
int64_t cvy_group_pieces(const cvy_cpu_kernel *kernel);

/** Units of some samples. */
int64_t cvy_group_units(const cvy_cpu_kernel *kernel, cvy_group_samples some);

/** Index among all units of the i-th of some samples. */
int64_t cvy_group_unit(const cvy_cpu_kernel *kernel, cvy_group_samples some, int64_t i);

/** The sample that a unit lies in. */
int64_t cvy_group_sample(const cvy_cpu_kernel *kernel, int64_t index);

/** Where the two sums of each lane of a unit lie. */
double *cvy_group_sums(const cvy_cpu_kernel *kernel, const cvy_group_scratch *scratch, int64_t index);

/** The sums of one channel in one piece of a sample. */
cvy_channel_sums cvy_group_channel(const cvy_cpu_kernel *kernel, const cvy_group_scratch *scratch, int64_t sample,
                                   int64_t channel, int64_t piece);

/** Channels of a group. */
int64_t cvy_group_channels(const cvy_cpu_kernel *kernel);

/** Where the statistics of a channel of a sample lie among [n, groups]. */
int64_t cvy_group_statistic(const cvy_cpu_kernel *kernel, int64_t sample, int64_t channel);

/** 1 / sqrt(variance + epsilon). */
double cvy_group_inverse_deviation(const cvy_cpu_kernel *kernel, float variance);

/** The backward pass, as a hot path of the family. */
cvy_status cvy_group_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run);

#endif
