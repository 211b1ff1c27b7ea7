/* Where a run begins, goes on and is saved. */
#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pulse.h"
#include "plan/distribution.h"
#include "runtime/sharing.h"
#include "runtime/train_internal.h"

/* The batches that are left of the epoch must be those of the plan; old checkpoints do not say what theirs were. */
static cvy_status check_position(const cvy_training *t, const char *from)
{
    int64_t sample = t->position.sample, batch = t->options->batch;
    CVY_REQUIRE(sample == t->samples || (sample < t->samples && sample % batch == 0), CVY_ERR_INPUT,
                "%s: saved %lld samples into an epoch; a training set of %lld in batches of %lld has no batch that "
                "begins there",
                from, (long long)sample, (long long)t->samples, (long long)batch);
    return CVY_OK;
}

/* Parts that a batch goes through in; 0 where no layer can tell. */
static int64_t find_micro_batches(const cvy_training *t)
{
    bool commits = false;
    for (int i = 0; i < t->model->layers; i++) {
        commits = commits || cvy_layer_kind_commits(t->model->layer[i].kind);
    }
    return commits ? cvy_max_i64(t->session.plan->options.micro_batches, 1) : 0;
}

/* Which ranks train, and how: a checkpoint says so, and goes on under any others. */
static void note_layout(cvy_training *t)
{
    const cvy_distribution *distribution = t->session.plan->options.parallel.distribution;
    if (distribution) {
        t->position.ranks = distribution->strategy.mesh.ranks;
        (void)cvy_strategy_print(&distribution->strategy, t->position.strategy);
    }
}

cvy_status cvy_training_start(cvy_training *t)
{
    char *from = NULL;
    int skipped = 0;
    cvy_state state = *cvy_executor_state(t->session.executor);
    (void)cvy_pulse_set(CVY_ACTIVITY_LOADING);
    cvy_status status = cvy_executor_initialise(t->session.executor, t->options->seed);
    CVY_TRY_GOTO(status, done, status);
    t->position = (cvy_position){.best_metric = -HUGE_VAL,
                                 .best_step = -1,
                                 .end_metric = NAN,
                                 .seed = t->options->seed,
                                 .model_hash = cvy_model_hash(t->model),
                                 .batch = t->options->batch,
                                 .micro_batches = find_micro_batches(t),
                                 .train_samples = t->samples};
    snprintf(t->position.data, sizeof t->position.data, "%s", cvy_data_kind_name(t->session.data));
    note_layout(t);
    if (t->options->weights) {
        CVY_TRY_GOTO(status, done, cvy_weights_load(t->options->weights, &state));
        cvy_executor_start_averages(t->session.executor);
    }
    if (t->options->resume) {
        CVY_TRY_GOTO(status, done, cvy_run_folder_resume(&t->folder, &state, &t->position, &from, &skipped));
        CVY_TRY_GOTO(status, done, check_position(t, from));
        if (t->position.step < t->steps_total) {
            t->position.end_metric = NAN; /* the epoch goes on */
        }
    }
    CVY_TRY_GOTO(status, done, cvy_run_folder_open_metrics(&t->folder, t->session.plan, &t->position));
    cvy_training_tell_start(t, from, skipped);
    (void)cvy_pulse_set(CVY_ACTIVITY_COMPUTING);
done:
    cvy_free(from);
    return status;
}

bool cvy_training_is_save_due(const cvy_training *t)
{
    int64_t every = t->options->checkpoint_every;
    return every > 0 ? t->position.step % every == 0 : t->position.sample == 0;
}

cvy_status cvy_training_save(cvy_training *t, bool last)
{
    double start_s = cvy_clock_s();
    if (!t->folder.path) {
        return CVY_OK;
    }
    const cvy_state *state = cvy_executor_state(t->session.executor);
    cvy_status status = cvy_state_merge_statistics(state);
    if (status == CVY_OK) {
        status = cvy_run_folder_save(&t->folder, state, &t->position, t->options->keep_checkpoints);
    }
    cvy_training_pause_clocks(t, start_s);
    if (status == CVY_OK) {
        snprintf(t->result->checkpoint, sizeof t->result->checkpoint, "%s", t->folder.last_checkpoint);
        if (t->observer && t->observer->checkpoint) {
            t->observer->checkpoint(t->observer->context, t->folder.last_checkpoint, t->position.step);
        }
    } else if (!last) {
        cvy_training_warn(t, cvy_error_message());
        return CVY_OK;
    }
    return status;
}
