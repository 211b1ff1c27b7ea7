/*
 * Halos against loops over output indices: each output is asked which rows it touches. Then against what they are for:
 * convolutions over what a rank has and receives, with rows that it has no right to read poisoned, give the whole's.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "plan/halo.h"

enum { CASES = 6000, CASES_2D = 2000, CASES_3D = 300, MAX_PARTS = 6, MAX_ROWS = 40 };

static int64_t draw(uint32_t seed, uint32_t place, int64_t low, int64_t high)
{
    cvy_words words = cvy_random_words(seed, CVY_PURPOSE_SYNTHETIC_DATA, 0, 0, 0, place);
    return low + (int64_t)(words.v[0] % (uint64_t)(high - low + 1));
}

/* One axis with all that it borrows. */
typedef struct random_axis {
    cvy_window window;
    int64_t border[2][MAX_PARTS + 1];
    cvy_placement x, y;
    cvy_halo_axis axis;
    int64_t outputs, parts;
} random_axis;

/* Balanced, or at random borders: some ranks then have no rows. */
static cvy_placement make_split(uint32_t seed, int64_t extent, int64_t parts, int64_t *border)
{
    cvy_placement placement;
    if (draw(seed, 1, 0, 2) == 0) {
        assert_int_equal(cvy_placement_split(2, extent, 1, parts, &placement), CVY_OK);
        return placement;
    }
    for (int64_t i = 0; i < parts; i++) {
        int64_t value = i ? draw(seed, 2 + (uint32_t)i, 0, extent) : 0, at = i;
        for (; at > 0 && border[at - 1] > value; at--) {
            border[at] = border[at - 1];
        }
        border[at] = value;
    }
    border[parts] = extent;
    return cvy_placement_split_at(2, border, parts);
}

/* False where the window does not fit. The last rows may be unused: padding behind is below 0 then. */
static bool make_axis(uint32_t seed, int64_t max_rows, int64_t max_parts, random_axis *r)
{
    memset(r, 0, sizeof *r);
    int axis = (int)draw(seed, 100, 0, 2);
    for (int i = 0; i < 3; i++) {
        r->window.kernel[i] = r->window.stride[i] = r->window.dilation[i] = 77; /* not to be looked at */
    }
    r->window.kernel[axis] = draw(seed, 101, 1, 5);
    r->window.stride[axis] = draw(seed, 102, 1, 4);
    r->window.dilation[axis] = draw(seed, 103, 1, 3);
    r->window.before[axis] = draw(seed, 104, 0, 4);
    r->window.after[axis] = draw(seed, 105, -1, 4);
    int64_t rows = draw(seed, 106, 1, max_rows);
    r->parts = draw(seed, 107, 1, max_parts);
    r->outputs = cvy_window_output(&r->window, axis, rows);
    if (r->outputs < 1) {
        return false;
    }
    r->x = make_split(2 * seed, rows, r->parts, r->border[0]);
    r->y = make_split(2 * seed + 1, r->outputs, r->parts, r->border[1]);
    r->axis = (cvy_halo_axis){&r->window, axis, rows, &r->x, &r->y};
    return true;
}

static bool holds(const cvy_placement *placement, int64_t extent, int64_t rank, int64_t index)
{
    cvy_intervals share = cvy_placement_share(placement, placement->dim, extent, rank);
    return cvy_intervals_hold(&share, index);
}

/* touched[o][i]: output o reads row i. */
typedef bool touch_table[MAX_ROWS + 10][MAX_ROWS];

static void make_table(const random_axis *r, touch_table table)
{
    const cvy_window *window = &r->window;
    int axis = r->axis.axis;
    memset(table, 0, sizeof(touch_table));
    for (int64_t o = 0; o < r->outputs; o++) {
        for (int64_t k = 0; k < window->kernel[axis]; k++) {
            int64_t row = window->stride[axis] * o + window->dilation[axis] * k - window->before[axis];
            if (row >= 0 && row < r->axis.extent) {
                table[o][row] = true;
            }
        }
    }
}

