/*
 * A hash of an op: each field that the kind has, as 64-bit words, byte by byte from the lowest, through the 64-bit
 * FNV-1a of Fowler, Noll and Vo. Never the bytes of a struct, so neither padding, nor byte order, nor unused members of
 * the union count.
 */
#include "op/op.h"

#include <string.h>

static uint64_t mix_word(uint64_t hash, uint64_t word)
{
    for (int i = 0; i < 8; i++) {
        hash = (hash ^ (word & 0xFF)) * UINT64_C(0x100000001B3);
        word >>= 8;
    }
    return hash;
}

static uint64_t mix_real(uint64_t hash, double value)
{
    uint64_t word;
    value += 0.0; /* -0 equals 0 */
    memcpy(&word, &value, sizeof word);
    return mix_word(hash, word);
}

static uint64_t mix_window(uint64_t hash, const cvy_op_params_window *params)
{
    const cvy_window *window = &params->window;
    for (int axis = 0; axis < 3; axis++) {
        hash = mix_word(hash, (uint64_t)window->kernel[axis]);
        hash = mix_word(hash, (uint64_t)window->stride[axis]);
        hash = mix_word(hash, (uint64_t)window->dilation[axis]);
        hash = mix_word(hash, (uint64_t)window->before[axis]);
        hash = mix_word(hash, (uint64_t)window->after[axis]);
    }
    hash = mix_word(hash, (uint64_t)params->groups);
    return mix_word(hash, params->count_padding);
}

static uint64_t mix_optimizer(uint64_t hash, const cvy_op_params_optimizer *params)
{
    hash = mix_real(hash, params->momentum);
    hash = mix_word(hash, params->nesterov);
    hash = mix_real(hash, params->beta1);
    hash = mix_real(hash, params->beta2);
    hash = mix_real(hash, params->epsilon);
    return mix_real(hash, params->weight_decay);
}

static uint64_t mix_params(uint64_t hash, const cvy_op *op)
{
    switch (op->kind) {
    case CVY_OP_CONVOLUTION:
    case CVY_OP_POOL_MAX:
    case CVY_OP_POOL_AVERAGE: return mix_window(hash, &op->params.window);
    case CVY_OP_BATCH_NORM:
        hash = mix_real(hash, op->params.norm.epsilon);
        hash = mix_real(hash, op->params.norm.momentum);
        return mix_word(hash, (uint64_t)op->params.norm.count);
    case CVY_OP_DROPOUT:
        hash = mix_real(hash, op->params.dropout.probability);
        return mix_word(hash, (uint64_t)op->params.dropout.layer);
    case CVY_OP_SGD:
    case CVY_OP_ADAMW: return mix_optimizer(hash, &op->params.optimizer);
    default: return hash;
    }
}

static uint64_t mix_operand(uint64_t hash, const cvy_operand *operand)
{
    const cvy_tensor *tensor = &operand->tensor;
    hash = mix_word(hash, operand->role);
    hash = mix_word(hash, operand->access);
    hash = mix_word(hash, tensor->dtype);
    hash = mix_word(hash, tensor->format);
    hash = mix_word(hash, tensor->grouped);
    hash = mix_word(hash, (uint64_t)tensor->shape.dims);
    for (int i = 0; i < tensor->shape.dims; i++) {
        hash = mix_word(hash, (uint64_t)tensor->shape.extent[i]);
    }
    return hash;
}

uint64_t cvy_op_hash(const cvy_op *op)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    hash = mix_word(hash, op->kind);
    hash = mix_word(hash, op->pass);
    hash = mix_params(hash, op);
    hash = mix_word(hash, (uint64_t)op->operands);
    for (int i = 0; i < op->operands; i++) {
        hash = mix_operand(hash, &op->operand[i]);
    }
    return hash;
}
