/*
 * A run is convoy bench in a process of its own: mpiexec, or what --launcher says, where there are several ranks. What
 * it prints goes into files without names, so that no pipe fills up while it computes; this process sleeps meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/matrix.h"

extern char **environ;

enum { MOST_WORDS = 256, PATH_TEXT = 4096, OUTPUT_BYTES = 4 << 20, LAST_BYTES = 4096 };

static const char default_launcher[] = "mpiexec -n {ranks}";

/* ---- the line ---- */

/* Append to a text with a blank before; printf style. */
__attribute__((format(printf, 3, 4)))
static cvy_status add(char *text, size_t room, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(text + length, room - length, format, arguments);
    va_end(arguments);
    CVY_REQUIRE(added >= 0 && (size_t)added < room - length, CVY_ERR_INPUT, "the line of a run is too long: %.80s",
                text);
    return CVY_OK;
}

cvy_status cli_matrix_ask(const cli_matrix *matrix, const cli_matrix_row *row, char *text)
{
    const cli_options *o = matrix->options;
    const size_t room = CLI_MATRIX_WORDS_TEXT;
    text[0] = '\0';
    CVY_TRY(add(text, room, "bench %s --batch %" PRId64 " --threads %" PRId64 " --strategy %s", row->model, row->batch,
                row->threads, row->strategy));
    CVY_TRY(add(text, room, " --optimizer %s --bucket %" PRId64 "B", cvy_optimizer_names[o->train.optimizer],
                row->bucket_bytes));
    if (o->plan.norm_axes) {
        CVY_TRY(add(text, room, " --norm-axes %s", o->plan.norm_axes));
    }
    return o->plan.shard_optimizer ? add(text, room, " --shard-optimizer") : CVY_OK;
}

/* A whole line, cut into words. */
typedef struct line {
    char launcher[PATH_TEXT], program[PATH_TEXT], words[CLI_MATRIX_WORDS_TEXT + 128];
    char *word[MOST_WORDS + 1];
    int count;
} line;

static cvy_status cut_words(char *text, line *l)
{
    char *rest = text, *found;
    for (char *from = text; (found = strtok_r(from, " \t", &rest)); from = NULL) {
        CVY_REQUIRE(l->count < MOST_WORDS, CVY_ERR_INPUT, "the line of a run has more than %d words", MOST_WORDS);
        l->word[l->count++] = found;
    }
    return CVY_OK;
}

/* Nodes that the ranks of a row fill. */
static int64_t count_nodes(const cli_matrix *matrix, const cli_matrix_row *row)
{
    int64_t each = row->machine >= 0 ? matrix->machine[row->machine].devices_per_node : row->ranks;
    return cvy_ceil_div(row->ranks, cvy_max_i64(each, 1));
}

/* The launcher's words with their figures; one that has no place for the ranks gets -n at its end. */
static cvy_status write_launcher(const cli_matrix *matrix, const cli_matrix_row *row, line *l)
{
    const struct {
        const char *place;
        int64_t figure;
    } places[] = {{"{ranks}", row->ranks}, {"{threads}", row->threads}, {"{nodes}", count_nodes(matrix, row)}};
    const char *from = matrix->options->matrix.launcher ? matrix->options->matrix.launcher : default_launcher;
    bool counted = strstr(from, places[0].place) != NULL;
    while (*from) {
        size_t i = 0;
        while (i < 3 && strncmp(from, places[i].place, strlen(places[i].place)) != 0) {
            i++;
        }
        CVY_TRY(i < 3 ? add(l->launcher, sizeof l->launcher, "%" PRId64, places[i].figure)
                      : add(l->launcher, sizeof l->launcher, "%c", *from));
        from += i < 3 ? strlen(places[i].place) : 1;
    }
    return counted ? CVY_OK : add(l->launcher, sizeof l->launcher, " -n %" PRId64, row->ranks);
}

/* This very program. */
static void find_program(line *l)
{
    ssize_t bytes = readlink("/proc/self/exe", l->program, sizeof l->program - 1);
    l->program[bytes > 0 ? bytes : 0] = '\0';
    if (bytes <= 0) {
        snprintf(l->program, sizeof l->program, "convoy");
    }
}

/* As many iterations as the time allows: medians of fewer than five say little, and a guess may be far too short. */
static int64_t choose_iterations(const cli_matrix *matrix, const cli_matrix_row *row, double guess_s)
{
    const double least = 5.0, unknown = 10.0, most = row->runs ? 1000.0 : 30.0;
    double wish = guess_s > 0.0 ? matrix->options->matrix.seconds / guess_s : unknown;
    return (int64_t)fmin(fmax(ceil(wish), least), most);
}

