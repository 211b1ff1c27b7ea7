/* What the tests of whole trainings share: a small one, a stop after so many steps, and how its ends are compared. */
#ifndef CVY_TESTS_SMALL_TRAINING_H
#define CVY_TESTS_SMALL_TRAINING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "convoy/train.h"
#include "folder.h"
#include "runtime/checkpoint.h"

static inline cvy_model *open_model(const char *text)
{
    cvy_model *model = NULL;
    if (cvy_model_open(text, &model) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return model;
}

static inline cvy_train_options small_options(void)
{
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    options.data = "random";
    options.train_samples = 22; /* batches of 8, 8, 6 */
    options.test_samples = 10;
    options.batch = 8;
    options.threads = 1;
    options.epochs = 2;
    return options;
}

/* Ask for a stop after so many iterations. */
typedef struct stopper {
    int after;
    volatile int stop;
} stopper;

static inline void count_down(void *context, const cvy_train_progress *progress)
{
    stopper *s = context;
    (void)progress;
    if (--s->after == 0) {
        s->stop = 1;
    }
}

static inline char *read_newest(const char *run, const char *file, size_t *bytes)
{
    char *path = NULL;
    char *data = NULL;
    char checkpoints[256];
    char full[512];
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", run);
    assert_int_equal(cvy_checkpoint_find(checkpoints, &path, NULL), CVY_OK);
    snprintf(full, sizeof full, "%s/%s", path, file);
    assert_int_equal(cvy_file_read(full, 1 << 28, CVY_ERR_IO, &data, bytes), CVY_OK);
    cvy_free(path);
    return data;
}

/* The files of the newest checkpoints of two runs are the same, byte for byte. */
static inline void require_equal_checkpoints(const char *one, const char *other)
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
    for (int i = 0; i < 2; i++) {
        size_t bytes[2];
        char *a = read_newest(one, files[i], &bytes[0]);
        char *b = read_newest(other, files[i], &bytes[1]);
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(a, b, bytes[0]);
        cvy_free(a);
        cvy_free(b);
    }
}

#endif
