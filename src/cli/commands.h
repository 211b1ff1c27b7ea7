/* The commands of this build, for the program, its manual pages and its completion. */
#ifndef CVY_CLI_COMMANDS_H
#define CVY_CLI_COMMANDS_H

#include "cli/options_common.h"

/**
 * The i-th command; NULL past the last.
 *
 * One that this build lacks is listed all the same, takes no options (its `rows` are 0), and says what is missing when
 * it is run.
 */
const cli_command *cli_command_get(int i);

/** Find a command by its name; NULL if absent. */
const cli_command *cli_command_find(const char *name);

#endif
