/*
 * A line is a hash of the op, its distance, its seconds, their error, the probe's seconds beside it and their mean,
 * what it took to measure, the seconds spent so far, and a check of these, so that a file that ends anywhere, or was
 * damaged, has a whole number of rows. When it is opened it is written on from behind its last whole line; what was
 * cut off there goes.
 */
#include "calibrate/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"

enum { LIMIT_BYTES = 64 << 20, LINE = 240 };

static const char title[] = "convoy-calibration,3,";

typedef struct entry {
    uint64_t key;
    cvy_metered metered;
} entry;

struct cvy_journal {
    FILE *file; /* NULL: in memory alone */
    char *path;
    uint64_t question;
    entry *entry;
    int entries, capacity;
    double spent_s;
};

static int print_head(uint64_t question, char *line)
{
    return snprintf(line, LINE, "%s%016" PRIx64 "\n", title, question);
}

/* What is checked, then the check. */
static int print_row(const entry *e, double spent_s, char *line)
{
    const cvy_metered *m = &e->metered;
    int length = snprintf(line, LINE, "%016" PRIx64 ",%.0f,%.9g,%.4g,%.6g,%.6g,%.4g,%.6g", e->key,
                          m->time.distance_bytes, m->time.seconds, m->time.error, m->probe.seconds, m->probe.mean_s,
                          m->took_s, spent_s);
    uint64_t check = cvy_hash_text(CVY_HASH_INIT, line);
    return length + snprintf(line + length, (size_t)(LINE - length), ",%08" PRIx32 "\n", (uint32_t)check);
}

static cvy_status add_entry(cvy_journal *journal, const entry *e)
{
    CVY_TRY(cvy_array_reserve(&journal->entry, journal->entries, &journal->capacity, sizeof *journal->entry));
    journal->entry[journal->entries++] = *e;
    return CVY_OK;
}

/* ---- reading ---- */

/* A whole line, whose break is at @p end; false where it is damaged. */
static bool parse_row(const char *line, const char *end, entry *e, double *spent_out)
{
    char text[LINE], again[LINE];
    size_t length = (size_t)(end - line);
    uint32_t check;
    if (length >= sizeof text) {
        return false;
    }
    memcpy(text, line, length);
    text[length] = '\0';
    cvy_metered *m = &e->metered;
    if (sscanf(text, "%16" SCNx64 ",%lf,%lf,%lf,%lf,%lf,%lf,%lf,%8" SCNx32, &e->key, &m->time.distance_bytes,
               &m->time.seconds, &m->time.error, &m->probe.seconds, &m->probe.mean_s, &m->took_s, spent_out,
               &check) != 9) {
        return false;
    }
    return m->time.seconds > 0.0 && print_row(e, *spent_out, again) == (int)length + 1 &&
           memcmp(again, line, length) == 0;
}

/* Rows up to the first that is not whole; says how many bytes of the file are. */
static cvy_status read_rows(cvy_journal *journal, const char *data, size_t *whole_out)
{
    const char *line = strchr(data, '\n') + 1, *end;
    double spent_s;
    entry e;
    while ((end = strchr(line, '\n')) && parse_row(line, end, &e, &spent_s)) {
        CVY_TRY(add_entry(journal, &e));
        journal->spent_s = spent_s;
        line = end + 1;
    }
    *whole_out = (size_t)(line - data);
    return CVY_OK;
}

/* Take what a file has, if it is of the same question; says how many of its bytes stay. */
static cvy_status read_file(cvy_journal *journal, size_t *whole_out)
{
    char head[LINE], *data = NULL;
    size_t bytes = 0;
    size_t length = (size_t)print_head(journal->question, head);
    *whole_out = 0;
    if (!cvy_file_exists(journal->path)) {
        return CVY_OK;
    }
    CVY_TRY(cvy_file_read(journal->path, LIMIT_BYTES, CVY_ERR_INPUT, &data, &bytes));
    cvy_status status = CVY_OK;
    size_t begun = bytes < sizeof title - 1 ? bytes : sizeof title - 1; /* a title may be cut, too */
    if (strncmp(data, title, begun) != 0) {
        status = cvy_fail(CVY_ERR_INPUT, "%s: it is no journal of a calibration; move it away", journal->path);
    } else if (bytes >= length && memcmp(data, head, length) == 0) {
        status = read_rows(journal, data, whole_out);
    }
    cvy_free(data);
    return status;
}

/* ---- writing ---- */

static cvy_status fail_writing(const cvy_journal *journal)
{
    return cvy_fail(CVY_ERR_IO, "%s: %s", journal->path, strerror(errno));
}

/* Open the file with its whole lines alone; a head stands before the first. */
static cvy_status open_file(cvy_journal *journal, size_t whole)
{
    char head[LINE];
    journal->file = fopen(journal->path, whole ? "r+" : "w");
    if (!journal->file || fseek(journal->file, (long)whole, SEEK_SET) != 0) {
        return fail_writing(journal);
    }
    if (ftruncate(fileno(journal->file), (off_t)whole) != 0) {
        return fail_writing(journal);
    }
    print_head(journal->question, head);
    if (whole == 0 && fputs(head, journal->file) == EOF) {
        return fail_writing(journal);
    }
    return fflush(journal->file) == 0 ? CVY_OK : fail_writing(journal);
}

cvy_status cvy_journal_open(const char *path, uint64_t question, cvy_journal **journal_out)
{
    cvy_status status;
    size_t whole = 0;
    cvy_journal *journal = cvy_calloc(1, sizeof *journal);
    if (!journal) {
        return CVY_ERR_MEMORY;
    }
    journal->question = question;
    if (path) {
        journal->path = cvy_strdup(path);
        CVY_TRY_GOTO(status, done, journal->path ? CVY_OK : CVY_ERR_MEMORY);
        CVY_TRY_GOTO(status, done, read_file(journal, &whole));
        CVY_TRY_GOTO(status, done, open_file(journal, whole));
    }
    *journal_out = journal;
    return CVY_OK;
done:
    cvy_journal_close(&journal);
    return status;
}

void cvy_journal_close(cvy_journal **journal)
{
    if (*journal) {
        if ((*journal)->file) {
            fclose((*journal)->file);
        }
        cvy_free((*journal)->entry);
        cvy_free((*journal)->path);
        cvy_free(*journal);
        *journal = NULL;
    }
}

int cvy_journal_rows(const cvy_journal *journal) { return journal->entries; }

double cvy_journal_spent_s(const cvy_journal *journal) { return journal->spent_s; }

const cvy_metered *cvy_journal_find(const cvy_journal *journal, const cvy_op *op, double distance_bytes)
{
    uint64_t key = cvy_op_hash(op);
    for (int i = 0; i < journal->entries; i++) {
        if (journal->entry[i].key == key && journal->entry[i].metered.time.distance_bytes == distance_bytes) {
            return &journal->entry[i].metered;
        }
    }
    return NULL;
}

cvy_status cvy_journal_add(cvy_journal *journal, const cvy_op *op, const cvy_metered *metered, double spent_s)
{
    char line[LINE];
    const entry e = {.key = cvy_op_hash(op), .metered = *metered};
    CVY_TRY(add_entry(journal, &e));
    journal->spent_s = spent_s;
    print_row(&e, spent_s, line);
    if (journal->file && (fputs(line, journal->file) == EOF || fflush(journal->file) != 0)) {
        return fail_writing(journal);
    }
    return CVY_OK;
}
