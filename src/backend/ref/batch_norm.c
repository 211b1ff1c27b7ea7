/*
 * Batch normalisation (Ioffe and Szegedy, 2015), gradients as in its section 3, batch statistics differentiated too:
 * with x' = (x - mean) / sqrt(variance + epsilon), m elements a channel, db = sum dy, dw = sum dy x',
 *
 *     dx = w / sqrt(variance + epsilon) (dy - db / m - x' dw / m).
 *
 * With a relu behind it, dy is 0 where y was not above 0.
 *
 * The fused passes are the split ones in a row, through the operands that they write, so both give the same bits. The
 * variance is of differences from the mean, in a second sweep: no cancellation.
 */
#include "backend/ref/ref.h"

#include <math.h>

/* Call for each row of a channel: rows are counted over n,d,h. Offset of its first element. */
static int64_t channel_row(const cvy_ref_tensor *tensor, int64_t c, int64_t row)
{
    int64_t depth = tensor->extent[CVY_REF_D];
    int64_t height = tensor->extent[CVY_REF_H];
    return cvy_ref_plane(tensor, row / height / depth, c) + tensor->at[CVY_REF_D][row / height % depth] +
           tensor->at[CVY_REF_H][row % height];
}

static int64_t channel_rows(const cvy_ref_tensor *tensor)
{
    return tensor->extent[CVY_REF_N] * tensor->extent[CVY_REF_D] * tensor->extent[CVY_REF_H];
}

static double channel_count(const cvy_ref_tensor *tensor)
{
    return (double)(channel_rows(tensor) * tensor->extent[CVY_REF_W]);
}

/* Sum over a channel of (x - from)^power, power 1 or 2. */
static double sum_powers(const cvy_ref_tensor *x, int64_t c, double from, int power)
{
    double sum = 0.0;
    for (int64_t row = 0; row < channel_rows(x); row++) {
        int64_t at = channel_row(x, c, row);
        for (int64_t w = 0; w < x->extent[CVY_REF_W]; w++) {
            double difference = cvy_ref_load(x, at + x->at[CVY_REF_W][w]) - from;
            sum += power == 1 ? difference : difference * difference;
        }
    }
    return sum;
}

cvy_status cvy_ref_norm_stats(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *means = cvy_ref_find(kernel, CVY_ROLE_MEAN);
    const cvy_ref_tensor *variances = cvy_ref_find(kernel, CVY_ROLE_VARIANCE);
    double count = channel_count(x);
    (void)run;
    for (int64_t c = 0; c < x->extent[CVY_REF_C]; c++) {
        double mean = sum_powers(x, c, 0.0, 1) / count;
        cvy_ref_store(means, c, mean);
        cvy_ref_store(variances, c, sum_powers(x, c, mean, 2) / count);
    }
    return CVY_OK;
}

/* What y follows from, of one channel. */
typedef struct channel_norm {
    double mean, deviation, gamma, beta;
} channel_norm;

static channel_norm find_channel(const cvy_ref_kernel *kernel, int64_t c, cvy_role mean_role, cvy_role variance_role)
{
    const cvy_ref_tensor *gamma = cvy_ref_find(kernel, CVY_ROLE_W);
    const cvy_ref_tensor *beta = cvy_ref_find(kernel, CVY_ROLE_B);
    double variance = cvy_ref_load(cvy_ref_find(kernel, variance_role), c);
    return (channel_norm){.mean = cvy_ref_load(cvy_ref_find(kernel, mean_role), c),
                          .deviation = sqrt(variance + kernel->base.op.params.norm.epsilon),
                          .gamma = gamma ? cvy_ref_load(gamma, c) : 0.0,
                          .beta = beta ? cvy_ref_load(beta, c) : 0.0};
}

static double normalise_value(const channel_norm *norm, double x)
{
    return norm->gamma * (x - norm->mean) / norm->deviation + norm->beta;
}

/* dy, or 0 where a relu let nothing through. */
static double load_gradient(const cvy_ref_kernel *kernel, const channel_norm *norm, double x, int64_t dy_at)
{
    bool through = !kernel->base.op.relu || normalise_value(norm, x) > 0.0;
    return through ? cvy_ref_load(cvy_ref_find(kernel, CVY_ROLE_DY), dy_at) : 0.0;
}

/* y = w (x - mean) / sqrt(variance + epsilon) + b with the statistics of two roles. */
static void normalise(const cvy_ref_kernel *kernel, cvy_role mean_role, cvy_role variance_role)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *y = cvy_ref_find(kernel, CVY_ROLE_Y);
    for (int64_t c = 0; c < x->extent[CVY_REF_C]; c++) {
        channel_norm norm = find_channel(kernel, c, mean_role, variance_role);
        for (int64_t row = 0; row < channel_rows(x); row++) {
            int64_t x_at = channel_row(x, c, row);
            int64_t y_at = channel_row(y, c, row);
            for (int64_t w = 0; w < x->extent[CVY_REF_W]; w++) {
                double value = normalise_value(&norm, cvy_ref_load(x, x_at + x->at[CVY_REF_W][w]));
                bool rectified = kernel->base.op.relu && value < 0.0; /* NaN stays */
                cvy_ref_store(y, y_at + y->at[CVY_REF_W][w], rectified ? 0.0 : value);
            }
        }
    }
}

cvy_status cvy_ref_norm_normalise(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    (void)run;
    normalise(kernel, CVY_ROLE_MEAN, CVY_ROLE_VARIANCE);
    return CVY_OK;
}

cvy_status cvy_ref_norm_inference(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    (void)run;
    normalise(kernel, CVY_ROLE_RUNNING_MEAN, CVY_ROLE_RUNNING_VARIANCE);
    return CVY_OK;
}

