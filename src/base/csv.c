/*
 * Cells are cut out of the file's text where they lie: quotes and separators give way to zero bytes, so a table takes
 * its text and two arrays. The file may be anything; nothing is read beyond the zero byte that stands behind it.
 */
#include "base/csv.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"

/* A table while it is read. */
typedef struct reader {
    cvy_csv *csv;
    const char *end; /* of the text */
    char *at;
    int line;        /* of the file, at `at` */
    int lines_capacity, cells, cells_capacity;
} reader;

static cvy_status fail_line(const cvy_csv *csv, int line, const char *words)
{
    return cvy_fail(CVY_ERR_INPUT, "%s:%d: %s", csv->file, line, words);
}

/* Put the cell that begins at `at` into its place without its quotes; `at` moves to what ends it. */
static cvy_status cut_quoted(reader *r, char **cell_out)
{
    int first = r->line;
    char *to = ++r->at;
    *cell_out = to;
    for (;; r->at++) {
        if (r->at == r->end) {
            return fail_line(r->csv, first, "a quote that does not close");
        }
        if (*r->at == '"') {
            if (r->at[1] != '"') {
                break;
            }
            r->at++;
        }
        r->line += *r->at == '\n';
        *to++ = *r->at;
    }
    r->at++;
    *to = '\0';
    return r->at == r->end || strchr(",\r\n", *r->at) ? CVY_OK
                                                      : fail_line(r->csv, r->line, "words behind a closing quote");
}

static cvy_status cut_plain(reader *r, char **cell_out)
{
    *cell_out = r->at;
    r->at += strcspn(r->at, ",\"\r\n");
    return *r->at == '"' ? fail_line(r->csv, r->line, "a quote inside a cell without quotes") : CVY_OK;
}

static cvy_status add_cell(reader *r, char *cell)
{
    CVY_TRY(cvy_array_reserve(&r->csv->cell, r->cells, &r->cells_capacity, sizeof *r->csv->cell));
    r->csv->cell[r->cells++] = cell;
    return CVY_OK;
}

/* A row of cells; `at` moves behind its end. */
static cvy_status read_row(reader *r, int *count_out)
{
    int count = 0, line = r->line;
    for (char separator = ','; separator == ',';) {
        char *cell;
        CVY_TRY(*r->at == '"' ? cut_quoted(r, &cell) : cut_plain(r, &cell));
        if (++count > CVY_CSV_MAX_COLUMNS) {
            return fail_line(r->csv, line, "more columns than a table may have");
        }
        CVY_TRY(add_cell(r, cell));
        separator = r->at < r->end ? *r->at : '\n';
        if (separator == '\r') {
            *r->at++ = '\0';
            separator = r->at < r->end ? *r->at : '\n';
            if (separator != '\n') {
                return fail_line(r->csv, r->line, "a carriage return without a line feed");
            }
        }
        if (r->at < r->end) {
            *r->at++ = '\0';
        }
        if (!cvy_utf8_is_line(cell, CVY_CSV_MAX_CELL)) {
            return fail_line(r->csv, line, "a cell that is too long, or no line of UTF-8");
        }
    }
    r->line++;
    *count_out = count;
    return CVY_OK;
}

static cvy_status add_row(reader *r)
{
    cvy_csv *csv = r->csv;
    int count, line = r->line;
    CVY_TRY(cvy_array_reserve(&csv->line, csv->rows, &r->lines_capacity, sizeof *csv->line));
    CVY_TRY(read_row(r, &count));
    if (csv->rows == 0) {
        csv->columns = count;
    }
    CVY_REQUIRE(count == csv->columns, CVY_ERR_INPUT, "%s:%d: found %d cell%s, expected %d, one for each name",
                csv->file, line, count, count == 1 ? "" : "s", csv->columns);
    csv->line[csv->rows++] = line;
    return CVY_OK;
}

static cvy_status check_names(const cvy_csv *csv)
{
    char word[CVY_WORD_TEXT];
    for (int i = 0; i < csv->columns; i++) {
        CVY_REQUIRE(cvy_csv_find(csv, csv->cell[i]) == i, CVY_ERR_INPUT, "%s:%d: two columns are named '%s'", csv->file,
                    csv->line[0], cvy_print_word(csv->cell[i], word));
    }
    return CVY_OK;
}

