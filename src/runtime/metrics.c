/*
 * Appending is one formatted line into a buffer, and a write(2) when a second has passed or something happened that one
 * wants to see at once. Resuming rewrites the file aside, line by line, and renames it. Numbers are printed in the C
 * locale whatever the program set: JSON's decimal point is a point.
 */
#include "runtime/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

enum {
    NUMBERS_BYTES = 512,                                        /* all of a line but its text: numbers are bounded */
    LINE_BYTES = NUMBERS_BYTES + 6 * CVY_METRICS_TEXT,          /* a byte of text is at most \u001f */
    BUFFER_BYTES = 2 * LINE_BYTES,
};

static const double flush_every_s = 1.0;

struct cvy_metrics {
    char *path;
    int descriptor;
    int failure; /* errno of the first write that failed; nothing is written after it */
    double flushed_s;
    locale_t locale;
    size_t length;
    char buffer[BUFFER_BYTES];
};

/* ---- resuming ---- */

/* Where a run goes on: lines beyond are dropped. */
typedef struct cut {
    int64_t last_step;
    bool within; /* an epoch */
} cut;

/* Whether a line is one of a run, and of what was done up to the border. */
static bool is_kept(const char *line, size_t bytes, const cut *border)
{
    json_t *json = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, NULL);
    const json_t *number = json_object_get(json, "step");
    const char *event = json_string_value(json_object_get(json, "event"));
    int64_t step = json_integer_value(number);
    bool kept = event && json_is_integer(number) && step <= border->last_step &&
                !(border->within && step == border->last_step && strcmp(event, "epoch") == 0);
    json_decref(json);
    return kept;
}

/* Read a line, without its end; one that is longer than any of a run counts as empty. False at the end of the file. */
static bool read_line(FILE *from, char line[LINE_BYTES], size_t *bytes_out)
{
    size_t bytes = 0;
    int c = getc(from);
    bool found = c != EOF;
    for (; c != EOF && c != '\n'; c = getc(from)) {
        if (bytes < LINE_BYTES) {
            line[bytes] = (char)c;
        }
        bytes++;
    }
    *bytes_out = bytes <= LINE_BYTES ? bytes : 0;
    return found;
}

static bool copy_kept(FILE *from, FILE *to, const cut *border)
{
    char line[LINE_BYTES];
    size_t bytes;
    bool whole = true;
    while (whole && read_line(from, line, &bytes)) {
        if (is_kept(line, bytes, border)) {
            whole = fwrite(line, 1, bytes, to) == bytes && fputc('\n', to) != EOF;
        }
    }
    return whole && !ferror(from);
}

/* Copy the lines that stay, sync, and put the copy in the file's place. */
static cvy_status rewrite(FILE *from, const char *path, const char *aside, const cut *border)
{
    FILE *to = fopen(aside, "wbe");
    cvy_status status = CVY_OK;
    if (!to || !copy_kept(from, to, border) || fflush(to) != 0 || fsync(fileno(to)) != 0) {
        status = cvy_fail(CVY_ERR_IO, "%s: cannot drop the lines beyond step %" PRId64 ": %s", path,
                          border->last_step, strerror(errno));
    }
    if (to && fclose(to) != 0 && status == CVY_OK) {
        status = cvy_fail(CVY_ERR_IO, "%s: cannot write: %s", aside, strerror(errno));
    }
    if (status == CVY_OK) {
        status = cvy_file_replace(aside, path, CVY_ERR_IO);
    }
    if (status != CVY_OK) {
        (void)unlink(aside);
    }
    return status;
}

