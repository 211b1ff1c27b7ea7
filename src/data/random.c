/*
 * Noise of any shape, for measuring throughput and for tests of models that no data set fits: standard normal numbers,
 * two from every two words of Philox (Box-Muller, in float), labels uniform. Element e of sample i is a function of
 * (seed, split, i, e): block e / 4, lane e % 4.
 */
#include <inttypes.h>
#include <math.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/kind.h"

enum { TRAIN_COUNT = 1280, TEST_COUNT = 256 };

/* What `time` is in the counter of a sample's words. */
enum { PIXEL_WORDS, LABEL_WORDS };

typedef struct noise {
    uint64_t seed;
    int64_t elements;
    int64_t classes; /* 0: a regression */
    int64_t labels;  /* of a sample: classes, or values */
} noise;

static cvy_status open_random(const cvy_data_options *options, cvy_data_info *info_out, void **state_out)
{
    int64_t elements = cvy_shape_elements(&options->sample);
    CVY_REQUIRE(elements / 4 <= UINT32_MAX, CVY_ERR_DATA, "random: samples of %" PRId64 " elements are beyond 2^34",
                elements);
    CVY_REQUIRE(options->train_count <= UINT32_MAX && options->test_count <= UINT32_MAX, CVY_ERR_INPUT,
                "random: at most %" PRIu32 " samples a split, asked for %" PRId64 " and %" PRId64, UINT32_MAX,
                options->train_count, options->test_count);
    noise *state = cvy_calloc(1, sizeof *state);
    if (!state) {
        return CVY_ERR_MEMORY;
    }
    bool has_classes = options->target != CVY_TARGET_VALUES;
    *info_out = (cvy_data_info){
        .sample = options->sample,
        .target = options->target,
        .classes = has_classes ? options->classes : 0,
        .values = has_classes ? 0 : options->classes,
        .map = options->target == CVY_TARGET_MAP ? options->map : (cvy_shape){.dims = 0},
        .count = {options->train_count ? options->train_count : TRAIN_COUNT,
                  options->test_count ? options->test_count : TEST_COUNT},
    };
    *state = (noise){options->seed, elements, info_out->classes, cvy_data_count_labels(info_out) + info_out->values};
    *state_out = state;
    return CVY_OK;
}

static void close_random(void *state) { cvy_free(state); }

/* Two independent normal numbers; the angle has 24 bits, the radius 24 and never the logarithm of 0. */
static void make_normal_pair(uint32_t radius_word, uint32_t angle_word, float *pair_out)
{
    float radius = sqrtf(-2.0f * logf(1.0f - cvy_random_unit(radius_word)));
    float angle = 6.28318530718f * cvy_random_unit(angle_word);
    pair_out[0] = radius * cosf(angle);
    pair_out[1] = radius * sinf(angle);
}

static void read_label(const noise *state, cvy_split split, int64_t index, void *label_out)
{
    int32_t *class = label_out;
    for (int64_t i = 0; state->classes && i < state->labels; i++) { /* two words each */
        cvy_words words = cvy_random_words(state->seed, CVY_PURPOSE_SYNTHETIC_DATA, split, LABEL_WORDS,
                                           (uint32_t)index, (uint32_t)(i / 2));
        int lane = i % 2 * 2;
        class[i] = (int32_t)cvy_random_below(words.v[lane], words.v[lane + 1], (uint64_t)state->classes);
    }
    float *values = label_out;
    for (int64_t i = 0; !state->classes && i < state->labels; i++) {
        cvy_words words = cvy_random_words(state->seed, CVY_PURPOSE_SYNTHETIC_DATA, split, LABEL_WORDS,
                                           (uint32_t)index, (uint32_t)(i / 4));
        values[i] = 2.0f * cvy_random_unit(words.v[i % 4]) - 1.0f;
    }
}

/* Elements of a sample that lie side by side. */
static void read_run(const noise *state, cvy_split split, int64_t index, cvy_interval run, float *x_out)
{
    for (int64_t at = run.begin - run.begin % 4; at < run.end; at += 4) {
        cvy_words words = cvy_random_words(state->seed, CVY_PURPOSE_SYNTHETIC_DATA, split, PIXEL_WORDS,
                                           (uint32_t)index, (uint32_t)(at / 4));
        float four[4];
        make_normal_pair(words.v[0], words.v[1], four);
        make_normal_pair(words.v[2], words.v[3], four + 2);
        for (int64_t i = cvy_max_i64(at, run.begin); i < cvy_min_i64(at + 4, run.end); i++) {
            x_out[i - run.begin] = four[i - at];
        }
    }
}

static cvy_status read_random(const void *opaque, cvy_split split, int64_t index, float *x_out, void *label_out)
{
    const noise *state = opaque;
    if (x_out) {
        read_run(state, split, index, (cvy_interval){0, state->elements}, x_out);
    }
    if (label_out) {
        read_label(state, split, index, label_out);
    }
    return CVY_OK;
}

static cvy_status read_random_slab(const void *opaque, cvy_split split, int64_t index, const cvy_slab *slab,
                                   float *x_out, void *label_out)
{
    int64_t length = slab->rows[2].end - slab->rows[2].begin;
    for (int64_t i = 0; x_out && i < cvy_slab_count_runs(slab); i++) {
        int64_t first = cvy_slab_find_run(slab, i);
        read_run(opaque, split, index, (cvy_interval){first, first + length}, x_out + i * length);
    }
    return read_random(opaque, split, index, NULL, label_out);
}

const cvy_data_kind cvy_data_kind_random = {
    .name = "random",
    .help = "normal noise of the model's shape",
    .synthetic = true,
    .open = open_random,
    .close = close_random,
    .read = read_random,
    .read_slab = read_random_slab,
};
