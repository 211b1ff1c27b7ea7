/* The list of a matrix: a line a row, five words; the file's own text is cut where words end. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/matrix.h"
#include "cli/planning.h"

enum { MOST_BYTES = 1 << 20, WORDS = 5, MOST_THREADS = 4096 };

static const char *const names[WORDS] = {"model", "batch", "ranks", "threads", "strategy"};

/* Cut a line into words; how many there are, one too many at most. */
static int cut_words(char *line, char *word[WORDS + 1])
{
    static const char blanks[] = " \t\r";
    char *rest = line, *found;
    int words = 0;
    line[strcspn(line, "#")] = '\0';
    while (words <= WORDS && (found = strtok_r(words ? NULL : line, blanks, &rest))) {
        word[words++] = found;
    }
    return words;
}

static cvy_status read_count(const char *file, int line, const char *name, const char *word, int64_t most,
                             int64_t *count_out)
{
    char shown[CVY_WORD_TEXT], *end;
    errno = 0;
    long long count = strtoll(word, &end, 10);
    CVY_REQUIRE(errno == 0 && end != word && *end == '\0' && count >= 1 && count <= most, CVY_ERR_INPUT,
                "%s:%d: %s: found '%s', expected 1 to %" PRId64, file, line, name, cvy_print_word(word, shown), most);
    *count_out = count;
    return CVY_OK;
}

static cvy_status add_row(const char *file, int line, char *const word[WORDS], cli_matrix *matrix)
{
    cli_matrix_row row = {.model = word[0], .strategy = word[4], .line = line, .machine = -1};
    CVY_TRY(read_count(file, line, names[2], word[2], CVY_MAX_RANKS, &row.ranks));
    CVY_TRY(read_count(file, line, names[3], word[3], MOST_THREADS, &row.threads));
    cvy_status status = cli_parse_batch(word[1], row.ranks, &row.batch, NULL);
    CVY_REQUIRE(status == CVY_OK, cvy_fail_within(status, "%s:%d", file, line), "%s", cvy_error_message());
    CVY_REQUIRE(strcmp(word[4], "auto") != 0, CVY_ERR_INPUT, "%s:%d: strategy: found 'auto', expected the one to run",
                file, line);
    CVY_REQUIRE(matrix->rows < CLI_MATRIX_MOST_ROWS, CVY_ERR_INPUT, "%s:%d: more than %d rows", file, line,
                CLI_MATRIX_MOST_ROWS);
    CVY_TRY(cvy_array_reserve(&matrix->row, matrix->rows, &matrix->capacity, sizeof *matrix->row));
    matrix->row[matrix->rows++] = row;
    return CVY_OK;
}

cvy_status cli_matrix_read(const char *path, cli_matrix *matrix)
{
    size_t bytes = 0;
    int line = 0;
    CVY_TRY(cvy_file_read(path, MOST_BYTES, CVY_ERR_INPUT, &matrix->text, &bytes));
    CVY_REQUIRE(!memchr(matrix->text, '\0', bytes), CVY_ERR_INPUT, "%s: it is no text", path);
    for (char *at = matrix->text, *next; at; at = next) {
        char *word[WORDS + 1];
        next = strchr(at, '\n');
        if (next) {
            *next++ = '\0';
        }
        line++;
        int words = cut_words(at, word);
        CVY_REQUIRE(words == 0 || words == WORDS, CVY_ERR_INPUT,
                    "%s:%d: found %s%d word%s, expected MODEL BATCH RANKS THREADS STRATEGY", path, line,
                    words > WORDS ? "more than " : "", words > WORDS ? WORDS : words, words == 1 ? "" : "s");
        if (words) {
            CVY_TRY(add_row(path, line, word, matrix));
        }
    }
    CVY_REQUIRE(matrix->rows > 0, CVY_ERR_INPUT, "%s: no rows, expected lines of MODEL BATCH RANKS THREADS STRATEGY",
                path);
    return CVY_OK;
}
