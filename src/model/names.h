/* Names and the numbers they stand for: a hash table, so that a layer of 20,000 is found as fast as one of ten. */
#ifndef CVY_MODEL_NAMES_H
#define CVY_MODEL_NAMES_H

#include "base/error.h"

/** One place of a table; free where the name is NULL. */
typedef struct cvy_name_slot {
    const char *name; /**< borrowed: it must outlive the table */
    int value;
} cvy_name_slot;

/** Start from {0}. */
typedef struct cvy_names {
    int count, slots;
    cvy_name_slot *slot;
} cvy_names;

/** The number of a name; -1 if absent. */
int cvy_names_find(const cvy_names *names, const char *name);

/** Make room for @p more names. @retval CVY_ERR_MEMORY memory is exhausted; the table is as before */
cvy_status cvy_names_reserve(cvy_names *names, int more);

/** Add a name that is not there yet, for which there is room. Cannot fail. */
void cvy_names_add(cvy_names *names, const char *name, int value);

/** Release the table, not the names. */
void cvy_names_clear(cvy_names *names);

#endif
