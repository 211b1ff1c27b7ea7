/*
 * Memory by lifetime, planned ahead. Persistent buffers lie one behind the other. Transient ones share an arena:
 * largest first, each at the lowest place that is free over its whole life (greedy by size; Pisarchyk and Lee,
 * "Efficient memory management for deep neural net inference", 2020). The runtime allocates exactly the two arenas.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "plan/builder.h"

static int64_t aligned_bytes(const cvy_buffer *buffer) { return cvy_round_up(buffer->bytes, CVY_ARENA_ALIGNMENT); }

static void live_until(cvy_schedule *s, const cvy_step *step, int last)
{
    for (int k = 0; k < step->uses; k++) {
        cvy_buffer *root = &s->buffer[cvy_schedule_root(s, s->use[step->first_use + k].buffer)];
        root->last_step = last > root->last_step ? last : root->last_step;
    }
}

/*
 * What is on its way to another stage keeps its memory until that stage must have it: else this rank would wait for it,
 * while the other waits for what this one is to receive next. An output has come where its gradient comes back from; a
 * gradient has, by the time the next but one is sent, as the stage before has sent an output in answer to it.
 */
static void extend_sends(cvy_schedule *s)
{
    for (int i = 0; i < s->steps; i++) {
        int later = 0, last = s->steps - 1;
        bool output = s->step[i].stream == CVY_STREAM_FORWARD_OUT;
        if (!s->training || (!output && s->step[i].stream != CVY_STREAM_GRADIENT_OUT)) {
            continue;
        }
        for (int k = i + 1; k < s->steps && last == s->steps - 1; k++) {
            bool answer = s->step[k].stream == CVY_STREAM_GRADIENT_IN &&
                          s->step[k].micro_batch == s->step[i].micro_batch;
            later += s->step[k].stream == CVY_STREAM_GRADIENT_OUT;
            last = (output ? answer : later == 2) ? k : last;
        }
        live_until(s, &s->step[i], last);
    }
}

/* Lives: at the root over all that lies on its memory; copied to the aliases at the end. */
static void find_lives(cvy_schedule *s)
{
    for (int i = 0; i < s->buffers; i++) {
        bool lasting = s->buffer[i].persistent;
        s->buffer[i].first_step = lasting ? 0 : s->steps;
        s->buffer[i].last_step = lasting ? s->steps - 1 : -1;
    }
    for (int i = 0; i < s->steps; i++) {
        for (int k = 0; k < s->step[i].uses; k++) {
            cvy_buffer *root = &s->buffer[cvy_schedule_root(s, s->use[s->step[i].first_use + k].buffer)];
            root->first_step = i < root->first_step ? i : root->first_step;
            root->last_step = i > root->last_step ? i : root->last_step;
        }
    }
    extend_sends(s);
}

/* Larger first; of equals the earlier one, so that a plan is the same everywhere. */
static int compare_sizes(const void *a, const void *b, void *context)
{
    const cvy_schedule *s = context;
    int x = *(const int *)a;
    int y = *(const int *)b;
    if (s->buffer[x].bytes != s->buffer[y].bytes) {
        return s->buffer[x].bytes < s->buffer[y].bytes ? 1 : -1;
    }
    return x - y;
}

/* A buffer that has its place. */
typedef struct placed {
    int64_t offset, end;
    int first_step, last_step;
} placed;

/* Those that lie in some stretch of the steps, by rising offset. */
typedef struct stretch {
    placed *item;
    int count, capacity;
    int at; /* of a search: the first that may be in the way */
} stretch;

/*
 * Most schedules are one stretch. In one of thousands of micro-batches a buffer meets those of its own stretch, and
 * those that live in several, not all others.
 */
enum { STRETCH = 4096 };

typedef struct arena {
    stretch *stretch; /* the last one is of what lives in several */
    int lasting;      /* its index */
} arena;

static int find_stretch(int step) { return step / STRETCH; }

/* Move on to the lowest place, not below @p offset, that is free in a stretch over a buffer's whole life. */
static int64_t pass_by(const cvy_buffer *buffer, int64_t offset, stretch *part)
{
    const int64_t size = aligned_bytes(buffer);
    for (; part->at < part->count; part->at++) {
        const placed *other = &part->item[part->at];
        if (buffer->first_step <= other->last_step && other->first_step <= buffer->last_step) {
            if (other->offset - offset >= size) {
                break; /* it fits before this one */
            }
            offset = cvy_max_i64(offset, other->end);
        }
    }
    return offset;
}

/* The lowest place that is free in all stretches that a buffer lives in. */
static int64_t find_offset(const cvy_buffer *buffer, arena *places)
{
    const int first = find_stretch(buffer->first_step), last = find_stretch(buffer->last_step);
    stretch *lasting = &places->stretch[places->lasting];
    int64_t offset = 0, before;
    lasting->at = 0;
    for (int k = first; k <= last; k++) {
        places->stretch[k].at = 0;
    }
    do {
        before = offset;
        offset = pass_by(buffer, offset, lasting);
        for (int k = first; k <= last; k++) {
            offset = pass_by(buffer, offset, &places->stretch[k]);
        }
    } while (offset > before);
    return offset;
}

