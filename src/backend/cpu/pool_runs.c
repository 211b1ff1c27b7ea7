/* Rows of pooling as runs: padding and strides become lists of offsets, once for all rows and strips that are alike. */
#include "backend/cpu/pool_runs.h"

#include "base/checked.h"

enum { NOBODY = -1 };

/* The inputs of an output's window along an axis. */
static cvy_pool_near find_inputs(const cvy_pool *pool, int axis, int64_t output)
{
    const cvy_window *window = pool->window;
    cvy_pool_near near = {.count = 0};
    for (int64_t k = 0; k < window->kernel[axis]; k++) {
        int64_t at = output * window->stride[axis] - window->before[axis] + k;
        if (at >= 0 && at < pool->in[axis]) {
            near.at[near.count] = at;
            near.k[near.count++] = (int32_t)k;
        }
    }
    for (int i = 0; i < near.count; i++) {
        near.inside[i] = near.count;
    }
    return near;
}

/* The outputs whose windows cover an input along an axis: the first has it at the window's end. */
static cvy_pool_near find_outputs(const cvy_pool *pool, int axis, int64_t input)
{
    int64_t stride = pool->window->stride[axis], padded = input + pool->window->before[axis];
    int64_t beyond = padded - pool->window->kernel[axis];
    cvy_pool_near near = {.count = 0};
    for (int64_t at = beyond < 0 ? 0 : beyond / stride + 1; at < pool->out[axis] && at * stride <= padded; at++) {
        near.at[near.count] = at;
        near.k[near.count] = (int32_t)(padded - at * stride);
        near.inside[near.count++] = find_inputs(pool, axis, at).count;
    }
    return near;
}

static bool is_alike(const cvy_pool_near *a, const cvy_pool_near *b)
{
    bool alike = a->count == b->count;
    for (int i = 0; alike && i < a->count; i++) {
        alike = a->k[i] == b->k[i] && a->inside[i] == b->inside[i];
    }
    return alike;
}

/* False where its runs are too many. */
static bool find_axis(const cvy_pool *pool, int index, bool backward, cvy_pool_axis *axis_out)
{
    int64_t stride = pool->window->stride[index];
    *axis_out = (cvy_pool_axis){
        .own = backward ? pool->in[index] : pool->out[index],
        .other = backward ? pool->out[index] : pool->in[index],
        .period = backward ? stride : 1,
        .advance = backward ? 1 : stride,
    };
    for (int64_t first = 0; first < axis_out->period; first++) {
        for (int64_t at = first; at < axis_out->own; at += axis_out->period) {
            cvy_pool_near near = backward ? find_outputs(pool, index, at) : find_inputs(pool, index, at);
            if (at == first || !is_alike(&near, &axis_out->run[axis_out->count - 1].near)) {
                if (axis_out->count == CVY_POOL_RUNS) {
                    return false;
                }
                axis_out->run[axis_out->count++] = (cvy_pool_run){.first = at, .near = near};
            }
            axis_out->run[axis_out->count - 1].count++;
        }
    }
    return true;
}

/* The last window, too, begins inside. */
static bool axis_fits(const cvy_pool *pool, int axis)
{
    const cvy_window *window = pool->window;
    int64_t kernel = window->kernel[axis], last = (pool->out[axis] - 1) * window->stride[axis] - window->before[axis];
    return kernel <= CVY_POOL_REACH && window->stride[axis] <= CVY_POOL_REACH && window->dilation[axis] == 1 &&
           window->before[axis] >= 0 && window->before[axis] < kernel && last < pool->in[axis];
}

static bool fits(const cvy_pool *pool)
{
    const int64_t *kernel = pool->window->kernel;
    return pool->x.lanes > 1 && kernel[0] * kernel[1] * kernel[2] <= CVY_POOL_TAPS && axis_fits(pool, 0) &&
           axis_fits(pool, 1) && axis_fits(pool, 2);
}

/* From the first position of a side's sample to one of it. */
static int64_t offset_of(const cvy_pool_axis *axes, const int64_t at[3], int64_t stride)
{
    return ((at[0] * axes[1].other + at[1]) * axes[2].other + at[2]) * stride;
}

