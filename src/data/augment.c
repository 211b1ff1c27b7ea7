/*
 * A random crop of a padded image, of the image's own size, is the image shifted by up to the padding with zeros moving
 * in: so it is done in place, row by row, in the order in which a row is read before it is written over. As torchvision
 * does (RandomCrop with padding, RandomHorizontalFlip, then ToTensor and Normalize), the padding is 0 before the sample
 * is scaled, which is black.
 *
 * The words of a sample are those of (seed, AUGMENTATION, epoch, sample): its place, never its thread or its turn.
 */
#include "data/augment.h"

#include <inttypes.h>
#include <string.h>

#include "base/random.h"

enum { DEPTH, HEIGHT, WIDTH, FLIP }; /* which word is whose */

/* Whether a map of labels has the positions of a sample. */
static bool is_map_of(const cvy_shape *map, const cvy_shape *sample)
{
    bool equal = map->dims == sample->dims - 1;
    for (int i = 0; equal && i < map->dims; i++) {
        equal = map->extent[i] == sample->extent[i + 1];
    }
    return equal;
}

cvy_status cvy_augment_check(const cvy_augmentation *augmentation, const cvy_shape *sample, const cvy_shape *map)
{
    char labels[CVY_SHAPE_TEXT];
    char text[CVY_SHAPE_TEXT];
    int64_t padding = augmentation->crop_padding;
    CVY_REQUIRE(padding >= 0, CVY_ERR_INPUT, "crop-padding: expected at least 0, got %" PRId64, padding);
    for (int i = 1; i < sample->dims; i++) {
        CVY_REQUIRE(padding == 0 || padding < sample->extent[i], CVY_ERR_INPUT,
                    "crop-padding: %" PRId64 " would crop samples of %s to nothing; expected less than each side",
                    padding, cvy_shape_print(sample, text));
    }
    CVY_REQUIRE(augmentation->hflip >= 0.0 && augmentation->hflip <= 1.0, CVY_ERR_INPUT,
                "hflip: expected a probability of 0 to 1, got %g", augmentation->hflip);
    CVY_REQUIRE((padding == 0 && augmentation->hflip == 0.0) || map->dims == 0 || is_map_of(map, sample),
                CVY_ERR_INPUT, "crop-padding and hflip move labels with their sample, but labels are %s and samples %s",
                cvy_shape_print(map, labels), cvy_shape_print(sample, text));
    return CVY_OK;
}

cvy_augment_draw cvy_augment_choose(const cvy_augmentation *augmentation, uint64_t seed, uint32_t epoch, int64_t index,
                                    int dims)
{
    cvy_augment_draw draw = {.flip = false};
    cvy_words words = cvy_random_words(seed, CVY_PURPOSE_AUGMENTATION, (uint32_t)((uint64_t)index >> 32), epoch,
                                       (uint32_t)index, 0);
    int64_t padding = augmentation->crop_padding;
    for (int axis = dims == 4 ? DEPTH : HEIGHT; axis <= WIDTH; axis++) {
        draw.shift[axis] = (int64_t)cvy_random_below(words.v[axis], 0, 2 * (uint64_t)padding + 1) - padding;
    }
    draw.flip = (double)cvy_random_unit(words.v[FLIP]) < augmentation->hflip;
    return draw;
}

/* Rows are moved as bytes: an element is a float, or a class of a map. */
typedef unsigned char row_byte;

enum { ELEMENT = 4 };

static void mirror_row(row_byte *row, int64_t w)
{
    for (int64_t i = 0, j = (w - 1) * ELEMENT; i < j; i += ELEMENT, j -= ELEMENT) {
        row_byte kept[ELEMENT];
        memcpy(kept, row + i, ELEMENT);
        memcpy(row + i, row + j, ELEMENT);
        memcpy(row + j, kept, ELEMENT);
    }
}

/* Shift a row by @p by into @p to, which may be the row itself; NULL is a row of zeros. */
static void shift_row(const row_byte *from, int64_t w, int64_t by, row_byte *to)
{
    int64_t kept = from ? w - (by < 0 ? -by : by) : 0;
    int64_t first = by < 0 ? -by : 0;
    if (kept <= 0) {
        memset(to, 0, (size_t)w * ELEMENT);
        return;
    }
    memmove(to + first * ELEMENT, from + (by < 0 ? 0 : by) * ELEMENT, (size_t)kept * ELEMENT);
    memset(to, 0, (size_t)first * ELEMENT);
    memset(to + (first + kept) * ELEMENT, 0, (size_t)(w - first - kept) * ELEMENT);
}

/* Shift and mirror one channel of d*h rows. Row r takes row r + shift: ascending where that lies behind it. */
static void change_channel(const cvy_augment_draw *draw, int64_t d, int64_t h, int64_t w, void *channel)
{
    row_byte *x = channel;
    const int64_t *shift = draw->shift;
    bool ascending = shift[DEPTH] * h + shift[HEIGHT] >= 0;
    for (int64_t i = 0; i < d * h; i++) {
        int64_t row = ascending ? i : d * h - 1 - i;
        int64_t z = row / h + shift[DEPTH], y = row % h + shift[HEIGHT];
        bool inside = z >= 0 && z < d && y >= 0 && y < h;
        if (shift[DEPTH] || shift[HEIGHT] || shift[WIDTH]) {
            shift_row(inside ? x + (z * h + y) * w * ELEMENT : NULL, w, shift[WIDTH], x + row * w * ELEMENT);
        }
        if (draw->flip) {
            mirror_row(x + row * w * ELEMENT, w);
        }
    }
}

void cvy_augment_apply(const cvy_augment_draw *draw, const cvy_shape *sample, float *x)
{
    int64_t w = sample->extent[sample->dims - 1], h = sample->extent[sample->dims - 2];
    int64_t d = sample->dims == 4 ? sample->extent[1] : 1;
    for (int64_t c = 0; c < sample->extent[0]; c++) {
        change_channel(draw, d, h, w, x + c * d * h * w);
    }
}

void cvy_augment_apply_map(const cvy_augment_draw *draw, const cvy_shape *map, int32_t *label)
{
    int64_t d = map->dims == 3 ? map->extent[0] : 1;
    change_channel(draw, d, map->extent[map->dims - 2], map->extent[map->dims - 1], label);
}
