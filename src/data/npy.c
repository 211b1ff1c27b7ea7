/* A folder of NumPy arrays, a file each: train_x.npy, train_y.npy, test_x.npy, test_y.npy. They are mapped. */
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/array_set.h"

static const char *const stem[2] = {[CVY_SPLIT_TRAIN] = "train", [CVY_SPLIT_TEST] = "test"};
static const char *const part[2] = {"x", "y"};

/* FOLDER/train_x.npy, where it exists; else *path_out is NULL. */
static cvy_status find_file(const char *folder, int split, int which, char **path_out)
{
    char name[32];
    snprintf(name, sizeof name, "%s_%s.npy", stem[split], part[which]);
    char *path = cvy_path_join(folder, name);
    *path_out = NULL;
    if (!path) {
        return CVY_ERR_MEMORY;
    }
    if (cvy_file_exists(path)) {
        *path_out = path;
    } else {
        cvy_free(path);
    }
    return CVY_OK;
}

static bool detect_npy(const char *folder)
{
    bool found = false;
    for (int i = 0; i < 4 && !found; i++) {
        char *path;
        found = find_file(folder, i / 2, i % 2, &path) == CVY_OK && path;
        cvy_free(path);
    }
    return found;
}

static cvy_status load_pair(const char *folder, cvy_split split, cvy_array pair_out[2])
{
    char *path[2] = {NULL, NULL};
    cvy_status status;
    for (int i = 0; i < 2; i++) {
        CVY_TRY_GOTO(status, done, find_file(folder, (int)split, i, &path[i]));
    }
    CVY_REQUIRE_GOTO(status, done, !path[0] == !path[1], CVY_ERR_DATA, "%s: %s_%s.npy is missing beside %s", folder,
                     stem[split], part[path[0] ? 1 : 0], path[path[0] ? 0 : 1]);
    for (int i = 0; i < 2 && path[i]; i++) {
        CVY_TRY_GOTO(status, done, cvy_array_map(path[i], &pair_out[i]));
    }
done:
    cvy_free(path[0]);
    cvy_free(path[1]);
    return status;
}

static cvy_status open_npy(const cvy_data_options *options, cvy_data_info *info_out, void **state_out)
{
    return cvy_array_set_open(options, load_pair, info_out, state_out);
}

const cvy_data_kind cvy_data_kind_npy = {
    .name = "npy",
    .help = "train_x.npy, train_y.npy, test_x.npy, test_y.npy",
    .detect = detect_npy,
    .open = open_npy,
    .close = cvy_array_set_close,
    .read = cvy_array_set_read,
};