/* Whether a rank needs an index, by the table. */
static bool is_needed(const random_axis *r, touch_table table, cvy_halo_need need, int64_t rank, int64_t index)
{
    bool needed = false;
    int64_t extent = need == CVY_HALO_X ? r->outputs : r->axis.extent;
    for (int64_t i = 0; i < extent; i++) {
        bool touches = need == CVY_HALO_X ? table[i][index] : table[index][i];
        needed = needed || (touches && holds(need == CVY_HALO_X ? &r->y : &r->x, extent, rank, i));
    }
    return needed;
}

/* Each needed row comes once, from the rank that holds it, and nothing else comes. */
static void check_receive(const random_axis *r, touch_table table, cvy_halo_need need, int64_t rank, cvy_halo *halo)
{
    const cvy_placement *held = need == CVY_HALO_X ? &r->x : &r->y;
    int64_t extent = need == CVY_HALO_X ? r->axis.extent : r->outputs, rows = 0;
    assert_int_equal(cvy_halo_receive(&r->axis, need, rank, halo), CVY_OK);
    for (int i = 0; i < halo->pieces; i++) {
        const cvy_halo_piece *piece = &halo->piece[i], *last = piece - 1;
        assert_true(piece->rows.begin < piece->rows.end);
        assert_true(!i || last->peer < piece->peer ||
                    (last->peer == piece->peer && last->rows.end < piece->rows.begin));
        for (int64_t row = piece->rows.begin; row < piece->rows.end; row++) {
            assert_true(row >= 0 && row < extent && holds(held, extent, piece->peer, row));
            assert_true(is_needed(r, table, need, rank, row));
            rows++;
        }
    }
    int64_t needed = 0;
    for (int64_t row = 0; row < extent; row++) {
        needed += is_needed(r, table, need, rank, row);
    }
    assert_int_equal(rows, needed);
    assert_int_equal(cvy_halo_rows(halo, -1), needed);
}

/* What one rank sends is, piece by piece, what the others receive from it. */
static void check_send(const random_axis *r, cvy_halo_need need, int64_t rank, cvy_halo *sent, cvy_halo *received)
{
    int at = 0;
    assert_int_equal(cvy_halo_send(&r->axis, need, rank, sent), CVY_OK);
    for (int64_t peer = 0; peer < r->parts; peer++) {
        assert_int_equal(cvy_halo_receive(&r->axis, need, peer, received), CVY_OK);
        assert_int_equal(cvy_halo_rows(sent, peer), cvy_halo_rows(received, rank));
        for (int i = 0; i < received->pieces; i++) {
            if (received->piece[i].peer == rank) {
                assert_int_equal(sent->piece[at].peer, peer);
                assert_memory_equal(&sent->piece[at].rows, &received->piece[i].rows, sizeof(cvy_interval));
                at++;
            }
        }
    }
    assert_int_equal(at, sent->pieces);
}

/* 6,000 random kernels, strides, dilations, paddings, sizes, ranks and shares (seeds 0 to 5999). */
static void test_halos_are_the_rows_that_outputs_touch(void **state)
{
    (void)state;
    static touch_table table;
    cvy_halo halo = {0}, other = {0};
    int done = 0, far = 0;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        random_axis r;
        if (!make_axis(seed, MAX_ROWS, MAX_PARTS, &r)) {
            continue;
        }
        done++;
        make_table(&r, table);
        for (int64_t rank = 0; rank < r.parts; rank++) {
            check_receive(&r, table, CVY_HALO_X, rank, &halo);
            for (int i = 0; i < halo.pieces; i++) {
                far += llabs(halo.piece[i].peer - rank) > 1;
            }
            check_receive(&r, table, CVY_HALO_DY, rank, &halo);
            check_send(&r, CVY_HALO_X, rank, &halo, &other);
            check_send(&r, CVY_HALO_DY, rank, &halo, &other);
        }
    }
    assert_true(done > CASES * 3 / 4 && far > 1000);
    cvy_halo_clear(&halo);
    cvy_halo_clear(&other);
}

/* A plain convolution of one axis: y[o] = sum over k of w[k] x[stride o + dilation k - before], nothing beyond ends. */
static void convolve(const cvy_window *window, int axis, int64_t before, const double *x, int64_t rows, double *y,
                     int64_t outputs)
{
    for (int64_t o = 0; o < outputs; o++) {
        y[o] = 0;
        for (int64_t k = 0; k < window->kernel[axis]; k++) {
            int64_t row = window->stride[axis] * o + window->dilation[axis] * k - before;
            y[o] += row >= 0 && row < rows ? (double)(k + 2) * x[row] : 0;
        }
    }
}

