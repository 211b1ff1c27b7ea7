/*
 * The journal of a matrix: a line of JSON for each run, appended at once. A run counts for a row where host, version,
 * number of ranks and the very words of convoy bench are the same; other lines stay, and mean nothing here. What is cut
 * off behind the last whole line goes, so a matrix that was killed at any moment goes on.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/matrix.h"
#include "convoy/version.h"

enum { LIMIT_BYTES = 64 << 20, HOST_TEXT = 256 };

struct cli_matrix_journal {
    const char *path;
    FILE *file;
    char host[HOST_TEXT];
};

static cvy_status fail_writing(const cli_matrix_journal *journal)
{
    return cvy_fail(CVY_ERR_IO, "%s: %s", journal->path, strerror(errno));
}

/* ---- reading ---- */

typedef struct entry {
    const char *host, *version, *line;
    int64_t ranks;
    cli_matrix_run run;
} entry;

static cvy_status read_entry(const json_t *json, const cvy_json_source *source, entry *e)
{
    CVY_REQUIRE(json_is_object(json), CVY_ERR_INPUT, "%s: no object", source->file);
    CVY_TRY(cvy_json_get_text(json, "host", source, &e->host));
    CVY_TRY(cvy_json_get_text(json, "version", source, &e->version));
    CVY_TRY(cvy_json_get_text(json, "run", source, &e->line));
    CVY_TRY(cvy_json_get_int(json, "ranks", source, 1, CVY_MAX_RANKS, &e->ranks));
    CVY_TRY(cvy_json_get_real(json, "iteration_s", source, 1e-9, 1e9, &e->run.iteration_s));
    e->run.probe_s = 0.0; /* of runs before there were probes */
    if (json_object_get(json, "probe_s")) {
        CVY_TRY(cvy_json_get_real(json, "probe_s", source, 0.0, 1e9, &e->run.probe_s));
    }
    return cvy_json_get_int(json, "peak_memory_bytes", source, 0, INT64_MAX, &e->run.memory_bytes);
}

static cvy_status give_entry(const cli_matrix_journal *journal, const entry *e, cli_matrix *matrix)
{
    char text[CLI_MATRIX_WORDS_TEXT];
    if (strcmp(e->host, journal->host) != 0 || strcmp(e->version, CVY_VERSION) != 0) {
        return CVY_OK;
    }
    for (int i = 0; i < matrix->rows; i++) {
        cli_matrix_row *row = &matrix->row[i];
        CVY_TRY(cli_matrix_ask(matrix, row, text));
        if (row->ranks == e->ranks && row->runs < matrix->options->matrix.runs && strcmp(text, e->line) == 0) {
            cli_matrix_add_run(&e->run, row);
        }
    }
    return CVY_OK;
}

/* Take what the whole lines say; how many bytes they are. */
static cvy_status read_lines(const cli_matrix_journal *journal, const char *data, cli_matrix *matrix, size_t *whole_out)
{
    const char *at = data, *end;
    for (int line = 1; (end = strchr(at, '\n')); line++, at = end + 1) {
        char name[HOST_TEXT];
        const cvy_json_source source = {name, CVY_ERR_INPUT};
        json_t *json = NULL;
        entry e;
        snprintf(name, sizeof name, "%.200s:%d", journal->path, line);
        CVY_TRY(cvy_json_parse(&source, at, (size_t)(end - at), &json));
        cvy_status status = read_entry(json, &source, &e);
        status = status == CVY_OK ? give_entry(journal, &e, matrix) : status;
        json_decref(json);
        CVY_TRY(status);
    }
    CVY_REQUIRE(at != data || !*at || *at == '{', CVY_ERR_INPUT, "%s: it holds no runs of a matrix; move it away",
                journal->path);
    *whole_out = (size_t)(at - data);
    return CVY_OK;
}

static cvy_status take_up(cli_matrix_journal *journal, cli_matrix *matrix)
{
    char *data = NULL;
    size_t bytes = 0, whole = 0;
    if (cvy_file_exists(journal->path)) {
        CVY_TRY(cvy_file_read(journal->path, LIMIT_BYTES, CVY_ERR_INPUT, &data, &bytes));
        cvy_status status = read_lines(journal, data, matrix, &whole);
        cvy_free(data);
        CVY_TRY(status);
    }
    journal->file = fopen(journal->path, whole ? "r+" : "w");
    bool cut = journal->file && fseek(journal->file, (long)whole, SEEK_SET) == 0 &&
               ftruncate(fileno(journal->file), (off_t)whole) == 0;
    return cut ? CVY_OK : fail_writing(journal);
}

cvy_status cli_matrix_journal_open(const char *path, cli_matrix *matrix, cli_matrix_journal **journal_out)
{
    cli_matrix_journal *journal = cvy_calloc(1, sizeof *journal);
    if (!journal) {
        return CVY_ERR_MEMORY;
    }
    journal->path = path;
    if (gethostname(journal->host, sizeof journal->host - 1) != 0) {
        journal->host[0] = '\0';
    }
    cvy_status status = path ? take_up(journal, matrix) : CVY_OK;
    if (status != CVY_OK) {
        cli_matrix_journal_close(&journal);
        return status;
    }
    *journal_out = journal;
    return CVY_OK;
}

/* ---- writing ---- */

cvy_status cli_matrix_journal_add(cli_matrix_journal *journal, const cli_matrix *matrix, const cli_matrix_row *row,
                                  const cli_matrix_run *run)
{
    char text[CLI_MATRIX_WORDS_TEXT];
    if (!journal->file) {
        return CVY_OK;
    }
    CVY_TRY(cli_matrix_ask(matrix, row, text));
    json_t *json = json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:I}", "host", journal->host, "version", CVY_VERSION,
                             "run", text, "ranks", (json_int_t)row->ranks, "iteration_s", run->iteration_s, "probe_s",
                             run->probe_s, "peak_memory_bytes", (json_int_t)run->memory_bytes);
    CVY_REQUIRE(json, CVY_ERR_MEMORY, "no memory for a line of %s", journal->path);
    bool written = json_dumpf(json, journal->file, JSON_COMPACT) == 0 && fputc('\n', journal->file) != EOF &&
                   fflush(journal->file) == 0;
    json_decref(json);
    return written ? CVY_OK : fail_writing(journal);
}

void cli_matrix_journal_close(cli_matrix_journal **journal)
{
    if (*journal) {
        if ((*journal)->file) {
            (void)fclose((*journal)->file);
        }
        cvy_free(*journal);
        *journal = NULL;
    }
}
