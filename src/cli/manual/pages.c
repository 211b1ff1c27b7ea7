/*
 * Which pages there are, and how prose and sections become one. A command has a page because it stands in the list of
 * commands; only its prose is written by hand, and a page without prose fails the build.
 */
#include "cli/manual/pages.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/manual/scdoc.h"

enum { MAX_PROSE_BYTES = 1 << 20, MAX_DEPTH = 1 };

static const manual_page topics[] = {
    {.name = "convoy-layers", .volume = 5, .summary = "model files of convoy and their layers", .section = "layers"},
    {.name = "convoy-models", .volume = 7, .summary = "the models that convoy has built in", .section = "models"},
};
enum { TOPICS = sizeof topics / sizeof topics[0] };

bool manual_page_get(int i, manual_page *page_out)
{
    const cli_command *command;
    *page_out = (manual_page){.name = "convoy", .volume = 1, .section = "commands",
                              .summary = "plan and train convolutional neural networks"};
    if (i == 0) {
        return true;
    }
    for (int at = 0; (command = cli_command_get(at)); at++) {
        if (command->rows && --i == 0) {
            *page_out = (manual_page){.volume = 1, .summary = command->summary, .section = "options",
                                      .command = command};
            snprintf(page_out->name, sizeof page_out->name, "convoy-%s", command->name);
            return true;
        }
    }
    if (i > TOPICS) {
        return false;
    }
    *page_out = topics[i - 1];
    return true;
}

/* ---- sections that need the list of pages ---- */

static void add_commands(const manual_page *page, cvy_text *text)
{
    const cli_command *command;
    (void)page;
    for (int i = 0; (command = cli_command_get(i)); i++) {
        cvy_text_add(text, command->rows ? "*convoy-%s*(1)\n\t" : "*%s*\n\t", command->name);
        scdoc_add_sentence(text, command->summary);
        cvy_text_add(text, "\n\n");
    }
}

static void add_see_also(const manual_page *page, cvy_text *text)
{
    manual_page other;
    const char *comma = "";
    cvy_text_add(text, "\n# SEE ALSO\n\n");
    for (int i = 0; manual_page_get(i, &other); i++) {
        if (strcmp(other.name, page->name) != 0) {
            cvy_text_add(text, "%s*%s*(%d)", comma, other.name, other.volume);
            comma = ", ";
        }
    }
    cvy_text_add(text, "\n");
}

static void add_synopsis(const cli_command *command, cvy_text *text)
{
    const char *form = command->usage ? command->usage : command->operands;
    cvy_text_add(text, "# SYNOPSIS\n");
    while (form) {
        size_t length = strcspn(form, "\n");
        cvy_text_add(text, "\n*convoy %s*%s", command->name, length ? " " : "");
        scdoc_add_form(text, form, length);
        cvy_text_add(text, " [_option_ ...]\n");
        form = form[length] ? form + length + 1 : NULL;
    }
    cvy_text_add(text, "\n");
}

static void add_heading(const manual_page *page, cvy_text *text)
{
    cvy_text_add(text, "%s(%d)\n\n# NAME\n\n%s - %c", page->name, page->volume, page->name,
                 tolower((unsigned char)page->summary[0]));
    scdoc_add_plain(text, page->summary + 1);
    cvy_text_add(text, "\n\n");
    if (page->command) {
        add_synopsis(page->command, text);
    }
}

/* ---- prose ---- */

static const struct {
    const char *name;
    manual_section add;
} sections[] = {
    {"commands", add_commands},      {"options", manual_add_options},      {"layers", manual_add_layers},
    {"models", manual_add_models}, {"data-kinds", manual_add_data_kinds},
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

/* One page being written. */
typedef struct writer {
    const manual_page *page;
    const char *folder;
    cvy_text *text;
    bool has_section; /* that the page must have */
    int depth;        /* of files that include each other */
} writer;

static cvy_status add_file(writer *w, const char *name);

static cvy_status add_section(writer *w, const char *name)
{
    static const char include[] = "include ";
    if (strncmp(name, include, strlen(include)) == 0) {
        CVY_REQUIRE(w->depth <= MAX_DEPTH, CVY_ERR_INPUT, "a file that is included includes another");
        return add_file(w, name + strlen(include));
    }
    for (int i = 0; i < SECTIONS; i++) {
        if (strcmp(sections[i].name, name) == 0) {
            sections[i].add(w->page, w->text);
            w->has_section = w->has_section || strcmp(name, w->page->section) == 0;
            return CVY_OK;
        }
    }
    return cvy_fail(CVY_ERR_INPUT, "no section '@%s'", name);
}

static cvy_status add_lines(writer *w, const char *path, char *prose)
{
    int number = 1;
    for (char *line; (line = strsep(&prose, "\n")); number++) {
        if (line[0] == '@') {
            cvy_status status = add_section(w, line + 1);
            if (status != CVY_OK) {
                return cvy_fail_within(status, "%s:%d", path, number);
            }
        } else if (*line || prose) { /* the last line's end begins none */
            cvy_text_add(w->text, "%s\n", line);
        }
    }
    return CVY_OK;
}

static cvy_status add_file(writer *w, const char *name)
{
    cvy_status status = CVY_OK;
    char *prose = NULL, *path = cvy_path_join(w->folder, name);
    size_t bytes;
    if (!path) {
        return CVY_ERR_MEMORY;
    }
    w->depth++;
    CVY_REQUIRE_GOTO(status, done, cvy_file_exists(path), CVY_ERR_INPUT,
                     "%s: missing; it is the prose of the manual page %s(%d)", path, w->page->name, w->page->volume);
    CVY_TRY_GOTO(status, done, cvy_file_read(path, MAX_PROSE_BYTES, CVY_ERR_INPUT, &prose, &bytes));
    CVY_TRY_GOTO(status, done, add_lines(w, path, prose));
done:
    w->depth--;
    cvy_free(prose);
    cvy_free(path);
    return status;
}

cvy_status manual_page_write(const manual_page *page, const char *folder, cvy_text *text)
{
    char file[MANUAL_NAME_TEXT + 8];
    writer w = {.page = page, .folder = folder, .text = text};
    snprintf(file, sizeof file, "%s.scd", page->name);
    add_heading(page, text);
    CVY_TRY(add_file(&w, file));
    CVY_REQUIRE(w.has_section, CVY_ERR_INPUT, "%s/%s: no line @%s, which puts that section in", folder, file,
                page->section);
    add_see_also(page, text);
    return CVY_OK;
}
