/*
 * Channels that lie side by side in both tensors form a run, and a run is moved for all positions at once: a whole
 * plane in plain order, whole blocks where both sides begin at one, otherwise a few channels of each position. Work is
 * cut along positions, so that two threads never write one block.
 */
#include "backend/cpu/sides.h"

#include <string.h>

#include "base/checked.h"

/* Pieces of work in all, at least: enough for any number of threads to share evenly. */
enum { UNITS = 64 };

cvy_side cvy_side_view(const cvy_tensor *tensor, void *data)
{
    cvy_columns columns = cvy_columns_get(tensor);
    cvy_side s = {.data = data, .channels = columns.channels, .sample_stride = columns.sample_stride};
    bool blocked = tensor->format == CVY_FORMAT_C8 || tensor->format == CVY_FORMAT_C16;
    s.block = columns.position_stride;
    s.position_stride = columns.position_stride;
    s.strip_stride = columns.area * columns.position_stride;
    s.padded = blocked ? columns.sample_stride / columns.area : columns.channels;
    return s;
}

static void copy_run(const float *from, int64_t from_stride, float *to, int64_t to_stride, int64_t channels,
                     int64_t positions)
{
    if (channels == from_stride && channels == to_stride) {
        memcpy(to, from, (size_t)(channels * positions) * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < positions; i++) {
        for (int64_t c = 0; c < channels; c++) {
            to[i * to_stride + c] = from[i * from_stride + c];
        }
    }
}

void cvy_sides_copy(const cvy_side *from, int64_t first, const cvy_side *to, int64_t target, int64_t count,
                    const cvy_region *where)
{
    for (int64_t done = 0, run; done < count; done += run) {
        run = cvy_side_run(to, target + done, cvy_side_run(from, first + done, count - done));
        copy_run(cvy_side_at(from, where, first + done), from->position_stride,
                 cvy_side_at(to, where, target + done), to->position_stride, run, where->last - where->first);
    }
}

void cvy_side_clear_padding(const cvy_side *to, const cvy_region *where)
{
    if (to->padded == to->channels) {
        return;
    }
    float *at = cvy_side_at(to, where, to->channels);
    for (int64_t i = 0; i < where->last - where->first; i++) {
        memset(at + i * to->position_stride, 0, (size_t)(to->padded - to->channels) * sizeof *at);
    }
}

cvy_side_cut cvy_side_cut_positions(const cvy_tensor *tensor)
{
    cvy_columns columns = cvy_columns_get(tensor);
    int64_t most = cvy_max_i64(1, columns.sample_stride / CVY_CPU_CHUNK);
    int64_t pieces = cvy_min_i64(cvy_ceil_div(UNITS, columns.samples), most);
    return (cvy_side_cut){columns.samples, columns.area, cvy_min_i64(pieces, columns.area)};
}

cvy_region cvy_side_region(const cvy_side_cut *c, int64_t index)
{
    int64_t piece = index % c->pieces;
    return (cvy_region){index / c->pieces, c->area * piece / c->pieces, c->area * (piece + 1) / c->pieces};
}
