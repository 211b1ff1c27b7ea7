/*
 * The folder of checkpoints: which there are, which is the newest whole one, which may go. A name is "step-" and at
 * least 8 digits; "step-….tmp-PID" is a save that did not end. Nothing else in the folder is ever touched.
 */
#include "runtime/checkpoint.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "runtime/checkpoint_record.h"
#include "runtime/sharing.h"

/* One entry of the folder that is ours. */
typedef struct found {
    int64_t step;
    bool broken;         /* left by a save, or a removal, that did not end */
    char name[NAME_MAX + 1];
} found;

typedef struct listing {
    found *entry;
    int count, capacity;
} listing;

/* Tell what a name is; false where it is not ours. */
static bool parse_name(const char *name, found *entry)
{
    static const char prefix[] = "step-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) {
        return false;
    }
    const char *digits = name + sizeof prefix - 1;
    size_t count = strspn(digits, "0123456789");
    if (count < 8 || count > 18) {
        return false;
    }
    const char *rest = digits + count;
    entry->broken = strncmp(rest, ".tmp-", 5) == 0 && isdigit((unsigned char)rest[5]);
    entry->step = strtoll(digits, NULL, 10);
    snprintf(entry->name, sizeof entry->name, "%s", name);
    return entry->broken || rest[0] == '\0';
}

/* Newest first. */
static int compare_steps(const void *left, const void *right)
{
    int64_t a = ((const found *)left)->step;
    int64_t b = ((const found *)right)->step;
    return a > b ? -1 : a < b;
}

static cvy_status append(listing *list, const found *entry)
{
    CVY_TRY(cvy_array_reserve(&list->entry, list->count, &list->capacity, sizeof *list->entry));
    list->entry[list->count++] = *entry;
    return CVY_OK;
}

/* List what is ours; cvy_free(list->entry), also after a failure. */
static cvy_status list_folder(const char *folder, listing *list)
{
    DIR *stream = opendir(folder);
    CVY_REQUIRE(stream, CVY_ERR_CHECKPOINT, "%s: %s", folder, strerror(errno));
    cvy_status status = CVY_OK;
    const struct dirent *item;
    while (status == CVY_OK && (item = readdir(stream)) != NULL) {
        found entry;
        if (parse_name(item->d_name, &entry)) {
            status = append(list, &entry);
        }
    }
    closedir(stream);
    if (status == CVY_OK && list->count) {
        qsort(list->entry, (size_t)list->count, sizeof *list->entry, compare_steps);
    }
    return status;
}

/* Rename first: a removal that is cut short must not leave half a folder under a checkpoint's name. */
static cvy_status remove_checkpoint(const char *folder, const found *entry)
{
    cvy_status status = CVY_OK;
    char aside_name[NAME_MAX + 16];
    snprintf(aside_name, sizeof aside_name, "%s%s", entry->name, entry->broken ? "" : ".tmp-0");
    char *path = cvy_path_join(folder, entry->name);
    char *aside = cvy_path_join(folder, aside_name);
    if (!path || !aside) {
        status = CVY_ERR_MEMORY;
    } else if (!entry->broken && (cvy_folder_remove(aside, CVY_ERR_CHECKPOINT) != CVY_OK || rename(path, aside) != 0)) {
        status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: cannot be removed: %s", path, strerror(errno));
    } else {
        status = cvy_folder_remove(aside, CVY_ERR_CHECKPOINT);
    }
    cvy_free(path);
    cvy_free(aside);
    return status;
}

cvy_status cvy_checkpoint_prune(const char *folder, int keep, int64_t newest_step, int64_t best_step)
{
    CVY_REQUIRE(keep >= 1, CVY_ERR_ARG, "checkpoints to keep: %d, expected at least 1", keep);
    listing list = {0};
    cvy_status status = list_folder(folder, &list);
    int kept = 0;
    for (int i = 0; i < list.count && status == CVY_OK; i++) {
        const found *entry = &list.entry[i];
        bool recent = !entry->broken && (entry->step > newest_step || kept++ < keep);
        if (!recent && (entry->broken || entry->step != best_step)) {
            status = remove_checkpoint(folder, entry);
        }
    }
    cvy_free(list.entry);
    return status;
}

cvy_status cvy_checkpoint_count(const char *folder, int *count_out)
{
    listing list = {0};
    int count = 0;
    cvy_status status = list_folder(folder, &list);
    for (int i = 0; i < list.count; i++) {
        count += !list.entry[i].broken;
    }
    cvy_free(list.entry);
    if (status == CVY_OK) {
        *count_out = count;
    }
    return status;
}

