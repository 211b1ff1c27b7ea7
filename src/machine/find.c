/*
 * Machines by name. There is no register of them: a machine is a file NAME.yaml in one of three folders, and the one
 * that this program runs on. The folder beside the program comes first, so that an installed tree may be moved; then
 * the source tree, so that a build is of one piece whatever was installed before.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "machine/internal.h"

static const char EXTENSION[] = ".yaml";

/* share/convoy/machines beside the folder of the program; empty where the system does not say what runs. */
static void find_beside_program(char folder[PATH_MAX + 40])
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    folder[0] = '\0';
    if (length > 0) {
        program[length] = '\0';
        char *end = strrchr(program, '/');
        *(end ? end : program) = '\0';
        snprintf(folder, PATH_MAX + 40, "%s/../share/convoy/machines", program);
    }
}

void cvy_machine_names_clear(cvy_machine_names *names)
{
    for (int i = 0; i < names->count; i++) {
        cvy_free(names->entry[i].name);
        cvy_free(names->entry[i].path);
        cvy_free(names->entry[i].summary);
    }
    cvy_free(names->entry);
    *names = (cvy_machine_names){0};
}

static cvy_machine_entry *find_entry(const cvy_machine_names *names, const char *name)
{
    for (int i = 0; i < names->count; i++) {
        if (strcmp(names->entry[i].name, name) == 0) {
            return &names->entry[i];
        }
    }
    return NULL;
}

static cvy_status add_entry(cvy_machine_names *names, const char *name, const char *folder, const char *file)
{
    CVY_TRY(cvy_array_reserve(&names->entry, names->count, &names->capacity, sizeof *names->entry));
    cvy_machine_entry *entry = &names->entry[names->count++];
    *entry = (cvy_machine_entry){.name = cvy_strdup(name), .path = folder ? cvy_path_join(folder, file) : NULL};
    return entry->name && (entry->path || !folder) ? CVY_OK : CVY_ERR_MEMORY;
}

/* The names in a folder that are new; a folder that is not there has none. */
static cvy_status add_folder(cvy_machine_names *names, const char *folder)
{
    cvy_status status = CVY_OK;
    DIR *directory = *folder ? opendir(folder) : NULL;
    for (struct dirent *file; directory && status == CVY_OK && (file = readdir(directory));) {
        char name[sizeof file->d_name];
        size_t length = strlen(file->d_name);
        if (length <= strlen(EXTENSION) || strcmp(file->d_name + length - strlen(EXTENSION), EXTENSION) != 0) {
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)(length - strlen(EXTENSION)), file->d_name);
        if (name[0] != '.' && !find_entry(names, name)) {
            status = add_entry(names, name, folder, file->d_name);
        }
    }
    if (directory) {
        closedir(directory);
    }
    return status;
}

static int compare_names(const void *a, const void *b)
{
    const cvy_machine_entry *first = a, *second = b;
    return strcmp(first->name, second->name);
}

/* Names and paths, `here` first. */
static cvy_status find_names(cvy_machine_names *names)
{
    char beside[PATH_MAX + 40];
    find_beside_program(beside);
    CVY_TRY(add_entry(names, CVY_MACHINE_HERE, NULL, NULL));
    CVY_TRY(add_folder(names, beside));
    CVY_TRY(add_folder(names, CVY_MACHINES_SOURCE));
    CVY_TRY(add_folder(names, CVY_MACHINES_INSTALLED));
    qsort(names->entry + 1, (size_t)names->count - 1, sizeof *names->entry, compare_names);
    return CVY_OK;
}

static cvy_status open_here(cvy_machine **machine_out)
{
    cvy_machine *machine = cvy_calloc(1, sizeof *machine);
    if (!machine) {
        return CVY_ERR_MEMORY;
    }
    cvy_machine_get_local(machine);
    *machine_out = machine;
    return CVY_OK;
}

