/*
 * A rank's share of a tensor: some indices of one dimension (PICK), or rows of space with more or fewer around them
 * (FRAME), copied in runs as long as memory has them.
 *
 * Where both tensors lie alike, a sample is a sequence of cells: a value in plain order, a block of channels, all
 * channels of a position in channels-last. Cells that follow each other in both are one copy; whole inner dimensions
 * make them long. Otherwise (channels picked out of the middle of cells, formats that differ) channels are moved as
 * concat does, for each run of positions.
 */
#include <string.h>

#include "backend/cpu/sides.h"
#include "base/checked.h"

static bool picks_channels(const cvy_op *op) { return op->kind == CVY_OP_PICK && op->params.pick.dim == 1; }

/* Channels of a cell. */
static int64_t get_cell(const cvy_tensor *tensor)
{
    switch (tensor->format) {
    case CVY_FORMAT_CHANNELS_LAST: return tensor->shape.extent[1];
    case CVY_FORMAT_C8: return 8;
    case CVY_FORMAT_C16: return 16;
    default: return 1;
    }
}

/* Whether whole cells are copied: those picked begin and end with a cell, or with the tensor. */
static bool goes_by_cells(const cvy_op *op)
{
    const cvy_tensor *x = &op->operand[0].tensor;
    const cvy_intervals *picked = &op->params.pick.intervals;
    int64_t cell = get_cell(x);
    bool whole = x->format == op->operand[1].tensor.format;
    for (int i = 0; picks_channels(op) && i < picked->count; i++) {
        int64_t end = picked->at[i].end;
        whole = whole && picked->at[i].begin % cell == 0 && (end % cell == 0 || end == x->shape.extent[1]);
    }
    return whole;
}

/* Copy cells of a sample, from cell @p first of y on: zeros where x has none. */
static void copy_cells(const cvy_share_map *map, const float *x, float *y, int64_t cell, cvy_interval cells)
{
    for (int64_t at = cells.begin; at < cells.end;) {
        cvy_share_run run = cvy_share_map_find(map, at);
        int64_t count = cvy_min_i64(run.count, cells.end - at);
        size_t bytes = (size_t)(count * cell) * sizeof *y;
        if (run.at < 0) {
            memset(y + at * cell, 0, bytes);
        } else {
            memcpy(y + at * cell, x + run.at * cell, bytes);
        }
        at += count;
    }
}

static cvy_status run_cells(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_tensor *x = &kernel->base.op.operand[0].tensor, *y = &kernel->base.op.operand[1].tensor;
    int64_t samples = x->shape.extent[0], cell = get_cell(x);
    int64_t x_sample = cvy_tensor_elements(x) / samples, elements = cvy_tensor_elements(y);
    int64_t cells = elements / samples / cell, chunk = cvy_ceil_div(CVY_CPU_CHUNK, cell);
    int64_t chunks = cvy_ceil_div(cells, chunk);
    (void)scratch;
    (void)run;
#pragma omp parallel for schedule(static) if (elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < samples * chunks; i++) {
        int64_t sample = i / chunks, first = i % chunks * chunk;
        copy_cells(&kernel->map, (const float *)operand[0] + sample * x_sample,
                   (float *)operand[1] + sample * cells * cell, cell,
                   (cvy_interval){first, cvy_min_i64(first + chunk, cells)});
    }
    return CVY_OK;
}

/* Set all channels of a region, padding included, to zero. */
static void clear_region(const cvy_side *to, const cvy_region *where)
{
    size_t bytes = (size_t)((where->last - where->first) * to->block) * sizeof *to->data;
    for (int64_t channel = 0; channel < to->padded; channel += to->block) {
        memset(cvy_side_at(to, where, channel), 0, bytes);
    }
}

/* Copy the picked channels of a run of positions that begins at position @p at of x. */
static void copy_channels(const cvy_side *x, int64_t at, const cvy_side *y, const cvy_intervals *picked,
                          const cvy_region *where)
{
    cvy_side from = *x;
    int64_t target = 0;
    from.data += (at - where->first) * x->position_stride; /* so that both sides begin at the region's first */
    for (int i = 0; i < picked->count; i++) {
        int64_t count = picked->at[i].end - picked->at[i].begin;
        cvy_sides_copy(&from, picked->at[i].begin, y, target, count, where);
        target += count;
    }
    cvy_side_clear_padding(y, where);
}

static cvy_status run_channels(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_op *op = &kernel->base.op;
    const cvy_side x = cvy_side_view(&op->operand[0].tensor, operand[0]);
    const cvy_side y = cvy_side_view(&op->operand[1].tensor, operand[1]);
    const cvy_side_cut c = cvy_side_cut_positions(&op->operand[1].tensor);
    const cvy_intervals picked = picks_channels(op) ? op->params.pick.intervals : cvy_intervals_whole(x.channels);
    (void)scratch;
    (void)run;
#pragma omp parallel for schedule(static) if (cvy_tensor_elements(&op->operand[1].tensor) > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < c.samples * c.pieces; i++) {
        cvy_region piece = cvy_side_region(&c, i);
        while (piece.first < piece.last) {
            cvy_share_run found = cvy_share_map_find(&kernel->map, piece.first);
            cvy_region where = {piece.sample, piece.first, cvy_min_i64(piece.first + found.count, piece.last)};
            if (found.at < 0) {
                clear_region(&y, &where);
            } else {
                copy_channels(&x, found.at, &y, &picked, &where);
            }
            piece.first = where.last;
        }
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    bool fits = cvy_columns_fit(&op->operand[0].tensor) && cvy_columns_fit(&op->operand[1].tensor);
    if (!fits || (op->kind == CVY_OP_PICK && op->params.pick.dim == 0)) {
        return NULL;
    }
    return goes_by_cells(op) ? run_cells : run_channels;
}

/* Channels count as cells; where they are moved one by one, positions alone are left. */
static void setup(cvy_cpu_kernel *kernel)
{
    const cvy_op *op = &kernel->base.op;
    const cvy_tensor *x = &op->operand[0].tensor, *y = &op->operand[1].tensor;
    bool cells = kernel->run == run_cells;
    int64_t cell = get_cell(x);
    cvy_share_map *map = &kernel->map;
    cvy_sample_get(&y->shape, map->extent);
    cvy_sample_get(&x->shape, map->other);
    map->extent[0] = cells ? cvy_ceil_div(map->extent[0], get_cell(y)) : 1;
    map->other[0] = cells ? cvy_ceil_div(map->other[0], cell) : 1;
    if (op->kind == CVY_OP_FRAME) {
        memcpy(&map->first[1], op->params.frame.first, sizeof op->params.frame.first);
    } else if (!picks_channels(op)) {
        map->stretched = op->params.pick.dim + 4 - x->shape.dims;
        map->stretches = op->params.pick.intervals;
    } else if (cells) {
        map->stretches = op->params.pick.intervals;
        for (int i = 0; i < map->stretches.count; i++) {
            cvy_interval *at = &map->stretches.at[i];
            *at = (cvy_interval){at->begin / cell, cvy_ceil_div(at->end, cell)};
        }
    }
}

const cvy_cpu_family cvy_cpu_share = {.find = find, .setup = setup};
