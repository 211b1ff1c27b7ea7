/*
 * The number of taps is a constant in each version of a loop, so that it unrolls, and what wins or comes together stays
 * in registers until it is stored, once. Fewer taps than a version has are filled up with ones that change nothing.
 *
 * Indexes are found as 32-bit numbers beside the values and packed when a position is done: a loop over both widths
 * would be unrolled until it runs out of registers.
 */
#include "backend/cpu/pool_max.h"

#include <string.h>

#include "backend/cpu/vector.h"
#include "base/checked.h"

enum { BLOCK = 16, MOST_UNPACKED = 8192 };

/* What a row's gradient is made of; @p index is the window's bytes as numbers, or NULL. */
typedef struct gradient_rows {
    cvy_pool_max_gradient at;
    const int32_t *index;
} gradient_rows;

CVY_INLINE void pack(const int32_t *index, int64_t lanes, uint8_t *window)
{
#pragma omp simd
    for (int64_t i = 0; i < lanes; i++) {
        window[i] = (uint8_t)index[i];
    }
}

/* The larger wins, the first of equals, and the first NaN over all: it is not equal to itself. */
CVY_INLINE void find_largest(const cvy_pool_taps *of, int taps, int64_t lanes, float least, const float *x, float *y,
                             int32_t *winner)
{
    const cvy_pool_taps r = *of;
#pragma omp simd
    for (int64_t i = 0; i < lanes; i++) {
        float largest = x[r.from[0] + i];
        int32_t index = r.index[0];
#pragma GCC unroll 9
        for (int t = 1; t < taps; t++) {
            float candidate = x[r.from[t] + i];
            bool better = candidate > largest || (candidate != candidate && largest == largest);
            largest = better ? candidate : largest;
            index = better ? r.index[t] : index;
        }
        y[i] = largest < least ? least : largest;
        winner[i] = index;
    }
}

/* Lanes of a loop, as many at a time as there is room for their winners. */
CVY_INLINE void find_in_loop(const cvy_pool_taps *of, int taps, int64_t count, int64_t lanes, const cvy_pool_max *pool)
{
    int32_t winner[CVY_COLUMNS_WIDTH];
    for (int64_t output = 0; output < count; output++) {
        const float *from = pool->x + output * of->from_step;
        int64_t to = of->to + output * of->step;
        for (int64_t i = 0; i < lanes; i += CVY_COLUMNS_WIDTH) {
            int64_t some = lanes - i < CVY_COLUMNS_WIDTH ? lanes - i : CVY_COLUMNS_WIDTH;
            find_largest(of, taps, some, pool->least, from + i, pool->y + to + i, winner);
            if (pool->window) {
                pack(winner, some, pool->window + to + i);
            }
        }
    }
}

/* In the order of outputs, from 0. A relu's gradient is none where y is not above 0. */
CVY_INLINE void gather(const cvy_pool_taps *of, int taps, int64_t lanes, bool masked, const gradient_rows *rows)
{
    const cvy_pool_taps r = *of;
    const float *dy = rows->at.dy, *y = rows->at.y;
    const uint8_t *window = rows->at.window;
    const int32_t *index = rows->index;
    float *dx = rows->at.dx;
#pragma omp simd
    for (int64_t i = 0; i < lanes; i++) {
        float sum = 0;
#pragma GCC unroll 9
        for (int t = 0; t < taps; t++) {
            int32_t winner = lanes == BLOCK ? index[r.from[t] + i] : window[r.from[t] + i];
            bool mine = winner == r.index[t];
            sum += mine && (!masked || y[r.from[t] + i] > 0) ? dy[r.from[t] + i] : 0;
        }
        dx[i] = sum;
    }
}

CVY_INLINE void gather_loop(const cvy_pool_taps *of, int taps, cvy_pool_loop loop, bool masked,
                            const gradient_rows *rows)
{
    gradient_rows next = *rows;
    next.at.dx += of->to;
    for (int64_t input = 0; input < loop.count; input++) {
        if (rows->index) {
            gather(of, taps, BLOCK, masked, &next);
            next.index += of->from_step;
        } else {
            gather(of, taps, loop.lanes, masked, &next);
        }
        next.at.dy += of->from_step;
        next.at.y += masked ? of->from_step : 0;
        next.at.window += of->from_step;
        next.at.dx += of->step;
    }
}

/* Blocks of channels are short: their length is a constant, too. */
#define DEFINE_FIND(taps)                                                                                             \
    CVY_WIDE_VECTOR static void find_of_##taps(const cvy_pool_taps *of, cvy_pool_loop loop, const cvy_pool_max *pool) \
    {                                                                                                                 \
        if (loop.lanes == BLOCK) {                                                                                    \
            find_in_loop(of, taps, loop.count, BLOCK, pool);                                                          \
        } else {                                                                                                      \
            find_in_loop(of, taps, loop.count, loop.lanes, pool);                                                     \
        }                                                                                                             \
    }

