/*
 * Soft Dice, as Milletari et al. ("V-Net", 2016) have it without squares, over the softmax of the scores: a sample's
 * loss is 1 less the mean over classes of (a + epsilon) / (b + epsilon), a = 2 sum p q, b = sum p + sum q.
 *
 * The gradient: d/dp of -(a + e) / (b + e) is ((a + e) / (b + e) - 2 q) / (b + e), and a softmax takes r to
 * p (r - sum p r).
 */
#include "backend/ref/softmax.h"

/* The two sums of class @p c over the positions of sample n; probabilities go to @p probability, unless it is NULL. */
static void sum_class(const cvy_ref_kernel *kernel, int64_t n, int64_t c, const cvy_ref_tensor *probability,
                      double sums[2])
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const int32_t *label = cvy_ref_find(kernel, CVY_ROLE_LABEL)->data;
    int64_t position[3] = {0, 0, 0};
    label += n * cvy_ref_count_positions(x);
    sums[0] = sums[1] = 0.0;
    do {
        int64_t at = cvy_ref_scores(x, n, position);
        double largest = cvy_ref_score(x, at, cvy_ref_find_winner(x, at));
        double p = exp(cvy_ref_score(x, at, c) - largest) / cvy_ref_sum_powers(x, at, largest);
        double q = *label++ == c;
        sums[0] += 2.0 * p * q;
        sums[1] += p + q;
        if (probability) {
            cvy_ref_store(probability, cvy_ref_scores(probability, n, position) + probability->at[CVY_REF_C][c], p);
        }
    } while (cvy_ref_next(position, &x->extent[CVY_REF_D]));
}

/* Check the labels of sample n, and count those that have the largest score. */
static cvy_status count_correct(const cvy_ref_kernel *kernel, int64_t n, double *correct)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const int32_t *label = cvy_ref_find(kernel, CVY_ROLE_LABEL)->data;
    int64_t position[3] = {0, 0, 0};
    label += n * cvy_ref_count_positions(x);
    do {
        CVY_TRY(cvy_ref_check_label(*label, n, x->extent[CVY_REF_C]));
        *correct += cvy_ref_find_winner(x, cvy_ref_scores(x, n, position)) == *label++;
    } while (cvy_ref_next(position, &x->extent[CVY_REF_D]));
    return CVY_OK;
}

cvy_status cvy_ref_dice_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *probability = cvy_ref_find(kernel, CVY_ROLE_PROBABILITY); /* NULL in inference */
    const cvy_ref_tensor *overlap = cvy_ref_find(kernel, CVY_ROLE_OVERLAP);         /* as well */
    double *loss = cvy_ref_find(kernel, CVY_ROLE_LOSS)->data;
    double epsilon = kernel->base.op.params.loss.epsilon;
    int64_t classes = x->extent[CVY_REF_C];
    double sum = 0.0, correct = 0.0;
    for (int64_t n = 0; n < x->extent[CVY_REF_N]; n++) {
        CVY_TRY(n < run->samples ? count_correct(kernel, n, &correct) : CVY_OK);
        for (int64_t c = 0; c < classes; c++) {
            double sums[2];
            sum_class(kernel, n, c, probability, sums);
            if (overlap) {
                double *to = overlap->data;
                to[2 * (n * classes + c)] = sums[0];
                to[2 * (n * classes + c) + 1] = sums[1];
            }
            sum += n < run->samples ? (1.0 - (sums[0] + epsilon) / (sums[1] + epsilon)) / (double)classes : 0.0;
        }
    }
    loss[0] = run->loss_scale * sum;
    loss[1] = correct;
    return CVY_OK;
}

/* r of class @p c: the gradient of a sample's loss with respect to p, where q is the label's. */
static double find_slope(const double *overlap, int64_t classes, int64_t c, double q, double epsilon)
{
    double a = overlap[2 * c] + epsilon, b = overlap[2 * c + 1] + epsilon;
    return (a / b - 2.0 * q) / (b * (double)classes);
}

/* dx of one position. */
static void spread_slopes(const cvy_ref_kernel *kernel, int64_t n, const int64_t position[3], int32_t label,
                          const cvy_run *run)
{
    const cvy_ref_tensor *probability = cvy_ref_find(kernel, CVY_ROLE_PROBABILITY);
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    int64_t classes = dx->extent[CVY_REF_C], at = cvy_ref_scores(probability, n, position);
    const double *overlap = (const double *)cvy_ref_find(kernel, CVY_ROLE_OVERLAP)->data + 2 * n * classes;
    double epsilon = kernel->base.op.params.loss.epsilon, mean = 0.0;
    for (int64_t c = 0; c < classes; c++) {
        mean += cvy_ref_score(probability, at, c) * find_slope(overlap, classes, c, c == label, epsilon);
    }
    for (int64_t c = 0; c < classes; c++) {
        double slope = find_slope(overlap, classes, c, c == label, epsilon);
        double gradient = run->loss_scale * cvy_ref_score(probability, at, c) * (slope - mean);
        cvy_ref_store(dx, cvy_ref_scores(dx, n, position) + dx->at[CVY_REF_C][c], n < run->samples ? gradient : 0.0);
    }
}

cvy_status cvy_ref_dice_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    const int32_t *label = cvy_ref_find(kernel, CVY_ROLE_LABEL)->data;
    for (int64_t n = 0; n < dx->extent[CVY_REF_N]; n++) {
        int64_t position[3] = {0, 0, 0};
        do {
            spread_slopes(kernel, n, position, *label++, run);
        } while (cvy_ref_next(position, &dx->extent[CVY_REF_D]));
    }
    return CVY_OK;
}
