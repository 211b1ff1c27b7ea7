/*
 * Slices are sorted when they are written: by start, and the longer one first, so that what contains comes before what
 * is contained (of equal ones the later noted, since a step is noted before its iteration). Times are rounded to whole
 * nanoseconds before ts and dur are made of them; rounding keeps order, so slices that nest still nest in the file.
 */
#include "runtime/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

typedef struct record {
    char name[CVY_TIMELINE_NAME];
    const char *category, *layer;
    double start_s, end_s, flop, bytes;
    int stream;
    int64_t order;
} record;

struct cvy_timeline {
    char *path;
    int rank;
    int64_t count, capacity;
    record *slice;
};

cvy_status cvy_timeline_create(const char *path, int rank, int64_t slices, cvy_timeline **timeline_out)
{
    CVY_REQUIRE(slices >= 1, CVY_ERR_ARG, "%s: a timeline of %" PRId64 " slices", path, slices);
    cvy_timeline *timeline = cvy_calloc(1, sizeof *timeline);
    if (!timeline) {
        return CVY_ERR_MEMORY;
    }
    *timeline = (cvy_timeline){.path = cvy_strdup(path), .rank = rank, .capacity = slices};
    timeline->slice = timeline->path ? cvy_calloc((size_t)slices, sizeof *timeline->slice) : NULL;
    if (!timeline->slice) {
        cvy_free(timeline->path);
        cvy_free(timeline);
        return CVY_ERR_MEMORY;
    }
    *timeline_out = timeline;
    return CVY_OK;
}

void cvy_timeline_add(cvy_timeline *timeline, const cvy_timeline_slice *slice)
{
    if (timeline->count == timeline->capacity) {
        return;
    }
    record *r = &timeline->slice[timeline->count];
    *r = (record){.category = slice->category, .layer = slice->layer, .start_s = slice->start_s, .end_s = slice->end_s,
                  .flop = slice->flop, .bytes = slice->bytes, .stream = slice->stream, .order = timeline->count};
    snprintf(r->name, sizeof r->name, "%s", slice->name);
    timeline->count++;
}

int64_t cvy_timeline_room(const cvy_timeline *timeline) { return timeline->capacity - timeline->count; }

static int compare_records(const void *left, const void *right)
{
    const record *a = left;
    const record *b = right;
    if (a->start_s != b->start_s) {
        return a->start_s < b->start_s ? -1 : 1;
    }
    if (a->end_s != b->end_s) {
        return a->end_s > b->end_s ? -1 : 1;
    }
    return a->order > b->order ? -1 : 1;
}

/* Add a JSON string. Names are plain words, yet whatever they hold the file stays JSON. */
static void add_string(cvy_text *text, const char *words)
{
    cvy_text_add(text, "\"");
    for (const char *c = words; *c; c++) {
        if (*c == '"' || *c == '\\') {
            cvy_text_add(text, "\\%c", *c);
        } else if ((unsigned char)*c < 0x20) {
            cvy_text_add(text, "\\u%04x", (unsigned)*c);
        } else {
            cvy_text_add(text, "%c", *c);
        }
    }
    cvy_text_add(text, "\"");
}

static int64_t nanoseconds(double seconds) { return llround(1e9 * seconds); }

/* Microseconds with three decimals, out of whole numbers: a locale's decimal point stays out of the file. */
static void add_microseconds(cvy_text *text, const char *key, int64_t ns)
{
    cvy_text_add(text, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void add_record(cvy_text *text, const record *r, int rank, double origin_s)
{
    int64_t start = nanoseconds(r->start_s - origin_s);
    int64_t end = nanoseconds(r->end_s - origin_s);
    cvy_text_add(text, "{\"name\":");
    add_string(text, r->name);
    cvy_text_add(text, ",\"cat\":");
    add_string(text, r->category);
    cvy_text_add(text, ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d", rank, r->stream);
    add_microseconds(text, "ts", start);
    add_microseconds(text, "dur", end > start ? end - start : 0);
    cvy_text_add(text, ",\"args\":{");
    const char *comma = "";
    if (r->layer) {
        cvy_text_add(text, "\"layer\":");
        add_string(text, r->layer);
        comma = ",";
    }
    if (r->flop > 0) {
        cvy_text_add(text, "%s\"flop\":%.0f", comma, r->flop);
        comma = ",";
    }
    if (r->bytes > 0) {
        cvy_text_add(text, "%s\"bytes\":%.0f", comma, r->bytes);
    }
    cvy_text_add(text, "}}");
}

static cvy_status write_timeline(cvy_timeline *timeline)
{
    cvy_text text = {0};
    qsort(timeline->slice, (size_t)timeline->count, sizeof *timeline->slice, compare_records);
    double origin_s = timeline->count ? timeline->slice[0].start_s : 0;
    cvy_text_add(&text, "[");
    for (int64_t i = 0; i < timeline->count; i++) {
        cvy_text_add(&text, i ? ",\n" : "\n");
        add_record(&text, &timeline->slice[i], timeline->rank, origin_s);
    }
    cvy_text_add(&text, "\n]\n");
    size_t length = text.length;
    char *words = cvy_text_take(&text);
    cvy_status status = words ? cvy_file_write(timeline->path, words, length, CVY_ERR_IO) : CVY_ERR_MEMORY;
    cvy_free(words);
    return status;
}

cvy_status cvy_timeline_close(cvy_timeline **timeline)
{
    cvy_timeline *closed = *timeline;
    if (!closed) {
        return CVY_OK;
    }
    cvy_status status = write_timeline(closed);
    cvy_free(closed->slice);
    cvy_free(closed->path);
    cvy_free(closed);
    *timeline = NULL;
    return status;
}
