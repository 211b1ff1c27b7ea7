/*
 * Saving: everything goes into FOLDER/step-NNNNNNNN.tmp-PID, each file is synced, then the folder, then it is renamed
 * and FOLDER is synced. A process that dies at any moment leaves the older checkpoints whole, and at most a folder
 * whose name says that it is not one; cvy_checkpoint_prune() clears it away.
 *
 * Of many ranks the first alone touches files; the others send it what they own, tensor by tensor, and do so to the end
 * even where it cannot write: nobody is left waiting, and all hear how it went.
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
#include "runtime/sharing.h"

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

/* Tensors of one file on their way to the first rank, in order. */
typedef struct gathering {
    const cvy_state *state;
    bool optimizer;
    int next;      /* in the state */
    void *landing; /* for what other ranks send */
} gathering;

static bool find_next(gathering *g)
{
    while (g->next < g->state->count && g->state->tensor[g->next].optimizer != g->optimizer) {
        g->next++;
    }
    return g->next < g->state->count;
}

/* On the first rank @p to gets the next tensor; NULL: nobody wants it. */
static cvy_status gather_next(void *context, void *to)
{
    gathering *g = context;
    (void)find_next(g);
    return cvy_state_collect(g->state, g->next++, g->landing, to);
}

/* What the first rank writes of a file. */
static cvy_status write_items(const char *path, gathering *g, int items, uint64_t *checksum_out)
{
    cvy_safetensor_item *item = cvy_calloc((size_t)items + 1, sizeof *item);
    if (!item) {
        return CVY_ERR_MEMORY;
    }
    int count = 0;
    bool gathers = g->state->sharing != NULL;
    for (int i = 0; i < g->state->count; i++) {
        const cvy_state_tensor *tensor = &g->state->tensor[i];
        if (tensor->optimizer == g->optimizer) {
            item[count++] = (cvy_safetensor_item){tensor->name,
                                                  tensor->shape,
                                                  gathers ? cvy_state_whole(tensor) : tensor->tensor,
                                                  tensor->data,
                                                  gathers ? gather_next : NULL,
                                                  g};
        }
    }
    cvy_status status = cvy_safetensors_write(path, item, count, file_dtype(g->state), checksum_out);
    cvy_free(item);
    return status;
}

/*
 * Write the tensors of one file; none of them: no file. All ranks take part, to the end, whatever becomes of the file:
 * @p status is what went wrong on the first rank already.
 */
static cvy_status write_tensors(const char *path, gathering *g, cvy_status status, uint64_t *checksum_out,
                                bool *present_out)
{
    int items = 0;
    for (int i = 0; i < g->state->count; i++) {
        items += g->state->tensor[i].optimizer == g->optimizer;
    }
    *present_out = items > 0 || !g->optimizer;
    if (status == CVY_OK && *present_out && cvy_comm_rank(cvy_state_comm(g->state)) == 0) {
        status = write_items(path, g, items, checksum_out);
    }
    while (g->state->sharing && find_next(g)) {
        cvy_status moved = gather_next(g, NULL);
        status = status == CVY_OK ? moved : status;
        CVY_TRY(moved == CVY_OK ? CVY_OK : status);
    }
    return status;
}

static cvy_status write_file(const char *folder, gathering *g, cvy_status status, cvy_checkpoint_file *file)
{
    struct stat info;
    int which = g->optimizer ? CVY_CHECKPOINT_OPTIMIZER : CVY_CHECKPOINT_MODEL;
    char *path = cvy_path_join(folder, cvy_checkpoint_file_name[which]);
    if (!path && status == CVY_OK) {
        status = CVY_ERR_MEMORY;
    }
    status = write_tensors(path, g, status, &file->checksum, &file->present);
    if (status == CVY_OK && file->present && cvy_comm_rank(cvy_state_comm(g->state)) == 0) {
        if (stat(path, &info) == 0) {
            file->bytes = info.st_size;
        } else {
            status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: %s", path, strerror(errno));
        }
    }
    cvy_free(path);
    return status;
}

/* Make the folder aside; what an earlier process of our number left there goes. */
static cvy_status make_aside(const char *aside)
{
    CVY_TRY(cvy_folder_remove(aside, CVY_ERR_CHECKPOINT));
    return cvy_folder_create(aside, CVY_ERR_CHECKPOINT);
}

