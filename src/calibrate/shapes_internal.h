/* What the drawings of families share: private to shapes*.c. */
#ifndef CVY_CALIBRATE_SHAPES_INTERNAL_H
#define CVY_CALIBRATE_SHAPES_INTERNAL_H

#include "calibrate/shapes.h"

/** Families, the convolutions first; the order is part of what a seed means: new ones go to the end. */
extern const cvy_shape_family cvy_shape_table[];
extern const int cvy_shape_table_size;

void cvy_draw_convolution(cvy_dice *dice, cvy_drawn_shape *shape);
void cvy_draw_convolution_1x1(cvy_dice *dice, cvy_drawn_shape *shape);
void cvy_draw_convolution_3x3(cvy_dice *dice, cvy_drawn_shape *shape);
void cvy_draw_convolution_5x5(cvy_dice *dice, cvy_drawn_shape *shape);
void cvy_draw_convolution_grouped(cvy_dice *dice, cvy_drawn_shape *shape);
void cvy_draw_convolution_depthwise(cvy_dice *dice, cvy_drawn_shape *shape);
void cvy_draw_convolution_volume(cvy_dice *dice, cvy_drawn_shape *shape);
void cvy_draw_convolution_transposed(cvy_dice *dice, cvy_drawn_shape *shape);

/** Samples, channels and space of a feature map; of a volume now and then. */
cvy_shape cvy_draw_map(cvy_dice *dice, int space_dims);

/** Channels: half of the draws are whole blocks, as in most nets. */
int64_t cvy_draw_channels(cvy_dice *dice, int64_t most);

/** What a strategy leaves of an extent that it cuts over 2 to 64 ranks. */
int64_t cvy_draw_share(cvy_dice *dice, int64_t extent);

/** A square window: kernel, stride, padding at both ends; in 2-D of depth 1. */
cvy_window cvy_make_window(int space_dims, int64_t kernel, int64_t stride, int64_t pad);

#endif
