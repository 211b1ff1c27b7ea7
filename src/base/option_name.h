/* The names that a command answers to, aliases included. */
#ifndef CVY_BASE_OPTION_NAME_H
#define CVY_BASE_OPTION_NAME_H

#include "base/options.h"

/** Whose a name is: an index into the table of options, or one of these. */
enum { CVY_OWNER_CONFIG = -1, CVY_OWNER_HELP = -2, CVY_OWNER_NONE = -3 };

/** Room for a name, with its dashes or as a variable. */
enum { CVY_OPTION_NAME_TEXT = 96 };

/**
 * Find the alias of an option behind another one. Cannot fail.
 *
 * @param[in]  before     NULL: the first is asked for
 * @param[out] length_out of the name, which does not end in a zero byte
 * @return NULL behind the last one
 */
const char *cvy_option_find_alias(const cvy_option *option, const char *before, int *length_out);

typedef struct cvy_option_names {
    int count;
    const char **name; /**< ends with NULL, for cvy_nearest() */
    int *owner;
    char *alias_text;
} cvy_option_names;

/** List main names, each followed by its aliases, in the order of the table, then config and help. */
cvy_status cvy_option_names_list(const cvy_option *option, cvy_option_names *names_out);

/** Release what a list owns and empty it. */
void cvy_option_names_clear(cvy_option_names *names);

/** Whose name the first @p length characters are; CVY_OWNER_NONE where they are nobody's. */
int cvy_option_names_find(const cvy_option_names *names, const char *name, size_t length);

/**
 * The name nearest to a misspelt one; NULL where none is near.
 *
 * @param[in] lowest_owner 0: options alone; CVY_OWNER_CONFIG: config as well, which a variable may name, but a file not
 */
const char *cvy_option_names_nearest(const cvy_option_names *names, const char *word, int lowest_owner);

#endif
