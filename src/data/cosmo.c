/*
 * Volumes whose makers are to be found out, as a cosmologist finds parameters from a map of matter: a random field of
 * plane waves with a power law for a spectrum, and Gaussian blobs in it. Four numbers in [-1, 1) made each volume, and
 * are its targets: the slope of the spectrum, the amplitude of the field, how many blobs there are, how large they
 * are. Each leaves its own mark: on the roughness, the variance, the mean, and the width of peaks.
 *
 * Channels show the same matter at other times, as in CosmoFlow (Mathuriya et al. 2018): the field grows and blobs
 * more so, from the last channel to the first. Sample i of a split is a function of (seed, split, i) alone; lengths are
 * in units of the shortest side. A wave's cosine over a row comes from two tables by the sum of angles, a blob is the
 * product of three tables: neither needs memory beyond the stack.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/kind.h"

enum {
    TARGETS = 4,
    TRAIN_COUNT = 1024,
    TEST_COUNT = 256,
    MIN_SIDE = 8,            /* fewer voxels show neither slope nor blobs */
    MAX_SIDE = 2048,         /* of tables on the stack */
    WAVES = 32,
};

/* What `time` is in the counter of a sample's words. */
enum { TARGET_WORDS, WAVE_WORDS, BLOB_WORDS };

static const float TURN = 6.28318531f;
static const float PEAK = 2.0f; /* height of a blob in the first channel */

typedef struct cosmo_set {
    uint64_t seed;
    int64_t c, d, h, w;
} cosmo_set;

/* One volume while it is made, and where its random numbers come from. */
typedef struct volume {
    const cosmo_set *set;
    uint32_t split, sample;
    float *x;                /* of the channel at hand: d*h*w */
} volume;

static cvy_words draw_words(const volume *v, uint32_t what, uint32_t block)
{
    return cvy_random_words(v->set->seed, CVY_PURPOSE_SYNTHETIC_DATA, v->split, what, v->sample, block);
}

static int64_t find_shortest(const cosmo_set *set) { return cvy_min_i64(set->d, cvy_min_i64(set->h, set->w)); }

/* ---- the field ---- */

typedef struct wave {
    float k[3];              /* radians a voxel along d, h, w */
    float phase, amplitude;
} wave;

/* Add one wave: cos(row + k x) = cos(row) cos(k x) - sin(row) sin(k x). */
static void add_wave(const volume *v, const wave *one)
{
    const cosmo_set *set = v->set;
    float cosine[MAX_SIDE], sine[MAX_SIDE];
    for (int64_t x = 0; x < set->w; x++) {
        cosine[x] = cosf(one->k[2] * (float)x);
        sine[x] = sinf(one->k[2] * (float)x);
    }
    for (int64_t row = 0; row < set->d * set->h; row++) {
        float angle = one->phase + one->k[0] * (float)(row / set->h) + one->k[1] * (float)(row % set->h);
        float a = one->amplitude * cosf(angle), b = one->amplitude * sinf(angle);
        float *to = v->x + row * set->w;
        for (int64_t x = 0; x < set->w; x++) {
            to[x] += a * cosine[x] - b * sine[x];
        }
    }
}

/* A wave of 1 to `most` periods a side, in any direction; its amplitude is that of the power law, not scaled yet. */
static wave draw_wave(const volume *v, uint32_t i, float slope)
{
    cvy_words words = draw_words(v, WAVE_WORDS, i);
    float side = (float)find_shortest(v->set), most = fminf(10.0f, side / 3.0f);
    float place = ((float)i + cvy_random_unit(words.v[0])) / (float)WAVES; /* every octave has its share */
    float periods = powf(most, place);
    float up = 2.0f * cvy_random_unit(words.v[1]) - 1.0f, flat = sqrtf(1.0f - up * up);
    float round = TURN * cvy_random_unit(words.v[2]), k = TURN * periods / side;
    return (wave){.k = {k * up, k * flat * sinf(round), k * flat * cosf(round)},
                  .phase = TURN * cvy_random_unit(words.v[3]),
                  .amplitude = powf(periods, -slope)};
}

/* Fill the channel with a field of standard deviation @p deviation: a wave of amplitude a has a^2 / 2. */
static void make_field(const volume *v, float slope, float deviation)
{
    wave all[WAVES];
    float power = 0.0f;
    for (int64_t i = 0; i < v->set->d * v->set->h * v->set->w; i++) {
        v->x[i] = 0.0f;
    }
    for (int i = 0; i < WAVES; i++) {
        all[i] = draw_wave(v, (uint32_t)i, slope);
        power += 0.5f * all[i].amplitude * all[i].amplitude;
    }
    for (int i = 0; i < WAVES; i++) {
        all[i].amplitude *= deviation / sqrtf(power);
        add_wave(v, &all[i]);
    }
}

/* ---- blobs ---- */

/* exp(-t^2 / 2) of the distance to a centre, in radii; t is below 4. */
static float fall_off(int64_t at, float centre, float radius)
{
    float t = ((float)at + 0.5f - centre) / radius;
    return expf(-0.5f * t * t);
}

/* First and last voxel within reach of a centre. */
static int64_t first_voxel(float centre, float reach) { return cvy_max_i64(0, (int64_t)floorf(centre - reach)); }
static int64_t last_voxel(float centre, float reach, int64_t side)
{
    return cvy_min_i64(side - 1, (int64_t)ceilf(centre + reach));
}

