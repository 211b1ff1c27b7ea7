/*
 * Whole trainings on the ranks that there are, and the same by one rank alone, in double: a net so small that the plain
 * kernels train it in a moment.
 */
#ifndef CVY_TESTS_RANK_TRAININGS_H
#define CVY_TESTS_RANK_TRAININGS_H

#include <math.h>

#include "comm/ranks.h"

#include "base/error.h"
#include "convoy/train.h"
#include "model/model.h"

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

static inline bool is_near(double a, double b, double tolerance) { return fabs(a - b) <= tolerance * fabs(b); }

#endif
