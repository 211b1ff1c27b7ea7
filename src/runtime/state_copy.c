/*
 * A walk over the elements that are held, in runs along the dimension that is fastest in memory. Number and place of an
 * element are sums over the dimensions, so both are tabulated along a run, and all other dimensions step like an
 * odometer, the last one first. A run is as long as a line of the cache where another dimension is fastest in plain
 * order: then so many streams go through that one. Of a piece of the memory, only those indices of the slowest
 * dimension are walked that reach into it: the pieces of a tensor take together little more than one walk over it.
 */
#include "runtime/state_copy.h"

#include <string.h>

#include "base/checked.h"

enum { LONG_RUN = 256, SHORT_RUN = 16 };

/* Elements one after the other along a dimension: relative to a place and a number. */
typedef struct run {
    int64_t number, offset;
    int count;
    const int64_t *numbers, *offsets;
} run;

typedef struct walk walk;
typedef void (*visit)(const walk *w, const run *r);

struct walk {
    cvy_layout layout;
    cvy_holding held;
    int64_t step[CVY_MAX_DIMS];       /* of numbers, in the whole tensor */
    cvy_interval range[CVY_MAX_DIMS]; /* of local indices */
    int lane;                         /* the dimension of runs */
    visit visit;
    const void *from;
    void *to;
    double (*value)(const void *context, int64_t element);
    const void *context;
};

/* What local index @p i of a dimension adds to a number. */
static int64_t number_along(const cvy_holding *held, int dim, int64_t i, int64_t step)
{
    if (held->stretches.count == 0 || held->stretched != dim) {
        return (held->local[dim].begin + i) * step;
    }
    const cvy_interval *at = held->stretches.at;
    for (; i >= at->end - at->begin; at++) {
        i -= at->end - at->begin;
    }
    return (at->begin + i) * step;
}

/* What it adds to a place in memory. */
static int64_t offset_along(const cvy_layout *layout, int dim, int64_t i)
{
    int64_t block = layout->block[dim];
    return block == 1 ? i * layout->stride[dim]
                      : i / block * layout->stride[dim] + i % block * layout->inner_stride[dim];
}

static int64_t step_in_memory(const cvy_layout *layout, int dim)
{
    return layout->block[dim] > 1 ? layout->inner_stride[dim] : layout->stride[dim];
}

/* Leave out indices of the slowest dimension that do not reach into the piece. */
static void narrow(walk *w)
{
    int slowest = 0;
    for (int i = 1; i < w->layout.dims; i++) {
        slowest = w->layout.stride[i] > w->layout.stride[slowest] ? i : slowest;
    }
    int64_t rest = 0;
    for (int i = 0; i < w->layout.dims; i++) {
        rest += i == slowest ? 0 : offset_along(&w->layout, i, w->range[i].end - 1);
    }
    cvy_interval *range = &w->range[slowest];
    while (range->begin < range->end && offset_along(&w->layout, slowest, range->begin) + rest < w->held.piece.begin) {
        range->begin++;
    }
    while (range->begin < range->end && offset_along(&w->layout, slowest, range->end - 1) >= w->held.piece.end) {
        range->end--;
    }
}

static walk start_walk(const cvy_state_tensor *tensor, visit what)
{
    walk w = {.layout = cvy_tensor_layout(&tensor->tensor), .held = cvy_state_holding(tensor), .visit = what};
    int64_t step = 1;
    w.lane = w.layout.dims - 1;
    for (int i = w.layout.dims - 1; i >= 0; i--) {
        int64_t extent = tensor->tensor.shape.extent[i];
        bool faster = step_in_memory(&w.layout, i) < step_in_memory(&w.layout, w.lane);
        w.lane = extent > 1 && (faster || tensor->tensor.shape.extent[w.lane] == 1) ? i : w.lane;
        w.range[i] = (cvy_interval){0, extent};
        w.step[i] = step;
        step *= w.held.global.extent[i];
    }
    if (w.held.piece.end - w.held.piece.begin < w.layout.elements) {
        narrow(&w);
    }
    return w;
}

/* Visit what of a run is in the piece; places grow along a run. */
static void visit_run(const walk *w, run r)
{
    while (r.count > 0 && r.offset + r.offsets[0] < w->held.piece.begin) {
        r.numbers++;
        r.offsets++;
        r.count--;
    }
    while (r.count > 0 && r.offset + r.offsets[r.count - 1] >= w->held.piece.end) {
        r.count--;
    }
    r.offset -= w->held.piece.begin;
    w->visit(w, &r);
}

