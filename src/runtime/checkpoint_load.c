/*
 * Loading verifies everything first (checksums, then keys, shapes and types of every tensor of both files) and copies
 * after; the copying cannot fail. So a state is loaded whole or not touched.
 */
#include "runtime/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "runtime/checkpoint_record.h"
#include "runtime/safetensors.h"

/* PyTorch counts batches to weight running statistics when momentum is None; nothing here depends on it. */
static bool is_passed_over(const char *name)
{
    static const char ending[] = "num_batches_tracked";
    size_t length = strlen(name);
    size_t tail = sizeof ending - 1;
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

/* Check a key of the state against the file: there, of equal shape, of a type that can be read. */
static cvy_status check_expected(const cvy_safetensors *file, const char *path, const cvy_state_tensor *expected)
{
    char found_text[CVY_SHAPE_TEXT];
    char expected_text[CVY_SHAPE_TEXT];
    const cvy_safetensor *found = cvy_safetensors_find(file, expected->name);
    CVY_REQUIRE(found, CVY_ERR_CHECKPOINT, "%s: key %s is missing, expected shape %s", path, expected->name,
                cvy_shape_print(&expected->shape, expected_text));
    CVY_REQUIRE(cvy_shape_equal(&found->shape, &expected->shape), CVY_ERR_CHECKPOINT,
                "%s: %s: found shape %s, expected %s", path, expected->name, cvy_shape_print(&found->shape, found_text),
                cvy_shape_print(&expected->shape, expected_text));
    return cvy_safetensor_check(found, path, &expected->tensor);
}

/* Check that a file holds the weights, or the optimizer's part, of a state: each key once, none besides. */
static cvy_status check_keys(const cvy_safetensors *file, const char *path, const cvy_state *state, bool optimizer)
{
    int besides = file->count;
    for (int i = 0; i < state->count; i++) {
        if (state->tensor[i].optimizer == optimizer) {
            CVY_TRY(check_expected(file, path, &state->tensor[i]));
            besides--;
        }
    }
    for (int i = 0; i < file->count; i++) {
        besides -= is_passed_over(file->tensor[i].name);
    }
    for (int i = 0; i < file->count && besides; i++) { /* the key is looked for where it is known to be there */
        const char *name = file->tensor[i].name;
        const cvy_state_tensor *known = cvy_state_find(state, name);
        bool fits = known && known->optimizer == optimizer;
        CVY_REQUIRE(fits || is_passed_over(name), CVY_ERR_CHECKPOINT, "%s: key %s is none of the model's%s", path, name,
                    optimizer ? " optimizer state" : "");
    }
    return CVY_OK;
}

/* Copy a file's tensors, which have been checked. */
static cvy_status copy_tensors(const cvy_safetensors *file, const char *path, const cvy_state *state, bool optimizer)
{
    for (int i = 0; i < state->count; i++) {
        cvy_state_tensor *target = &state->tensor[i];
        if (target->optimizer == optimizer) {
            CVY_TRY(cvy_safetensor_read(cvy_safetensors_find(file, target->name), path, &target->tensor, target->data));
        }
    }
    return CVY_OK;
}

cvy_status cvy_weights_load(const char *path, cvy_state *state)
{
    cvy_safetensors file = {0};
    CVY_TRY(cvy_safetensors_open(path, &file));
    cvy_status status = check_keys(&file, path, state, false);
    if (status == CVY_OK) {
        status = copy_tensors(&file, path, state, false);
    }
    cvy_safetensors_close(&file);
    return status;
}

static bool has_optimizer(const cvy_state *state)
{
    for (int i = 0; i < state->count; i++) {
        if (state->tensor[i].optimizer) {
            return true;
        }
    }
    return false;
}

/* Open and check the files whose paths are given; then copy. */
static cvy_status load_files(char *const *path, int files, cvy_state *state)
{
    cvy_safetensors file[CVY_CHECKPOINT_FILES] = {{0}};
    cvy_status status = CVY_OK;
    for (int i = 0; i < files && status == CVY_OK; i++) {
        status = cvy_safetensors_open(path[i], &file[i]);
        if (status == CVY_OK) {
            status = check_keys(&file[i], path[i], state, i == CVY_CHECKPOINT_OPTIMIZER);
        }
    }
    for (int i = 0; i < files && status == CVY_OK; i++) {
        status = copy_tensors(&file[i], path[i], state, i == CVY_CHECKPOINT_OPTIMIZER);
    }
    for (int i = 0; i < files; i++) {
        cvy_safetensors_close(&file[i]);
    }
    return status;
}

cvy_status cvy_checkpoint_load(const char *path, cvy_state *state, cvy_position *position_out)
{
    cvy_checkpoint_record record;
    CVY_TRY(cvy_checkpoint_verify(path, &record));
    int files = has_optimizer(state) ? CVY_CHECKPOINT_FILES : 1; /* evaluation has none, and passes it over */
    CVY_REQUIRE(files == 1 || record.file[CVY_CHECKPOINT_OPTIMIZER].present, CVY_ERR_CHECKPOINT,
                "%s: it has no %s, expected one: the optimizer of this run has state", path,
                cvy_checkpoint_file_name[CVY_CHECKPOINT_OPTIMIZER]);
    char *file_path[CVY_CHECKPOINT_FILES] = {NULL};
    cvy_status status = CVY_OK;
    for (int i = 0; i < files && status == CVY_OK; i++) {
        file_path[i] = cvy_path_join(path, cvy_checkpoint_file_name[i]);
        status = file_path[i] ? CVY_OK : CVY_ERR_MEMORY;
    }
    if (status == CVY_OK) {
        status = load_files(file_path, files, state);
    }
    if (status == CVY_OK) {
        *position_out = record.position;
    }
    for (int i = 0; i < files; i++) {
        cvy_free(file_path[i]);
    }
    return status;
}

/* The average of one tensor: checked, then copied where @p copy says so. */
static cvy_status load_average(const cvy_safetensors *file, const char *path, cvy_state_tensor *target, bool copy)
{
    char name[512];
    cvy_state_tensor expected = *target;
    snprintf(name, sizeof name, "ema.%s", target->name);
    expected.name = name;
    CVY_TRY(check_expected(file, path, &expected));
    return copy ? cvy_safetensor_read(cvy_safetensors_find(file, name), path, &target->tensor, target->data) : CVY_OK;
}

cvy_status cvy_checkpoint_load_averages(const char *path, cvy_state *state)
{
    cvy_checkpoint_record record;
    cvy_safetensors file = {0};
    char *file_path = NULL;
    CVY_TRY(cvy_checkpoint_verify(path, &record));
    CVY_REQUIRE(record.file[CVY_CHECKPOINT_OPTIMIZER].present, CVY_ERR_CHECKPOINT,
                "%s: it has no %s, expected one with the averages of the weights", path,
                cvy_checkpoint_file_name[CVY_CHECKPOINT_OPTIMIZER]);
    file_path = cvy_path_join(path, cvy_checkpoint_file_name[CVY_CHECKPOINT_OPTIMIZER]);
    cvy_status status = file_path ? cvy_safetensors_open(file_path, &file) : CVY_ERR_MEMORY;
    for (int i = 0; i < 2 * state->count && status == CVY_OK; i++) { /* all are checked before one is copied */
        cvy_state_tensor *target = &state->tensor[i % state->count];
        status = target->optimizer ? CVY_OK : load_average(&file, file_path, target, i >= state->count);
    }
    cvy_safetensors_close(&file);
    cvy_free(file_path);
    return status;
}
