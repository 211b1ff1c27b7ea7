/*
 * Manual pages: prose from a file of docs/man, with sections that the program's tables fill. A line "@options" in the
 * prose is where a section goes, "@include FILE" where prose that pages share goes.
 */
#ifndef CVY_CLI_MANUAL_PAGES_H
#define CVY_CLI_MANUAL_PAGES_H

#include "base/text.h"
#include "cli/commands.h"

enum { MANUAL_NAME_TEXT = 64 };

/** A page of this build. */
typedef struct manual_page {
    char name[MANUAL_NAME_TEXT]; /**< "convoy-train", of its file in docs/man too */
    int volume;                  /**< 1: commands, 5: files, 7: the rest */
    const char *summary;         /**< a few words without a stop */
    const char *section;         /**< that the prose must have, "options" */
    const cli_command *command;  /**< whose page it is; NULL */
} manual_page;

/** Find the i-th page; false past the last. */
bool manual_page_get(int i, manual_page *page_out);

/**
 * Write a page in scdoc's language: heading, name and synopsis, the prose, the pages to see.
 *
 * @param[in]  folder   of the prose: FOLDER/NAME.scd
 * @param[out] text     appended to
 * @retval CVY_ERR_INPUT the prose is missing, or a section of it; unknown section; the file and line are named
 */
cvy_status manual_page_write(const manual_page *page, const char *folder, cvy_text *text);

/** A section of a page: appends its lines. */
typedef void (*manual_section)(const manual_page *page, cvy_text *text);

/** The options of the page's command, and those that every command takes. */
void manual_add_options(const manual_page *page, cvy_text *text);

/** The models of the zoo, the kinds of layers, each with its options; the kinds of data sets. */
void manual_add_models(const manual_page *page, cvy_text *text);
void manual_add_layers(const manual_page *page, cvy_text *text);
void manual_add_data_kinds(const manual_page *page, cvy_text *text);

/** Append the tables of the completion, as functions and variables of bash. */
void manual_add_completion(cvy_text *text);

#endif
