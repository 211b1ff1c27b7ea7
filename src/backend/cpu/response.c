/*
 * Local response norm over every activation format, a tile at a time: all channels of a few positions, gathered so that
 * the positions of a channel lie side by side. The window then goes over whole rows, whatever the format.
 *
 * With scale = k + alpha / size * sum of x^2 over the window, q = scale^-beta and t = dy x q / scale:
 *     y = x q,  dx = dy q - 2 alpha beta / size x * sum of t over the mirrored window
 * (Krizhevsky et al., 2012; alpha as PyTorch's). Nothing is kept between the passes: summing the window again costs
 * less than a tensor. Rows of padding are zeros and stay so, since scale is at least k. beta = 3/4, which everyone
 * takes, needs two roots and no power.
 *
 * Tiles follow from the shape alone and no two share a sum: any number of threads gives the same bits.
 */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/vector.h"
#include "base/checked.h"

/* Shares of the work, each with scratch memory of its own; positions of a tile at least and at most. */
enum { SHARES = 64, LEAST_POSITIONS = 8, MOST_POSITIONS = 256 };

/* Rows of a tile in scratch memory, one for each channel. */
typedef enum tile_rows { ROWS_X, ROWS_POWER, ROWS_DY, ROWS_PRODUCT, ROWS_COUNT } tile_rows;

typedef struct tile_shape {
    int64_t channels;  /* with padding */
    int64_t positions; /* of a full tile */
    int64_t tiles;     /* of a sample */
    int64_t shares;
} tile_shape;

/* One tile of a tensor: where its first element lies, how many positions it has. */
typedef struct tile {
    int64_t offset, positions;
} tile;

static tile_shape find_shape(const cvy_cpu_kernel *kernel)
{
    const cvy_columns *columns = &kernel->columns;
    tile_shape shape = {.channels = columns->sample_stride / columns->area};
    int64_t fit = cvy_round_up(CVY_CPU_CHUNK / shape.channels + 1, LEAST_POSITIONS);
    shape.positions = cvy_min_i64(cvy_min_i64(fit, MOST_POSITIONS), columns->area);
    shape.tiles = cvy_ceil_div(columns->area, shape.positions);
    shape.shares = cvy_min_i64(SHARES, columns->samples * shape.tiles);
    return shape;
}

static int64_t share_elements(const tile_shape *shape) { return (ROWS_COUNT * shape->channels + 1) * shape->positions; }

static tile find_tile(const cvy_columns *columns, const tile_shape *shape, int64_t index)
{
    int64_t first = index % shape->tiles * shape->positions;
    return (tile){.offset = index / shape->tiles * columns->sample_stride + first * columns->position_stride,
                  .positions = cvy_min_i64(shape->positions, columns->area - first)};
}

/* Where channel c of a tile lies: strips of as many channels as a position has side by side. */
static int64_t find_row(const cvy_columns *columns, const tile *at, int64_t c)
{
    int64_t block = columns->position_stride;
    return at->offset + c / block * columns->area * block + c % block;
}

static void load_row(const float *x, int64_t stride, int64_t positions, float *row)
{
    if (stride == 1) {
        memcpy(row, x, (size_t)positions * sizeof *row);
        return;
    }
    for (int64_t i = 0; i < positions; i++) {
        row[i] = x[i * stride];
    }
}

static void store_row(const float *row, int64_t stride, int64_t positions, float *y)
{
    for (int64_t i = 0; i < positions; i++) {
        y[i * stride] = row[i];
    }
}

static void load_tile(const cvy_columns *columns, const tile_shape *shape, const tile *at, const float *x, float *rows)
{
    for (int64_t c = 0; c < shape->channels; c++) {
        load_row(x + find_row(columns, at, c), columns->position_stride, at->positions, rows + c * shape->positions);
    }
}

/* The channels of a window that there are: [first, last). */
static void find_window(int64_t c, int64_t before, int64_t after, int64_t channels, int64_t bound_out[2])
{
    bound_out[0] = c > before ? c - before : 0;
    bound_out[1] = after < channels - c ? c + after + 1 : channels;
}

CVY_INLINE void raise(const float *scale, float beta, int64_t count, float *power)
{
    if (beta == 0.75f) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            float root = sqrtf(scale[i]);
            power[i] = 1.0f / (root * sqrtf(root));
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        power[i] = powf(scale[i], -beta);
    }
}

/* scale^-beta of one channel into @p power, scale itself into @p scale. */
CVY_VECTOR static void find_power(const cvy_op_params_response *with, const tile_shape *shape, const float *rows,
                                  int64_t c, float *scale, float *power)
{
    int64_t width = shape->positions, bound[2];
    float weight = (float)(with->alpha / (double)with->size), k = (float)with->k;
    find_window(c, with->size / 2, (with->size - 1) / 2, shape->channels, bound);
    memset(scale, 0, (size_t)width * sizeof *scale);
    for (int64_t e = bound[0]; e < bound[1]; e++) {
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            scale[i] += rows[e * width + i] * rows[e * width + i];
        }
    }
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        scale[i] = k + weight * scale[i];
    }
    raise(scale, (float)with->beta, width, power);
}

