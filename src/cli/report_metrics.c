/* The course of a run, out of its metrics.jsonl. Lines that say nothing of it, or are half-written, are passed over. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/report.h"

enum { LIMIT_BYTES = 512 << 20 };

static double get_figure(const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static cvy_run_note read_note(const json_t *line)
{
    return (cvy_run_note){
        .step = get_figure(line, "step"),
        .epoch = get_figure(line, "epoch"),
        .loss = get_figure(line, "loss"),
        .learning_rate = get_figure(line, "learning_rate"),
        .images_per_s = get_figure(line, "images_per_s"),
        .train_accuracy = get_figure(line, "train_accuracy"),
        .validation_accuracy = get_figure(line, "validation_accuracy"),
        .validation_loss = get_figure(line, "validation_loss"),
    };
}

/* Notes must ascend: what does not was written by nobody. */
static cvy_status add_note(const json_t *line, cvy_run_note **notes, int *count, int *capacity)
{
    const cvy_run_note note = read_note(line);
    if (!isfinite(note.step) || (*count > 0 && note.step <= (*notes)[*count - 1].step)) {
        return CVY_OK;
    }
    CVY_TRY(cvy_array_reserve(notes, *count, capacity, sizeof **notes));
    (*notes)[(*count)++] = note;
    return CVY_OK;
}

static cvy_status read_line(const char *text, size_t bytes, cli_run_metrics *m)
{
    json_t *line = json_loadb(text, bytes, 0, NULL);
    const char *event = json_string_value(json_object_get(line, "event"));
    cvy_status status = CVY_OK;
    if (event && strcmp(event, "step") == 0) {
        status = add_note(line, &m->step, &m->steps, &m->step_capacity);
    } else if (event && strcmp(event, "epoch") == 0) {
        status = add_note(line, &m->epoch, &m->epochs, &m->epoch_capacity);
    }
    json_decref(line);
    return status;
}

cvy_status cli_run_metrics_load(const char *run, cli_run_metrics *metrics_out)
{
    cli_run_metrics metrics = {.steps = 0};
    char *data = NULL, *path = cvy_path_join(run, "metrics.jsonl");
    size_t bytes = 0;
    cvy_status status = path ? CVY_OK : CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_file_read(path, LIMIT_BYTES, CVY_ERR_INPUT, &data, &bytes));
    for (size_t at = 0; at < bytes && status == CVY_OK;) {
        const char *end = memchr(data + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - data) - at : bytes - at;
        status = read_line(data + at, length, &metrics);
        at += length + 1;
    }
    if (status == CVY_OK) {
        *metrics_out = metrics;
        metrics = (cli_run_metrics){.steps = 0};
    }
done:
    cli_run_metrics_clear(&metrics);
    cvy_free(data);
    cvy_free(path);
    return status;
}

void cli_run_metrics_clear(cli_run_metrics *metrics)
{
    cvy_free(metrics->step);
    cvy_free(metrics->epoch);
    *metrics = (cli_run_metrics){.steps = 0};
}