static void add_blob(const volume *v, uint32_t i, float radius, float height)
{
    const cosmo_set *set = v->set;
    cvy_words words = draw_words(v, BLOB_WORDS, i);
    float cz = cvy_random_unit(words.v[0]) * (float)set->d, cy = cvy_random_unit(words.v[1]) * (float)set->h;
    float cx = cvy_random_unit(words.v[2]) * (float)set->w, reach = 3.5f * radius, row[MAX_SIDE];
    int64_t x0 = first_voxel(cx, reach), x1 = last_voxel(cx, reach, set->w);
    for (int64_t x = x0; x <= x1; x++) {
        row[x] = height * fall_off(x, cx, radius);
    }
    for (int64_t z = first_voxel(cz, reach); z <= last_voxel(cz, reach, set->d); z++) {
        for (int64_t y = first_voxel(cy, reach); y <= last_voxel(cy, reach, set->h); y++) {
            float share = fall_off(z, cz, radius) * fall_off(y, cy, radius);
            float *to = v->x + (z * set->h + y) * set->w;
            for (int64_t x = x0; x <= x1; x++) {
                to[x] += share * row[x];
            }
        }
    }
}

/* @p count of them, which is no whole number: the last is as high as what is left of it. */
static void add_blobs(const volume *v, float count, float radius, float height)
{
    for (uint32_t i = 0; (float)i < count; i++) {
        add_blob(v, i, radius, height * fminf(1.0f, count - (float)i));
    }
}

/* ---- the kind ---- */

/* What four numbers make, scaled to their units. */
static void make_volume(volume *v, const float target[TARGETS])
{
    const cosmo_set *set = v->set;
    int64_t voxels = set->d * set->h * set->w;
    float *first = v->x;
    float slope = 1.0f + target[0];                                           /* 0 to 2 */
    float deviation = 0.6f * exp2f(target[1]);                                /* 0.3 to 1.2 */
    float count = 14.0f + 10.0f * target[2];                                  /* 4 to 24 */
    float radius = 0.06f * exp2f(0.7f * target[3]) * (float)find_shortest(set); /* 0.037 to 0.097 of a side */
    make_field(v, slope, deviation);
    for (int64_t c = set->c - 1; c >= 0; c--) {
        float growth = 1.0f / (1.0f + 0.25f * (float)c);
        v->x = first + c * voxels;
        for (int64_t i = 0; i < voxels; i++) {
            v->x[i] = growth * first[i];
        }
        add_blobs(v, count, radius, PEAK * growth * growth);
    }
}

static cvy_status read_cosmo(const void *opaque, cvy_split split, int64_t index, float *x_out, void *label_out)
{
    const cosmo_set *set = opaque;
    volume v = {.set = set, .split = split, .sample = (uint32_t)index, .x = x_out};
    cvy_words words = draw_words(&v, TARGET_WORDS, 0);
    float target[TARGETS];
    for (int i = 0; i < TARGETS; i++) {
        target[i] = 2.0f * cvy_random_unit(words.v[i]) - 1.0f;
    }
    if (label_out) {
        memcpy(label_out, target, sizeof target);
    }
    if (x_out) {
        make_volume(&v, target);
    }
    return CVY_OK;
}

static cvy_status open_cosmo(const cvy_data_options *options, cvy_data_info *info_out, void **state_out)
{
    char text[CVY_SHAPE_TEXT];
    const cvy_shape *sample = &options->sample;
    const int64_t *e = sample->extent;
    CVY_TRY(cvy_data_check_target("cosmo", CVY_TARGET_VALUES, options));
    CVY_REQUIRE(options->classes == TARGETS, CVY_ERR_DATA,
                "cosmo: has %d targets, but the model has %" PRId64 " outputs; give the model outputs=%d", TARGETS,
                options->classes, TARGETS);
    CVY_REQUIRE(sample->dims == 4, CVY_ERR_DATA, "cosmo: made of volumes, but the model takes %s",
                cvy_shape_print(sample, text));
    for (int i = 1; i < 4; i++) {
        CVY_REQUIRE(e[i] >= MIN_SIDE && e[i] <= MAX_SIDE, CVY_ERR_DATA,
                    "cosmo: made at sides of %d to %d, but the model takes %s", MIN_SIDE, MAX_SIDE,
                    cvy_shape_print(sample, text));
    }
    CVY_REQUIRE(options->train_count <= UINT32_MAX && options->test_count <= UINT32_MAX, CVY_ERR_DATA,
                "cosmo: at most %" PRIu32 " samples a split, asked for %" PRId64 " and %" PRId64, UINT32_MAX,
                options->train_count, options->test_count);
    cosmo_set *set = cvy_calloc(1, sizeof *set);
    if (!set) {
        return CVY_ERR_MEMORY;
    }
    *set = (cosmo_set){options->seed, e[0], e[1], e[2], e[3]};
    *info_out = (cvy_data_info){.sample = *sample,
                                .target = CVY_TARGET_VALUES,
                                .values = TARGETS,
                                .count = {options->train_count ? options->train_count : TRAIN_COUNT,
                                          options->test_count ? options->test_count : TEST_COUNT}};
    *state_out = set;
    return CVY_OK;
}

static void close_cosmo(void *state) { cvy_free(state); }

const cvy_data_kind cvy_data_kind_cosmo = {
    .name = "cosmo",
    .help = "volumes made by the program, of which four parameters are to be found",
    .synthetic = true,
    .open = open_cosmo,
    .close = close_cosmo,
    .read = read_cosmo,
};
