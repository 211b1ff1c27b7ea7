/* What is said of a model as a whole: whether it is one, how large it is, what it costs, and a hash. */
#include <stdint.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "model/model.h"

static cvy_status fail_layer(const cvy_model *model, const cvy_layer *layer, const char *problem)
{
    if (model->file && layer->line) {
        return cvy_fail(CVY_ERR_INPUT, "%s:%d: layer %s: %s", model->file, layer->line, layer->name, problem);
    }
    return cvy_fail(CVY_ERR_INPUT, "%s%slayer %s: %s", model->file ? model->file : "", model->file ? ": " : "",
                    layer->name, problem);
}

static cvy_status check_used(const cvy_model *model)
{
    bool *used = cvy_calloc((size_t)model->layers, sizeof *used);
    if (!used) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = CVY_OK;
    for (int i = 0; i < model->layers; i++) {
        for (int k = 0; k < model->layer[i].inputs; k++) {
            used[model->layer[i].input[k]] = true;
        }
    }
    for (int i = 0; i < model->layers - 1 && status == CVY_OK; i++) {
        if (!used[i]) {
            status = fail_layer(model, &model->layer[i], "no layer takes its output");
        }
    }
    cvy_free(used);
    return status;
}

/* The total of parameters, and of one sample's activations, must be numbers that can be computed with. */
static cvy_status check_size(const cvy_model *model)
{
    int64_t total = 0;
    for (int i = 0; i < model->parameters; i++) {
        const cvy_parameter *parameter = &model->parameter[i];
        bool fits = cvy_add_i64(total, cvy_shape_elements(&parameter->spec.shape), &total) && total <= INT64_MAX / 64;
        CVY_REQUIRE(fits, CVY_ERR_INPUT, "%s%s%s: more parameters than 64 bits can count the bytes of",
                    model->file ? model->file : "", model->file ? ": " : "", parameter->name);
    }
    total = 0;
    for (int i = 0; i < model->layers; i++) {
        bool fits = cvy_add_i64(total, cvy_shape_elements(&model->layer[i].output), &total) && total <= INT64_MAX / 64;
        if (!fits) {
            return fail_layer(model, &model->layer[i], "more activations than 64 bits can count the bytes of");
        }
    }
    return CVY_OK;
}

cvy_status cvy_model_finish(cvy_model *model)
{
    const cvy_layer *last = &model->layer[model->layers - 1];
    if (last->kind->flow != CVY_FLOW_LOSS) {
        return fail_layer(model, last, "the model ends here, expected a loss as last layer");
    }
    CVY_TRY(check_used(model));
    return check_size(model);
}

int64_t cvy_model_parameters(const cvy_model *model)
{
    int64_t total = 0;
    for (int i = 0; i < model->parameters; i++) {
        const cvy_parameter_spec *spec = &model->parameter[i].spec;
        total += spec->trainable ? cvy_shape_elements(&spec->shape) : 0;
    }
    return total;
}

/* An op of a layer for one sample, every operand described; in plain order, which costs no padding. */
static cvy_status describe_op(const cvy_model *model, const cvy_layer *layer, cvy_op_pass pass, cvy_op *op)
{
    const cvy_tensor x = {.shape = model->layer[layer->input[0]].output};
    const cvy_signature *signature;
    layer->kind->make_op(layer, &x.shape, pass, op);
    signature = cvy_op_signature(op->kind, pass);
    int64_t filters = layer->output.extent[layer->output.dims > 1];
    for (int i = 0; i < signature->places; i++) {
        cvy_role role = signature->place[i].role;
        cvy_tensor tensor;
        bool biased = cvy_model_find_role(model, layer->index, CVY_ROLE_B) >= 0;
        if (role == CVY_ROLE_B && signature->place[i].optional && !biased) {
            continue;
        }
        CVY_TRY(cvy_op_describe(op, &x, filters, role, &tensor));
        CVY_TRY(cvy_op_add(op, role, &tensor));
    }
    return CVY_OK;
}

double cvy_model_layer_flop(const cvy_model *model, int index)
{
    const cvy_layer *layer = &model->layer[index];
    double flop = 0;
    cvy_op op;
    for (int k = 0; k < layer->kind->inference_passes; k++) {
        if (describe_op(model, layer, layer->kind->inference[k], &op) == CVY_OK) {
            flop += cvy_op_flop(&op);
        }
    }
    return flop;
}

double cvy_model_forward_flop(const cvy_model *model)
{
    double flop = 0;
    for (int i = 0; i < model->layers; i++) {
        flop += cvy_model_layer_flop(model, i);
    }
    return flop;
}

static uint64_t mix_shape(uint64_t hash, const cvy_shape *shape)
{
    hash = cvy_hash_word(hash, (uint64_t)shape->dims);
    for (int i = 0; i < shape->dims; i++) {
        hash = cvy_hash_word(hash, (uint64_t)shape->extent[i]);
    }
    return hash;
}

static uint64_t mix_parameter(uint64_t hash, const cvy_parameter_spec *spec)
{
    hash = mix_shape(cvy_hash_word(hash, spec->role), &spec->shape);
    hash = cvy_hash_word(cvy_hash_word(hash, (uint64_t)spec->groups), spec->trainable);
    hash = cvy_hash_word(hash, spec->init.kind);
    hash = cvy_hash_real(cvy_hash_real(hash, spec->init.fan_in), spec->init.fan_out);
    return spec->init.kind == CVY_INIT_NORMAL ? cvy_hash_real(hash, spec->init.scale) : hash;
}

/* Options count by what they make of the ops, so that `stride: 2` and `stride: [2, 2]` are the same. */
static uint64_t mix_ops(uint64_t hash, const cvy_model *model, const cvy_layer *layer)
{
    const cvy_layer_kind *kind = layer->kind;
    cvy_op op;
    for (int i = 0; i < kind->forward_passes; i++) {
        kind->make_op(layer, &model->layer[layer->input[0]].output, kind->forward[i], &op);
        hash = cvy_hash_word(hash, cvy_op_hash(&op));
    }
    return hash;
}

uint64_t cvy_model_hash(const cvy_model *model)
{
    uint64_t hash = cvy_hash_word(CVY_HASH_INIT, (uint64_t)model->layers);
    for (int i = 0; i < model->layers; i++) {
        const cvy_layer *layer = &model->layer[i];
        for (const char *c = layer->kind->name; *c; c++) {
            hash = cvy_hash_word(hash, (unsigned char)*c);
        }
        for (int k = 0; k < layer->inputs; k++) {
            hash = cvy_hash_word(hash, (uint64_t)layer->input[k]);
        }
        hash = mix_ops(mix_shape(hash, &layer->output), model, layer);
        for (int k = 0; k < layer->parameters; k++) {
            hash = mix_parameter(hash, &model->parameter[layer->first_parameter + k].spec);
        }
    }
    return hash;
}
