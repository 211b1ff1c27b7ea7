/*
 * Output o touches rows stride * o + dilation * k - before, k below the kernel. So consecutive outputs touch a hull of
 * rows, from the first tap of the first to the last tap of the last, clipped to the image; where dilation or a stride
 * beyond the kernel leaves gaps in it, each row is asked whether a tap falls on it. Who holds the rows is an
 * intersection with shares: no rank is taken for a neighbour, so halos wider than a share, and ranks without rows, are
 * no special cases.
 */
#include "plan/halo.h"

#include "base/checked.h"
#include "base/memory.h"

void cvy_halo_clear(cvy_halo *halo)
{
    cvy_free(halo->piece);
    *halo = (cvy_halo){0};
}

static cvy_status append(cvy_halo *halo, int64_t peer, int64_t begin, int64_t end)
{
    CVY_TRY(cvy_array_reserve(&halo->piece, halo->pieces, &halo->capacity, sizeof *halo->piece));
    halo->piece[halo->pieces++] = (cvy_halo_piece){peer, {begin, end}};
    return CVY_OK;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) { return cvy_max_i64(low, cvy_min_i64(value, high)); }

cvy_halo_window cvy_halo_window_x(const cvy_halo_axis *axis, cvy_interval outputs)
{
    const cvy_window *window = axis->window;
    int i = axis->axis;
    int64_t first = window->stride[i] * outputs.begin - window->before[i];
    int64_t end =
        window->stride[i] * (outputs.end - 1) - window->before[i] + window->dilation[i] * (window->kernel[i] - 1) + 1;
    cvy_interval rows = {clamp(first, 0, axis->extent), 0};
    rows.end = clamp(end, rows.begin, axis->extent);
    return (cvy_halo_window){rows, rows.begin - first, end - rows.end};
}

cvy_halo_window cvy_halo_window_dy(const cvy_halo_axis *axis, cvy_interval rows)
{
    const cvy_window *window = axis->window;
    int i = axis->axis;
    int64_t stride = window->stride[i], before = window->before[i];
    int64_t reach = window->dilation[i] * (window->kernel[i] - 1);
    int64_t outputs = cvy_window_output(window, i, axis->extent);
    int64_t first = clamp(cvy_ceil_div(cvy_max_i64(rows.begin + before - reach, 0), stride), 0, outputs);
    int64_t end = clamp(cvy_max_i64(rows.end - 1 + before + stride, 0) / stride, first, outputs);
    if (end == first) {
        return (cvy_halo_window){{first, first}, 0, 0};
    }
    return (cvy_halo_window){
        {first, end}, rows.begin + before - stride * first, stride * (end - 1) - before + reach + 1 - rows.end};
}

/* Whether nothing in the hull of an interval is left out. */
static bool has_no_gaps(const cvy_halo_axis *axis, cvy_halo_need need, cvy_interval interval)
{
    int64_t kernel = axis->window->kernel[axis->axis], stride = axis->window->stride[axis->axis];
    int64_t dilation = axis->window->dilation[axis->axis];
    bool long_enough = interval.end - interval.begin >= dilation;
    if (need == CVY_HALO_DY) { /* between two taps there is no room for all rows */
        return kernel == 1 || dilation == 1 || long_enough;
    }
    return (dilation == 1 && kernel >= stride) || (stride == 1 && (kernel == 1 || long_enough));
}

/* Whether a row of x is touched by one of the outputs in a list, or an output touches one of the rows in it. */
static bool is_needed(const cvy_halo_axis *axis, cvy_halo_need need, const cvy_intervals *list, int64_t index)
{
    const cvy_window *window = axis->window;
    int i = axis->axis;
    for (int64_t tap = 0; tap < window->kernel[i]; tap++) {
        int64_t shift = window->dilation[i] * tap - window->before[i];
        if (need == CVY_HALO_DY) {
            if (cvy_intervals_hold(list, window->stride[i] * index + shift)) {
                return true;
            }
        } else if ((index - shift) % window->stride[i] == 0 &&
                   cvy_intervals_hold(list, (index - shift) / window->stride[i])) {
            return true;
        }
    }
    return false;
}

/* The hulls of a list's intervals, merged, and whether they have no gaps. */
static cvy_status find_hulls(const cvy_halo_axis *axis, cvy_halo_need need, const cvy_intervals *list,
                             cvy_intervals *hulls, bool *dense)
{
    *hulls = (cvy_intervals){0};
    *dense = true;
    for (int i = 0; i < list->count; i++) {
        cvy_halo_window window =
            need == CVY_HALO_X ? cvy_halo_window_x(axis, list->at[i]) : cvy_halo_window_dy(axis, list->at[i]);
        if (window.rows.end > window.rows.begin) {
            cvy_intervals hull = {1, {window.rows}};
            CVY_TRY(cvy_intervals_union(hulls, &hull, hulls));
        }
        *dense = *dense && has_no_gaps(axis, need, list->at[i]);
    }
    return CVY_OK;
}

