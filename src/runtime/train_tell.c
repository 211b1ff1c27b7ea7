/* What others are told of a training: the observer, the metrics in the run's folder, the caller. */
#include <math.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "runtime/train_internal.h"

void cvy_training_tell_start(cvy_training *t, const char *resumed_from, int skipped)
{
    const char *names[CVY_BUFFER_ROLE_COUNT + 1] = {NULL};
    const cvy_plan *plan = t->session.plan;
    const int ranks = cvy_comm_ranks(t->options->comm);
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
                             .ranks = ranks,
                             .strategy = t->options->strategy ? t->options->strategy : ranks > 1 ? "data" : "serial",
                             .threads = t->session.threads,
                             .cores = t->session.cores,
                             .tensor_bytes = plan->persistent_bytes + plan->transient_bytes,
                             .memory_names = names,
                             .format_changes = plan->format_changes,
                             .micro_batches = plan->schedule[CVY_SCHEDULE_TRAIN].micro_batches,
                             .recompute = cvy_recompute_name(plan->options.recompute),
                             .resumed_from = resumed_from,
                             .checkpoints_skipped = skipped};
    cvy_plan_memory(plan, start.memory_by_role);
    cvy_text places = {0};
    if (ranks > 1) {
        cvy_places_print(&t->session.places, &places);
    }
    start.places = places.data;
    t->observer->start(t->observer->context, &start);
    cvy_text_destroy(&places);
}

/* The rate that is shown is taken over about a second: of single steps it would jump. */
static void count_shown_rate(cvy_training *t, int64_t samples)
{
    double now_s = cvy_clock_s();
    t->window_samples += samples;
    if (now_s - t->window_s > 1.0 || t->shown_rate == 0.0) {
        t->shown_rate = (double)t->window_samples / fmax(now_s - t->window_s, 1e-9);
        t->window_s = now_s;
        t->window_samples = 0;
    }
}

static void tell_progress(const cvy_training *t, double loss, double accuracy, double rate)
{
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
                                   .loss = loss,
                                   .accuracy = accuracy,
                                   .learning_rate = rate,
                                   .images_per_s = t->shown_rate,
                                   .left_s = (double)left / t->shown_rate};
    t->observer->progress(t->observer->context, &progress);
}

void cvy_training_tell_step(cvy_training *t, int64_t samples, const cvy_executor_result *result, double rate)
{
    double accuracy = cvy_session_accuracy(&t->session, result->correct, samples);
    count_shown_rate(t, samples);
    tell_progress(t, result->loss, accuracy, rate);
    cvy_run_folder_note_step(&t->folder, &t->position, result->loss, accuracy, t->shown_rate, rate);
}

void cvy_training_tell_epoch(cvy_training *t, const cvy_epoch_result *epoch)
{
    t->result->loss = epoch->loss;
    t->result->train_accuracy = epoch->train_accuracy;
    t->result->validation_loss = epoch->validation_loss;
    t->result->validation_accuracy = epoch->validation_accuracy;
    cvy_run_folder_note_epoch(&t->folder, epoch);
    if (t->observer && t->observer->epoch) {
        t->observer->epoch(t->observer->context, epoch);
    }
}

void cvy_training_warn(const cvy_training *t, const char *line)
{
    if (t->observer && t->observer->warning) {
        t->observer->warning(t->observer->context, line);
    }
}

void cvy_training_pause_clocks(cvy_training *t, double start_s)
{
    double seconds = cvy_clock_s() - start_s;
    t->pause_s += seconds;
    t->window_s += seconds;
}

/* The best validation accuracy of all epochs, one that `steps` ended within among them; NAN: none. */
static double find_best_accuracy(const cvy_training *t)
{
    const cvy_position *p = &t->position;
    double best = p->end_metric > p->best_metric ? p->end_metric : p->best_metric;
    return t->session.classes && isfinite(best) ? best : NAN;
}

static int64_t find_peak(const cvy_train_result *result)
{
    int64_t bytes = 0;
    for (int i = 0; i < result->ranks; i++) {
        bytes = cvy_max_i64(bytes, result->rank[i].peak_memory_bytes);
    }
    return bytes;
}

cvy_status cvy_training_fill_result(cvy_training *t)
{
    cvy_train_result *r = t->result;
    double seconds = cvy_clock_s() - t->start_s;
    double training_s = fmax(seconds - t->pause_s, 1e-9);
    r->step = t->position.step;
    r->epoch = t->position.epoch;
    r->seconds = seconds;
    r->images_per_s = (double)(t->position.samples_total - t->start_samples) / training_s;
    r->data_wait_share = cvy_loader_wait_s(t->loader) / training_s;
    r->best_validation_accuracy = find_best_accuracy(t);
    r->tensor_peak_bytes = cvy_memory_tensor_peak_bytes();
    r->tensor_plan_bytes = t->session.plan->persistent_bytes + t->session.plan->transient_bytes;
    r->iterations = t->position.step - t->start_step;
    r->iteration_s = training_s * fmax(1.0 - r->data_wait_share, 0.0) / (double)cvy_max_i64(r->iterations, 1);
    r->threads = t->session.threads;
    unsigned schedules = 1u << CVY_SCHEDULE_TRAIN | 1u << CVY_SCHEDULE_TRAIN_TAIL | 1u << CVY_SCHEDULE_EVALUATE;
    CVY_TRY(cvy_session_profile(&t->session, schedules, NULL, &r->row, &r->rows));
    CVY_TRY(cvy_session_profile_ranks(&t->session, schedules, r->row, r->rows, r->iteration_s, &r->rank));
    r->ranks = cvy_comm_ranks(t->session.comm);
    r->peak_memory_bytes = find_peak(r); /* not read anew: it grows */
    return CVY_OK;
}
