/* The folder of a run: made before the first step, so that what cannot be written is known before hours are spent. */
#include "runtime/run_folder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "runtime/run_folder_lock.h"
#include "runtime/sharing.h"

/* Steps of a schedule, its phases and the iteration itself: room for so many slices an iteration, generously. */
enum { SLICES_AN_ITERATION = 4096 };

/* A run that ended before its first checkpoint has nothing to go on from: its folder may be begun in again. */
static cvy_status check_checkpoints(const char *path, bool resume, const cvy_run_folder *folder)
{
    int count = 0;
    CVY_TRY(cvy_checkpoint_count(folder->checkpoints, &count));
    CVY_REQUIRE(count > 0 || !resume, CVY_ERR_CHECKPOINT,
                "%s: there is no checkpoint in it; begin the run anew, with --out %s", folder->checkpoints, path);
    CVY_REQUIRE(count == 0 || resume, CVY_ERR_INPUT,
                "%s: holds a run already; go on with --resume %s, or name another folder", path, path);
    return CVY_OK;
}

static bool is_first(const cvy_run_folder *folder) { return cvy_comm_rank(folder->comm) == 0; }

static cvy_status open_folder(const char *path, bool resume, cvy_run_folder *folder)
{
    folder->path = cvy_strdup(path);
    folder->checkpoints = cvy_path_join(path, "checkpoints");
    if (!folder->path || !folder->checkpoints) {
        return CVY_ERR_MEMORY;
    }
    if (!is_first(folder)) {
        return CVY_OK;
    }
    CVY_REQUIRE(!resume || cvy_folder_exists(folder->checkpoints), CVY_ERR_INPUT,
                "%s: no run to resume there: it has no folder checkpoints", path);
    if (!resume) {
        CVY_TRY(cvy_folder_create(folder->checkpoints, CVY_ERR_IO));
    }
    CVY_TRY(cvy_run_folder_lock(path, &folder->lock));
    return check_checkpoints(path, resume, folder);
}

static cvy_status open_files(const cvy_train_options *options, cvy_run_folder *folder_out)
{
    CVY_REQUIRE(!options->out || !options->resume || strcmp(options->out, options->resume) == 0, CVY_ERR_INPUT,
                "out and resume name two folders, %s and %s: a resumed run stays in its own", options->out,
                options->resume);
    if (options->timeline && is_first(folder_out)) {
        int64_t slices = (options->timeline_steps > 0 ? options->timeline_steps : 1) * SLICES_AN_ITERATION;
        CVY_TRY(cvy_file_check_writable(options->timeline, CVY_ERR_IO));
        cvy_status status = cvy_timeline_create(options->timeline, slices, &folder_out->timeline);
        if (status != CVY_OK) {
            return cvy_fail_within(status, "a timeline of %" PRId64 " iterations", options->timeline_steps);
        }
    }
    const char *path = options->resume ? options->resume : options->out;
    return path ? open_folder(path, options->resume != NULL, folder_out) : CVY_OK;
}

cvy_status cvy_run_folder_open(const cvy_train_options *options, cvy_run_folder *folder_out)
{
    *folder_out = (cvy_run_folder){.comm = options->comm, .lock = -1, .without_rates = options->no_metrics_rates};
    return cvy_comm_agree(folder_out->comm, open_files(options, folder_out));
}

static cvy_status check_number(const char *from, const char *what, int64_t found, int64_t wanted)
{
    CVY_REQUIRE(found == 0 || found == wanted, CVY_ERR_INPUT,
                "%s: saved with %s %" PRId64 ", this run has %" PRId64 ": a run keeps what makes a step", from, what,
                found, wanted);
    return CVY_OK;
}

/* See that a checkpoint is one of the run that is to go on. */
static cvy_status check_found(const char *from, const cvy_position *found, const cvy_position *wanted)
{
    CVY_REQUIRE(found->model_hash == wanted->model_hash, CVY_ERR_CHECKPOINT,
                "%s: saved from another model than the one given", from);
    CVY_REQUIRE(found->seed == wanted->seed, CVY_ERR_INPUT, "%s: saved with seed %" PRIu64 ", this run has %" PRIu64,
                from, found->seed, wanted->seed);
    CVY_REQUIRE(!found->data[0] || strcmp(found->data, wanted->data) == 0, CVY_ERR_INPUT,
                "%s: saved with data of kind %s, this run has %s: a run keeps what makes a step", from,
                found->data, wanted->data);
    CVY_TRY(check_number(from, "batch", found->batch, wanted->batch));
    CVY_TRY(check_number(from, "micro-batches", found->micro_batches, wanted->micro_batches));
    return check_number(from, "train-samples", found->train_samples, wanted->train_samples);
}

cvy_status cvy_run_folder_resume(const cvy_run_folder *folder, cvy_state *state, cvy_position *position,
                                 char **from_out, int *skipped_out)
{
    cvy_position found;
    cvy_status status = is_first(folder) ? cvy_checkpoint_find(folder->checkpoints, from_out, skipped_out) : CVY_OK;
    CVY_TRY(cvy_comm_agree(folder->comm, status));
    CVY_TRY(cvy_sharing_tell(folder->comm, from_out, skipped_out));
    CVY_TRY(cvy_checkpoint_load(*from_out, state, &found));
    CVY_TRY(cvy_comm_agree(folder->comm, check_found(*from_out, &found, position)));
    found.batch = position->batch;
    found.micro_batches = position->micro_batches;
    found.train_samples = position->train_samples;
    found.ranks = position->ranks;
    memcpy(found.data, position->data, sizeof found.data);
    memcpy(found.strategy, position->strategy, sizeof found.strategy);
    *position = found;
    return CVY_OK;
}