static void add_tap(const cvy_pool_runs *runs, const cvy_pool_near *near[3], const int i[3], cvy_pool_taps *taps)
{
    const int64_t *kernel = runs->pool->window->kernel;
    const int64_t at[3] = {near[0]->at[i[0]], near[1]->at[i[1]], near[2]->at[i[2]]};
    taps->from[taps->taps] = offset_of(runs->axis, at, runs->pool->x.position_stride);
    taps->index[taps->taps] =
        (int32_t)((near[0]->k[i[0]] * kernel[1] + near[1]->k[i[1]]) * kernel[2] + near[2]->k[i[2]]);
    taps->inside[taps->taps++] = near[0]->inside[i[0]] * near[1]->inside[i[1]] * near[2]->inside[i[2]];
}

/* The loop of a run of w in the first row of a run of d and one of h. */
static cvy_pool_taps find_taps(const cvy_pool_runs *runs, int d, int h, int w)
{
    const cvy_pool_run *run = &runs->axis[2].run[w];
    const cvy_pool_near *near[3] = {&runs->axis[0].run[d].near, &runs->axis[1].run[h].near, &run->near};
    int64_t stride = runs->pool->x.position_stride;
    cvy_pool_taps taps = {.count = run->count,
                          .to = run->first * stride,
                          .step = runs->axis[2].period * stride,
                          .from_step = runs->axis[2].advance * stride};
    int i[3];
    for (i[0] = 0; i[0] < near[0]->count; i[0]++) {
        for (i[1] = 0; i[1] < near[1]->count; i[1]++) {
            for (i[2] = 0; i[2] < near[2]->count; i[2]++) {
                add_tap(runs, near, i, &taps);
            }
        }
    }
    for (int t = taps.taps; t < CVY_POOL_TAPS; t++) {
        taps.from[t] = taps.from[0];
        taps.index[t] = runs->backward ? NOBODY : taps.index[0];
    }
    return taps;
}

bool cvy_pool_runs_get(const cvy_pool *pool, bool backward, cvy_pool_runs *runs_out)
{
    cvy_pool_axis *axis = runs_out->axis;
    cvy_pool_taps *taps = runs_out->taps;
    runs_out->pool = pool;
    runs_out->backward = backward;
    if (!fits(pool) || !find_axis(pool, 0, backward, &axis[0]) || !find_axis(pool, 1, backward, &axis[1]) ||
        !find_axis(pool, 2, backward, &axis[2]) || axis[0].count * axis[1].count * axis[2].count > CVY_POOL_LISTS) {
        return false;
    }
    for (int d = 0; d < axis[0].count; d++) {
        for (int h = 0; h < axis[1].count; h++) {
            for (int w = 0; w < axis[2].count; w++) {
                *taps++ = find_taps(runs_out, d, h, w);
            }
        }
    }
    return true;
}

/* The run of a position, and how far behind its first. */
static int find_run(const cvy_pool_axis *axis, int64_t position, int64_t *behind_out)
{
    int run = 0;
    for (;; run++) {
        int64_t past = position - axis->run[run].first;
        if (past >= 0 && past % axis->period == 0 && past / axis->period < axis->run[run].count) {
            *behind_out = past / axis->period;
            return run;
        }
    }
}

cvy_pool_row cvy_pool_row_get(const cvy_pool_runs *runs, int64_t unit, int64_t index)
{
    const cvy_pool *pool = runs->pool;
    const cvy_pool_axis *axis = runs->axis;
    const cvy_columns *own = runs->backward ? &pool->x : &pool->y, *other = runs->backward ? &pool->y : &pool->x;
    int64_t sample = unit / own->strips, strip = unit % own->strips, stride = own->position_stride;
    int64_t at[3] = {0, 0, 0};
    int d = find_run(&axis[0], index / axis[1].own, &at[0]), h = find_run(&axis[1], index % axis[1].own, &at[1]);
    at[0] *= axis[0].advance;
    at[1] *= axis[1].advance;
    const cvy_strip found = cvy_columns_strip(own, strip);
    return (cvy_pool_row){
        .strip = found,
        .touching = stride == found.lanes && axis[2].period == 1 && axis[2].advance == 1,
        .to = sample * own->sample_stride + strip * own->strip_stride + index * axis[2].own * stride,
        .from = sample * other->sample_stride + strip * other->strip_stride + offset_of(axis, at, stride),
        .runs = axis[2].count,
        .taps = &runs->taps[(d * axis[1].count + h) * axis[2].count],
    };
}

cvy_pool_loop cvy_pool_loop_get(const cvy_pool_row *row, const cvy_pool_taps *of)
{
    int64_t lanes = row->strip.lanes;
    return row->touching ? (cvy_pool_loop){1, of->count * lanes} : (cvy_pool_loop){of->count, lanes};
}
