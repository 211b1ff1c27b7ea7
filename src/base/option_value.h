/* One value of an option: from text and to text. Shared by the parser of options and their help. */
#ifndef CVY_BASE_OPTION_VALUE_H
#define CVY_BASE_OPTION_VALUE_H

#include "base/options.h"
#include "base/text.h"

/**
 * Read a value into its field.
 *
 * @param[in]  where   who says so: "--batch", "CONVOY_BATCH", "run.yaml:3: batch"; begins the message
 * @param[in]  text    borrowed by a text field; NULL for a flag that is given without a value
 * @retval CVY_ERR_INPUT what was expected and what was found
 */
cvy_status cvy_option_set(const cvy_option *option, const char *where, const char *text, void *values);

/** Append the value as cvy_option_set() reads it back; false, and nothing appended, for a text that is not given. */
bool cvy_option_print(const cvy_option *option, const void *values, cvy_text *text);

/** Whether a default is worth telling: 0 means "not given" or "automatic", and the words of the option say so. */
bool cvy_option_has_default(const cvy_option *option, const void *values);

/** A text field. */
const char *cvy_option_get_text(const cvy_option *option, const void *values);
void cvy_option_set_text(const cvy_option *option, void *values, const char *text);

/** "--batch=N", or "--quiet". @p text takes up to @p bytes. */
const char *cvy_option_print_usage(const cvy_option *option, char *text, size_t bytes);

/** "CONVOY_LEARNING_RATE" from "learning-rate". */
const char *cvy_option_print_variable(const char *name, char *text, size_t bytes);

/** What every command takes beside its table, --config and --help, under a heading; ends with a NULL name. */
extern const cvy_option cvy_options_everywhere[];

/** The help of a command; defaults are what @p values holds. cvy_free(); NULL, worded, where memory is exhausted */
char *cvy_options_print_help(const cvy_command_options *command, const char *program, const void *values);

#endif
