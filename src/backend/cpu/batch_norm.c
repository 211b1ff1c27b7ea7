/*
 * Batch norm over every activation format, one code by way of columns.
 *
 * With m elements a channel and i = 1 / sqrt(variance + epsilon):
 *     y = w i (x - mean) + b,
 *     db = sum dy,  dw = i sum dy (x - mean),  dx = w i (dy - db / m - i dw / m (x - mean))
 * (Ioffe, Szegedy, "Batch normalization", 2015). The mean is taken off before the scale is applied, so that a mean
 * large against the deviation costs no digits. FORWARD and BACKWARD are the split passes in a row: same bits.
 *
 * With a relu behind it, y is max(y, 0) in the pass that makes it, and the gradients make y of x again, by the same
 * arithmetic, to see where it was above 0: that is cheaper than to read it.
 *
 * The padding of blocked formats stays zero: its columns get scale and shift 0.
 */
#include <string.h>

#include "backend/cpu/batch_norm_rows.h"
#include "backend/cpu/batch_norm_sums.h"

/* The vectors of length c that y follows from. */
typedef struct norm_vectors {
    const float *w, *b, *mean, *variance;
} norm_vectors;

static void fill_normaliser(const cvy_cpu_kernel *kernel, const cvy_strip *strip, const norm_vectors *vectors,
                            cvy_normaliser *out)
{
    out->relu = kernel->base.op.relu;
    for (int64_t i = 0; i < strip->lanes; i++) {
        int64_t channel = strip->channel + i;
        bool valid = i < strip->valid;
        out->mean[i] = valid ? vectors->mean[channel] : 0;
        out->scale[i] = valid ? cvy_norm_scale(kernel, vectors->w[channel], vectors->variance[channel]) : 0;
        out->shift[i] = valid ? vectors->b[channel] : 0;
    }
    cvy_columns_repeat(strip, out->mean);
    cvy_columns_repeat(strip, out->scale);
    cvy_columns_repeat(strip, out->shift);
}

static void normalise(const cvy_cpu_kernel *kernel, const float *x, cvy_norm_strips strips, const norm_vectors *vectors,
                      float *y)
{
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t index = strips.first * kernel->groups; index < strips.last * kernel->groups; index++) {
        cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
        cvy_normaliser normaliser;
        fill_normaliser(kernel, &unit.strip, vectors, &normaliser);
        for (cvy_walk walk = cvy_norm_unit_walk(kernel, &unit); cvy_walk_next(&walk);) {
            cvy_rows_normalise(x + walk.offset, &walk.matrix, &normaliser, y + walk.offset);
        }
    }
}

/* dx = w i (dy - db / m - i dw / m (x - mean)), with m elements a channel over all ranks. */
static void fill_gradient(const cvy_cpu_kernel *kernel, const cvy_strip *strip, double count,
                          const cvy_norm_gradients *with, cvy_gradient *out)
{
    out->relu = with->b != NULL;
    for (int64_t i = 0; i < strip->lanes; i++) {
        int64_t channel = strip->channel + i;
        out->beta[i] = 0;
        if (i >= strip->valid) {
            out->mean[i] = out->scale[i] = out->shift[i] = out->slope[i] = 0;
            continue;
        }
        double inverse = cvy_norm_inverse_deviation(kernel, with->variance[channel]);
        out->mean[i] = with->mean[channel];
        out->scale[i] = cvy_norm_scale(kernel, with->w[channel], with->variance[channel]);
        out->beta[i] = out->relu ? with->b[channel] : 0;
        out->shift[i] = (float)(with->db[channel] / count);
        out->slope[i] = (float)(inverse * with->dw[channel] / count);
    }
    cvy_columns_repeat(strip, out->mean);
    cvy_columns_repeat(strip, out->scale);
    cvy_columns_repeat(strip, out->shift);
    cvy_columns_repeat(strip, out->slope);
    cvy_columns_repeat(strip, out->beta);
}

static void apply_gradients(const cvy_cpu_kernel *kernel, cvy_norm_strips strips, double count,
                            const cvy_norm_gradients *with)
{
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t index = strips.first * kernel->groups; index < strips.last * kernel->groups; index++) {
        cvy_norm_unit unit = cvy_norm_unit_get(kernel, index);
        cvy_gradient gradient;
        fill_gradient(kernel, &unit.strip, count, with, &gradient);
        for (cvy_walk walk = cvy_norm_unit_walk(kernel, &unit); cvy_walk_next(&walk);) {
            cvy_rows_gradient(with->x + walk.offset, with->dy + walk.offset, &walk.matrix, &gradient,
                              with->dx + walk.offset);
        }
    }
}

static cvy_status run_forward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)run;
    norm_vectors vectors = {.w = operand[1], .b = operand[2], .mean = operand[4], .variance = operand[5]};
    for (cvy_norm_strips strips = {0, 0}; cvy_norm_next_strips(kernel, 1, &strips);) {
        cvy_norm_measure(kernel, operand[0], scratch, strips, operand[4], operand[5]);
        normalise(kernel, operand[0], strips, &vectors, operand[3]);
    }
    return CVY_OK;
}