/* Visit a run at all indices of the other dimensions. */
static void walk_run(const walk *w, run r)
{
    int64_t index[CVY_MAX_DIMS], number[CVY_MAX_DIMS], offset[CVY_MAX_DIMS];
    int dim = 0;
    for (int i = 0; i < w->layout.dims; i++) {
        index[i] = w->range[i].begin;
        number[i] = i == w->lane ? 0 : number_along(&w->held, i, index[i], w->step[i]);
        offset[i] = i == w->lane ? 0 : offset_along(&w->layout, i, index[i]);
        r.number += number[i];
        r.offset += offset[i];
    }
    while (dim >= 0) {
        visit_run(w, r);
        for (dim = w->layout.dims - 1; dim >= 0; dim--) {
            bool carry = index[dim] + 1 == w->range[dim].end;
            if (dim == w->lane) {
                continue;
            }
            index[dim] = carry ? w->range[dim].begin : index[dim] + 1;
            r.number -= number[dim];
            r.offset -= offset[dim];
            number[dim] = number_along(&w->held, dim, index[dim], w->step[dim]);
            offset[dim] = offset_along(&w->layout, dim, index[dim]);
            r.number += number[dim];
            r.offset += offset[dim];
            if (!carry) {
                break;
            }
        }
    }
}

static void walk_all(const walk *w)
{
    int64_t numbers[LONG_RUN], offsets[LONG_RUN];
    int64_t most = w->lane == w->layout.dims - 1 ? LONG_RUN : SHORT_RUN;
    const cvy_interval *lane = &w->range[w->lane];
    for (int i = 0; i < w->layout.dims; i++) {
        if (w->range[i].begin == w->range[i].end) {
            return;
        }
    }
    for (int64_t begin = lane->begin; begin < lane->end; begin += most) {
        int count = (int)cvy_min_i64(most, lane->end - begin);
        for (int i = 0; i < count; i++) {
            numbers[i] = number_along(&w->held, w->lane, begin + i, w->step[w->lane]);
            offsets[i] = offset_along(&w->layout, w->lane, begin + i);
        }
        walk_run(w, (run){.count = count, .numbers = numbers, .offsets = offsets});
    }
}

/* ---- what is done with a run ---- */

static void out_f32(const walk *w, const run *r)
{
    const float *from = (const float *)w->from + r->offset;
    float *to = (float *)w->to + r->number;
    for (int i = 0; i < r->count; i++) {
        to[r->numbers[i]] = from[r->offsets[i]];
    }
}

static void out_f64(const walk *w, const run *r)
{
    const double *from = (const double *)w->from + r->offset;
    double *to = (double *)w->to + r->number;
    for (int i = 0; i < r->count; i++) {
        to[r->numbers[i]] = from[r->offsets[i]];
    }
}

static void in_f32(const walk *w, const run *r)
{
    const float *from = (const float *)w->from + r->number;
    float *to = (float *)w->to + r->offset;
    for (int i = 0; i < r->count; i++) {
        to[r->offsets[i]] = from[r->numbers[i]];
    }
}

static void in_f64(const walk *w, const run *r)
{
    const double *from = (const double *)w->from + r->number;
    double *to = (double *)w->to + r->offset;
    for (int i = 0; i < r->count; i++) {
        to[r->offsets[i]] = from[r->numbers[i]];
    }
}

static void fill_f32(const walk *w, const run *r)
{
    for (int i = 0; i < r->count; i++) {
        ((float *)w->to)[r->offset + r->offsets[i]] = (float)w->value(w->context, r->number + r->numbers[i]);
    }
}

static void fill_f64(const walk *w, const run *r)
{
    for (int i = 0; i < r->count; i++) {
        ((double *)w->to)[r->offset + r->offsets[i]] = w->value(w->context, r->number + r->numbers[i]);
    }
}

void cvy_state_copy_out(const cvy_state_tensor *tensor, const void *memory, void *whole)
{
    walk w = start_walk(tensor, tensor->tensor.dtype == CVY_F64 ? out_f64 : out_f32);
    w.from = memory;
    w.to = whole;
    walk_all(&w);
}

/* Padding holds zeros, always. */
static void clear_padding(const cvy_state_tensor *tensor)
{
    if (cvy_tensor_elements(&tensor->tensor) != cvy_shape_elements(&tensor->tensor.shape)) {
        memset(tensor->data, 0, (size_t)cvy_state_bytes(tensor));
    }
}

void cvy_state_copy_in(const cvy_state_tensor *tensor, const void *whole)
{
    if (!tensor->data) {
        return;
    }
    walk w = start_walk(tensor, tensor->tensor.dtype == CVY_F64 ? in_f64 : in_f32);
    w.from = whole;
    w.to = tensor->data;
    clear_padding(tensor);
    walk_all(&w);
}

void cvy_state_fill(const cvy_state_tensor *tensor, double (*value)(const void *context, int64_t element),
                    const void *context)
{
    if (!tensor->data) {
        return;
    }
    walk w = start_walk(tensor, tensor->tensor.dtype == CVY_F64 ? fill_f64 : fill_f32);
    w.to = tensor->data;
    w.value = value;
    w.context = context;
    clear_padding(tensor);
    walk_all(&w);
}

int64_t cvy_state_find_number(const cvy_state_tensor *tensor, int64_t i)
{
    cvy_holding held = cvy_state_holding(tensor);
    return number_along(&held, 0, i, 1);
}
