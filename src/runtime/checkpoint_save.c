/*
 * Saving: everything goes into FOLDER/step-NNNNNNNN.tmp-PID, each file is synced, then the folder, then it is renamed
 * and FOLDER is synced. A process that dies at any moment leaves the older checkpoints whole, and at most a folder
 * whose name says that it is not one; cvy_checkpoint_prune() clears it away.
 */
#include "runtime/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/checkpoint_record.h"
#include "runtime/safetensors.h"

enum { NAME_BYTES = 48, ENTRY_SLACK_BYTES = 512, FOLDER_SLACK_BYTES = 64 << 10 };

/* The type of the files: a run in double resumes to the same bits only from double. */
static cvy_dtype file_dtype(const cvy_state *state)
{
    for (int i = 0; i < state->count; i++) {
        if (state->tensor[i].tensor.dtype == CVY_F64) {
            return CVY_F64;
        }
    }
    return CVY_F32;
}

/* Word a full disk before half of the bytes are written. Header entries and blocks are allowed for roughly. */
static cvy_status check_space(const char *folder, const cvy_state *state)
{
    struct statvfs info;
    char need[CVY_UNIT_TEXT], free_text[CVY_UNIT_TEXT];
    if (statvfs(folder, &info) != 0) {
        return CVY_OK; /* not known: the writing itself will tell */
    }
    double need_bytes = FOLDER_SLACK_BYTES;
    for (int i = 0; i < state->count; i++) {
        need_bytes += ENTRY_SLACK_BYTES + (double)cvy_shape_elements(&state->tensor[i].shape) *
                                              (double)cvy_dtype_bytes(file_dtype(state));
    }
    double free_bytes = (double)info.f_bavail * (double)info.f_frsize;
    CVY_REQUIRE(free_bytes >= need_bytes, CVY_ERR_CHECKPOINT,
                "%s: the disk is full: a checkpoint needs %s, %s are free", folder, cvy_print_bytes(need_bytes, need),
                cvy_print_bytes(free_bytes, free_text));
    return CVY_OK;
}

/* Write the tensors of one file. None of them: no file. */
static cvy_status write_tensors(const char *path, const cvy_state *state, bool optimizer, uint64_t *checksum_out,
                                bool *present_out)
{
    cvy_safetensor_item *item = cvy_calloc((size_t)state->count, sizeof *item);
    if (!item) {
        return CVY_ERR_MEMORY;
    }
    int count = 0;
    for (int i = 0; i < state->count; i++) {
        const cvy_state_tensor *tensor = &state->tensor[i];
        if (tensor->optimizer == optimizer) {
            item[count++] = (cvy_safetensor_item){tensor->name, tensor->shape, tensor->tensor, tensor->data};
        }
    }
    *present_out = count > 0 || !optimizer;
    cvy_status status = CVY_OK;
    if (*present_out) {
        status = cvy_safetensors_write(path, item, count, file_dtype(state), checksum_out);
    }
    cvy_free(item);
    return status;
}

static cvy_status write_file(const char *folder, const cvy_state *state, int which, cvy_checkpoint_file *file)
{
    char *path = cvy_path_join(folder, cvy_checkpoint_file_name[which]);
    if (!path) {
        return CVY_ERR_MEMORY;
    }
    struct stat info;
    cvy_status status = write_tensors(path, state, which == CVY_CHECKPOINT_OPTIMIZER, &file->checksum, &file->present);
    if (status == CVY_OK && file->present) {
        if (stat(path, &info) == 0) {
            file->bytes = info.st_size;
        } else {
            status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: %s", path, strerror(errno));
        }
    }
    cvy_free(path);
    return status;
}

