/*
 * Losses of one label a sample, or of values, a sample at a time: each thread takes whole samples, what a sample adds
 * to the loss is kept in scratch memory and summed in the order of samples, in double, so any number of threads gives
 * the same bits.
 *
 * Softmax takes off the largest input before the exponential, so it neither overflows nor divides by zero; NaN in the
 * input comes out as NaN in the loss.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* What one sample adds. A label that is no class is told by `correct`. */
typedef struct sample_loss {
    double loss;
    double correct;
} sample_loss;

enum { NO_SUCH_CLASS = -1 };

static int64_t count_values(const cvy_cpu_kernel *kernel)
{
    return kernel->elements / kernel->base.op.operand[0].tensor.shape.extent[0];
}

static int64_t count_samples(const cvy_cpu_kernel *kernel) { return kernel->base.op.operand[0].tensor.shape.extent[0]; }

/* Sum the valid samples; samples after them count nothing. */
static cvy_status sum_losses(const cvy_cpu_kernel *kernel, const sample_loss *losses, const int32_t *label,
                             const cvy_run *run, double *loss_out)
{
    double loss = 0, correct = 0;
    for (int64_t i = 0; i < cvy_min_i64(count_samples(kernel), run->samples); i++) {
        CVY_REQUIRE(losses[i].correct != NO_SUCH_CLASS, CVY_ERR_DATA,
                    "label %" PRId32 " of sample %" PRId64 " is not within 0 to %" PRId64, label[i], i,
                    count_values(kernel) - 1);
        loss += losses[i].loss;
        correct += losses[i].correct;
    }
    loss_out[0] = run->loss_scale * loss;
    loss_out[1] = correct;
    return CVY_OK;
}

static int64_t find_largest(const float *x, int64_t classes)
{
    int64_t largest = 0;
    for (int64_t i = 1; i < classes; i++) {
        if (x[i] > x[largest]) {
            largest = i;
        }
    }
    return largest;
}

/* The sum over classes of q (x - largest), q = (1 - smoothing) onehot + smoothing / classes. */
static double weigh_scores(const float *x, int64_t classes, int32_t label, float largest, double smoothing)
{
    double at_label = (double)x[label] - largest, sum = 0;
    if (smoothing == 0) {
        return at_label; /* a score of -infinity elsewhere must not count */
    }
    for (int64_t i = 0; i < classes; i++) {
        sum += (double)x[i] - largest;
    }
    return (1 - smoothing) * at_label + smoothing * sum / (double)classes;
}

/* - sum of q log p = log(sum of exp(x - largest)) - sum of q (x - largest); p may be NULL. */
static sample_loss softmax_sample(const float *x, int64_t classes, int32_t label, double smoothing, float *p)
{
    int64_t largest = find_largest(x, classes);
    double sum = 0;
    for (int64_t i = 0; i < classes; i++) {
        float power = expf(x[i] - x[largest]);
        sum += power;
        if (p) {
            p[i] = power;
        }
    }
    for (int64_t i = 0; p && i < classes; i++) {
        p[i] = (float)(p[i] / sum);
    }
    if (label < 0 || label >= classes) {
        return (sample_loss){0, NO_SUCH_CLASS};
    }
    return (sample_loss){log(sum) - weigh_scores(x, classes, label, x[largest], smoothing), largest == label};
}

static cvy_status run_softmax(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const float *x = operand[0];
    const int32_t *label = operand[1];
    bool forward = kernel->base.op.pass == CVY_PASS_FORWARD;
    double smoothing = kernel->base.op.params.loss.smoothing;
    float *p = forward ? operand[2] : NULL;
    sample_loss *losses = scratch;
    int64_t classes = count_values(kernel);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS / 8)
    for (int64_t i = 0; i < count_samples(kernel); i++) {
        losses[i] = softmax_sample(x + i * classes, classes, label[i], smoothing, p ? p + i * classes : NULL);
    }
    return sum_losses(kernel, losses, label, run, operand[forward ? 3 : 2]);
}

