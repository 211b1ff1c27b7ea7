/* A hash of an op: each field that the kind has, one by one, so that unused members of the union do not count. */
#include "op/op.h"

#include "base/hash.h"

static uint64_t mix_window(uint64_t hash, const cvy_op_params_window *params)
{
    const cvy_window *window = &params->window;
    for (int axis = 0; axis < 3; axis++) {
        hash = cvy_hash_word(hash, (uint64_t)window->kernel[axis]);
        hash = cvy_hash_word(hash, (uint64_t)window->stride[axis]);
        hash = cvy_hash_word(hash, (uint64_t)window->dilation[axis]);
        hash = cvy_hash_word(hash, (uint64_t)window->before[axis]);
        hash = cvy_hash_word(hash, (uint64_t)window->after[axis]);
    }
    hash = cvy_hash_word(hash, (uint64_t)params->groups);
    hash = cvy_hash_word(hash, params->count_padding);
    return params->winograd ? cvy_hash_word(hash, params->winograd) : hash; /* others keep the hashes that they had */
}

static uint64_t mix_optimizer(uint64_t hash, const cvy_op_params_optimizer *params)
{
    hash = cvy_hash_real(hash, params->momentum);
    hash = cvy_hash_word(hash, params->nesterov);
    hash = cvy_hash_real(hash, params->beta1);
    hash = cvy_hash_real(hash, params->beta2);
    hash = cvy_hash_real(hash, params->epsilon);
    hash = cvy_hash_real(hash, params->weight_decay);
    hash = cvy_hash_real(hash, params->clip_value);
    hash = cvy_hash_real(hash, params->trust);
    hash = cvy_hash_word(hash, (uint64_t)params->slot);
    return cvy_hash_word(hash, (uint64_t)params->slots);
}

static uint64_t mix_squares(uint64_t hash, const cvy_op_params_squares *params)
{
    hash = cvy_hash_word(hash, (uint64_t)params->slot);
    hash = cvy_hash_word(hash, (uint64_t)params->slots);
    return cvy_hash_real(hash, params->clip_norm);
}

static uint64_t mix_response(uint64_t hash, const cvy_op_params_response *params)
{
    hash = cvy_hash_word(hash, (uint64_t)params->size);
    hash = cvy_hash_real(hash, params->alpha);
    hash = cvy_hash_real(hash, params->beta);
    return cvy_hash_real(hash, params->k);
}

/* Ops of whole space keep the hashes that they had. */
static uint64_t mix_positions(uint64_t hash, int64_t positions)
{
    return positions ? cvy_hash_word(hash, (uint64_t)positions) : hash;
}

static uint64_t mix_intervals(uint64_t hash, const cvy_intervals *intervals)
{
    for (int i = 0; i < intervals->count; i++) {
        hash = cvy_hash_word(hash, (uint64_t)intervals->at[i].begin);
        hash = cvy_hash_word(hash, (uint64_t)intervals->at[i].end);
    }
    return hash;
}

/* Of whole samples it has the hash that it had. */
static uint64_t mix_dropout(uint64_t hash, const cvy_op_params_dropout *params)
{
    hash = cvy_hash_real(hash, params->probability);
    hash = cvy_hash_word(hash, (uint64_t)params->layer);
    if (params->whole[0] == 0) {
        return hash;
    }
    hash = cvy_hash_word(hash, params->stretches.count ? (uint64_t)params->stretched + 1 : 0);
    hash = mix_intervals(hash, &params->stretches);
    for (int dim = 0; dim < 4; dim++) {
        hash = cvy_hash_word(hash, (uint64_t)params->whole[dim]);
        hash = cvy_hash_word(hash, (uint64_t)params->first[dim]);
    }
    return hash;
}