static cvy_status summarise(cvy_machine_entry *entry)
{
    cvy_machine *machine = NULL;
    cvy_status status = entry->path ? cvy_machine_load(entry->path, &machine) : open_here(&machine);
    if (status == CVY_ERR_MEMORY) {
        return status;
    }
    entry->summary = cvy_strdup(machine ? machine->summary : cvy_error_message());
    cvy_machine_destroy(&machine);
    return entry->summary ? CVY_OK : CVY_ERR_MEMORY;
}

cvy_status cvy_machine_list(cvy_machine_names *names_out)
{
    cvy_status status;
    cvy_machine_names names = {0};
    CVY_TRY_GOTO(status, done, find_names(&names));
    for (int i = 0; i < names.count; i++) {
        CVY_TRY_GOTO(status, done, summarise(&names.entry[i]));
    }
    *names_out = names;
    names = (cvy_machine_names){0};
done:
    cvy_machine_names_clear(&names);
    return status;
}

static cvy_status fail_name(const cvy_machine_names *names, const char *name)
{
    char word[CVY_WORD_TEXT], list[400];
    const char **words = cvy_calloc((size_t)names->count + 1, sizeof *words);
    if (!words) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < names->count; i++) {
        words[i] = names->entry[i].name;
    }
    const char *nearest = cvy_nearest(name, words);
    cvy_print_word(name, word);
    cvy_status status =
        nearest ? cvy_fail(CVY_ERR_INPUT, "no machine '%s'; did you mean '%s'?", word, nearest)
                : cvy_fail(CVY_ERR_INPUT, "no machine '%s', expected a file or one of %s", word,
                           cvy_print_words(words, list, sizeof list));
    cvy_free(words);
    return status;
}

static cvy_status fail_release(const cvy_machine *machine, const char *release)
{
    enum { MOST = CVY_MAX_EFFICIENCIES + CVY_MAX_COLLECTIVES };
    char word[CVY_WORD_TEXT], list[400];
    const char *words[MOST + 1];
    int count = 0;
    for (int i = 0; i < machine->device.efficiencies + machine->collectives; i++) { /* of one they stand together */
        const char *of = cvy_machine_get_release(machine, i);
        if (of && (count == 0 || strcmp(of, words[count - 1]) != 0)) {
            words[count++] = of;
        }
    }
    words[count] = NULL;
    return cvy_fail(CVY_ERR_INPUT, "machine %s: no release '%s', expected %s%s", machine->name,
                    cvy_print_word(release, word), count ? "one of " : "none, it tells of no software",
                    cvy_print_words(words, list, sizeof list));
}

static cvy_status open_release(const char *name, const char *release, cvy_machine **machine_out)
{
    char *before = cvy_strdup(name);
    cvy_machine *machine = NULL;
    if (!before) {
        return CVY_ERR_MEMORY;
    }
    before[release - 1 - name] = '\0';
    cvy_status status = cvy_machine_open(before, &machine);
    CVY_TRY_GOTO(status, done, status);
    status = cvy_machine_has_release(machine, release)
                 ? cvy_machine_keep(machine, release, &machine->execution.release)
                 : fail_release(machine, release);
    CVY_TRY_GOTO(status, done, status);
    *machine_out = machine;
    machine = NULL;
done:
    cvy_machine_destroy(&machine);
    cvy_free(before);
    return status;
}

cvy_status cvy_machine_open(const char *name, cvy_machine **machine_out)
{
    cvy_status status;
    const char *colon = strrchr(name, ':');
    cvy_machine_names names = {0};
    if (cvy_file_exists(name)) {
        return cvy_machine_load(name, machine_out);
    }
    if (colon) {
        return open_release(name, colon + 1, machine_out);
    }
    CVY_TRY_GOTO(status, done, find_names(&names));
    const cvy_machine_entry *entry = find_entry(&names, name);
    status = !entry ? fail_name(&names, name)
             : entry->path ? cvy_machine_load(entry->path, machine_out)
                           : open_here(machine_out);
done:
    cvy_machine_names_clear(&names);
    return status;
}
