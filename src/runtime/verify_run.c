/* One of the runs that are compared: some steps on the first samples of an epoch, and what is left of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "runtime/session.h"
#include "runtime/verify.h"

/* Move every number by one unit in the last place, up or down as a bit of chance has it. */
static void shake(float *x, int64_t count, int number, int64_t step)
{
    enum { BITS = 32, WORDS = 4 };
    cvy_words words = {{0}};
    for (int64_t i = 0; i < count; i++) {
        if (i % (BITS * WORDS) == 0) {
            words = cvy_random_words((uint64_t)number, CVY_PURPOSE_SYNTHETIC_DATA, 2, (uint32_t)step,
                                     (uint32_t)(i >> 32), (uint32_t)i);
        }
        uint32_t word = words.v[i / BITS % WORDS];
        x[i] = nextafterf(x[i], word >> (i % BITS) & 1u ? HUGE_VALF : -HUGE_VALF);
    }
}

/* One run under way. */
typedef struct walk {
    cvy_session session;
    const cvy_train_options *options;
    cvy_loader *loader;
    int shake; /* 0: none */
} walk;

/* The batch in its slot, whose memory is the executor's. */
static void shake_batch(walk *w, const cvy_batch *batch, int64_t step)
{
    float *slots = cvy_executor_slots(w->session.executor);
    int64_t numbers = batch->samples * cvy_shape_elements(&w->session.model->layer[0].output);
    shake(slots + (batch->x - slots), numbers, w->shake, step);
}

static cvy_status run_step(walk *w, int64_t step, double *loss_out)
{
    cvy_batch batch;
    cvy_executor_result result;
    CVY_TRY(cvy_loader_next(w->loader, &batch));
    if (w->shake) {
        shake_batch(w, &batch, step);
    }
    cvy_executor_batch view = {.x = batch.x, .label = batch.label, .samples = batch.samples};
    cvy_run run = {.seed = w->options->seed,
                   .step = step,
                   .samples = w->options->batch,
                   .loss_scale = 1.0 / (double)w->options->batch,
                   .learning_rate = w->options->learning_rate,
                   .update = step + 1};
    CVY_TRY(cvy_executor_run(w->session.executor, CVY_SCHEDULE_TRAIN, &view, &run, &result));
    cvy_loader_release(w->loader, &batch);
    *loss_out = result.loss;
    return CVY_OK;
}

static cvy_status run_steps(walk *w, int64_t steps, double *loss_out)
{
    int64_t samples = cvy_data_get_info(w->session.data)->count[CVY_SPLIT_TRAIN];
    CVY_REQUIRE(samples / w->options->batch >= steps, CVY_ERR_INPUT,
                "%lld steps of %lld samples: the training set has %lld", (long long)steps,
                (long long)w->options->batch, (long long)samples);
    CVY_TRY(cvy_executor_initialise(w->session.executor, w->options->seed));
    CVY_TRY(cvy_session_loader(&w->session, w->options, CVY_SPLIT_TRAIN, &w->loader));
    CVY_TRY(cvy_loader_start(w->loader, 0, 0));
    for (int64_t i = 0; i < steps; i++) {
        CVY_TRY(run_step(w, i, &loss_out[i]));
    }
    return CVY_OK;
}

/* ---- what is left ---- */

/* A whole tensor on the first rank. */
static cvy_status collect_tensor(const cvy_state_tensor *tensor, void **whole_out)
{
    const cvy_tensor plain = {tensor->shape, tensor->tensor.dtype, CVY_FORMAT_PLAIN, tensor->tensor.grouped};
    void *whole = cvy_calloc((size_t)cvy_shape_elements(&tensor->shape), (size_t)cvy_dtype_bytes(plain.dtype));
    if (!whole) {
        return CVY_ERR_MEMORY;
    }
    *whole_out = whole;
    return cvy_tensor_copy(&tensor->tensor, tensor->data, &plain, whole);
}

/* The tensors whose names are those of the parameters behind a prefix. */
static cvy_status collect(const walk *w, const char *prefix, void **value)
{
    const cvy_model *model = w->session.model;
    const cvy_state *state = cvy_executor_state(w->session.executor);
    for (int i = 0; i < model->parameters; i++) {
        char name[512];
        snprintf(name, sizeof name, "%s%s", prefix, model->parameter[i].name);
        const cvy_state_tensor *tensor = cvy_state_find(state, name);
        if (tensor) {
            CVY_TRY(collect_tensor(tensor, &value[i]));
        }
    }
    return CVY_OK;
}

/* Train, and keep one kind of what is left. */
static cvy_status train(const cvy_model *model, const cvy_train_options *options, int64_t steps, int shake,
                        const cvy_train_observer *observer, bool gradients, cvy_verify_record *record)
{
    walk w = {.options = options, .shake = shake};
    cvy_status status = cvy_session_open(model, options, observer, true, true, &w.session);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, run_steps(&w, steps, record->loss));
    status = collect(&w, gradients ? "momentum." : "", gradients ? record->gradient : record->weight);
    CVY_TRY_GOTO(status, done, status);
    record->micro_batches = w.session.plan->schedule[CVY_SCHEDULE_TRAIN].micro_batches;
done:
    cvy_loader_destroy(&w.loader);
    cvy_session_close(&w.session);
    return status;
}

/* Of a step from zero with momentum, and nothing else, the velocity is the gradient. */
static cvy_train_options ask_gradients(const cvy_train_options *options)
{
    cvy_train_options asked = *options;
    asked.optimizer = CVY_OPTIMIZE_MOMENTUM;
    asked.momentum = 0.5;
    asked.learning_rate = asked.weight_decay = asked.clip_norm = asked.clip_value = asked.ema = 0.0;
    return asked;
}

cvy_status cvy_verify_run(const cvy_model *model, const cvy_train_options *options, int64_t steps, int shake,
                          const cvy_train_observer *observer, cvy_verify_record *record_out)
{
    const size_t parameters = (size_t)model->parameters;
    const cvy_train_options asked = ask_gradients(options);
    *record_out = (cvy_verify_record){.dtype = options->double_precision ? CVY_F64 : CVY_F32,
                                      .parameters = model->parameters,
                                      .gradient = cvy_calloc(parameters + 1, sizeof(void *)),
                                      .weight = cvy_calloc(parameters + 1, sizeof(void *)),
                                      .loss = cvy_calloc((size_t)steps + 1, sizeof(double)),
                                      .replicas_identical = true};
    if (!record_out->gradient || !record_out->weight || !record_out->loss) {
        return CVY_ERR_MEMORY;
    }
    CVY_TRY(train(model, &asked, 1, shake, observer, true, record_out));
    return train(model, options, steps, shake, observer, false, record_out);
}

void cvy_verify_record_clear(cvy_verify_record *record)
{
    for (int i = 0; i < record->parameters; i++) {
        if (record->gradient) {
            cvy_free(record->gradient[i]);
        }
        if (record->weight) {
            cvy_free(record->weight[i]);
        }
    }
    cvy_free(record->gradient);
    cvy_free(record->weight);
    cvy_free(record->loss);
    *record = (cvy_verify_record){0};
}