/* Behind all that begin no later. */
static cvy_status insert(stretch *part, const placed *item)
{
    CVY_TRY(cvy_array_reserve(&part->item, part->count, &part->capacity, sizeof *part->item));
    int at = part->count;
    while (at > 0 && part->item[at - 1].offset > item->offset) {
        at--;
    }
    memmove(&part->item[at + 1], &part->item[at], (size_t)(part->count - at) * sizeof *part->item);
    part->item[at] = *item;
    part->count++;
    return CVY_OK;
}

static cvy_status place_one(cvy_schedule *s, int index, arena *places)
{
    cvy_buffer *buffer = &s->buffer[index];
    const int first = find_stretch(buffer->first_step), last = find_stretch(buffer->last_step);
    buffer->offset = find_offset(buffer, places);
    const placed item = {buffer->offset, buffer->offset + aligned_bytes(buffer), buffer->first_step,
                         buffer->last_step};
    s->memory.transient_bytes = cvy_max_i64(s->memory.transient_bytes, item.end);
    return insert(&places->stretch[first == last ? first : places->lasting], &item);
}

static bool is_transient_root(const cvy_buffer *buffer)
{
    return !buffer->persistent && buffer->alias_of < 0 && buffer->last_step >= 0;
}

static cvy_status place_all(cvy_schedule *s, const int *order, int count)
{
    arena places = {.lasting = find_stretch(s->steps) + 1};
    places.stretch = cvy_calloc((size_t)places.lasting + 1, sizeof *places.stretch);
    cvy_status status = places.stretch ? CVY_OK : CVY_ERR_MEMORY;
    for (int i = 0; i < count && status == CVY_OK; i++) {
        status = place_one(s, order[i], &places);
    }
    for (int k = 0; places.stretch && k <= places.lasting; k++) {
        cvy_free(places.stretch[k].item);
    }
    cvy_free(places.stretch);
    return status;
}

static cvy_status place_transient(cvy_schedule *s)
{
    int count = 0;
    int *order = cvy_calloc((size_t)s->buffers + 1, sizeof *order);
    if (!order) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < s->buffers; i++) {
        if (is_transient_root(&s->buffer[i])) {
            order[count++] = i;
        }
    }
    qsort_r(order, (size_t)count, sizeof *order, compare_sizes, s);
    cvy_status status = place_all(s, order, count);
    cvy_free(order);
    return status;
}

static void place_persistent(cvy_schedule *s)
{
    for (int i = 0; i < s->buffers; i++) {
        cvy_buffer *buffer = &s->buffer[i];
        if (buffer->persistent && buffer->alias_of < 0) {
            buffer->offset = s->memory.persistent_bytes;
            s->memory.persistent_bytes += aligned_bytes(buffer);
            s->memory.by_role[buffer->role] += aligned_bytes(buffer);
        }
    }
}

/* The moment at which most bytes live: a bound that no placement beats, and the breakdown that people read. */
static cvy_status find_peak(cvy_schedule *s)
{
    int64_t *change = cvy_calloc((size_t)s->steps + 2, sizeof *change);
    if (!change) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < s->buffers; i++) {
        if (is_transient_root(&s->buffer[i])) {
            change[s->buffer[i].first_step] += aligned_bytes(&s->buffer[i]);
            change[s->buffer[i].last_step + 1] -= aligned_bytes(&s->buffer[i]);
        }
    }
    int64_t live = 0;
    for (int i = 0; i < s->steps; i++) {
        live += change[i];
        if (live > s->memory.live_bytes) {
            s->memory.live_bytes = live;
            s->memory.peak_step = i;
        }
    }
    cvy_free(change);
    for (int i = 0; i < s->buffers; i++) {
        const cvy_buffer *buffer = &s->buffer[i];
        if (is_transient_root(buffer) && buffer->first_step <= s->memory.peak_step &&
            buffer->last_step >= s->memory.peak_step) {
            s->memory.by_role[buffer->role] += aligned_bytes(buffer);
        }
    }
    return CVY_OK;
}

/* Every buffer fits 64 bits; all of them, one behind the other, must too: then no sum below wraps. */
static cvy_status check_total(const cvy_schedule *s)
{
    int64_t total = 0;
    for (int i = 0; i < s->buffers; i++) {
        bool fits = s->buffer[i].alias_of >= 0 || cvy_add_i64(total, aligned_bytes(&s->buffer[i]), &total);
        CVY_REQUIRE(fits && total <= INT64_C(1) << 62, CVY_ERR_INFEASIBLE,
                    "the tensors of an iteration of %lld samples are beyond 2^62 bytes", (long long)s->batch);
    }
    return CVY_OK;
}

cvy_status cvy_schedule_place(cvy_schedule *s)
{
    s->memory = (cvy_memory_plan){0};
    CVY_TRY(check_total(s));
    find_lives(s);
    place_persistent(s);
    CVY_TRY(place_transient(s));
    CVY_TRY(find_peak(s));
    for (int i = 0; i < s->buffers; i++) {
        const cvy_buffer *root = &s->buffer[cvy_schedule_root(s, i)];
        if (s->buffer[i].alias_of >= 0) {
            s->buffer[i].offset = root->offset + cvy_schedule_alias_offset(s, i);
        }
        s->buffer[i].first_step = root->first_step;
        s->buffer[i].last_step = root->last_step;
    }
    return CVY_OK;
}