static cvy_status open_metrics(cvy_run_folder *folder, const cvy_plan *plan, const cvy_position *position)
{
    char *plan_path = cvy_path_join(folder->path, "plan.yaml");
    char *metrics_path = cvy_path_join(folder->path, "metrics.jsonl");
    cvy_status status = plan_path && metrics_path ? CVY_OK : CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_plan_save(plan, plan_path));
    bool within = position->sample > 0 && isnan(position->end_metric);
    CVY_TRY_GOTO(status, done,
                 cvy_metrics_open(metrics_path, position->step > 0 ? position->step : -1, within, &folder->metrics));
    cvy_metrics_line line = CVY_METRICS_LINE_INIT;
    line.event = "start";
    line.step = position->step;
    line.epoch = position->epoch;
    line.text_key = "model";
    line.text = cvy_model_name(plan->model);
    status = cvy_metrics_add(folder->metrics, &line);
done:
    cvy_free(plan_path);
    cvy_free(metrics_path);
    return status;
}

cvy_status cvy_run_folder_open_metrics(cvy_run_folder *folder, const cvy_plan *plan, const cvy_position *position)
{
    if (!folder->path) {
        return CVY_OK;
    }
    return cvy_comm_agree(folder->comm, is_first(folder) ? open_metrics(folder, plan, position) : CVY_OK);
}

/* Note a checkpoint that was saved, and remove those that are not kept. */
static cvy_status note_saved(cvy_run_folder *folder, const cvy_position *position, int keep)
{
    char name[48]; /* within the run: metrics of two runs alike are alike, wherever their folders lie */
    snprintf(name, sizeof name, "checkpoints/step-%08" PRId64, position->step);
    cvy_metrics_line line = CVY_METRICS_LINE_INIT;
    line.event = "checkpoint";
    line.step = position->step;
    line.epoch = position->epoch;
    line.text_key = "checkpoint";
    line.text = name;
    CVY_TRY(cvy_metrics_add(folder->metrics, &line));
    return cvy_checkpoint_prune(folder->checkpoints, keep, position->step, position->best_step);
}

cvy_status cvy_run_folder_save(cvy_run_folder *folder, const cvy_state *state, const cvy_position *position, int keep)
{
    if (folder->metrics) {
        (void)cvy_metrics_flush(folder->metrics); /* a run killed right after the save goes on and misses no line */
    }
    CVY_TRY(cvy_checkpoint_save(folder->checkpoints, state, position));
    snprintf(folder->last_checkpoint, sizeof folder->last_checkpoint, "%s/step-%08" PRId64, folder->checkpoints,
             position->step);
    return cvy_comm_agree(folder->comm, is_first(folder) ? note_saved(folder, position, keep) : CVY_OK);
}

static double find_rate(const cvy_run_folder *folder, double images_per_s)
{
    return folder->without_rates ? NAN : images_per_s;
}

void cvy_run_folder_note_step(cvy_run_folder *folder, const cvy_position *position, double loss, double accuracy,
                              double images_per_s, double learning_rate)
{
    if (!folder->metrics) {
        return;
    }
    cvy_metrics_line line = CVY_METRICS_LINE_INIT;
    line.event = "step";
    line.step = position->step;
    line.epoch = position->epoch;
    line.loss = loss;
    line.train_accuracy = accuracy;
    line.images_per_s = find_rate(folder, images_per_s);
    line.learning_rate = learning_rate;
    (void)cvy_metrics_add(folder->metrics, &line); /* a full disk must not end a training: close tells */
}

void cvy_run_folder_note_epoch(cvy_run_folder *folder, const cvy_epoch_result *result)
{
    if (!folder->metrics) {
        return;
    }
    cvy_metrics_line line = CVY_METRICS_LINE_INIT;
    line.event = "epoch";
    line.step = result->step;
    line.epoch = result->epoch;
    line.loss = result->loss;
    line.images_per_s = find_rate(folder, result->images_per_s);
    line.train_accuracy = result->train_accuracy;
    line.validation_accuracy = result->validation_accuracy;
    line.validation_loss = result->validation_loss;
    (void)cvy_metrics_add(folder->metrics, &line);
}

static void note_end(cvy_run_folder *folder, const cvy_position *position, const cvy_train_result *result,
                     cvy_status status)
{
    cvy_metrics_line line = CVY_METRICS_LINE_INIT;
    line.event = "end";
    line.step = position->step;
    line.epoch = position->epoch;
    line.loss = result->loss;
    line.images_per_s = find_rate(folder, result->images_per_s);
    line.train_accuracy = result->train_accuracy;
    line.validation_accuracy = result->validation_accuracy;
    line.validation_loss = result->validation_loss;
    line.text_key = "status";
    line.text = status == CVY_OK ? "done" : cvy_status_name(status);
    (void)cvy_metrics_add(folder->metrics, &line);
}

cvy_status cvy_run_folder_close(cvy_run_folder *folder, const cvy_position *position, const cvy_train_result *result,
                                cvy_status status)
{
    char words[1024]; /* what closing says must not hide why the run ended */
    snprintf(words, sizeof words, "%s", cvy_error_message());
    if (folder->metrics) {
        note_end(folder, position, result, status);
    }
    cvy_status metrics = cvy_metrics_close(&folder->metrics);
    cvy_status timeline = cvy_timeline_close(&folder->timeline);
    if (folder->path) { /* else it was never opened, and `lock` says nothing */
        cvy_run_folder_unlock(&folder->lock);
    }
    cvy_free(folder->path);
    cvy_free(folder->checkpoints);
    folder->path = folder->checkpoints = NULL;
    if (status != CVY_OK) { /* of all ranks: they come here with one status */
        return cvy_fail(status, "%s", words);
    }
    return cvy_comm_agree(folder->comm, metrics != CVY_OK ? metrics : timeline);
}
