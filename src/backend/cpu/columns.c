/* Formats become strides here, once. */
#include "backend/cpu/columns.h"

#include <string.h>

#include "backend/cpu/vector.h"
#include "base/checked.h"

/* About the width of other rows of positions without a gap between them: the cost of starting a loop does not show. */
enum { LONG_ROW = 128 };

bool cvy_columns_fit(const cvy_tensor *tensor)
{
    bool known = tensor->format == CVY_FORMAT_PLAIN || tensor->format == CVY_FORMAT_CHANNELS_LAST ||
                 tensor->format == CVY_FORMAT_C8 || tensor->format == CVY_FORMAT_C16;
    return known && !tensor->grouped && tensor->shape.dims >= 2 && tensor->shape.dims <= 5;
}

cvy_columns cvy_columns_get(const cvy_tensor *tensor)
{
    const cvy_shape *shape = &tensor->shape;
    cvy_columns columns = {.samples = shape->extent[0], .channels = shape->extent[1], .area = 1};
    for (int i = 2; i < shape->dims; i++) {
        columns.area *= shape->extent[i];
    }
    bool blocked = tensor->format == CVY_FORMAT_C8 || tensor->format == CVY_FORMAT_C16;
    bool plain = tensor->format == CVY_FORMAT_PLAIN && columns.area > 1;
    int64_t block = blocked ? (tensor->format == CVY_FORMAT_C8 ? 8 : 16) : 1;
    if (blocked || plain) {
        columns.lanes = block;
        columns.strips = cvy_ceil_div(columns.channels, block);
        columns.position_stride = block;
        columns.strip_stride = columns.area * block;
    } else {
        columns.strips = cvy_ceil_div(columns.channels, CVY_COLUMNS_WIDTH);
        columns.lanes = cvy_min_i64(cvy_round_up(cvy_ceil_div(columns.channels, columns.strips), 8), columns.channels);
        columns.strips = cvy_ceil_div(columns.channels, columns.lanes);
        columns.position_stride = columns.channels;
        columns.strip_stride = columns.lanes;
    }
    columns.sample_stride = columns.area * (blocked ? columns.strips * block : columns.channels);
    return columns;
}

cvy_columns cvy_columns_join_samples(const cvy_columns *columns)
{
    cvy_columns joined = *columns;
    if (columns->sample_stride == columns->area * columns->position_stride) {
        joined.area *= joined.samples;
        joined.sample_stride *= joined.samples;
        joined.samples = 1;
    }
    return joined;
}

cvy_strip cvy_columns_strip(const cvy_columns *columns, int64_t index)
{
    cvy_strip strip = {.offset = index * columns->strip_stride, .channel = index * columns->lanes};
    int64_t left = columns->channels - strip.channel;
    strip.valid = cvy_min_i64(columns->lanes, left);
    bool padded = columns->position_stride == columns->lanes;
    strip.lanes = padded ? columns->lanes : strip.valid;
    bool dense = columns->position_stride == strip.lanes;
    int64_t row = CVY_COLUMNS_ROW % strip.lanes == 0 ? CVY_COLUMNS_ROW : LONG_ROW;
    strip.width = dense ? strip.lanes * cvy_max_i64(1, row / strip.lanes) : strip.lanes;
    return strip;
}

bool cvy_walk_next(cvy_walk *walk)
{
    const cvy_columns *columns = walk->columns;
    if (walk->next >= walk->last) {
        return false;
    }
    int64_t sample = walk->next / columns->area;
    int64_t position = walk->next % columns->area;
    walk->positions = cvy_min_i64(columns->area - position, walk->last - walk->next);
    walk->offset = sample * columns->sample_stride + walk->strip->offset + position * columns->position_stride;
    walk->next += walk->positions;
    int64_t width = walk->strip->width;
    if (columns->position_stride == walk->strip->lanes) {
        int64_t elements = walk->positions * walk->strip->lanes;
        walk->matrix = (cvy_matrix){elements / width, width, width, elements % width};
    } else {
        walk->matrix = (cvy_matrix){walk->positions, width, columns->position_stride, 0};
    }
    return true;
}

void cvy_columns_repeat(const cvy_strip *strip, float *row)
{
    for (int64_t i = strip->lanes; i < strip->width; i++) {
        row[i] = row[i - strip->lanes];
    }
}

void cvy_columns_fold(const cvy_strip *strip, const float *row, double *lane_out)
{
    for (int64_t i = 0; i < strip->lanes; i++) {
        lane_out[i] = row[i];
    }
    for (int64_t i = strip->lanes; i < strip->width; i += strip->lanes) {
        for (int64_t lane = 0; lane < strip->lanes; lane++) {
            lane_out[lane] += row[i + lane];
        }
    }
}

CVY_INLINE void sum_rows(const float *x, int64_t rows, int64_t width, int64_t stride, float *sum)
{
    for (int64_t row = 0; row < rows; row++) {
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            sum[i] += x[row * stride + i];
        }
    }
}

CVY_VECTOR void cvy_columns_sum(const float *x, const cvy_matrix *matrix, float *sum)
{
    if (matrix->width == CVY_COLUMNS_ROW) {
        float held[CVY_COLUMNS_ROW];
        memcpy(held, sum, sizeof held);
        sum_rows(x, matrix->rows, CVY_COLUMNS_ROW, CVY_COLUMNS_ROW, held);
        memcpy(sum, held, sizeof held);
    } else {
        sum_rows(x, matrix->rows, matrix->width, matrix->stride, sum);
    }
    sum_rows(x + matrix->rows * matrix->stride, 1, matrix->tail, 0, sum);
}
