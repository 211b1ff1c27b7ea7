/* One of the runs that are compared: some steps on the first samples of an epoch, and what is left of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/pulse.h"
#include "base/random.h"
#include "runtime/session.h"
#include "runtime/sharing.h"
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
    const cvy_verify_input *input; /* NULL: batches stay as they are */
    int64_t *order;                /* of samples; NULL: as they come */
    char *spare;                   /* where they are put in order: images, or labels, of a batch */
} walk;

/* Put samples in order where they lie, of a slot, whose memory is the executor's. */
static void reorder(const walk *w, const void *samples, int64_t sample_bytes)
{
    char *slots = cvy_executor_slots(w->session.executor);
    char *at = slots + ((const char *)samples - slots);
    int64_t batch = w->options->batch;
    for (int64_t i = 0; i < batch; i++) {
        memcpy(w->spare + i * sample_bytes, at + w->order[i] * sample_bytes, (size_t)sample_bytes);
    }
    memcpy(at, w->spare, (size_t)(batch * sample_bytes));
}

/* One rank alone is changed: it has all of the batch. */
static void change_batch(const walk *w, const cvy_batch *batch, int64_t step)
{
    float *slots = cvy_executor_slots(w->session.executor);
    int64_t numbers = cvy_shape_elements(&w->session.model->layer[0].output);
    if (w->order) {
        reorder(w, batch->x, numbers * (int64_t)sizeof(float));
        reorder(w, batch->label, w->session.plan->options.label_bytes);
    }
    if (w->input->shake) {
        shake(slots + (batch->x - slots), batch->own * numbers, w->input->shake, step);
    }
}

static cvy_status prepare_order(walk *w)
{
    if (!w->input || !w->input->parts.mixed) {
        return CVY_OK;
    }
    int64_t image_bytes = cvy_shape_elements(&w->session.model->layer[0].output) * (int64_t)sizeof(float);
    int64_t sample_bytes = cvy_max_i64(image_bytes, w->session.plan->options.label_bytes);
    w->order = cvy_calloc((size_t)w->options->batch, sizeof *w->order);
    w->spare = cvy_calloc((size_t)w->options->batch, (size_t)sample_bytes);
    if (!w->order || !w->spare) {
        return CVY_ERR_MEMORY;
    }
    cvy_verify_parts_order(&w->input->parts, w->order);
    return CVY_OK;
}

static cvy_status run_step(walk *w, int64_t step, double *loss_out)
{
    cvy_batch batch = {.slot = -1};
    cvy_executor_result result;
    cvy_status got = cvy_loader_next(w->loader, &batch);
    if (w->input && got == CVY_OK) {
        change_batch(w, &batch, step);
    }
    cvy_executor_batch view = {.x = batch.x, .label = batch.label, .samples = batch.own, .failed = got};
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

/* Index of a tensor that all ranks list; -1 where none does. */
static int find_tensor(const cvy_state *state, const char *prefix, const char *parameter)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", prefix, parameter);
    const cvy_state_tensor *tensor = cvy_state_find(state, name);
    return tensor ? (int)(tensor - state->tensor) : -1;
}

/* Room for whole tensors on the first rank, and for the parts that it receives. */
static cvy_status make_room(const walk *w, const char *prefix, void **value, void **landing_out)
{
    const cvy_model *model = w->session.model;
    const cvy_state *state = cvy_executor_state(w->session.executor);
    if (cvy_comm_rank(w->session.comm) > 0) {
        return CVY_OK;
    }
    for (int i = 0; i < model->parameters; i++) {
        int tensor = find_tensor(state, prefix, model->parameter[i].name);
        cvy_tensor whole = tensor >= 0 ? cvy_state_whole(&state->tensor[tensor]) : (cvy_tensor){0};
        value[i] = tensor >= 0 ? cvy_calloc((size_t)cvy_tensor_bytes(&whole), 1) : NULL;
        if (tensor >= 0 && !value[i]) {
            return CVY_ERR_MEMORY;
        }
    }
    *landing_out = cvy_calloc((size_t)cvy_state_landing_bytes(state) + 1, 1);
    return *landing_out ? CVY_OK : CVY_ERR_MEMORY;
}