/* dx of all classes but the label's: factor (p - q). */
CVY_VECTOR static void softmax_backward_range(const float *p, float q, float factor, float *dx, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = factor * (p[i] - q);
    }
}

static cvy_status run_softmax_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch,
                                       const cvy_run *run)
{
    (void)scratch;
    const float *p = operand[0];
    const int32_t *label = operand[1];
    float *dx = operand[2];
    int64_t classes = count_values(kernel);
    double smoothing = kernel->base.op.params.loss.smoothing, spread = smoothing / (double)classes;
    for (int64_t i = 0; i < count_samples(kernel); i++) {
        if (i >= run->samples) {
            memset(dx + i * classes, 0, (size_t)classes * sizeof *dx);
            continue;
        }
        CVY_REQUIRE(label[i] >= 0 && label[i] < classes, CVY_ERR_DATA,
                    "label %" PRId32 " of sample %" PRId64 " is not within 0 to %" PRId64, label[i], i, classes - 1);
        softmax_backward_range(p + i * classes, (float)spread, (float)run->loss_scale, dx + i * classes, classes);
        double at_label = (double)p[i * classes + label[i]] - (1 - smoothing + spread);
        dx[i * classes + label[i]] = (float)(run->loss_scale * at_label);
    }
    return CVY_OK;
}

static cvy_status run_squares(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const float *x = operand[0], *target = operand[1];
    sample_loss *losses = scratch;
    int64_t values = count_values(kernel);
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < count_samples(kernel); i++) {
        double sum = 0;
        for (int64_t j = i * values; j < (i + 1) * values; j++) {
            double difference = (double)x[j] - target[j];
            sum += difference * difference;
        }
        losses[i] = (sample_loss){sum / (double)values, 0};
    }
    return sum_losses(kernel, losses, NULL, run, operand[2]);
}

CVY_VECTOR static void difference_range(const float *x, const float *target, float factor, float *dx, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        dx[i] = factor * (x[i] - target[i]);
    }
}

static cvy_status run_squares_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch,
                                       const cvy_run *run)
{
    (void)scratch;
    const float *x = operand[0], *target = operand[1];
    float *dx = operand[2];
    int64_t values = count_values(kernel), valid = cvy_min_i64(run->samples, count_samples(kernel)) * values;
    difference_range(x, target, (float)(2 * run->loss_scale / (double)values), dx, valid);
    memset(dx + valid, 0, (size_t)(kernel->elements - valid) * sizeof *dx);
    return CVY_OK;
}

static bool is_dense(const cvy_tensor *tensor)
{
    return cvy_tensor_elements(tensor) == cvy_shape_elements(&tensor->shape);
}

static bool is_map(const cvy_op *op) { return op->operand[0].tensor.shape.dims > 2; }

/* The n,c tensors of a loss lie row by row, without padding. */
static cvy_cpu_run find(const cvy_op *op)
{
    bool softmax = op->kind == CVY_OP_SOFTMAX_CROSS_ENTROPY;
    if (is_map(op)) {
        return cvy_cpu_loss_map.find(op);
    }
    for (int i = 0; i < op->operands; i++) {
        const cvy_tensor *tensor = &op->operand[i].tensor;
        if (!is_dense(tensor)) {
            return NULL;
        }
    }
    if (op->operand[1].tensor.dtype != (softmax ? CVY_I32 : CVY_F32)) {
        return NULL;
    }
    if (op->pass == CVY_PASS_BACKWARD_DATA) {
        return softmax ? run_softmax_backward : run_squares_backward;
    }
    return softmax ? run_softmax : run_squares;
}

static void setup(cvy_cpu_kernel *kernel)
{
    if (is_map(&kernel->base.op)) {
        cvy_cpu_loss_map.setup(kernel);
        return;
    }
    kernel->scratch_bytes = (size_t)count_samples(kernel) * sizeof(sample_loss);
}

const cvy_cpu_family cvy_cpu_loss = {.find = find, .setup = setup};
