/* Set-up, in the order in which things can go wrong for a user: options, data, plan, memory. */
#include "runtime/session.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/pulse.h"
#include "base/text.h"
#include "machine/machine.h"
#include "runtime/alike.h"
#include "runtime/formats.h"


/* What an optimizer's name stands for: a rule of the plan, with momentum or without. */
static const struct {
    cvy_optimizer_kind kind;
    bool momentum, nesterov;
} rules[] = {
    [CVY_OPTIMIZE_SGD] = {CVY_OPTIMIZER_SGD, false, false},
    [CVY_OPTIMIZE_MOMENTUM] = {CVY_OPTIMIZER_SGD, true, false},
    [CVY_OPTIMIZE_NESTEROV] = {CVY_OPTIMIZER_SGD, true, true},
    [CVY_OPTIMIZE_ADAMW] = {CVY_OPTIMIZER_ADAMW, false, false},
    [CVY_OPTIMIZE_ADAM] = {CVY_OPTIMIZER_ADAM, false, false},
    [CVY_OPTIMIZE_LARS] = {CVY_OPTIMIZER_LARS, true, false},
    [CVY_OPTIMIZE_LAMB] = {CVY_OPTIMIZER_LAMB, false, false},
};

static cvy_status find_layout(const char *name, cvy_layout_choice *choice_out)
{
    if (name && (strcmp(name, "measure") == 0 || strcmp(name, "rule") == 0)) { /* as auto: see runtime/formats.h */
        *choice_out = CVY_LAYOUT_AUTO;
        return CVY_OK;
    }
    for (int i = CVY_LAYOUT_AUTO; i <= CVY_LAYOUT_BLOCKED; i++) {
        if (strcmp(name ? name : "auto", cvy_layout_choice_name((cvy_layout_choice)i)) == 0) {
            *choice_out = (cvy_layout_choice)i;
            return CVY_OK;
        }
    }
    return cvy_fail(CVY_ERR_INPUT, "no layout '%s'; there are auto, measure, rule, plain, channels-last, blocked",
                    name);
}

static cvy_status find_recompute(const char *name, cvy_recompute *recompute_out)
{
    for (int i = CVY_RECOMPUTE_NONE; i <= CVY_RECOMPUTE_ALL; i++) {
        if (strcmp(name ? name : "none", cvy_recompute_name((cvy_recompute)i)) == 0) {
            *recompute_out = (cvy_recompute)i;
            return CVY_OK;
        }
    }
    return cvy_fail(CVY_ERR_INPUT, "no recomputation '%s'; there are none, cheap, all", name);
}

static cvy_status check_options(const cvy_train_options *o)
{
    CVY_REQUIRE(o->batch >= 1 && o->batch <= INT64_C(1) << 24, CVY_ERR_INPUT,
                "batch: expected 1 to 16777216 samples, got %lld", (long long)o->batch);
    CVY_REQUIRE(o->micro_batches >= 0 && o->micro_batches <= o->batch, CVY_ERR_INPUT,
                "micro-batches: expected 1 to the batch of %lld, got %d", (long long)o->batch, o->micro_batches);
    CVY_REQUIRE(o->threads >= 0 && o->threads <= 4096, CVY_ERR_INPUT, "threads: expected 1 to 4096, got %d",
                o->threads);
    CVY_REQUIRE(o->data_threads >= 0 && o->data_threads <= CVY_LOADER_MAX_THREADS, CVY_ERR_INPUT,
                "data-threads: expected 1 to %d, got %d", CVY_LOADER_MAX_THREADS, o->data_threads);
    CVY_REQUIRE((size_t)o->optimizer < sizeof rules / sizeof rules[0], CVY_ERR_INPUT, "no optimizer of number %d",
                (int)o->optimizer);
    CVY_REQUIRE(isfinite(o->learning_rate) && o->learning_rate >= 0.0, CVY_ERR_INPUT,
                "learning-rate: expected a number of at least 0, got %g", o->learning_rate);
    CVY_REQUIRE(o->weight_decay >= 0.0 && o->momentum >= 0.0 && o->momentum < 1.0, CVY_ERR_INPUT,
                "weight-decay must be at least 0 and momentum in [0, 1), got %g and %g", o->weight_decay, o->momentum);
    CVY_REQUIRE(o->clip_norm >= 0.0 && o->clip_value >= 0.0 && o->trust >= 0.0, CVY_ERR_INPUT,
                "clip-norm, clip-value and trust must be at least 0, got %g, %g and %g", o->clip_norm, o->clip_value,
                o->trust);
    CVY_REQUIRE(o->clip_norm == 0.0 || o->clip_value == 0.0, CVY_ERR_INPUT,
                "clip-norm and clip-value: expected one of them, got %g and %g", o->clip_norm, o->clip_value);
    CVY_REQUIRE(o->clip_value == 0.0 || o->optimizer != CVY_OPTIMIZE_LARS, CVY_ERR_INPUT,
                "lars goes by the norm of each gradient: clip-value does not go with it, clip-norm does");
    CVY_REQUIRE(o->ema >= 0.0 && o->ema < 1.0, CVY_ERR_INPUT, "ema: expected 0 to below 1, got %g", o->ema);
    CVY_REQUIRE(o->epochs >= 0 && o->steps >= 0, CVY_ERR_INPUT, "epochs and steps must not be negative");
    return CVY_OK;
}

