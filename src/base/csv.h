/*
 * Comma-separated values with a line of names, as RFC 4180 has them: cells in quotes may hold commas and doubled
 * quotes. Input is hostile: sizes are limited, every row has a cell for each name, and a cell is one line of UTF-8.
 */
#ifndef CVY_BASE_CSV_H
#define CVY_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum { CVY_CSV_MAX_BYTES = 64 << 20, CVY_CSV_MAX_COLUMNS = 256, CVY_CSV_MAX_CELL = 4096 };

/** A table in memory. */
typedef struct cvy_csv {
    char *file;  /**< its name, for messages */
    char *text;  /**< what the cells lie in */
    char **cell; /**< rows of `columns`; the first row holds the names */
    int *line;   /**< of the file, for each row; 1 is the first */
    int columns;
    int rows;    /**< without the names */
} cvy_csv;

/**
 * Read a table. Empty lines are passed over.
 *
 * @param[out] csv_out      released with cvy_csv_destroy(); untouched on failure
 * @retval CVY_ERR_INPUT    "FILE:LINE: cause": no file, no names, a name twice, a row with more or fewer cells than
 *                          names, a quote that does not close or stands inside a cell, what is no text, too much of it
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_csv_load(const char *path, cvy_csv **csv_out);

/** Release; NULL is fine. */
void cvy_csv_destroy(cvy_csv **csv);

/** The column of a name; -1 if absent. */
int cvy_csv_find(const cvy_csv *csv, const char *name);

/** The name of a column. Cannot fail. */
const char *cvy_csv_name(const cvy_csv *csv, int column);

/** A cell; empty where nothing stands. @param[in] row 0 is the first below the names. Cannot fail. */
const char *cvy_csv_cell(const cvy_csv *csv, int row, int column);

/** Word a failure at a row: "FILE:LINE: …". Returns CVY_ERR_INPUT. */
cvy_status cvy_csv_fail(const cvy_csv *csv, int row, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** Read a cell as a number; bounds inclusive. @retval CVY_ERR_INPUT "FILE:LINE: NAME: found, expected" */
cvy_status cvy_csv_get_real(const cvy_csv *csv, int row, int column, double minimum, double maximum,
                            double *value_out);
cvy_status cvy_csv_get_int(const cvy_csv *csv, int row, int column, int64_t minimum, int64_t maximum,
                           int64_t *value_out);

/* ---- writing ---- */

/** Append a cell, in quotes where it has to be; line breaks become blanks. */
void cvy_csv_add_cell(const char *cell, cvy_text *text);

/** Append ",NUMBER", or an empty cell where it is not known or not finite. */
void cvy_csv_add_number(double value, bool known, cvy_text *text);

#endif
