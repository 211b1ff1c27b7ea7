/*
 * The tables of the completion. completion.sh, which stands behind them in the script, asks them what a command takes
 * and what stands after an option, in one grammar: alternatives with '|' between, capitals for a kind of thing (FILE,
 * MODEL), any other word for itself. It is the grammar in which help shows values, so a new option needs nothing here.
 */
#include <string.h>

#include "backend/backend.h"
#include "base/option_name.h"
#include "base/option_value.h"
#include "cli/manual/pages.h"
#include "machine/machine.h"
#include "model/model.h"
#include "oracle/sweep_parameter.h"
#include "plan/mesh.h"
#if CVY_HAVE_TRAIN
#include "data/data.h"
#endif

/* ---- lists of names ---- */

static void add_commands(cvy_text *text)
{
    const cli_command *command;
    cvy_text_add(text, "_convoy_commands='");
    for (int i = 0; (command = cli_command_get(i)); i++) {
        cvy_text_add(text, "%s", command->rows ? command->name : "");
        cvy_text_add(text, "%s", command->rows ? " " : "");
    }
    cvy_text_add(text, "help'\n");
}

static void add_models(cvy_text *text)
{
    const cvy_zoo_entry *entry;
    cvy_text_add(text, "_convoy_models='");
    for (int i = 0; (entry = cvy_zoo_get(i)); i++) {
        cvy_text_add(text, "%s%s", i ? " " : "", entry->name);
    }
    cvy_text_add(text, "'\n");
}

/* Machines that are found by name. */
static void add_machines(cvy_text *text)
{
    cvy_machine_names names = {0};
    cvy_status status = cvy_machine_list(&names);
    cvy_text_add(text, "_convoy_machines='");
    for (int i = 0; status == CVY_OK && i < names.count; i++) {
        cvy_text_add(text, "%s%s", i ? " " : "", names.entry[i].name);
    }
    cvy_text_add(text, "'\n");
    cvy_machine_names_clear(&names);
}

static void add_backends(cvy_text *text)
{
    const cvy_backend *backend;
    cvy_text_add(text, "_convoy_backends='");
    for (int i = 0; (backend = cvy_backend_get(i)); i++) {
        cvy_text_add(text, "%s%s", i ? " " : "", backend->name);
    }
    cvy_text_add(text, "'\n");
}

/* What a mesh has, what a study varies, and what products are made of. */
static void add_words(cvy_text *text)
{
    cvy_text_add(text, "_convoy_axes=(");
    for (int i = 0; i < CVY_AXES; i++) {
        cvy_text_add(text, "%s%s", i ? " " : "", cvy_axis_name((cvy_axis)i));
    }
    cvy_text_add(text, ")\n_convoy_varied=(");
    for (int i = 0; i < CVY_VARIED_COUNT; i++) {
        cvy_text_add(text, "%s%s", i ? " " : "", cvy_varied_names[i]);
    }
    cvy_text_add(text, ")\n_convoy_precisions='");
    for (int i = 0; i < CVY_PRECISION_COUNT; i++) {
        cvy_text_add(text, "%s%s", i ? " " : "", cvy_precision_name((cvy_precision)i));
    }
    cvy_text_add(text, "'\n");
}

/* Kinds of data sets; of them, those that need no files. */
static void add_data(cvy_text *text)
{
    cvy_text kinds = {0}, made_up = {0};
#if CVY_HAVE_TRAIN
    const cvy_data_kind *kind;
    for (int i = 0; (kind = cvy_data_kind_get(i)); i++) {
        cvy_text_add(&kinds, "%s%s", i ? " " : "", kind->name);
        cvy_text_add(&made_up, "%s%s", kind->synthetic && made_up.length ? " " : "", kind->synthetic ? kind->name : "");
    }
#endif
    cvy_text_add(text, "_convoy_kinds='%s'\n_convoy_data='%s'\n", kinds.data ? kinds.data : "",
                 made_up.data ? made_up.data : "");
    cvy_text_destroy(&kinds);
    cvy_text_destroy(&made_up);
}

/* ---- what a command takes ---- */

static void add_aliases(const cvy_option *option, const char *before, cvy_text *text)
{
    int length;
    for (const char *alias = NULL; (alias = cvy_option_find_alias(option, alias, &length));) {
        cvy_text_add(text, "%s--%.*s", before, length, alias);
    }
}

static void add_names(const cvy_option *option, bool aliases, cvy_text *text)
{
    for (; option->name; option++) {
        if (option->type == CVY_OPTION_HEADING) {
            continue;
        }
        if (aliases) {
            add_aliases(option, " ", text);
        } else {
            cvy_text_add(text, " --%s", option->name);
        }
    }
}