static cvy_status write_line(const cli_matrix *matrix, const cli_matrix_row *row, double guess_s, line *l)
{
    int64_t iterations = choose_iterations(matrix, row, guess_s);
    if (row->ranks > 1) {
        CVY_TRY(write_launcher(matrix, row, l));
        CVY_TRY(cut_words(l->launcher, l));
    }
    find_program(l);
    l->word[l->count++] = l->program;
    CVY_TRY(cli_matrix_ask(matrix, row, l->words));
    CVY_TRY(add(l->words, sizeof l->words, " --iterations %" PRId64 " --warmup %" PRId64 " --json --quiet", iterations,
                cvy_max_i64(3, iterations / 10)));
    CVY_TRY(cut_words(l->words, l));
    l->word[l->count] = NULL;
    return CVY_OK;
}

/* ---- the process ---- */

/* Start it with files for its output and its errors, and wait. @return whether it ended well */
static cvy_status run_process(line *l, FILE *const file[2], bool *well_out)
{
    posix_spawn_file_actions_t actions;
    pid_t child, ended;
    int state = 0;
    CVY_REQUIRE(posix_spawn_file_actions_init(&actions) == 0, CVY_ERR_MEMORY, "no memory to start a run");
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, fileno(file[0]), STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, fileno(file[1]), STDERR_FILENO);
    int error = posix_spawnp(&child, l->word[0], &actions, NULL, l->word, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    CVY_REQUIRE(error == 0, CVY_ERR_UNSUPPORTED, "--launcher: %.100s does not start: %s", l->word[0], strerror(error));
    do {
        ended = waitpid(child, &state, 0);
    } while (ended < 0 && errno == EINTR);
    *well_out = ended == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
    return CVY_OK;
}

/* The file's last line that says "error:", else its last one; of launchers' own words the last are seldom the cause. */
static void find_last_words(FILE *file, char *words, size_t room)
{
    static const char mark[] = "error: ";
    char text[LAST_BYTES];
    bool marked = false;
    snprintf(words, room, "it ended without a word");
    rewind(file);
    while (fgets(text, sizeof text, file)) {
        const char *error = strstr(text, mark);
        text[strcspn(text, "\r\n")] = '\0';
        if (error || (!marked && text[strspn(text, " -*=")])) {
            snprintf(words, room, "%.250s", error ? error + sizeof mark - 1 : text);
            marked = marked || error;
        }
    }
    for (char *at = words; *at; at++) {
        *at = (unsigned char)*at < ' ' ? ' ' : *at;
    }
}

/* The line of JSON among what was printed. */
static cvy_status parse_answer(const char *text, cli_matrix_run *run_out)
{
    static const double MOST_SECONDS = 1e9;
    const cvy_json_source source = {"the answer of convoy bench", CVY_ERR_RANK};
    const char *at = text;
    while (at && *at != '{') {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    CVY_REQUIRE(at, CVY_ERR_RANK, "convoy bench gave no answer");
    json_t *json = NULL;
    CVY_TRY(cvy_json_parse(&source, at, strcspn(at, "\n"), &json));
    cvy_status status = cvy_json_get_real(json, "iteration_s", &source, 1e-9, MOST_SECONDS, &run_out->iteration_s);
    status = status == CVY_OK ? cvy_json_get_real(json, "probe_s", &source, 0.0, MOST_SECONDS, &run_out->probe_s)
                              : status;
    status = status == CVY_OK ? cvy_json_get_int(json, "peak_memory_bytes", &source, 0, INT64_MAX,
                                                 &run_out->memory_bytes) : status;
    json_decref(json);
    return status;
}

static cvy_status read_answer(FILE *file, cli_matrix_run *run_out)
{
    char *text = cvy_calloc(OUTPUT_BYTES, 1);
    if (!text) {
        return CVY_ERR_MEMORY;
    }
    rewind(file);
    (void)fread(text, 1, OUTPUT_BYTES - 1, file);
    cvy_status status = parse_answer(text, run_out);
    cvy_free(text);
    return status;
}

cvy_status cli_matrix_measure(const cli_matrix *matrix, const cli_matrix_row *row, double guess_s,
                              cli_matrix_run *run_out)
{
    line l = {.count = 0};
    FILE *file[2] = {tmpfile(), tmpfile()};
    cvy_status status;
    bool well = false;
    char words[CVY_WHY_TEXT];
    CVY_REQUIRE_GOTO(status, done, file[0] && file[1], CVY_ERR_IO, "no temporary file for a run: %s", strerror(errno));
    CVY_TRY_GOTO(status, done, write_line(matrix, row, guess_s, &l));
    CVY_TRY_GOTO(status, done, run_process(&l, file, &well));
    if (!well) {
        find_last_words(file[1], words, sizeof words);
        status = cvy_fail(CVY_ERR_RANK, "%s", words);
        goto done;
    }
    status = read_answer(file[0], run_out);
done:
    for (int i = 0; i < 2; i++) {
        if (file[i]) {
            (void)fclose(file[i]);
        }
    }
    return status;
}
