/*
 * The format of machine files as tables: sections of keys, each with its type, unit, bounds, default and place in
 * cvy_machine. The reader and the writer both walk them, so that what one writes the other reads.
 */
#ifndef CVY_MACHINE_FIELDS_H
#define CVY_MACHINE_FIELDS_H

#include "base/quantity.h"
#include "machine/machine.h"

typedef enum cvy_machine_type {
    CVY_MACHINE_QUANTITY, /**< double, with a unit */
    CVY_MACHINE_SIZE,     /**< int64_t, bytes with a unit */
    CVY_MACHINE_REAL,     /**< double, without a unit */
    CVY_MACHINE_COUNT,    /**< int */
    CVY_MACHINE_FLAG,     /**< bool */
    CVY_MACHINE_CHOICE,   /**< int: a name */
    CVY_MACHINE_SET,      /**< unsigned: a list of names, a bit each */
    CVY_MACHINE_TEXT,     /**< const char *, owned by the machine */
    CVY_MACHINE_FILES,    /**< const char *[CVY_MAX_FILES + 1]: a list of texts */
    CVY_MACHINE_LEVEL,    /**< int: the name of a level */
} cvy_machine_type;

/** Names of a choice or a set. */
typedef struct cvy_machine_names_of {
    const char *(*name)(int value);
    int count; /**< values from 0 on */
    bool any;  /**< CVY_ANY is one more, written `any` */
} cvy_machine_names_of;

typedef struct cvy_machine_field {
    const char *key;
    cvy_machine_type type;
    size_t offset;                     /**< in the struct of its section */
    bool required;
    double minimum, maximum;           /**< of numbers, inclusive, in the base unit */
    double value;                      /**< default */
    cvy_quantity quantity;             /**< of QUANTITY */
    const cvy_machine_names_of *names; /**< of CHOICE and SET */
    const char *help;                  /**< what it is, after "it is" */
} cvy_machine_field;

typedef struct cvy_machine_section {
    const char *key;                            /**< NULL at the top and at the end of a table */
    const cvy_machine_field *fields;            /**< ends with a NULL key */
    const struct cvy_machine_section *sections; /**< inside this one; ends with a NULL key; NULL: none */
    size_t offset;                              /**< in the struct around it */
    int most;                                   /**< above 0: a list, of so many at most */
    size_t bytes, count_offset;                 /**< of a list: of one entry; of its count (int) in the struct around */
    bool required;
    const char *const *also;                    /**< more keys, read elsewhere; NULL: none */
    const char *help;
} cvy_machine_section;

/** The whole file. */
extern const cvy_machine_section cvy_machine_sections;

/** The name of a value; `any` for CVY_ANY. Cannot fail. */
const char *cvy_machine_name_of(const cvy_machine_names_of *names, int value);

#endif