/* A function that answers for each command: its options by their main names, or by their aliases. */
static void add_option_lists(const char *function, bool aliases, cvy_text *text)
{
    cvy_option option[CLI_MAX_OPTIONS];
    const cli_command *command;
    cvy_text_add(text, "%s() {\n    case $1 in\n", function);
    for (int i = 0; (command = cli_command_get(i)); i++) {
        if (command->rows) {
            cvy_text_add(text, "        %s) echo '", command->name);
            cli_select_options(command->rows, option);
            add_names(option, aliases, text);
            add_names(cvy_options_everywhere, aliases, text);
            cvy_text_add(text, "' ;;\n");
        }
    }
    cvy_text_add(text, "    esac\n}\n");
}

static void add_operands(cvy_text *text)
{
    const cli_command *command;
    cvy_text_add(text, "_convoy_operands() {\n    case $1 in\n");
    for (int i = 0; (command = cli_command_get(i)); i++) {
        if (command->rows) {
            cvy_text_add(text, "        %s) echo '%s' ;;\n", command->name, command->operands);
        }
    }
    cvy_text_add(text, "    esac\n}\n");
}

static void add_argument(const cvy_option *option, cvy_text *text)
{
    if (option->type == CVY_OPTION_HEADING || option->type == CVY_OPTION_FLAG) {
        return;
    }
    cvy_text_add(text, "        --%s", option->name);
    add_aliases(option, " | ", text);
    if (option->letter) {
        cvy_text_add(text, " | -%c", option->letter);
    }
    cvy_text_add(text, ") echo '");
    for (int i = 0; option->type == CVY_OPTION_CHOICE && option->choices[i]; i++) {
        cvy_text_add(text, "%s%s", i ? "|" : "", option->choices[i]);
    }
    cvy_text_add(text, "%s' ;;\n", option->type == CVY_OPTION_CHOICE ? "" : option->argument);
}

/* An option means the same to every command, but one may take more values than another. */
static void add_arguments(cvy_text *text)
{
    cvy_option option[CLI_MAX_OPTIONS];
    const cli_command *command;
    cvy_text_add(text, "_convoy_argument() {\n    case $1 in\n");
    for (int i = 0; (command = cli_command_get(i)); i++) {
        if (!command->rows) {
            continue;
        }
        cvy_text_add(text, "    %s) case $2 in\n", command->name);
        cli_select_options(command->rows, option);
        for (const cvy_option *o = option; o->name; o++) {
            add_argument(o, text);
        }
        for (const cvy_option *o = cvy_options_everywhere; o->name; o++) {
            add_argument(o, text);
        }
        cvy_text_add(text, "        *) return 1 ;;\n    esac ;;\n");
    }
    cvy_text_add(text, "    *) return 1 ;;\n    esac\n}\n");
}

/* ---- options of models ---- */

static void add_model_options(cvy_text *text)
{
    const cvy_zoo_entry *entry;
    cvy_text_add(text, "_convoy_model_options() {\n    case $1 in\n");
    for (int i = 0; (entry = cvy_zoo_get(i)); i++) {
        cvy_text_add(text, "        %s) echo '", entry->name);
        for (const cvy_field *field = entry->fields; field && field->name; field++) {
            cvy_text_add(text, "%s%s", field == entry->fields ? "" : " ", field->name);
        }
        cvy_text_add(text, "' ;;\n");
    }
    cvy_text_add(text, "    esac\n}\n");
}

static void add_model_values(cvy_text *text)
{
    const cvy_zoo_entry *entry;
    cvy_text_add(text, "_convoy_model_values() {\n    case $1.$2 in\n");
    for (int i = 0; (entry = cvy_zoo_get(i)); i++) {
        for (const cvy_field *field = entry->fields; field && field->name; field++) {
            if (field->type == CVY_FIELD_BOOL) {
                cvy_text_add(text, "        %s.%s) echo 'yes no' ;;\n", entry->name, field->name);
            } else if (field->type == CVY_FIELD_CHOICE) {
                cvy_text_add(text, "        %s.%s) echo '", entry->name, field->name);
                for (int k = 0; field->choices[k]; k++) {
                    cvy_text_add(text, "%s%s", k ? " " : "", field->choices[k]);
                }
                cvy_text_add(text, "' ;;\n");
            }
        }
    }
    cvy_text_add(text, "    esac\n}\n");
}

void manual_add_completion(cvy_text *text)
{
    cvy_text_add(text, "# Completion of convoy for bash, made of the tables that the program itself reads.\n\n");
    add_commands(text);
    add_models(text);
    add_machines(text);
    add_backends(text);
    add_data(text);
    add_words(text);
    cvy_text_add(text, "\n# What a command takes, and what stands after an option.\n");
    add_option_lists("_convoy_options", false, text);
    add_option_lists("_convoy_aliases", true, text);
    add_operands(text);
    add_arguments(text);
    cvy_text_add(text, "\n# The options of a model of the zoo, and the values of one of them.\n");
    add_model_options(text);
    add_model_values(text);
    cvy_text_add(text, "\n");
}