cvy_status cvy_ref_norm_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    CVY_TRY(cvy_ref_norm_stats(kernel, run));
    return cvy_ref_norm_normalise(kernel, run);
}

cvy_status cvy_ref_norm_grad_stats(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *dy = cvy_ref_find(kernel, CVY_ROLE_DY);
    (void)run;
    for (int64_t c = 0; c < x->extent[CVY_REF_C]; c++) {
        channel_norm norm = find_channel(kernel, c, CVY_ROLE_MEAN, CVY_ROLE_VARIANCE);
        double sum = 0.0;
        double product = 0.0;
        for (int64_t row = 0; row < channel_rows(x); row++) {
            int64_t x_at = channel_row(x, c, row);
            int64_t dy_at = channel_row(dy, c, row);
            for (int64_t w = 0; w < x->extent[CVY_REF_W]; w++) {
                double value = cvy_ref_load(x, x_at + x->at[CVY_REF_W][w]);
                double gradient = load_gradient(kernel, &norm, value, dy_at + dy->at[CVY_REF_W][w]);
                sum += gradient;
                product += gradient * (value - norm.mean);
            }
        }
        cvy_ref_store(cvy_ref_find(kernel, CVY_ROLE_DW), c, product / norm.deviation);
        cvy_ref_store(cvy_ref_find(kernel, CVY_ROLE_DB), c, sum);
    }
    return CVY_OK;
}

/* One channel of dx, from sums that were taken over @p count elements. */
static void apply_gradient(const cvy_ref_kernel *kernel, int64_t c, double count)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *dy = cvy_ref_find(kernel, CVY_ROLE_DY);
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    channel_norm norm = find_channel(kernel, c, CVY_ROLE_MEAN, CVY_ROLE_VARIANCE);
    double dw = cvy_ref_load(cvy_ref_find(kernel, CVY_ROLE_DW), c);
    double db = cvy_ref_load(cvy_ref_find(kernel, CVY_ROLE_DB), c);
    for (int64_t row = 0; row < channel_rows(x); row++) {
        int64_t x_at = channel_row(x, c, row);
        int64_t dy_at = channel_row(dy, c, row);
        int64_t dx_at = channel_row(dx, c, row);
        for (int64_t w = 0; w < x->extent[CVY_REF_W]; w++) {
            double value = cvy_ref_load(x, x_at + x->at[CVY_REF_W][w]);
            double normal = (value - norm.mean) / norm.deviation;
            double gradient = load_gradient(kernel, &norm, value, dy_at + dy->at[CVY_REF_W][w]);
            cvy_ref_store(dx, dx_at + dx->at[CVY_REF_W][w],
                          norm.gamma / norm.deviation * (gradient - db / count - normal * dw / count));
        }
    }
}

cvy_status cvy_ref_norm_grad_apply(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    for (int64_t i = 0; i < dx->elements && run->samples == 0; i++) {
        cvy_ref_store(dx, i, 0.0);
    }
    for (int64_t c = 0; c < dx->extent[CVY_REF_C] && run->samples > 0; c++) {
        apply_gradient(kernel, c, (double)kernel->base.op.params.norm.count);
    }
    return CVY_OK;
}

cvy_status cvy_ref_norm_backward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    CVY_TRY(cvy_ref_norm_grad_stats(kernel, run));
    for (int64_t c = 0; c < x->extent[CVY_REF_C]; c++) {
        apply_gradient(kernel, c, channel_count(x));
    }
    return CVY_OK;
}

cvy_status cvy_ref_norm_commit(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *mean = cvy_ref_find(kernel, CVY_ROLE_MEAN);
    const cvy_ref_tensor *variance = cvy_ref_find(kernel, CVY_ROLE_VARIANCE);
    const cvy_ref_tensor *running_mean = cvy_ref_find(kernel, CVY_ROLE_RUNNING_MEAN);
    const cvy_ref_tensor *running_variance = cvy_ref_find(kernel, CVY_ROLE_RUNNING_VARIANCE);
    double momentum = kernel->base.op.params.norm.momentum;
    double count = (double)kernel->base.op.params.norm.count;
    double unbiased = count > 1.0 ? count / (count - 1.0) : 1.0;
    (void)run;
    for (int64_t c = 0; c < mean->elements; c++) {
        cvy_ref_store(running_mean, c,
                      (1.0 - momentum) * cvy_ref_load(running_mean, c) + momentum * cvy_ref_load(mean, c));
        cvy_ref_store(running_variance, c,
                      (1.0 - momentum) * cvy_ref_load(running_variance, c) +
                          momentum * unbiased * cvy_ref_load(variance, c));
    }
    return CVY_OK;
}

cvy_status cvy_ref_norm_merge(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *mean = cvy_ref_find(kernel, CVY_ROLE_MEAN);
    const cvy_ref_tensor *variance = cvy_ref_find(kernel, CVY_ROLE_VARIANCE);
    const cvy_ref_tensor *all_mean = cvy_ref_find(kernel, CVY_ROLE_RUNNING_MEAN);
    const cvy_ref_tensor *all_variance = cvy_ref_find(kernel, CVY_ROLE_RUNNING_VARIANCE);
    double share = 1.0 - (double)kernel->base.op.params.norm.merged / (double)kernel->base.op.params.norm.count;
    (void)run;
    for (int64_t c = 0; c < mean->elements; c++) {
        double difference = cvy_ref_load(mean, c) - cvy_ref_load(all_mean, c);
        double within = (1.0 - share) * cvy_ref_load(all_variance, c) + share * cvy_ref_load(variance, c);
        cvy_ref_store(all_mean, c, cvy_ref_load(all_mean, c) + share * difference);
        cvy_ref_store(all_variance, c, within + share * (1.0 - share) * difference * difference);
    }
    return CVY_OK;
}
