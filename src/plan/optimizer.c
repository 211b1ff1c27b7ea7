/*
 * The rules that update weights, one row each: which op makes the step and how much state a parameter has. Steps and
 * buffers follow from the row, so a rule is a row here and an op with its kernels.
 */
#include <string.h>

#include "plan/plan.h"

static const cvy_optimizer_rule rules[CVY_OPTIMIZER_COUNT] = {
    [CVY_OPTIMIZER_SGD] = {.op = CVY_OP_SGD, .moments = 1, .stateless_without_momentum = true},
    [CVY_OPTIMIZER_ADAMW] = {.op = CVY_OP_ADAMW, .moments = 2},
    [CVY_OPTIMIZER_ADAM] = {.op = CVY_OP_ADAM, .moments = 2},
    [CVY_OPTIMIZER_LARS] = {.op = CVY_OP_LARS, .moments = 1, .adapts = true},
    [CVY_OPTIMIZER_LAMB] = {.op = CVY_OP_LAMB, .moments = 2, .adapts = true, .directs = true,
                            .direction = CVY_OP_LAMB_DIRECTION},
};

/* What a name stands for, in the order of the list of names. */
static const struct {
    cvy_optimizer_kind kind;
    bool momentum, nesterov;
} named[] = {
    {CVY_OPTIMIZER_SGD, false, false},   {CVY_OPTIMIZER_SGD, true, false},  {CVY_OPTIMIZER_SGD, true, true},
    {CVY_OPTIMIZER_ADAMW, false, false}, {CVY_OPTIMIZER_ADAM, false, false}, {CVY_OPTIMIZER_LARS, true, false},
    {CVY_OPTIMIZER_LAMB, false, false},
};
const char *const cvy_optimizer_names[] = {"sgd", "momentum", "nesterov", "adamw", "adam", "lars", "lamb", NULL};

bool cvy_optimizer_find(const char *name, double momentum, cvy_optimizer *optimizer_out)
{
    int i = 0;
    while (cvy_optimizer_names[i] && strcmp(cvy_optimizer_names[i], name) != 0) {
        i++;
    }
    if (cvy_optimizer_names[i]) {
        *optimizer_out = (cvy_optimizer){.kind = named[i].kind,
                                         .params = {.momentum = named[i].momentum ? momentum : 0.0,
                                                    .nesterov = named[i].nesterov}};
    }
    return cvy_optimizer_names[i] != NULL;
}

const char *cvy_optimizer_find_name(const cvy_optimizer *optimizer)
{
    int found = 0;
    for (int i = 0; cvy_optimizer_names[i]; i++) {
        bool fits = named[i].kind == optimizer->kind && named[i].nesterov == optimizer->params.nesterov &&
                    (named[i].momentum == (optimizer->params.momentum != 0.0) || optimizer->kind == CVY_OPTIMIZER_LARS);
        found = fits ? i : found;
    }
    return cvy_optimizer_names[found];
}

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
