/*
 * Weight updates, over memory as it lies, padding too (zero stays zero: no update of 0 by a gradient of 0 moves it). A
 * gradient that is not finite is found before anything is touched, so that weights and moments survive it.
 *
 * SGD as Sutskever et al. 2013 in PyTorch's form; Adam is Kingma and Ba 2015, algorithm 1, with its
 * decay part of the gradient, AdamW is Loshchilov and Hutter 2019, algorithm 2.
 */
#include "backend/ref/ref.h"

#include <math.h>

cvy_status cvy_ref_open_gradient(const cvy_ref_kernel *kernel, cvy_ref_gradient *gradient_out)
{
    const cvy_ref_tensor *dw = cvy_ref_find(kernel, CVY_ROLE_DW);
    const cvy_ref_tensor *scale = cvy_ref_find(kernel, CVY_ROLE_SCALE);
    double limit = kernel->base.op.params.optimizer.clip_value;
    for (int64_t i = 0; i < dw->elements; i++) {
        CVY_REQUIRE(isfinite(cvy_ref_load(dw, i)), CVY_ERR_DIVERGED, "a gradient is not finite");
    }
    *gradient_out = (cvy_ref_gradient){dw, scale ? cvy_ref_load(scale, 0) : 1.0, limit > 0.0 ? limit : INFINITY};
    return CVY_OK;
}

double cvy_ref_load_gradient(const cvy_ref_gradient *gradient, int64_t i)
{
    return fmin(fmax(gradient->scale * cvy_ref_load(gradient->dw, i), -gradient->limit), gradient->limit);
}

cvy_status cvy_ref_sgd(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_op_params_optimizer *params = &kernel->base.op.params.optimizer;
    const cvy_ref_tensor *weight = cvy_ref_find(kernel, CVY_ROLE_W);
    const cvy_ref_tensor *momentum = cvy_ref_find(kernel, CVY_ROLE_MOMENTUM);
    cvy_ref_gradient dw;
    CVY_TRY(cvy_ref_open_gradient(kernel, &dw));
    for (int64_t i = 0; i < weight->elements; i++) {
        double w = cvy_ref_load(weight, i);
        double g = cvy_ref_load_gradient(&dw, i) + params->weight_decay * w;
        double direction = g;
        if (momentum) {
            double v = params->momentum * cvy_ref_load(momentum, i) + g;
            cvy_ref_store(momentum, i, v);
            direction = params->nesterov ? g + params->momentum * v : v;
        }
        cvy_ref_store(weight, i, w - run->learning_rate * direction);
    }
    return CVY_OK;
}

cvy_status cvy_ref_adam(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_op_params_optimizer *params = &kernel->base.op.params.optimizer;
    const cvy_ref_tensor *weight = cvy_ref_find(kernel, CVY_ROLE_W);
    const cvy_ref_tensor *first = cvy_ref_find(kernel, CVY_ROLE_MOMENTUM);
    const cvy_ref_tensor *second = cvy_ref_find(kernel, CVY_ROLE_MOMENT2);
    double unbias1 = 1.0 - pow(params->beta1, (double)run->update);
    double unbias2 = 1.0 - pow(params->beta2, (double)run->update);
    bool decoupled = kernel->base.op.kind == CVY_OP_ADAMW;
    cvy_ref_gradient dw;
    CVY_TRY(cvy_ref_open_gradient(kernel, &dw));
    for (int64_t i = 0; i < weight->elements; i++) {
        double old = cvy_ref_load(weight, i);
        double decay = params->weight_decay * old;
        double g = cvy_ref_load_gradient(&dw, i) + (decoupled ? 0.0 : decay);
        double w = decoupled ? old - run->learning_rate * decay : old;
        double m = params->beta1 * cvy_ref_load(first, i) + (1.0 - params->beta1) * g;
        double s = params->beta2 * cvy_ref_load(second, i) + (1.0 - params->beta2) * g * g;
        cvy_ref_store(first, i, m);
        cvy_ref_store(second, i, s);
        cvy_ref_store(weight, i, w - run->learning_rate * (m / unbias1) / (sqrt(s / unbias2) + params->epsilon));
    }
    return CVY_OK;
}
