/*
 * Losses. Only the first run->samples samples are valid: a batch that is not full has garbage behind them. The softmax
 * takes the largest score out before the exponential, so it neither overflows nor divides by zero, and
 * -log p[label] = log(sum exp(x - largest)) - (x[label] - largest) needs no logarithm of a rounded probability.
 */
#include "backend/ref/ref.h"

#include <inttypes.h>
#include <math.h>

/* The class of the largest score, the first of equals. */
static int64_t find_largest(const cvy_ref_tensor *x, int64_t n)
{
    int64_t largest = 0;
    for (int64_t c = 1; c < x->extent[CVY_REF_C]; c++) {
        if (cvy_ref_load(x, cvy_ref_plane(x, n, c)) > cvy_ref_load(x, cvy_ref_plane(x, n, largest))) {
            largest = c;
        }
    }
    return largest;
}

static double sum_exponentials(const cvy_ref_tensor *x, int64_t n, double largest)
{
    double sum = 0.0;
    for (int64_t c = 0; c < x->extent[CVY_REF_C]; c++) {
        sum += exp(cvy_ref_load(x, cvy_ref_plane(x, n, c)) - largest);
    }
    return sum;
}

/*
 * The sum over classes of q (x - largest): with q = (1 - smoothing) onehot + smoothing / classes the loss of a sample
 * is log(sum exp(x - largest)) less this, since q sums to 1.
 */
static double weigh_scores(const cvy_ref_tensor *x, int64_t n, int32_t label, double largest, double smoothing)
{
    double at_label = cvy_ref_load(x, cvy_ref_plane(x, n, label)) - largest;
    double sum = 0.0;
    if (smoothing == 0.0) {
        return at_label; /* a score of -infinity elsewhere must not count */
    }
    for (int64_t c = 0; c < x->extent[CVY_REF_C]; c++) {
        sum += cvy_ref_load(x, cvy_ref_plane(x, n, c)) - largest;
    }
    return (1.0 - smoothing) * at_label + smoothing * sum / (double)x->extent[CVY_REF_C];
}

cvy_status cvy_ref_cross_entropy_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *probability = cvy_ref_find(kernel, CVY_ROLE_PROBABILITY); /* NULL in inference */
    const int32_t *label = cvy_ref_find(kernel, CVY_ROLE_LABEL)->data;
    double *loss = cvy_ref_find(kernel, CVY_ROLE_LOSS)->data;
    int64_t classes = x->extent[CVY_REF_C];
    double sum = 0.0;
    double correct = 0.0;
    for (int64_t n = 0; n < x->extent[CVY_REF_N]; n++) {
        int64_t winner = find_largest(x, n);
        double largest = cvy_ref_load(x, cvy_ref_plane(x, n, winner));
        double total = sum_exponentials(x, n, largest);
        for (int64_t c = 0; probability && c < classes; c++) {
            double score = cvy_ref_load(x, cvy_ref_plane(x, n, c));
            cvy_ref_store(probability, cvy_ref_plane(probability, n, c), exp(score - largest) / total);
        }
        if (n < run->samples) {
            CVY_REQUIRE(label[n] >= 0 && label[n] < classes, CVY_ERR_DATA,
                        "label %" PRId32 " of sample %" PRId64 ", expected 0 to %" PRId64, label[n], n, classes - 1);
            sum += log(total) - weigh_scores(x, n, label[n], largest, kernel->base.op.params.loss.smoothing);
            correct += winner == label[n];
        }
    }
    loss[0] = run->loss_scale * sum;
    loss[1] = correct;
    return CVY_OK;
}

cvy_status cvy_ref_cross_entropy_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *probability = cvy_ref_find(kernel, CVY_ROLE_PROBABILITY);
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    const int32_t *label = cvy_ref_find(kernel, CVY_ROLE_LABEL)->data;
    double smoothing = kernel->base.op.params.loss.smoothing;
    for (int64_t n = 0; n < dx->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < dx->extent[CVY_REF_C]; c++) {
            double p = cvy_ref_load(probability, cvy_ref_plane(probability, n, c));
            double q = (c == label[n] ? 1.0 - smoothing : 0.0) + smoothing / (double)dx->extent[CVY_REF_C];
            double gradient = run->loss_scale * (p - q);
            cvy_ref_store(dx, cvy_ref_plane(dx, n, c), n < run->samples ? gradient : 0.0);
        }
    }
    return CVY_OK;
}

cvy_status cvy_ref_squared_error_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *label = cvy_ref_find(kernel, CVY_ROLE_LABEL);
    double *loss = cvy_ref_find(kernel, CVY_ROLE_LOSS)->data;
    int64_t values = x->extent[CVY_REF_C];
    double sum = 0.0;
    for (int64_t n = 0; n < x->extent[CVY_REF_N] && n < run->samples; n++) {
        for (int64_t c = 0; c < values; c++) {
            double difference =
                cvy_ref_load(x, cvy_ref_plane(x, n, c)) - cvy_ref_load(label, cvy_ref_plane(label, n, c));
            sum += difference * difference / (double)values;
        }
    }
    loss[0] = run->loss_scale * sum;
    loss[1] = 0.0;
    return CVY_OK;
}

cvy_status cvy_ref_squared_error_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *label = cvy_ref_find(kernel, CVY_ROLE_LABEL);
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    int64_t values = x->extent[CVY_REF_C];
    for (int64_t n = 0; n < x->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < values; c++) {
            double difference =
                cvy_ref_load(x, cvy_ref_plane(x, n, c)) - cvy_ref_load(label, cvy_ref_plane(label, n, c));
            double gradient = run->loss_scale * 2.0 * difference / (double)values;
            cvy_ref_store(dx, cvy_ref_plane(dx, n, c), n < run->samples ? gradient : 0.0);
        }
    }
    return CVY_OK;
}
