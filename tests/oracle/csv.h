/* Tables of comma-separated values without quotes, a row at a time, columns by name. */
#ifndef CVY_TESTS_ORACLE_CSV_H
#define CVY_TESTS_ORACLE_CSV_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CSV_COLUMNS = 16, CSV_LINE = 512 };

typedef struct csv {
    FILE *file;
    char names[CSV_LINE], row[CSV_LINE];
    char *name[CSV_COLUMNS], *value[CSV_COLUMNS];
    int columns;
} csv;

static inline int split_csv_line(char *line, char **part)
{
    int parts = 0;
    line[strcspn(line, "\r\n")] = '\0';
    for (char *comma = line; comma && parts < CSV_COLUMNS; parts++) {
        part[parts] = comma;
        comma = strchr(comma, ',');
        if (comma) {
            *comma++ = '\0';
        }
    }
    return parts;
}

/* Open a file of tests/data/ and read the names of its columns; ends the test where that fails. */
static inline void open_csv(csv *table, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", CVY_TEST_DATA, name);
    table->file = fopen(path, "r");
    assert_non_null(table->file);
    assert_non_null(fgets(table->names, sizeof table->names, table->file));
    table->columns = split_csv_line(table->names, table->name);
}

/* The next row; false at the end, where the file is closed. */
static inline bool next_csv_row(csv *table)
{
    if (!fgets(table->row, sizeof table->row, table->file)) {
        fclose(table->file);
        return false;
    }
    assert_int_equal(split_csv_line(table->row, table->value), table->columns);
    return true;
}

static inline const char *csv_text(const csv *table, const char *column)
{
    for (int i = 0; i < table->columns; i++) {
        if (strcmp(table->name[i], column) == 0) {
            return table->value[i];
        }
    }
    fail_msg("no column %s", column);
    return NULL;
}

static inline double csv_number(const csv *table, const char *column) { return strtod(csv_text(table, column), NULL); }

#endif
