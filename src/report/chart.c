/*
 * gnuplot reads a script from a file that has no name and writes SVG into another; no shell is asked.
 */
#include "report/chart_internal.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

extern char **environ;

static const char gnuplot[] = "gnuplot";

bool cvy_chart_is_possible(void)
{
    const char *path = getenv("PATH");
    for (const char *at = path; at && *at; at += strspn(at, ":")) {
        char file[4096];
        int length = (int)strcspn(at, ":");
        if (snprintf(file, sizeof file, "%.*s/%s", length, at, gnuplot) < (int)sizeof file && access(file, X_OK) == 0) {
            return true;
        }
        at += length;
    }
    return false;
}

/* ---- running it ---- */

/* The files that it reads and writes: standard input, output, error. */
typedef struct streams {
    FILE *file[3];
} streams;

static void close_streams(streams *s)
{
    for (int i = 0; i < 3; i++) {
        if (s->file[i]) {
            (void)fclose(s->file[i]);
        }
    }
}

static cvy_status open_streams(streams *s, const char *script, size_t bytes)
{
    *s = (streams){{NULL}};
    for (int i = 0; i < 3; i++) {
        s->file[i] = tmpfile();
        CVY_REQUIRE(s->file[i], CVY_ERR_IO, "no temporary file for a chart: %s", strerror(errno));
    }
    bool written = fwrite(script, 1, bytes, s->file[0]) == bytes && fflush(s->file[0]) == 0;
    CVY_REQUIRE(written, CVY_ERR_IO, "a temporary file for a chart: %s", strerror(errno));
    rewind(s->file[0]);
    (void)lseek(fileno(s->file[0]), 0, SEEK_SET);
    return CVY_OK;
}

static cvy_status wait_for(pid_t child, const streams *s)
{
    char words[160] = "";
    int state = 0;
    pid_t ended;
    do {
        ended = waitpid(child, &state, 0);
    } while (ended < 0 && errno == EINTR);
    bool unknown = ended < 0 && errno == ECHILD; /* whoever started us ignores children: what it drew tells */
    if (unknown || (ended == child && WIFEXITED(state) && WEXITSTATUS(state) == 0)) {
        return CVY_OK;
    }
    rewind(s->file[2]);
    size_t bytes = fread(words, 1, sizeof words - 1, s->file[2]);
    words[bytes] = '\0';
    for (char *at = words; *at; at++) {
        *at = *at == '\n' || *at == '\r' ? ' ' : *at;
    }
    return cvy_fail(CVY_ERR_IO, "gnuplot failed: %.120s", words + strspn(words, " "));
}

static cvy_status run_gnuplot(const streams *s)
{
    char program[] = "gnuplot", plain[] = "-d", input[] = "-";
    char *const words[] = {program, plain, input, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    CVY_REQUIRE(posix_spawn_file_actions_init(&actions) == 0, CVY_ERR_MEMORY, "no memory to start gnuplot");
    for (int i = 0; i < 3; i++) {
        (void)posix_spawn_file_actions_adddup2(&actions, fileno(s->file[i]), i);
    }
    int error = posix_spawnp(&child, program, &actions, NULL, words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    CVY_REQUIRE(error == 0, CVY_ERR_UNSUPPORTED, "gnuplot does not start: %s", strerror(error));
    return wait_for(child, s);
}

/* ---- what it wrote ---- */

static cvy_status take_svg(const streams *s, const cvy_chart_frame *frame, cvy_text *svg)
{
    FILE *file = s->file[1];
    CVY_REQUIRE(fseek(file, 0, SEEK_END) == 0 && ftell(file) > 0, CVY_ERR_IO, "gnuplot drew nothing");
    size_t bytes = (size_t)ftell(file);
    char *text = cvy_calloc(bytes + 1, 1);
    if (!text) {
        return CVY_ERR_MEMORY;
    }
    rewind(file);
    bytes = fread(text, 1, bytes, file);
    text[bytes] = '\0';
    bool drawn = cvy_chart_add_document(text, frame, svg);
    cvy_free(text);
    CVY_REQUIRE(drawn, CVY_ERR_IO, "gnuplot drew no SVG");
    return CVY_OK;
}

/* What a frame leaves open. */
static cvy_chart_frame complete_frame(const cvy_chart *chart, const cvy_chart_frame *given)
{
    enum { ROW = 26, TALL_ROW = 42, FEW_ROWS = 3, AROUND = 92, MOST_HEIGHT = 1600 };
    cvy_chart_frame frame = *given;
    frame.width = frame.width ? frame.width : CVY_CHART_WIDTH;
    frame.label = frame.label ? frame.label : chart->title;
    if (!frame.height && chart->kind == CVY_CHART_SPANS) {
        bool tall = cvy_chart_names_above(chart, &frame) || chart->rows <= FEW_ROWS;
        int height = AROUND + chart->rows * (tall ? TALL_ROW : ROW);
        frame.height = height < MOST_HEIGHT ? height : MOST_HEIGHT;
    } else if (!frame.height) {
        frame.height = CVY_CHART_HEIGHT;
    }
    return frame;
}

static bool is_small_enough(const cvy_chart *chart)
{
    return chart->series <= CVY_CHART_MOST_SERIES && chart->rows <= CVY_CHART_MOST_POINTS &&
           (chart->kind == CVY_CHART_LINES || chart->points <= CVY_CHART_MOST_POINTS);
}

cvy_status cvy_chart_draw_in(const cvy_chart *chart, const cvy_chart_frame *given, cvy_text *svg)
{
    CVY_REQUIRE(is_small_enough(chart), CVY_ERR_ARG, "a chart of %d series, %d rows and %d points is too large",
                chart->series, chart->rows, chart->points);
    const cvy_chart_frame frame = complete_frame(chart, given);
    cvy_text script = {0};
    streams s;
    cvy_chart_write_script(chart, &frame, &script);
    size_t bytes = script.length;
    char *text = cvy_text_take(&script);
    if (!text) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = open_streams(&s, text, bytes);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, run_gnuplot(&s));
    status = take_svg(&s, &frame, svg);
done:
    close_streams(&s);
    cvy_free(text);
    return status;
}

cvy_status cvy_chart_draw(const cvy_chart *chart, cvy_text *svg)
{
    const cvy_chart_frame frame = {.width = CVY_CHART_WIDTH, .height = CVY_CHART_HEIGHT};
    return cvy_chart_draw_in(chart, &frame, svg);
}

void cvy_chart_join(const char *const *document, int count, cvy_text *svg)
{
    cvy_text_add(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
                      "viewBox=\"0 0 %d %d\">\n", CVY_CHART_WIDTH, count * CVY_CHART_HEIGHT);
    for (int i = 0; i < count; i++) {
        cvy_text_add(svg, "<g transform=\"translate(0,%d)\"><svg width=\"%d\" height=\"%d\"%s</g>\n",
                     i * CVY_CHART_HEIGHT, CVY_CHART_WIDTH, CVY_CHART_HEIGHT, document[i] + strlen("<svg"));
    }
    cvy_text_add(svg, "</svg>\n");
}
