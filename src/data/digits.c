/*
 * Digits as people write them, drawn by the program: a data set that is always there. A sample takes one of a few ways
 * to write its digit (glyphs.c), moves the control points a little, bends and slants and turns the whole, and draws it
 * with a pen of some width on speckled paper. Ink at a pixel follows from its distance to the nearest stroke.
 *
 * Sample i of a split is a function of (seed, split, i) alone; its digit is i % 10, so classes are balanced. Lengths
 * are in units of 1/28 of the image's shorter side, so that every image size shows the same picture. Curves are
 * Catmull-Rom splines (Catmull and Rom, "A class of local interpolating splines", 1974).
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/glyphs.h"
#include "data/kind.h"

enum {
    DIGITS = 10,
    TRAIN_COUNT = 12000,
    TEST_COUNT = 2000,
    MIN_SIDE = 8,           /* fewer pixels do not show a digit */
    SPAN_SEGMENTS = 4,      /* straight pieces of a curve between two control points */
};

/* What `time` is in the counter of a sample's words. */
enum { PEN_WORDS, PAPER_WORDS };

static const float FAR = 1e9f; /* squared distance of a pixel that no stroke has come near */

typedef struct digit_set {
    uint64_t seed;
    int64_t c, h, w;
} digit_set;

/* A row of random numbers that belong to one sample. */
typedef struct draws {
    uint64_t seed;
    uint32_t split, sample, used;
    cvy_words words;
} draws;

typedef struct point {
    float x, y;
} point;

/* How one sample is written. Lengths in units of 1/28 of the image's shorter side. */
typedef struct handwriting {
    float turn[2][2];       /* glyph to image, about the centre */
    point centre;           /* of the glyph in the image */
    float wave[2], phase[2]; /* bending: how far, and where */
    float shake;            /* of control points, in the glyph's hundredths */
    float radius, ink, speckle; /* of the pen; darkness; amplitude of the paper's noise */
} handwriting;

/* The image while it is drawn: squared distances, in pixels, to the nearest stroke. */
typedef struct drawing {
    float *distance2;
    int64_t h, w;
    float reach;            /* beyond it no ink falls, in pixels */
} drawing;

static uint32_t draw_word(draws *from)
{
    if (from->used % 4 == 0) {
        from->words = cvy_random_words(from->seed, CVY_PURPOSE_SYNTHETIC_DATA, from->split, PEN_WORDS, from->sample,
                                       from->used / 4);
    }
    return from->words.v[from->used++ % 4];
}

static float draw_uniform(draws *from, float low, float high)
{
    return low + (high - low) * cvy_random_unit(draw_word(from));
}

/* Bell-shaped, mean 0, standard deviation 1, never beyond 3.5: the sum of four uniforms (variance 4 / 12) scaled. */
static float draw_bell(draws *from)
{
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += draw_uniform(from, -0.5f, 0.5f);
    }
    return sum * 1.7320508f;
}

static handwriting draw_hand(draws *from, const digit_set *set)
{
    handwriting hand;
    float unit = (float)cvy_min_i64(set->h, set->w) / 28.0f;
    float size = 0.25f * draw_uniform(from, 0.72f, 1.12f); /* a glyph of 80 hundredths becomes 20 of 28 */
    float width = size * draw_uniform(from, 0.72f, 1.1f);
    float angle = 0.11f * draw_bell(from);
    float slant = 0.08f + 0.15f * draw_bell(from);
    hand.turn[0][0] = unit * width * cosf(angle);
    hand.turn[0][1] = unit * (-width * slant * cosf(angle) - size * sinf(angle));
    hand.turn[1][0] = unit * width * sinf(angle);
    hand.turn[1][1] = unit * (-width * slant * sinf(angle) + size * cosf(angle));
    hand.centre.x = 0.5f * (float)set->w + unit * draw_uniform(from, -2.0f, 2.0f);
    hand.centre.y = 0.5f * (float)set->h + unit * draw_uniform(from, -2.0f, 2.0f);
    for (int i = 0; i < 2; i++) {
        hand.wave[i] = draw_uniform(from, 0.0f, 5.0f);
        hand.phase[i] = draw_uniform(from, 0.0f, 6.2831853f);
    }
    hand.shake = draw_uniform(from, 0.5f, 3.0f);
    hand.radius = unit * draw_uniform(from, 0.6f, 1.6f);
    hand.ink = draw_uniform(from, 0.7f, 1.0f);
    hand.speckle = draw_uniform(from, 0.0f, 0.3f);
    return hand;
}

