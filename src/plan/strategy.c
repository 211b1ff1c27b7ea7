/*
 * A string is words between commas. A word without '=' is a name and stands for a whole mesh; the others are axes or
 * options. Everything is read first and judged after, so that the order of words matters for axes alone.
 */
#include "plan/strategy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* The names: where all the ranks go, and the cut of channels that goes with it. */
typedef struct strategy_name {
    const char *name;
    int axis; /* or one of those below */
    cvy_channel_cut cut;
} strategy_name;

enum { AXIS_NONE = -1, AXIS_LONGEST = -2, AXIS_AUTO = -3 };

static const strategy_name names[] = {
    {"serial", AXIS_NONE, 0},
    {"data", CVY_AXIS_SAMPLE, 0},
    {"spatial", AXIS_LONGEST, 0},
    {"filter", CVY_AXIS_CHANNEL, CVY_CHANNEL_CUT_FILTER},
    {"channel", CVY_AXIS_CHANNEL, CVY_CHANNEL_CUT_CHANNEL},
    {"alternating", CVY_AXIS_CHANNEL, CVY_CHANNEL_CUT_ALTERNATE},
    {"pipeline", CVY_AXIS_STAGE, 0},
    {"auto", AXIS_AUTO, 0},
};
enum { NAMES = sizeof names / sizeof *names };

const char *const cvy_channel_cut_names[] = {"alternate", "filter", "channel", NULL};
const char *const cvy_pipeline_order_names[] = {"1f1b", "gpipe", NULL};

/* Words with a value: the axes, then these. */
enum { KEY_CUT = CVY_AXES, KEY_MICRO_BATCHES, KEY_PIPELINE, KEYS };
static const char *const option_names[] = {"channel-cut", "micro-batches", "pipeline"};

enum { WORD_BYTES = 64 };

typedef struct reader {
    cvy_strategy strategy;
    const strategy_name *name; /* NULL: a mesh */
    int64_t size[CVY_AXES];
    cvy_axis order[CVY_AXES];
    int axes;
    bool given[KEYS];
} reader;

static const char *get_key_name(int key)
{
    return key < CVY_AXES ? cvy_axis_name((cvy_axis)key) : option_names[key - CVY_AXES];
}

static int find_key(const char *word)
{
    int key = 0;
    while (key < KEYS && strcmp(word, get_key_name(key)) != 0) {
        key++;
    }
    return key < KEYS ? key : -1;
}

static const strategy_name *find_name(const char *word)
{
    for (int i = 0; i < NAMES; i++) {
        if (strcmp(word, names[i].name) == 0) {
            return &names[i];
        }
    }
    return NULL;
}

static cvy_status fail_unknown(const char *word, const char *what, const char *const *words, const char *expected)
{
    char text[CVY_WORD_TEXT];
    const char *nearest = cvy_nearest(word, words);
    return cvy_fail(CVY_ERR_INPUT, "unknown %s '%s'%s%s%s", what, cvy_print_word(word, text),
                    nearest ? "; did you mean '" : ", expected ", nearest ? nearest : expected, nearest ? "'?" : "");
}

static cvy_status fail_unknown_word(const char *word, bool valued)
{
    const char *words[NAMES + KEYS + 1];
    int count = 0;
    for (int i = 0; i < NAMES && !valued; i++) {
        words[count++] = names[i].name;
    }
    for (int key = 0; key < KEYS; key++) {
        words[count++] = get_key_name(key);
    }
    words[count] = NULL;
    return valued ? fail_unknown(word, "axis or option", words,
                                 "stage, sample, depth, height, width, channel, channel-cut, micro-batches or pipeline")
                  : fail_unknown(word, "strategy", words,
                                 "auto, serial, data, spatial, filter, channel, alternating, pipeline or axes such as "
                                 "sample=4,channel=2");
}

