/*
 * Whole trainings on the ranks that there are, and the same by one rank alone, in double: a net so small that the plain
 * kernels train it in a moment. And trainings whose iterations a test walks itself.
 */
#ifndef CVY_TESTS_RANK_TRAININGS_H
#define CVY_TESTS_RANK_TRAININGS_H

#include <math.h>

#include "comm/ranks.h"

#include "base/error.h"
#include "convoy/train.h"
#include "model/model.h"
#include "runtime/session.h"

enum { MOST_STEPS = 32, MOST_EPOCHS = 4 };

/* What a training told: on the first rank alone. */
typedef struct told {
    cvy_train_start start;
    int steps, epochs;
    double loss[MOST_STEPS], rate[MOST_STEPS];
    cvy_epoch_result epoch[MOST_EPOCHS];
    cvy_train_result result; /* of every rank; rows are gone */
} told;

static inline void note_start(void *context, const cvy_train_start *start) { ((told *)context)->start = *start; }

static inline void note_step(void *context, const cvy_train_progress *progress)
{
    told *t = context;
    CHECK(t->steps < MOST_STEPS);
    t->loss[t->steps] = progress->loss;
    t->rate[t->steps++] = progress->learning_rate;
}

static inline void note_epoch(void *context, const cvy_epoch_result *epoch)
{
    told *t = context;
    CHECK(t->epochs < MOST_EPOCHS);
    t->epoch[t->epochs++] = *epoch;
}

/* conv 5x5 of 6 filters, perhaps a norm, relu, pool to 6x6, dense: on digits of 12x12. */
static inline cvy_model *make_small_model(bool norm)
{
    cvy_model *m = NULL;
    int at = 0;
    CHECK(cvy_model_create("small", &CVY_SHAPE(1, 12, 12), &m) == CVY_OK);
    CHECK(cvy_model_append(m, "conv", "conv", &at, "filters: 6, kernel: 5, padding: 2") == CVY_OK);
    CHECK(!norm || cvy_model_append(m, "batch-norm", "norm", &at, " ") == CVY_OK);
    CHECK(cvy_model_append(m, "relu", "relu", &at, " ") == CVY_OK);
    CHECK(cvy_model_append(m, "max-pool", "pool", &at, "kernel: 2") == CVY_OK);
    CHECK(cvy_model_append(m, "flatten", "flat", &at, " ") == CVY_OK);
    CHECK(cvy_model_append(m, "dense", "fc", &at, "outputs: 10") == CVY_OK);
    CHECK(cvy_model_append(m, "softmax-cross-entropy", "loss", &at, " ") == CVY_OK);
    CHECK(cvy_model_finish(m) == CVY_OK);
    return m;
}

/* 22 samples are five batches of 4, and a last one of 2. */
static inline cvy_train_options small_options(const char *strategy)
{
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    options.data = "digits";
    options.train_samples = 22;
    options.test_samples = 9;
    options.batch = 4;
    options.epochs = 2;
    options.threads = 1;
    options.learning_rate = 0.1;
    options.double_precision = true;
    options.backend = "ref";
    options.comm = world.comm;
    options.strategy = strategy;
    return options;
}

static inline void train(const cvy_model *model, const cvy_train_options *options, told *t)
{
    *t = (told){.steps = 0};
    cvy_train_observer observer = {.context = t, .start = note_start, .progress = note_step, .epoch = note_epoch};
    cvy_train_result result;
    CHECK(cvy_train(model, options, &observer, &result) == CVY_OK);
    t->result = result;
    t->result.row = NULL;
    cvy_train_result_clear(&result);
}

/* By one rank, which each is for itself. */
static inline void train_alone(const cvy_model *model, const cvy_train_options *options, told *t)
{
    cvy_train_options alone = *options;
    alone.comm = NULL;
    alone.strategy = NULL;
    train(model, &alone, t);
}

/* A training whose iterations a test makes itself. */
typedef struct walk {
    cvy_session session;
    const cvy_train_options *options;
    cvy_loader *loader;
    int64_t step;
} walk;

static inline void open_walk(const cvy_model *model, const cvy_train_options *options, walk *w)
{
    *w = (walk){.options = options};
    CHECK(cvy_session_open(model, options, NULL, true, true, &w->session) == CVY_OK);
    CHECK(cvy_executor_initialise(w->session.executor, options->seed) == CVY_OK);
    CHECK(cvy_session_loader(&w->session, options, CVY_SPLIT_TRAIN, &w->loader) == CVY_OK);
}

/* Train on whole batches, from the first samples on again where they end; returns the last loss. */
static inline double walk_on(walk *w, int64_t steps)
{
    int64_t batches = cvy_data_get_info(w->session.data)->count[CVY_SPLIT_TRAIN] / w->options->batch;
    cvy_executor_result result = {0};
    for (int64_t i = 0; i < steps; i++, w->step++) {
        cvy_batch batch;
        if (w->step % batches == 0) {
            cvy_loader_stop(w->loader);
            CHECK(cvy_loader_start(w->loader, (uint32_t)(w->step / batches), 0) == CVY_OK);
        }
        CHECK(cvy_loader_next(w->loader, &batch) == CVY_OK);
        cvy_executor_batch view = {.x = batch.x, .label = batch.label, .samples = batch.own};
        cvy_run run = {.seed = w->options->seed,
                       .step = w->step,
                       .samples = w->options->batch,
                       .loss_scale = 1.0 / (double)w->options->batch,
                       .learning_rate = w->options->learning_rate,
                       .update = w->step + 1};
        CHECK(cvy_executor_run(w->session.executor, CVY_SCHEDULE_TRAIN, &view, &run, &result) == CVY_OK);
        cvy_loader_release(w->loader, &batch);
    }
    return result.loss;
}

static inline void close_walk(walk *w)
{
    cvy_loader_destroy(&w->loader);
    cvy_session_close(&w->session);
}

static inline bool is_near(double a, double b, double tolerance) { return fabs(a - b) <= tolerance * fabs(b); }

#endif
