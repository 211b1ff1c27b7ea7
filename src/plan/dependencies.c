/*
 * What a step waits for follows from what it touches: a reader waits for the last writer, a writer for the last writer
 * and for all readers since. A buffer that lives on and is read before it is written in an iteration waits for its last
 * writer of the iteration before (distance 1). Buffers that share memory count as one. Different buffers that come to
 * lie on the same place of an arena at different times are ordered by their stream; where steps of several streams use
 * them, the first use of the later one waits for the last uses of the earlier.
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

/* A buffer that lies where another one does, at another time; a list for each. */
typedef struct neighbour {
    int buffer, next;
} neighbour;

typedef struct tracker {
    cvy_schedule *s;
    history *of;
    int *waiter[2]; /* of each step, by distance: the last one that waits for it, -1 */
    reader *reader;
    int readers;
    int *neighbours; /* head of the list of each root; NULL where there is one stream */
    neighbour *neighbour;
    int count, capacity;
} tracker;

static cvy_status add_dependency(tracker *t, int step, int on, int distance)
{
    cvy_schedule *s = t->s;
    if (t->waiter[distance][on] == step) {
        return CVY_OK; /* it is known */
    }
    CVY_TRY(cvy_array_reserve(&s->dependency, s->dependencies, &s->dependency_capacity, sizeof *s->dependency));
    s->dependency[s->dependencies++] = (cvy_dependency){on, distance};
    s->step[step].dependencies++;
    t->waiter[distance][on] = step;
    return CVY_OK;
}

static bool is_placed(const cvy_buffer *b) { return !b->persistent && b->alias_of < 0 && b->last_step >= 0; }

static bool share_bytes(const cvy_buffer *a, const cvy_buffer *b)
{
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static cvy_status add_neighbour(tracker *t, int of, int buffer)
{
    CVY_TRY(cvy_array_reserve(&t->neighbour, t->count, &t->capacity, sizeof *t->neighbour));
    t->neighbour[t->count] = (neighbour){buffer, t->neighbours[of]};
    t->neighbours[of] = t->count++;
    return CVY_OK;
}

/* All that lies, at some time, where a buffer does that a step beside the main stream uses. */
static cvy_status find_neighbours(tracker *t, int root)
{
    const cvy_buffer *all = t->s->buffer;
    for (int i = 0; is_placed(&all[root]) && i < t->s->buffers; i++) {
        if (i != root && is_placed(&all[i]) && share_bytes(&all[i], &all[root])) {
            bool earlier = all[i].first_step < all[root].first_step;
            CVY_TRY(add_neighbour(t, earlier ? root : i, earlier ? i : root));
        }
    }
    return CVY_OK;
}

static cvy_status find_all_neighbours(tracker *t)
{
    const cvy_schedule *s = t->s;
    bool beside = false;
    for (int i = 0; i < s->steps; i++) {
        beside = beside || s->step[i].stream != CVY_STREAM_MAIN;
    }
    if (!beside) {
        return CVY_OK;
    }
    t->neighbours = cvy_calloc((size_t)s->buffers + 1, sizeof *t->neighbours);
    if (!t->neighbours) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < s->buffers; i++) {
        t->neighbours[i] = -1;
    }
    for (int i = 0; i < s->steps; i++) {
        for (int k = 0; s->step[i].stream != CVY_STREAM_MAIN && k < s->step[i].uses; k++) {
            CVY_TRY(find_neighbours(t, cvy_schedule_root(s, s->use[s->step[i].first_use + k].buffer)));
        }
    }
    return CVY_OK;
}

static cvy_status wait_if_beside(tracker *t, int step, int on)
{
    bool beside = on >= 0 && t->s->step[on].stream != t->s->step[step].stream;
    return beside ? add_dependency(t, step, on, 0) : CVY_OK;
}

/* The first use of a buffer: on another stream, what used its memory before may not be done. */
static cvy_status wait_for_memory(tracker *t, int step, int root)
{
    for (int i = t->neighbours[root]; i >= 0; i = t->neighbour[i].next) {
        const history *before = &t->of[t->neighbour[i].buffer];
        CVY_TRY(wait_if_beside(t, step, before->writer));
        for (int k = before->readers; k >= 0; k = t->reader[k].next) {
            CVY_TRY(wait_if_beside(t, step, t->reader[k].step));
        }
    }
    return CVY_OK;
}

static cvy_status track_use(tracker *t, int step, const cvy_use *use)
{
    int root = cvy_schedule_root(t->s, use->buffer);
    history *h = &t->of[root];
    if (t->neighbours && h->writer < 0 && h->readers < 0) {
        CVY_TRY(wait_for_memory(t, step, root));
    }
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
    const size_t steps = (size_t)s->steps + 1;
    tracker t = {.s = s,
                 .of = cvy_calloc((size_t)s->buffers + 1, sizeof *t.of),
                 .waiter = {cvy_calloc(steps, sizeof(int)), cvy_calloc(steps, sizeof(int))},
                 .reader = cvy_calloc((size_t)s->uses + 1, sizeof *t.reader)};
    if (!t.of || !t.waiter[0] || !t.waiter[1] || !t.reader) {
        goto done;
    }
    for (int i = 0; i < s->steps; i++) {
        t.waiter[0][i] = t.waiter[1][i] = -1;
    }
    for (int i = 0; i < s->buffers; i++) {
        t.of[i] = (history){-1, -1, -1};
    }
    CVY_TRY_GOTO(status, done, find_all_neighbours(&t));
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
    cvy_free(t.neighbours);
    cvy_free(t.neighbour);
    cvy_free(t.of);
    cvy_free(t.waiter[0]);
    cvy_free(t.waiter[1]);
    cvy_free(t.reader);
    return status;
}
