/*
 * Problems for tests of whole plans: a random graph with data, labels and parameters, all functions of a seed, and
 * plans of it that run.
 */
#ifndef CVY_TESTS_RUNTIME_RANDOM_PROBLEM_H
#define CVY_TESTS_RUNTIME_RANDOM_PROBLEM_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "runtime/executor.h"
#include "runtime/random_model.h"

#ifndef GRAPHS
#define GRAPHS 32 /* seeds from 0 on; more of them by hand, with -DGRAPHS=300 */
#endif

enum { BATCH = 3, MAX_INPUT = 16384, MAX_LABELS = 64 };

/* A graph, what it is fed, and what its parameters are at the start. */
typedef struct problem {
    uint32_t seed;
    cvy_model *model;
    double **parameter; /* in logical order */
    float x[MAX_INPUT];
    union {
        int32_t class[MAX_LABELS];
        float value[MAX_LABELS];
    } label;
} problem;

static inline bool is_classification(const cvy_model *model)
{
    return strcmp(model->layer[model->layers - 1].kind->name, "softmax-cross-entropy") == 0;
}

static inline void open_problem(problem *p, uint32_t seed)
{
    dice d = {.seed = seed};
    *p = (problem){.seed = seed, .model = make_random_model(&d, 5 + throw(&d, 9))};
    if (!p->model) {
        fail_msg("graph %u: %s", seed, cvy_error_message());
    }
    int outputs = (int)p->model->layer[cvy_model_output(p->model)].output.extent[1];
    int elements = (int)(BATCH * cvy_shape_elements(&p->model->layer[0].output));
    assert_true(elements <= MAX_INPUT && BATCH * outputs <= MAX_LABELS);
    for (int i = 0; i < elements; i++) {
        p->x[i] = throw_real(&d);
    }
    for (int i = 0; is_classification(p->model) ? i < BATCH : i < BATCH * outputs; i++) {
        if (is_classification(p->model)) {
            p->label.class[i] = throw(&d, outputs);
        } else {
            p->label.value[i] = throw_real(&d);
        }
    }
    p->parameter = cvy_calloc((size_t)p->model->parameters, sizeof *p->parameter);
    for (int i = 0; i < p->model->parameters; i++) {
        const cvy_parameter_spec *spec = &p->model->parameter[i].spec;
        int64_t count = cvy_shape_elements(&spec->shape);
        double scale = spec->shape.dims > 1 ? sqrt(3.0 * (double)spec->shape.extent[0] / (double)count) : 0.25;
        p->parameter[i] = cvy_calloc((size_t)count, sizeof(double));
        for (int64_t k = 0; k < count; k++) {
            bool gamma = spec->role == CVY_ROLE_W && spec->shape.dims == 1;
            bool near_one = gamma || spec->role == CVY_ROLE_RUNNING_VARIANCE;
            p->parameter[i][k] = (double)(float)(scale * throw_real(&d) + near_one);
        }
    }
}

static inline void close_problem(problem *p)
{
    for (int i = 0; i < p->model->parameters; i++) {
        cvy_free(p->parameter[i]);
    }
    cvy_free(p->parameter);
    cvy_model_destroy(&p->model);
}

/* A plan of a problem, and its executor. */
typedef struct engine {
    const problem *of;
    cvy_plan *plan;
    cvy_executor *executor;
} engine;

/* An engine of a plan as the options say, which leave batches and optimizer to it. */
static inline void open_engine_as(engine *e, const problem *p, const char *backend, cvy_plan_options options)
{
    options.batch = BATCH;
    options.tail_batch = 1;
    options.training = true;
    options.block = 8;
    options.optimizer.kind = CVY_OPTIMIZER_SGD;
    *e = (engine){.of = p};
    if (cvy_backend_chain_find(backend, &options.backends) != CVY_OK ||
        cvy_plan_create(p->model, &options, &e->plan) != CVY_OK ||
        cvy_executor_create(e->plan, NULL, &e->executor) != CVY_OK) {
        fail_msg("graph %u: %s", p->seed, cvy_error_message());
    }
}

static inline void open_engine(engine *e, const problem *p, const char *backend, cvy_dtype dtype,
                               cvy_layout_choice layout)
{
    open_engine_as(e, p, backend, (cvy_plan_options){.dtype = dtype, .layout = layout});
}

static inline void close_engine(engine *e)
{
    cvy_executor_destroy(&e->executor);
    cvy_plan_destroy(&e->plan);
}

static inline cvy_tensor logical_of(const cvy_state_tensor *tensor)
{
    return (cvy_tensor){.shape = tensor->shape, .dtype = CVY_F64, .format = CVY_FORMAT_PLAIN};
}

/* Parameters as at the start; all else is filled with bits that no number should come from. */
static inline void reset(const engine *e, cvy_schedule_kind kind)
{
    const cvy_state *state = cvy_executor_state(e->executor);
    for (int i = 0; i < e->of->model->parameters; i++) {
        cvy_state_tensor *tensor = cvy_state_find(state, e->of->model->parameter[i].name);
        cvy_tensor logical = logical_of(tensor);
        assert_int_equal(cvy_tensor_copy(&logical, e->of->parameter[i], &tensor->tensor, tensor->data), CVY_OK);
    }
    const cvy_schedule *s = &e->plan->schedule[kind];
    for (int i = 0; i < s->buffers; i++) {
        if (!s->buffer[i].persistent && s->buffer[i].last_step >= 0) {
            memset(cvy_executor_memory(e->executor, kind, i), 0xff, (size_t)s->buffer[i].bytes);
        }
    }
}

static inline cvy_run make_run(const engine *e, cvy_schedule_kind kind, double learning_rate)
{
    int64_t samples = e->plan->schedule[kind].batch;
    return (cvy_run){.seed = 5, .step = 3, .samples = samples, .loss_scale = 1.0 / (double)samples,
                     .learning_rate = learning_rate, .update = 1};
}

static inline cvy_executor_result run(const engine *e, cvy_schedule_kind kind, const cvy_run *how)
{
    cvy_executor_batch batch = {.x = e->of->x, .label = &e->of->label, .samples = how->samples};
    cvy_executor_result result;
    if (cvy_executor_run(e->executor, kind, &batch, how, &result) != CVY_OK) {
        fail_msg("graph %u: %s", e->of->seed, cvy_error_message());
    }
    return result;
}

/* What one step of plain SGD with rate 1 took off a parameter. */
static inline double *read_gradient(const engine *e, int parameter)
{
    cvy_state_tensor *tensor =
        cvy_state_find(cvy_executor_state(e->executor), e->of->model->parameter[parameter].name);
    cvy_tensor logical = logical_of(tensor);
    double *gradient = cvy_calloc((size_t)cvy_shape_elements(&tensor->shape), sizeof *gradient);
    assert_int_equal(cvy_tensor_copy(&tensor->tensor, tensor->data, &logical, gradient), CVY_OK);
    for (int64_t i = 0; i < cvy_shape_elements(&tensor->shape); i++) {
        gradient[i] = e->of->parameter[parameter][i] - gradient[i];
    }
    return gradient;
}

/* ||a - b|| / ||b||, with a floor for tensors that are all but zero. */
static inline double relate(const double *a, const double *b, int64_t count)
{
    double difference = 0, square = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        square += b[i] * b[i];
    }
    return sqrt(difference) / fmax(sqrt(square), 1e-2);
}

#endif