/* The runs of needed rows in an interval. */
static cvy_status append_runs(const cvy_halo_axis *axis, cvy_halo_need need, const cvy_intervals *list,
                              const cvy_halo_piece *all, cvy_halo *halo)
{
    int64_t begin = all->rows.begin;
    for (int64_t row = begin; row < all->rows.end; row++) {
        if (!is_needed(axis, need, list, row)) {
            if (row > begin) {
                CVY_TRY(append(halo, all->peer, begin, row));
            }
            begin = row + 1;
        }
    }
    return begin < all->rows.end ? append(halo, all->peer, begin, all->rows.end) : CVY_OK;
}

/* What one rank needs of what another holds. */
static cvy_status collect(const cvy_halo_axis *axis, cvy_halo_need need, const int64_t needer_holder[2], int64_t peer,
                          cvy_halo *halo)
{
    const cvy_placement *made = need == CVY_HALO_X ? axis->y : axis->x;
    const cvy_placement *held = need == CVY_HALO_X ? axis->x : axis->y;
    int64_t outputs = cvy_window_output(axis->window, axis->axis, axis->extent);
    int64_t made_extent = need == CVY_HALO_X ? outputs : axis->extent;
    int64_t held_extent = need == CVY_HALO_X ? axis->extent : outputs;
    cvy_intervals list = cvy_placement_share(made, made->dim, made_extent, needer_holder[0]);
    cvy_intervals owned = cvy_placement_share(held, held->dim, held_extent, needer_holder[1]);
    cvy_intervals hulls;
    bool dense;
    CVY_TRY(find_hulls(axis, need, &list, &hulls, &dense));
    CVY_TRY(cvy_intervals_intersect(&hulls, &owned, &hulls));
    for (int i = 0; i < hulls.count; i++) {
        cvy_halo_piece piece = {peer, hulls.at[i]};
        CVY_TRY(dense ? append(halo, peer, piece.rows.begin, piece.rows.end)
                      : append_runs(axis, need, &list, &piece, halo));
    }
    return CVY_OK;
}

cvy_status cvy_halo_receive(const cvy_halo_axis *axis, cvy_halo_need need, int64_t rank, cvy_halo *halo)
{
    halo->pieces = 0;
    for (int64_t peer = 0; peer < axis->x->parts; peer++) {
        CVY_TRY(collect(axis, need, (int64_t[]){rank, peer}, peer, halo));
    }
    return CVY_OK;
}

cvy_status cvy_halo_send(const cvy_halo_axis *axis, cvy_halo_need need, int64_t rank, cvy_halo *halo)
{
    halo->pieces = 0;
    for (int64_t peer = 0; peer < axis->x->parts; peer++) {
        CVY_TRY(collect(axis, need, (int64_t[]){peer, rank}, peer, halo));
    }
    return CVY_OK;
}

int64_t cvy_halo_rows(const cvy_halo *halo, int64_t peer)
{
    int64_t rows = 0;
    for (int i = 0; i < halo->pieces; i++) {
        if (peer < 0 || halo->piece[i].peer == peer) {
            rows += halo->piece[i].rows.end - halo->piece[i].rows.begin;
        }
    }
    return rows;
}

static int64_t count_own_pieces(const cvy_halo *halo, int64_t self)
{
    int64_t pieces = 0;
    for (int i = 0; i < halo->pieces; i++) {
        pieces += halo->piece[i].peer == self;
    }
    return pieces;
}

cvy_status cvy_halo_cross(const cvy_halo halos[3], const int64_t self[3], cvy_halo_box **boxes_out, int *count_out)
{
    int64_t all = 1, own = 1;
    for (int axis = 0; axis < 3; axis++) {
        bool fits = cvy_mul_i64(all, halos[axis].pieces, &all) && all <= INT32_MAX;
        CVY_REQUIRE(fits, CVY_ERR_MEMORY, "a halo of too many pieces");
        own *= count_own_pieces(&halos[axis], self[axis]);
    }
    cvy_halo_box *boxes = NULL;
    if (all > own) {
        boxes = cvy_calloc((size_t)(all - own), sizeof *boxes);
        if (!boxes) {
            return CVY_ERR_MEMORY;
        }
    }
    int count = 0;
    for (int64_t i = 0; i < all; i++) {
        const cvy_halo_piece *piece[3] = {&halos[0].piece[i / halos[2].pieces / halos[1].pieces],
                                          &halos[1].piece[i / halos[2].pieces % halos[1].pieces],
                                          &halos[2].piece[i % halos[2].pieces]};
        if (piece[0]->peer != self[0] || piece[1]->peer != self[1] || piece[2]->peer != self[2]) {
            boxes[count++] = (cvy_halo_box){{piece[0]->peer, piece[1]->peer, piece[2]->peer},
                                            {piece[0]->rows, piece[1]->rows, piece[2]->rows}};
        }
    }
    *boxes_out = boxes;
    *count_out = count;
    return CVY_OK;
}