static cvy_status read_number(const char *key, const char *text, int64_t *number_out)
{
    char word[CVY_WORD_TEXT];
    int64_t number = 0;
    bool digits = *text != '\0';
    for (const char *at = text; *at; at++) {
        digits = digits && *at >= '0' && *at <= '9';
        if (digits && number <= CVY_MAX_RANKS) {
            number = 10 * number + (*at - '0');
        }
    }
    CVY_REQUIRE(digits && number >= 1 && number <= CVY_MAX_RANKS, CVY_ERR_INPUT,
                "%s=%s, expected a whole number from 1 to %d", key, cvy_print_word(text, word), CVY_MAX_RANKS);
    *number_out = number;
    return CVY_OK;
}

static cvy_status read_choice(const char *key, const char *text, const char *const *choices, int *choice_out)
{
    for (int i = 0; choices[i]; i++) {
        if (strcmp(text, choices[i]) == 0) {
            *choice_out = i;
            return CVY_OK;
        }
    }
    char expected[80];
    snprintf(expected, sizeof expected, "%s or %s%s%s", choices[0], choices[1], choices[2] ? " or " : "",
             choices[2] ? choices[2] : "");
    return fail_unknown(text, key, choices, expected);
}

static cvy_status read_value(reader *r, int key, const char *value)
{
    const char *name = get_key_name(key);
    int choice = 0;
    CVY_REQUIRE(!r->given[key], CVY_ERR_INPUT, "'%s' is given twice", name);
    r->given[key] = true;
    switch (key) {
    case KEY_CUT:
        CVY_TRY(read_choice(name, value, cvy_channel_cut_names, &choice));
        r->strategy.channel_cut = (cvy_channel_cut)choice;
        return CVY_OK;
    case KEY_PIPELINE:
        CVY_TRY(read_choice(name, value, cvy_pipeline_order_names, &choice));
        r->strategy.pipeline = (cvy_pipeline_order)choice;
        return CVY_OK;
    case KEY_MICRO_BATCHES: return read_number(name, value, &r->strategy.micro_batches);
    default: r->order[r->axes++] = (cvy_axis)key; return read_number(name, value, &r->size[key]);
    }
}

static cvy_status read_word(reader *r, char *word, bool first)
{
    char *value = strchr(word, '=');
    if (value) {
        *value++ = '\0';
        int key = find_key(word);
        return key < 0 ? fail_unknown_word(word, true) : read_value(r, key, value);
    }
    const strategy_name *name = find_name(word);
    if (name) {
        CVY_REQUIRE(first, CVY_ERR_INPUT, "'%s' is a whole strategy and comes first; mixes are written as axes", word);
        r->name = name;
        return CVY_OK;
    }
    return find_key(word) < 0 ? fail_unknown_word(word, false)
                              : cvy_fail(CVY_ERR_INPUT, "'%s' needs a value: %s=2", word, word);
}

static cvy_status read_words(reader *r, const char *text)
{
    for (const char *at = text, *end; at; at = *end ? end + 1 : NULL) {
        char word[WORD_BYTES];
        end = strchrnul(at, ',');
        size_t length = (size_t)(end - at);
        CVY_REQUIRE(length, CVY_ERR_INPUT, "an empty word, expected a strategy, axis=N or option=VALUE");
        CVY_REQUIRE(length < sizeof word, CVY_ERR_INPUT, "a word of %zu letters, no strategy has one", length);
        memcpy(word, at, length);
        word[length] = '\0';
        CVY_TRY(read_word(r, word, at == text));
    }
    return CVY_OK;
}

/* Put the ranks of a name on its axis. */
static cvy_status spread_name(reader *r, int64_t ranks, const int64_t space[3])
{
    const strategy_name *name = r->name;
    CVY_REQUIRE(!r->axes, CVY_ERR_INPUT, "'%s' puts all ranks on one axis, and %s is given too", name->name,
                cvy_axis_name(r->order[0]));
    CVY_REQUIRE(name->axis != CVY_AXIS_CHANNEL || !r->given[KEY_CUT], CVY_ERR_INPUT,
                "'%s' says how channels are cut, and channel-cut is given too", name->name);
    int axis = name->axis;
    if (axis == AXIS_LONGEST) {
        axis = CVY_AXIS_DEPTH;
        axis = space[1] > space[axis - CVY_AXIS_DEPTH] ? CVY_AXIS_HEIGHT : axis;
        axis = space[2] > space[axis - CVY_AXIS_DEPTH] ? CVY_AXIS_WIDTH : axis;
    }
    if (axis == CVY_AXIS_CHANNEL) {
        r->strategy.channel_cut = name->cut;
    }
    if (axis >= 0) {
        r->size[axis] = ranks;
        r->order[r->axes++] = (cvy_axis)axis;
    }
    return CVY_OK;
}