static uint64_t mix_params(uint64_t hash, const cvy_op *op)
{
    switch (op->kind) {
    case CVY_OP_SQUARE_SUM:
    case CVY_OP_CLIP: return mix_squares(hash, &op->params.squares);
    case CVY_OP_CONVOLUTION:
    case CVY_OP_TRANSPOSED_CONVOLUTION:
    case CVY_OP_POOL_MAX:
    case CVY_OP_POOL_AVERAGE: return mix_window(hash, &op->params.window);
    case CVY_OP_POOL_ADAPTIVE:
        for (int axis = 0; axis < 3; axis++) {
            hash = cvy_hash_word(hash, (uint64_t)op->params.adaptive.output[axis]);
        }
        return hash;
    case CVY_OP_BATCH_NORM:
        hash = cvy_hash_real(hash, op->params.norm.epsilon);
        hash = cvy_hash_real(hash, op->params.norm.momentum);
        hash = cvy_hash_word(hash, (uint64_t)op->params.norm.count);
        return cvy_hash_word(hash, (uint64_t)op->params.norm.merged);
    case CVY_OP_LEAKY_RELU: return cvy_hash_real(hash, op->params.activation.slope);
    case CVY_OP_SOFTMAX_CROSS_ENTROPY:
        hash = cvy_hash_real(hash, op->params.loss.smoothing);
        return mix_positions(hash, op->params.loss.positions);
    case CVY_OP_POOL_GLOBAL: return mix_positions(hash, op->params.global.positions);
    case CVY_OP_PICK:
        hash = cvy_hash_word(hash, (uint64_t)op->params.pick.dim);
        return mix_intervals(hash, &op->params.pick.intervals);
    case CVY_OP_FRAME:
        for (int axis = 0; axis < 3; axis++) {
            hash = cvy_hash_word(hash, (uint64_t)op->params.frame.first[axis]);
            hash = cvy_hash_word(hash, (uint64_t)op->params.frame.output[axis]);
        }
        return hash;
    case CVY_OP_SOFT_DICE: return cvy_hash_real(hash, op->params.loss.epsilon);
    case CVY_OP_STOCHASTIC_DEPTH:
    case CVY_OP_DROPOUT: return mix_dropout(hash, &op->params.dropout);
    case CVY_OP_SLICE: return cvy_hash_word(hash, (uint64_t)op->params.slice.first);
    case CVY_OP_GROUP_NORM:
        hash = cvy_hash_real(hash, op->params.group.epsilon);
        return cvy_hash_word(hash, (uint64_t)op->params.group.groups);
    case CVY_OP_LOCAL_RESPONSE_NORM: return mix_response(hash, &op->params.response);
    case CVY_OP_AVERAGE: return cvy_hash_real(hash, op->params.average.decay);
    default: return op->pass == CVY_PASS_UPDATE ? mix_optimizer(hash, &op->params.optimizer) : hash;
    }
}

static uint64_t mix_operand(uint64_t hash, const cvy_operand *operand)
{
    const cvy_tensor *tensor = &operand->tensor;
    hash = cvy_hash_word(hash, operand->role);
    hash = cvy_hash_word(hash, operand->access);
    hash = cvy_hash_word(hash, tensor->dtype);
    hash = cvy_hash_word(hash, tensor->format);
    hash = cvy_hash_word(hash, tensor->grouped);
    hash = cvy_hash_word(hash, (uint64_t)tensor->shape.dims);
    for (int i = 0; i < tensor->shape.dims; i++) {
        hash = cvy_hash_word(hash, (uint64_t)tensor->shape.extent[i]);
    }
    return hash;
}

uint64_t cvy_op_hash(const cvy_op *op)
{
    uint64_t hash = CVY_HASH_INIT;
    hash = cvy_hash_word(hash, op->kind);
    hash = cvy_hash_word(hash, op->pass);
    hash = mix_params(hash, op);
    hash = cvy_hash_word(hash, (uint64_t)op->operands);
    for (int i = 0; i < op->operands; i++) {
        hash = mix_operand(hash, &op->operand[i]);
    }
    return op->relu ? cvy_hash_word(hash, op->relu) : hash; /* ops without keep the hashes that they had */
}
