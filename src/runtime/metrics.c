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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

enum { BUFFER_BYTES = 64 << 10, LINE_BYTES = 512 };

static const double flush_every_s = 1.0;

struct cvy_metrics {
    char *path;
    int descriptor;
    int failure;           /* errno of the first write that failed; nothing is written after it */
    double flushed_s;
    locale_t locale;
    size_t length;
    char buffer[BUFFER_BYTES];
};

/* What a line shows, in this order, besides event, step and epoch. */
typedef struct field {
    const char *key;
    size_t offset;
    unsigned events;       /* bit e: event e shows it */
} field;

#define BIT(event) (1u << CVY_METRICS_##event)
#define FIELD(name, events) {#name, offsetof(cvy_metrics_line, name), events}

static const field fields[] = {
    FIELD(loss, BIT(STEP) | BIT(EPOCH) | BIT(END)),
    FIELD(train_accuracy, BIT(STEP) | BIT(EPOCH) | BIT(END)),
    FIELD(validation_loss, BIT(EPOCH) | BIT(END)),
    FIELD(validation_accuracy, BIT(EPOCH) | BIT(END)),
    FIELD(images_per_s, BIT(STEP) | BIT(EPOCH) | BIT(END)),
    FIELD(learning_rate, BIT(STEP)),
};

static const char *const event_name[CVY_METRICS_EVENT_COUNT] = {"start", "step", "epoch", "checkpoint", "end"};

/* ---- resuming ---- */

/* Whether a line is one of this file, and of a time that the position has behind it. */
static bool is_kept(const char *line, size_t bytes, const cvy_position *position)
{
    json_t *json = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, NULL);
    const char *event = json_string_value(json_object_get(json, "event"));
    const json_t *step = json_object_get(json, "step");
    const json_t *epoch = json_object_get(json, "epoch");
    bool kept = event && json_is_integer(step) && json_integer_value(step) <= position->step;
    if (kept && strcmp(event, event_name[CVY_METRICS_EPOCH]) == 0) {
        kept = json_is_integer(epoch) && json_integer_value(epoch) <= position->epoch;
    }
    json_decref(json);
    return kept;
}

static bool copy_kept(FILE *from, FILE *to, const cvy_position *position)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    bool whole = true;
    while (whole && (length = getline(&line, &capacity, from)) > 0) {
        size_t bytes = (size_t)length - (line[length - 1] == '\n');
        if (is_kept(line, bytes, position)) {
            whole = fwrite(line, 1, bytes, to) == bytes && fputc('\n', to) != EOF;
        }
    }
    free(line);
    return whole && !ferror(from);
}

/* Copy the lines that stay, sync, and put the copy in the file's place. */
static cvy_status rewrite(const char *path, const char *aside, const cvy_position *position)
{
    FILE *from = fopen(path, "rbe");
    FILE *to = from ? fopen(aside, "wbe") : NULL;
    cvy_status status = CVY_OK;
    if (!to || !copy_kept(from, to, position) || fflush(to) != 0 || fsync(fileno(to)) != 0) {
        status = cvy_fail(CVY_ERR_IO, "%s: cannot drop the lines beyond step %" PRId64 ": %s", path, position->step,
                          strerror(errno));
    }
    if (to && fclose(to) != 0 && status == CVY_OK) {
        status = cvy_fail(CVY_ERR_IO, "%s: cannot write: %s", aside, strerror(errno));
    }
    if (from) {
        fclose(from);
    }
    if (status == CVY_OK) {
        status = cvy_file_replace(aside, path, CVY_ERR_IO);
    }
    if (status != CVY_OK) {
        (void)unlink(aside);
    }
    return status;
}

static cvy_status drop_later_lines(const char *path, const cvy_position *position)
{
    if (!cvy_file_exists(path)) {
        return CVY_OK;
    }
    size_t bytes = strlen(path) + sizeof ".tmp";
    char *aside = cvy_calloc(bytes, 1);
    if (!aside) {
        return CVY_ERR_MEMORY;
    }
    snprintf(aside, bytes, "%s.tmp", path);
    cvy_status status = rewrite(path, aside, position);
    cvy_free(aside);
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

cvy_status cvy_metrics_open(const char *path, const cvy_position *position, cvy_metrics **metrics_out)
{
    CVY_TRY(drop_later_lines(path, position));
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

void cvy_metrics_flush(cvy_metrics *metrics)
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
}

/* Print a line; its length. All numbers are of bounded width, so that LINE_BYTES always suffice. */
static size_t print_line(char *text, cvy_metrics_event event, const cvy_metrics_line *line)
{
    int length = snprintf(text, LINE_BYTES, "{\"event\":\"%s\",\"step\":%" PRId64 ",\"epoch\":%" PRId64,
                          event_name[event], line->step, line->epoch);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!(fields[i].events >> event & 1)) {
            continue;
        }
        double value;
        memcpy(&value, (const char *)line + fields[i].offset, sizeof value);
        size_t left = LINE_BYTES - (size_t)length;
        length += isfinite(value) ? snprintf(text + length, left, ",\"%s\":%.9g", fields[i].key, value)
                                  : snprintf(text + length, left, ",\"%s\":null", fields[i].key);
    }
    length += snprintf(text + length, LINE_BYTES - (size_t)length, "}\n");
    return (size_t)length;
}

void cvy_metrics_add(cvy_metrics *metrics, cvy_metrics_event event, const cvy_metrics_line *line)
{
    if (metrics->length + LINE_BYTES > BUFFER_BYTES) {
        cvy_metrics_flush(metrics);
    }
    locale_t before = uselocale(metrics->locale);
    metrics->length += print_line(metrics->buffer + metrics->length, event, line);
    (void)uselocale(before);
    if (event != CVY_METRICS_STEP || cvy_clock_s() - metrics->flushed_s >= flush_every_s) {
        cvy_metrics_flush(metrics);
    }
}

cvy_status cvy_metrics_close(cvy_metrics **metrics)
{
    cvy_metrics *closed = *metrics;
    if (!closed) {
        return CVY_OK;
    }
    cvy_metrics_flush(closed);
    if (!closed->failure && fsync(closed->descriptor) != 0 && errno != EINVAL) {
        closed->failure = errno;
    }
    cvy_status status = closed->failure ? cvy_fail(CVY_ERR_IO, "%s: lines are missing: cannot write: %s", closed->path,
                                                   strerror(closed->failure))
                                        : CVY_OK;
    release(closed);
    *metrics = NULL;
    return status;
}