/* Ranks of a node are bound to cores of their own, where there are; the only rank where it was asked for. */
static void set_threads(cvy_session *session, const cvy_train_options *options)
{
    const cvy_places *places = &session->places;
    const cpu_set_t *own = places->ranks > 1 && CPU_COUNT(&places->own) > 0 ? &places->own : NULL;
    session->threads = places->place[places->rank].threads;
    session->cores = CPU_COUNT(own ? own : &places->place[places->rank].cores);
    cvy_threads_set(session->threads);
    session->bound = options->pin || own ? cvy_threads_bind(session->threads, own) : NULL;
}

static void warn_of_places(const cvy_session *session, const cvy_train_observer *observer)
{
    bool several = session->places.ranks > 1; /* of one rank the command line knows as much */
    for (int i = 0; several && observer && observer->warning && i < session->places.warnings; i++) {
        observer->warning(observer->context, session->places.warning[i]);
    }
}

double cvy_session_accuracy(const cvy_session *session, int64_t correct, int64_t samples)
{
    double labels = (double)samples * (double)cvy_shape_elements(&session->label);
    return session->classes ? (double)correct / labels : NAN;
}

static cvy_target find_target(const cvy_session *session)
{
    return !session->classes ? CVY_TARGET_VALUES : session->label.dims > 1 ? CVY_TARGET_MAP : CVY_TARGET_CLASS;
}

static cvy_status open_data(cvy_session *session, const cvy_train_options *options)
{
    const cvy_shape *input = &session->model->layer[0].output;
    cvy_data_options wanted = {.source = options->data,
                               .kind = options->data_kind,
                               .seed = options->seed,
                               .target = find_target(session),
                               .classes = session->model->layer[cvy_model_output(session->model)].output.extent[1],
                               .train_count = options->train_samples,
                               .test_count = options->test_samples,
                               .mean = options->mean,
                               .std = options->std,
                               .augmentation = {options->crop_padding, options->hflip}};
    wanted.sample.dims = input->dims - 1;
    memcpy(wanted.sample.extent, input->extent + 1, sizeof(int64_t) * (size_t)(input->dims - 1));
    if (wanted.target == CVY_TARGET_MAP) {
        wanted.map.dims = session->label.dims - 1;
        memcpy(wanted.map.extent, session->label.extent + 1, sizeof(int64_t) * (size_t)wanted.map.dims);
    }
    CVY_REQUIRE(options->data, CVY_ERR_INPUT, "no data: give --data a folder, or one of digits, random, cosmo");
    return cvy_data_open(&wanted, &session->data);
}

static cvy_optimizer choose_optimizer(const cvy_train_options *o)
{
    cvy_optimizer optimizer = {.kind = rules[o->optimizer].kind,
                               .clip_norm = o->clip_norm,
                               .no_decay_norms = o->no_decay_norms};
    optimizer.params = (cvy_op_params_optimizer){.momentum = rules[o->optimizer].momentum ? o->momentum : 0.0,
                                                 .nesterov = rules[o->optimizer].nesterov,
                                                 .beta1 = o->beta1,
                                                 .beta2 = o->beta2,
                                                 .epsilon = o->epsilon,
                                                 .weight_decay = o->weight_decay,
                                                 .clip_value = o->clip_value,
                                                 .trust = o->trust};
    return optimizer;
}

