/*
 * The training loop. Position is counted in samples and steps, kept in every checkpoint, and all that the loop draws or
 * decides follows from it and the seed: so a run that was killed goes on bit by bit as if nothing had happened.
 */
#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "runtime/rate.h"
#include "runtime/run_folder.h"
#include "runtime/session.h"

typedef struct training {
    const cvy_model *model;
    const cvy_train_options *options;
    const cvy_train_observer *observer;
    cvy_train_result *result;
    cvy_session session;
    cvy_run_folder folder;
    cvy_loader *loader;
    cvy_rate rate;
    cvy_position position;
    int64_t samples;      /* of an epoch */
    int64_t steps_total;
    double start_s;       /* of the loop */
    int64_t start_samples;
    double window_s;      /* start of the window over which the shown rate is taken */
    int64_t window_samples;
    double shown_rate;
    double evaluation_s;  /* spent evaluating and saving, not training */
} training;

static int64_t count_steps_an_epoch(const training *t) { return cvy_ceil_div(t->samples, t->options->batch); }

static int64_t count_steps(const training *t)
{
    return t->options->steps > 0 ? t->options->steps : t->options->epochs * count_steps_an_epoch(t);
}

/* Samples of the whole training: the last batch of an epoch may be smaller than the others. */
static double count_samples(const training *t)
{
    int64_t epochs = t->steps_total / count_steps_an_epoch(t), rest = t->steps_total % count_steps_an_epoch(t);
    return (double)epochs * (double)t->samples + (double)rest * (double)t->options->batch;
}

static cvy_status set_rate(training *t)
{
    const cvy_train_options *o = t->options;
    double samples = (double)t->samples;
    double growth = o->rate_base_size > 0 ? (double)o->batch / (double)o->rate_base_size : 1.0;
    t->rate = (cvy_rate){.kind = o->rate,
                         .base = o->learning_rate * growth,
                         .warmup_samples = o->warmup_epochs * samples,
                         .total_samples = count_samples(t),
                         .step_samples = o->step_epochs * samples,
                         .gamma = o->gamma,
                         .power = o->power};
    return cvy_rate_read_milestones(o->milestones, samples, &t->rate);
}

/* ---- what others are told ---- */

static void tell_start(training *t, const char *resumed_from, int skipped)
{
    const char *names[CVY_BUFFER_ROLE_COUNT + 1] = {NULL};
    const cvy_plan *plan = t->session.plan;
    if (!t->observer || !t->observer->start) {
        return;
    }
    for (int role = 0; role < CVY_BUFFER_ROLE_COUNT; role++) {
        names[role] = cvy_buffer_role_name((cvy_buffer_role)role);
    }
    cvy_train_start start = {.model = cvy_model_name(t->model),
                             .data = cvy_data_kind_name(t->session.data),
                             .backend = plan->options.backends.backend[0]->name,
                             .parameters = cvy_model_parameters(t->model),
                             .batch = t->options->batch,
                             .train_samples = t->samples,
                             .test_samples = cvy_data_get_info(t->session.data)->count[CVY_SPLIT_TEST],
                             .learning_rate = t->rate.base,
                             .epochs = t->options->steps > 0 ? 0 : t->options->epochs,
                             .steps_total = t->steps_total,
                             .first_step = t->position.step,
                             .threads = t->session.threads,
                             .cores = t->session.cores,
                             .tensor_bytes = plan->persistent_bytes + plan->transient_bytes,
                             .memory_names = names,
                             .format_changes = plan->format_changes,
                             .resumed_from = resumed_from,
                             .checkpoints_skipped = skipped};
    cvy_plan_memory(plan, start.memory_by_role);
    t->observer->start(t->observer->context, &start);
}

static void tell_progress(training *t, const cvy_batch *batch, const cvy_executor_result *result, double rate)
{
    double now_s = cvy_clock_s();
    t->window_samples += batch->samples;
    if (now_s - t->window_s > 1.0 || t->shown_rate == 0.0) {
        t->shown_rate = (double)t->window_samples / fmax(now_s - t->window_s, 1e-9);
        t->window_s = now_s;
        t->window_samples = 0;
    }
    if (!t->observer || !t->observer->progress) {
        return;
    }
    int64_t left = (t->steps_total - t->position.step) * t->options->batch;
    cvy_train_progress progress = {.step = t->position.step,
                                   .steps_total = t->steps_total,
                                   .epoch = t->position.epoch,
                                   .epochs = t->options->steps > 0 ? 0 : t->options->epochs,
                                   .sample = t->position.sample,
                                   .samples = t->samples,
                                   .loss = result->loss,
                                   .accuracy = cvy_session_accuracy(&t->session, result->correct, batch->samples),
                                   .learning_rate = rate,
                                   .images_per_s = t->shown_rate,
                                   .left_s = (double)left / t->shown_rate};
    t->observer->progress(t->observer->context, &progress);
}