/* Fill the folder aside. All ranks go through it to the end, whatever went wrong on the first. */
static cvy_status write_contents(const char *aside, const cvy_state *state, const cvy_position *position,
                                 void *landing)
{
    bool first = cvy_comm_rank(cvy_state_comm(state)) == 0;
    cvy_checkpoint_record record = {.position = *position};
    cvy_status status = first ? make_aside(aside) : CVY_OK;
    for (int i = 0; i < CVY_CHECKPOINT_FILES; i++) {
        gathering g = {.state = state, .optimizer = i == CVY_CHECKPOINT_OPTIMIZER, .landing = landing};
        status = write_file(aside, &g, status, &record.file[i]);
    }
    if (first && status == CVY_OK) {
        status = cvy_checkpoint_record_save(aside, &record);
    }
    return first && status == CVY_OK ? cvy_file_sync(aside, CVY_ERR_CHECKPOINT) : status;
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

/* The first rank, before anything is sent. */
static cvy_status prepare(const char *folder, const cvy_state *state)
{
    CVY_TRY(cvy_folder_create(folder, CVY_ERR_CHECKPOINT));
    return check_space(folder, state);
}

/* The first rank, once all is written, or was to be. */
static cvy_status finish(const char *folder, const char *aside, const char *path, cvy_status status)
{
    if (status == CVY_OK) {
        status = put_in_place(aside, path);
    }
    return status == CVY_OK ? cvy_file_sync(folder, CVY_ERR_CHECKPOINT) : discard(aside, status);
}

/* Memory for what other ranks send, where there are some. */
static cvy_status make_landing(const cvy_state *state, void **landing_out)
{
    int64_t bytes = cvy_state_landing_bytes(state);
    void *landing = bytes ? cvy_calloc((size_t)bytes, 1) : NULL;
    CVY_REQUIRE(landing || !bytes, CVY_ERR_MEMORY, "no memory to gather a checkpoint: %" PRId64 " bytes", bytes);
    *landing_out = landing;
    return CVY_OK;
}

cvy_status cvy_checkpoint_save(const char *folder, const cvy_state *state, const cvy_position *position)
{
    char name[NAME_BYTES];
    char aside_name[2 * NAME_BYTES];
    cvy_comm *comm = cvy_state_comm(state);
    bool first = cvy_comm_rank(comm) == 0;
    void *landing = NULL;
    CVY_REQUIRE(position->step >= 0, CVY_ERR_ARG, "a checkpoint of step %" PRId64, position->step);
    snprintf(name, sizeof name, "step-%08" PRId64, position->step);
    snprintf(aside_name, sizeof aside_name, "%s.tmp-%ld", name, (long)getpid());
    char *path = cvy_path_join(folder, name);
    char *aside = cvy_path_join(folder, aside_name);
    cvy_status status =
        path && aside ? CVY_OK : cvy_fail(CVY_ERR_MEMORY, "%s: no memory to save a checkpoint", folder);
    status = status == CVY_OK && first ? prepare(folder, state) : status;
    status = status == CVY_OK ? make_landing(state, &landing) : status;
    CVY_TRY_GOTO(status, done, cvy_comm_agree(comm, status));
    status = write_contents(aside, state, position, landing);
    status = cvy_comm_agree(comm, first ? finish(folder, aside, path, status) : status);
done:
    cvy_free(landing);
    cvy_free(path);
    cvy_free(aside);
    return status;
}

cvy_status cvy_weights_save(const char *path, const cvy_state *state)
{
    cvy_comm *comm = cvy_state_comm(state);
    gathering g = {.state = state};
    size_t bytes = strlen(path) + sizeof ".tmp";
    char *aside = cvy_calloc(bytes, 1);
    bool present;
    uint64_t checksum;
    cvy_status status = aside ? make_landing(state, &g.landing) : CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, cvy_comm_agree(comm, status));
    snprintf(aside, bytes, "%s.tmp", path);
    status = write_tensors(aside, &g, CVY_OK, &checksum, &present);
    if (cvy_comm_rank(comm) == 0) {
        status = status == CVY_OK ? cvy_file_replace(aside, path, CVY_ERR_CHECKPOINT) : status;
        if (status != CVY_OK) {
            (void)unlink(aside);
        }
    }
    status = cvy_comm_agree(comm, status);
done:
    cvy_free(g.landing);
    cvy_free(aside);
    return status;
}
