/* The names that a command answers to, on its line, in files and in the environment. */
#include "base/option_name.h"

#include <string.h>

#include "base/memory.h"
#include "base/option_value.h"
#include "base/text.h"

extern char **environ;

static size_t count_aliases(const char *aliases)
{
    size_t count = 0;
    for (; aliases && *aliases; count++) {
        aliases += strcspn(aliases, " ");
        aliases += strspn(aliases, " ");
    }
    return count;
}

static void add_name(cvy_option_names *names, const char *name, int owner)
{
    names->name[names->count] = name;
    names->owner[names->count++] = owner;
}

void cvy_option_names_clear(cvy_option_names *names)
{
    cvy_free(names->name);
    cvy_free(names->owner);
    cvy_free(names->alias_text);
    *names = (cvy_option_names){0};
}

cvy_status cvy_option_names_list(const cvy_option *option, cvy_option_names *names)
{
    size_t count = 3, bytes = 1; /* config, help, the end */
    for (const cvy_option *o = option; o->name; o++) {
        count += 1 + count_aliases(o->aliases);
        bytes += o->aliases ? strlen(o->aliases) + 1 : 0;
    }
    *names = (cvy_option_names){.name = cvy_calloc(count, sizeof *names->name),
                                .owner = cvy_calloc(count, sizeof *names->owner),
                                .alias_text = cvy_calloc(bytes, 1)};
    if (!names->name || !names->owner || !names->alias_text) {
        cvy_option_names_clear(names);
        return CVY_ERR_MEMORY;
    }
    char *aliases = names->alias_text;
    for (int i = 0; option[i].name; i++) {
        if (option[i].type == CVY_OPTION_HEADING) {
            continue;
        }
        add_name(names, option[i].name, i);
        if (option[i].aliases) {
            char *rest = strcpy(aliases, option[i].aliases), *alias;
            aliases += strlen(aliases) + 1;
            while ((alias = strsep(&rest, " "))) {
                add_name(names, alias, i);
            }
        }
    }
    add_name(names, "config", CVY_OWNER_CONFIG);
    add_name(names, "help", CVY_OWNER_HELP);
    return CVY_OK;
}

int cvy_option_names_find(const cvy_option_names *names, const char *name, size_t length)
{
    for (int i = 0; i < names->count; i++) {
        if (strlen(names->name[i]) == length && strncmp(names->name[i], name, length) == 0) {
            return names->owner[i];
        }
    }
    return CVY_OWNER_NONE;
}

cvy_status cvy_options_check_environment(const cvy_option *option)
{
    cvy_status status = CVY_OK;
    cvy_option_names names;
    CVY_TRY(cvy_option_names_list(option, &names));
    for (char **entry = environ; *entry && status == CVY_OK; entry++) {
        char name[CVY_OPTION_NAME_TEXT] = "", known[CVY_OPTION_NAME_TEXT], variable[CVY_OPTION_NAME_TEXT];
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, "CONVOY_", 7) != 0 || length >= sizeof name) {
            continue;
        }
        memcpy(name, *entry, length);
        bool found = false;
        for (int i = 0; i < names.count && !found; i++) {
            found = names.owner[i] != CVY_OWNER_HELP &&
                    strcmp(name, cvy_option_print_variable(names.name[i], known, sizeof known)) == 0;
        }
        if (!found) {
            for (char *c = name; *c; c++) { /* as options are written, to compare like with like */
                *c = *c == '_' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
            }
            const char *nearest = cvy_nearest(name + 7, names.name);
            status = cvy_fail(CVY_ERR_INPUT, "environment variable %.*s belongs to no option%s%s", (int)length, *entry,
                              nearest ? "; did you mean " : "",
                              nearest ? cvy_option_print_variable(nearest, variable, sizeof variable) : "");
        }
    }
    cvy_option_names_clear(&names);
    return status;
}