static void warn(const training *t, const char *line)
{
    if (t->observer && t->observer->warning) {
        t->observer->warning(t->observer->context, line);
    }
}

/* What began at @p start_s and ends now was not training: no rate counts it. */
static void pause_clocks(training *t, double start_s)
{
    double seconds = cvy_clock_s() - start_s;
    t->evaluation_s += seconds;
    t->window_s += seconds;
}

/* ---- checkpoints ---- */

/* A failed save does not end the training: the next one may find room; the last one's failure does. */
static cvy_status save_checkpoint(training *t, bool last)
{
    double start_s = cvy_clock_s();
    if (!t->folder.path) {
        return CVY_OK;
    }
    cvy_status status = cvy_run_folder_save(&t->folder, cvy_executor_state(t->session.executor), &t->position,
                                            t->options->keep_checkpoints);
    pause_clocks(t, start_s);
    if (status == CVY_OK) {
        snprintf(t->result->checkpoint, sizeof t->result->checkpoint, "%s", t->folder.last_checkpoint);
        if (t->observer && t->observer->checkpoint) {
            t->observer->checkpoint(t->observer->context, t->folder.last_checkpoint, t->position.step);
        }
    } else if (!last) {
        warn(t, cvy_error_message());
        return CVY_OK;
    }
    return status;
}

/* At the end of an epoch, or every so many steps. */
static bool is_checkpoint_due(const training *t)
{
    int64_t every = t->options->checkpoint_every;
    return every > 0 ? t->position.step % every == 0 : t->position.sample == 0;
}

/* ---- epochs ---- */

/* Where this process took up an epoch: rates are of what it trained itself. */
typedef struct epoch_start {
    double clock_s, wait_s;
    int64_t sample;
} epoch_start;

static cvy_status finish_epoch(training *t, const epoch_start *start)
{
    cvy_position *p = &t->position;
    cvy_evaluation evaluation = {.loss = NAN, .accuracy = NAN};
    double seconds = cvy_clock_s() - start->clock_s;
    if (cvy_data_get_info(t->session.data)->count[CVY_SPLIT_TEST] > 0) {
        double start_s = cvy_clock_s();
        CVY_TRY(cvy_session_evaluate(&t->session, t->options, NULL, &evaluation));
        pause_clocks(t, start_s);
    }
    double metric = t->session.classes ? evaluation.accuracy : -evaluation.loss;
    bool best = metric > p->best_metric;
    cvy_epoch_result result = {.epoch = p->epoch + 1,
                               .step = p->step,
                               .loss = p->epoch_loss_sum / (double)p->sample,
                               .train_accuracy = cvy_session_accuracy(&t->session, p->epoch_correct, p->sample),
                               .validation_loss = evaluation.loss,
                               .validation_accuracy = evaluation.accuracy,
                               .seconds = seconds,
                               .images_per_s = (double)(p->sample - start->sample) / seconds,
                               .data_wait_share = (cvy_loader_wait_s(t->loader) - start->wait_s) / seconds,
                               .best = best};
    if (best) {
        p->best_metric = metric;
        p->best_step = p->step;
    }
    if (p->sample == t->samples) { /* else `steps` ended within the epoch: a resumed run goes on in the middle of it */
        p->epoch++;
        p->sample = 0;
        p->epoch_loss_sum = 0.0;
        p->epoch_correct = 0;
    }
    t->result->loss = result.loss;
    t->result->train_accuracy = result.train_accuracy;
    t->result->validation_loss = evaluation.loss;
    t->result->validation_accuracy = evaluation.accuracy;
    cvy_run_folder_note_epoch(&t->folder, &result);
    if (t->observer && t->observer->epoch) {
        t->observer->epoch(t->observer->context, &result);
    }
    bool last = p->step >= t->steps_total;
    return best || last || is_checkpoint_due(t) ? save_checkpoint(t, last) : CVY_OK;
}