static cvy_status read_table(cvy_csv *csv, size_t bytes)
{
    static const char mark[] = "\xef\xbb\xbf"; /* that some programs put in front of UTF-8 */
    reader r = {.csv = csv, .end = csv->text + bytes, .at = csv->text, .line = 1};
    CVY_REQUIRE(memchr(csv->text, '\0', bytes) == NULL, CVY_ERR_INPUT, "%s: holds a zero byte, so it is no table",
                csv->file);
    r.at += strncmp(r.at, mark, strlen(mark)) == 0 ? strlen(mark) : 0;
    while (r.at < r.end) {
        size_t blank = *r.at == '\r' ? 1 : 0;
        if (r.at[blank] == '\n') {
            r.at += blank + 1;
            r.line++;
        } else {
            CVY_TRY(add_row(&r));
        }
    }
    CVY_REQUIRE(csv->rows > 0, CVY_ERR_INPUT, "%s: expected a table, found nothing", csv->file);
    csv->rows--;
    return check_names(csv);
}

cvy_status cvy_csv_load(const char *path, cvy_csv **csv_out)
{
    cvy_status status = CVY_ERR_MEMORY;
    size_t bytes;
    cvy_csv *csv = cvy_calloc(1, sizeof *csv);
    if (!csv || !(csv->file = cvy_strdup(path))) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, cvy_file_read(path, CVY_CSV_MAX_BYTES, CVY_ERR_INPUT, &csv->text, &bytes));
    CVY_TRY_GOTO(status, done, read_table(csv, bytes));
    *csv_out = csv;
    csv = NULL;
done:
    cvy_csv_destroy(&csv);
    return status;
}

void cvy_csv_destroy(cvy_csv **csv)
{
    if (*csv) {
        cvy_free((*csv)->file);
        cvy_free((*csv)->text);
        cvy_free((*csv)->cell);
        cvy_free((*csv)->line);
        cvy_free(*csv);
    }
    *csv = NULL;
}

int cvy_csv_find(const cvy_csv *csv, const char *name)
{
    for (int i = 0; i < csv->columns; i++) {
        if (strcmp(csv->cell[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

const char *cvy_csv_name(const cvy_csv *csv, int column) { return csv->cell[column]; }

const char *cvy_csv_cell(const cvy_csv *csv, int row, int column)
{
    return csv->cell[(size_t)(row + 1) * (size_t)csv->columns + (size_t)column];
}

cvy_status cvy_csv_fail(const cvy_csv *csv, int row, const char *format, ...)
{
    char words[400];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return cvy_fail(CVY_ERR_INPUT, "%s:%d: %s", csv->file, csv->line[row + 1], words);
}

static cvy_status fail_number(const cvy_csv *csv, int row, int column, const char *kind, const double bounds[2])
{
    char found[CVY_WORD_TEXT];
    return cvy_csv_fail(csv, row, "%.60s: found '%s', expected %s from %.15g to %.15g", csv->cell[column],
                        cvy_print_word(cvy_csv_cell(csv, row, column), found), kind, bounds[0], bounds[1]);
}

cvy_status cvy_csv_get_real(const cvy_csv *csv, int row, int column, double minimum, double maximum,
                            double *value_out)
{
    const char *text = cvy_csv_cell(csv, row, column);
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= minimum && value <= maximum)) {
        return fail_number(csv, row, column, "a number", (double[]){minimum, maximum});
    }
    *value_out = value;
    return CVY_OK;
}

cvy_status cvy_csv_get_int(const cvy_csv *csv, int row, int column, int64_t minimum, int64_t maximum,
                           int64_t *value_out)
{
    const char *text = cvy_csv_cell(csv, row, column);
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < minimum || value > maximum) {
        return fail_number(csv, row, column, "a whole number", (double[]){(double)minimum, (double)maximum});
    }
    *value_out = value;
    return CVY_OK;
}

/* ---- writing ---- */

void cvy_csv_add_cell(const char *cell, cvy_text *text)
{
    if (!strpbrk(cell, ",\"\n\r")) {
        cvy_text_add(text, "%s", cell);
        return;
    }
    cvy_text_add(text, "\"");
    for (const char *at = cell; *at; at++) {
        cvy_text_add(text, "%s%c", *at == '"' ? "\"" : "", *at == '\n' || *at == '\r' ? ' ' : *at);
    }
    cvy_text_add(text, "\"");
}

void cvy_csv_add_number(double value, bool known, cvy_text *text)
{
    if (known && isfinite(value)) {
        cvy_text_add(text, ",%.9g", value);
    } else {
        cvy_text_add(text, ",");
    }
}