static bool is_listed(const reader *r, cvy_axis axis)
{
    for (int i = 0; i < r->axes; i++) {
        if (r->order[i] == axis) {
            return true;
        }
    }
    return false;
}

/* Axes that were not written come behind those that were. */
static cvy_status make_mesh(reader *r, int64_t ranks)
{
    char text[CVY_MESH_TEXT];
    CVY_REQUIRE(is_listed(r, CVY_AXIS_CHANNEL) || !r->given[KEY_CUT], CVY_ERR_INPUT,
                "channel-cut without channel=N: no channels are cut");
    CVY_REQUIRE(is_listed(r, CVY_AXIS_STAGE) || !r->given[KEY_PIPELINE], CVY_ERR_INPUT,
                "pipeline=%s without stage=N: there are no stages", cvy_pipeline_order_names[r->strategy.pipeline]);
    for (int axis = 0; axis < CVY_AXES; axis++) {
        if (!is_listed(r, (cvy_axis)axis)) {
            r->order[r->axes++] = (cvy_axis)axis;
        }
    }
    cvy_strategy *strategy = &r->strategy;
    CVY_TRY(cvy_mesh_setup(r->size, r->order, &strategy->mesh));
    CVY_REQUIRE(strategy->mesh.ranks == ranks, CVY_ERR_INPUT, "%s is %" PRId64 " rank%s, expected %" PRId64,
                cvy_mesh_print(&strategy->mesh, text), strategy->mesh.ranks, strategy->mesh.ranks == 1 ? "" : "s",
                ranks);
    if (strategy->mesh.size[CVY_AXIS_CHANNEL] == 1) {
        strategy->channel_cut = (cvy_channel_cut)0;
    }
    if (strategy->mesh.size[CVY_AXIS_STAGE] == 1) {
        strategy->pipeline = (cvy_pipeline_order)0;
    }
    return CVY_OK;
}

static cvy_status read_strategy(reader *r, const char *text, int64_t ranks, const int64_t space[3])
{
    CVY_REQUIRE(ranks >= 1 && ranks <= CVY_MAX_RANKS, CVY_ERR_INPUT, "%" PRId64 " ranks, expected 1 to %d", ranks,
                CVY_MAX_RANKS);
    CVY_TRY(read_words(r, text));
    if (r->name && r->name->axis == AXIS_AUTO) {
        CVY_REQUIRE(strcmp(text, r->name->name) == 0, CVY_ERR_INPUT, "'auto' chooses everything and stands alone");
        r->strategy.automatic = true;
        return cvy_mesh_setup(r->size, NULL, &r->strategy.mesh);
    }
    if (r->name) {
        CVY_TRY(spread_name(r, ranks, space));
    }
    return make_mesh(r, ranks);
}

cvy_status cvy_strategy_parse(const char *text, int64_t ranks, const int64_t space[3], cvy_strategy *strategy_out)
{
    char word[CVY_WORD_TEXT];
    reader r = {0};
    for (int axis = 0; axis < CVY_AXES; axis++) {
        r.size[axis] = 1;
    }
    cvy_status status = read_strategy(&r, text, ranks, space);
    if (status != CVY_OK) {
        return cvy_fail_within(status, "strategy %s", cvy_print_word(text, word));
    }
    *strategy_out = r.strategy;
    return CVY_OK;
}

void cvy_strategy_find_space(const cvy_shape *input, int64_t space_out[3])
{
    for (int i = 0; i < 3; i++) {
        int dim = input->dims - 3 + i;
        space_out[i] = dim >= 2 ? input->extent[dim] : 1;
    }
}
