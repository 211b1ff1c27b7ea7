/*
 * What a step waits for follows from what it touches: a reader waits for the last writer, a writer for the last writer
 * and for all readers since. A buffer that lives on and is read before it is written in an iteration waits for its last
 * writer of the iteration before (distance 1). Buffers that share memory count as one. Different buffers that come to
 * lie on the same place of an arena at different times are ordered by the stream, which is one here.
 */
#include "base/memory.h"
#include "plan/builder.h"

typedef struct history {
    int writer;      /* last writer so far, -1 */
    int last_writer; /* of the whole iteration, -1 */
    int readers;     /* head of the list of readers since the writer, -1 */
} history;

typedef struct reader {
    int step, next;
} reader;

typedef struct tracker {
    cvy_schedule *s;
    history *of;
    reader *reader;
    int readers;
} tracker;

static cvy_status add_dependency(tracker *t, int step, int on, int distance)
{
    cvy_schedule *s = t->s;
    cvy_step *at = &s->step[step];
    for (int i = 0; i < at->dependencies; i++) {
        const cvy_dependency *known = &s->dependency[at->first_dependency + i];
        if (known->step == on && known->distance == distance) {
            return CVY_OK;
        }
    }
    CVY_TRY(cvy_array_reserve(&s->dependency, s->dependencies, &s->dependency_capacity, sizeof *s->dependency));
    s->dependency[s->dependencies++] = (cvy_dependency){on, distance};
    at->dependencies++;
    return CVY_OK;
}

static cvy_status track_use(tracker *t, int step, const cvy_use *use)
{
    int root = cvy_schedule_root(t->s, use->buffer);
    history *h = &t->of[root];
    if (h->writer >= 0 && h->writer != step) {
        CVY_TRY(add_dependency(t, step, h->writer, 0));
    } else if (h->writer < 0 && t->s->buffer[root].persistent && h->last_writer >= 0) {
        CVY_TRY(add_dependency(t, step, h->last_writer, 1));
    }
    if (use->access == CVY_ACCESS_READ) {
        t->reader[t->readers] = (reader){step, h->readers};
        h->readers = t->readers++;
        return CVY_OK;
    }
    for (int i = h->readers; i >= 0; i = t->reader[i].next) {
        if (t->reader[i].step != step) {
            CVY_TRY(add_dependency(t, step, t->reader[i].step, 0));
        }
    }
    h->readers = -1;
    h->writer = step;
    return CVY_OK;
}

cvy_status cvy_schedule_derive_dependencies(cvy_schedule *s)
{
    cvy_status status = CVY_ERR_MEMORY;
    tracker t = {.s = s,
                 .of = cvy_calloc((size_t)s->buffers + 1, sizeof *t.of),
                 .reader = cvy_calloc((size_t)s->uses + 1, sizeof *t.reader)};
    if (!t.of || !t.reader) {
        goto done;
    }
    for (int i = 0; i < s->buffers; i++) {
        t.of[i] = (history){-1, -1, -1};
    }
    for (int i = 0; i < s->steps; i++) {
        for (int k = 0; k < s->step[i].uses; k++) {
            const cvy_use *use = &s->use[s->step[i].first_use + k];
            if (use->access != CVY_ACCESS_READ) {
                t.of[cvy_schedule_root(s, use->buffer)].last_writer = i;
            }
        }
    }
    for (int i = 0; i < s->steps; i++) {
        s->step[i].first_dependency = s->dependencies;
        for (int k = 0; k < s->step[i].uses; k++) {
            CVY_TRY_GOTO(status, done, track_use(&t, i, &s->use[s->step[i].first_use + k]));
        }
    }
    status = CVY_OK;
done:
    cvy_free(t.of);
    cvy_free(t.reader);
    return status;
}
