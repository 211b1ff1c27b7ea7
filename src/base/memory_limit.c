/*
 * The system maps more than it has and kills whoever touches too much, and so does a container or a batch job at its
 * own limit: a batch too large must be told before. Files and words are those of the kernel's documentation:
 * filesystems/proc.rst, admin-guide/cgroup-v2.rst, admin-guide/cgroup-v1/memory.rst. A container may show its own group
 * as the root of /sys/fs/cgroup while /proc names the path that the host sees; so a folder that is not there limits
 * nothing, and the walk up to the root finds the one that is.
 */
#include "base/memory_limit.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A version of control groups: where its folders lie, and what its files are called. */
typedef struct version {
    const char *folder, *limit, *use;
    const char *inactive, *active; /* keys of memory.stat: pages of files, of the group and those below */
} version;

static const version v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                           "total_inactive_file", "total_active_file"};
static const version v2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "active_file"};

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static size_t difference(size_t a, size_t b) { return a > b ? a - b : 0; }

/* Add up the numbers behind some keys of a file of lines "key number"; false unless all are there. */
static bool sum_keys(const char *path, const char *const *key, int keys, size_t *sum_out)
{
    char line[256], name[64];
    unsigned long long number;
    size_t sum = 0;
    int found = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        bool pair = sscanf(line, "%63s %llu", name, &number) == 2;
        for (int i = 0; i < keys && pair; i++) {
            if (strcmp(name, key[i]) == 0) {
                sum += (size_t)number;
                found++;
            }
        }
    }
    if (file) {
        fclose(file);
    }
    *sum_out = sum;
    return found == keys;
}

static size_t find_system_bytes(const char *root)
{
    static const char *const keys[] = {"MemAvailable:", "SwapFree:"};
    char path[PATH_MAX];
    size_t kilobytes;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    return sum_keys(path, keys, 2, &kilobytes) ? kilobytes * 1024 : SIZE_MAX;
}

/* The number in a file of a group; false where there is none, as in "max". */
static bool read_number(const char *folder, const char *name, size_t *number_out)
{
    char path[2 * PATH_MAX];
    unsigned long long number;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    bool found = file && fscanf(file, "%llu", &number) == 1;
    if (file) {
        fclose(file);
    }
    *number_out = found ? (size_t)number : 0;
    return found;
}

static size_t find_room(const char *folder, const version *v)
{
    const char *const keys[] = {v->inactive, v->active};
    char path[2 * PATH_MAX];
    size_t limit, use, files;
    if (!read_number(folder, v->limit, &limit) || !read_number(folder, v->use, &use)) {
        return SIZE_MAX;
    }
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    (void)sum_keys(path, keys, 2, &files);
    return difference(limit, difference(use, files));
}

/* The least room of a group and of those that it lies in; @p group is "/a/b", and is cut. */
static size_t find_least_room(const char *root, const version *v, char *group)
{
    char folder[PATH_MAX];
    size_t least = SIZE_MAX;
    for (;;) {
        char *slash = strrchr(group, '/');
        bool fits = snprintf(folder, sizeof folder, "%s%s%s", root, v->folder, group) < (int)sizeof folder;
        least = smaller(least, fits ? find_room(folder, v) : SIZE_MAX);
        if (!slash) {
            return least;
        }
        *slash = '\0';
    }
}

/* Whether a list with commas has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Lines "NUMBER:CONTROLLERS:/GROUP"; version 2 has number 0 and no controllers. */
static size_t find_group_bytes(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX];
    size_t least = SIZE_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) {
            continue;
        }
        *controllers++ = '\0';
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (has_word(controllers, "memory")) {
            least = smaller(least, find_least_room(root, &v1, group));
        } else if (strcmp(line, "0") == 0 && !*controllers) {
            least = smaller(least, find_least_room(root, &v2, group));
        }
    }
    if (file) {
        fclose(file);
    }
    return least;
}

size_t cvy_memory_find_available_bytes(const char *root)
{
    return smaller(find_system_bytes(root), find_group_bytes(root));
}