/* Its backward: dx[row] += w[k] dy[o]. */
static void scatter(const cvy_window *window, int axis, int64_t before, const double *dy, int64_t outputs, double *dx,
                    int64_t rows)
{
    memset(dx, 0, (size_t)rows * sizeof *dx);
    for (int64_t o = 0; o < outputs; o++) {
        for (int64_t k = 0; k < window->kernel[axis]; k++) {
            int64_t row = window->stride[axis] * o + window->dilation[axis] * k - before;
            if (row >= 0 && row < rows) {
                dx[row] += (double)(k + 2) * dy[o];
            }
        }
    }
}

enum { ROOM = MAX_ROWS + 64 };

/* Rows of a dense local tensor: what the halo brings; all else is not a number, so that a tap on it shows. */
static void gather(const cvy_halo *halo, cvy_interval rows, const double *whole, double *local)
{
    for (int64_t i = 0; i < rows.end - rows.begin; i++) {
        local[i] = NAN;
    }
    for (int i = 0; i < halo->pieces; i++) {
        for (int64_t row = halo->piece[i].rows.begin; row < halo->piece[i].rows.end; row++) {
            assert_true(row >= rows.begin && row < rows.end);
            local[row - rows.begin] = whole[row];
        }
    }
}

/* A local window has as many positions as the rank has outputs: the op's own extents agree. */
static void check_extents(const random_axis *r, const cvy_halo_window *local, int64_t rows, int64_t outputs)
{
    cvy_window window = r->window;
    window.before[r->axis.axis] = local->before;
    window.after[r->axis.axis] = local->after;
    assert_int_equal(cvy_window_output(&window, r->axis.axis, rows), outputs);
}

/* Forward from own rows and halo; backward to dx once by contributions, added at their owners, once by a halo of dy. */
static void check_rank(const random_axis *r, int64_t rank, const double *x, const double *y, const double *dy,
                       double *added, const double *dx)
{
    double local[ROOM], result[ROOM];
    cvy_halo halo = {0};
    cvy_intervals mine = cvy_placement_share(&r->y, 2, r->outputs, rank);
    cvy_intervals rows = cvy_placement_share(&r->x, 2, r->axis.extent, rank);
    if (mine.count) {
        int64_t outputs = mine.at[0].end - mine.at[0].begin;
        cvy_halo_window w = cvy_halo_window_x(&r->axis, mine.at[0]);
        int64_t count = w.rows.end - w.rows.begin;
        assert_int_equal(cvy_halo_receive(&r->axis, CVY_HALO_X, rank, &halo), CVY_OK);
        gather(&halo, w.rows, x, local);
        convolve(&r->window, r->axis.axis, w.before, local, count, result, outputs);
        assert_memory_equal(result, y + mine.at[0].begin, (size_t)outputs * sizeof *y);
        check_extents(r, &w, count, outputs);
        scatter(&r->window, r->axis.axis, w.before, dy + mine.at[0].begin, outputs, local, count);
        for (int i = 0; i < halo.pieces; i++) {
            for (int64_t row = halo.piece[i].rows.begin; row < halo.piece[i].rows.end; row++) {
                added[row] += local[row - w.rows.begin];
            }
        }
    }
    if (rows.count) {
        int64_t count = rows.at[0].end - rows.at[0].begin;
        cvy_halo_window w = cvy_halo_window_dy(&r->axis, rows.at[0]);
        assert_int_equal(cvy_halo_receive(&r->axis, CVY_HALO_DY, rank, &halo), CVY_OK);
        gather(&halo, w.rows, dy, local);
        int64_t outputs = w.rows.end - w.rows.begin;
        for (int64_t i = 0; i < outputs; i++) {
            local[i] = isnan(local[i]) ? 0 : local[i]; /* no tap of it falls on these rows */
        }
        scatter(&r->window, r->axis.axis, w.before, local, outputs, result, count);
        assert_memory_equal(result, dx + rows.at[0].begin, (size_t)count * sizeof *dx);
        if (outputs) {
            check_extents(r, &w, count, outputs);
        }
    }
    cvy_halo_clear(&halo);
}