static cvy_status train_batch(training *t, const cvy_batch *batch)
{
    cvy_position *p = &t->position;
    cvy_schedule_kind kind = batch->samples == t->options->batch ? CVY_SCHEDULE_TRAIN : CVY_SCHEDULE_TRAIN_TAIL;
    cvy_executor_batch view = {batch->x, batch->label, batch->samples};
    cvy_executor_result result;
    cvy_run run = {.seed = t->options->seed,
                   .step = p->step,
                   .samples = batch->samples,
                   .loss_scale = 1.0 / (double)batch->samples,
                   .learning_rate = cvy_rate_at(&t->rate, (double)p->samples_total, (double)batch->samples),
                   .update = p->step + 1};
    int64_t allocations = cvy_memory_allocations();
    CVY_TRY(cvy_executor_run(t->session.executor, kind, &view, &run, &result));
    t->result->loop_allocations += cvy_memory_allocations() - allocations;
    p->step++;
    p->sample += batch->samples;
    p->samples_total += batch->samples;
    p->epoch_loss_sum += result.loss * (double)batch->samples;
    p->epoch_correct += result.correct;
    tell_progress(t, batch, &result, run.learning_rate);
    double accuracy = cvy_session_accuracy(&t->session, result.correct, batch->samples);
    cvy_run_folder_note_step(&t->folder, p, result.loss, accuracy, t->shown_rate, run.learning_rate);
    return CVY_OK;
}

static bool stop_asked(const training *t) { return t->options->stop && *t->options->stop; }

/* Batches until the epoch, the training or the user's patience ends. */
static cvy_status train_epoch(training *t)
{
    epoch_start start = {cvy_clock_s(), cvy_loader_wait_s(t->loader), t->position.sample};
    if (t->position.sample < t->samples) {
        CVY_TRY(cvy_loader_start(t->loader, (uint32_t)t->position.epoch, t->position.sample));
    }
    while (t->position.step < t->steps_total && t->position.sample < t->samples) {
        cvy_batch batch;
        if (stop_asked(t)) {
            return cvy_fail(CVY_STOPPED, "stopped by a signal after %lld steps", (long long)t->position.step);
        }
        CVY_TRY(cvy_loader_next(t->loader, &batch));
        CVY_TRY(train_batch(t, &batch));
        cvy_loader_release(t->loader, &batch);
        bool ends = t->position.step == t->steps_total || t->position.sample == t->samples;
        if (!ends && is_checkpoint_due(t)) { /* at an end finish_epoch() saves, once the epoch's line is written */
            CVY_TRY(save_checkpoint(t, false));
        }
    }
    return finish_epoch(t, &start);
}

/* ---- the whole ---- */

/* The batches that are left of the epoch must be those that the plan was made for. */
static cvy_status check_position(const training *t, const char *from)
{
    int64_t sample = t->position.sample, batch = t->options->batch;
    CVY_REQUIRE(sample == t->samples || (sample < t->samples && sample % batch == 0), CVY_ERR_INPUT,
                "%s: saved %lld samples into an epoch; a training set of %lld in batches of %lld has no batch that "
                "begins there",
                from, (long long)sample, (long long)t->samples, (long long)batch);
    return CVY_OK;
}

static cvy_status start_state(training *t)
{
    char *from = NULL;
    int skipped = 0;
    cvy_state state = *cvy_executor_state(t->session.executor);
    cvy_status status = cvy_executor_initialise(t->session.executor, t->options->seed);
    CVY_TRY_GOTO(status, done, status);
    t->position = (cvy_position){.best_metric = -HUGE_VAL,
                                 .best_step = -1,
                                 .seed = t->options->seed,
                                 .model_hash = cvy_model_hash(t->model)};
    if (t->options->weights) {
        CVY_TRY_GOTO(status, done, cvy_weights_load(t->options->weights, &state));
        cvy_executor_start_averages(t->session.executor);
    }
    if (t->options->resume) {
        CVY_TRY_GOTO(status, done, cvy_run_folder_resume(&t->folder, &state, &t->position, &from, &skipped));
        CVY_TRY_GOTO(status, done, check_position(t, from));
    }
    CVY_TRY_GOTO(status, done, cvy_run_folder_open_metrics(&t->folder, t->session.plan, &t->position));
    tell_start(t, from, skipped);
done:
    cvy_free(from);
    return status;
}

static cvy_status loop(training *t)
{
    t->start_s = t->window_s = cvy_clock_s();
    t->start_samples = t->position.samples_total;
    cvy_status status = CVY_OK;
    while (status == CVY_OK && (t->position.step < t->steps_total || t->position.sample == t->samples)) {
        status = train_epoch(t); /* a run that was stopped in the last epoch's evaluation has this one still to make */
    }
    if (status == CVY_STOPPED && t->folder.path) {
        cvy_status saved = save_checkpoint(t, true);
        status = saved != CVY_OK ? saved
                                 : cvy_fail(CVY_PREEMPTED, "stopped by a signal after %lld steps; saved %s",
                                            (long long)t->position.step, t->folder.last_checkpoint);
    }
    return status;
}

