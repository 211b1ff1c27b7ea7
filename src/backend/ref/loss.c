/*
 * Losses. Only the first run->samples samples are valid: a batch that is not full has garbage behind them. The softmax
 * takes the largest score out before the exponential, so it neither overflows nor divides by zero, and
 * -log p[label] = log(sum exp(x - largest)) - (x[label] - largest) needs no logarithm of a rounded probability.
 */
#include <inttypes.h>

#include "backend/ref/softmax.h"

cvy_status cvy_ref_check_label(int32_t label, int64_t n, int64_t classes)
{
    CVY_REQUIRE(label >= 0 && label < classes, CVY_ERR_DATA,
                "label %" PRId32 " of sample %" PRId64 ", expected 0 to %" PRId64, label, n, classes - 1);
    return CVY_OK;
}

/*
 * The sum over classes of q (x - largest): with q = (1 - smoothing) onehot + smoothing / classes the loss of a position
 * is log(sum exp(x - largest)) less this, since q sums to 1.
 */
static double weigh_scores(const cvy_ref_tensor *x, int64_t at, int32_t label, double largest, double smoothing)
{
    double at_label = cvy_ref_score(x, at, label) - largest;
    double sum = 0.0;
    if (smoothing == 0.0) {
        return at_label; /* a score of -infinity elsewhere must not count */
    }
    for (int64_t c = 0; c < x->extent[CVY_REF_C]; c++) {
        sum += cvy_ref_score(x, at, c) - largest;
    }
    return (1.0 - smoothing) * at_label + smoothing * sum / (double)x->extent[CVY_REF_C];
}

/* Add one position to the loss and to the count; its probabilities go to @p probability, unless that is NULL. */
static void take_position(const cvy_ref_kernel *kernel, int64_t n, const int64_t position[3],
                          const cvy_ref_tensor *probability, const int32_t *label, double sums[2])
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    int64_t at = cvy_ref_scores(x, n, position);
    int64_t winner = cvy_ref_find_winner(x, at);
    double largest = cvy_ref_score(x, at, winner);
    double total = cvy_ref_sum_powers(x, at, largest);
    for (int64_t c = 0; probability && c < x->extent[CVY_REF_C]; c++) {
        int64_t to = cvy_ref_scores(probability, n, position) + probability->at[CVY_REF_C][c];
        cvy_ref_store(probability, to, exp(cvy_ref_score(x, at, c) - largest) / total);
    }
    if (label) {
        sums[0] += log(total) - weigh_scores(x, at, *label, largest, kernel->base.op.params.loss.smoothing);
        sums[1] += winner == *label;
    }
}

/* Positions of a whole sample. */
static double divide_by(const cvy_ref_kernel *kernel, const cvy_ref_tensor *x)
{
    int64_t said = kernel->base.op.params.loss.positions;
    return (double)(said ? said : cvy_ref_count_positions(x));
}

cvy_status cvy_ref_cross_entropy_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *probability = cvy_ref_find(kernel, CVY_ROLE_PROBABILITY); /* NULL in inference */
    const int32_t *label = cvy_ref_find(kernel, CVY_ROLE_LABEL)->data;
    double *loss = cvy_ref_find(kernel, CVY_ROLE_LOSS)->data;
    double positions = divide_by(kernel, x);
    double sum = 0.0, correct = 0.0;
    for (int64_t n = 0; n < x->extent[CVY_REF_N]; n++) {
        bool valid = n < run->samples;
        int64_t position[3] = {0, 0, 0};
        double sums[2] = {0.0, 0.0};
        do {
            CVY_TRY(valid ? cvy_ref_check_label(*label, n, x->extent[CVY_REF_C]) : CVY_OK);
            take_position(kernel, n, position, probability, valid ? label : NULL, sums);
            label++;
        } while (cvy_ref_next(position, &x->extent[CVY_REF_D]));
        sum += sums[0] / positions;
        correct += sums[1];
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
    double scale = run->loss_scale / divide_by(kernel, dx);
    for (int64_t n = 0; n < dx->extent[CVY_REF_N]; n++) {
        int64_t position[3] = {0, 0, 0};
        do {
            int64_t to = cvy_ref_scores(dx, n, position);
            for (int64_t c = 0; c < dx->extent[CVY_REF_C]; c++) {
                double p = cvy_ref_score(probability, cvy_ref_scores(probability, n, position), c);
                double q = (c == *label ? 1.0 - smoothing : 0.0) + smoothing / (double)dx->extent[CVY_REF_C];
                cvy_ref_store(dx, to + dx->at[CVY_REF_C][c], n < run->samples ? scale * (p - q) : 0.0);
            }
            label++;
        } while (cvy_ref_next(position, &dx->extent[CVY_REF_D]));
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