/* Go from the newest to the oldest until one holds. */
static cvy_status find_whole(const char *folder, const listing *list, char **path_out, int *skipped)
{
    char newest_cause[512] = "";
    for (int i = 0; i < list->count; i++) {
        if (list->entry[i].broken) {
            continue;
        }
        cvy_checkpoint_record record;
        char *path = cvy_path_join(folder, list->entry[i].name);
        cvy_status status = path ? cvy_checkpoint_verify(path, &record) : CVY_ERR_MEMORY;
        if (status == CVY_OK) {
            *path_out = path;
            return CVY_OK;
        }
        cvy_free(path);
        if (status != CVY_ERR_CHECKPOINT) {
            return status; /* says nothing about the checkpoint */
        }
        if ((*skipped)++ == 0) {
            snprintf(newest_cause, sizeof newest_cause, "%s", cvy_error_message());
        }
    }
    return *skipped ? cvy_fail(CVY_ERR_CHECKPOINT, "%s: none of its %d checkpoints is whole; of the newest: %s", folder,
                               *skipped, newest_cause)
                    : cvy_fail(CVY_ERR_CHECKPOINT, "%s: there is no checkpoint in it", folder);
}

cvy_status cvy_checkpoint_find(const char *folder, char **path_out, int *skipped_out)
{
    listing list = {0};
    int skipped = 0;
    cvy_status status = list_folder(folder, &list);
    if (status == CVY_OK) {
        status = find_whole(folder, &list, path_out, &skipped);
    }
    cvy_free(list.entry);
    if (status == CVY_OK && skipped_out) {
        *skipped_out = skipped;
    }
    return status;
}

cvy_status cvy_checkpoint_find_best(const char *folder, char **path_out)
{
    char name[32];
    cvy_checkpoint_record record;
    char *newest = NULL;
    CVY_TRY(cvy_checkpoint_find(folder, &newest, NULL));
    cvy_status status = cvy_checkpoint_record_load(newest, &record);
    if (status != CVY_OK || record.position.best_step < 0 ||
        record.position.end_metric > record.position.best_metric) {
        *path_out = newest;
        return CVY_OK;
    }
    snprintf(name, sizeof name, "step-%08" PRId64, record.position.best_step);
    char *best = cvy_path_join(folder, name);
    if (best && cvy_checkpoint_verify(best, &record) == CVY_OK) {
        cvy_free(newest);
        *path_out = best;
    } else {
        cvy_free(best);
        *path_out = newest;
    }
    return CVY_OK;
}

/* Whether FOLDER/NAME is there, a file or a folder. */
static cvy_status holds(const char *folder, const char *name, bool *holds_out)
{
    char *path = cvy_path_join(folder, name);
    if (!path) {
        return CVY_ERR_MEMORY;
    }
    *holds_out = cvy_file_exists(path) || cvy_folder_exists(path);
    cvy_free(path);
    return CVY_OK;
}

static cvy_status find_in_run(const char *run, char **path_out)
{
    char *folder = cvy_path_join(run, "checkpoints");
    cvy_status status = folder ? cvy_checkpoint_find_best(folder, path_out) : CVY_ERR_MEMORY;
    cvy_free(folder);
    return status;
}

static cvy_status resolve(const char *path, char **path_out, bool *is_file_out)
{
    static const char expected[] = "a run, its folder of checkpoints, a checkpoint or a safetensors file";
    bool is_checkpoint, is_run;
    int count = 0;
    *is_file_out = cvy_file_exists(path);
    CVY_REQUIRE(*is_file_out || cvy_folder_exists(path), CVY_ERR_CHECKPOINT, "%s: there is nothing of that name; "
                "expected %s", path, expected);
    if (!*is_file_out) {
        CVY_TRY(holds(path, "state.json", &is_checkpoint));
        CVY_TRY(holds(path, "checkpoints", &is_run));
        CVY_TRY(cvy_checkpoint_count(path, &count));
        CVY_REQUIRE(is_checkpoint || is_run || count, CVY_ERR_CHECKPOINT, "%s: no checkpoint in it; expected %s", path,
                    expected);
        if (!is_checkpoint) {
            return is_run ? find_in_run(path, path_out) : cvy_checkpoint_find(path, path_out, NULL);
        }
    }
    *path_out = cvy_strdup(path);
    return *path_out ? CVY_OK : CVY_ERR_MEMORY;
}

cvy_status cvy_checkpoint_resolve(const char *path, cvy_comm *comm, char **path_out, bool *is_file_out)
{
    int is_file = 0;
    char *answer = NULL;
    cvy_status status = CVY_OK;
    if (cvy_comm_rank(comm) == 0) {
        bool file = false;
        status = resolve(path, &answer, &file);
        is_file = file;
    }
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(cvy_sharing_tell(comm, &answer, &is_file));
    *path_out = answer;
    *is_file_out = is_file != 0;
    return CVY_OK;
}