/* What the machine does not have is better said before it is taken: the system would kill the process in silence. */
static cvy_status check_memory(const cvy_session *session, int64_t batch, double bytes, const char *least)
{
    char needed[CVY_UNIT_TEXT], there[CVY_UNIT_TEXT];
    double memory_bytes = (double)session->machine.device.memory_bytes;
    CVY_REQUIRE(memory_bytes == 0.0 || bytes <= memory_bytes, CVY_ERR_INFEASIBLE,
                "%s takes %s%s of tensors at batch %lld, this machine has %s: a smaller batch takes less",
                cvy_model_name(session->model), least, cvy_print_bytes(bytes, needed), (long long)batch,
                cvy_print_bytes(memory_bytes, there));
    return CVY_OK;
}

/* The largest tensor alone: a plan has it, whatever else. Backends need seconds to plan for sizes beyond all reason. */
static double count_least_bytes(const cvy_model *model, const cvy_plan_options *options)
{
    int64_t largest = 0;
    for (int i = 0; i < model->layers; i++) {
        largest = cvy_max_i64(largest, cvy_shape_elements(&model->layer[i].output));
    }
    int64_t samples = cvy_ceil_div(options->batch, cvy_max_i64(options->micro_batches, 1));
    return (double)largest * (double)samples * (double)cvy_dtype_bytes(options->dtype);
}

static cvy_status choose_plan(cvy_session *session, const cvy_train_options *options, bool training,
                              cvy_plan_options *wanted)
{
    *wanted = (cvy_plan_options){.batch = options->batch,
                                 .dtype = options->double_precision ? CVY_F64 : CVY_F32,
                                 .training = training,
                                 .direct_only = options->deterministic_kernels,
                                 .optimizer = choose_optimizer(options),
                                 .average = training ? options->ema : 0.0,
                                 .block = cvy_device_block(&session->machine.device),
                                 .data_slots = CVY_DATA_SLOTS,
                                 .label_bytes = 4 * cvy_shape_elements(&session->label)};
    if (session->data) {
        int64_t samples = cvy_data_get_info(session->data)->count[CVY_SPLIT_TRAIN];
        CVY_REQUIRE(!training || samples >= options->batch, CVY_ERR_INPUT,
                    "batch %lld is larger than the training set of %lld samples", (long long)options->batch,
                    (long long)samples);
        wanted->tail_batch = training ? samples % options->batch : 0;
    }
    CVY_TRY(find_layout(options->layout, &wanted->layout));
    CVY_TRY(find_recompute(options->recompute, &wanted->recompute));
    CVY_TRY(cvy_session_divide(session, options, wanted));
    CVY_REQUIRE(!options->double_precision || !options->backend || strcmp(options->backend, "ref") == 0, CVY_ERR_INPUT,
                "backend %s computes in single precision; double precision is for backend ref", options->backend);
    return cvy_backend_chain_find(options->double_precision ? "ref" : options->backend, &wanted->backends);
}

/* Each on its own, so that all may hear of it when one fails. */
static cvy_status begin(cvy_session *session, const cvy_train_options *options, bool training, bool with_data,
                        cvy_plan_options *wanted)
{
    cvy_memory_keep();
    cvy_machine_get_local(&session->machine);
    set_threads(session, options);
    CVY_TRY(cvy_plan_describe_label(session->model, &session->label, &session->classes));
    if (with_data) {
        (void)cvy_pulse_set(CVY_ACTIVITY_READING);
        CVY_TRY(open_data(session, options));
        (void)cvy_pulse_set(CVY_ACTIVITY_PLANNING);
    }
    CVY_TRY(choose_plan(session, options, training, wanted));
    return check_memory(session, wanted->batch, count_least_bytes(session->model, wanted), "at least ");
}

static cvy_status make_plan(cvy_session *session, const cvy_plan_options *wanted)
{
    if (!session->plan) {
        CVY_TRY(cvy_plan_create(session->model, wanted, &session->plan));
    }
    return check_memory(session, wanted->batch,
                        (double)(session->plan->persistent_bytes + session->plan->transient_bytes), "");
}

static cvy_status agree(const cvy_session *session, cvy_status mine) { return cvy_comm_agree(session->comm, mine); }

