/*
 * The training loop. Position is counted in samples and steps, kept in every checkpoint, and all that the loop draws or
 * decides follows from it and the seed: so a run that was killed goes on bit by bit as if nothing had happened.
 */
#include <math.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pulse.h"
#include "runtime/lookout.h"
#include "runtime/sharing.h"
#include "runtime/train_internal.h"

static int64_t count_steps_an_epoch(const cvy_training *t) { return cvy_ceil_div(t->samples, t->options->batch); }

static int64_t count_steps(const cvy_training *t)
{
    return t->options->steps > 0 ? t->options->steps : t->options->epochs * count_steps_an_epoch(t);
}

/* Samples of the whole training: the last batch of an epoch may be smaller than the others. */
static double count_samples(const cvy_training *t)
{
    int64_t epochs = t->steps_total / count_steps_an_epoch(t), rest = t->steps_total % count_steps_an_epoch(t);
    return (double)epochs * (double)t->samples + (double)rest * (double)t->options->batch;
}

/* ---- epochs ---- */

/* Where this process took up an epoch: rates are of what it trained itself. */
typedef struct epoch_start {
    double clock_s, wait_s;
    int64_t sample;
} epoch_start;

/* Evaluate what was trained of the epoch, and say what came of it. */
static cvy_status evaluate_epoch(cvy_training *t, const epoch_start *start, cvy_epoch_result *result_out)
{
    const cvy_position *p = &t->position;
    cvy_evaluation evaluation = {.loss = NAN, .accuracy = NAN};
    double seconds = cvy_clock_s() - start->clock_s;
    if (cvy_data_get_info(t->session.data)->count[CVY_SPLIT_TEST] > 0) {
        double start_s = cvy_clock_s();
        cvy_loader_stop(t->loader); /* where `steps` ended it still reads ahead; both use the plan's slots */
        CVY_TRY(cvy_state_merge_statistics(cvy_executor_state(t->session.executor)));
        CVY_TRY(cvy_session_evaluate(&t->session, t->options, NULL, &evaluation));
        cvy_training_pause_clocks(t, start_s);
    }
    *result_out = (cvy_epoch_result){
        .epoch = p->epoch + 1,
        .step = p->step,
        .loss = p->epoch_loss_sum / (double)p->sample,
        .train_accuracy = cvy_session_accuracy(&t->session, p->epoch_correct, p->sample),
        .validation_loss = evaluation.loss,
        .validation_accuracy = evaluation.accuracy,
        .seconds = seconds,
        .images_per_s = (double)(p->sample - start->sample) / seconds,
        .data_wait_share = (cvy_loader_wait_s(t->loader) - start->wait_s) / seconds,
    };
    return CVY_OK;
}

/*
 * Move on to the next epoch. Not where `steps` ended within one: a resumed run goes on in the middle of it, and must
 * find all as if it had not been evaluated there.
 */
static void turn_epoch(cvy_position *p, double metric)
{
    if (metric > p->best_metric) {
        p->best_metric = metric;
        p->best_step = p->step;
    }
    p->epoch++;
    p->sample = 0;
    p->epoch_loss_sum = 0.0;
    p->epoch_correct = 0;
}

static cvy_status finish_epoch(cvy_training *t, const epoch_start *start)
{
    cvy_position *p = &t->position;
    cvy_epoch_result result;
    CVY_TRY(evaluate_epoch(t, start, &result));
    double metric = t->session.classes ? result.validation_accuracy : -result.validation_loss;
    result.best = metric > p->best_metric;
    result.whole = p->sample == t->samples;
    if (result.whole) {
        turn_epoch(p, metric);
    } else {
        p->end_metric = isnan(metric) ? -HUGE_VAL : metric;
    }
    cvy_training_tell_epoch(t, &result);
    bool last = p->step >= t->steps_total;
    return result.best || last || cvy_training_is_save_due(t) ? cvy_training_save(t, last) : CVY_OK;
}

static bool stop_asked(const cvy_training *t) { return t->options->stop && *t->options->stop; }

/* One step on a batch of all ranks; @p got says whether this one could read its share. */
static cvy_status train_batch(cvy_training *t, const cvy_batch *batch, cvy_status got)
{
    cvy_position *p = &t->position;
    int64_t samples = cvy_min_i64(t->options->batch, t->samples - p->sample);
    cvy_schedule_kind kind = samples == t->options->batch ? CVY_SCHEDULE_TRAIN : CVY_SCHEDULE_TRAIN_TAIL;
    cvy_executor_batch view = {.x = batch->x, .label = batch->label, .samples = batch->own, .failed = got,
                               .stop = stop_asked(t)};
    cvy_executor_result result;
    cvy_run run = {.seed = t->options->seed,
                   .step = p->step,
                   .samples = samples,
                   .loss_scale = 1.0 / (double)samples,
                   .learning_rate = cvy_rate_at(&t->rate, (double)p->samples_total, (double)samples),
                   .update = p->step + 1};
    int64_t allocations = cvy_memory_allocations();
    CVY_TRY(cvy_executor_run(t->session.executor, kind, &view, &run, &result));
    t->result->loop_allocations += cvy_memory_allocations() - allocations;
    p->step++;
    p->sample += samples;
    p->samples_total += samples;
    p->epoch_loss_sum += result.loss * (double)samples;
    p->epoch_correct += result.correct;
    t->stop = t->stop || result.stop;
    cvy_training_tell_step(t, samples, &result, run.learning_rate);
    return CVY_OK;
}

