/*
 * Loading verifies everything first (checksums, then keys, shapes and types of every tensor of both files) and copies
 * after; the copying cannot fail. So a state is loaded whole or not touched.
 *
 * Of many ranks the first alone reads: what it finds wrong, all hear; then it gives each tensor to all, whole, and
 * every rank keeps its part.
 */
#include "runtime/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "runtime/checkpoint_record.h"
#include "runtime/safetensors.h"
#include "runtime/sharing.h"

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
    const cvy_tensor whole = cvy_state_whole(expected);
    return cvy_safetensor_check(found, path, &whole);
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

static bool is_first(const cvy_state *state) { return cvy_comm_rank(cvy_state_comm(state)) == 0; }

/* Memory for a whole tensor, where there are ranks to give it to; one alone reads in place. */
static cvy_status make_room(const cvy_state *state, void **whole_out)
{
    *whole_out = state->sharing ? cvy_calloc((size_t)cvy_state_whole_bytes(state) + 1, 1) : NULL;
    return state->sharing && !*whole_out ? CVY_ERR_MEMORY : CVY_OK;
}

/* Copy one tensor, which has been checked. */
static cvy_status copy_tensor(const cvy_safetensors *file, const char *path, const char *name, const cvy_state *state,
                              int index, void *whole)
{
    const cvy_state_tensor *target = &state->tensor[index];
    if (!state->sharing) {
        return cvy_safetensor_read(cvy_safetensors_find(file, name), path, &target->tensor, target->data);
    }
    if (is_first(state)) {
        const cvy_tensor plain = cvy_state_whole(target);
        CVY_TRY(cvy_safetensor_read(cvy_safetensors_find(file, name), path, &plain, whole));
    }
    return cvy_state_deliver(state, index, whole);
}

/* Copy a file's tensors, which have been checked. */
static cvy_status copy_tensors(const cvy_safetensors *file, const char *path, const cvy_state *state, bool optimizer,
                               void *whole)
{
    for (int i = 0; i < state->count; i++) {
        if (state->tensor[i].optimizer == optimizer) {
            CVY_TRY(copy_tensor(file, path, state->tensor[i].name, state, i, whole));
        }
    }
    return CVY_OK;
}

/* The first rank: open the files whose paths are given, and check them. */
static cvy_status open_files(char *const *path, int files, const cvy_state *state, cvy_safetensors *file)
{
    for (int i = 0; i < files; i++) {
        CVY_TRY(cvy_safetensors_open(path[i], &file[i]));
        CVY_TRY(check_keys(&file[i], path[i], state, i == CVY_CHECKPOINT_OPTIMIZER));
    }
    return CVY_OK;
}

/* Load files; @p status is what went wrong on the first rank already. All ranks return the same. */
static cvy_status load_files(char *const *path, int files, cvy_status status, const cvy_state *state)
{
    cvy_safetensors file[CVY_CHECKPOINT_FILES] = {{0}};
    void *whole = NULL;
    if (status == CVY_OK && is_first(state)) {
        status = open_files(path, files, state, file);
    }
    status = status == CVY_OK ? make_room(state, &whole) : status;
    status = cvy_comm_agree(cvy_state_comm(state), status);
    for (int i = 0; i < files && status == CVY_OK; i++) {
        status = copy_tensors(&file[i], path[i], state, i == CVY_CHECKPOINT_OPTIMIZER, whole);
    }
    for (int i = 0; i < files; i++) {
        cvy_safetensors_close(&file[i]);
    }
    cvy_free(whole);
    return status;
}

cvy_status cvy_weights_load(const char *path, cvy_state *state)
{
    char *copy = cvy_strdup(path);
    cvy_status status = load_files(&copy, 1, copy ? CVY_OK : CVY_ERR_MEMORY, state);
    cvy_free(copy);
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

/* The first rank: see that a checkpoint is whole, and has what the state needs. */
static cvy_status check_checkpoint(const char *path, int files, cvy_checkpoint_record *record)
{
    CVY_TRY(cvy_checkpoint_verify(path, record));
    CVY_REQUIRE(files == 1 || record->file[CVY_CHECKPOINT_OPTIMIZER].present, CVY_ERR_CHECKPOINT,
                "%s: it has no %s, expected one: the optimizer of this run has state", path,
                cvy_checkpoint_file_name[CVY_CHECKPOINT_OPTIMIZER]);
    return CVY_OK;
}

cvy_status cvy_checkpoint_load(const char *path, cvy_state *state, cvy_position *position_out)
{
    cvy_checkpoint_record record = {0};
    int files = has_optimizer(state) ? CVY_CHECKPOINT_FILES : 1; /* evaluation has none, and passes it over */
    char *file_path[CVY_CHECKPOINT_FILES] = {NULL};
    cvy_status status = is_first(state) ? check_checkpoint(path, files, &record) : CVY_OK;
    for (int i = 0; i < files && status == CVY_OK; i++) {
        file_path[i] = cvy_path_join(path, cvy_checkpoint_file_name[i]);
        status = file_path[i] ? CVY_OK : CVY_ERR_MEMORY;
    }
    status = load_files(file_path, files, status, state);
    if (status == CVY_OK && state->sharing) {
        status = cvy_comm_broadcast(cvy_state_comm(state), &record.position, sizeof record.position, 0);
    }
    if (status == CVY_OK) {
        *position_out = record.position;
    }
    for (int i = 0; i < files; i++) {
        cvy_free(file_path[i]);
    }
    return status;
}

enum { NAME_BYTES = 512 };

static const char *print_average(const cvy_state_tensor *of, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "ema.%s", of->name);
    return name;
}

/* The first rank: open the file that has the averages, and check all of them. */
static cvy_status open_averages(const char *path, const cvy_state *state, char **file_path, cvy_safetensors *file)
{
    char name[NAME_BYTES];
    cvy_checkpoint_record record;
    CVY_TRY(cvy_checkpoint_verify(path, &record));
    CVY_REQUIRE(record.file[CVY_CHECKPOINT_OPTIMIZER].present, CVY_ERR_CHECKPOINT,
                "%s: it has no %s, expected one with the averages of the weights", path,
                cvy_checkpoint_file_name[CVY_CHECKPOINT_OPTIMIZER]);
    *file_path = cvy_path_join(path, cvy_checkpoint_file_name[CVY_CHECKPOINT_OPTIMIZER]);
    CVY_TRY(*file_path ? cvy_safetensors_open(*file_path, file) : CVY_ERR_MEMORY);
    for (int i = 0; i < state->count; i++) {
        cvy_state_tensor expected = state->tensor[i];
        expected.name = print_average(&state->tensor[i], name);
        CVY_TRY(expected.optimizer ? CVY_OK : check_expected(file, *file_path, &expected));
    }
    return CVY_OK;
}

cvy_status cvy_checkpoint_load_averages(const char *path, cvy_state *state)
{
    cvy_safetensors file = {0};
    char name[NAME_BYTES];
    char *file_path = NULL;
    void *whole = NULL;
    cvy_status status = is_first(state) ? open_averages(path, state, &file_path, &file) : CVY_OK;
    status = status == CVY_OK ? make_room(state, &whole) : status;
    status = cvy_comm_agree(cvy_state_comm(state), status);
    for (int i = 0; i < state->count && status == CVY_OK; i++) {
        const cvy_state_tensor *target = &state->tensor[i];
        if (!target->optimizer) {
            status = copy_tensor(&file, file_path, print_average(target, name), state, i, whole);
        }
    }
    cvy_safetensors_close(&file);
    cvy_free(file_path);
    cvy_free(whole);
    return status;
}
