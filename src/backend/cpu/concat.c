/*
 * Concat and slice: channels moved from one tensor into another, over every activation format and between any two.
 *
 * Channels that lie side by side in both tensors form a run, and a run is moved for all positions at once: a whole
 * plane in plain order, whole blocks where both sides begin at one, otherwise a few channels of each position. Work is
 * cut along positions, so that two threads never write one block. Lanes beyond the last channel become zero.
 */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* Pieces of work in all, at least: enough for any number of threads to share evenly. */
enum { UNITS = 64 };

/* How channels lie: in strips of `block` side by side. Strides in elements. */
typedef struct side {
    float *data;
    int64_t block, channels, padded;
    int64_t position_stride, strip_stride, sample_stride;
} side;

/* Channels and positions of one sample. */
typedef struct region {
    int64_t sample, first, last; /* positions */
} region;

static side view_side(const cvy_tensor *tensor, void *data)
{
    cvy_columns columns = cvy_columns_get(tensor);
    side s = {.data = data, .channels = columns.channels, .sample_stride = columns.sample_stride};
    bool blocked = tensor->format == CVY_FORMAT_C8 || tensor->format == CVY_FORMAT_C16;
    s.block = columns.position_stride;
    s.position_stride = columns.position_stride;
    s.strip_stride = columns.area * columns.position_stride;
    s.padded = blocked ? columns.sample_stride / columns.area : columns.channels;
    return s;
}

static float *find_channel(const side *s, const region *where, int64_t channel)
{
    return s->data + where->sample * s->sample_stride + channel / s->block * s->strip_stride + channel % s->block +
           where->first * s->position_stride;
}

/* Channels from @p channel on that lie side by side, at most @p count. */
static int64_t find_run(const side *s, int64_t channel, int64_t count)
{
    return cvy_min_i64(s->block - channel % s->block, count);
}

/* What lies at @p relu as @p to does is of a relu: its 0 takes no gradient. */
CVY_VECTOR static void copy_masked(const float *from, int64_t from_stride, const float *relu, float *to,
                                   int64_t to_stride, int64_t channels, int64_t positions)
{
    bool dense = channels == from_stride && channels == to_stride;
    int64_t rows = dense ? 1 : positions, width = dense ? channels * positions : channels;
    for (int64_t i = 0; i < rows; i++) {
#pragma omp simd
        for (int64_t c = 0; c < width; c++) {
            to[i * to_stride + c] = relu[i * to_stride + c] > 0 ? from[i * from_stride + c] : 0;
        }
    }
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

/* Copy @p count channels, from channel @p first of a side to channel @p target of another. */
static void copy_channels(const side *from, int64_t first, const side *to, int64_t target, int64_t count,
                          const region *where)
{
    for (int64_t done = 0, run; done < count; done += run) {
        run = find_run(to, target + done, find_run(from, first + done, count - done));
        copy_run(find_channel(from, where, first + done), from->position_stride,
                 find_channel(to, where, target + done), to->position_stride, run, where->last - where->first);
    }
}

/* Take all channels of @p to out of another side, where @p relu, which lies as @p to, is above 0. */
static void slice_masked(const side *from, int64_t first, const side *relu, const side *to, const region *where)
{
    for (int64_t done = 0, run; done < to->channels; done += run) {
        run = find_run(to, done, find_run(from, first + done, to->channels - done));
        copy_masked(find_channel(from, where, first + done), from->position_stride, find_channel(relu, where, done),
                    find_channel(to, where, done), to->position_stride, run, where->last - where->first);
    }
}

static void clear_padding(const side *to, const region *where)
{
    if (to->padded == to->channels) {
        return;
    }
    float *at = find_channel(to, where, to->channels);
    for (int64_t i = 0; i < where->last - where->first; i++) {
        memset(at + i * to->position_stride, 0, (size_t)(to->padded - to->channels) * sizeof *at);
    }
}

/* The cut of a tensor's positions: by its shape alone. */
typedef struct cut {
    int64_t samples, area, pieces;
} cut;

static cut cut_positions(const cvy_tensor *tensor)
{
    cvy_columns columns = cvy_columns_get(tensor);
    int64_t most = cvy_max_i64(1, columns.sample_stride / CVY_CPU_CHUNK);
    int64_t pieces = cvy_min_i64(cvy_ceil_div(UNITS, columns.samples), most);
    return (cut){columns.samples, columns.area, cvy_min_i64(pieces, columns.area)};
}

static region find_region(const cut *c, int64_t index)
{
    int64_t piece = index % c->pieces;
    return (region){index / c->pieces, c->area * piece / c->pieces, c->area * (piece + 1) / c->pieces};
}

static cvy_status run_concat(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_op *op = &kernel->base.op;
    int inputs = op->operands - 1;
    const cut c = cut_positions(&op->operand[inputs].tensor);
    side part[CVY_MAX_OPERANDS];
    (void)scratch;
    (void)run;
    for (int i = 0; i <= inputs; i++) {
        part[i] = view_side(&op->operand[i].tensor, operand[i]);
    }
    bool large = cvy_tensor_elements(&op->operand[inputs].tensor) > CVY_CPU_SERIAL_ELEMENTS;
#pragma omp parallel for schedule(static) if (large)
    for (int64_t index = 0; index < c.samples * c.pieces; index++) {
        region where = find_region(&c, index);
        int64_t target = 0;
        for (int i = 0; i < inputs; i++) {
            copy_channels(&part[i], 0, &part[inputs], target, part[i].channels, &where);
            target += part[i].channels;
        }
        clear_padding(&part[inputs], &where);
    }
    return CVY_OK;
}

static cvy_status run_slice(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_op *op = &kernel->base.op;
    int last = op->operands - 1;
    const cut c = cut_positions(&op->operand[last].tensor);
    const side dy = view_side(&op->operand[0].tensor, operand[0]);
    const side dx = view_side(&op->operand[last].tensor, operand[last]);
    const side x = view_side(&op->operand[last].tensor, operand[1]); /* of a relu */
    int64_t first = op->params.slice.first;
    (void)scratch;
    (void)run;
    bool large = cvy_tensor_elements(&op->operand[last].tensor) > CVY_CPU_SERIAL_ELEMENTS;
#pragma omp parallel for schedule(static) if (large)
    for (int64_t index = 0; index < c.samples * c.pieces; index++) {
        region where = find_region(&c, index);
        if (op->relu) {
            slice_masked(&dy, first, &x, &dx, &where);
        } else {
            copy_channels(&dy, first, &dx, 0, dx.channels, &where);
        }
        clear_padding(&dx, &where);
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        if (!cvy_columns_fit(&op->operand[i].tensor)) {
            return NULL;
        }
    }
    if (op->relu && !cvy_tensor_same_layout(&op->operand[1].tensor, &op->operand[2].tensor)) {
        return NULL;
    }
    return op->kind == CVY_OP_CONCAT ? run_concat : run_slice;
}

const cvy_cpu_family cvy_cpu_concat = {.find = find};
