/*
 * Options of a command: one table for the command line, CONVOY_* variables and a YAML configuration file, later ones
 * first: command line, then environment, then file, then default. Parsing is argp's.
 */
#ifndef CVY_BASE_OPTIONS_H
#define CVY_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum cvy_option_type {
    CVY_OPTION_FLAG,    /**< bool; off unless given; in files and variables yes/no, on the line --name or --name=no */
    CVY_OPTION_INT,     /**< int64_t within bounds */
    CVY_OPTION_COUNT,   /**< int64_t with suffix: 64, or 64/rank, which becomes -64 */
    CVY_OPTION_REAL,    /**< double within bounds; never NaN or infinite */
    CVY_OPTION_TEXT,    /**< const char *; NULL where not given */
    CVY_OPTION_CHOICE,  /**< int, index into choices */
    CVY_OPTION_HEADING, /**< not an option: `name` is a heading over those that follow, for --help */
} cvy_option_type;

/** One option. Its value goes to @p offset in the command's struct. */
typedef struct cvy_option {
    const char *name;           /**< "--name", CONVOY_NAME, `name:`; dashes become underscores in variables */
    char letter;                /**< short form, 0 where there is none */
    cvy_option_type type;
    size_t offset;
    double minimum, maximum;    /**< numbers, inclusive */
    const char *fallback;       /**< default, as text; NULL: what the struct holds before parsing */
    const char *const *choices; /**< NULL-terminated */
    const char *argument;       /**< "N", "DIR|NAME": how help shows the value, and what completion goes by */
    const char *help;           /**< one sentence without a stop */
    const char *aliases;        /**< other names, separated by spaces; NULL */
    const char *joined_by;      /**< what stands between texts that are given on one line; NULL: the last one holds */
} cvy_option;

/** A command: its name, operands and options. */
typedef struct cvy_command_options {
    const char *command;        /**< "train" */
    const char *operands;       /**< "MODEL" */
    int min_operands, max_operands;
    const char *usage;          /**< what help shows in place of `operands`, a form a line; NULL: `operands` */
    const char *summary;        /**< one sentence for --help and the man page */
    const char *examples;       /**< lines for --help; may be NULL */
    const cvy_option *option;   /**< ends with a NULL name */
} cvy_command_options;

/** No command takes more operands. */
enum { CVY_MOST_OPERANDS = 64 };

/** What was given, and by whom. */
typedef struct cvy_parsed_options {
    const char *operand[CVY_MOST_OPERANDS]; /**< borrowed from argv */
    int operands;
    char *storage;              /**< every text value, wherever it came from; owned */
    char *help;                 /**< help was asked for: the text, to be printed; else NULL. Owned */
} cvy_parsed_options;

/**
 * Parse a command's arguments into @p values.
 *
 * Every command also takes --help, which is answered with CVY_OK whatever else is missing, and --config FILE
 * (CONVOY_CONFIG): a YAML mapping of option names. It may be given more than once; a later file wins.
 *
 * @param[in]  argc, argv   argv[0] is shown as the program's name; operands and options follow, in any order
 * @param[in,out] values    the command's struct, holding defaults; fields are set through the offsets. Text fields are
 *                          valid until @p parsed_out is cleared. Not to be used after a failure
 * @param[out] parsed_out   released with cvy_parsed_options_clear()
 * @retval CVY_ERR_INPUT    one line: option, what was found, what is expected; an unknown option names the nearest
 */
cvy_status cvy_options_parse(const cvy_command_options *command, int argc, char **argv, void *values,
                             cvy_parsed_options *parsed_out);

void cvy_parsed_options_clear(cvy_parsed_options *parsed);

/**
 * Fail if the environment has a CONVOY_* variable that belongs to no option in the table: a misspelt one would do
 * nothing, in silence. The table is that of the whole program, since a variable may be meant for another command.
 *
 * @retval CVY_ERR_INPUT names the variable and the nearest that exists
 */
cvy_status cvy_options_check_environment(const cvy_option *option);

/** The options of a command as YAML, values in force: what a run's folder keeps as config.yaml. cvy_free() */
char *cvy_options_print_yaml(const cvy_command_options *command, const void *values);

#endif
