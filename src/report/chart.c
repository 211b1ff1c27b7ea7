/*
 * gnuplot reads a script from a file that has no name and writes SVG into another; no shell is asked. What it writes
 * gets a style for light and dark, and is given back without the XML line, so that it stands in a page as well.
 */
#include "report/chart.h"

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

/* Ink as the script names it, and how gnuplot writes that. */
static const char *const inks[] = {"rgb(118,118,118)", "rgb(118, 118, 118)"};
static const char style[] =
    "<style>.convoy-chart{background:#fff}.convoy-chart [fill=\"#767676\"]{fill:#1f2328}"
    ".convoy-chart [stroke=\"#767676\"]{stroke:#1f2328}@media (prefers-color-scheme:dark){"
    ".convoy-chart{background:#15181c}.convoy-chart [fill=\"#767676\"]{fill:#e6e6e6}"
    ".convoy-chart [stroke=\"#767676\"]{stroke:#e6e6e6}}</style>\n";

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

/* Append text with the ways in which gnuplot writes ink made into one. */
static void add_with_ink(const char *from, cvy_text *svg)
{
    while (*from) {
        const char *next = NULL, *found = NULL;
        for (size_t i = 0; i < sizeof inks / sizeof *inks; i++) {
            const char *at = strstr(from, inks[i]);
            if (at && (!next || at < next)) {
                next = at;
                found = inks[i];
            }
        }
        if (!next) {
            cvy_text_add(svg, "%s", from);
            return;
        }
        cvy_text_add(svg, "%.*s#767676", (int)(next - from), from);
        from = next + strlen(found);
    }
}

static cvy_status take_svg(const streams *s, cvy_text *svg)
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
    char *begin = strstr(text, "<svg"), *inside = begin ? strchr(begin, '>') : NULL;
    if (inside) {
        *inside++ = '\0';
        cvy_text_add(svg, "%s class=\"convoy-chart\" role=\"img\">\n%s", begin, style);
        add_with_ink(inside, svg);
    }
    cvy_free(text);
    CVY_REQUIRE(inside, CVY_ERR_IO, "gnuplot drew no SVG");
    return CVY_OK;
}

cvy_status cvy_chart_draw(const cvy_chart *chart, cvy_text *svg)
{
    CVY_REQUIRE(chart->series <= CVY_CHART_MOST_SERIES && chart->points <= CVY_CHART_MOST_POINTS &&
                chart->rows <= CVY_CHART_MOST_POINTS, CVY_ERR_ARG, "a chart of %d series and %d points is too large",
                chart->series, chart->points);
    cvy_text script = {0};
    streams s;
    cvy_chart_write_script(chart, &script);
    size_t bytes = script.length;
    char *text = cvy_text_take(&script);
    if (!text) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = open_streams(&s, text, bytes);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, run_gnuplot(&s));
    status = take_svg(&s, svg);
done:
    close_streams(&s);
    cvy_free(text);
    return status;
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