/* One rank alone stops as soon as it is asked; of many, all stop when all have heard of it, after a step. */
static bool is_stopping(const cvy_training *t) { return cvy_comm_ranks(t->session.comm) > 1 ? t->stop : stop_asked(t); }

/* Batches until the epoch, the training or the user's patience ends. */
static cvy_status train_epoch(cvy_training *t)
{
    epoch_start start = {cvy_clock_s(), cvy_loader_wait_s(t->loader), t->position.sample};
    if (t->position.step < t->steps_total && t->position.sample < t->samples) {
        CVY_TRY(cvy_loader_start(t->loader, (uint32_t)t->position.epoch, t->position.sample));
    }
    while (t->position.step < t->steps_total && t->position.sample < t->samples) {
        cvy_batch batch = {.slot = -1};
        if (is_stopping(t)) {
            return cvy_fail(CVY_STOPPED, "stopped by a signal after %lld steps", (long long)t->position.step);
        }
        (void)cvy_pulse_set(CVY_ACTIVITY_READING);
        cvy_status got = cvy_loader_next(t->loader, &batch);
        (void)cvy_pulse_set(CVY_ACTIVITY_COMPUTING);
        CVY_TRY(train_batch(t, &batch, got));
        cvy_loader_release(t->loader, &batch);
        bool ends = t->position.step == t->steps_total || t->position.sample == t->samples;
        if (!ends && cvy_training_is_save_due(t)) { /* at an end finish_epoch() saves, after the epoch's line */
            CVY_TRY(cvy_training_save(t, false));
        }
    }
    return finish_epoch(t, &start);
}

/* ---- the whole ---- */

/* Whether a run that was stopped in its last evaluation has this one still to make. */
static bool owes_evaluation(const cvy_training *t)
{
    const cvy_position *p = &t->position;
    bool ended_within = p->step >= t->steps_total && p->sample > 0 && isnan(p->end_metric);
    return p->sample == t->samples || ended_within;
}

static cvy_status loop(cvy_training *t)
{
    t->start_s = t->window_s = cvy_clock_s();
    t->start_samples = t->position.samples_total;
    t->start_step = t->position.step;
    cvy_status status = CVY_OK;
    while (status == CVY_OK && (t->position.step < t->steps_total || owes_evaluation(t))) {
        status = train_epoch(t);
    }
    if (status == CVY_STOPPED && t->folder.path) {
        cvy_status saved = cvy_training_save(t, true);
        status = saved != CVY_OK ? saved
                                 : cvy_fail(CVY_PREEMPTED, "stopped by a signal after %lld steps; saved %s",
                                            (long long)t->position.step, t->folder.last_checkpoint);
    }
    return status;
}

static cvy_status check_lengths(const cvy_train_options *options)
{
    CVY_REQUIRE(options->epochs > 0 || options->steps > 0, CVY_ERR_INPUT, "epochs or steps must be at least 1");
    return cvy_rate_check(options);
}

static cvy_status train(const cvy_model *model, const cvy_train_options *options, const cvy_train_observer *observer,
                        cvy_train_result *result_out)
{
    bool speaks = cvy_comm_rank(options->comm) == 0;
    cvy_training t = {.model = model, .options = options, .observer = speaks ? observer : NULL, .result = result_out};
    *result_out = (cvy_train_result){.loss = NAN, .train_accuracy = NAN, .validation_loss = NAN,
                                     .validation_accuracy = NAN, .best_validation_accuracy = NAN};
    cvy_status status = check_lengths(options);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_run_folder_open(options, &t.folder));
    CVY_TRY_GOTO(status, done, cvy_session_open(model, options, t.observer, true, true, &t.session));
    t.samples = cvy_data_get_info(t.session.data)->count[CVY_SPLIT_TRAIN];
    t.steps_total = count_steps(&t);
    CVY_TRY_GOTO(status, done, cvy_rate_setup(options, (double)t.samples, count_samples(&t), &t.rate));
    CVY_TRY_GOTO(status, done, cvy_session_loader(&t.session, options, CVY_SPLIT_TRAIN, &t.loader));
    CVY_TRY_GOTO(status, done, cvy_training_start(&t));
    cvy_executor_set_timeline(t.session.executor, t.folder.timeline);
    status = loop(&t);
    if (status == CVY_OK || status == CVY_PREEMPTED || status == CVY_STOPPED) {
        cvy_status filled = cvy_sharing_agree(options->comm, cvy_training_fill_result(&t));
        status = filled == CVY_OK ? status : filled;
    }
done:
    status = cvy_run_folder_close(&t.folder, &t.position, result_out, status);
    cvy_loader_destroy(&t.loader);
    cvy_session_close(&t.session);
    return status;
}

cvy_status cvy_train(const cvy_model *model, const cvy_train_options *options, const cvy_train_observer *observer,
                     cvy_train_result *result_out)
{
    cvy_lookout lookout;
    cvy_status status = cvy_lookout_start(model, options, observer, &lookout);
    if (status == CVY_OK) {
        status = train(model, options, observer, result_out);
    } else {
        *result_out = (cvy_train_result){.step = 0};
    }
    return cvy_lookout_stop(&lookout, status);
}

void cvy_train_result_clear(cvy_train_result *result)
{
    cvy_free(result->row);
    cvy_rank_results_destroy(&result->rank);
    *result = (cvy_train_result){0};
}
