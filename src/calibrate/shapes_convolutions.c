/*
 * Convolutions as nets have them: windows and strides that go together, over maps that are not much smaller than the
 * window, padded to keep the size or not at all, two in three with filters in a plain proportion to channels, nine in
 * ten over whole multiples of 8 or 16 channels, half of them over sides that come of halving usual images. Three in ten
 * are slices of others: fewer samples, few filters, few channels, or a strip of rows, which has padding on its outer
 * edge alone. Ranges as in spec/scaling-model.md, 1.4. What no net has (windows of 11 over maps of 1, windows of 1 with
 * strides of 4) is not drawn: fitted to it, nets told the 1x1 convolutions of ResNets 60 to 85 % off.
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
    int64_t ranks = (int64_t)1 << cvy_dice_log(dice, 1, 6); /* few ranks are what most have */
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
    bool square = cvy_dice_chance(dice, 0.9);
    for (int i = 2; i < map.dims; i++) {
        int64_t least = cvy_max_i64(side / 4, 1), largest = cvy_min_i64(side * 4, most);
        map.extent[i] = square ? side : cvy_dice_log(dice, least, largest);
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
    if (cvy_dice_chance(dice, 0.7)) {
        return;
    }
    switch (cvy_dice_even(dice, 0, 3)) {
    case 0: shape->x.extent[0] = cvy_draw_share(dice, shape->x.extent[0]); break;
    case 1: shape->filters = cvy_draw_share(dice, shape->filters); break;
    case 2: shape->x.extent[1] = cvy_draw_share(dice, shape->x.extent[1]); break;
    default: cut_rows(dice, shape); break;
    }
}

/* A window over a map, of which it may reach one place beyond. */
static void place_window(cvy_dice *dice, int space_dims, const cvy_window *window, cvy_drawn_shape *shape)
{
    shape->op.params.window.window = *window;
    shape->op.params.window.groups = 1;
    shape->x = cvy_draw_map(dice, space_dims);
    for (int i = 0; i < space_dims; i++) {
        int64_t *extent = &shape->x.extent[2 + i];
        *extent = cvy_max_i64(*extent, window->kernel[3 - space_dims + i] - 1);
    }
}

/* Images have 1 or 3 channels, volumes that are simulated 1 or 4. */
static void take_input(cvy_dice *dice, cvy_drawn_shape *shape)
{
    shape->x.extent[1] = cvy_dice_chance(dice, 0.25) ? 1 : shape->x.dims == 5 ? 4 : 3;
}

/* A quarter to four times as many filters as channels, or any. */
static void draw_filters(cvy_dice *dice, cvy_drawn_shape *shape)
{
    enum { MOST_FILTERS = 2048 };
    shape->filters = cvy_draw_channels(dice, MOST_FILTERS);
    if (cvy_dice_chance(dice, 0.67)) {
        int64_t quarters = (int64_t)1 << cvy_dice_even(dice, 0, 4);
        shape->filters = cvy_min_i64(cvy_max_i64(shape->x.extent[1] * quarters / 4, 1), MOST_FILTERS);
    }
}

static void draw_dense_window(cvy_dice *dice, int space_dims, int64_t kernel, int64_t stride, double inputs,
                              cvy_drawn_shape *shape)
{
    int64_t pad = cvy_dice_chance(dice, 0.75) ? (kernel - 1) / 2 : 0;
    const cvy_window window = cvy_make_window(space_dims, kernel, stride, pad);
    place_window(dice, space_dims, &window, shape);
    draw_filters(dice, shape);
    if (cvy_dice_chance(dice, inputs)) {
        take_input(dice, shape);
    }
}

/* One axis alone, as nets factor larger windows. */
static void draw_line(cvy_dice *dice, cvy_drawn_shape *shape)
{
    int64_t kernel = cvy_dice_chance(dice, 0.5) ? 3 : 7;
    int across = (int)cvy_dice_even(dice, 1, 2);
    cvy_window window = cvy_make_window(2, kernel, 1, (kernel - 1) / 2);
    window.kernel[across] = 1;
    window.before[across] = window.after[across] = 0;
    place_window(dice, 2, &window, shape);
    draw_filters(dice, shape);
}