#define DEFINE_GATHER(name, taps, masked)                                         \
    CVY_WIDE_VECTOR static void name(const cvy_pool_taps *of, cvy_pool_loop loop, \
                                     const gradient_rows *rows)                   \
    {                                                                             \
        gather_loop(of, taps, loop, masked, rows);                                \
    }

DEFINE_FIND(4)
DEFINE_FIND(6)
DEFINE_FIND(9)
DEFINE_GATHER(gather_of_1, 1, false)
DEFINE_GATHER(gather_of_2, 2, false)
DEFINE_GATHER(gather_of_4, 4, false)
DEFINE_GATHER(gather_of_9, 9, false)
DEFINE_GATHER(gather_masked_of_1, 1, true)
DEFINE_GATHER(gather_masked_of_2, 2, true)
DEFINE_GATHER(gather_masked_of_4, 4, true)
DEFINE_GATHER(gather_masked_of_9, 9, true)

typedef void (*gather_function)(const cvy_pool_taps *of, cvy_pool_loop loop, const gradient_rows *rows);

void cvy_pool_max_row(const cvy_pool_row *row, int64_t positions, const cvy_pool_max *pool)
{
    int64_t lanes = row->strip.lanes, valid = row->strip.valid;
    uint8_t *window = pool->window ? pool->window + row->to : NULL;
    const cvy_pool_max at = {.x = pool->x + row->from, .y = pool->y + row->to, .window = window, .least = pool->least};
    for (int i = 0; i < row->runs; i++) {
        const cvy_pool_taps *of = &row->taps[i];
        (of->taps <= 4 ? find_of_4 : of->taps <= 6 ? find_of_6 : find_of_9)(of, cvy_pool_loop_get(row, of), &at);
    }
    for (int64_t i = 0; window && valid < lanes && i < positions; i++) { /* no winners in the padding */
        memset(window + i * lanes + valid, 0, (size_t)(lanes - valid));
    }
}

/* Whom no window covers gets nothing. */
static void clear_run(const cvy_pool_taps *of, int64_t lanes, float *dx)
{
    for (int64_t i = 0; i < of->count; i++) {
        memset(dx + of->to + i * of->step, 0, (size_t)lanes * sizeof *dx);
    }
}

CVY_WIDE_VECTOR static void unpack(const uint8_t *window, int64_t count, int32_t *index)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        index[i] = window[i];
    }
}

/* From where to where the taps of a row's runs lie. */
static void find_extent(const cvy_pool_row *row, int64_t *first_out, int64_t *last_out)
{
    int64_t first = INT64_MAX, last = 0;
    for (int i = 0; i < row->runs; i++) {
        const cvy_pool_taps *of = &row->taps[i];
        for (int t = 0; t < of->taps; t++) {
            first = cvy_min_i64(first, of->from[t]);
            last = cvy_max_i64(last, of->from[t] + (of->count - 1) * of->from_step + row->strip.lanes);
        }
    }
    *first_out = cvy_min_i64(first, last);
    *last_out = last;
}

static void gather_row(const cvy_pool_row *row, const gradient_rows *rows)
{
    static const gather_function gather_of[2][CVY_POOL_TAPS + 1] = {
        {NULL, gather_of_1, gather_of_2, gather_of_4, gather_of_4, gather_of_9, gather_of_9, gather_of_9, gather_of_9,
         gather_of_9},
        {NULL, gather_masked_of_1, gather_masked_of_2, gather_masked_of_4, gather_masked_of_4, gather_masked_of_9,
         gather_masked_of_9, gather_masked_of_9, gather_masked_of_9, gather_masked_of_9},
    };
    for (int i = 0; i < row->runs; i++) {
        const cvy_pool_taps *of = &row->taps[i];
        cvy_pool_loop loop = rows->index ? (cvy_pool_loop){of->count, BLOCK} : cvy_pool_loop_get(row, of);
        if (of->taps > 0) {
            gather_of[rows->at.y != NULL][of->taps](of, loop, rows);
        } else {
            clear_run(of, row->strip.lanes, rows->at.dx);
        }
    }
}

/* The bytes of a block's row become numbers first: a loop of 16 over both widths would go by the registers of bytes. */
void cvy_pool_max_gradient_row(const cvy_pool_row *row, const cvy_pool_max_gradient *pool)
{
    int32_t index[MOST_UNPACKED];
    int64_t first, last;
    gradient_rows rows = {.at = {.dy = pool->dy + row->from,
                                 .y = pool->y ? pool->y + row->from : NULL,
                                 .window = pool->window + row->from,
                                 .dx = pool->dx + row->to}};
    find_extent(row, &first, &last);
    if (row->strip.lanes == BLOCK && first < last && last - first <= MOST_UNPACKED) {
        unpack(rows.at.window + first, last - first, index);
        rows.index = index - first;
    }
    gather_row(row, &rows);
}
