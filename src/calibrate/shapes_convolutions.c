/*
 * Convolutions as nets have them: kernels of 1 to 11, strides of 1, 2 and 4, padded to keep the size or not at all,
 * two in three with filters in a plain proportion to channels, nine in ten over whole multiples of 8 or 16 channels,
 * half of them over sides that come of halving usual images. Two in five are slices of others: fewer samples, few
 * filters, few channels, or a strip of rows, which has padding on its outer edge alone. Ranges as in
 * spec/scaling-model.md, 1.4.
 */
#include "calibrate/shapes_internal.h"

#include "base/checked.h"

cvy_window cvy_make_window(int space_dims, int64_t kernel, int64_t stride, int64_t pad)
{
    cvy_window window;
    for (int axis = 0; axis < 3; axis++) {
        bool flat = axis == 0 && space_dims == 2;
        window.kernel[axis] = flat ? 1 : kernel;
        window.stride[axis] = flat ? 1 : stride;
        window.dilation[axis] = 1;
        window.before[axis] = window.after[axis] = flat ? 0 : pad;
    }
    return window;
}

int64_t cvy_draw_channels(cvy_dice *dice, int64_t most)
{
    bool odd = cvy_dice_chance(dice, 0.1);
    int64_t block = cvy_dice_chance(dice, 0.8) ? 16 : 8;
    int64_t channels = cvy_dice_log(dice, odd ? 1 : block, most);
    return odd ? channels : cvy_min_i64(cvy_round_up(channels, block), most);
}

int64_t cvy_draw_share(cvy_dice *dice, int64_t extent)
{
    int64_t ranks = (int64_t)1 << cvy_dice_even(dice, 1, 6);
    return cvy_ceil_div(extent, ranks);
}

/* Those of 224, 227 and 32 pixels, halved and halved again, and powers of 2 for volumes; or any. */
static int64_t draw_side(cvy_dice *dice, int64_t most)
{
    static const int64_t usual[] = {4, 7, 8, 13, 14, 16, 27, 28, 32, 55, 56, 64, 112, 128, 224};
    enum { USUAL = sizeof usual / sizeof usual[0] };
    int64_t side = cvy_dice_chance(dice, 0.5) ? usual[cvy_dice_even(dice, 0, USUAL - 1)] : cvy_dice_log(dice, 1, most);
    return cvy_min_i64(side, most);
}

cvy_shape cvy_draw_map(cvy_dice *dice, int space_dims)
{
    enum { MOST_SAMPLES = 256, MOST_CHANNELS = 2048, MOST_SIDE = 230, MOST_SIDE_OF_VOLUME = 128 };
    int64_t most = space_dims == 3 ? MOST_SIDE_OF_VOLUME : MOST_SIDE;
    cvy_shape map = {.dims = 2 + space_dims};
    int64_t samples = cvy_dice_chance(dice, 0.75) ? MOST_SAMPLES / 4 : MOST_SAMPLES;
    map.extent[0] = cvy_dice_log(dice, 1, space_dims == 3 ? samples / 8 : samples);
    map.extent[1] = cvy_draw_channels(dice, MOST_CHANNELS);
    int64_t side = draw_side(dice, most);
    bool square = cvy_dice_chance(dice, 0.85);
    for (int i = 2; i < map.dims; i++) {
        map.extent[i] = square ? side : cvy_dice_log(dice, 1, most);
    }
    return map;
}

/* A strip: the rows of one rank and the halo of its inner edge, which takes the padding's place. */
static void cut_rows(cvy_dice *dice, cvy_drawn_shape *shape)
{
    cvy_window *window = &shape->op.params.window.window;
    int axis = shape->x.dims == 5 ? 0 : 1;
    int64_t *rows = &shape->x.extent[2];
    *rows = cvy_draw_share(dice, *rows) + window->kernel[axis] - 1 - window->before[axis];
    window->after[axis] = 0;
}

static void cut_slice(cvy_dice *dice, cvy_drawn_shape *shape)
{
    if (cvy_dice_chance(dice, 0.6)) {
        return;
    }
    switch (cvy_dice_even(dice, 0, 3)) {
    case 0: shape->x.extent[0] = cvy_draw_share(dice, shape->x.extent[0]); break;
    case 1: shape->filters = cvy_draw_share(dice, shape->filters); break;
    case 2: shape->x.extent[1] = cvy_draw_share(dice, shape->x.extent[1]); break;
    default: cut_rows(dice, shape); break;
    }
}