/* Fill the folder aside. */
static cvy_status write_contents(const char *aside, const cvy_state *state, const cvy_position *position)
{
    cvy_checkpoint_record record = {.position = *position};
    CVY_TRY(cvy_folder_remove(aside, CVY_ERR_CHECKPOINT)); /* of an earlier process with our number */
    CVY_TRY(cvy_folder_create(aside, CVY_ERR_CHECKPOINT));
    for (int i = 0; i < CVY_CHECKPOINT_FILES; i++) {
        CVY_TRY(write_file(aside, state, i, &record.file[i]));
    }
    CVY_TRY(cvy_checkpoint_record_save(aside, &record));
    return cvy_file_sync(aside, CVY_ERR_CHECKPOINT);
}

/*
 * Give the folder its name. Where the name is taken the two are exchanged in one step, so that a whole checkpoint
 * stands under it at every moment; the old one is then what lies aside. File systems that cannot exchange take two
 * steps.
 */
static cvy_status put_in_place(const char *aside, const char *path)
{
    if (rename(aside, path) == 0) {
        return CVY_OK;
    }
    bool taken = errno == ENOTEMPTY || errno == EEXIST;
    if (taken && renameat2(AT_FDCWD, aside, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
        (void)cvy_folder_remove(aside, CVY_ERR_CHECKPOINT); /* what stays of it, pruning clears away */
        return CVY_OK;
    }
    if (taken && (errno == EINVAL || errno == ENOSYS)) {
        CVY_TRY(cvy_folder_remove(path, CVY_ERR_CHECKPOINT));
        if (rename(aside, path) == 0) {
            return CVY_OK;
        }
    }
    return cvy_fail(CVY_ERR_CHECKPOINT, "%s: cannot rename into place: %s", path, strerror(errno));
}

/* Remove what a failed save left; the words of the first cause stay. */
static cvy_status discard(const char *aside, cvy_status status)
{
    char cause[1024];
    snprintf(cause, sizeof cause, "%s", cvy_error_message());
    (void)cvy_folder_remove(aside, CVY_ERR_CHECKPOINT);
    return cvy_fail(status, "%s", cause);
}

cvy_status cvy_checkpoint_save(const char *folder, const cvy_state *state, const cvy_position *position)
{
    char name[NAME_BYTES];
    char aside_name[2 * NAME_BYTES];
    CVY_REQUIRE(position->step >= 0, CVY_ERR_ARG, "a checkpoint of step %" PRId64, position->step);
    snprintf(name, sizeof name, "step-%08" PRId64, position->step);
    snprintf(aside_name, sizeof aside_name, "%s.tmp-%ld", name, (long)getpid());
    cvy_status status = CVY_OK;
    char *path = cvy_path_join(folder, name);
    char *aside = cvy_path_join(folder, aside_name);
    CVY_REQUIRE_GOTO(status, done, path && aside, CVY_ERR_MEMORY, "%s: no memory to save a checkpoint", folder);
    CVY_TRY_GOTO(status, done, cvy_folder_create(folder, CVY_ERR_CHECKPOINT));
    CVY_TRY_GOTO(status, done, check_space(folder, state));
    status = write_contents(aside, state, position);
    if (status == CVY_OK) {
        status = put_in_place(aside, path);
    }
    status = status == CVY_OK ? cvy_file_sync(folder, CVY_ERR_CHECKPOINT) : discard(aside, status);
done:
    cvy_free(path);
    cvy_free(aside);
    return status;
}

cvy_status cvy_weights_save(const char *path, const cvy_state *state)
{
    size_t bytes = strlen(path) + sizeof ".tmp";
    char *aside = cvy_calloc(bytes, 1);
    if (!aside) {
        return CVY_ERR_MEMORY;
    }
    snprintf(aside, bytes, "%s.tmp", path);
    bool present;
    uint64_t checksum;
    cvy_status status = write_tensors(aside, state, false, &checksum, &present);
    if (status == CVY_OK) {
        status = cvy_file_replace(aside, path, CVY_ERR_CHECKPOINT);
    }
    if (status != CVY_OK) {
        (void)unlink(aside);
    }
    cvy_free(aside);
    return status;
}
