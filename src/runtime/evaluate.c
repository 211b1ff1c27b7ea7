/*
 * Evaluation: running statistics, every sample of the test split once; samples that fill up the last batch count
 * nothing.
 */
#include <math.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pulse.h"
#include "runtime/checkpoint.h"
#include "runtime/lookout.h"
#include "runtime/session.h"

static void tell_progress(const cvy_train_observer *observer, const cvy_evaluation *so_far, int64_t total,
                          double start_s)
{
    if (!observer || !observer->progress) {
        return;
    }
    double seconds = cvy_clock_s() - start_s;
    double rate = seconds > 0.0 ? (double)so_far->samples / seconds : 0.0;
    cvy_train_progress progress = {.sample = so_far->samples,
                                   .samples = total,
                                   .loss = so_far->loss / (double)so_far->samples,
                                   .accuracy = so_far->accuracy,
                                   .images_per_s = rate,
                                   .left_s = rate > 0.0 ? (double)(total - so_far->samples) / rate : 0.0};
    observer->progress(observer->context, &progress);
}

/* One batch of all ranks; where this rank has none to give, it says why, and all end together. */
static cvy_status evaluate_batch(cvy_session *session, const cvy_train_options *options, cvy_loader *loader,
                                 cvy_evaluation *sum, bool *stop_out)
{
    cvy_batch batch = {.slot = -1};
    cvy_executor_result result;
    int64_t total = cvy_data_get_info(session->data)->count[CVY_SPLIT_TEST];
    int64_t samples = cvy_min_i64(options->batch, total - sum->samples);
    (void)cvy_pulse_set(CVY_ACTIVITY_READING);
    cvy_status got = cvy_loader_next(loader, &batch);
    (void)cvy_pulse_set(CVY_ACTIVITY_EVALUATING);
    cvy_run run = {.seed = options->seed, .samples = samples, .loss_scale = 1.0};
    cvy_executor_batch view = {.x = batch.x, .label = batch.label, .samples = batch.own, .failed = got,
                               .stop = options->stop && *options->stop};
    CVY_TRY(cvy_executor_run(session->executor, CVY_SCHEDULE_EVALUATE, &view, &run, &result));
    sum->samples += samples;
    sum->correct += result.correct;
    sum->loss += result.loss;
    sum->accuracy = cvy_session_accuracy(session, sum->correct, sum->samples);
    cvy_loader_release(loader, &batch);
    *stop_out = result.stop;
    return CVY_OK;
}

static cvy_status evaluate_batches(cvy_session *session, const cvy_train_options *options, cvy_loader *loader,
                                   const cvy_train_observer *observer, cvy_evaluation *sum)
{
    int64_t total = cvy_data_get_info(session->data)->count[CVY_SPLIT_TEST];
    double start_s = cvy_clock_s();
    while (sum->samples < total) {
        bool stop;
        CVY_TRY(evaluate_batch(session, options, loader, sum, &stop));
        tell_progress(observer, sum, total, start_s);
        if (stop) {
            return cvy_fail(CVY_STOPPED, "stopped by a signal during evaluation");
        }
    }
    return CVY_OK;
}

cvy_status cvy_session_evaluate(cvy_session *session, const cvy_train_options *options,
                                const cvy_train_observer *observer, cvy_evaluation *evaluation_out)
{
    cvy_evaluation sum = {0};
    cvy_loader *loader = NULL;
    double start_s = cvy_clock_s();
    cvy_activity before = cvy_pulse_set(CVY_ACTIVITY_EVALUATING);
    cvy_status status = cvy_session_loader(session, options, CVY_SPLIT_TEST, &loader);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_loader_start(loader, 0, 0));
    CVY_TRY_GOTO(status, done, evaluate_batches(session, options, loader, observer, &sum));
    sum.loss = sum.samples ? sum.loss / (double)sum.samples : NAN;
    sum.accuracy = sum.samples ? cvy_session_accuracy(session, sum.correct, sum.samples) : NAN;
    sum.seconds = cvy_clock_s() - start_s;
    sum.images_per_s = sum.seconds > 0.0 ? (double)sum.samples / sum.seconds : 0.0;
    *evaluation_out = sum;
done:
    cvy_loader_destroy(&loader);
    (void)cvy_pulse_set(before);
    return status;
}

static cvy_status load_checkpoint(const char *path, cvy_state *state, const cvy_model *model, bool averages)
{
    cvy_position position;
    CVY_TRY(cvy_checkpoint_load(path, state, &position));
    CVY_REQUIRE(position.model_hash == cvy_model_hash(model), CVY_ERR_CHECKPOINT,
                "%s: saved from another model than %s", path, cvy_model_name(model));
    return averages ? cvy_checkpoint_load_averages(path, state) : CVY_OK;
}

static cvy_status load_weights(const char *from, const cvy_session *session, const cvy_model *model, bool averages)
{
    bool is_file;
    char *path = NULL;
    cvy_state state = *cvy_executor_state(session->executor);
    CVY_TRY(cvy_checkpoint_resolve(from, session->comm, &path, &is_file));
    cvy_status status =
        is_file ? cvy_weights_load(path, &state) : load_checkpoint(path, &state, model, averages);
    cvy_free(path);
    return status;
}

static cvy_status evaluate(const cvy_model *model, const char *checkpoint, const cvy_train_options *options,
                           const cvy_train_observer *observer, cvy_evaluation *evaluation_out)
{
    cvy_session session;
    cvy_status status = cvy_session_open(model, options, observer, false, true, &session);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, load_weights(checkpoint, &session, model, options->ema > 0.0));
    CVY_TRY_GOTO(status, done, cvy_session_evaluate(&session, options, observer, evaluation_out));
done:
    cvy_session_close(&session);
    return status;
}

cvy_status cvy_evaluate(const cvy_model *model, const char *checkpoint, const cvy_train_options *options,
                        const cvy_train_observer *observer, cvy_evaluation *evaluation_out)
{
    cvy_lookout lookout;
    cvy_status status = cvy_lookout_start(model, options, observer, &lookout);
    if (status == CVY_OK) {
        status = evaluate(model, checkpoint, options, observer, evaluation_out);
    }
    return cvy_lookout_stop(&lookout, status);
}