static cvy_status set_up(cvy_session *session, const cvy_train_options *options, const cvy_train_observer *observer,
                         bool training, bool with_data)
{
    cvy_plan_options wanted;
    CVY_TRY(agree(session, check_options(options)));
    CVY_TRY(cvy_places_find(session->comm, options->threads, &session->places));
    warn_of_places(session, observer);
    CVY_TRY(agree(session, begin(session, options, training, with_data, &wanted)));
    if (with_data && cvy_comm_ranks(session->comm) > 1) {
        CVY_TRY(cvy_alike_data(session->comm, session->data));
    }
    cvy_layer_formats *formats = cvy_calloc((size_t)session->model->layers, sizeof *formats);
    cvy_status status = agree(session, formats ? CVY_OK : CVY_ERR_MEMORY);
    CVY_TRY_GOTO(status, done, status);
    if (!session->distribution) {
        status = cvy_formats_plan(session->model, options, observer, &wanted, session->threads, &session->plan);
    } else if (!wanted.formats) {
        status = cvy_session_share_formats(session, options, observer, &wanted, formats);
        wanted.formats = formats;
    }
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, agree(session, make_plan(session, &wanted)));
    cvy_memory_reset_peak();
    status = cvy_executor_create(session->plan, session->comm, &session->executor);
done:
    cvy_free(formats);
    return status;
}

cvy_status cvy_session_open(const cvy_model *model, const cvy_train_options *options,
                            const cvy_train_observer *observer, bool training, bool with_data,
                            cvy_session *session_out)
{
    *session_out = (cvy_session){.model = model, .comm = options->comm};
    if (!options->comm) {
        CVY_TRY(cvy_comm_open("self", &session_out->own_comm));
        session_out->comm = session_out->own_comm;
    }
    CVY_TRY(set_up(session_out, options, observer, training, with_data));
    return cvy_executor_share_state(session_out->executor, session_out->comm);
}

void cvy_session_close(cvy_session *session)
{
    cvy_executor_destroy(&session->executor);
    cvy_plan_destroy(&session->plan);
    cvy_distribution_destroy(&session->distribution);
    cvy_plan_file_clear(&session->file);
    cvy_data_close(&session->data);
    cvy_threads_release(&session->bound);
    cvy_places_clear(&session->places);
    cvy_comm_close(&session->own_comm);
}

/* Rows of a buffer in space, of those that a whole sample has. */
static void find_rows(const cvy_buffer *buffer, cvy_interval rows[3])
{
    for (int at = 0; at < 3; at++) {
        int dim = buffer->tensor.shape.dims - 3 + at, first = buffer->content == CVY_CONTENT_LABEL ? 1 : 2;
        rows[at] = dim >= first ? buffer->local[dim] : (cvy_interval){0, 0};
    }
}

/* What this rank reads of each batch. The evaluation schedule runs on a last batch, too, with fewer samples. */
static void share_batches(const cvy_session *session, cvy_split split, cvy_loader_options *wanted)
{
    const cvy_plan *plan = session->plan;
    const cvy_schedule *s = &plan->schedule[split == CVY_SPLIT_TRAIN ? CVY_SCHEDULE_TRAIN : CVY_SCHEDULE_EVALUATE];
    const cvy_schedule *tail = &plan->schedule[CVY_SCHEDULE_TRAIN_TAIL];
    int64_t rest = cvy_data_get_info(session->data)->count[split] % wanted->batch;
    wanted->shared = true;
    wanted->share = s->samples;
    wanted->tail_share = split == CVY_SPLIT_TRAIN && tail->steps > 0
                             ? tail->samples
                             : (cvy_interval){cvy_min_i64(s->samples.begin, rest), cvy_min_i64(s->samples.end, rest)};
    wanted->no_images = s->input_buffer < 0;
    wanted->no_labels = s->label_buffer < 0;
    if (!wanted->no_images) {
        find_rows(&s->buffer[s->input_buffer], wanted->rows);
    }
    if (!wanted->no_labels && find_target(session) == CVY_TARGET_MAP) {
        find_rows(&s->buffer[s->label_buffer], wanted->label_rows);
    }
}

cvy_status cvy_session_loader(const cvy_session *session, const cvy_train_options *options, cvy_split split,
                              cvy_loader **loader_out)
{
    cvy_loader_options wanted = {.split = split,
                                 .shuffle = split == CVY_SPLIT_TRAIN,
                                 .augment = split == CVY_SPLIT_TRAIN,
                                 .seed = options->seed,
                                 .batch = options->batch,
                                 .slots = CVY_DATA_SLOTS,
                                 .threads = options->data_threads,
                                 .memory = cvy_executor_slots(session->executor)};
    if (session->distribution) {
        share_batches(session, split, &wanted);
    }
    cvy_threads_pause(session->bound); /* its threads go where there is room */
    cvy_status status = cvy_loader_create(session->data, &wanted, loader_out);
    cvy_threads_resume(session->bound);
    return agree(session, status);
}