CVY_VECTOR static void multiply(const float *a, const float *b, int64_t count, float *out)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        out[i] = a[i] * b[i];
    }
}

static void run_tile(const cvy_cpu_kernel *kernel, const tile_shape *shape, const tile *at, void *const *operand,
                     float *scratch)
{
    const cvy_op_params_response *with = &kernel->base.op.params.response;
    int64_t rows = shape->channels * shape->positions;
    float *x = scratch + ROWS_X * rows, *power = scratch + ROWS_POWER * rows, *row = scratch + ROWS_COUNT * rows;
    load_tile(&kernel->columns, shape, at, operand[0], x);
    for (int64_t c = 0; c < shape->channels; c++) {
        find_power(with, shape, x, c, row, power);
        multiply(x + c * shape->positions, power, shape->positions, row);
        store_row(row, kernel->columns.position_stride, at->positions,
                  (float *)operand[1] + find_row(&kernel->columns, at, c));
    }
}

/* t of one channel. */
CVY_VECTOR static void find_product(const float *x, const float *dy, const float *power, const float *scale,
                                    int64_t count, float *product)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        product[i] = dy[i] * x[i] * power[i] / scale[i];
    }
}

/* dx of one channel, from the rows of a tile. With a relu before, it is 0 where x is. */
CVY_VECTOR static void find_gradient(const cvy_op *op, const tile_shape *shape, const float *all, int64_t c, float *dx)
{
    const cvy_op_params_response *with = &op->params.response;
    bool kept = !op->relu;

    int64_t width = shape->positions, rows = shape->channels * width, bound[2];
    const float *x = all + ROWS_X * rows + c * width, *power = all + ROWS_POWER * rows + c * width;
    const float *dy = all + ROWS_DY * rows + c * width, *product = all + ROWS_PRODUCT * rows;
    float weight = (float)(2.0 * with->alpha * with->beta / (double)with->size);
    find_window(c, (with->size - 1) / 2, with->size / 2, shape->channels, bound);
    memset(dx, 0, (size_t)width * sizeof *dx);
    for (int64_t e = bound[0]; e < bound[1]; e++) {
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            dx[i] += product[e * width + i];
        }
    }
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        float gradient = dy[i] * power[i] - weight * x[i] * dx[i];
        dx[i] = kept | (x[i] > 0) ? gradient : 0;
    }
}

static void run_tile_backward(const cvy_cpu_kernel *kernel, const tile_shape *shape, const tile *at,
                              void *const *operand, float *scratch)
{
    const cvy_op_params_response *with = &kernel->base.op.params.response;
    int64_t width = shape->positions, rows = shape->channels * width;
    float *x = scratch + ROWS_X * rows, *dy = scratch + ROWS_DY * rows, *row = scratch + ROWS_COUNT * rows;
    load_tile(&kernel->columns, shape, at, operand[0], x);
    load_tile(&kernel->columns, shape, at, operand[1], dy);
    for (int64_t c = 0; c < shape->channels; c++) {
        float *power = scratch + ROWS_POWER * rows + c * width, *product = scratch + ROWS_PRODUCT * rows + c * width;
        find_power(with, shape, x, c, row, power);
        find_product(x + c * width, dy + c * width, power, row, width, product);
    }
    for (int64_t c = 0; c < shape->channels; c++) {
        find_gradient(&kernel->base.op, shape, scratch, c, row);
        store_row(row, kernel->columns.position_stride, at->positions,
                  (float *)operand[2] + find_row(&kernel->columns, at, c));
    }
}

static cvy_status run_all(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const tile_shape shape = find_shape(kernel);
    int64_t tiles = kernel->columns.samples * shape.tiles;
    (void)run;
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t share = 0; share < shape.shares; share++) {
        float *own = (float *)scratch + share * share_elements(&shape);
        memset(own, 0, (size_t)share_elements(&shape) * sizeof *own); /* short tiles leave the ends of rows alone */
        for (int64_t i = tiles * share / shape.shares; i < tiles * (share + 1) / shape.shares; i++) {
            const tile at = find_tile(&kernel->columns, &shape, i);
            if (kernel->base.op.pass == CVY_PASS_FORWARD) {
                run_tile(kernel, &shape, &at, operand, own);
            } else {
                run_tile_backward(kernel, &shape, &at, operand, own);
            }
        }
    }
    return CVY_OK;
}

static void setup(cvy_cpu_kernel *kernel)
{
    const tile_shape shape = find_shape(kernel);
    kernel->scratch_bytes = (size_t)(shape.shares * share_elements(&shape)) * sizeof(float);
}

static cvy_cpu_run find(const cvy_op *op)
{
    return cvy_columns_fit(&op->operand[0].tensor) && cvy_cpu_same_layout(op) ? run_all : NULL;
}

const cvy_cpu_family cvy_cpu_response = {.find = find, .setup = setup};
