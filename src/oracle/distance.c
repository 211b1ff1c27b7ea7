/*
 * Both arenas are pages, so many that the largest plan has no more than some thousands. Each page remembers at which
 * byte of all that were touched so far it was touched last. An iteration is walked twice: the first round leaves memory
 * as a second one finds it.
 */
#include "oracle/distance.h"

#include <math.h>

#include "base/memory.h"
#include "oracle/compute.h"

enum { LEAST_PAGE = 4096, MOST_PAGES = 4096, ROUNDS = 2 };

typedef struct walk {
    const cvy_schedule *schedule;
    double *touched; /* of each page of both arenas: when, in bytes */
    int64_t page_bytes;
    double now;
} walk;

/* The pages of a buffer, the transient arena behind the persistent one. */
static void find_pages(const walk *w, int buffer, int64_t *first, int64_t *last)
{
    const cvy_buffer *b = &w->schedule->buffer[buffer];
    bool persistent = w->schedule->buffer[cvy_schedule_root(w->schedule, buffer)].persistent;
    int64_t offset = b->offset + (persistent ? 0 : w->schedule->memory.persistent_bytes);
    *first = offset / w->page_bytes;
    *last = (offset + b->bytes - 1) / w->page_bytes;
}

/* Operands count, of which calibrations keep how far they are; scratch memory is a kernel's own affair there, too. */
static bool is_operand(const walk *w, int buffer)
{
    const cvy_buffer *b = &w->schedule->buffer[buffer];
    return b->bytes > 0 && !(b->role == CVY_BUFFER_WORKSPACE && b->content == CVY_CONTENT_SCRATCH);
}

static int64_t count_bytes(const walk *w, const cvy_step *step)
{
    int64_t bytes = 0;
    for (int i = 0; i < step->uses; i++) {
        int buffer = w->schedule->use[step->first_use + i].buffer;
        bytes += is_operand(w, buffer) ? w->schedule->buffer[buffer].bytes : 0;
    }
    return bytes;
}

/* Sum over a buffer's bytes of the logarithms of how far they are. */
static double sum_distances(const walk *w, int buffer, double own_bytes)
{
    int64_t first, last;
    double sum = 0.0;
    find_pages(w, buffer, &first, &last);
    for (int64_t page = first; page <= last; page++) {
        double distance = fmin(w->now - w->touched[page] + own_bytes, CVY_FARTHEST_BYTES);
        sum += log(fmax(distance, 1.0));
    }
    return sum / (double)(last - first + 1) * (double)w->schedule->buffer[buffer].bytes;
}

static double walk_step(walk *w, const cvy_step *step)
{
    double own_bytes = (double)count_bytes(w, step), sum = 0.0;
    if (own_bytes == 0.0) {
        return 0.0;
    }
    for (int i = 0; i < step->uses; i++) {
        int buffer = w->schedule->use[step->first_use + i].buffer;
        sum += is_operand(w, buffer) ? sum_distances(w, buffer, own_bytes) : 0.0;
    }
    w->now += own_bytes;
    for (int i = 0; i < step->uses; i++) {
        int buffer = w->schedule->use[step->first_use + i].buffer;
        int64_t first, last;
        find_pages(w, buffer, &first, &last);
        for (int64_t page = first; page <= last && is_operand(w, buffer); page++) {
            w->touched[page] = w->now;
        }
    }
    return exp(sum / own_bytes);
}

cvy_status cvy_schedule_distances(const cvy_schedule *schedule, double *distance_out)
{
    int64_t bytes = schedule->memory.persistent_bytes + schedule->memory.transient_bytes;
    walk w = {.schedule = schedule, .page_bytes = LEAST_PAGE};
    while (bytes / w.page_bytes >= MOST_PAGES) {
        w.page_bytes *= 2;
    }
    w.touched = cvy_calloc((size_t)(bytes / w.page_bytes) + 2, sizeof *w.touched);
    if (!w.touched) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < ROUNDS * schedule->steps; i++) {
        distance_out[i % schedule->steps] = walk_step(&w, &schedule->step[i % schedule->steps]);
    }
    cvy_free(w.touched);
    return CVY_OK;
}
