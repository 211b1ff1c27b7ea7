/*
 * The rules that update weights, one row each: which op makes the step and how much state a parameter has. Steps and
 * buffers follow from the row, so a rule is a row here and an op with its kernels.
 */
#include "plan/plan.h"

static const cvy_optimizer_rule rules[CVY_OPTIMIZER_COUNT] = {
    [CVY_OPTIMIZER_SGD] = {.op = CVY_OP_SGD, .moments = 1, .stateless_without_momentum = true},
    [CVY_OPTIMIZER_ADAMW] = {.op = CVY_OP_ADAMW, .moments = 2},
    [CVY_OPTIMIZER_ADAM] = {.op = CVY_OP_ADAM, .moments = 2},
    [CVY_OPTIMIZER_LARS] = {.op = CVY_OP_LARS, .moments = 1, .adapts = true},
    [CVY_OPTIMIZER_LAMB] = {.op = CVY_OP_LAMB, .moments = 2, .adapts = true, .directs = true,
                            .direction = CVY_OP_LAMB_DIRECTION},
};

const cvy_optimizer_rule *cvy_optimizer_get_rule(cvy_optimizer_kind kind) { return &rules[kind]; }

int cvy_optimizer_moments(const cvy_optimizer *optimizer)
{
    const cvy_optimizer_rule *rule = &rules[optimizer->kind];
    return rule->stateless_without_momentum && optimizer->params.momentum == 0.0 ? 0 : rule->moments;
}

/* Scales and offsets have one dimension, whatever layer they belong to: the rule that timm goes by. */
static bool is_norm_or_bias(int dims) { return dims <= 1; }

bool cvy_optimizer_adapts(const cvy_optimizer *optimizer, int dims)
{
    return rules[optimizer->kind].adapts && !is_norm_or_bias(dims);
}

bool cvy_optimizer_is_local(const cvy_optimizer *optimizer)
{
    return optimizer->clip_norm <= 0.0 && !rules[optimizer->kind].adapts;
}

cvy_op_params_optimizer cvy_optimizer_params(const cvy_optimizer *optimizer, int dims)
{
    cvy_op_params_optimizer params = optimizer->params;
    if (optimizer->no_decay_norms && is_norm_or_bias(dims)) {
        params.weight_decay = 0.0;
    }
    return params;
}