static cvy_status agree(cvy_comm *comm, cvy_status mine)
{
    return cvy_comm_ranks(comm) > 1 ? cvy_comm_agree(comm, mine) : mine;
}

/* The tensors whose names are those of the parameters behind a prefix. */
static cvy_status collect(const walk *w, const char *prefix, void **value)
{
    const cvy_model *model = w->session.model;
    const cvy_state *state = cvy_executor_state(w->session.executor);
    void *landing = NULL;
    cvy_status status = agree(w->session.comm, make_room(w, prefix, value, &landing));
    for (int i = 0; i < model->parameters && status == CVY_OK; i++) {
        int tensor = find_tensor(state, prefix, model->parameter[i].name);
        cvy_pulse_beat();
        status = tensor >= 0 ? cvy_state_collect(state, tensor, landing, value[i]) : CVY_OK;
    }
    cvy_free(landing);
    return status;
}

/* Running statistics that each rank has of its own share are no replicas before they are merged. */
static cvy_status check_replicas(const walk *w, cvy_verify_record *record)
{
    const cvy_state *state = cvy_executor_state(w->session.executor);
    CVY_TRY(cvy_state_merge_statistics(state));
    cvy_status status = cvy_state_check_replicas(state, NULL);
    record->replicas_identical = status == CVY_OK;
    snprintf(record->why_not, sizeof record->why_not, "%.250s", status == CVY_OK ? "" : cvy_error_message());
    return CVY_OK;
}

/* Train, and keep one kind of what is left. */
static cvy_status train(walk *w, int64_t steps, const cvy_train_observer *observer, bool gradients,
                        cvy_verify_record *record)
{
    CVY_TRY(cvy_session_open(w->session.model, w->options, observer, true, true, &w->session));
    CVY_TRY(cvy_verify_parts_find(w->session.plan, &record->parts));
    CVY_TRY(prepare_order(w));
    CVY_TRY(run_steps(w, steps, record->loss));
    if (!gradients) {
        CVY_TRY(check_replicas(w, record));
    }
    return collect(w, gradients ? "momentum." : "", gradients ? record->gradient : record->weight);
}

static cvy_status walk_once(walk w, int64_t steps, const cvy_train_observer *observer, bool gradients,
                            cvy_verify_record *record)
{
    cvy_status status = train(&w, steps, observer, gradients, record);
    cvy_loader_destroy(&w.loader);
    cvy_session_close(&w.session);
    cvy_free(w.order);
    cvy_free(w.spare);
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

cvy_status cvy_verify_run(const cvy_model *model, const cvy_train_options *options, int64_t steps,
                          const cvy_verify_input *input, const cvy_train_observer *observer,
                          cvy_verify_record *record_out)
{
    const size_t parameters = (size_t)model->parameters;
    const cvy_train_options asked = ask_gradients(options);
    walk w = {.session = {.model = model}, .options = &asked, .input = input};
    *record_out = (cvy_verify_record){.dtype = options->double_precision ? CVY_F64 : CVY_F32,
                                      .parameters = model->parameters,
                                      .gradient = cvy_calloc(parameters + 1, sizeof(void *)),
                                      .weight = cvy_calloc(parameters + 1, sizeof(void *)),
                                      .loss = cvy_calloc((size_t)steps + 1, sizeof(double)),
                                      .replicas_identical = true};
    bool room = record_out->gradient && record_out->weight && record_out->loss;
    CVY_TRY(agree(options->comm, room ? CVY_OK : CVY_ERR_MEMORY));
    CVY_TRY(walk_once(w, 1, observer, true, record_out));
    w.options = options;
    return walk_once(w, steps, observer, false, record_out);
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