static cvy_status fill_result(training *t)
{
    cvy_train_result *r = t->result;
    double seconds = cvy_clock_s() - t->start_s;
    double training_s = fmax(seconds - t->evaluation_s, 1e-9);
    r->step = t->position.step;
    r->epoch = t->position.epoch;
    r->seconds = seconds;
    r->images_per_s = (double)(t->position.samples_total - t->start_samples) / training_s;
    r->data_wait_share = cvy_loader_wait_s(t->loader) / training_s;
    r->best_validation_accuracy = t->session.classes && t->position.best_step >= 0 ? t->position.best_metric : NAN;
    r->tensor_peak_bytes = cvy_memory_tensor_peak_bytes();
    r->tensor_plan_bytes = t->session.plan->persistent_bytes + t->session.plan->transient_bytes;
    unsigned schedules = 1u << CVY_SCHEDULE_TRAIN | 1u << CVY_SCHEDULE_TRAIN_TAIL | 1u << CVY_SCHEDULE_EVALUATE;
    return cvy_session_profile(&t->session, schedules, &r->row, &r->rows);
}

static cvy_status check_lengths(const training *t)
{
    CVY_REQUIRE(t->options->epochs > 0 || t->options->steps > 0, CVY_ERR_INPUT, "epochs or steps must be at least 1");
    bool stepped = t->options->rate == CVY_RATE_STEP || t->options->rate == CVY_RATE_EXPONENTIAL;
    CVY_REQUIRE((unsigned)t->options->rate <= CVY_RATE_POLYNOMIAL, CVY_ERR_INPUT, "no schedule of number %d",
                (int)t->options->rate);
    CVY_REQUIRE(!stepped || t->options->step_epochs > 0.0, CVY_ERR_INPUT,
                "step-epochs: expected more than 0, got %g", t->options->step_epochs);
    CVY_REQUIRE(t->options->rate != CVY_RATE_MULTISTEP || t->options->milestones, CVY_ERR_INPUT,
                "the multistep schedule needs milestones: epochs such as 30,60,80");
    CVY_REQUIRE(t->options->rate_base_size >= 0 && t->options->power >= 0.0, CVY_ERR_INPUT,
                "the base size of the learning rate and the power must not be negative, got %lld and %g",
                (long long)t->options->rate_base_size, t->options->power);
    CVY_REQUIRE(t->options->warmup_epochs >= 0.0, CVY_ERR_INPUT, "warmup-epochs: expected at least 0, got %g",
                t->options->warmup_epochs);
    return CVY_OK;
}

cvy_status cvy_train(const cvy_model *model, const cvy_train_options *options, const cvy_train_observer *observer,
                     cvy_train_result *result_out)
{
    training t = {.model = model, .options = options, .observer = observer, .result = result_out};
    *result_out = (cvy_train_result){.loss = NAN, .train_accuracy = NAN, .validation_loss = NAN,
                                     .validation_accuracy = NAN, .best_validation_accuracy = NAN};
    cvy_status status = check_lengths(&t);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_run_folder_open(options, &t.folder));
    CVY_TRY_GOTO(status, done, cvy_session_open(model, options, true, true, &t.session));
    t.samples = cvy_data_get_info(t.session.data)->count[CVY_SPLIT_TRAIN];
    t.steps_total = count_steps(&t);
    CVY_TRY_GOTO(status, done, set_rate(&t));
    CVY_TRY_GOTO(status, done, cvy_session_loader(&t.session, options, CVY_SPLIT_TRAIN, &t.loader));
    CVY_TRY_GOTO(status, done, start_state(&t));
    cvy_executor_set_timeline(t.session.executor, t.folder.timeline);
    status = loop(&t);
    if (status == CVY_OK || status == CVY_PREEMPTED || status == CVY_STOPPED) {
        cvy_status filled = fill_result(&t);
        status = filled == CVY_OK ? status : filled;
    }
done:
    status = cvy_run_folder_close(&t.folder, &t.position, result_out, status);
    cvy_loader_destroy(&t.loader);
    cvy_session_close(&t.session);
    return status;
}

void cvy_train_result_clear(cvy_train_result *result)
{
    cvy_free(result->row);
    *result = (cvy_train_result){0};
}