/* INFERENCE and NORMALISE: the same operands, whether the statistics are running ones or the batch's. */
static cvy_status run_normalise(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    norm_vectors vectors = {.w = operand[1], .b = operand[2], .mean = operand[3], .variance = operand[4]};
    normalise(kernel, operand[0], cvy_norm_all_strips(kernel), &vectors, operand[5]);
    return CVY_OK;
}

static cvy_status run_stats(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)run;
    cvy_norm_measure(kernel, operand[0], scratch, cvy_norm_all_strips(kernel), operand[1], operand[2]);
    return CVY_OK;
}

static cvy_status run_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)run;
    cvy_norm_gradients with = {.x = operand[0], .dy = operand[1], .w = operand[2], .mean = operand[3],
                               .variance = operand[4], .dx = operand[5], .dw = operand[6], .db = operand[7],
                               .b = kernel->base.op.relu ? operand[8] : NULL};
    double count = (double)(kernel->columns.samples * kernel->columns.area);
    for (cvy_norm_strips strips = {0, 0}; cvy_norm_next_strips(kernel, 2, &strips);) {
        cvy_norm_sum_gradients(kernel, scratch, strips, &with);
        apply_gradients(kernel, strips, count, &with);
    }
    return CVY_OK;
}

static cvy_status run_grad_stats(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch,
                                 const cvy_run *run)
{
    (void)run;
    bool relu = kernel->base.op.relu;
    cvy_norm_gradients with = {.x = operand[0], .dy = operand[1], .mean = operand[2], .variance = operand[3],
                               .dw = operand[4], .db = operand[5], .w = relu ? operand[6] : NULL,
                               .b = relu ? operand[7] : NULL};
    cvy_norm_sum_gradients(kernel, scratch, cvy_norm_all_strips(kernel), &with);
    return CVY_OK;
}

static cvy_status run_grad_apply(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch,
                                 const cvy_run *run)
{
    (void)scratch;
    if (run->samples == 0) {
        const cvy_operand *dx = cvy_op_find(&kernel->base.op, CVY_ROLE_DX);
        memset(operand[7], 0, (size_t)cvy_tensor_bytes(&dx->tensor));
        return CVY_OK;
    }
    cvy_norm_gradients with = {.x = operand[0], .dy = operand[1], .w = operand[2], .mean = operand[3],
                               .variance = operand[4], .dw = operand[5], .db = operand[6], .dx = operand[7],
                               .b = kernel->base.op.relu ? operand[8] : NULL};
    apply_gradients(kernel, cvy_norm_all_strips(kernel), (double)kernel->base.op.params.norm.count, &with);
    return CVY_OK;
}

static cvy_status run_commit(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    const cvy_op_params_norm *norm = &kernel->base.op.params.norm;
    const float *mean = operand[0], *variance = operand[1];
    float *running_mean = operand[2], *running_variance = operand[3];
    double momentum = norm->momentum;
    double unbiased = norm->count > 1 ? (double)norm->count / (double)(norm->count - 1) : 1;
    for (int64_t i = 0; i < kernel->elements; i++) {
        running_mean[i] = (float)((1 - momentum) * running_mean[i] + momentum * mean[i]);
        running_variance[i] = (float)((1 - momentum) * running_variance[i] + momentum * unbiased * variance[i]);
    }
    return CVY_OK;
}

static bool activations_lie_alike(const cvy_op *op)
{
    const cvy_tensor *x = &op->operand[0].tensor;
    for (int i = 1; i < op->operands; i++) {
        cvy_role role = op->operand[i].role;
        bool activation = role == CVY_ROLE_Y || role == CVY_ROLE_DY || role == CVY_ROLE_DX;
        if (activation && !cvy_tensor_same_layout(x, &op->operand[i].tensor)) {
            return false;
        }
    }
    return true;
}

static cvy_cpu_run find(const cvy_op *op)
{
    static const cvy_cpu_run runs[CVY_PASS_COUNT] = {
        [CVY_PASS_FORWARD] = run_forward,       [CVY_PASS_INFERENCE] = run_normalise,
        [CVY_PASS_BACKWARD] = run_backward,     [CVY_PASS_STATS] = run_stats,
        [CVY_PASS_NORMALISE] = run_normalise,   [CVY_PASS_GRAD_STATS] = run_grad_stats,
        [CVY_PASS_GRAD_APPLY] = run_grad_apply, [CVY_PASS_COMMIT] = run_commit,
    };
    if (op->pass == CVY_PASS_COMMIT) {
        return runs[op->pass];
    }
    return cvy_columns_fit(&op->operand[0].tensor) && activations_lie_alike(op) ? runs[op->pass] : NULL;
}

static void setup(cvy_cpu_kernel *kernel)
{
    if (kernel->base.op.pass != CVY_PASS_COMMIT) {
        cvy_norm_setup(kernel);
    }
}

const cvy_cpu_family cvy_cpu_batch_norm = {.find = find, .setup = setup};
