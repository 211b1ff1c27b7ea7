/* A net of tests/reference, open in one type: its reference, its plan, its memory with initial values, and a run. */
#ifndef CVY_TESTS_RUNTIME_REFERENCE_NET_H
#define CVY_TESTS_RUNTIME_REFERENCE_NET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/json.h"
#include "runtime/executor.h"
#include "runtime/reference_values.h"

enum { MAX_REFERENCE_BYTES = 1 << 20 };

/* A net, its reference, and how far the two may be apart. */
typedef struct net {
    json_t *reference;
    cvy_model *model;
    cvy_plan *plan;
    cvy_executor *executor;
    double tolerance;
    int shake; /* above 0: inputs are a unit in the last place off, other ones for each number */
    double worst;
    char worst_at[256];
} net;

static inline const json_t *child(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!value) {
        fail_msg("the reference has no %s", key);
    }
    return value;
}

static inline double number(const json_t *object, const char *key) { return json_number_value(child(object, key)); }

/* Logical elements of a tensor in memory, as doubles. */
static inline double *copy_logical(const cvy_tensor *tensor, const void *data)
{
    const cvy_tensor logical = {tensor->shape, CVY_F64, CVY_FORMAT_PLAIN, tensor->grouped};
    double *value = cvy_calloc((size_t)cvy_shape_elements(&tensor->shape), sizeof *value);
    assert_non_null(value);
    assert_int_equal(cvy_tensor_copy(tensor, data, &logical, value), CVY_OK);
    return value;
}

static inline cvy_optimizer read_optimizer(const json_t *reference)
{
    cvy_optimizer optimizer = {.kind = CVY_OPTIMIZER_SGD};
    optimizer.params.weight_decay = number(reference, "weight_decay");
    if (strcmp(json_string_value(child(reference, "optimizer")), "adamw") == 0) {
        optimizer.kind = CVY_OPTIMIZER_ADAMW;
        optimizer.params.beta1 = json_number_value(json_array_get(child(reference, "betas"), 0));
        optimizer.params.beta2 = json_number_value(json_array_get(child(reference, "betas"), 1));
        optimizer.params.epsilon = number(reference, "eps");
    } else {
        optimizer.params.momentum = number(reference, "momentum");
    }
    return optimizer;
}

static inline int64_t batch_of(const net *n)
{
    return json_integer_value(json_array_get(child(n->reference, "batch"), 0));
}

/* A zoo name as it is; a path counts from the root of the tree. */
static inline cvy_status open_model(const char *name, cvy_model **model_out)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", CVY_SOURCE_ROOT, name);
    return cvy_model_open(strchr(name, '/') ? path : name, model_out);
}

static inline void open_net(net *n, const char *file, cvy_dtype dtype, double tolerance)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/reference/%s.json", CVY_SOURCE_ROOT, file);
    const cvy_json_source source = {path, CVY_ERR_DATA};
    *n = (net){.tolerance = tolerance};
    assert_int_equal(cvy_json_load(&source, MAX_REFERENCE_BYTES, &n->reference), CVY_OK);
    cvy_plan_options options = {.batch = batch_of(n), .dtype = dtype, .training = true, .block = 8, .data_slots = 1,
                                .label_bytes = 4 * (number(n->reference, "classes") > 0 ? 1 : 4)};
    options.optimizer = read_optimizer(n->reference);
    if (cvy_backend_chain_find(dtype == CVY_F64 ? "ref" : NULL, &options.backends) != CVY_OK ||
        open_model(json_string_value(child(n->reference, "model")), &n->model) != CVY_OK ||
        cvy_plan_create(n->model, &options, &n->plan) != CVY_OK ||
        cvy_executor_create(n->plan, NULL, &n->executor) != CVY_OK) {
        fail_msg("%s: %s", file, cvy_error_message());
    }
    const cvy_state *state = cvy_executor_state(n->executor);
    for (int i = 0; i < state->count; i++) {
        const cvy_state_tensor *tensor = &state->tensor[i];
        if (!tensor->optimizer) { /* whose memory is zero */
            const cvy_tensor logical = {tensor->shape, CVY_F64, CVY_FORMAT_PLAIN, false};
            double *value = make_initial_values(tensor->name, &tensor->shape);
            assert_int_equal(cvy_tensor_copy(&logical, value, &tensor->tensor, tensor->data), CVY_OK);
            cvy_free(value);
        }
    }
}

static inline void close_net(net *n)
{
    cvy_executor_destroy(&n->executor);
    cvy_plan_destroy(&n->plan);
    cvy_model_destroy(&n->model);
    json_decref(n->reference);
}

static inline float *make_spread(const char *name, int64_t count)
{
    float *value = cvy_calloc((size_t)count, sizeof *value);
    for (int64_t i = 0; i < count; i++) {
        value[i] = (float)spread(hash_name(name), i);
    }
    return value;
}

/* Every input one unit in the last place off, up or down at random. */
static inline void shake(float *x, int64_t count, int number)
{
    uint32_t key = hash_name("shake") + (uint32_t)number;
    for (int64_t i = 0; i < count; i++) {
        x[i] = nextafterf(x[i], spread(key, i) < 0 ? -2.0f : 2.0f);
    }
}

/* Values, the sample modulo classes, or for each position a class by chance. */
static inline void *make_label(const net *n, cvy_schedule_kind kind)
{
    const cvy_schedule *schedule = &n->plan->schedule[kind];
    const cvy_shape *shape = &schedule->buffer[schedule->label_buffer].tensor.shape;
    int64_t count = cvy_shape_elements(shape), classes = (int64_t)number(n->reference, "classes");
    if (classes == 0) {
        return make_spread("label", count);
    }
    int32_t *label = cvy_calloc((size_t)count, sizeof *label);
    for (int64_t i = 0; i < count; i++) {
        double share = (spread(hash_name("label"), i) + 1.0) / 2.0;
        label[i] = (int32_t)(shape->dims == 1 ? i % classes : (int64_t)(share * (double)classes));
    }
    return label;
}

static inline cvy_executor_result run(const net *n, cvy_schedule_kind kind)
{
    int64_t samples = batch_of(n);
    cvy_shape input = n->model->layer[0].output; /* of one sample */
    float *x = make_spread("input", samples * cvy_shape_elements(&input));
    void *label = make_label(n, kind);
    if (n->shake > 0) {
        shake(x, samples * cvy_shape_elements(&input), n->shake);
    }
    const cvy_executor_batch batch = {.x = x, .label = label, .samples = samples};
    const cvy_run step = {.samples = samples, .loss_scale = 1.0 / (double)samples, .update = 1,
                          .learning_rate = number(n->reference, "learning_rate")};
    cvy_executor_result result;
    if (cvy_executor_run(n->executor, kind, &batch, &step, &result) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    cvy_free(x);
    cvy_free(label);
    return result;
}

#endif