/* Whole numbers, so that sums are exact in any order; seeds 0 to 5999 again. */
static void test_local_convolutions_over_halos_give_the_whole(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        random_axis r;
        double x[ROOM], y[ROOM], dy[ROOM], dx[ROOM], added[ROOM] = {0};
        if (!make_axis(seed, MAX_ROWS, MAX_PARTS, &r)) {
            continue;
        }
        for (int64_t i = 0; i < ROOM; i++) {
            x[i] = (double)draw(seed, 200 + (uint32_t)i, 1, 1000);
            dy[i] = (double)draw(seed, 400 + (uint32_t)i, 1, 1000);
        }
        convolve(&r.window, r.axis.axis, r.window.before[r.axis.axis], x, r.axis.extent, y, r.outputs);
        scatter(&r.window, r.axis.axis, r.window.before[r.axis.axis], dy, r.outputs, dx, r.axis.extent);
        for (int64_t rank = 0; rank < r.parts; rank++) {
            check_rank(&r, rank, x, y, dy, added, dx);
        }
        assert_memory_equal(added, dx, (size_t)r.axis.extent * sizeof *dx);
    }
}

enum { SPACE_ROWS = 8, SPACE_PARTS = 3, SPACE_OUTPUTS = 20 };

/* Which voxels the outputs of a rank touch, by six loops. */
static void touch_space(const random_axis r[3], const int64_t self[3], bool *touched)
{
    static touch_table table[3];
    for (int axis = 0; axis < 3; axis++) {
        make_table(&r[axis], table[axis]);
    }
    for (int64_t o = 0; o < r[0].outputs * r[1].outputs * r[2].outputs; o++) {
        int64_t at[3] = {o / r[2].outputs / r[1].outputs, o / r[2].outputs % r[1].outputs, o % r[2].outputs};
        bool mine = true;
        for (int axis = 0; axis < 3; axis++) {
            mine = mine && holds(&r[axis].y, r[axis].outputs, self[axis], at[axis]);
        }
        for (int64_t i = 0; mine && i < SPACE_ROWS * SPACE_ROWS * SPACE_ROWS; i++) {
            int64_t d = i / SPACE_ROWS / SPACE_ROWS, h = i / SPACE_ROWS % SPACE_ROWS, w = i % SPACE_ROWS;
            touched[i] = touched[i] || (table[0][at[0]][d] && table[1][at[1]][h] && table[2][at[2]][w]);
        }
    }
}

/* Boxes bring each touched voxel that the rank does not hold once, from the rank that holds it. */
static int check_space_rank(const random_axis r[3], const int64_t self[3])
{
    static bool touched[SPACE_ROWS * SPACE_ROWS * SPACE_ROWS];
    cvy_halo halos[3] = {{0}};
    cvy_halo_box *boxes;
    int count, corners = 0;
    memset(touched, 0, sizeof touched);
    touch_space(r, self, touched);
    for (int axis = 0; axis < 3; axis++) {
        assert_int_equal(cvy_halo_receive(&r[axis].axis, CVY_HALO_X, self[axis], &halos[axis]), CVY_OK);
    }
    assert_int_equal(cvy_halo_cross(halos, self, &boxes, &count), CVY_OK);
    for (int b = 0; b < count; b++) {
        const cvy_interval *rows = boxes[b].rows;
        corners += boxes[b].peer[1] != self[1] && boxes[b].peer[2] != self[2];
        for (int64_t d = rows[0].begin; d < rows[0].end; d++) {
            for (int64_t h = rows[1].begin; h < rows[1].end; h++) {
                for (int64_t w = rows[2].begin; w < rows[2].end; w++) {
                    int64_t at[3] = {d, h, w};
                    bool *voxel = &touched[(d * SPACE_ROWS + h) * SPACE_ROWS + w];
                    for (int axis = 0; axis < 3; axis++) {
                        assert_true(holds(&r[axis].x, r[axis].axis.extent, boxes[b].peer[axis], at[axis]));
                    }
                    assert_true(*voxel);
                    *voxel = false;
                }
            }
        }
    }
    for (int64_t i = 0; i < SPACE_ROWS * SPACE_ROWS * SPACE_ROWS; i++) {
        int64_t at[3] = {i / SPACE_ROWS / SPACE_ROWS, i / SPACE_ROWS % SPACE_ROWS, i % SPACE_ROWS};
        bool own = true;
        for (int axis = 0; axis < 3; axis++) {
            own = own && holds(&r[axis].x, r[axis].axis.extent, self[axis], at[axis]);
        }
        assert_true(!touched[i] || own);
    }
    cvy_free(boxes);
    for (int axis = 0; axis < 3; axis++) {
        cvy_halo_clear(&halos[axis]);
    }
    return corners;
}