static void draw_dense_window(cvy_dice *dice, int space_dims, int64_t kernel, int64_t stride, cvy_drawn_shape *shape)
{
    enum { MOST_FILTERS = 2048 };
    int64_t pad = cvy_dice_chance(dice, 0.75) ? (kernel - 1) / 2 : 0;
    shape->op.params.window.window = cvy_make_window(space_dims, kernel, stride, pad);
    shape->op.params.window.groups = 1;
    shape->x = cvy_draw_map(dice, space_dims);
    shape->filters = cvy_draw_channels(dice, MOST_FILTERS);
    if (cvy_dice_chance(dice, 0.67)) { /* a quarter to four times as many as channels */
        int64_t quarters = (int64_t)1 << cvy_dice_even(dice, 0, 4);
        shape->filters = cvy_min_i64(cvy_max_i64(shape->x.extent[1] * quarters / 4, 1), MOST_FILTERS);
    }
    if (cvy_dice_chance(dice, 0.125)) { /* a first layer */
        shape->x.extent[1] = cvy_dice_chance(dice, 0.25) ? 1 : 3;
    }
}

void cvy_draw_convolution(cvy_dice *dice, cvy_drawn_shape *shape)
{
    static const int64_t kernels[] = {1, 1, 1, 1, 3, 5, 5, 5, 7, 11}, strides[] = {1, 1, 2, 4};
    int64_t kernel = kernels[cvy_dice_even(dice, 0, 9)], stride = strides[cvy_dice_even(dice, 0, 3)];
    stride = kernel == 3 && stride == 1 ? 2 : stride; /* those of stride 1 are another family */
    draw_dense_window(dice, 2, kernel, stride, shape);
    cut_slice(dice, shape);
}

void cvy_draw_convolution_3x3(cvy_dice *dice, cvy_drawn_shape *shape)
{
    draw_dense_window(dice, 2, 3, 1, shape);
    cut_slice(dice, shape);
}

void cvy_draw_convolution_5x5(cvy_dice *dice, cvy_drawn_shape *shape)
{
    draw_dense_window(dice, 2, 5, 1, shape);
    cut_slice(dice, shape);
}

void cvy_draw_convolution_volume(cvy_dice *dice, cvy_drawn_shape *shape)
{
    static const int64_t kernels[] = {1, 2, 3, 3, 3, 5}, strides[] = {1, 1, 1, 2};
    int64_t kernel = kernels[cvy_dice_even(dice, 0, 5)], stride = strides[cvy_dice_even(dice, 0, 3)];
    draw_dense_window(dice, 3, kernel, stride, shape);
    cut_slice(dice, shape);
}

void cvy_draw_convolution_grouped(cvy_dice *dice, cvy_drawn_shape *shape)
{
    int64_t groups = (int64_t)1 << cvy_dice_even(dice, 1, 6), stride = cvy_dice_even(dice, 1, 2);
    draw_dense_window(dice, 2, cvy_dice_chance(dice, 0.75) ? 3 : 1, stride, shape);
    shape->op.params.window.groups = groups;
    shape->x.extent[1] = groups * cvy_dice_log(dice, 2, 64);
    shape->filters = groups * cvy_dice_log(dice, 2, 64);
}

void cvy_draw_convolution_depthwise(cvy_dice *dice, cvy_drawn_shape *shape)
{
    int64_t stride = cvy_dice_even(dice, 1, 2);
    draw_dense_window(dice, 2, cvy_dice_chance(dice, 0.66) ? 3 : 5, stride, shape);
    shape->x.extent[1] = cvy_max_i64(shape->x.extent[1], 2);
    shape->filters = shape->op.params.window.groups = shape->x.extent[1];
}

/* y is twice as large as x, or as large: a window of 2 at stride 2, of 3 or 4 at either, as decoders have them. */
void cvy_draw_convolution_transposed(cvy_dice *dice, cvy_drawn_shape *shape)
{
    int64_t kernel = cvy_dice_even(dice, 2, 4), stride = cvy_dice_even(dice, 1, 2);
    int space_dims = cvy_dice_chance(dice, 0.5) ? 2 : 3;
    draw_dense_window(dice, space_dims, kernel, stride, shape);
    shape->op.params.window.window = cvy_make_window(space_dims, kernel, stride, kernel > 2 ? 1 : 0);
}