static cvy_status open_lines(const char *path, FILE **from_out)
{
    struct stat info;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold us up */
    CVY_REQUIRE(descriptor >= 0, CVY_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
    bool regular = fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
    *from_out = regular ? fdopen(descriptor, "rb") : NULL;
    if (!*from_out) {
        close(descriptor);
        return regular ? cvy_fail(CVY_ERR_MEMORY, "%s: no memory to read it", path)
                       : cvy_fail(CVY_ERR_IO, "%s: not a regular file", path);
    }
    return CVY_OK;
}

static cvy_status drop_later_lines(const char *path, const cut *border)
{
    if (!cvy_file_exists(path)) {
        return CVY_OK;
    }
    FILE *from;
    CVY_TRY(open_lines(path, &from));
    size_t bytes = strlen(path) + sizeof ".tmp";
    char *aside = cvy_calloc(bytes, 1);
    cvy_status status = CVY_ERR_MEMORY;
    if (aside) {
        snprintf(aside, bytes, "%s.tmp", path);
        status = rewrite(from, path, aside, border);
    }
    cvy_free(aside);
    fclose(from);
    return status;
}

/* ---- appending ---- */

static void release(cvy_metrics *metrics)
{
    if (metrics->descriptor >= 0) {
        close(metrics->descriptor);
    }
    if (metrics->locale) {
        freelocale(metrics->locale);
    }
    cvy_free(metrics->path);
    cvy_free(metrics);
}

cvy_status cvy_metrics_open(const char *path, int64_t last_step, bool within, cvy_metrics **metrics_out)
{
    CVY_TRY(drop_later_lines(path, &(cut){last_step, within}));
    cvy_metrics *metrics = cvy_calloc(1, sizeof *metrics);
    if (!metrics) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = CVY_OK;
    metrics->descriptor = -1;
    metrics->flushed_s = cvy_clock_s();
    metrics->path = cvy_strdup(path);
    metrics->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!metrics->path || !metrics->locale) {
        status = cvy_fail(CVY_ERR_MEMORY, "%s: no memory to open it", path);
    } else {
        metrics->descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (metrics->descriptor < 0) {
            status = cvy_fail(CVY_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
        }
    }
    if (status != CVY_OK) {
        release(metrics);
        return status;
    }
    *metrics_out = metrics;
    return CVY_OK;
}

static cvy_status tell_failure(const cvy_metrics *metrics)
{
    return metrics->failure ? cvy_fail(CVY_ERR_IO, "%s: lines are missing: cannot write: %s", metrics->path,
                                       strerror(metrics->failure))
                            : CVY_OK;
}

cvy_status cvy_metrics_flush(cvy_metrics *metrics)
{
    const char *from = metrics->buffer;
    while (metrics->length && !metrics->failure) {
        ssize_t put = write(metrics->descriptor, from, metrics->length);
        if (put >= 0) {
            from += put;
            metrics->length -= (size_t)put;
        } else if (errno != EINTR) {
            metrics->failure = errno;
        }
    }
    metrics->length = 0;
    metrics->flushed_s = cvy_clock_s();
    return tell_failure(metrics);
}

/* Append a member; its value is null or missing where it is not finite. */
static int print_number(char *text, int length, const char *key, double value, bool null)
{
    size_t room = (size_t)(LINE_BYTES - length);
    if (isfinite(value)) {
        return length + snprintf(text + length, room, ",\"%s\":%.9g", key, value);
    }
    return null ? length + snprintf(text + length, room, ",\"%s\":null", key) : length;
}

/* Append a JSON string. */
static int print_text(char *text, int length, const char *words)
{
    text[length++] = '"';
    for (const char *c = words; *c; c++) {
        if ((unsigned char)*c < 0x20) {
            length += sprintf(text + length, "\\u%04x", (unsigned)*c);
            continue;
        }
        if (*c == '"' || *c == '\\') {
            text[length++] = '\\';
        }
        text[length++] = *c;
    }
    text[length++] = '"';
    return length;
}

/* Print a line; its length, which the caller has made room for. */
static int print_line(char *text, const cvy_metrics_line *line)
{
    bool shows_loss = strcmp(line->event, "start") != 0 && strcmp(line->event, "checkpoint") != 0;
    int length = snprintf(text, LINE_BYTES, "{\"event\":\"%.32s\",\"step\":%" PRId64 ",\"epoch\":%" PRId64, line->event,
                          line->step, line->epoch);
    length = print_number(text, length, "loss", line->loss, shows_loss);
    length = print_number(text, length, "images_per_s", line->images_per_s, false);
    length = print_number(text, length, "learning_rate", line->learning_rate, false);
    length = print_number(text, length, "train_accuracy", line->train_accuracy, false);
    length = print_number(text, length, "validation_accuracy", line->validation_accuracy, false);
    length = print_number(text, length, "validation_loss", line->validation_loss, false);
    if (line->text_key) {
        length += snprintf(text + length, (size_t)(LINE_BYTES - length), ",\"%.32s\":", line->text_key);
        length = print_text(text, length, line->text);
    }
    text[length++] = '}';
    text[length++] = '\n';
    return length;
}

cvy_status cvy_metrics_add(cvy_metrics *metrics, const cvy_metrics_line *line)
{
    CVY_REQUIRE(!line->text_key || strlen(line->text) <= CVY_METRICS_TEXT, CVY_ERR_ARG,
                "%s: a text of more than %d bytes", metrics->path, (int)CVY_METRICS_TEXT);
    if (metrics->length + LINE_BYTES > BUFFER_BYTES) {
        CVY_TRY(cvy_metrics_flush(metrics));
    }
    locale_t before = uselocale(metrics->locale);
    metrics->length += (size_t)print_line(metrics->buffer + metrics->length, line);
    (void)uselocale(before);
    bool waits = strcmp(line->event, "step") == 0 && cvy_clock_s() - metrics->flushed_s < flush_every_s;
    return waits ? tell_failure(metrics) : cvy_metrics_flush(metrics);
}

cvy_status cvy_metrics_close(cvy_metrics **metrics)
{
    cvy_metrics *closed = *metrics;
    if (!closed) {
        return CVY_OK;
    }
    cvy_status status = cvy_metrics_flush(closed);
    if (status == CVY_OK && fsync(closed->descriptor) != 0 && errno != EINVAL) {
        closed->failure = errno;
        status = tell_failure(closed);
    }
    release(closed);
    *metrics = NULL;
    return status;
}