/* Where a control point falls in the image, in pixels. */
static point place_point(const uint8_t at[2], const handwriting *hand, draws *from)
{
    float x = (float)at[0] - 50.0f + hand->shake * draw_bell(from);
    float y = (float)at[1] - 50.0f + hand->shake * draw_bell(from);
    float bent_x = x + hand->wave[0] * sinf(0.05f * y + hand->phase[0]);
    float bent_y = y + hand->wave[1] * sinf(0.05f * x + hand->phase[1]);
    return (point){hand->centre.x + hand->turn[0][0] * bent_x + hand->turn[0][1] * bent_y,
                   hand->centre.y + hand->turn[1][0] * bent_x + hand->turn[1][1] * bent_y};
}

/* First and last pixel whose centre may lie within reach of [low, high]. */
static int64_t first_pixel(float low, float reach) { return cvy_max_i64(0, (int64_t)floorf(low - reach - 0.5f)); }
static int64_t last_pixel(float high, float reach, int64_t count)
{
    return cvy_min_i64(count - 1, (int64_t)ceilf(high + reach - 0.5f));
}

static void draw_segment(const drawing *canvas, point a, point b)
{
    float dx = b.x - a.x, dy = b.y - a.y;
    float inverse = 1.0f / fmaxf(dx * dx + dy * dy, 1e-12f);
    float reach = canvas->reach;
    int64_t x0 = first_pixel(fminf(a.x, b.x), reach), x1 = last_pixel(fmaxf(a.x, b.x), reach, canvas->w);
    int64_t y0 = first_pixel(fminf(a.y, b.y), reach), y1 = last_pixel(fmaxf(a.y, b.y), reach, canvas->h);
    for (int64_t y = y0; y <= y1; y++) {
        float *row = canvas->distance2 + y * canvas->w;
        float py = (float)y + 0.5f - a.y;
        for (int64_t x = x0; x <= x1; x++) {
            float px = (float)x + 0.5f - a.x;
            float along = (px * dx + py * dy) * inverse;
            along = along < 0.0f ? 0.0f : along > 1.0f ? 1.0f : along;
            float ex = px - along * dx, ey = py - along * dy;
            float distance2 = ex * ex + ey * ey;
            row[x] = distance2 < row[x] ? distance2 : row[x];
        }
    }
}

/* The curve between p[1] and p[2] at t in 0..1; p[0] and p[3] are the points before and after. */
static point spline(const point *p, float t)
{
    float t2 = t * t, t3 = t2 * t;
    float w0 = 0.5f * (-t3 + 2.0f * t2 - t), w1 = 0.5f * (3.0f * t3 - 5.0f * t2 + 2.0f);
    float w2 = 0.5f * (-3.0f * t3 + 4.0f * t2 + t), w3 = 0.5f * (t3 - t2);
    return (point){w0 * p[0].x + w1 * p[1].x + w2 * p[2].x + w3 * p[3].x,
                   w0 * p[0].y + w1 * p[1].y + w2 * p[2].y + w3 * p[3].y};
}

static void draw_stroke(const drawing *canvas, const cvy_stroke *stroke, const handwriting *hand, draws *from)
{
    point at[CVY_GLYPH_POINTS + 2]; /* the ends doubled, for the spline */
    int pieces = stroke->smooth ? SPAN_SEGMENTS : 1;
    for (int i = 0; i < stroke->points; i++) {
        at[i + 1] = place_point(stroke->at[i], hand, from);
    }
    at[0] = at[1];
    at[stroke->points + 1] = at[stroke->points];
    for (int i = 1; i < stroke->points; i++) {
        point last = at[i];
        for (int piece = 1; piece <= pieces; piece++) {
            point next = piece == pieces ? at[i + 1] : spline(at + i - 1, (float)piece / (float)pieces);
            draw_segment(canvas, last, next);
            last = next;
        }
    }
}

