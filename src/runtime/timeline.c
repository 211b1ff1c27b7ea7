/*
 * Slices are sorted when they are written: by start, and the longer one first, so that what contains comes before what
 * is contained (of equal ones the later noted, since a step is noted before its iteration). Times are rounded to whole
 * nanoseconds before ts and dur are made of them; rounding keeps order, so slices that nest still nest in the file.
 */
#include "runtime/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

typedef struct record {
    cvy_slice slice;
    int64_t order; /* of noting */
} record;

struct cvy_timeline {
    char *path;
    int64_t count, capacity;
    record *record;
};

cvy_status cvy_timeline_create(const char *path, int64_t slices, cvy_timeline **timeline_out)
{
    CVY_REQUIRE(slices >= 1, CVY_ERR_ARG, "%s: a timeline of %" PRId64 " slices", path, slices);
    cvy_timeline *timeline = cvy_calloc(1, sizeof *timeline);
    if (!timeline) {
        return CVY_ERR_MEMORY;
    }
    *timeline = (cvy_timeline){.path = cvy_strdup(path), .capacity = slices};
    timeline->record = timeline->path ? cvy_calloc((size_t)slices, sizeof *timeline->record) : NULL;
    if (!timeline->record) {
        cvy_free(timeline->path);
        cvy_free(timeline);
        return CVY_ERR_MEMORY;
    }
    *timeline_out = timeline;
    return CVY_OK;
}

void cvy_timeline_add(cvy_timeline *timeline, const cvy_slice *slice)
{
    if (!cvy_timeline_full(timeline)) {
        timeline->record[timeline->count] = (record){*slice, timeline->count};
        timeline->count++;
    }
}

int cvy_timeline_full(const cvy_timeline *timeline) { return timeline->count == timeline->capacity; }

static int compare_records(const void *left, const void *right)
{
    const record *a = left;
    const record *b = right;
    if (a->slice.start_s != b->slice.start_s) {
        return a->slice.start_s < b->slice.start_s ? -1 : 1;
    }
    if (a->slice.end_s != b->slice.end_s) {
        return a->slice.end_s > b->slice.end_s ? -1 : 1;
    }
    return a->order > b->order ? -1 : 1;
}

/* Add what stands within a JSON string. Names are plain words, yet whatever they hold the file stays JSON. */
static void add_words(cvy_text *text, const char *words)
{
    for (const char *c = words; *c; c++) {
        if (*c == '"' || *c == '\\') {
            cvy_text_add(text, "\\%c", *c);
        } else if ((unsigned char)*c < 0x20) {
            cvy_text_add(text, "\\u%04x", (unsigned)*c);
        } else {
            cvy_text_add(text, "%c", *c);
        }
    }
}

static int64_t nanoseconds(double seconds) { return llround(1e9 * seconds); }

/* Microseconds with three decimals, out of whole numbers: a locale's decimal point stays out of the file. */
static void add_microseconds(cvy_text *text, const char *key, int64_t ns)
{
    cvy_text_add(text, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void add_arguments(cvy_text *text, const cvy_slice *slice)
{
    const char *comma = "";
    if (slice->suffix) {
        cvy_text_add(text, "\"layer\":\"");
        add_words(text, slice->name);
        cvy_text_add(text, "\"");
        comma = ",";
    }
    if (slice->flop > 0) {
        cvy_text_add(text, "%s\"flop\":%.0f", comma, slice->flop);
        comma = ",";
    }
    if (slice->bytes > 0) {
        cvy_text_add(text, "%s\"bytes\":%.0f", comma, slice->bytes);
    }
}

static void add_slice(cvy_text *text, const cvy_slice *slice, double origin_s)
{
    int64_t start = nanoseconds(slice->start_s - origin_s);
    int64_t end = nanoseconds(slice->end_s - origin_s);
    cvy_text_add(text, "{\"name\":\"");
    add_words(text, slice->name);
    if (slice->suffix) {
        cvy_text_add(text, " ");
        add_words(text, slice->suffix);
    }
    cvy_text_add(text, "\",\"cat\":\"");
    add_words(text, slice->category);
    cvy_text_add(text, "\",\"ph\":\"X\",\"pid\":0,\"tid\":%d", slice->stream);
    add_microseconds(text, "ts", start);
    add_microseconds(text, "dur", end > start ? end - start : 0);
    cvy_text_add(text, ",\"args\":{");
    add_arguments(text, slice);
    cvy_text_add(text, "}}");
}

static cvy_status write_timeline(cvy_timeline *timeline)
{
    cvy_text text = {0};
    qsort(timeline->record, (size_t)timeline->count, sizeof *timeline->record, compare_records);
    double origin_s = timeline->count ? timeline->record[0].slice.start_s : 0;
    cvy_text_add(&text, "[");
    for (int64_t i = 0; i < timeline->count; i++) {
        cvy_text_add(&text, i ? ",\n" : "\n");
        add_slice(&text, &timeline->record[i].slice, origin_s);
    }
    cvy_text_add(&text, "\n]\n");
    return cvy_file_write_text(timeline->path, &text, CVY_ERR_IO);
}

cvy_status cvy_timeline_close(cvy_timeline **timeline)
{
    cvy_timeline *closed = *timeline;
    if (!closed) {
        return CVY_OK;
    }
    cvy_status status = write_timeline(closed);
    cvy_free(closed->record);
    cvy_free(closed->path);
    cvy_free(closed);
    *timeline = NULL;
    return status;
}
