/*
 * The help of a command and the values in force, out of the table that parses them, so that neither says what the other
 * does not. Help has two columns within 79 characters; headings are entries of the table.
 */
#include <stdio.h>
#include <string.h>

#include "base/option_name.h"
#include "base/option_value.h"
#include "base/text.h"

enum { HELP_WIDTH = 79, HELP_COLUMN = 28, USAGE_TEXT = 96 };

/* Append words from column @p at on, broken between words, continued under HELP_COLUMN. */
static void add_wrapped(cvy_text *text, size_t at, const char *words)
{
    const char *between = "";
    while (*words) {
        size_t length = strcspn(words, " ");
        if (at > HELP_COLUMN && at + 1 + length > HELP_WIDTH) {
            cvy_text_add(text, "\n%*s", HELP_COLUMN, "");
            between = "";
            at = HELP_COLUMN;
        }
        cvy_text_add(text, "%s%.*s", between, (int)length, words);
        at += length + strlen(between);
        between = " ";
        words += length + (words[length] ? 1 : 0);
    }
    cvy_text_add(text, "\n");
}

bool cvy_option_has_default(const cvy_option *option, const void *values)
{
    cvy_text value = {0};
    bool worth = option->type != CVY_OPTION_FLAG && cvy_option_print(option, values, &value) && value.data &&
                 strcmp(value.data, "0") != 0;
    cvy_text_destroy(&value);
    return worth;
}

/* "Samples an iteration (default 64; also --batch-size)" */
static void add_words(cvy_text *words, const cvy_option *option, const void *values)
{
    cvy_text_add(words, "%s", option->help);
    for (int i = 0; option->type == CVY_OPTION_CHOICE && option->choices[i]; i++) {
        cvy_text_add(words, "%s%s", i ? ", " : ": ", option->choices[i]);
    }
    const char *open = " (";
    if (cvy_option_has_default(option, values)) {
        cvy_text_add(words, "%sdefault ", open);
        cvy_option_print(option, values, words);
        open = "; ";
    }
    const char *also = *open == ' ' ? " (also " : "; also ";
    int length;
    for (const char *alias = NULL; (alias = cvy_option_find_alias(option, alias, &length)); also = ", ") {
        cvy_text_add(words, "%s--%.*s", also, length, alias);
        open = "; ";
    }
    cvy_text_add(words, "%s", *open == ';' ? ")" : "");
}

static void add_option(cvy_text *text, const cvy_option *option, const void *values)
{
    char usage[USAGE_TEXT], letter[4] = "";
    cvy_text words = {0};
    cvy_option_print_usage(option, usage, sizeof usage);
    if (option->letter) {
        snprintf(letter, sizeof letter, "-%c,", option->letter);
    }
    add_words(&words, option, values);
    cvy_text_add(text, "  %3s %s", letter, usage);
    size_t at = strlen(usage) + 6;
    if (at + 1 >= HELP_COLUMN) {
        cvy_text_add(text, "\n");
        at = 0;
    }
    cvy_text_add(text, "%*s", HELP_COLUMN - (int)at, "");
    add_wrapped(text, HELP_COLUMN, words.data ? words.data : "");
    cvy_text_destroy(&words);
}

static void add_table(cvy_text *text, const cvy_option *option, const void *values)
{
    for (; option->name; option++) {
        if (option->type == CVY_OPTION_HEADING) {
            cvy_text_add(text, "\n%s:\n", option->name);
        } else {
            add_option(text, option, values);
        }
    }
}

const cvy_option cvy_options_everywhere[] = {
    {.name = "Every command", .type = CVY_OPTION_HEADING},
    {.name = "config", .type = CVY_OPTION_TEXT, .argument = "FILE", .help = "Read options from a YAML file, one "
     "'name: value' a line; may be given more than once"},
    {.name = "help", .letter = 'h', .type = CVY_OPTION_FLAG, .help = "Print this help"},
    {.name = NULL},
};

/* "usage: convoy train MODEL [option ...]"; further forms stand below the first. */
static void add_usage(cvy_text *text, const cvy_command_options *command, const char *program)
{
    const char *form = command->usage ? command->usage : command->operands;
    for (const char *label = "usage:"; form; label = "      ") {
        size_t length = strcspn(form, "\n");
        cvy_text_add(text, "%s %s%s%.*s [option ...]\n", label, program, length ? " " : "", (int)length, form);
        form = form[length] ? form + length + 1 : NULL;
    }
}

char *cvy_options_print_help(const cvy_command_options *command, const char *program, const void *values)
{
    const char *nothing = NULL; /* what that table's text has as value */
    cvy_text text = {0};
    add_usage(&text, command, program);
    cvy_text_add(&text, "\n%s.\n", command->summary);
    add_table(&text, command->option, values);
    add_table(&text, cvy_options_everywhere, &nothing);
    cvy_text_add(&text, "\nThe command line wins over the environment (CONVOY_DATA_KIND for --data-kind),\n"
                        "the environment over the file, the file over defaults.\n");
    if (command->examples) {
        cvy_text_add(&text, "\nExamples:\n%s", command->examples);
    }
    return cvy_text_take(&text);
}

/* A text in double quotes, whatever it holds: YAML's escapes, as in JSON. */
static void add_quoted(cvy_text *text, const char *words)
{
    cvy_text_add(text, "\"");
    for (; *words; words++) {
        unsigned char c = (unsigned char)*words;
        if (c == '"' || c == '\\') {
            cvy_text_add(text, "\\%c", c);
        } else if (c < 0x20) {
            cvy_text_add(text, "\\x%02x", c);
        } else {
            cvy_text_add(text, "%c", c);
        }
    }
    cvy_text_add(text, "\"");
}

char *cvy_options_print_yaml(const cvy_command_options *command, const void *values)
{
    cvy_text text = {0};
    for (const cvy_option *option = command->option; option->name; option++) {
        const char *words = option->type == CVY_OPTION_TEXT ? cvy_option_get_text(option, values) : "";
        if (option->type == CVY_OPTION_HEADING || !words) {
            continue;
        }
        cvy_text_add(&text, "%s: ", option->name);
        if (option->type == CVY_OPTION_TEXT) {
            add_quoted(&text, words);
        } else {
            cvy_option_print(option, values, &text);
        }
        cvy_text_add(&text, "\n");
    }
    return cvy_text_take(&text);
}