/* Turn distances into ink on speckled paper, in place. The edge of a stroke is one unit wide, at least one pixel. */
static void lay_ink(const drawing *canvas, const handwriting *hand, const draws *from, float edge)
{
    int64_t pixels = canvas->h * canvas->w;
    cvy_words words = {{0}};
    for (int64_t i = 0; i < pixels; i++) {
        if (i % 4 == 0) {
            words = cvy_random_words(from->seed, CVY_PURPOSE_SYNTHETIC_DATA, from->split, PAPER_WORDS, from->sample,
                                     (uint32_t)(i / 4));
        }
        uint32_t word = words.v[i % 4]; /* the sum of its halves has a triangular distribution around 0xffff */
        float noise = (float)((int32_t)(word >> 16) + (int32_t)(word & 0xffff) - 0xffff) * (hand->speckle / 65535.0f);
        float shade = (hand->radius - sqrtf(canvas->distance2[i])) / edge + 0.5f;
        shade = shade < 0.0f ? 0.0f : shade > 1.0f ? 1.0f : shade;
        float ink = hand->ink * shade + noise;
        canvas->distance2[i] = ink < 0.0f ? 0.0f : ink > 1.0f ? 1.0f : ink;
    }
}

static void draw_digit(const digit_set *set, cvy_split split, int64_t index, int digit, float *x_out)
{
    int64_t pixels = set->h * set->w;
    float edge = fmaxf(1.0f, (float)cvy_min_i64(set->h, set->w) / 28.0f);
    draws from = {.seed = set->seed, .split = split, .sample = (uint32_t)index};
    const cvy_glyph *glyph = &cvy_glyphs[digit][draw_word(&from) % CVY_GLYPH_WAYS];
    handwriting hand = draw_hand(&from, set);
    drawing canvas = {.distance2 = x_out, .h = set->h, .w = set->w, .reach = hand.radius + 0.5f * edge};
    for (int64_t i = 0; i < pixels; i++) {
        x_out[i] = FAR;
    }
    for (int i = 0; i < CVY_GLYPH_STROKES; i++) {
        draw_stroke(&canvas, &glyph->stroke[i], &hand, &from);
    }
    lay_ink(&canvas, &hand, &from, edge);
    for (int64_t channel = 1; channel < set->c; channel++) { /* grey */
        memcpy(x_out + channel * pixels, x_out, (size_t)pixels * sizeof *x_out);
    }
}

static cvy_status read_digit(const void *opaque, cvy_split split, int64_t index, float *x_out, void *label_out)
{
    int digit = (int)(index % DIGITS);
    if (x_out) {
        draw_digit(opaque, split, index, digit, x_out);
    }
    if (label_out) {
        *(int32_t *)label_out = digit;
    }
    return CVY_OK;
}

static cvy_status open_digits(const cvy_data_options *options, cvy_data_info *info_out, void **state_out)
{
    char text[CVY_SHAPE_TEXT];
    const cvy_shape *sample = &options->sample;
    CVY_TRY(cvy_data_check_target("digits", CVY_TARGET_CLASS, options));
    CVY_REQUIRE(options->classes >= DIGITS, CVY_ERR_DATA,
                "digits: has %d classes, but the model has %" PRId64 "; give the model classes=%d", DIGITS,
                options->classes, DIGITS);
    CVY_REQUIRE(sample->dims == 3 && cvy_min_i64(sample->extent[1], sample->extent[2]) >= MIN_SIDE, CVY_ERR_DATA,
                "digits: drawn flat and at least %dx%d, but the model takes %s", MIN_SIDE, MIN_SIDE,
                cvy_shape_print(sample, text));
    CVY_REQUIRE(options->train_count <= UINT32_MAX && options->test_count <= UINT32_MAX, CVY_ERR_INPUT,
                "digits: at most %" PRIu32 " samples a split, asked for %" PRId64 " and %" PRId64, UINT32_MAX,
                options->train_count, options->test_count);
    digit_set *set = cvy_calloc(1, sizeof *set);
    if (!set) {
        return CVY_ERR_MEMORY;
    }
    *set = (digit_set){options->seed, sample->extent[0], sample->extent[1], sample->extent[2]};
    *info_out = (cvy_data_info){.sample = *sample,
                                .target = CVY_TARGET_CLASS,
                                .classes = DIGITS,
                                .count = {options->train_count ? options->train_count : TRAIN_COUNT,
                                          options->test_count ? options->test_count : TEST_COUNT}};
    *state_out = set;
    return CVY_OK;
}

static void close_digits(void *state) { cvy_free(state); }

const cvy_data_kind cvy_data_kind_digits = {
    .name = "digits",
    .help = "ten digits, drawn by the program at the model's size",
    .synthetic = true,
    .scale = CVY_DATA_SCALE_INK,
    .open = open_digits,
    .close = close_digits,
    .read = read_digit,
};
