/* The options of a command, as its parser has them: the rows of its table, with the defaults of the struct. */
#include <string.h>

#include "base/option_name.h"
#include "base/option_value.h"
#include "cli/manual/pages.h"
#include "cli/manual/scdoc.h"

/* "*-b*, *--batch* _N_[/_rank_]" */
static void add_name(const cvy_option *option, cvy_text *text)
{
    if (option->letter) {
        cvy_text_add(text, "*-%c*, ", option->letter);
    }
    cvy_text_add(text, "*--%s*", option->name);
    if (option->type != CVY_OPTION_FLAG) {
        const char *argument = option->argument ? option->argument : "VALUE";
        cvy_text_add(text, " ");
        scdoc_add_form(text, argument, strlen(argument));
    }
}

static void add_bounds(const cvy_option *option, cvy_text *text)
{
    cvy_text range = {0};
    if (option->type == CVY_OPTION_INT || option->type == CVY_OPTION_COUNT || option->type == CVY_OPTION_REAL) {
        scdoc_add_range(&range, option->minimum, option->maximum);
    }
    if (range.data) {
        cvy_text_add(text, " %s%s.", option->type == CVY_OPTION_REAL ? "A number" : "A whole number", range.data);
    }
    cvy_text_destroy(&range);
}

static void add_default(const cvy_option *option, const void *values, cvy_text *text)
{
    cvy_text value = {0};
    if (cvy_option_has_default(option, values) && cvy_option_print(option, values, &value) && value.data) {
        cvy_text_add(text, " Default: *");
        scdoc_add_plain(text, value.data);
        cvy_text_add(text, "*.");
    }
    cvy_text_destroy(&value);
}

static void add_aliases(const cvy_option *option, cvy_text *text)
{
    const char *before = " Also ";
    int length;
    for (const char *alias = NULL; (alias = cvy_option_find_alias(option, alias, &length)); before = ", ") {
        cvy_text_add(text, "%s*--%.*s*", before, length, alias);
    }
    cvy_text_add(text, "%s", option->aliases ? "." : "");
}

static void add_option(const cvy_option *option, const void *values, cvy_text *text)
{
    add_name(option, text);
    cvy_text_add(text, "\n\t");
    scdoc_add_sentence(text, option->help);
    if (option->type == CVY_OPTION_CHOICE) {
        cvy_text_add(text, " One of ");
        scdoc_add_choices(text, option->choices);
        cvy_text_add(text, ".");
    }
    add_bounds(option, text);
    add_default(option, values, text);
    add_aliases(option, text);
    cvy_text_add(text, "\n\n");
}

static void add_table(const cvy_option *option, const void *values, cvy_text *text)
{
    for (; option->name; option++) {
        if (option->type == CVY_OPTION_HEADING) {
            cvy_text_add(text, "## ");
            scdoc_add_plain(text, option->name);
            cvy_text_add(text, "\n\n");
        } else {
            add_option(option, values, text);
        }
    }
}

/* Of a command's rows, some have a default of their own. */
static void add_rows(const cli_command *command, cvy_text *text)
{
    cvy_option option[CLI_MAX_OPTIONS];
    cli_options values = cli_options_init;
    cli_select_options(command->rows, option);
    for (const cvy_option *o = option; o->name; o++) {
        if (o->fallback) {
            (void)cvy_option_set(o, o->name, o->fallback, &values); /* every run of the command sets it, and can fail */
        }
    }
    add_table(option, &values, text);
}

void manual_add_options(const manual_page *page, cvy_text *text)
{
    const char *nothing = NULL; /* the value of --config */
    if (page->command) {
        add_rows(page->command, text);
    }
    add_table(cvy_options_everywhere, &nothing, text);
}
