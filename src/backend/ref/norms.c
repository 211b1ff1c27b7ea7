/*
 * Norms, and the rules that follow them. Sums run in extended precision, so they hardly depend on the order in which a
 * format has the elements; padding is zero and adds nothing.
 *
 * LARS is You, Gitman and Ginsburg, "Large batch training of convolutional networks", 2017, algorithm 1: its rate is
 * within the velocity. LAMB is You et al., "Large batch optimization for deep learning: training BERT in 76 minutes",
 * 2020, algorithm 2, with the identity for phi and both moments unbiased.
 */
#include "backend/ref/ref.h"

#include <math.h>

cvy_status cvy_ref_square_sum(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    long double sum = 0.0L;
    (void)run;
    for (int64_t i = 0; i < x->elements; i++) {
        long double value = (long double)cvy_ref_load(x, i);
        sum += value * value;
    }
    CVY_REQUIRE(isfinite((double)sum), CVY_ERR_DIVERGED, "a gradient is not finite");
    cvy_ref_store(cvy_ref_find(kernel, CVY_ROLE_SQUARES), kernel->base.op.params.squares.slot, (double)sum);
    return CVY_OK;
}

cvy_status cvy_ref_clip(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *squares = cvy_ref_find(kernel, CVY_ROLE_SQUARES);
    double sum = 0.0;
    (void)run;
    for (int64_t i = 0; i < squares->elements; i++) {
        sum += cvy_ref_load(squares, i);
    }
    CVY_REQUIRE(isfinite(sum), CVY_ERR_DIVERGED, "a gradient is not finite");
    double scale = kernel->base.op.params.squares.clip_norm / (sqrt(sum) + 1e-6);
    cvy_ref_store(cvy_ref_find(kernel, CVY_ROLE_SCALE), 0, fmin(scale, 1.0));
    return CVY_OK;
}

/* Norms of what moves a parameter and of the parameter; false where it is not adapted, or one of them is 0. */
static bool load_norms(const cvy_ref_kernel *kernel, double norm_out[2])
{
    const cvy_ref_tensor *squares = cvy_ref_find(kernel, CVY_ROLE_SQUARES);
    int64_t slot = kernel->base.op.params.optimizer.slot;
    for (int i = 0; squares && i < 2; i++) {
        norm_out[i] = sqrt(cvy_ref_load(squares, slot + i));
    }
    return squares && norm_out[0] > 0.0 && norm_out[1] > 0.0;
}

cvy_status cvy_ref_lars(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_op_params_optimizer *params = &kernel->base.op.params.optimizer;
    const cvy_ref_tensor *weight = cvy_ref_find(kernel, CVY_ROLE_W);
    const cvy_ref_tensor *velocity = cvy_ref_find(kernel, CVY_ROLE_MOMENTUM);
    cvy_ref_gradient dw;
    double norm[2];
    CVY_TRY(cvy_ref_open_gradient(kernel, &dw));
    double rate = run->learning_rate;
    if (load_norms(kernel, norm)) {
        rate *= params->trust * norm[1] / (dw.scale * norm[0] + params->weight_decay * norm[1]);
    }
    for (int64_t i = 0; i < weight->elements; i++) {
        double w = cvy_ref_load(weight, i);
        double g = cvy_ref_load_gradient(&dw, i) + params->weight_decay * w;
        double v = params->momentum * cvy_ref_load(velocity, i) + rate * g;
        cvy_ref_store(velocity, i, v);
        cvy_ref_store(weight, i, w - v);
    }
    return CVY_OK;
}

cvy_status cvy_ref_lamb_direction(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_op_params_optimizer *params = &kernel->base.op.params.optimizer;
    const cvy_ref_tensor *weight = cvy_ref_find(kernel, CVY_ROLE_W);
    const cvy_ref_tensor *first = cvy_ref_find(kernel, CVY_ROLE_MOMENTUM);
    const cvy_ref_tensor *second = cvy_ref_find(kernel, CVY_ROLE_MOMENT2);
    double unbias1 = 1.0 - pow(params->beta1, (double)run->update);
    double unbias2 = 1.0 - pow(params->beta2, (double)run->update);
    cvy_ref_gradient dw;
    CVY_TRY(cvy_ref_open_gradient(kernel, &dw));
    for (int64_t i = 0; i < weight->elements; i++) {
        double g = cvy_ref_load_gradient(&dw, i);
        double m = params->beta1 * cvy_ref_load(first, i) + (1.0 - params->beta1) * g;
        double s = params->beta2 * cvy_ref_load(second, i) + (1.0 - params->beta2) * g * g;
        double direction = (m / unbias1) / (sqrt(s / unbias2) + params->epsilon);
        cvy_ref_store(first, i, m);
        cvy_ref_store(second, i, s);
        cvy_ref_store(dw.dw, i, direction + params->weight_decay * cvy_ref_load(weight, i));
    }
    return CVY_OK;
}

cvy_status cvy_ref_lamb(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *weight = cvy_ref_find(kernel, CVY_ROLE_W);
    cvy_ref_gradient direction;
    double norm[2];
    CVY_TRY(cvy_ref_open_gradient(kernel, &direction));
    double rate = load_norms(kernel, norm) ? run->learning_rate * norm[1] / norm[0] : run->learning_rate;
    for (int64_t i = 0; i < weight->elements; i++) {
        cvy_ref_store(weight, i, cvy_ref_load(weight, i) - rate * cvy_ref_load(direction.dw, i));
    }
    return CVY_OK;
}