/* Those that have no family of their own: most halve a map; large windows look at images. */
void cvy_draw_convolution(cvy_dice *dice, cvy_drawn_shape *shape)
{
    static const struct {
        int64_t kernel, stride;
        double inputs; /* share of those that look at images */
    } windows[] = {{3, 2, 0.25}, {3, 2, 0.25}, {3, 2, 0.25}, {5, 2, 0.25}, {7, 2, 0.75}, {7, 1, 0.25}, {11, 4, 0.75}};
    enum { WINDOWS = sizeof windows / sizeof windows[0] };
    int which = (int)cvy_dice_even(dice, 0, WINDOWS + 1);
    if (which >= WINDOWS) {
        draw_line(dice, shape);
    } else {
        draw_dense_window(dice, 2, windows[which].kernel, windows[which].stride, windows[which].inputs, shape);
    }
    cut_slice(dice, shape);
}

void cvy_draw_convolution_1x1(cvy_dice *dice, cvy_drawn_shape *shape)
{
    int space_dims = cvy_dice_chance(dice, 0.875) ? 2 : 3;
    draw_dense_window(dice, space_dims, 1, cvy_dice_chance(dice, 0.85) ? 1 : 2, 0.03, shape);
    cut_slice(dice, shape);
}

void cvy_draw_convolution_3x3(cvy_dice *dice, cvy_drawn_shape *shape)
{
    draw_dense_window(dice, 2, 3, 1, 0.06, shape);
    cut_slice(dice, shape);
}

void cvy_draw_convolution_5x5(cvy_dice *dice, cvy_drawn_shape *shape)
{
    draw_dense_window(dice, 2, 5, 1, 0.125, shape);
    cut_slice(dice, shape);
}

void cvy_draw_convolution_volume(cvy_dice *dice, cvy_drawn_shape *shape)
{
    static const int64_t kernels[] = {3, 3, 3, 3, 2, 5}, strides[] = {1, 1, 1, 2};
    int64_t kernel = kernels[cvy_dice_even(dice, 0, 5)], stride = strides[cvy_dice_even(dice, 0, 3)];
    draw_dense_window(dice, 3, kernel, stride, 0.125, shape);
    cut_slice(dice, shape);
}

void cvy_draw_convolution_grouped(cvy_dice *dice, cvy_drawn_shape *shape)
{
    int64_t groups = (int64_t)1 << cvy_dice_even(dice, 1, 6), stride = cvy_dice_even(dice, 1, 2);
    draw_dense_window(dice, 2, cvy_dice_chance(dice, 0.75) ? 3 : 1, stride, 0.0, shape);
    shape->op.params.window.groups = groups;
    shape->x.extent[1] = groups * cvy_dice_log(dice, 2, 64);
    shape->filters = groups * cvy_dice_log(dice, 2, 64);
}

void cvy_draw_convolution_depthwise(cvy_dice *dice, cvy_drawn_shape *shape)
{
    int64_t stride = cvy_dice_even(dice, 1, 2);
    draw_dense_window(dice, 2, cvy_dice_chance(dice, 0.66) ? 3 : 5, stride, 0.0, shape);
    shape->x.extent[1] = cvy_max_i64(shape->x.extent[1], 2);
    shape->filters = shape->op.params.window.groups = shape->x.extent[1];
}

/* y is twice as large as x, or as large: a window of 2 at stride 2, of 3 or 4 at either, as decoders have them. */
void cvy_draw_convolution_transposed(cvy_dice *dice, cvy_drawn_shape *shape)
{
    int64_t kernel = cvy_dice_even(dice, 2, 4), stride = cvy_dice_even(dice, 1, 2);
    int space_dims = cvy_dice_chance(dice, 0.5) ? 2 : 3;
    draw_dense_window(dice, space_dims, kernel, stride, 0.0, shape);
    shape->op.params.window.window = cvy_make_window(space_dims, kernel, stride, kernel > 2 ? 1 : 0);
}
