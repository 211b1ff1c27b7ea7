/* A slab is a run for each of its rows: it lies in one piece in the sample, and in the slab behind the one before. */
#include "data/slab.h"

#include <inttypes.h>
#include <string.h>

enum { ELEMENT = 4 };

cvy_status cvy_slab_setup(const char *what, const cvy_shape *shape, const cvy_interval rows[3], cvy_slab *slab)
{
    static const char axis[] = "dhw";
    cvy_slab made = {.channels = shape->extent[0], .extent = {1, 1, 1}};
    for (int i = 1; i < shape->dims; i++) {
        made.extent[3 - shape->dims + i] = shape->extent[i];
    }
    for (int i = 0; i < 3; i++) {
        bool all = rows[i].begin == rows[i].end;
        CVY_REQUIRE(all || (rows[i].begin >= 0 && rows[i].begin < rows[i].end && rows[i].end <= made.extent[i]),
                    CVY_ERR_ARG, "%s: rows %" PRId64 " to %" PRId64 " of %c, expected some of 0 to %" PRId64, what,
                    rows[i].begin, rows[i].end, axis[i], made.extent[i]);
        made.rows[i] = all ? (cvy_interval){0, made.extent[i]} : rows[i];
    }
    *slab = made;
    return CVY_OK;
}

static int64_t count_rows(const cvy_slab *slab, int axis) { return slab->rows[axis].end - slab->rows[axis].begin; }

bool cvy_slab_is_whole(const cvy_slab *slab)
{
    bool whole = true;
    for (int i = 0; i < 3; i++) {
        whole = whole && count_rows(slab, i) == slab->extent[i];
    }
    return whole;
}

int64_t cvy_slab_count_runs(const cvy_slab *slab)
{
    return slab->channels * count_rows(slab, 0) * count_rows(slab, 1);
}

int64_t cvy_slab_elements(const cvy_slab *slab) { return cvy_slab_count_runs(slab) * count_rows(slab, 2); }

int64_t cvy_slab_find_run(const cvy_slab *slab, int64_t run)
{
    int64_t d = count_rows(slab, 0), h = count_rows(slab, 1);
    int64_t channel = run / (d * h), z = slab->rows[0].begin + run / h % d, y = slab->rows[1].begin + run % h;
    return ((channel * slab->extent[0] + z) * slab->extent[1] + y) * slab->extent[2] + slab->rows[2].begin;
}

void cvy_slab_cut(const cvy_slab *slab, const void *sample, void *out)
{
    const unsigned char *from = sample;
    unsigned char *to = out;
    int64_t run_bytes = count_rows(slab, 2) * ELEMENT;
    for (int64_t run = 0; run < cvy_slab_count_runs(slab); run++) {
        memcpy(to + run * run_bytes, from + cvy_slab_find_run(slab, run) * ELEMENT, (size_t)run_bytes);
    }
}
