/* The names that a command answers to, on its line, in files and in the environment. */
#include "base/option_name.h"

#include <string.h>

#include "base/memory.h"
#include "base/option_value.h"
#include "base/text.h"

extern char **environ;

const char *cvy_option_find_alias(const cvy_option *option, const char *before, int *length_out)
{
    const char *first = option->aliases ? option->aliases : "";
    const char *alias = before ? before + strcspn(before, " ") : first;
    alias += strspn(alias, " ");
    *length_out = (int)strcspn(alias, " ");
    return *alias ? alias : NULL;
}

static size_t count_aliases(const cvy_option *option)
{
    size_t count = 0;
    int length;
    for (const char *alias = NULL; (alias = cvy_option_find_alias(option, alias, &length));) {
        count++;
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
        count += 1 + count_aliases(o);
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

const char *cvy_option_names_nearest(const cvy_option_names *names, const char *word, int lowest_owner)
{
    int count = names->count;
    while (count > 0 && names->owner[count - 1] < lowest_owner) { /* they stand last */
        count--;
    }
    const char *cut = names->name[count];
    names->name[count] = NULL;
    const char *nearest = cvy_nearest(word, names->name);
    names->name[count] = cut;
    return nearest;
}

/* What is wrong with a variable that belongs to no option. */
static cvy_status fail_variable(const cvy_option_names *names, char *variable)
{
    char name[CVY_OPTION_NAME_TEXT], suggested[CVY_OPTION_NAME_TEXT];
    CVY_REQUIRE(strcmp(variable, "CONVOY_HELP") != 0, CVY_ERR_INPUT,
                "environment variable CONVOY_HELP belongs to no option: help is for the command line, --help");
    size_t length = 0;
    for (const char *c = variable + 7; *c; c++) { /* as options are written, to compare like with like */
        name[length++] = *c == '_' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    name[length] = '\0';
    const char *nearest = cvy_option_names_nearest(names, name, CVY_OWNER_CONFIG);
    return cvy_fail(CVY_ERR_INPUT, "environment variable %s belongs to no option%s%s", variable,
                    nearest ? "; did you mean " : "",
                    nearest ? cvy_option_print_variable(nearest, suggested, sizeof suggested) : "");
}

cvy_status cvy_options_check_environment(const cvy_option *option)
{
    cvy_status status = CVY_OK;
    cvy_option_names names;
    CVY_TRY(cvy_option_names_list(option, &names));
    for (char **entry = environ; *entry && status == CVY_OK; entry++) {
        char name[CVY_OPTION_NAME_TEXT] = "", known[CVY_OPTION_NAME_TEXT];
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
            status = fail_variable(&names, name);
        }
    }
    cvy_option_names_clear(&names);
    return status;
}
