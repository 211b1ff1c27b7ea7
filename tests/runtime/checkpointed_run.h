/* What the tests of checkpoints save, and how they judge what they load. */
#ifndef CVY_TESTS_CHECKPOINTED_RUN_H
#define CVY_TESTS_CHECKPOINTED_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>

#include "base/memory.h"
#include "folder.h"
#include "runtime/checkpoint.h"

/*
 * A state as a run has it: weights in blocks (3 filters, 2 channels), a depthwise weight with a leading g (4 groups),
 * a statistic, and a velocity. Sizes in memory with padding: 2x2x8x8 = 256, 3x3x8 = 72, 3, 256 elements.
 */
enum { TENSORS = 4, MOST_ELEMENTS = 256 };

typedef struct run {
    cvy_state state;
    cvy_state_tensor tensor[TENSORS];
    double memory[TENSORS][MOST_ELEMENTS]; /* holds floats, too */
} run;

static inline void init_run(run *r, cvy_dtype dtype)
{
    memset(r, 0, sizeof *r);
    const cvy_shape weight = CVY_SHAPE(3, 2, 2, 2);
    const cvy_tensor blocked = {weight, dtype, CVY_FORMAT_W_I8O8, false};
    const cvy_tensor depthwise = {CVY_SHAPE(4, 1, 1, 3, 3), dtype, CVY_FORMAT_W_G8, true};
    r->tensor[0] = (cvy_state_tensor){.name = "conv.weight", .shape = weight, .tensor = blocked};
    r->tensor[1] = (cvy_state_tensor){.name = "depthwise.weight", .shape = CVY_SHAPE(4, 1, 3, 3), .tensor = depthwise};
    r->tensor[2] = (cvy_state_tensor){.name = "bn.running_mean", .shape = CVY_SHAPE(3)};
    r->tensor[2].tensor = (cvy_tensor){CVY_SHAPE(3), dtype, CVY_FORMAT_PLAIN, false};
    r->tensor[3] = (cvy_state_tensor){.name = "momentum.conv.weight", .shape = weight, .tensor = blocked};
    r->tensor[3].optimizer = true;
    for (int i = 0; i < TENSORS; i++) {
        r->tensor[i].data = r->memory[i];
    }
    r->state = (cvy_state){.count = TENSORS, .tensor = r->tensor};
}

/* Fill the logical elements, so that padding stays zero; numbers with all bits of their type in use. */
static inline void fill_run(run *r, int salt)
{
    for (int i = 0; i < TENSORS; i++) {
        double values[MOST_ELEMENTS];
        const cvy_tensor plain = {r->tensor[i].shape, CVY_F64, CVY_FORMAT_PLAIN, false};
        int64_t elements = cvy_shape_elements(&plain.shape);
        for (int64_t k = 0; k < elements; k++) {
            values[k] = sin((double)(salt * 1000 + i * 100 + k)) * pow(10, (double)(k % 20 - 10));
        }
        values[0] = -0.0;
        assert_int_equal(cvy_tensor_copy(&plain, values, &r->tensor[i].tensor, r->memory[i]), CVY_OK);
    }
}

static inline cvy_position position_at(int64_t step)
{
    return (cvy_position){.step = step, .epoch = 2, .sample = 37, .samples_total = INT64_C(1) << 60,
                          .epoch_loss_sum = 1.0 / 3, .epoch_correct = 5, .best_metric = -HUGE_VAL, .best_step = -1,
                          .end_metric = 0.1, .batch = 48, .micro_batches = 3, .train_samples = INT64_C(1) << 50,
                          .data = "cifar100",
                          .seed = UINT64_MAX, .model_hash = UINT64_C(0x8000000000000001)};
}

static inline void save(const char *folder, const run *r, int64_t step)
{
    cvy_position position = position_at(step);
    if (cvy_checkpoint_save(folder, &r->state, &position) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static inline void assert_run_equal(const run *a, const run *b)
{
    assert_memory_equal(a->memory, b->memory, sizeof a->memory);
}

/* Load a checkpoint that must be refused: the words name what is wrong, and no tensor has changed. */
static inline void assert_refused(const char *path, run *r, const char *file, const char *words)
{
    static run before;
    before = *r;
    cvy_position position = position_at(77);
    cvy_status status = cvy_checkpoint_load(path, &r->state, &position);
    if (status != CVY_ERR_CHECKPOINT || !strstr(cvy_error_message(), file) || !strstr(cvy_error_message(), words)) {
        fail_msg("expected a refusal with %s and \"%s\", got %s: %s", file, words, cvy_status_name(status),
                 cvy_error_message());
    }
    assert_run_equal(r, &before);
    assert_int_equal(position.step, 77);
}

static inline int count_entries(const char *folder)
{
    int count = -2; /* . and .. */
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    while (readdir(stream)) {
        count++;
    }
    closedir(stream);
    return count;
}

/* The newest whole checkpoint is that of a step, so many being passed over. */
static inline void assert_found(const char *folder, const char *name, int skipped)
{
    char *path = NULL;
    int passed = -1;
    if (cvy_checkpoint_find(folder, &path, &passed) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    assert_string_equal(path, test_path(folder, name));
    assert_int_equal(passed, skipped);
    cvy_free(path);
}

#endif