/* An axis that is not there: one row, one tap, one rank. */
static void make_flat_axis(random_axis *r)
{
    memset(r, 0, sizeof *r);
    r->window.kernel[0] = r->window.stride[0] = r->window.dilation[0] = 1;
    r->outputs = r->parts = 1;
    r->x = r->y = cvy_placement_replicate(1);
    r->axis = (cvy_halo_axis){&r->window, 0, 1, &r->x, &r->y};
}

static void check_space(uint32_t cases, bool flat)
{
    int done = 0, corners = 0;
    for (uint32_t seed = 0; seed < cases; seed++) {
        random_axis r[3];
        bool fits = true;
        for (uint32_t axis = 0; axis < 3; axis++) {
            if (flat && !axis) {
                make_flat_axis(&r[axis]);
            } else {
                fits = make_axis(CASES + 3 * seed + axis, SPACE_ROWS, SPACE_PARTS, &r[axis]) && fits;
            }
            r[axis].axis.window = &r[axis].window;
        }
        for (int64_t i = 0; fits && i < r[0].parts * r[1].parts * r[2].parts; i++) {
            int64_t self[3] = {i / r[2].parts / r[1].parts, i / r[2].parts % r[1].parts, i % r[2].parts};
            corners += check_space_rank(r, self);
        }
        done += fits;
    }
    assert_true(done > (int)cases / 4 && corners > (int)cases / 4);
}

static void test_halos_of_planes_are_products_with_corners(void **state)
{
    (void)state;
    check_space(CASES_2D, true);
}

static void test_halos_of_volumes_are_products_with_corners(void **state)
{
    (void)state;
    check_space(CASES_3D, false);
}

/*
 * 13 rows over 2 are 7 and 6; 3 taps, stride 1, padding 1. Rank 0 makes outputs 0-6 of rows 0-7: row 7 comes from rank
 * 1, one row of padding is left before. Rank 1 makes 7-12 of 6-12: row 6 comes from rank 0, one is left behind.
 */
static void test_a_halo_by_hand(void **state)
{
    (void)state;
    cvy_window window = {{1, 3, 1}, {1, 1, 1}, {1, 1, 1}, {0, 1, 0}, {0, 1, 0}};
    cvy_placement split;
    assert_int_equal(cvy_placement_split(2, 13, 1, 2, &split), CVY_OK);
    cvy_halo_axis axis = {&window, 1, 13, &split, &split};
    cvy_halo halo = {0};
    assert_int_equal(cvy_halo_receive(&axis, CVY_HALO_X, 0, &halo), CVY_OK);
    assert_int_equal(halo.pieces, 2);
    assert_memory_equal(&halo.piece[0], (&(cvy_halo_piece){0, {0, 7}}), sizeof(cvy_halo_piece));
    assert_memory_equal(&halo.piece[1], (&(cvy_halo_piece){1, {7, 8}}), sizeof(cvy_halo_piece));
    cvy_halo_window first = cvy_halo_window_x(&axis, (cvy_interval){0, 7});
    cvy_halo_window last = cvy_halo_window_x(&axis, (cvy_interval){7, 13});
    assert_memory_equal(&first, (&(cvy_halo_window){{0, 8}, 1, 0}), sizeof first);
    assert_memory_equal(&last, (&(cvy_halo_window){{6, 13}, 0, 1}), sizeof last);
    cvy_halo_clear(&halo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_halo_by_hand),
        cmocka_unit_test(test_halos_are_the_rows_that_outputs_touch),
        cmocka_unit_test(test_local_convolutions_over_halos_give_the_whole),
        cmocka_unit_test(test_halos_of_planes_are_products_with_corners),
        cmocka_unit_test(test_halos_of_volumes_are_products_with_corners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
