/* What standard error and standard output lead to: a terminal, with colour or without, or a file. */
#ifndef CVY_CLI_TERMINAL_H
#define CVY_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/** Whether lines can be drawn over again. */
bool cli_is_terminal(FILE *stream);

/** Whether colour may be used: a terminal that can, and no NO_COLOR (see no-color.org). */
bool cli_has_colour(FILE *stream);

/** Columns of the terminal; 100 where unknown. */
int cli_columns(FILE *stream);

/** Print no more errors and warnings: another rank of the run speaks. */
void cli_silence(void);

/** Print "LABEL: words" as one line on standard error; errors in red, warnings in yellow, where there is colour. */
void cli_print_error(const char *words);
void cli_print_warning(const char *words);

#endif
